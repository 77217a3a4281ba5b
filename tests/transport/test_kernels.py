"""The compiled loops against plain twins that say what they compute."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from fairtransport.groups import make_groups
from fairtransport.linear.solvers._sgd import Objective, Trainer
from fairtransport.linear.solvers._step_sizes import ParameterSteps
from fairtransport.linear.solvers.sgd_problem import PackedRows, TrainingProblem
from fairtransport.transport.dual import DualProblem, DualState, ascend, evaluate
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import (
    _sort_positions,
    chebyshev,
    combine,
    exponential,
    fill_alias,
    hash_index,
    logistic,
    project,
)
from fairtransport.transport.logistic import sigmoid
from fairtransport.transport.regularizers import get_regularizer

MASK = 2**64 - 1


def plain_bits(seed, position):
    """SplitMix64, in Python's whole numbers."""
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def plain_index(seed, position, size):
    return ((plain_bits(seed, position) >> 32) * size) >> 32


def plain_update(trainer, update, theta, states):
    """One update of COT or DOT as the paper writes it; returns the new theta and dual states."""
    problem, objective, n = trainer.problem, trainer.objective, trainer.batch_size
    X = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
    n_groups, seed = len(problem.groups), trainer.seed
    base = update * (n_groups + 1) * n
    target = problem.target[[plain_index(seed, base + n_groups * n + i, len(problem.target)) for i in range(n)]]
    gradient = np.zeros_like(theta)
    states = dict(states)
    for a, rows in enumerate(problem.groups.rows):
        own = a if len(theta) > 1 else 0
        drawn = rows[[plain_index(seed, base + a * n + i, len(rows)) for i in range(n)]]
        design = np.column_stack((X[drawn], np.ones(n)))
        s = sigmoid(design @ theta[own])
        if objective.dual is None:
            pull = np.empty(n)
            pull[np.argsort(s)] = np.sign(np.sort(s) - np.sort(target))
        else:
            before = states[a]
            terms = evaluate(objective.dual, before, s, target)
            states[a] = ascend(objective.dual, before, terms, objective.dual_step)
            # The paper's box: alpha from the duals before the step, their slope after it.
            change = objective.dual.features.slope(s) @ (states[a].x - before.x)
            pull = terms.point_gradient * n + one_minus_alpha(objective.dual, before, s, target) * change
        push = objective.parity * pull * s * (1 - s)
        push += objective.anchor * problem.share[a] * (s - problem.labels[drawn])
        gradient[own] += push @ design / n
    gradient[:, :-1] += objective.anchor * objective.ridge * theta[:, :-1]
    step = trainer.steps.size * max(1 - trainer.steps.decay * update, 0.05)
    return theta - step * trainer.steps.scale * gradient, states


def one_minus_alpha(dual, state, s, t):
    f, h = dual.features(s) @ state.x, dual.features(t) @ state.y
    if dual.pairs == "matched":
        return 1 - dual.regularizer.alpha((f + h - np.abs(s - t)) / dual.strength)
    v = (np.add.outer(f, h) - np.abs(np.subtract.outer(s, t))) / dual.strength
    return 1 - dual.regularizer.alpha(v).mean(axis=1)


def one_hot(rng, n, sizes):
    return np.column_stack([np.eye(size)[rng.integers(size, size=n)] for size in sizes])


# Tables that the packing treats differently.
TABLES = {
    "mixed": lambda rng, n: np.column_stack(
        (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.4), rng.normal(size=n), rng.random(n) < 0.3)
    ),
    "one-hot": lambda rng, n: np.column_stack((rng.normal(size=(n, 3)), one_hot(rng, n, (2, 5, 9)))),
    "one-hot, no numbers": lambda rng, n: one_hot(rng, n, (2, 3, 3, 4, 2, 5, 3, 2, 4, 3)),
    "ragged ones": lambda rng, n: (rng.random((n, 40)) < rng.random((n, 1)) ** 3).astype(float),
    "long rows": lambda rng, n: np.column_stack((rng.normal(size=(n, 21)), one_hot(rng, n, (3, 4)))),
    "empty rows": lambda rng, n: rng.normal(size=(n, 6)) * (rng.random((n, 1)) < 0.3),
    "nothing": lambda rng, n: np.zeros_like(rng.random((n, 3))),
}


