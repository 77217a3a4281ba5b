"""The torch penalty against the NumPy penalties, finite differences and exact distances."""

import itertools

import numpy as np
import pytest
import torch
from tests.worlds import demographic_parity

from fairtransport import ContinuousDistance
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.groups import make_groups
from fairtransport.torch import TransportPenalty
from fairtransport.transport.dual import DualProblem, DualState, ascend, evaluate
from fairtransport.transport.fourier import FourierFeatures
from fairtransport.transport.regularizers import get_regularizer

KINDS = list(itertools.product(["l2", "entropy"], [True, False]))


def double(*args, **options):
    torch.set_default_dtype(torch.float64)
    try:
        return TransportPenalty(*args, **options)
    finally:
        torch.set_default_dtype(torch.float32)


def gradient(penalty, scores, codes, strata=None):
    s = torch.tensor(scores, requires_grad=True)
    layers = None if strata is None else torch.tensor(strata)
    value = penalty(s, torch.tensor(codes), layers)
    value.backward()
    return float(value.detach()), s.grad.numpy()


SOME = slice(None, None, 7)  # scores whose derivatives are compared with finite differences


def finite_differences(value, scores, step=1e-6):
    moves = step * np.eye(len(scores))[SOME]
    return np.array([(value(scores + move) - value(scores - move)) / (2 * step) for move in moves])


def numpy_problem(penalty):
    duals = penalty.transport
    features = FourierFeatures(duals.frequency.numpy(), duals.phase.numpy())
    assert duals.regularizer is get_regularizer(duals.regularizer.name)
    return DualProblem(features, duals.regularizer, duals.strength, duals.opposite, "all")


def evaluate_stored_potentials(penalty):
    """Evaluate without ascent, so that the value is that of the potentials as they are."""
    penalty.eval()
    penalty.transport.n_evaluation_steps = 0


@pytest.mark.parametrize("strata", [None, np.tile([0, 1], 20)])
@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_continuous_equals_the_numpy_dual(regularizer, opposite, strata):
    rng = np.random.default_rng(0)
    scores, codes = rng.random(40), np.r_[0, 1, 2, rng.integers(3, size=37)]
    n_strata = 1 if strata is None else 2
    target = rng.random(30) if strata is None else [rng.random(30), rng.random(30)]
    penalty = double(
        3,
        target=target,
        distance=ContinuousDistance(regularizer=regularizer, opposite_duals=opposite, strength=0.2),
        debias=False,
        n_strata=n_strata,
    )
    layers = None if strata is None else torch.tensor(strata)
    for _ in range(5):
        penalty(torch.tensor(scores), torch.tensor(codes), layers)
    evaluate_stored_potentials(penalty)
    problem, expected, slopes = numpy_problem(penalty), 0.0, np.zeros(40)
    for number, (stratum, group) in enumerate(itertools.product(range(n_strata), range(3))):
        inside = np.ones(40, bool) if strata is None else strata == stratum
        rows = np.flatnonzero(inside & (codes == group))
        state = DualState(penalty.transport.x[number].numpy(), penalty.transport.y[number].numpy())
        terms = evaluate(problem, state, scores[rows], target if strata is None else target[stratum])
        expected += inside.mean() * terms.value
        slopes[rows] = inside.mean() * terms.point_gradient
    value, grad = gradient(penalty, scores, codes, strata)
    assert value == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(grad, slopes, atol=1e-9)
    assert np.abs(grad).max() > 1e-3


