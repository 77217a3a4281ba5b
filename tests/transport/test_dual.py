import itertools

import numpy as np
import ot
import pytest
from scipy.optimize import minimize

from fairtransport.transport.dual import DualProblem, DualState, evaluate, solve_dual
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.regularizers import ENTROPY, L2, get_regularizer

KINDS = list(itertools.product(["l2", "entropy"], [True, False], ["matched", "all"]))


def make_problem(regularizer, opposite, pairs, *, strength=0.3, n_features=12, seed=0):
    features = draw_features(n_features, 0.1, np.random.default_rng(seed))
    return DualProblem(features, get_regularizer(regularizer), strength, opposite, pairs)


def random_state_of(problem, rng):
    x = rng.normal(0, 0.3, len(problem.features))
    return DualState(x, -x if problem.opposite else rng.normal(0, 0.3, len(x)))


@pytest.mark.parametrize(("regularizer", "opposite", "pairs"), KINDS)
def test_gradients_agree_with_finite_differences(regularizer, opposite, pairs):
    rng = np.random.default_rng(3)
    problem = make_problem(regularizer, opposite, pairs)
    state = random_state_of(problem, rng)
    x, y = rng.random(9), rng.random(9)
    terms = evaluate(problem, state, x, y)

    def value(dx=0.0, dy=0.0, points=x):
        moved = DualState(state.x + dx, -(state.x + dx) if opposite else state.y + dy)
        return evaluate(problem, moved, points, y).value

    step = 1e-6
    for k, d in enumerate(step * np.eye(len(problem.features))):
        assert terms.x_gradient[k] == pytest.approx((value(dx=d) - value(dx=-d)) / (2 * step), abs=1e-6)
        if not opposite:
            assert terms.y_gradient[k] == pytest.approx((value(dy=d) - value(dy=-d)) / (2 * step), abs=1e-6)
    for i, d in enumerate(step * np.eye(len(x))):
        slope = (value(points=x + d) - value(points=x - d)) / (2 * step)
        assert terms.point_gradient[i] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize(("regularizer", "opposite"), list(itertools.product(["l2", "entropy"], [True, False])))
def test_matched_pairs_are_unbiased(regularizer, opposite):
    # The mean over random pairings equals the full N x N sum.
    rng = np.random.default_rng(0)
    full = make_problem(regularizer, opposite, "all")
    matched = make_problem(regularizer, opposite, "matched")
    state = random_state_of(full, rng)
    x, y = rng.random(4), rng.random(4)
    expected = evaluate(full, state, x, y)
    seen = [evaluate(matched, state, x, y[list(p)]) for p in itertools.permutations(range(4))]
    assert np.mean([t.value for t in seen]) == pytest.approx(expected.value)
    np.testing.assert_allclose(np.mean([t.x_gradient for t in seen], axis=0), expected.x_gradient, atol=1e-12)
    np.testing.assert_allclose(np.mean([t.point_gradient for t in seen], axis=0), expected.point_gradient, atol=1e-12)