def make_trainer(*, kind="l2", opposite=True, pairs="matched", storage="dense", anchor=1.0, own=False, dtype="f8",
                 batch=7, n=120, table="mixed", overlap=False, weights=None):  # fmt: skip
    rng = np.random.default_rng(5)
    X = TABLES[table](rng, n).astype(dtype)
    d = X.shape[1]
    groups = make_groups(rng.integers(3, size=n))
    if overlap:
        groups = make_groups(np.column_stack((rng.integers(2, size=n), np.r_[0, 1:n] > 0)), grouping="each")
    labels = (rng.random(n) < 0.4).astype(float)
    matrix = sparse.csr_matrix(X) if storage == "csr" else X
    problem = TrainingProblem.build(matrix, labels, groups, np.sort(rng.beta(2, 3, 64)), weights)
    dual = None
    if kind != "discrete":
        dual = DualProblem(draw_features(20, 0.1, rng), get_regularizer(kind), 0.2, opposite, pairs)
    objective = Objective(parity=1.5, anchor=anchor, ridge=0.01, dual=dual, dual_step=0.3)
    steps = ParameterSteps(0.05, rng.uniform(0.5, 2.0, d + 1), decay=0.03)
    theta = rng.normal(size=(len(groups) if own else 1, d + 1))
    return Trainer(problem, objective, steps, theta=theta, batch_size=batch, seed=123456789)


def make_states(trainer):
    dual = trainer.objective.dual
    return {a: DualState.zeros(dual) for a in range(len(trainer.problem.groups))} if dual else {}


CASES = [
    *({"kind": k, "opposite": o, "pairs": p}
      for k, o, p in itertools.product(["l2", "entropy"], [True, False], ["matched", "all"])),
    {"kind": "discrete"},
    {"kind": "discrete", "batch": 60},
    *({"storage": "csr", "table": table} for table in TABLES),
    {"storage": "csr", "own": True, "table": "one-hot"},
    {"storage": "csr", "overlap": True},
    {"table": "long rows"},
    {"own": True, "anchor": 0.0},
    {"batch": 1},
    {"batch": 150},
    {"batch": 150, "opposite": False, "kind": "entropy"},
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(f"{k}={v}" for k, v in c.items()))
def test_fused_loop_equals_its_plain_twin(case):
    trainer = make_trainer(**case)
    theta = trainer.theta
    states = make_states(trainer)
    total = np.zeros_like(theta)
    for update in range(12):
        theta, states = plain_update(trainer, update, theta, states)
        if update >= 5:
            total += theta
    trainer.advance(12, average_from=5)
    np.testing.assert_allclose(trainer.theta, theta, atol=2e-7)
    np.testing.assert_allclose(trainer.averaged(), total / 7, atol=2e-7)
    for a, state in states.items():
        np.testing.assert_allclose(trainer.duals[a], state.x, atol=2e-7)
        if not trainer.objective.dual.opposite:
            np.testing.assert_allclose(trainer.target_duals[a], state.y, atol=2e-7)


@pytest.mark.parametrize("case", [{}, {"storage": "csr", "table": "one-hot"}, {"kind": "entropy", "pairs": "all"}])
def test_float32_follows_float64(case):
    single, double = make_trainer(dtype="f4", **case), make_trainer(dtype="f8", **case)
    single.advance(30, average_from=15)
    double.advance(30, average_from=15)
    assert single._theta.dtype == np.float32
    np.testing.assert_allclose(single.theta, double.theta, atol=1e-4)


def test_pieces_equal_one_run():
    whole, parts = make_trainer(), make_trainer()
    whole.advance(40, average_from=20)
    for size in (1, 7, 22, 10):
        parts.advance(size, average_from=20)
    np.testing.assert_array_equal(whole.theta, parts.theta)
    np.testing.assert_array_equal(whole.averaged(), parts.averaged())
    assert parts.summed == 20


def unpack(rows, n_columns):
    """The matrix that packed rows stand for, columns in their first order."""
    n_rows = len(rows.starts) - 1
    packed = np.zeros((n_rows, n_columns + 2))
    packed[:, : rows.n_dense] = rows.dense[:, : rows.n_dense]
    words = rows.words[:, rows.first_word : rows.first_word + rows.n_words]
    for i, slots in enumerate(np.ascontiguousarray(words).view(np.uint16)):
        packed[i, slots] += 1
    rest = sparse.csr_matrix((rows.values, rows.columns, rows.starts), (n_rows, n_columns)).toarray()
    matrix = np.empty((n_rows, n_columns))
    matrix[:, rows.order] = packed[:, :n_columns] + rest
    return matrix


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("table", TABLES)
def test_packing_keeps_every_number(table, dtype):
    X = TABLES[table](np.random.default_rng(1), 50).astype(dtype)
    rows = PackedRows.pack(sparse.csr_matrix(X))
    np.testing.assert_array_equal(unpack(rows, X.shape[1]), X)
    assert rows.dense.ctypes.data % 64 == 0


def test_a_one_hot_row_is_one_cache_line():
    rng = np.random.default_rng(1)
    X = np.column_stack((rng.normal(size=(50, 6)), one_hot(rng, 50, (7, 16, 7, 14, 6, 2, 2, 41))))  # as in Adult
    rows = PackedRows.pack(sparse.csr_matrix(X))
    assert (rows.n_dense, 4 * rows.n_words, rows.values.size, rows.dense.strides[0]) == (6, 8, 0, 64)


