"""Trees in model files: arrays of nodes, which predict what their library predicts, to the last bit."""

import functools
import platform
import subprocess
import sys
import warnings
import zipfile

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import fairtransport as ft
from fairtransport import QuantileRepair
from fairtransport._warnings import FairnessWarning
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.persistence import TreeClassifier, describe
from fairtransport.persistence import trees as _trees
from fairtransport.persistence._files import pack_model

from .models import people

LIGHT = {"n_estimators": 8, "num_leaves": 6, "verbose": -1, "n_jobs": 1, "min_data_per_group": 5, "cat_smooth": 1.0}
XG = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1, "enable_categorical": True, "max_cat_to_onehot": 1}
TREES = {
    "lightgbm": lambda: lightgbm.LGBMClassifier(**LIGHT),
    "lightgbm dart": lambda: lightgbm.LGBMClassifier(boosting_type="dart", **LIGHT),
    "xgboost": lambda: xgboost.XGBClassifier(**XG),
    "xgboost dart": lambda: xgboost.XGBClassifier(booster="dart", rate_drop=0.3, **XG),
}
EXACT_MAX = 987.654321  # of one person; must not be in a file


@functools.cache
def data(kind):
    X, y, group = people()
    if kind == "array":
        return X, y, group
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.loc[0, "b"] = EXACT_MAX
    chance = np.random.default_rng(0).integers(9, size=len(y))
    table["kind"] = pd.Categorical(np.array(list("rstuvwxyz"))[np.where(y == "yes", chance, 4 * chance % 9 // 2)])
    table.loc[::6, "c"] = np.nan
    return table, y, group


def assert_same(found, expected, trees):
    """To the last bit; where compilers fuse a product and a sum, XGBoost rounds its weighted trees otherwise."""
    if getattr(trees, "booster", None) == "dart" and platform.machine() != "x86_64":
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(found, expected)


@functools.cache
def fitted(trees, kind="table", **options):
    X, y, group = data(kind)
    model = TransportBoostingClassifier(TREES[trees](), random_state=0, parity_weight=0.3, **options)
    with warnings.catch_warnings(action="ignore", category=FairnessWarning):  # of so few rounds
        return model.fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("kind", ["array", "table"])
@pytest.mark.parametrize("trees", TREES)
def test_the_model_that_was_saved_is_the_model_that_is_loaded(trees, kind, tmp_path):
    model, (X, y, _) = fitted(trees, kind), data(kind)
    path = ft.save(model, tmp_path / "model.ft")
    again = ft.load(path)
    assert_same(again.predict_proba(X), model.predict_proba(X), model.estimator_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y) == model.score(X, y)
    assert type(again.estimator_) is TreeClassifier
    assert (again.n_features_in_, again.n_iter_, again.outcome_) == (model.n_features_in_, 8, model.outcome_)
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"schema.json", "arrays"}
    assert "Of trees: the values of columns at which they split" in describe(path)["reveals"]


@pytest.mark.parametrize("trees", ["lightgbm", "xgboost"])
def test_a_closing_repair_is_summed_up_and_given_back(trees, tmp_path):
    model, (X, _, group) = fitted(trees, repair=QuantileRepair()), data("table")
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    change = describe(tmp_path / "model.ft")["changes"]["model.repair_.maps_"]
    gap = np.abs(again.predict_proba(X, sensitive_features=group) - model.predict_proba(X, sensitive_features=group))
    assert 0 < gap.max() <= change["largest"] + 1e-12
    exact = ft.load(ft.save(model, tmp_path / "exact.ft", people_per_point=1))
    known = {"sensitive_features": group}
    np.testing.assert_array_equal(exact.predict_proba(X, **known), model.predict_proba(X, **known))


@pytest.mark.parametrize("trees", TREES)
def test_no_single_persons_value_is_in_the_file(trees, tmp_path):
    path = ft.save(fitted(trees), tmp_path / "model.ft")
    assert str(EXACT_MAX).encode()[:7] not in path.read_bytes()
    assert b"pickle" not in path.read_bytes()


REFUSED = {
    "linear": (lambda: lightgbm.LGBMClassifier(linear_tree=True, **LIGHT), "has linear leaves"),
    "forest": (
        lambda: lightgbm.LGBMClassifier(boosting_type="rf", subsample_freq=1, subsample=0.5, **LIGHT),
        "is a random forest",
    ),
    "entropy": (lambda: lightgbm.LGBMClassifier(objective="cross_entropy", **LIGHT), "objective"),
    "sigmoid": (lambda: lightgbm.LGBMClassifier(sigmoid=2.0, **LIGHT), "sigmoid"),
    "no trees": (lambda: xgboost.XGBClassifier(booster="gblinear", n_estimators=3), "does not consist of trees"),
    "hinge": (lambda: xgboost.XGBClassifier(objective="binary:hinge", **XG), "objective"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_trees_are_refused_when_saved(kind, tmp_path):
    X, y, group = data("array")
    make, reason = REFUSED[kind]
    model = ft.QuantileRepairClassifier(make()).fit(X, (y == "yes").astype(int), sensitive_features=group)
    with pytest.raises(TypeError, match=reason) as refusal:
        ft.save(model, tmp_path / "model.ft")
    assert "Save others in the format of their library" in str(refusal.value)
    assert not (tmp_path / "model.ft").exists()


def test_three_classes_are_refused():
    X, y, _ = data("array")
    for trees in ("lightgbm", "xgboost"):
        with pytest.raises(TypeError, match="more than two classes"):
            pack_model(TREES[trees]().fit(X, np.arange(len(y)) % 3))


LOADING = """
import sys
sys.modules.update(lightgbm=None, xgboost=None)
import numpy as np, fairtransport as ft
np.save(sys.argv[3], ft.load(sys.argv[1]).predict_proba(np.load(sys.argv[2])))
"""


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_scoring_needs_no_library_of_trees(library, tmp_path):
    model, (X, _, _) = fitted(library, "array"), data("array")
    np.save(tmp_path / "X.npy", X)
    paths = [ft.save(model, tmp_path / "model.ft"), tmp_path / "X.npy", tmp_path / "scores.npy"]
    subprocess.run([sys.executable, "-c", LOADING, *map(str, paths)], check=True)
    np.testing.assert_array_equal(np.load(paths[2]), model.predict_proba(X))


def test_a_loaded_model_is_scored_and_not_trained(tmp_path):
    X, y, group = data("array")
    again = ft.load(ft.save(fitted("lightgbm", "array"), tmp_path / "model.ft"))
    with pytest.raises(TypeError, match="TreeClassifier"):
        again.fit(X, y, sensitive_features=group)
    with pytest.raises(TypeError, match="can be scored but not trained"):
        again.estimator_.fit(X, y)
    repaired = ft.QuantileRepairClassifier(TREES["lightgbm"]()).fit(X, y, sensitive_features=group)
    again = ft.load(ft.save(repaired, tmp_path / "model.ft"))
    with pytest.raises(TypeError, match="can be scored but not trained"):
        again.fit(X, y, sensitive_features=group)


def again_of(model):
    """The model after writing and reading its parts."""
    return _trees._from_parts(_trees._to_parts(model))


def random_table(rng):
    """Numbers of several scales, whole numbers, zeros, missing values, and categories of text and numbers."""
    n = int(rng.integers(30, 200))
    columns = {
        "real": rng.normal(size=n) * 10.0 ** rng.integers(-8, 9),
        "single": rng.normal(size=n).astype(np.float32),
        "whole": rng.integers(-3, 9, size=n),
        "sparse": rng.normal(size=n) * (rng.random(n) < 0.3),
        "text": pd.Categorical(rng.choice(["a", "b b", "c=d", "e\n", "", "f"], n)),
        "codes": pd.Categorical(rng.integers(-2, 40, n)),
    }
    names = rng.permutation(list(columns))[: rng.integers(2, 7)]
    frame = pd.DataFrame({name: columns[name] for name in names})
    for name in names:
        if rng.random() < 0.5 and name != "whole":
            frame.loc[rng.random(n) < 0.2, name] = np.nan
    signal = sum(
        frame[name].cat.codes % 3 if frame[name].dtype == "category" else frame[name].rank() / n for name in names
    )
    y = np.array(signal.fillna(1) + rng.normal(size=n) > signal.median(), dtype=int)
    y[:2] = 0, 1
    if rng.random() < 0.3 and not any(frame[name].dtype == "category" for name in names):
        return frame.to_numpy(), y
    return frame, y


def random_lightgbm(rng):
    X, y = random_table(rng)
    params = {
        "n_estimators": int(rng.integers(1, 25)),
        "num_leaves": int(rng.integers(2, 40)),
        "min_child_samples": int(rng.choice([1, 5, 200])),
        "boosting_type": str(rng.choice(["gbdt", "dart", "goss"])),
        "learning_rate": float(rng.choice([0.1, 1.0, 1e-3])),
        "zero_as_missing": bool(rng.random() < 0.3),
        "use_missing": bool(rng.random() < 0.8),
        "max_cat_to_onehot": int(rng.choice([1, 4, 50])),
        "extra_trees": bool(rng.random() < 0.3),
    }
    plain = {"min_data_per_group": 2, "cat_smooth": 0.1, "min_data_in_bin": 1, "verbose": -1, "n_jobs": 1}
    fit = {}
    if rng.random() < 0.3 and params["boosting_type"] != "dart":
        fit = {"eval_set": [(X, 1 - y)], "callbacks": [lightgbm.early_stopping(2, verbose=False)]}
    return lightgbm.LGBMClassifier(**params, **plain).fit(X, y, **fit), X


def random_xgboost(rng):
    X, y = random_table(rng)
    params = {
        "n_estimators": int(rng.integers(1, 25)),
        "max_depth": int(rng.integers(1, 8)),
        "booster": str(rng.choice(["gbtree", "dart"])),
        "max_cat_to_onehot": int(rng.choice([1, 4, 50])),
        "gamma": float(rng.choice([0.0, 1.0])),
        "num_parallel_tree": int(rng.choice([1, 1, 3])),
        "learning_rate": float(rng.choice([0.3, 1.0, 1e-3])),
        "min_child_weight": float(rng.choice([0.0, 1.0, 1e9])),
        "base_score": rng.choice([None, 0.5, 0.123]),
        "grow_policy": str(rng.choice(["depthwise", "lossguide"])),
        "rate_drop": 0.3,
        "missing": float(rng.choice([np.nan, 0.0])),
    }
    if params["booster"] == "gbtree":
        del params["rate_drop"]
    numeric = isinstance(X, np.ndarray) or not any(X.dtypes == "category")
    if numeric:
        params["tree_method"] = str(rng.choice(["exact", "approx", "hist"]))
    fit = {}
    if rng.random() < 0.3:
        params["early_stopping_rounds"] = 2
        fit = {"eval_set": [(X, 1 - y)], "verbose": False}
    return xgboost.XGBClassifier(enable_categorical=not numeric, n_jobs=1, **params).fit(X, y, **fit), X


def random_numbers(rng):
    """A matrix with ties and some missing values, and labels."""
    n = int(rng.integers(40, 300))
    X = rng.normal(size=(n, 4)) * 10.0 ** rng.integers(-3, 4)
    X[:, 1] = rng.integers(5, size=n)
    y = (X[:, 0] / np.abs(X[:, 0]).max() + 0.2 * X[:, 1] + rng.normal(size=n) > 0.5).astype(int)
    if rng.random() < 0.5:
        X[rng.random((n, 4)) < 0.1] = np.nan
    return X, y


def random_forest(rng):
    X, y = random_numbers(rng)
    kinds = (
        *(RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor),
        *(DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier),
    )
    kind = kinds[rng.integers(len(kinds))]
    options = {
        "random_state": 0,
        "max_leaf_nodes": [None, 20][rng.integers(2)],
        "min_samples_leaf": 1 + rng.integers(5),
    }
    if "Trees" in kind.__name__ or "Forest" in kind.__name__:
        options["n_estimators"] = int(rng.integers(1, 20))
    if kind.__name__.endswith("Classifier") and rng.random() < 0.4:
        y = y + (rng.random(len(y)) < 0.3)
    return kind(**options).fit(X, y), X


def random_histogram_trees(rng):
    X, y = random_table(rng)
    if isinstance(X, pd.DataFrame) and rng.random() < 0.3:
        X = X.assign(**{name: X[name].cat.codes for name in X if X[name].dtype == "category"}).to_numpy()
    options = {"max_iter": int(rng.integers(1, 20)), "min_samples_leaf": int(rng.integers(1, 10))}
    options["categorical_features"] = "from_dtype" if isinstance(X, pd.DataFrame) else None
    if isinstance(X, np.ndarray) and rng.random() < 0.5:
        whole = [index for index, column in enumerate(X.T) if np.isin(column, np.arange(50)).all()]
        options["categorical_features"] = whole
    options["early_stopping"] = bool(rng.random() < 0.5)  # whose held-out rows may have categories of their own
    if rng.random() < 0.3:
        losses = ["squared_error", "poisson", "absolute_error"]
        return HistGradientBoostingRegressor(loss=losses[rng.integers(3)], **options).fit(X, y), X
    y = y + (rng.random(len(y)) < 0.3) if rng.random() < 0.4 else y
    return HistGradientBoostingClassifier(**options).fit(X, y), X


def check_random_model(make, seed):
    model, X = make(np.random.default_rng(seed))
    again = again_of(model)
    predict = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    frames = [X]
    if isinstance(X, pd.DataFrame):  # each column in another order, so that rows are new
        shuffled = {name: X[name].sample(frac=1, random_state=k).to_list() for k, name in enumerate(X)}
        frames.append(pd.DataFrame(shuffled).astype(X.dtypes))
    for rows in frames:
        for method in {predict, "predict"}:
            assert_same(getattr(again, method)(rows), getattr(model, method)(rows), model)
    parts, resaved = _trees._to_parts(again), _trees._to_parts(again_of(again))
    assert all(np.array_equal(parts[name], resaved[name]) for name in parts if name.startswith("trees."))
    return again.trees_.n_trees


MAKERS = {
    "lightgbm": random_lightgbm,
    "xgboost": random_xgboost,
    "forests and trees": random_forest,
    "histogram trees": random_histogram_trees,
}
pytest_warnings = pytest.mark.filterwarnings("ignore:.*eval_set.*", "ignore:.*valid_sets.*")


@pytest_warnings
@pytest.mark.parametrize("seeds", [range(15), pytest.param(range(100, 180), marks=pytest.mark.trust)])
@pytest.mark.parametrize("library", MAKERS)
def test_arrays_predict_the_same_bits(library, seeds):
    assert all(check_random_model(MAKERS[library], seed) for seed in seeds)


def test_categories_that_are_new_or_not_known():
    X, y, _ = data("table")
    again = again_of(TREES["xgboost"]().fit(X, y == "yes"))
    new, missing = (X.assign(kind=pd.Categorical([value] * len(X))) for value in ("never seen", None))
    np.testing.assert_array_equal(again.predict_proba(new), again.predict_proba(missing))
    numbers = xgboost.XGBClassifier(**{**XG, "enable_categorical": False}).fit(X[["a", "b"]], y == "yes")
    with pytest.raises(ValueError, match="of which the model knows none"):
        again_of(numbers).predict(X[["a", "kind"]].rename(columns={"kind": "b"}))


@pytest.mark.parametrize(
    "model",
    [
        lightgbm.LGBMClassifier(n_estimators=3, verbose=-1),
        xgboost.XGBClassifier(n_estimators=3),  # to which what a sparse matrix lacks is missing
        RandomForestClassifier(n_estimators=3, random_state=0),
    ],
    ids=["lightgbm", "xgboost", "forest"],
)
def test_sparse_rows(model):
    X, y, _ = data("array")
    X = sparse.csr_matrix(np.where(np.abs(X) < 0.7, 0.0, X))
    model.fit(X, y == "yes")
    np.testing.assert_array_equal(again_of(model).predict_proba(X), model.predict_proba(X))


def test_names_of_columns_are_checked_as_the_library_does():
    X, y, _ = data("array")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for model in (xgboost.XGBClassifier(**XG), RandomForestClassifier(2), HistGradientBoostingClassifier(max_iter=2)):
        again = again_of(model.fit(frame, y == "yes"))
        assert again.feature_names_in_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="other names, or in another order"):
            again.predict(frame[["b", "a", "c"]])
        with pytest.raises(ValueError, match="features"):
            again.predict(X[:, :2])


def test_what_a_library_refuses_to_read_is_refused():
    X, y, _ = data("array")
    infinite = np.where(X > 2.0, np.inf, X)
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        again_of(forest).predict(infinite)
    for model in (TREES["lightgbm"]().fit(X, y), HistGradientBoostingClassifier(max_iter=2).fit(X, y)):
        np.testing.assert_array_equal(again_of(model).predict_proba(infinite), model.predict_proba(infinite))


def test_categories_that_xgboost_spoils_are_refused():
    X, y, _ = data("array")
    frame = pd.DataFrame({"a": X[:, 0], "word": pd.Categorical(np.where(X[:, 1] > 0, "é", "ab"))})
    with pytest.raises(TypeError, match="letters of ASCII"):
        again_of(xgboost.XGBClassifier(**XG).fit(frame, y == "yes"))


def test_arrays_that_predict_otherwise_are_not_saved(monkeypatch):
    X, y, _ = data("array")
    model = TREES["lightgbm"]().fit(X, y)
    read = _trees._read_lightgbm
    monkeypatch.setattr(_trees, "_read_lightgbm", lambda one: {**read(one), "values": read(one)["values"] + 1e-6})
    with pytest.raises(TypeError, match="do not predict what its library predicts"):
        pack_model(model)