def exact_regularized(x, y, strength, regularizer):
    """Optimum of the primal on two finite samples, by POT (entropy) or by SLSQP (l2)."""
    cost = np.abs(np.subtract.outer(x, y))
    p, q = np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y))
    product = np.outer(p, q)
    if regularizer == "entropy":
        plan = ot.sinkhorn(p, q, cost, strength, stopThr=1e-12, numItermax=100_000)
        return float(np.sum(plan * cost) + strength * np.sum(plan * (np.log(plan / product) - 1)))
    rows = [np.kron(np.eye(len(x))[i], np.ones(len(y))) for i in range(len(x))]
    columns = [np.kron(np.ones(len(x)), np.eye(len(y))[j]) for j in range(len(y))]
    constraint = {"type": "eq", "fun": lambda g: np.r_[np.array(rows) @ g - p, np.array(columns[:-1]) @ g - q[:-1]]}
    flat, weight = cost.ravel(), product.ravel()
    done = minimize(
        lambda g: flat @ g + strength * np.sum(g**2 / weight),
        weight,
        jac=lambda g: flat + 2 * strength * g / weight,
        bounds=[(0, None)] * len(weight),
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return float(done.fun)


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
def test_value_is_the_regularized_distance(regularizer):
    # With enough features the five points are interpolated, so the stochastic dual reaches the primal optimum.
    x, y = np.array([0.0, 0.2, 0.35, 0.6, 0.9]), np.array([0.1, 0.3, 0.5, 0.8, 1.0])
    solution = solve_dual(
        x, y, strength=0.2, regularizer=regularizer, n_fourier_features=200, kernel_variance=0.02,
        n_updates=6_000, batch_size=20, pairs="all", random_state=0,
    )  # fmt: skip
    assert solution.value == pytest.approx(exact_regularized(x, y, 0.2, regularizer), abs=0.01)


def test_two_gaussians():
    # Figure 1: N(-1, 1) and N(1, 1) are at W1 = 2; the dual of the left one falls from left to right with slope -1.
    solution = solve_dual(
        lambda n, rng: rng.normal(-1, 1, n), lambda n, rng: rng.normal(1, 1, n),
        strength=0.05, opposite_duals=True, kernel_variance=4.0, n_updates=5_000, random_state=1,
    )  # fmt: skip
    assert solution.value == pytest.approx(2.0, abs=0.15)
    left, right = solution.x_dual(-1.0), solution.x_dual(1.0)
    assert (left - right) / 2 == pytest.approx(1.0, abs=0.1)
    np.testing.assert_array_equal(solution.y_dual([0.3]), -solution.x_dual([0.3]))
    assert solution.outcome == "ran all 5000 updates"


@pytest.mark.parametrize("strength", [1e-6, 1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
@pytest.mark.parametrize("opposite", [True, False])
def test_every_strength_stays_finite(strength, regularizer, opposite):
    rng = np.random.default_rng(0)
    solution = solve_dual(
        rng.beta(2, 5, 300), rng.beta(5, 2, 300), strength=strength, regularizer=regularizer,
        opposite_duals=opposite, kernel_variance=0.1, n_updates=400, batch_size=10, random_state=0,
    )  # fmt: skip
    assert np.isfinite(solution.value)
    assert np.isfinite(solution.x_dual(np.linspace(0, 1, 50))).all()
    assert solution.outcome == "ran all 400 updates"


def test_average_is_the_mean_of_the_second_half():
    rng = np.random.default_rng(0)
    x, y = rng.random(50), rng.random(50)
    settings = {"batch_size": 5, "n_fourier_features": 8, "random_state": 4}
    # The k-th iterate of a run is the last iterate of a run of k updates.
    iterates = [solve_dual(x, y, n_updates=k, average=False, **settings).state.x for k in range(1, 9)]
    averaged = solve_dual(x, y, n_updates=8, average=True, **settings).state.x
    np.testing.assert_allclose(averaged, np.mean(iterates[4:], axis=0), atol=1e-12)


def test_divergence_is_reported_and_finite():
    rng = np.random.default_rng(0)
    solution = solve_dual(rng.random(50), rng.random(50), dual_step=1e200, n_updates=200, random_state=0)
    assert solution.outcome.startswith("diverged")
    assert np.isfinite(solution.state.x).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strength": 0.0}, "strength"),
        ({"strength": np.nan}, "strength"),
        ({"regularizer": "none"}, "regularizer must be one of 'l2', 'entropy'"),
        ({"n_updates": 0}, "n_updates"),
        ({"batch_size": 0}, "batch_size"),
        ({"pairs": "some"}, "pairs"),
        ({"dual_step": -1.0}, "dual_step"),
        ({"x": [0.1, np.nan]}, "x has 1 NaN"),
        ({"y": []}, "y is empty"),
        ({"x": lambda n, rng: rng.random(n), "y": lambda n, rng: rng.random(n + 1)}, "equal size"),
    ],
)
def test_bad_input(change, words):
    with pytest.raises(ValueError, match=words):
        solve_dual(**{"x": [0.1, 0.2], "y": [0.3, 0.4], **change})


@pytest.mark.parametrize(
    ("regularizer", "phi"),
    [(L2, lambda x: x**2), (ENTROPY, lambda x: x * np.log(np.maximum(x, 1e-300)) - x)],
    ids=["l2", "entropy"],
)
def test_conjugate_is_the_legendre_transform(regularizer, phi):
    # phi*(v) = max over x >= 0 of v x - phi(x), here by search on a fine grid
    x = np.linspace(0, 60, 2_000_001)
    for v in (-3.0, -0.5, 0.0, 0.7, 2.0, 4.0):
        assert regularizer.alpha_and_conjugate(np.array(v))[1] == pytest.approx(np.max(v * x - phi(x)), abs=1e-6)


def test_l2_has_the_positive_part_and_entropy_never_overflows():
    assert [part[0] for part in L2.alpha_and_conjugate(np.array([-1.0]))] == [0.0, 0.0]
    assert np.isfinite(ENTROPY.alpha_and_conjugate(np.array([1e6]))).all()
