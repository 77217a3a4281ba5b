"""Boosted trees in model files: the library's own text, looked through; no pickle."""

import functools
import importlib
import json
import re
import zipfile

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

import fairtransport as ft
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.persistence import ModelFileError, describe
from fairtransport.persistence._tree_texts import check_lightgbm, check_xgboost, clean_lightgbm
from fairtransport.storage import read_container, write_container

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


@functools.cache
def fitted(trees, kind="table", **options):
    X, y, group = data(kind)
    model = TransportBoostingClassifier(TREES[trees](), random_state=0, parity_weight=0.3, **options)
    return model.fit(X, y, sensitive_features=group)


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
    assert str(again.get_params()) == str(model.get_params())
    assert (again.n_features_in_, again.n_iter_, again.outcome_) == (model.n_features_in_, 8, model.outcome_)
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"schema.json", "arrays"}
    assert "Of boosted trees: the values of columns at which they split" in describe(path)["reveals"]


@pytest.mark.parametrize("trees", ["lightgbm", "xgboost"])
def test_a_closing_repair_is_summed_up_and_given_back(trees, tmp_path):
    model, (X, _, group) = fitted(trees, repair_amount=1.0), data("table")
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    change = describe(tmp_path / "model.ft")["changes"]["model.repair_.maps_"]
    gap = np.abs(again.predict_proba(X, sensitive_features=group) - model.predict_proba(X, sensitive_features=group))
    assert 0 < gap.max() <= change["largest"] + 1e-12
    exact = ft.load(ft.save(model, tmp_path / "exact.ft", people_per_point=1))
    known = {"sensitive_features": group}
    np.testing.assert_array_equal(exact.predict_proba(X, **known), model.predict_proba(X, **known))
    assert str(exact.estimator.get_params()) == str(model.estimator.get_params())


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


def test_other_trees_are_refused_when_saved(tmp_path):
    X, y, group = data("array")
    linear = TransportBoostingClassifier(lightgbm.LGBMClassifier(linear_tree=True, **LIGHT), random_state=0)
    linear.fit(X, y, sensitive_features=group)
    with pytest.raises(TypeError, match="trees of two classes with the logistic objective, without linear leaves"):
        ft.save(linear, tmp_path / "model.ft")
    weights = TransportBoostingClassifier(
        xgboost.XGBClassifier(booster="gblinear", n_estimators=3), smooth_groups=False
    )
    weights.set_params(parity_weight=0.0).fit(X, y, sensitive_features=group)
    with pytest.raises(TypeError, match="Save others in the format of their library"):
        ft.save(weights, tmp_path / "model.ft")
    with pytest.raises(ValueError, match="is not fitted"):
        ft.save(TransportBoostingClassifier(), tmp_path / "model.ft")
    assert not (tmp_path / "model.ft").exists()


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


# ----------------------------------------------------------------------------------------------------- hostile texts


def rewritten(path, change):
    """The same file with its trees changed, its checksums right."""
    held = read_container(path, kind="model")
    (name,) = [name for name in held.arrays if name.endswith("estimator_.booster")]
    text = change(held.arrays[name].tobytes().decode())
    arrays = {**held.arrays, name: np.frombuffer(text.encode(), np.uint8)}
    return write_container(path, "model", held.schema, arrays, reveals=held.reveals)


def numbers(name, change):
    """Change the first line of that name that has more than one number."""

    def changed(text):
        line = next(line for line in re.findall(rf"\n{name}=([^\n]*)", text) if " " in line)
        values = change(line.split(" "))
        # Keep the length of the block, which the file states.
        return text.replace(f"\n{name}={line}\n", f"\n{name}={' '.join(values).ljust(len(line))[: len(line)]}\n", 1)

    return changed


LIGHT_LIES = {
    "a column that is not there": numbers("split_feature", lambda v: ["9", *v[1:]]),
    "a child that is not there": numbers("left_child", lambda v: ["7", *v[1:]]),
    "a node that is its own child": numbers("left_child", lambda v: ["0", *v[1:]]),
    "a leaf of two": numbers("right_child", lambda v: [v[0], v[0], *v[2:]]),
    "too few thresholds": numbers("threshold", lambda v: v[:-1]),
    "too many leaves": lambda t: re.sub(r"\nnum_leaves=\d", "\nnum_leaves=9", t, count=1),
    "no leaves": lambda t: re.sub(r"\nnum_leaves=\d", "\nnum_leaves=0", t, count=1),
    "a leaf that is no number": numbers("leaf_value", lambda v: ["nan", *v[1:]]),
    "categories beyond the end": numbers("cat_boundaries", lambda v: [v[0], "9", *v[2:]]),
    "more columns": lambda t: re.sub(r"\nmax_feature_idx=\d", "\nmax_feature_idx=7", t),
    "sizes of trees": numbers("tree_sizes", lambda v: ["9" * len(v[0]), *v[1:]]),
    "a number twice": lambda t: t.replace("\nnum_class=1\n", "\nnum_class=1\nnum_class=1\n", 1),
    "three classes": lambda t: t.replace("num_class=1", "num_class=3", 1),
    "another objective": lambda t: t.replace("binary sigmoid:1", "poisson", 1),
    "settings": lambda t: t + "\nparameters:\n[machines: elsewhere]\nend of parameters\n",
    "nothing": lambda _: "",
}  # fmt: skip


