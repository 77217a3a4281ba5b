"""The compiled loops against plain twins that say what they compute."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from fairtransport.estimators.problem import TrainingProblem, sigmoid
from fairtransport.estimators.steps import ParameterSteps
from fairtransport.estimators.trainer import Objective, Trainer
from fairtransport.groups import make_groups
from fairtransport.transport.dual import DualProblem, DualState, ascend, evaluate
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import (
    _add_moments,
    _cell,
    _slope,
    _sort_positions,
    _value,
    expand_cells,
    fill_alias,
    gather_cells,
    hash_index,
)
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


def make_trainer(*, kind="l2", opposite=True, pairs="matched", storage="dense", anchor=1.0, own=False, dtype="f8",
                 batch=7, n=120, d=5, weights=None):  # fmt: skip
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[:, 1] = rng.normal(size=n)  # sparse storage holds it as a dense column,
    X[:, 2] = X[:, 2] != 0  # and this one by its ones
    X[:, 2] *= rng.random(n) < 0.5
    X = X.astype(dtype)
    groups = make_groups(rng.integers(3, size=n))
    labels = (rng.random(n) < 0.4).astype(float)
    matrix = sparse.csr_matrix(X) if storage == "csr" else X
    problem = TrainingProblem.build(matrix, labels, groups, np.sort(rng.beta(2, 3, 64)), weights)
    dual = None
    if kind != "discrete":
        dual = DualProblem(draw_features(20, 0.1, rng), get_regularizer(kind), 0.2, opposite, pairs)
    objective = Objective(parity=1.5, anchor=anchor, ridge=0.01, dual=dual, dual_step=0.3)
    steps = ParameterSteps(0.05, rng.uniform(0.5, 2.0, d + 1), decay=0.03)
    theta = rng.normal(size=(3 if own else 1, d + 1))
    return Trainer(problem, objective, steps, theta=theta, batch_size=batch, seed=123456789)


CASES = [
    *({"kind": k, "opposite": o, "pairs": p}
      for k, o, p in itertools.product(["l2", "entropy"], [True, False], ["matched", "all"])),
    {"kind": "discrete"},
    {"kind": "discrete", "batch": 60},
    {"storage": "csr"},
    {"storage": "csr", "own": True},
    {"own": True, "anchor": 0.0},
    {"batch": 1},
    {"batch": 150},
    {"batch": 150, "opposite": False, "kind": "entropy"},
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(f"{k}={v}" for k, v in c.items()))
def test_fused_loop_equals_its_plain_twin(case):
    trainer = make_trainer(**case)
    theta = trainer.theta
    states = {a: DualState.zeros(trainer.objective.dual) for a in range(3)} if trainer.objective.dual else {}
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


def test_float32_follows_float64():
    single, double = make_trainer(dtype="f4"), make_trainer(dtype="f8")
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


@pytest.mark.parametrize("variance", [0.001, 0.01, 0.1, 1.0, 100.0])
def test_cells_are_exact_to_a_millionth(variance):
    # f and its slope by the cell's polynomial, and the gradient by its moments, against the features themselves.
    rng = np.random.default_rng(0)
    psi = draw_features(61, variance, rng)
    table = psi.tabulate()
    weights, points, push = rng.normal(size=61), np.r_[0.0, 1.0, rng.random(500)], rng.normal(size=502)
    padded = np.pad(weights, (0, table.width - 61))
    taylor, moments = np.zeros((table.steps + 1, 6)), np.zeros((table.steps + 1, 6))
    gradient = np.zeros(table.width)
    tables = (table.powers, table.cosines, table.sines)
    every = np.arange(table.steps + 1)
    expand_cells(every, len(every), padded, *tables, np.zeros_like(table.powers), taylor)
    cells = np.array([_cell(point, table.steps) for point in points])
    rests = points * table.steps - cells
    for cell, rest, weight in zip(cells, rests, push, strict=True):
        _add_moments(moments, cell, rest, weight)
    gather_cells(every, len(every), moments, *tables, gradient)
    values = [_value(taylor, c, r) for c, r in zip(cells, rests, strict=True)]
    slopes = [table.steps * _slope(taylor, c, r) for c, r in zip(cells, rests, strict=True)]
    steepest = np.abs(psi.frequency).max()
    np.testing.assert_allclose(values, psi(points) @ weights, atol=1e-7)
    np.testing.assert_allclose(slopes, psi.slope(points) @ weights, atol=1e-6 * steepest)
    np.testing.assert_allclose(gradient[:61], push @ psi(points), atol=1e-7)
    assert not gradient[61:].any()


def test_a_score_that_is_not_a_number_stays_inside():
    assert _cell(np.nan, 90) == 0
    assert _cell(1.0, 90) == 90


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
