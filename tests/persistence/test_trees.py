"""Boosted trees in model files: arrays, from which the library's own model is rebuilt, equal to the last bit."""

import functools
import importlib
import warnings
import zipfile

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

import fairtransport as ft
from fairtransport import QuantileRepair
from fairtransport._warnings import FairnessWarning
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.persistence import ModelFileError, describe
from fairtransport.persistence._files import pack_model, unpack_model
from fairtransport.persistence.recipes._boosted_trees import VALUE_TYPES
from fairtransport.persistence.trees import LightGBMTrees, XGBoostTrees
from fairtransport.persistence.trees._xgboost import from_ubjson, to_ubjson
from fairtransport.tabular import TableModel

from .models import people, table

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


@functools.cache
def fitted(trees, kind="table", **options):
    X, y, group = data(kind)
    model = TransportBoostingClassifier(TREES[trees](), random_state=0, parity_weight=0.3, **options)
    with warnings.catch_warnings(action="ignore", category=FairnessWarning):  # of so few rounds
        return model.fit(X, y, sensitive_features=group)


def known_params(model):
    """Parameters, as text because NaN is among them, but for those of the machine."""
    params = {name: value for name, value in model.get_params().items() if not name.endswith("n_jobs")}
    return str({**params, "estimator": type(params.pop("estimator"))})


@pytest.mark.parametrize("kind", ["array", "table"])
@pytest.mark.parametrize("trees", TREES)
def test_the_model_that_was_saved_is_the_model_that_is_loaded(trees, kind, tmp_path):
    model, (X, y, _) = fitted(trees, kind), data(kind)
    path = ft.save(model, tmp_path / "model.ft")
    again = ft.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y) == model.score(X, y)
    assert type(again.estimator_) is type(model.estimator_)
    assert known_params(again) == known_params(model)
    assert (again.n_features_in_, again.n_iter_, again.outcome_) == (model.n_features_in_, 8, model.outcome_)
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"schema.json", "arrays"}
    assert "Of boosted trees: the values of columns at which they split" in describe(path)["reveals"]


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
    assert known_params(exact) == known_params(model)


@pytest.mark.parametrize("trees", ["lightgbm", "xgboost"])
def test_repairs_around_trees_can_be_saved_too(trees, tmp_path):
    X, y, group = data("table")
    model = ft.QuantileRepairClassifier(TREES[trees]()).fit(X, (y == "yes").astype(int), sensitive_features=group)
    again = ft.load(ft.save(model, tmp_path / "model.ft", people_per_point=1))
    known = {"sensitive_features": group}
    np.testing.assert_array_equal(again.predict_proba(X, **known), model.predict_proba(X, **known))


@pytest.mark.parametrize("trees", TREES)
def test_no_single_persons_value_is_in_the_file(trees, tmp_path):
    path = ft.save(fitted(trees), tmp_path / "model.ft")
    assert str(EXACT_MAX).encode()[:7] not in path.read_bytes()
    assert b"pickle" not in path.read_bytes()


def test_a_model_of_a_raw_table_with_trees(tmp_path):
    frame, y, group = table()
    raw = frame.assign(sex=group, hired=y)
    repaired = ft.QuantileRepairClassifier(TREES["lightgbm"]())
    model = TableModel(repaired, label="hired", sensitive_features=["sex"]).fit(raw)
    again = ft.load(ft.save(model, tmp_path / "model.ft", people_per_point=1))
    np.testing.assert_array_equal(again.score_rows(raw).scores, model.score_rows(raw).scores)