@pytest.mark.parametrize("lie", LIGHT_LIES)
def test_lightgbm_texts_that_lie_are_refused_before_lightgbm_reads_them(lie, tmp_path, monkeypatch):
    path = ft.save(fitted("lightgbm"), tmp_path / "model.ft")
    ft.load(rewritten(path, lambda text: text))
    rewritten(path, LIGHT_LIES[lie])
    monkeypatch.setattr(lightgbm.Booster, "model_from_string", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ModelFileError):
        ft.load(path)


def in_tree(name, change):
    def changed(text):
        model = json.loads(text)
        tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
        tree[name] = change(tree[name])
        return json.dumps(model)

    return changed


def in_learner(*way, to):
    def changed(text):
        model = json.loads(text)
        part = model["learner"]
        for step in way[:-1]:
            part = part[step]
        part[way[-1]] = to
        return json.dumps(model)

    return changed


XG_LIES = {
    "a column that is not there": in_tree("split_indices", lambda v: [99, *v[1:]]),
    "a child that is not there": in_tree("left_children", lambda v: [99, *v[1:]]),
    "a node that is its own child": in_tree("left_children", lambda v: [0, *v[1:]]),
    "a child of two": in_tree("left_children", lambda v: [v[0], v[0], *v[2:]]),
    "too few thresholds": in_tree("split_conditions", lambda v: v[:-1]),
    "another parent": in_tree("parents", lambda v: [*v[:-1], 0]),
    "categories beyond the end": in_tree("categories_sizes", lambda v: [99 for _ in v] or [1]),
    "categories of no node": in_tree("categories_nodes", lambda v: [99 for _ in v] or [1]),
    "a category that is none": in_tree("categories", lambda v: [-5, *v]),
    "more nodes": in_tree("tree_param", lambda v: {**v, "num_nodes": "99"}),
    "more columns": in_learner("learner_model_param", "num_feature", to="99"),
    "more trees": in_learner("gradient_booster", "model", "gbtree_model_param", "num_trees", to="99"),
    "rounds beyond the end": in_learner("gradient_booster", "model", "iteration_indptr", to=[0, 99]),
    "three classes": in_learner("learner_model_param", "num_class", to="3"),
    "another objective": in_learner("objective", "name", to="count:poisson"),
    "categories of columns": in_learner("gradient_booster", "model", "cats", "feature_segments", to=[0, 99]),
    "no JSON": lambda _: "{",
}


@pytest.mark.parametrize("lie", XG_LIES)
def test_xgboost_texts_that_lie_are_refused_before_xgboost_reads_them(lie, tmp_path, monkeypatch):
    path = ft.save(fitted("xgboost"), tmp_path / "model.ft")
    ft.load(rewritten(path, lambda text: text))
    rewritten(path, XG_LIES[lie])
    monkeypatch.setattr(xgboost.XGBClassifier, "load_model", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ModelFileError):
        ft.load(path)


def test_texts_of_the_libraries_are_whole():
    for seed in range(3):
        X, y, _ = people(seed=seed)
        light = lightgbm.LGBMClassifier(**{**LIGHT, "num_leaves": 40, "min_child_samples": 2}).fit(X, y)
        check_lightgbm(clean_lightgbm(light.booster_.model_to_string()))
        exact = {"max_depth": 8, "gamma": 0.5, "tree_method": "exact", "enable_categorical": False}
        deep = xgboost.XGBClassifier(**{**XG, **exact})
        check_xgboost(deep.fit(X, y == "yes").get_booster().save_raw("json").decode())
    constant = lightgbm.LGBMClassifier(verbose=-1).fit(X[:10], y[:10])  # no split: trees of one leaf
    check_lightgbm(clean_lightgbm(constant.booster_.model_to_string()))
