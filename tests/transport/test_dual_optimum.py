"""The solved dual problems, against a solver of scipy."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from fairtransport.criteria.penalty import DUAL_RIDGE
from fairtransport.transport.dual import DualProblem, DualState, evaluate
from fairtransport.transport.fourier import quadrature_features
from fairtransport.transport.kernels.dual_newton import (
    FREE,
    OPPOSITE,
    SAME,
    Newton,
    Pairs,
    Samples,
    newton_pairs,
    newton_pairs_plainly,
)
from fairtransport.transport.regularizers import get_regularizer

KINDS = list(itertools.product(["l2", "entropy"], [True, False]))
STRENGTHS = [0.05, 0.1, 1.0]


def make_problem(regularizer, opposite, *, strength=0.1, n_features=20):
    features = quadrature_features(n_features, 0.1)
    return DualProblem(features, get_regularizer(regularizer), strength, opposite, "all")


def samples(n_pairs=3, n=24, seed=0):
    rng = np.random.default_rng(seed)
    return np.sort(rng.beta(2, 5, (n_pairs, n))), np.sort(rng.beta(4, 3, (n_pairs, n)))


def solved(problem, x, y, *, same=False, start=None, masses=None, solve=newton_pairs):
    """Return values, coefficients and slopes; x and y are stacked as samples 0.. and n.. ."""
    points, n = np.concatenate((x, y)), len(x)
    masses = np.full(points.shape, 1.0 / points.shape[1]) if masses is None else masses
    psi, slope = problem.features.value_and_slope(points)
    width = len(problem.features) * (1 if same or problem.opposite else 2)
    c = np.zeros((n, width)) if start is None else start.copy()
    values, slopes = np.zeros(n), np.zeros_like(points)
    tie = SAME if same else OPPOSITE if problem.opposite else FREE
    newton = Newton(problem.strength, problem.regularizer.code, tie, DUAL_RIDGE, 1e-9, 60)
    pairs = Pairs(np.arange(n), np.arange(n, 2 * n), np.ones(n))
    solve(Samples(points, masses, psi, slope), pairs, newton, c, values, slopes)
    return values, c, slopes[:n], slopes[n:]


def objective(problem, x, y, same):
    """Return minus the dual objective of one pair and its gradient, by the formulas of the paper."""

    def value(c):
        half = len(problem.features)
        state = DualState(c, c) if same else DualState(c, -c) if problem.opposite else DualState(c[:half], c[half:])
        terms = evaluate(problem, state, x, y)
        gradient = terms.x_gradient if problem.opposite else np.r_[terms.x_gradient, terms.y_gradient]
        gradient = terms.x_gradient + terms.y_gradient if same else gradient
        return -float(terms.value) + 0.5 * DUAL_RIDGE * c @ c, -gradient + DUAL_RIDGE * c

    return value


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_the_optimum_is_the_one_that_scipy_finds(regularizer, opposite, strength):
    problem, (x, y) = make_problem(regularizer, opposite, strength=strength), samples(1)
    for other, same in ((y, False), *([] if opposite else [(x, True)])):  # and of a sample and itself
        minus = objective(problem, x[0], other[0], same)
        (value,), (c,), *_ = solved(problem, x, other, same=same)
        result = minimize(minus, np.zeros(c.size), jac=True, options={"maxiter": 5000, "gtol": 1e-10})
        assert value == pytest.approx(-result.fun, abs=1e-7)
        assert value >= -result.fun - 1e-10  # nothing is higher
        assert minus(c)[0] == pytest.approx(-value)


@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_slopes_are_derivatives_of_the_optimal_value(regularizer, opposite):
    problem, (x, y) = make_problem(regularizer, opposite), samples(1, n=12)
    (_, _, x_slopes, y_slopes), step = solved(problem, x, y), 1e-6
    for i in range(12):
        move = step * (np.arange(12) == i)
        up, down = (solved(problem, x + sign * move, y)[0][0] for sign in (1, -1))
        assert x_slopes[0, i] / 12 == pytest.approx((up - down) / (2 * step), abs=1e-6)
        up, down = (solved(problem, x, y + sign * move)[0][0] for sign in (1, -1))
        assert y_slopes[0, i] / 12 == pytest.approx((up - down) / (2 * step), abs=1e-6)


@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_masses_are_copies(regularizer, opposite):
    problem, (x, y) = make_problem(regularizer, opposite), samples(1, n=10)
    times = np.array([1, 2, 3, 1, 1, 2, 1, 4, 1, 0])  # 16 rows
    value, _, slopes, _ = solved(problem, x, y, masses=np.array([times / 16, np.full(10, 0.1)]))
    copied = solved(problem, np.repeat(x, 5 * times, axis=1), np.repeat(y, 8, axis=1))
    np.testing.assert_allclose(value, copied[0], atol=1e-9)
    np.testing.assert_allclose(np.repeat(slopes, 5 * times, axis=1), copied[2], atol=1e-6)


@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_the_start_does_not_matter_and_a_solution_is_kept(regularizer, opposite):
    problem, (x, y) = make_problem(regularizer, opposite), samples()
    values, c, *_ = solved(problem, x, y)
    np.testing.assert_array_equal(solved(problem, x, y, start=c)[1], c)
    np.testing.assert_allclose(solved(problem, x, y, start=c + 0.5)[0], values, atol=1e-9)


@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
@pytest.mark.parametrize("strength", [1e-3, 1e3])
def test_strengths_far_from_the_default_stay_finite(regularizer, opposite, strength):
    problem, (x, y) = make_problem(regularizer, opposite, strength=strength), samples()
    values, c, *slopes = solved(problem, x, y)
    for part in (values, c, *slopes):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize(("regularizer", "opposite"), KINDS)
def test_plain_and_compiled_solutions_are_one(regularizer, opposite, strength):
    problem, (x, y) = make_problem(regularizer, opposite, strength=strength), samples()
    masses = np.random.default_rng(1).dirichlet(np.ones(24), size=6)
    for same in (False, True)[: 1 if opposite else 2]:
        options = {"same": same, "masses": masses}
        compiled, plain = (solved(problem, x, y, **options, solve=one) for one in (newton_pairs, newton_pairs_plainly))
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-8)
