"""Many groups: beyond 20 each is compared with everyone, at a cost that is linear in their number."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from tests.worlds import many_groups

from fairtransport import TransportClassifier
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import MAX_PAIRED_GROUPS, pairs_of_groups
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.linear import SgdSettings
from fairtransport.linear.online import _penalty_at
from fairtransport.linear.sketches import POINTS
from fairtransport.metrics import rank_disparity, strong_pairwise_disparity

from .tables import DOT

pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")

CLASSES = (TransportClassifier, DOT)
SGD = pytest.param(SgdSettings(n_updates=300, random_state=0), marks=pytest.mark.trust, id="sgd")


def mean_rank_disparity(scores, group):
    n_groups = len(np.unique(group))
    return rank_disparity(scores, sensitive_features=group) / (n_groups * (n_groups - 1) / 2)


@pytest.fixture
def n_compared(monkeypatch):
    """Record the number of pairs in each evaluation of a penalty."""
    counts = []
    for penalty in (ContinuousPenalty, DiscretePenalty):
        compare = penalty._compare_slices

        def counting(self, table, pairs, weights, compare=compare):
            counts.append(len(pairs))
            return compare(self, table, pairs, weights)

        monkeypatch.setattr(penalty, "_compare_slices", counting)
    return counts


@pytest.mark.parametrize("method", CLASSES)
def test_the_number_of_pairs_is_linear(n_compared, method):
    for n_groups in (MAX_PAIRED_GROUPS + 1, 60, 120):
        X, y, group = many_groups(n_groups, 1500)
        model = method(parity_weight=1.0, max_iter=20).fit(X, y, sensitive_features=group)
        assert 0 < max(n_compared) <= n_groups
        n_compared.clear()
        model.partial_fit(X[:100], sensitive_features=group[:100])
        assert max(n_compared) == n_groups
        n_compared.clear()


@pytest.mark.parametrize("solver", ["lbfgs", SGD])
@pytest.mark.parametrize("method", CLASSES)
def test_two_hundred_groups_some_of_them_tiny(method, solver):
    X, y, group = many_groups(200, 4000, n_tiny=40)
    model = method(parity_weight=2.0, solver=solver).fit(X, y, sensitive_features=group)
    initial = model.initial_estimator_.predict_proba(X)[:, 1]
    scores = model.predict_proba(X)[:, 1]
    assert np.isfinite(scores).all()
    large = group < 160
    before, after = (strong_pairwise_disparity(s[large], sensitive_features=group[large]) for s in (initial, scores))
    assert after < 0.98 * before
    assert model.compared_with_ == ("everyone" if solver == "lbfgs" else "target")


def test_what_groups_are_compared_with():
    X, y, group = many_groups(3)
    assert DOT(parity_weight=1.0).fit(X, y, sensitive_features=group).compared_with_ == "each_other"
    model = DOT(parity_weight=1.0, target="pooled").fit(X, y, sensitive_features=group)
    assert model.compared_with_ == "target"


@pytest.mark.parametrize("method", [DOT, pytest.param(CLASSES[0], marks=pytest.mark.trust)])
@pytest.mark.parametrize("n_groups", [18, pytest.param(22, marks=pytest.mark.trust)])
def test_both_comparisons_have_the_same_trade_off(monkeypatch, method, n_groups):
    """So that the twenty-first group does not change the model: log-loss at equal disparity, over the whole curve."""
    X, y, group = many_groups(n_groups, 3000, seed=n_groups)
    curves = []
    for most in (10**6, 0):
        monkeypatch.setattr("fairtransport.criteria.criterion.MAX_PAIRED_GROUPS", most)
        points = []
        for weight in (0.3, 1.0, 1.3, 1.7, 2.5):
            scores = method(parity_weight=weight).fit(X, y, sensitive_features=group).predict_proba(X)[:, 1]
            points.append((mean_rank_disparity(scores, group), log_loss(y, scores)))
        curves.append(np.array(sorted(points)))
    pairs, everyone = curves
    disparity = np.linspace(max(pairs[0, 0], everyone[0, 0]), min(pairs[-1, 0], everyone[-1, 0]), 30)
    difference = np.interp(disparity, *everyone.T) - np.interp(disparity, *pairs.T)
    assert disparity[0] < 0.7 * disparity[-1]
    assert abs(difference.mean()) < 0.01  # of .3 between the ends


@pytest.mark.parametrize("method", CLASSES)
def test_points_as_rows_are_the_sketches(method):
    """Everyone is a cell of points; the pairs of groups have the same value and gradient in both representations."""
    X, y, group = many_groups(6)
    model = method(parity_weight=1.0).fit(X, y, sensitive_features=group)
    state = model.online_state()
    memory, theta = state.memory, state.theta
    penalty = state.rule.penalty()
    rows = np.arange(6 * POINTS)
    weights = np.repeat(memory.sketches.weights, POINTS)
    as_rows = Comparisons.of_cells(
        rows.size, list(rows.reshape(6, POINTS)), pairs_of_groups(6), row_weights=weights / weights.sum()
    )
    value, gradient = _penalty_at(memory, theta, state.rule.comparisons(memory), penalty)
    again, gradient_again = _penalty_at(memory, theta, as_rows, penalty)
    assert again == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(gradient_again, gradient, rtol=1e-6, atol=1e-9)