REFUSED = {
    "linear": (lambda: lightgbm.LGBMClassifier(linear_tree=True, **LIGHT), "has linear leaves"),
    "forest": (
        lambda: lightgbm.LGBMClassifier(boosting_type="rf", subsample_freq=1, subsample=0.5, **LIGHT),
        "is a random forest",
    ),
    "entropy": (lambda: lightgbm.LGBMClassifier(objective="cross_entropy", **LIGHT), "objective"),
    "sigmoid": (lambda: lightgbm.LGBMClassifier(sigmoid=2.0, **LIGHT), "sigmoid"),
    "file": (lambda: lightgbm.LGBMClassifier(forcedsplits_filename="", **LIGHT), "forcedsplits_filename"),
    "no trees": (lambda: xgboost.XGBClassifier(booster="gblinear", n_estimators=3), "does not consist of trees"),
    "hinge": (lambda: xgboost.XGBClassifier(objective="binary:hinge", **XG), "objective"),
    "constraints": (
        lambda: xgboost.XGBClassifier(interaction_constraints="[[0, 1]]", **XG),
        r"set_params\(interaction_constraints=None\)",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_trees_are_refused_when_saved(kind, tmp_path):
    X, y, group = data("array")
    make, reason = REFUSED[kind]
    model = ft.QuantileRepairClassifier(make()).fit(X, (y == "yes").astype(int), sensitive_features=group)
    with pytest.raises(TypeError, match=reason) as refusal:
        ft.save(model, tmp_path / "model.ft")
    assert "Save others in the format of their library" in str(refusal.value) or "before saving" in str(refusal.value)
    assert not (tmp_path / "model.ft").exists()


def test_three_classes_and_unfitted_models_are_refused(tmp_path):
    X, y, _ = data("array")
    for trees in ("lightgbm", "xgboost"):
        with pytest.raises(TypeError, match="more than two classes"):
            to_parts(TREES[trees]().fit(X, np.arange(len(y)) % 3))
    with pytest.raises(ValueError, match="is not fitted"):
        ft.save(TransportBoostingClassifier(), tmp_path / "model.ft")


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_library_that_is_not_installed_is_named_with_the_extra(library, tmp_path, monkeypatch):
    path = ft.save(fitted(library), tmp_path / "model.ft")
    real = importlib.import_module

    def missing(name, *rest):
        if name == library:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        ModelFileError, match=rf'of {library}, which is not installed: pip install "fairtransport\[boos'
    ):
        ft.load(path)


# --------------------------------------------------------------------------------------------------- random boosters


def to_parts(estimator):
    return VALUE_TYPES[isinstance(estimator, xgboost.XGBClassifier)].to_parts(estimator)


def from_parts(parts):
    return VALUE_TYPES["base_score" in parts].from_parts(parts)


def random_table(rng):
    """Numbers of several scales, whole numbers, zeros, missing values, and categories of text and numbers."""
    n = int(rng.integers(30, 200))
    columns = {
        "real": rng.normal(size=n) * 10.0 ** rng.integers(-8, 9),
        "single": rng.normal(size=n).astype(np.float32),
        "whole": rng.integers(-3, 9, size=n),
        "sparse": rng.normal(size=n) * (rng.random(n) < 0.3),
        "text": pd.Categorical(rng.choice(["a", "b é", "c=d", "e\n", "", "日本"], n)),
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


def check_random_booster(make, seed):
    rng = np.random.default_rng(seed)
    model, X = make(rng)
    parts = to_parts(model)
    again = from_parts(parts)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    if isinstance(X, pd.DataFrame):  # each column in another order, so that rows are new
        shuffled = {name: X[name].sample(frac=1, random_state=k).to_list() for k, name in enumerate(X)}
        X = pd.DataFrame(shuffled).astype(X.dtypes)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    resaved = to_parts(again)
    assert parts.keys() == resaved.keys()
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            np.testing.assert_array_equal(part, resaved[name])
    return sum(array.size for array in parts.values() if isinstance(array, np.ndarray))


MAKERS = {"lightgbm": random_lightgbm, "xgboost": random_xgboost}
pytest_warnings = pytest.mark.filterwarnings("ignore:.*eval_set.*", "ignore:.*valid_sets.*")


@pytest_warnings
@pytest.mark.parametrize("library", MAKERS)
def test_rebuilt_boosters_predict_the_same_bits(library):
    assert all(check_random_booster(MAKERS[library], seed) for seed in range(15))


@pytest.mark.trust
@pytest_warnings
@pytest.mark.parametrize("library", MAKERS)
def test_hundreds_of_rebuilt_boosters_predict_the_same_bits(library):
    assert all(check_random_booster(MAKERS[library], seed) for seed in range(100, 180))


def test_pruned_trees_of_xgboost():
    """The exact algorithm leaves deleted nodes in a tree, which a file does not contain."""
    X, y, _ = data("array")
    params = {"max_depth": 8, "gamma": 1.0, "tree_method": "exact", "enable_categorical": False}
    model = xgboost.XGBClassifier(**{**XG, **params}).fit(X, y == "yes")
    content = from_ubjson(bytes(model.get_booster().save_raw("ubj")))
    stored = content["learner"]["gradient_booster"]["model"]["trees"]
    assert any(int(tree["tree_param"]["num_deleted"]) for tree in stored)
    np.testing.assert_array_equal(from_parts(to_parts(model)).predict_proba(X), model.predict_proba(X))


def test_contributions_of_features_are_the_same():
    X, y, _ = data("table")
    light = TREES["lightgbm"]().fit(X, y)
    again = from_parts(to_parts(light))
    np.testing.assert_array_equal(again.predict(X, pred_contrib=True), light.predict(X, pred_contrib=True))
    boosted = TREES["xgboost"]().fit(X, y == "yes")
    rows = xgboost.DMatrix(X, enable_categorical=True)
    pair = [one.get_booster().predict(rows, pred_contribs=True) for one in (from_parts(to_parts(boosted)), boosted)]
    np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize("trees", ["xgboost", "xgboost dart"])
def test_binary_json_is_that_of_xgboost(trees):
    content = bytes(fitted(trees).estimator_.get_booster().save_raw("ubj"))
    assert to_ubjson(from_ubjson(content)) == content


def test_binary_json_of_numbers():
    values = [0, 1, -1, 126, 127, -127, -128, 32766, 32767, -32768, 2**31 - 2, 2**31, -(2**40), 0.5, "é", {"a": []}]
    assert from_ubjson(bytes(to_ubjson(values))) == values


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_trees_without_splits(library):
    X, y, _ = data("array")
    model = TREES[library]().set_params(**{"min_child_samples": 10**6} if library == "lightgbm" else {"gamma": 1e9})
    model.fit(X, y == "yes")
    again = from_parts(to_parts(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_names_of_columns_that_look_like_the_format():
    """LightGBM's format separates by '=' and spaces; XGBoost's has lengths."""
    X, y, _ = data("array")
    names = ["=num_tree_per_iteration=8", "Tree=0", "num_leaves=1=日本"]
    frame = pd.DataFrame(X, columns=names)
    light = lightgbm.LGBMClassifier(**LIGHT).fit(frame, y)
    again = from_parts(to_parts(light))
    assert again.feature_name_ == light.feature_name_ == names
    np.testing.assert_array_equal(again.predict_proba(frame), light.predict_proba(frame))
    names[0] = 'a "quoted" name, with: {all} of it'
    frame = pd.DataFrame(X, columns=names)
    boosted = xgboost.XGBClassifier(**XG).fit(frame, y == "yes")
    again = from_parts(to_parts(boosted))
    assert again.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(again.predict_proba(frame), boosted.predict_proba(frame))


def test_a_new_key_of_a_librarys_format_is_not_dropped_in_silence():
    light = fitted("lightgbm").estimator_.booster_.model_to_string()
    with pytest.raises(ValueError, match="does not know leaf_angle of LightGBM's format"):
        LightGBMTrees.from_text(light.replace("\nleaf_value=", "\nleaf_angle=1\nleaf_value=", 1))
    content = from_ubjson(bytes(fitted("xgboost").estimator_.get_booster().save_raw("ubj")))
    content["learner"]["gradient_booster"]["model"]["trees"][0]["leaf_angle"] = 1
    with pytest.raises(ValueError, match="does not know leaf_angle of XGBoost's format"):
        XGBoostTrees.from_content(bytes(to_ubjson(content)))


def test_settings_of_the_machine_are_not_stored():
    X, y, group = data("array")
    params = {**LIGHT, "n_jobs": 7, "num_threads": 5, "device_type": "cpu"}
    model = ft.QuantileRepairClassifier(lightgbm.LGBMClassifier(**params)).fit(X, y, sensitive_features=group)
    again = unpack_model(pack_model(model)[0])
    assert again.estimator_.n_jobs is None
    assert not {"num_threads", "device_type"} & set(again.estimator_.get_params())
