"""The methods on one small split of German Credit with a few updates, their training curves, and published figures."""

import numpy as np
import pytest
from tests.worlds import people

from fairtransport.linear import SgdSettings, TransportClassifier
from fairtransport.metrics import error_rate, strong_pairwise_disparity, wasserstein_disparity
from fairtransport.paper import _methods as methods
from fairtransport.paper._methods import (
    METHODS,
    METRICS,
    PUBLISHED,
    Evaluator,
    fit_method,
    measure,
    prepare,
    published_value,
    record_training,
    shuffled_floor,
)
from fairtransport.paper.finding import Stop
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


def test_sums_of_the_printed_columns():
    # Added up by hand from Table 1, so that one mistyped digit shows.
    sums = {
        dataset: [round(sum(m[metric] for m in methods.values()), 3) for metric in METRICS]
        for dataset, methods in PUBLISHED.items()
    }
    assert sums == {
        "Adult": [0.662, 0.388, 0.486, 0.947],
        "German": [1.020, 0.212, 0.173, 0.173],
        "Communities": [1.094, 2.221, 1.941, 10.246],
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("Adult", "COT (paper)", "SPDD"), 0.044),
        (("Communities (each)", "DPP (W2)", "Wass1"), 0.356),
        (("German", "DOT", "Err-.5"), 0.282),
        (("German", "EquiPy", "Err-.5"), None),
        (("Compas", "DOT", "Err-.5"), None),
        (("Adult", "DOT", "AUC"), None),
    ],
)
def test_value_of_a_variant(asked, expected):
    assert published_value(*asked) == expected


def test_records_measure_means_of_iterates():
    X, y, groups = people(600)
    settings = SgdSettings(parameter_step=0.05, batch_size=20, n_updates=40, random_state=0)
    model = TransportClassifier(solver=settings)
    trainer = model.make_trainer(X, y, sensitive_features=groups)
    evaluator = Evaluator.build(X, y, groups, model.target_)
    curve = record_training(trainer, evaluator, n_updates=40, every=10, stop=Stop())
    np.testing.assert_array_equal(curve["update"], [0, 10, 20, 30, 40])
    start = model.initial_estimator_.predict_proba(X)[:, 1]
    wass1 = wasserstein_disparity(start, sensitive_features=groups, target=model.target_)
    assert curve["wass1"][0] == pytest.approx(wass1)
    assert curve["error"][0] == pytest.approx(error_rate(y, start))
    # The final model is the mean of the second half: what the estimator returns.
    fitted = TransportClassifier(solver=settings).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(curve["final_theta"][:, :-1], fitted.coef_, atol=1e-12)
    assert curve["final_error"] == pytest.approx(error_rate(y, fitted.predict_proba(X)[:, 1]))
