r"""The stochastic algorithm of the paper in plain NumPy, to be read beside its formulas.

A run is a state and a step: `init` gives the first state, `step` is one pass through the loop of the algorithm box, and
`run` repeats it. The compiled kernels (`fairtransport.transport.kernels.sgd`) are tested against this module.

Continuous optimal transport (COT) minimises, over the parameters :math:`\theta` of a logistic model,

.. math:: \sum_a \max_{\lambda_{S_a}, \lambda_{\bar S, a}} \Big\langle \lambda_{S_a}(s) + \lambda_{\bar S, a}(\bar s)
          - \lambda \phi^*\Big(\frac{\lambda_{S_a}(s) + \lambda_{\bar S, a}(\bar s) - |s - \bar s|}{\lambda}\Big)
          \Big\rangle

(Eq. 7) by alternating steps of the dual variables and of :math:`\theta`. Discrete optimal transport (DOT) takes the
optimal coupling of the two batches in place of the dual variables. Beyond the paper, the loss may be part of
the objective (``anchor``), and steps may differ by column and decrease.

References
----------
S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, sections "Optimal Dual Variables"
and "COT Method".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport.transport.dual import DualProblem, DualState, ascend, evaluate, point_slope
from fairtransport.transport.regularizers import AFFINE, LOGISTIC, score_and_slope

#: The parameters' step does not fall below this share of the first one, however long a run goes on.
LEAST_DECAY = 0.05

_GOLDEN, _MIX_1, _MIX_2 = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_27, _30, _31, _32 = (np.uint64(n) for n in (27, 30, 31, 32))


@dataclass(frozen=True, eq=False)
class Problem:
    """Input of the algorithm."""

    X: NDArray[Any]
    cells: Sequence[Ints]
    targets: Sequence[NDArray[Any]]
    dual: DualProblem | None
    batch_size: int
    dual_step: float
    parameter_step: float
    seed: int = 0
    outcomes: NDArray[Any] | None = None
    cell_share: Floats | None = None
    target_of_cell: Sequence[int] | None = None
    cell_weight: Sequence[float] | None = None
    models: Sequence[int] | None = None
    parity: float = 1.0
    anchor: float = 0.0
    ridge: float = 0.0
    link: int = LOGISTIC
    decay: float = 0.0
    scale: float | Floats = 1.0


@dataclass(frozen=True, eq=False)
class State:
    """The state that an update changes."""

    theta: Floats
    duals: tuple[DualState, ...]
    n_updates: int = 0


def init(problem: Problem, theta: Floats) -> State:
    """Return the state before the first update: the initial model's parameters, and dual variables that are zero."""
    duals = () if problem.dual is None else (DualState.zeros(problem.dual),) * len(problem.cells)
    return State(np.asarray(theta, dtype=np.float64), duals)


