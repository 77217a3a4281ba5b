"""Rows of groups that were not seen in ``fit``, and rows without a group: refused, or predicted as stated.

A model file may meet both in production. What ``unknown_group="pooled"`` promises is checked against its definition:
scores that are distributed as those of everyone get the distribution of the target.
"""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport import QuantileRepair
from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor

N = 900
RNG = np.random.default_rng(0)
G = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
X = RNG.normal(size=(N, 3)) + np.array([{"a": 0, "b": 0.8, "c": -0.5}[g] for g in G])[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=N) > 0).astype(int)
PAY = X.sum(axis=1) + RNG.normal(size=N)
NEW = np.array(["a", "new", None, "b"], dtype=object)
AWARE = {"parity_weight": 0.5, "group_specific": True}


def boosting(kind, library, **options):
    lightgbm = pytest.importorskip("lightgbm")
    trees = getattr(lightgbm, library)(n_estimators=5, verbose=-1, n_jobs=1)
    return kind(trees, parity_weight=0.02, repair=QuantileRepair(), random_state=0, **options)


MODELS = {
    "cot": lambda: ft.TransportClassifier(**AWARE).fit(X, Y, sensitive_features=G),
    "dot": lambda: ft.TransportRegressor(distance="discrete", **AWARE).fit(X, PAY, sensitive_features=G),
    "pipeline": lambda: make_pipeline(StandardScaler(), ft.TransportClassifier(**AWARE)).fit(
        X, Y, transportclassifier__sensitive_features=G
    ),
    "repair": lambda: ft.QuantileRepairClassifier(LogisticRegression()).fit(X, Y, sensitive_features=G),
    "regressor": lambda: ft.QuantileRepairRegressor(LinearRegression()).fit(X, PAY, sensitive_features=G),
    "trees": lambda: boosting(TransportBoostingClassifier, "LGBMClassifier").fit(X, Y, sensitive_features=G),
    "tree regressor": lambda: boosting(TransportBoostingRegressor, "LGBMRegressor").fit(X, PAY, sensitive_features=G),
}


def scores(model, rows, groups, **options):
    predict = getattr(model, "predict_proba", None)
    if predict is None:
        return model.predict(rows, sensitive_features=groups, **options)
    labels = model.predict(rows, sensitive_features=groups, **options)
    positive = predict(rows, sensitive_features=groups, **options)[:, 1]
    np.testing.assert_array_equal(labels, (positive > 0.5).astype(int))
    return positive


@pytest.mark.parametrize("name", MODELS)
def test_one_argument_decides_on_every_model_that_needs_groups(name):
    model = MODELS[name]()
    with pytest.raises(ValueError, match=r"known groups|missing values"):
        scores(model, X[:4], NEW)
    for policy in ("pooled", "common"):
        found = scores(model, X[:4], NEW, unknown_group=policy)
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[[0, 3]], scores(model, X[[0, 3]], NEW[[0, 3]]))  # the others are untouched
        alone = [scores(model, X[k : k + 1], NEW[k : k + 1], unknown_group=policy)[0] for k in range(4)]
        np.testing.assert_allclose(found, alone, rtol=1e-12)
    largest = scores(model, X[:4], np.array(["a", "a", "a", "b"]))
    np.testing.assert_array_equal(scores(model, X[:4], NEW, unknown_group="common"), largest)
    with pytest.raises(ValueError, match="unknown_group must be"):
        scores(model, X[:4], NEW, unknown_group="drop")


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_pooled_scores_of_everyone_have_the_distribution_of_the_target(criterion):
    values = 1 / (1 + np.exp(-X.sum(axis=1)))
    repair = ft.QuantileRepair(criterion=criterion).fit(values, Y, sensitive_features=G)
    rows = Y == 1 if criterion == "equal_opportunity" else np.ones(N, dtype=bool)
    nobody = np.full(N, None)
    repaired = repair.transform(values, sensitive_features=nobody, unknown_group="pooled")
    levels = (np.arange(rows.sum()) + 0.5) / rows.sum()
    target = np.quantile(repair.target_, levels)
    assert np.abs(np.sort(repaired[rows]) - target).mean() < 2e-3
    order = np.argsort(values)
    assert (np.diff(repaired[order]) >= 0).all()  # nobody is overtaken


def test_the_map_of_everyone_is_the_one_that_small_groups_get():
    values, groups = RNG.uniform(size=N), G.astype(object)
    groups[:3] = "few"
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(small="drop")).fit(values, sensitive_features=groups)
    assert repair.small_groups_ == ("few",)
    found = repair.transform(values, sensitive_features=np.full(N, "new"), unknown_group="pooled")
    as_small = repair.transform(values, sensitive_features=np.full(N, "few"))
    assert np.abs(found - as_small).mean() < 2e-3  # it is computed without the three rows


@pytest.mark.parametrize("options", [{"criterion": "equalized_odds"}, {"criterion": "demographic_parity"}])
def test_elsewhere_everyone_pooled_is_the_mean_over_groups(options):
    values = 1 / (1 + np.exp(-X.sum(axis=1)))
    strata = None if options["criterion"] == "equalized_odds" else RNG.choice(["u", "v"], N)
    repair = ft.QuantileRepair(**options).fit(values, Y, sensitive_features=G, strata=strata)
    found = repair.transform(values, sensitive_features=np.full(N, "new"), strata=strata, unknown_group="pooled")
    parts = [repair.transform(values, sensitive_features=np.full(N, g), strata=strata) for g in "abc"]
    np.testing.assert_allclose(found, np.average(parts, axis=0, weights=[np.mean(g == G) for g in "abc"]))


def test_linear_models_use_the_weights_that_all_groups_share():
    model = MODELS["cot"]()
    found = model.decision_function(X, sensitive_features=np.full(N, "new"), unknown_group="pooled")
    np.testing.assert_allclose(found, X @ model.common_coef_ + model.common_intercept_)
