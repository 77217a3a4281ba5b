"""The methods on one small split of German Credit, with a few updates."""

from __future__ import annotations

import numpy as np
import pytest

from fairtransport.linear import TransportClassifier
from fairtransport.metrics import strong_pairwise_disparity, wasserstein_disparity
from fairtransport.paper import _methods as methods
from fairtransport.paper._methods import METHODS, fit_method, measure, prepare, shuffled_floor
from fairtransport.paper.splits import communities_splits, german_splits
from fairtransport.transport.targets import resolve_target


@pytest.fixture(scope="module")
def problem():
    return prepare(german_splits(1)[0])


def test_problem_is_logistic_regression_with_a_fixed_target(problem):
    split = problem.split
    assert problem.model.get_params()["C"] == 1.0
    np.testing.assert_array_equal(problem.train_scores, problem.model.predict_proba(split.X_train)[:, 1])
    np.testing.assert_array_equal(problem.test_scores, problem.model.predict_proba(split.X_test)[:, 1])
    # Two groups: the barycenter lies half way, so that both distances are equal.
    halves = [problem.train_scores[rows] for rows in split.groups_train.rows]
    expected = resolve_target("barycenter", [methods.Sample.from_values(half) for half in halves], [1, 1])
    np.testing.assert_array_equal(problem.target.values, expected.values)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_brings_groups_together(problem, method):
    fit = fit_method(method, problem, quick=True)
    assert fit.method == method
    assert fit.scores.shape == (250,)
    assert fit.seconds > 0
    assert (fit.scores >= 0).all()
    assert (fit.scores <= 1).all()
    before = strong_pairwise_disparity(problem.test_scores, sensitive_features=problem.split.groups_test)
    after = strong_pairwise_disparity(fit.scores, sensitive_features=problem.split.groups_test)
    assert after == before if method == "LR" else after < 0.7 * before


def test_measures_to_the_target_of_the_method(problem):
    for method in ("DPP", "DPP (W2)"):
        fit = fit_method(method, problem)
        groups = problem.split.groups_test
        expected = wasserstein_disparity(fit.scores, sensitive_features=groups, target=fit.target)
        assert measure(fit, problem)["wasserstein_disparity"] == expected
    assert fit.target is not problem.target


def test_repair_of_overlapping_groups_makes_each_alike():
    problem = prepare(communities_splits(1, crossed=False)[0])
    fit = fit_method("DPP", problem)
    floor = shuffled_floor(fit, problem)
    assert measure(fit, problem)["strong_pairwise_disparity"] < 1.5 * floor["strong_pairwise_disparity"]


def test_ctrl_c_ends_the_table(problem, monkeypatch):
    def interrupted(self, *args, **kwargs):
        self.outcome_ = "interrupted after 7 of 20 updates; the best model so far is kept"

    monkeypatch.setattr(TransportClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_method("COT (anchor)", problem)
