import itertools

import numpy as np
import pytest

from fairtransport.groups import make_groups
from fairtransport.penalties import ContinuousPenalty, DiscretePenalty
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.line import wasserstein
from fairtransport.transport.regularizers import get_regularizer


def problem(regularizer="l2", *, opposite=True, pairs="matched", strength=0.2):
    features = draw_features(20, 0.1, np.random.default_rng(0))
    return DualProblem(features, get_regularizer(regularizer), strength, opposite, pairs)


def finite_differences(value, scores, step=1e-7):
    return np.array([(value(scores + step * e) - value(scores - step * e)) / (2 * step) for e in np.eye(len(scores))])


@pytest.mark.parametrize("strata", [None, np.tile([0, 1], 15)])
def test_discrete_value_and_gradient(strata):
    rng = np.random.default_rng(1)
    scores, groups = rng.random(30), make_groups(rng.integers(3, size=30))
    target = rng.random(17) if strata is None else [rng.random(17), rng.random(9)]
    penalty = DiscretePenalty(target)
    terms = penalty.value_and_gradient(scores, groups, strata=strata)
    expected = 0.0
    for stratum, t in enumerate(penalty.targets):
        inside = np.arange(30) if strata is None else np.flatnonzero(strata == stratum)
        share = len(inside) / 30
        expected += share * sum(wasserstein(scores[np.intersect1d(r, inside)], t) for r in groups.rows)
    assert terms.value == pytest.approx(expected)
    numeric = finite_differences(lambda s: penalty.value_and_gradient(s, groups, strata=strata).value, scores)
    np.testing.assert_allclose(terms.gradient, numeric, atol=1e-5)


@pytest.mark.parametrize(
    ("regularizer", "opposite", "pairs"),
    list(itertools.product(["l2", "entropy"], [True, False], ["matched", "all"])),
)
def test_continuous_gradient_agrees_with_finite_differences(regularizer, opposite, pairs):
    rng = np.random.default_rng(2)
    scores, groups = rng.random(24), make_groups(rng.integers(2, size=24))
    penalty = ContinuousPenalty(rng.random(50), 2, problem(regularizer, opposite=opposite, pairs=pairs), random_state=0)
    for _ in range(30):
        penalty.ascend(scores, groups)

    def value(s):
        penalty._rng = np.random.default_rng(7)  # the same target draws each time
        return penalty.value_and_gradient(s, groups).value

    numeric = finite_differences(value, scores)
    penalty._rng = np.random.default_rng(7)
    np.testing.assert_allclose(penalty.value_and_gradient(scores, groups).gradient, numeric, atol=1e-5)


def test_continuous_follows_discrete():
    # With little regularization and duals that have settled, both say about the same distance.
    rng = np.random.default_rng(0)
    scores, groups = np.r_[rng.beta(2, 6, 500), rng.beta(6, 2, 500)], make_groups(np.repeat([0, 1], 500))
    target = rng.beta(2, 6, 1000)
    exact = DiscretePenalty(target).value_and_gradient(scores, groups)
    penalty = ContinuousPenalty(target, 2, problem(strength=0.02), random_state=0)
    for _ in range(1500):
        penalty.ascend(scores, groups)
    soft = penalty.value_and_gradient(scores, groups)
    np.testing.assert_allclose(soft.by_group, exact.by_group, atol=0.03)


def test_absent_group_is_passed_over():
    groups = make_groups(["a", "a", "b"]).select([0, 1])
    terms = DiscretePenalty([0.5]).value_and_gradient([0.2, 0.4], groups)
    assert np.isnan(terms.by_group[0, 1])
    assert terms.value == pytest.approx(0.2)
    soft = ContinuousPenalty([0.5], 2, problem())
    soft.ascend([0.2, 0.4], groups)
    assert np.isnan(soft.value_and_gradient([0.2, 0.4], groups).by_group[0, 1])


def test_bad_input():
    groups = make_groups(["a", "b"])
    penalty = DiscretePenalty([0.5])
    with pytest.raises(ValueError, match="outside"):
        penalty.value_and_gradient([0.5, 1.5], groups)
    with pytest.raises(ValueError, match="3 scores"):
        penalty.value_and_gradient([0.5, 0.5, 0.1], groups)
    with pytest.raises(ValueError, match="strata"):
        penalty.value_and_gradient([0.5, 0.5], groups, strata=[0, 1])
    with pytest.raises(ValueError, match="strata= is needed"):
        DiscretePenalty([[0.5], [0.6]]).value_and_gradient([0.5, 0.5], groups)
    with pytest.raises(ValueError, match="made for 3 groups"):
        ContinuousPenalty([0.5], 3, problem()).ascend([0.5, 0.5], groups)
