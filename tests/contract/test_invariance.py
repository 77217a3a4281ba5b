"""Everything that scores gives the same scores for the same rows, however they are written down."""

import inspect
import re
import warnings

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_regressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from tests.worlds import people

import fairtransport as ft

pytestmark = [pytest.mark.trust, pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")]

TREES = {"n_estimators": 10, "num_leaves": 4, "verbose": -1, "n_jobs": 1, "random_state": 0}
LGBM, LOGISTIC = lightgbm.LGBMClassifier(**TREES), LogisticRegression()
ODDS = ft.QuantileRepair(criterion="equalized_odds")
ESTIMATORS = {
    "linear": ft.TransportClassifier(),
    "linear, discrete": ft.TransportClassifier(distance="discrete", parity_weight=1.0),
    "own weights": ft.TransportClassifier(parity_weight=1.0, group_specific=True),
    "linear regressor": ft.TransportRegressor(),
    "repaired": ft.QuantileRepairClassifier(LOGISTIC),
    "repaired, forest": ft.QuantileRepairClassifier(RandomForestClassifier(5, random_state=0)),
    "repaired, boosted": ft.QuantileRepairClassifier(LGBM),
    "repaired for equal odds": ft.QuantileRepairClassifier(LOGISTIC, ODDS),
    "repaired regressor": ft.QuantileRepairRegressor(Ridge()),
    "repaired regressor, boosted": ft.QuantileRepairRegressor(lightgbm.LGBMRegressor(**TREES)),
    "blind": ft.BlindRepairClassifier(LOGISTIC, LOGISTIC, cv=2),
    "blind, boosted": ft.BlindRepairClassifier(LGBM, LOGISTIC, cv=2),
    "blind, neighbours": ft.BlindRepairClassifier(KNeighborsClassifier(), LOGISTIC, cv=2),
    "blind regressor": ft.BlindRepairRegressor(Ridge(), LOGISTIC, cv=2),
    "boosted": ft.TransportBoostingClassifier(LGBM, parity_weight=0.3, random_state=0),
    "boosted regressor": ft.TransportBoostingRegressor(
        lightgbm.LGBMRegressor(**TREES), parity_weight=0.3, random_state=0
    ),
}
NAMES = ["income", "age", "debts"]
every = pytest.mark.parametrize("name", ESTIMATORS)
_FITTED = {}


def rows(estimator, n=400):
    return people(n, groups=("a", "b", "c"), real=is_regressor(estimator), names=NAMES)


def fitted(name):
    if name not in _FITTED:
        X, y, group = rows(ESTIMATORS[name])
        _FITTED[name] = clone(ESTIMATORS[name]).fit(X, y, sensitive_features=group)
    return _FITTED[name]


def scores(model, X, group):
    method = model.predict if is_regressor(model) else model.predict_proba
    known = {"sensitive_features": group} if "sensitive_features" in inspect.signature(method).parameters else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # arrays are meant
        found = method(X, **known)
    return found if is_regressor(model) else found[:, 1]


def as_arrow(X):
    return X.convert_dtypes(dtype_backend="pyarrow")


WRITTEN = {
    "another index": lambda X, g: (X.set_axis(np.arange(len(X))[::-1] * 7), g),
    "an array": lambda X, g: (X.to_numpy(), g),
    "an array by columns": lambda X, g: (np.asfortranarray(X.to_numpy()), g),
    "nullable": lambda X, g: (X.convert_dtypes(), pd.Series(g, dtype="string")),
    "Arrow types": lambda X, g: (as_arrow(X), as_arrow(pd.DataFrame({"g": g}))["g"]),
    "polars": lambda X, g: (pl.from_pandas(X), pl.Series("g", g)),
    "categories": lambda X, g: (X, pd.Categorical(g)),
    "groups as a table": lambda X, g: (X, pd.DataFrame({"g": g})),
    "objects": lambda X, g: (X, g.astype(object)),
}


@every
@pytest.mark.parametrize("way", WRITTEN)
def test_the_same_rows_have_the_same_scores_however_they_are_written(name, way):
    model, (X, _, group) = fitted(name), rows(ESTIMATORS[name])
    np.testing.assert_allclose(scores(model, *WRITTEN[way](X, group)), scores(model, X, group), atol=1e-12)


@every
@pytest.mark.parametrize("way", ["another index", "nullable", "Arrow types", "polars"])
def test_the_same_rows_give_the_same_model(name, way):
    X, y, group = rows(ESTIMATORS[name])
    again = clone(ESTIMATORS[name])
    written, groups = WRITTEN[way](X, group)
    again.fit(written, y, sensitive_features=groups)
    np.testing.assert_allclose(scores(again, written, groups), scores(fitted(name), X, group), atol=1e-9)


@every
def test_columns_in_another_order_are_refused_or_found_by_name(name):
    model, (X, _, group) = fitted(name), rows(ESTIMATORS[name])
    for other in (X[NAMES[::-1]], pl.from_pandas(X[NAMES[::-1]])):
        try:
            found = scores(model, other, group)
        except ValueError as error:
            assert re.search(r"order|name", str(error))  # noqa: PT017
        else:
            np.testing.assert_allclose(found, scores(model, X, group), atol=1e-12)


@every
def test_rows_are_scored_one_by_one_and_in_any_order(name):
    model, (X, _, group) = fitted(name), rows(ESTIMATORS[name])
    whole, order = scores(model, X, group), np.random.default_rng(1).permutation(len(X))
    np.testing.assert_allclose(scores(model, X.iloc[order], group[order]), whole[order], atol=1e-12)
    alone = [scores(model, X.iloc[[row]], group[[row]])[0] for row in range(5)]
    np.testing.assert_allclose(alone, whole[:5], atol=1e-9)


@every
def test_names_of_groups_do_not_matter(name):
    X, y, group = rows(ESTIMATORS[name])
    renamed = np.select([group == "a", group == "b"], ["z", "y"], "x")
    other = clone(ESTIMATORS[name]).fit(X, y, sensitive_features=renamed)
    near = 0.01 if "blind" in name else 1e-6  # classes in another order: the model of groups stops elsewhere
    np.testing.assert_allclose(scores(other, X, renamed), scores(fitted(name), X, group), atol=near)


def copied(estimator, seed=0):
    """Rows with whole weights, and the same rows as copies."""
    X, y, group = rows(estimator)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    again = clone(estimator).fit(X.iloc[copies], y[copies], sensitive_features=group[copies])
    weighed = clone(estimator).fit(X, y, sensitive_features=group, sample_weight=weights.astype(float))
    return X, group, again, weighed


RANDOM = ft.QuantileRepair(criterion="equalized_odds", randomize=True)
WEIGHED = {name: one for name, one in ESTIMATORS.items() if not re.search("boosted|forest|neighbours", name)} | {
    "repaired pipeline": ft.QuantileRepairClassifier(make_pipeline(LOGISTIC)),
    "equal opportunity": ft.QuantileRepairClassifier(LOGISTIC, ft.QuantileRepair(criterion="equal_opportunity")),
    "equal odds, drawn": ft.QuantileRepairClassifier(LOGISTIC, RANDOM),
    "blind for equal odds": ft.BlindRepairClassifier(LOGISTIC, LOGISTIC, ft.repair.BlindRepair("equalized_odds"), cv=2),
    "blind with a limit": ft.BlindRepairRegressor(Ridge(), LOGISTIC, ft.repair.BlindRepair(max_disparity=0.2), cv=2),
}


@pytest.mark.parametrize("name", WEIGHED)
def test_weight_k_is_k_copies(name):
    """Trees and forests count rows in their leaves and draw them, so that copies make other trees."""
    X, group, again, weighed = copied(WEIGHED[name])
    moved = np.abs(scores(weighed, X, group) - scores(again, X, group))
    if "blind" in name:  # the dual is solved to a tolerance, and a row between two minima of the map may take either
        assert np.quantile(moved, 0.99) < 1e-3
    assert moved.max() < (0.1 if "blind" in name else 1e-6)


@pytest.mark.parametrize("name", [*WEIGHED, "repaired, boosted", "blind, boosted"])
def test_the_order_of_rows_gives_the_same_model(name):
    estimator = (ESTIMATORS | WEIGHED)[name]
    X, y, group = rows(estimator)
    order = np.random.default_rng(2).permutation(len(y))
    first = clone(estimator).fit(X, y, sensitive_features=group)
    other = clone(estimator).fit(X.iloc[order], y[order], sensitive_features=group[order])
    np.testing.assert_allclose(scores(other, X, group), scores(first, X, group), atol=1e-6)


def test_amounts_of_nested_repairs_act_or_are_refused():
    X, y, group = rows(LGBM)
    boosted = ft.TransportBoostingClassifier(LGBM, parity_weight=0.1, repair=ft.QuantileRepair(), random_state=0)
    boosted.fit(X, y, sensitive_features=group)
    full = scores(boosted, X, group)
    half, none = (scores(boosted.set_params(repair__amount=amount), X, group) for amount in (0.5, 0.0))
    np.testing.assert_allclose(half, (full + none) / 2, atol=1e-12)
    repaired = ft.QuantileRepairClassifier(LOGISTIC, ft.QuantileRepair()).fit(X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="amount of QuantileRepairClassifier is its own"):
        scores(repaired.set_params(repair__amount=0.5), X, group)
    with pytest.raises(ValueError, match="is its own"):
        repaired.fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "neighbours" not in name])  # files hold no rows
def test_saved_and_loaded(name, tmp_path):
    model, (X, _, group) = fitted(name), rows(ESTIMATORS[name])
    ft.save(model, tmp_path / "model.ft", people_per_point=1)
    again = ft.load(tmp_path / "model.ft")
    np.testing.assert_array_equal(scores(again, X, group), scores(model, X, group))
    with pytest.raises(ValueError, match=r"order|name"):
        scores(again, X[NAMES[::-1]], group)
