"""Training towards counterfactual fairness: the effect of unfair paths vanishes, that of others stays."""

from functools import partial

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.causal import (
    CounterfactuallyFairClassifier,
    CounterfactuallyFairRegressor,
    CounterfactualTransport,
    audit_counterfactual,
)

DOT = partial(ft.TransportClassifier, distance="discrete")


GRAPH = [("group", "m"), ("group", "w")]


def people(n=3000, seed=0):
    """Return a score of merit, two effects of the group, and outcomes of all three."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = pd.DataFrame({"merit": rng.normal(size=n)})
    X["m"], X["w"] = 1.0 * group + rng.normal(size=n), -0.7 * group + rng.normal(size=n)
    y = X["merit"] + 0.8 * X["m"] + 0.5 * X["w"] + rng.normal(size=n)
    return X, y.to_numpy(), group


def effects(model, X, group, read):
    table = X.assign(group=group)
    transport = CounterfactualTransport(GRAPH, sensitive="group", quantiles="linear")
    few = {"inference": Inference(n_bootstrap=0, n_permutations=0), "n_orders": 0, "threshold": None}
    audit = audit_counterfactual(lambda rows: read(model, rows[["merit", "m", "w"]]), table, transport, to=1, **few)
    return audit.groups[0].effects


def probabilities(model, rows):
    return model.predict_proba(rows)[:, 1]


@pytest.mark.parametrize("kind", [DOT, ft.TransportClassifier])
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_all_paths(frame, kind):
    X, y, group = people()
    transport = CounterfactualTransport(GRAPH, sensitive="group", quantiles="linear", cv=2)
    classifier = kind(parity_weight=3.0)
    model = CounterfactuallyFairClassifier(make_pipeline(StandardScaler(), classifier), transport)
    table = X if frame == "pandas" else pl.from_pandas(X)
    model.fit(table, (y > 0).astype(int), sensitive_features=group)
    plain = CounterfactuallyFairClassifier(ft.TransportClassifier(distance="discrete", parity_weight=0.0), transport)
    plain.fit(X, (y > 0).astype(int), sensitive_features=group)
    new, outcome, groups = people(seed=1)
    if frame == "pandas":
        before, after = (effects(one, new, groups, probabilities)["total"].mean for one in (plain, model))
        assert abs(after) < 0.02 < abs(before)
    accuracy = np.mean(model.predict(new if frame == "pandas" else pl.from_pandas(new)) == (outcome > 0))
    assert accuracy > 0.7


def test_an_unfair_path_vanishes_and_the_fair_one_stays():
    X, y, group = people(seed=2)
    transport = CounterfactualTransport(
        GRAPH, sensitive="group", unfair_edges=[("group", "m")], quantiles="linear", cv=2
    )
    model = CounterfactuallyFairRegressor(ft.TransportRegressor(distance="discrete", parity_weight=3.0), transport)
    model.fit(X, y, sensitive_features=group)
    found = effects(model, X, group, lambda one, rows: one.predict(rows))
    assert abs(found["through m"].mean) < 0.08  # .8 without
    # The least squared error without m is that of regression on the others, whose weights take over some of m's:
    # cov(m, w) = -.7 / 4 and var(w) = 1 + .49 / 4.
    weight = 0.5 - 0.8 * 0.175 / 1.1225
    assert found["through w"].mean == pytest.approx(-0.7 * weight, abs=0.04)  # 2 standard errors of the difference
    assert model.score(X, y) > 0.3


def test_three_groups_and_bad_input():
    X, y, _ = people(600, seed=3)
    group = np.array(["a", "b", "c"])[np.arange(600) % 3]
    X["m"] += np.arange(600) % 3
    transport = CounterfactualTransport(GRAPH, sensitive="group", quantiles="linear", cv=2)
    model = CounterfactuallyFairRegressor(ft.TransportRegressor(distance="discrete", parity_weight=1.0), transport)
    model.fit(X, y, sensitive_features=group)
    assert model.predict(X).shape == (600,)
    with pytest.raises(ValueError, match="has 599 rows"):
        model.fit(X, y, sensitive_features=group[1:])
    with pytest.raises(ValueError, match="y has 599 rows"):
        model.fit(X, y[1:], sensitive_features=group)


@pytest.mark.models
def test_boosted_trees_compare_people_with_their_counterfactuals():
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1)
    X, y, group = people(seed=6)
    transport = CounterfactualTransport(GRAPH, sensitive="group", quantiles="linear", cv=2)
    plain, fair = (
        CounterfactuallyFairClassifier(
            TransportBoostingClassifier(trees, parity_weight=weight, n_iter_no_change=None, random_state=0), transport
        ).fit(X, (y > 0).astype(int), sensitive_features=group)
        for weight in (0.0, 3.0)
    )
    new, outcome, groups = people(seed=7)
    before, after = (effects(one, new, groups, probabilities)["total"] for one in (plain, fair))
    assert abs(after.mean) < 0.4 * abs(before.mean)
    assert np.mean(fair.predict(new) == (outcome > 0)) > 0.65


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_the_individual_term_of_a_linear_model_is_the_analytic_one(weight):
    """Least squares with the mean squared difference between people and their counterfactuals is a linear system."""
    X, y, group = people()
    transport = CounterfactualTransport(GRAPH, sensitive="group", quantiles="linear", cv=2)
    model = CounterfactuallyFairRegressor(
        ft.TransportRegressor(distance="discrete", parity_weight=0.0), transport, individual_weight=weight
    )
    model.fit(X, y, sensitive_features=group)
    assert 0 < model.n_iter_ < 20
    frame, moved = X.assign(group=group), X.to_numpy(copy=True)
    for code in (0, 1):
        rows = group != code
        moved[rows] = transport.fit_transform(frame, to=code).loc[rows, X.columns]
    design, shift = X.to_numpy() - X.to_numpy().mean(axis=0), moved - X.to_numpy()
    expected = np.linalg.solve(design.T @ design + weight * shift.T @ shift, design.T @ (y - y.mean()))
    np.testing.assert_allclose(np.ravel(model.estimator_.coef_), expected, atol=0.02)
    assert abs(expected[1]) < 0.75  # 0.8 without the term


@pytest.mark.parametrize(
    "estimator",
    [
        ft.TransportClassifier(parity_weight=0.0),
        pytest.param(
            TransportBoostingClassifier(
                lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1), parity_weight=0.0
            ),
            marks=pytest.mark.trust,
        ),
    ],
)
def test_the_individual_term_draws_single_scores_together(estimator):
    X, y, group = people()
    transport = CounterfactualTransport(GRAPH, sensitive="group", quantiles="linear", cv=2)
    new, _, groups = people(seed=1)
    distances = []
    for weight in (0.0, 1.0, 5.0):
        model = CounterfactuallyFairClassifier(estimator, transport, individual_weight=weight)
        model.fit(X, (y > 0).astype(int), sensitive_features=group)
        distances.append(effects(model, new, groups, probabilities)["total"].individual)
    assert distances[2] < 0.8 * distances[1] < 0.64 * distances[0]
