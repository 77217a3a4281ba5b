"""The compiled parts of training on pictures against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from fairtransport.estimators.problem import PackedRows
from fairtransport.transport.dual import DualProblem, DualState, evaluate
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import hash_index
from fairtransport.transport.regularizers import get_regularizer
from fairtransport.transport.slopes import FREE, OPPOSITE, SAME, add_slopes, climb, follow_slopes, scores_of

RNG = np.random.default_rng(0)
POINTS_X, POINTS_Y = np.sort(RNG.beta(2, 5, 20)), np.sort(RNG.beta(3, 3, 31))
NOTHING = np.zeros(0, np.uint64), np.zeros(0, np.int64)


def make_problem(regularizer, *, opposite, strength=0.2):
    features = draw_features(12, 0.1, np.random.default_rng(1))
    return DualProblem(features, get_regularizer(regularizer), strength, opposite, "all")


def climbed(problem, x, y, *, n_steps=7, step=0.1, tie):
    width = len(problem.features)
    f, h = np.zeros(width), np.zeros(width)
    psi_x, psi_y = problem.features(x), problem.features(y)
    climb(x, y, psi_x, psi_y, f, h, n_steps, step, problem.strength, problem.regularizer.code, tie)
    return f, h


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
@pytest.mark.parametrize("opposite", [True, False])
def test_climbing_is_dual_ascent_over_all_pairs(regularizer, opposite):
    problem = make_problem(regularizer, opposite=opposite)
    state = DualState.zeros(problem)
    for _ in range(7):
        terms = evaluate(problem, state, POINTS_X, POINTS_Y)
        state = DualState(state.x + 0.1 * terms.x_gradient, state.y + 0.1 * terms.y_gradient)
    f, h = climbed(problem, POINTS_X, POINTS_Y, tie=OPPOSITE if opposite else FREE)
    np.testing.assert_allclose(f, state.x, atol=1e-12)
    np.testing.assert_allclose(h, state.y, atol=1e-12)


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
def test_a_distribution_and_itself_have_one_dual(regularizer):
    problem = make_problem(regularizer, opposite=False)
    f, h = climbed(problem, POINTS_X, POINTS_X, tie=SAME, n_steps=400)
    np.testing.assert_array_equal(f, h)
    terms = evaluate(problem, DualState(f, f), POINTS_X, POINTS_X)
    assert np.abs(terms.x_gradient).max() < 0.02


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
def test_zero_is_the_best_opposite_dual_of_a_distribution_and_itself(regularizer):
    problem = make_problem(regularizer, opposite=True)
    terms = evaluate(problem, DualState.zeros(problem), POINTS_X, POINTS_X)
    np.testing.assert_allclose(terms.x_gradient, 0.0, atol=1e-14)


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
def test_slopes_are_the_derivative_of_the_dual_objective(regularizer):
    problem = make_problem(regularizer, opposite=True)
    f, h = climbed(problem, POINTS_X, POINTS_Y, tie=OPPOSITE, n_steps=60)
    table = np.zeros(len(POINTS_X))
    add_slopes(
        POINTS_X, problem.features(POINTS_X) @ f, problem.features.slope(POINTS_X) @ f,
        POINTS_Y, problem.features(POINTS_Y) @ h, problem.strength, problem.regularizer.code, table,
    )  # fmt: skip
    moved = []
    for sign in (1, -1):
        value = [
            evaluate(problem, DualState(f, h), POINTS_X + sign * 1e-6 * (np.arange(20) == i), POINTS_Y).value
            for i in range(20)
        ]
        moved.append(np.array(value))
    np.testing.assert_allclose(table / 20, (moved[0] - moved[1]) / 2e-6, atol=1e-7)


# ------------------------------------------------------------------------------------------------- following


def make_rows(storage):
    X = RNG.normal(size=(40, 6)) * (RNG.random((40, 6)) < 0.6)
    X[:, 3:] = X[:, 3:] != 0
    return X, PackedRows.pack(sparse.csr_matrix(X) if storage == "csr" else X)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_scores_of_some_rows(storage):
    X, rows = make_rows(storage)
    theta = RNG.normal(size=7)
    picked, out = np.array([3, 39, 3, 0]), np.empty(4)
    weights = np.concatenate((theta[:-1][rows.order], theta[-1:], [0.0]))[None]
    scores_of(rows.arrays(), picked, weights, 0, np.empty(4), out)
    np.testing.assert_allclose(out, 1 / (1 + np.exp(-(X[picked] @ theta[:-1] + theta[-1]))), rtol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("whitened", [False, True])
@pytest.mark.parametrize("batch", [5, 15, 30])  # of 15 rows and 25: drawn, or all of the first group, or of both
def test_following_slopes_equals_the_plain_loop(storage, own, whitened, batch):
    X, rows = make_rows(storage)
    labels, seed, n = (RNG.random(40) < 0.5).astype(float), 77, 9
    group_rows, starts = RNG.permutation(40), np.array([0, 15, 40])
    share, slopes = np.array([0.3, 0.7]), RNG.normal(size=(2, 17))
    theta = RNG.normal(size=(2 if own else 1, 7))
    ridge, scale = RNG.random(6) * 0.1, 0.5 + RNG.random(7)
    matrix = np.array([np.diag(1 + RNG.random(7)) + 0.1 for _ in theta]) if whitened else np.zeros((0, 0, 0))
    order = np.append(rows.order, 6)
    hold, origin = (
        (0.1 * np.cov(RNG.normal(size=(7, 20))), RNG.normal(size=7)) if own else (np.zeros((0, 0)), np.zeros(7))
    )

    expected, total = theta.copy(), np.zeros_like(theta)
    for update in range(n):
        gradient = np.zeros_like(expected)
        for a in range(2):
            model, size = (a if own else 0), starts[a + 1] - starts[a]
            at = [starts[a] + hash_index(seed, ((3 + update) * 2 + a) * batch + i, size) for i in range(batch)]
            at = range(starts[a], starts[a + 1]) if size <= batch else at
            for row in group_rows[at]:
                s = 1 / (1 + np.exp(-(X[row] @ expected[model, :-1] + expected[model, -1])))
                slope = np.interp(s, np.linspace(0, 1, 17), slopes[a])
                push = (0.8 * slope * s * (1 - s) + 1.5 * share[a] * (s - labels[row])) / len(at)
                gradient[model] += push * np.append(X[row], 1.0)
        gradient[:, :-1] += 1.5 * ridge * expected[:, :-1]
        if own:
            gradient += 1.5 * (expected - origin) @ hold
        step = 0.2 + (0.05 - 0.2) * (4 + update + 0.5) / 20
        for m in range(len(expected)):
            expected[m] -= step * (matrix[m] @ gradient[m] if whitened else scale * gradient[m])
        total += expected

    found, found_sum = np.ascontiguousarray(theta[:, order]), np.zeros_like(theta)
    follow_slopes(
        3, n, seed, rows.arrays(), labels.astype(np.uint8),
        group_rows, starts, share, *NOTHING, slopes, 0.8, 1.5, ridge[rows.order],
        np.ascontiguousarray(hold[order][:, order]) if own else hold, origin[order],
        0.2, 0.05, 4, 20, scale[order], np.ascontiguousarray(matrix[:, order][:, :, order]) if whitened else matrix,
        found, found_sum, True, np.zeros((len(found), 8)), np.zeros((len(found), 8)), np.zeros(batch, np.int64),
        np.zeros(batch), np.zeros(batch), np.zeros(batch),
    )  # fmt: skip
    np.testing.assert_allclose(found, expected[:, order], rtol=1e-9)
    np.testing.assert_allclose(found_sum, total[:, order], rtol=1e-9)
