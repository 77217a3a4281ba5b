"""The stochastic algorithm of the paper as one fused loop.

The plain twin, which reads like the paper's algorithm box, is `fairtransport.transport.reference`. Loops over a batch
run over its padded size where they can, so that vector instructions leave no remainder.

References
----------
S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, COT Algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels._options import FAST_MATH, NO_ALLOCATION
from fairtransport.transport.kernels.chebyshev import chebyshev
from fairtransport.transport.kernels.cot_update import step_duals
from fairtransport.transport.kernels.dot_update import DISCRETE, couple_batches, sort_target
from fairtransport.transport.kernels.links import write_score_slopes, write_scores
from fairtransport.transport.kernels.packed_rows import add_rows, score_rows
from fairtransport.transport.kernels.random_numbers import draw_rows, draw_values
from fairtransport.transport.links import AFFINE
from fairtransport.transport.reference import LEAST_DECAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.transport.kernels.cot_update import Transport
    from fairtransport.transport.kernels.packed_rows import Rows
    from fairtransport.transport.kernels.random_numbers import Population

__all__ = ["Batches", "Objective", "State", "Steps", "run_updates"]

_LEAST_DECAY = LEAST_DECAY
_AFFINE = AFFINE


class Batches(NamedTuple):
    """What batches are drawn from.

    Attributes
    ----------
    seed : int
    size : int
        Rows drawn of each cell, and scores of each target, in each update.
    rows : Rows
    outcomes : ndarray
        What the loss compares the linear predictor of each packed row with: 0 or 1, or a standardised y.
    population : Population
        The rows of each cell: a group or, with labels or strata, its rows with one label or in one stratum.
    models : ndarray of shape (n_cells,)
        The group of each cell, whose parameters score its rows where each group has its own.
    targets : ndarray of shape (n_targets, n_scores)
        Scores of equal mass that represent the target distributions.
    target_of_cell : ndarray of shape (n_cells,)
        Ascending; -1 for cells that are compared with nothing, which come first.
    """

    seed: int
    size: int
    rows: Rows
    outcomes: NDArray[Any]
    population: Population
    models: NDArray[np.int64]
    targets: NDArray[Any]
    target_of_cell: NDArray[np.int64]


class Objective(NamedTuple):
    """The function that is minimised: anchor * (loss + ridge) + parity * weighted sum of distances.

    Attributes
    ----------
    parity, anchor, ridge : float
    link : int
        The map of predictors to scores, and with it the loss; see `fairtransport.transport.links`.
    cell_share : ndarray of shape (n_cells,)
        How the loss weighs the cells' batches.
    cell_weight : ndarray of shape (n_cells,)
        How the distances are weighted; 1 for demographic parity.
    transport : Transport
    """

    parity: float
    anchor: float
    ridge: float
    link: int
    cell_share: NDArray[np.float64]
    cell_weight: NDArray[np.float64]
    transport: Transport


class Steps(NamedTuple):
    """Step sizes.

    Attributes
    ----------
    dual, parameter : float
    decay : float
        What the parameters' step loses in each update, as a share of the first; it stays above a twentieth.
    scale : ndarray of shape (n_columns + 1,)
        A factor for each column.
    """

    dual: float
    parameter: float
    decay: float
    scale: NDArray[Any]


class State(NamedTuple):
    """What the algorithm moves, in place.

    Attributes
    ----------
    theta : ndarray of shape (n_models, n_columns + 1)
        Parameters, the intercept last: one row, or one for each group.
    theta_sum : ndarray of the same shape
        Sum of the iterates that are averaged.
    duals, target_duals : ndarray of shape (n_cells, width)
        Coefficients of the dual variables.
    """

    theta: NDArray[Any]
    theta_sum: NDArray[np.float64]
    duals: NDArray[Any]
    target_duals: NDArray[Any]


@cached_njit(nogil=True, inline="always")
def _step_parameters(objective, steps, update, theta, work):
    real = theta.dtype.type
    ridge = real(objective.anchor * objective.ridge)
    last = theta.shape[1] - 1
    step = real(steps.parameter * max(1.0 - steps.decay * update, _LEAST_DECAY))
    for m in range(theta.shape[0]):
        for j in range(last):
            slope = work.gradient[m, j] + ridge * theta[m, j]
            theta[m, j] -= step * steps.scale[j] * slope
        theta[m, last] -= step * steps.scale[last] * work.gradient[m, last]
        for j in range(last + 1):
            work.weights[m, j] = theta[m, j]


@cached_njit(nogil=True, inline="always")
def _logit_gradient(objective, parity, inverse_batch, cell, batches, work):
    # Of parity times the distance, and of the anchor's loss.
    real = work.scores.dtype.type
    write_score_slopes(objective.link, work.scores, work.logit_gradient)
    for i in range(work.scores.shape[0]):
        work.logit_gradient[i] *= parity * work.score_gradient[i]
    if objective.anchor != 0.0:
        anchor = real(objective.anchor * objective.cell_share[cell]) * inverse_batch
        predictions = work.logits if objective.link == _AFFINE else work.scores
        for i in range(batches.size):
            work.logit_gradient[i] += anchor * (predictions[i] - batches.outcomes[work.drawn[i]])


@cached_njit(nogil=True, fastmath=FAST_MATH, **NO_ALLOCATION)
def run_updates(first_update, n_updates, average_from, batches, objective, steps, state, work):
    """Advance ``state`` by ``n_updates`` updates of continuous or discrete optimal transport, in place.

    One update draws a batch of scores of each target and a batch of rows of each cell, moves each cell's dual variables
    uphill, and moves the parameters downhill. Iterates from update ``average_from`` on are added to
    ``state.theta_sum``. ``work`` is a `fairtransport.transport.kernels.workspace.Workspace`.
    """
    theta, batch, seed = state.theta, batches.size, np.uint64(batches.seed)
    n_cells, n_columns = batches.population.starts.shape[0] - 1, theta.shape[1]
    n_draws = n_cells + batches.targets.shape[0]
    discrete = objective.transport.kind == DISCRETE
    real = theta.dtype.type
    inverse_batch = real(1) / real(batch)
    dual_step = real(steps.dual) * inverse_batch
    parity = real(objective.parity) * inverse_batch
    for m in range(theta.shape[0]):
        for j in range(n_columns):
            work.weights[m, j] = theta[m, j]
        work.weights[m, n_columns] = real(0)

    for update in range(first_update, first_update + n_updates):
        position = np.uint64(update) * np.uint64(n_draws) * np.uint64(batch)
        last_target = -1
        work.gradient[:, :] = real(0)
        for cell in range(n_cells):
            target = batches.target_of_cell[cell]
            if target != last_target:
                last_target = target
                target_position = position + np.uint64((n_cells + target) * batch)
                draw_values(batches.targets[target], seed, target_position, batch, work.target_scores)
                if discrete:
                    sort_target(batch, work)
                else:
                    chebyshev(work.target_scores, work.target_table)

            model = np.uint64(batches.models[cell] if theta.shape[0] > 1 else 0)
            draw_rows(batches.population, cell, seed, position + np.uint64(cell * batch), batch, work.drawn)
            score_rows(batches.rows, work.drawn, batch, work.weights, model, work.logits)
            write_scores(objective.link, work.logits, work.scores)
            if target < 0:
                work.score_gradient[:] = real(0)
            elif discrete:
                couple_batches(batch, work)
            else:
                step_duals(objective.transport, dual_step, batch, cell, state.duals, state.target_duals, work)
            cell_parity = parity * real(objective.cell_weight[cell])
            _logit_gradient(objective, cell_parity, inverse_batch, cell, batches, work)
            add_rows(batches.rows, work.drawn, batch, work.logit_gradient, work.gradient, model)

        _step_parameters(objective, steps, update, theta, work)
        if update >= average_from:
            for m in range(theta.shape[0]):
                for j in range(n_columns):
                    state.theta_sum[m, j] += theta[m, j]