def step(problem: Problem, state: State) -> State:
    r"""Return the state after one update: each cell's dual variables move uphill, then theta downhill.

    Notes
    -----
    With the derivative :math:`g^i` of the objective with respect to the score :math:`s^i_a`,

    .. math:: \theta \leftarrow \theta - \epsilon_\theta \sum_a \frac{1}{N_S} \sum_i g^i\, s^i_a (1 - s^i_a)\, (x^i, 1),

    where the paper absorbs 1 / N_S into the step.
    """
    n, n_cells = problem.batch_size, len(problem.cells)
    position = state.n_updates * (n_cells + len(problem.targets)) * n
    target_scores = [
        target[draw_indices(problem.seed, position + (n_cells + t) * n, n, target.size)]
        for t, target in enumerate(problem.targets)
    ]
    duals, gradient = list(state.duals), np.zeros_like(state.theta)
    for a, rows in enumerate(problem.cells):
        model = 0 if len(state.theta) == 1 else a if problem.models is None else problem.models[a]
        target = 0 if problem.target_of_cell is None else problem.target_of_cell[a]
        weight = 1.0 if problem.cell_weight is None else problem.cell_weight[a]
        drawn = rows[draw_indices(problem.seed, position + a * n, n, rows.size)]
        x = np.column_stack((problem.X[drawn], np.ones(n)))
        predictors = x @ state.theta[model]
        scores, slopes = score_and_slope(problem.link, predictors)
        if target < 0:
            score_gradient = np.zeros(n)
        elif problem.dual is None:
            score_gradient = discrete_gradient(scores, target_scores[target])
        else:
            duals[a], score_gradient = continuous_step(
                problem.dual, duals[a], scores, target_scores[target], step=problem.dual_step
            )
        slope = problem.parity * weight * score_gradient * slopes
        if problem.anchor and problem.outcomes is not None and problem.cell_share is not None:
            predictions = predictors if problem.link == AFFINE else scores
            slope += problem.anchor * problem.cell_share[a] * (predictions - problem.outcomes[drawn])
        gradient[model] += slope @ x / n
    gradient[:, :-1] += problem.anchor * problem.ridge * state.theta[:, :-1]
    size = problem.parameter_step * max(1.0 - problem.decay * state.n_updates, LEAST_DECAY)
    return State(state.theta - size * problem.scale * gradient, tuple(duals), state.n_updates + 1)


def run(problem: Problem, theta: Floats, n_updates: int, *, average_from: int = 0) -> tuple[State, Floats]:
    """Run the algorithm."""
    state = init(problem, theta)
    total = np.zeros_like(state.theta)
    for update in range(n_updates):
        state = step(problem, state)
        if update >= average_from:
            total += state.theta
    return state, total / max(1, n_updates - average_from)


def continuous_step(
    dual: DualProblem, state: DualState, scores: NDArray[Any], target_scores: NDArray[Any], *, step: float
) -> tuple[DualState, Floats]:
    r"""Return a group's dual variables after a step, and the derivative of the objective with respect to each score.

    Notes
    -----
    With :math:`\alpha_{ij} = (\phi^*)'((\lambda_{S_a}(s^i) + \lambda_{\bar S, a}(\bar s^j) - |s^i - \bar s^j|) /
    \lambda)`, which is :math:`\lambda \phi^*(s^i, \bar s^j)'` in the paper's notation, the step is (Eq. 5)

    .. math:: \lambda_{S_a} \leftarrow \lambda_{S_a} + \frac{\epsilon_\lambda}{N_S} \sum_i
              \Big(1 - \frac{1}{N_{\bar S}} \sum_j \alpha_{ij}\Big) \psi(s^i)

    and likewise for the target. Where the two dual variables are kept opposite, the two sums are subtracted. Then, with
    the dual variables after the step,

    .. math:: g^i = \frac{1}{N_{\bar S}} \sum_j \big((1 - \alpha_{ij})\, \lambda_{S_a}'(s^i)
              + \alpha_{ij}\, \mathrm{sign}(s^i - \bar s^j)\big).

    With matched pairs, each score has one partner: j = i.
    """
    terms = evaluate(dual, state, scores, target_scores)
    state = ascend(dual, state, terms, step)
    return state, point_slope(terms.alpha, dual.features.slope(scores) @ state.x, terms.signed)


def discrete_gradient(scores: NDArray[Any], target_scores: NDArray[Any]) -> Floats:
    """Return n times the derivative of the distance of two batches of size n: the i-th smallest scores are joined."""
    gradient = np.empty(scores.size)
    gradient[np.argsort(scores)] = np.sign(np.sort(scores) - np.sort(target_scores))
    return gradient


def draw_indices(seed: int, position: int, n: int, size: int) -> Ints:
    """Return ``n`` random indices below ``size``: outputs of SplitMix64 from ``position`` on."""
    counter = np.uint64(position) + np.arange(1, n + 1, dtype=np.uint64)
    z = np.uint64(seed) + counter * _GOLDEN
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    z ^= z >> _31
    return (((z >> _32) * np.uint64(size)) >> _32).astype(np.int64)