@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_dual_ascent_equals_the_numpy_one(regularizer, opposite):
    # Groups of 64 rows are their own quantiles, so that both ascend on the same points.
    rng = np.random.default_rng(0)
    scores, codes, target = rng.random(128), np.repeat([0, 1], 64), rng.random(50)
    penalty = double(
        2,
        target=target,
        distance=ContinuousDistance(regularizer=regularizer, opposite_duals=opposite),
        debias=False,
        memory_size=0,
        n_dual_steps=2,
    )
    problem = numpy_problem(penalty)
    states = [DualState.zeros(problem) for _ in range(2)]
    for _ in range(4):
        penalty(torch.tensor(scores), torch.tensor(codes))
        for group, _ in itertools.product(range(2), range(penalty.transport.n_steps)):
            terms = evaluate(problem, states[group], scores[codes == group], target)
            states[group] = ascend(problem, states[group], terms, penalty.transport.step)
    for group in range(2):
        np.testing.assert_allclose(penalty.transport.x[group], states[group].x, atol=1e-12)
        np.testing.assert_allclose(penalty.transport.y[group], states[group].y, atol=1e-12)
    assert penalty.transport.x.abs().max() > 1e-3


@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_evaluation_solves_for_its_own_rows(regularizer, opposite):
    """Validation compares states of a network, so potentials that lag behind training must not decide."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 64)
    scores, reversed_ = np.concatenate((rng.beta(2, 5, 64), rng.beta(4, 3, 64))), np.repeat([0.9, 0.1], 64)
    distance = ContinuousDistance(regularizer=regularizer, opposite_duals=opposite)
    new, trained = (double(2, distance=distance, memory_size=0) for _ in range(2))
    for _ in range(100):
        trained(torch.tensor(reversed_), torch.tensor(codes))
    stored = trained.transport.x.clone()
    values = [gradient(penalty.eval(), scores, codes)[0] for penalty in (new, trained)]
    exact = ContinuousPenalty(numpy_problem(new), ridge=1e-6, n_slices=None, scale="score")
    expected = exact.value_and_gradient(scores, demographic_parity(make_groups(codes))).value
    assert values == pytest.approx([expected, expected], rel=0.2)
    assert torch.equal(trained.transport.x, stored)
    evaluate_stored_potentials(trained)
    if opposite:  # free potentials of reversed groups fit by their symmetry
        assert abs(gradient(trained, scores, codes)[0] - expected) > 1.5 * abs(values[1] - expected)


def test_dual_ascent_converges_to_the_optimum_of_the_estimators():
    rng = np.random.default_rng(0)
    scores, codes = np.concatenate((rng.beta(2, 5, 64), rng.beta(4, 3, 64))), np.repeat([0, 1], 64)
    penalty = double(2, memory_size=0, n_dual_steps=50)
    for _ in range(100):
        penalty(torch.tensor(scores), torch.tensor(codes))
    penalty.eval()
    exact = ContinuousPenalty(numpy_problem(penalty), ridge=1e-6, n_slices=None, scale="score")
    terms = exact.value_and_gradient(scores, demographic_parity(make_groups(codes)))
    value, grad = gradient(penalty, scores, codes)
    assert value == pytest.approx(terms.value, rel=0.01)
    assert np.abs(grad - terms.gradient).sum() < 0.1 * np.abs(terms.gradient).sum()


@pytest.mark.parametrize("strata", [None, np.tile([0, 1], 20)])
def test_discrete_equals_the_numpy_penalty(strata):
    rng = np.random.default_rng(1)
    scores, codes = np.round(rng.random(40), 1), rng.integers(3, size=40)  # with ties
    n_strata = 1 if strata is None else 2
    target = rng.random(17) if strata is None else [rng.random(17), rng.random(17)]
    penalty = double(3, distance="discrete", target=target, n_strata=n_strata).eval()
    exact = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")
    expected, slopes = 0.0, np.zeros(40)
    for stratum in range(n_strata):
        rows = np.arange(40) if strata is None else np.flatnonzero(strata == stratum)
        goal = target if strata is None else target[stratum]
        terms = exact.value_and_gradient(scores[rows], demographic_parity(make_groups(codes[rows]), target=goal))
        expected += len(rows) / 40 * terms.value
        slopes[rows] = len(rows) / 40 * terms.gradient
    value, grad = gradient(penalty, scores, codes, strata)
    assert value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(grad, slopes, atol=1e-12)


@pytest.mark.parametrize("debias", [True, False])
@pytest.mark.parametrize("target", ["each_other", "array"])
@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_continuous_gradient_agrees_with_finite_differences(regularizer, opposite, target, debias):
    # Groups of 32 and 64 rows have exactly 64 quantiles; then the gradient includes the motion of the other side.
    rng = np.random.default_rng(2)
    scores, codes = rng.random(128), np.repeat([0, 1, 2], [32, 32, 64])
    goal = rng.random(40) if target == "array" else target
    penalty = double(
        3,
        target=goal,
        distance=ContinuousDistance(regularizer=regularizer, opposite_duals=opposite, strength=0.2),
        debias=debias,
    )
    for _ in range(10):
        penalty(torch.tensor(scores), torch.tensor(codes))
    evaluate_stored_potentials(penalty)
    numeric = finite_differences(lambda s: float(penalty(torch.tensor(s), torch.tensor(codes))), scores)
    np.testing.assert_allclose(gradient(penalty, scores, codes)[1][SOME], numeric, atol=1e-6)


def test_discrete_gradient_agrees_with_finite_differences():
    rng = np.random.default_rng(3)
    scores, codes = rng.random(96), np.repeat([0, 1, 2], [32, 32, 32])
    penalty = double(3, distance="discrete").eval()
    numeric = finite_differences(lambda s: float(penalty(torch.tensor(s), torch.tensor(codes))), scores)
    np.testing.assert_allclose(gradient(penalty, scores, codes)[1][SOME], numeric, atol=1e-6)


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
@pytest.mark.parametrize("opposite", [True, False])
def test_equal_groups_have_distance_zero(regularizer, opposite):
    scores = np.tile(np.linspace(0.05, 0.95, 64), 2)
    codes = np.repeat([0, 1], 64)
    penalty = double(2, distance=ContinuousDistance(regularizer=regularizer, opposite_duals=opposite))
    for _ in range(60):
        penalty(torch.tensor(scores), torch.tensor(codes))
    value, grad = gradient(penalty.eval(), scores, codes)
    assert abs(value) < 1e-3
    assert np.abs(grad).sum() < 0.05  # it is 2 for groups without overlap


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_real_outputs_are_compared_in_units_of_four_standard_deviations(kind):
    """The same outputs in other units have the same penalty, and as probabilities would have it."""
    rng = np.random.default_rng(0)
    scores, codes = torch.tensor(rng.beta(2, 3, size=200)), torch.tensor(rng.integers(2, size=200))
    found = []
    for center, unit, scale in ((0.0, 1.0, None), (0.0, 1.0, (0.0, 0.25)), (5e6, 4000.0, (5e6, 1000.0))):
        outputs = (center + unit * scores).requires_grad_()
        penalty = TransportPenalty(2, distance=kind, scale=scale, memory_size=0).double()
        value = penalty(outputs, codes)
        value.backward()
        found.append((value.item(), unit * outputs.grad.numpy()))
    for value, gradient in found[1:]:
        assert value == pytest.approx(found[0][0], abs=1e-8)
        np.testing.assert_allclose(gradient, found[0][1], atol=1e-8)


def test_invalid_scales_and_outputs():
    with pytest.raises(TypeError, match="a mean and a standard deviation of y"):
        TransportPenalty(2, scale=3.0)
    with pytest.raises(ValueError, match="above 0"):
        TransportPenalty(2, scale=(0.0, 0.0))
    with pytest.raises(ValueError, match="ranges of y as strata"):
        TransportPenalty(2, scale=(0.0, 1.0), criterion="equalized_odds")
    with pytest.raises(ValueError, match="1 NaN values"):
        TransportPenalty(2, scale=(0.0, 1.0))(torch.tensor([float("nan"), 3.0]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"1 values outside .* infinite"):
        TransportPenalty(2, scale=(0.0, 1.0))(torch.tensor([float("inf"), 3.0]), torch.tensor([0, 1]))