def test_more_columns_than_a_slot_can_name():
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(70_000, size=70, replace=False)) for _ in range(20)]
    X = sparse.csr_array((np.ones(1400), np.concatenate(columns), np.arange(0, 1401, 70)), shape=(20, 70_000))
    rows = PackedRows.pack(X)
    assert rows.n_words == 0
    np.testing.assert_array_equal(unpack(rows, 70_000), X.toarray())


@pytest.mark.parametrize("variance", [0.001, 0.01, 0.1, 1.0, 100.0])
def test_polynomials_are_exact_to_a_millionth(variance):
    # f and its slope by their polynomials, and the gradient by its moments, against the features themselves.
    rng = np.random.default_rng(0)
    psi = draw_features(61, variance, rng)
    table = psi.tabulate()
    degrees, width = table.basis.shape
    weights, points, push = rng.normal(size=61), np.r_[0.0, 1.0, rng.random(502)], rng.normal(size=504)
    padded = np.pad(weights, (0, width - 61))
    powers, coefficients = np.empty((degrees, len(points))), np.empty(degrees)
    values, slopes, gradient = np.empty(len(points)), np.empty(len(points)), np.empty(width)
    chebyshev(points, powers)
    project(padded, table.basis, coefficients)
    combine(coefficients, powers, values)
    project(padded, table.slopes, coefficients)
    combine(coefficients, powers, slopes)
    project(push, powers, coefficients)
    combine(coefficients, table.basis, gradient)
    steepest = np.abs(psi.frequency).max()
    np.testing.assert_allclose(values, psi(points) @ weights, atol=1e-7)
    np.testing.assert_allclose(slopes, psi.slope(points) @ weights, atol=1e-7 * steepest)
    np.testing.assert_allclose(gradient[:61], push @ psi(points), atol=1e-7)
    assert not gradient[61:].any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chebyshev_polynomials(dtype):
    points = np.linspace(0, 1, 48, dtype=dtype)
    table = np.empty((24, 48), dtype)
    chebyshev(points, table)
    angle = np.arccos(2 * points.astype(np.float64) - 1)
    error = table - np.cos(np.outer(np.arange(24), angle))
    assert np.abs(error).max() < 24**2 * 4 * np.finfo(dtype).eps  # a rounding error grows with the square of the degree


@pytest.mark.parametrize(("dtype", "most", "error"), [(np.float64, 700, 1e-12), (np.float32, 87, 1e-6)])
def test_exponential(dtype, most, error):
    values = np.r_[0.0, np.linspace(-most, most, 9_999), np.linspace(-1, 1, 1_000)].astype(dtype)
    out = values.copy()
    exponential(out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=error)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logistic(dtype):
    logits = np.r_[-np.inf, np.inf, np.nan, -1e30, 1e30, np.linspace(-30, 30, 1_001)].astype(dtype)
    scores = np.empty_like(logits)
    logistic(logits, scores)
    np.testing.assert_allclose(scores[:2], [0.0, 1.0], atol=1e-30)
    assert np.isnan(scores[2])
    np.testing.assert_allclose(scores[3:], sigmoid(logits[3:].astype(np.float64)), atol=4 * np.finfo(dtype).eps)


def test_draws_are_those_of_splitmix64():
    for seed, position, size in ((0, 0, 10), (123, 456, 7), (2**62 - 1, 2**40, 2**31)):
        assert hash_index(seed, position, size) == plain_index(seed, position, size)
    # First output of the published SplitMix64 for seed 0.
    assert plain_bits(0, 0) == 0xE220A8397B1DCDAF


def test_draws_are_uniform():
    counts = np.bincount([hash_index(9, i, 8) for i in range(80_000)], minlength=8)
    assert np.abs(counts - 10_000).max() < 400  # four standard deviations


@pytest.mark.parametrize("n", [1, 2, 5, 100, 333])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_sort(n, spread):
    rng = np.random.default_rng(n)
    keys = np.r_[0.0, 1.0, np.round(rng.random(n), 2), spread * rng.random(n)]
    order, spare, digits = (np.empty(len(keys), np.int64) for _ in range(3))
    _sort_positions(keys, order, spare, digits, np.empty(256, np.int64))
    np.testing.assert_array_equal(keys[order], np.sort(keys))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(keys)))


def test_alias_table_has_the_right_shares():
    weights = np.array([0.0, 1.0, 2.0, 5.0, 0.5])
    accept, alias = np.zeros(5, np.uint64), np.zeros(5, np.int64)
    fill_alias(weights, 100, accept, alias)
    share = np.zeros(5)
    for i in range(5):
        keep = float(accept[i]) / 2**32
        share[i] += keep / 5
        share[alias[i] - 100] += (1 - keep) / 5
    np.testing.assert_allclose(share, weights / weights.sum(), atol=1e-9)
