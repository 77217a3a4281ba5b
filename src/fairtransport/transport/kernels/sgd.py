"""The stochastic algorithm of the paper as one fused loop.

The plain twin, which reads like the paper's algorithm box, is `fairtransport.transport.reference`. Arrays of a
batch are padded to a multiple of 64 bytes, so that vector instructions leave no remainder.

References
----------
S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, COT Algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._columns.compilation import FAST_MATH, NO_ALLOCATION, cached_njit
from fairtransport.transport.fourier import FeatureTable
from fairtransport.transport.kernels.functions import chebyshev, combine, exponential, logistic, project
from fairtransport.transport.kernels.rows import Population, Rows, add_rows, draw_rows, draw_values, score_rows
from fairtransport.transport.reference import LEAST_DECAY
from fairtransport.transport.regularizers import AFFINE, AFFINE_SLOPE, EXPONENT_LIMIT, L2

# Continuous optimal transport (COT) between two batches: one step of the dual variables, then the scores' gradient.

_L2 = L2.code
_LOWEST = -80.0  # its exponential is negligible beside 1, and in float32 it is not subnormal


class Transport(NamedTuple):
    """The regularized distance."""

    kind: int
    strength: float
    opposite: bool
    all_pairs: bool
    table: FeatureTable


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _exponents(scale, low, high, scores, targets, f, h, v):
    # Within the bounds alpha is v itself (L2; the scale has the factor 1/2) or exp(v).
    for i in range(scores.shape[0]):
        v[i] = max(min((f[i] + h[i] - abs(scores[i] - targets[i])) * scale, high), low)


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _weigh_matched(scores, targets, alpha, surplus, signed):
    # surplus = 1 - alpha, signed = alpha * sign(s - t)
    real = scores.dtype.type
    zero, one = real(0), real(1)
    for i in range(scores.shape[0]):
        gap = scores[i] - targets[i]
        surplus[i] = one - alpha[i]
        signed[i] = alpha[i] if gap > zero else (-alpha[i] if gap < zero else zero)


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _weigh_all(kind, scale, low, high, batch, work):
    # The same for all pairs (i, j): means over j for the scores and over i for the target scores.
    scores, targets, alpha = work.scores, work.target_scores, work.alpha
    surplus, target_surplus, signed = work.surplus, work.target_surplus, work.score_gradient
    real = scores.dtype.type
    zero, one, share = real(0), real(1), real(1) / real(batch)
    target_surplus[:batch] = one
    for i in range(batch):
        score, value = scores[i], work.f[i]
        for j in range(targets.shape[0]):
            alpha[j] = max(min((value + work.h[j] - abs(score - targets[j])) * scale, high), low)
        if kind != _L2:
            exponential(alpha)
        total = total_signed = zero
        for j in range(batch):
            gap = score - targets[j]
            part = share * alpha[j]
            total += part
            total_signed += part if gap > zero else (-part if gap < zero else zero)
            target_surplus[j] -= part
        surplus[i] = one - total
        signed[i] = total_signed


@cached_njit(nogil=True, inline="always")
def step_duals(transport, step, group, duals, target_duals, work):
    """Move a group's dual variables by ``step`` times their gradient and write ``work.score_gradient``.

    The Chebyshev polynomials of the target scores are in ``work.target_table`` already.
    """
    basis, slopes = transport.table
    batch = work.drawn.shape[0]
    real = work.scores.dtype.type
    zero = real(0)
    scale, low, high = real(1.0 / transport.strength), real(_LOWEST), real(EXPONENT_LIMIT)
    if transport.kind == _L2:
        scale, low, high = real(0.5 / transport.strength), zero, real(np.inf)

    # f at the scores and h at the target scores.
    chebyshev(work.scores, work.table)
    for d in range(work.dual.shape[0]):
        work.dual[d] = duals[group, d]
        work.target_dual[d] = target_duals[group, d]
    project(work.dual, basis, work.coefficients)
    combine(work.coefficients, work.table, work.f)
    if transport.opposite:
        for k in range(work.coefficients.shape[0]):
            work.coefficients[k] = -work.coefficients[k]
    else:
        project(work.target_dual, basis, work.coefficients)
    combine(work.coefficients, work.target_table, work.h)

    # alpha; score_gradient receives its second term.
    if transport.all_pairs:
        _weigh_all(transport.kind, scale, low, high, batch, work)
    else:
        _exponents(scale, low, high, work.scores, work.target_scores, work.f, work.h, work.alpha)
        if transport.kind != _L2:
            exponential(work.alpha)
        _weigh_matched(work.scores, work.target_scores, work.alpha, work.surplus, work.score_gradient)
    work.surplus[batch:] = zero  # the padding has no weight

    # The dual variables' gradient and their step.
    project(work.surplus, work.table, work.moments)
    if transport.all_pairs:
        project(work.target_surplus, work.target_table, work.target_moments)
    else:
        project(work.surplus, work.target_table, work.target_moments)
    if transport.opposite:
        for k in range(work.moments.shape[0]):
            work.moments[k] -= work.target_moments[k]
    else:
        combine(work.target_moments, basis, work.target_dual)
        for d in range(work.dual.shape[0]):
            target_duals[group, d] += step * work.target_dual[d]
    combine(work.moments, basis, work.dual)
    for d in range(work.dual.shape[0]):
        duals[group, d] += step * work.dual[d]
        work.dual[d] = duals[group, d]

    # The slope of f after the step: the first term of score_gradient.
    project(work.dual, slopes, work.coefficients)
    combine(work.coefficients, work.table, work.f)
    for i in range(work.scores.shape[0]):
        work.score_gradient[i] += work.surplus[i] * work.f[i]


# Discrete optimal transport (DOT) between two batches of equal size: its gradient with respect to the scores.

#: Takes the place of a regularizer's code where the distance is the discrete one.
DISCRETE = 2


@cached_njit(nogil=True)
def write_order(keys, order):
    """Write into ``order`` the positions of as many keys in ascending order: a Shell sort, which allocates nothing."""
    n = gap = order.shape[0]
    for i in range(n):
        order[i] = i
    while gap > 1:
        gap = max(1, (5 * gap - 1) // 11)  # Gonnet and Baeza-Yates, 1991
        for i in range(gap, n):
            moved, j = order[i], i
            while j >= gap and keys[order[j - gap]] > keys[moved]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = moved


@cached_njit(nogil=True, inline="always")
def couple_batches(work):
    """Write the derivative of the distance with respect to each score into ``work.score_gradient``."""
    real = work.scores.dtype.type
    zero, one = real(0), real(1)
    write_order(work.scores, work.order)
    for i in range(work.order.shape[0]):
        gap = work.scores[work.order[i]] - work.target_scores[work.target_order[i]]
        work.score_gradient[work.order[i]] = one if gap > zero else (-one if gap < zero else zero)


# Maps of linear predictors to scores; the plain twin is `fairtransport.transport.regularizers.score_and_slope`.


@cached_njit(nogil=True)
def write_scores(link, predictors, scores):
    """Write the scores, within [0, 1], of the predictors."""
    if link != AFFINE:
        logistic(predictors, scores)
        return
    real = scores.dtype.type
    zero, half, one, slope = real(0), real(0.5), real(1), real(AFFINE_SLOPE)
    for i in range(scores.shape[0]):
        scores[i] = max(min(half + slope * predictors[i], one), zero)


@cached_njit(nogil=True)
def write_score_slopes(link, scores, slopes):
    """Write what the gradient with respect to each score is multiplied with."""
    real = scores.dtype.type
    one, slope = real(1), real(AFFINE_SLOPE)
    for i in range(scores.shape[0]):
        slopes[i] = slope if link == AFFINE else scores[i] * (one - scores[i])


class Batches(NamedTuple):
    """The samples that batches are drawn from."""

    seed: int
    size: int
    rows: Rows
    outcomes: NDArray[Any]
    population: Population
    models: Ints
    targets: NDArray[Any]
    target_of_cell: Ints


class Objective(NamedTuple):
    """The function that is minimised: anchor * (loss + ridge) + parity * weighted sum of distances."""

    parity: float
    anchor: float
    ridge: float
    link: int
    cell_share: Floats
    cell_weight: Floats
    transport: Transport


class Steps(NamedTuple):
    """Step sizes."""

    dual: float
    parameter: float
    decay: float
    scale: NDArray[Any]


class State(NamedTuple):
    """The state that the algorithm changes in place."""

    theta: NDArray[Any]
    theta_sum: Floats
    duals: NDArray[Any]
    target_duals: NDArray[Any]


@cached_njit(nogil=True, inline="always")
def _step_parameters(objective, steps, update, theta, work):
    real = theta.dtype.type
    ridge = real(objective.anchor * objective.ridge)
    last = theta.shape[1] - 1
    step = real(steps.parameter * max(1.0 - steps.decay * update, LEAST_DECAY))
    for m in range(theta.shape[0]):
        for j in range(last):
            slope = work.gradient[m, j] + ridge * theta[m, j]
            theta[m, j] -= step * steps.scale[j] * slope
        theta[m, last] -= step * steps.scale[last] * work.gradient[m, last]


@cached_njit(nogil=True, inline="always")
def _logit_gradient(objective, parity, inverse_batch, cell, batches, work):
    # Of parity times the distance, and of the anchor's loss.
    real = work.scores.dtype.type
    write_score_slopes(objective.link, work.scores, work.logit_gradient)
    for i in range(work.scores.shape[0]):
        work.logit_gradient[i] *= parity * work.score_gradient[i]
    if objective.anchor != 0.0:
        anchor = real(objective.anchor * objective.cell_share[cell]) * inverse_batch
        predictions = work.logits if objective.link == AFFINE else work.scores
        for i in range(batches.size):
            work.logit_gradient[i] += anchor * (predictions[i] - batches.outcomes[work.drawn[i]])


@cached_njit(nogil=True, fastmath=FAST_MATH, **NO_ALLOCATION)
def run_updates(first_update, n_updates, average_from, batches, objective, steps, state, work):
    """Advance ``state`` by ``n_updates`` updates of continuous or discrete optimal transport, in place.

    One update draws a batch of scores of each target and a batch of rows of each cell, moves each cell's dual variables
    uphill, and moves the parameters downhill. Iterates from update ``average_from`` on are added to
    ``state.theta_sum``. ``work`` is a `fairtransport.transport.kernels.sgd.Workspace`.
    """
    theta, batch, seed = state.theta, batches.size, np.uint64(batches.seed)
    n_cells, n_columns = batches.population.starts.shape[0] - 1, theta.shape[1]
    n_draws = n_cells + batches.targets.shape[0]
    discrete = objective.transport.kind == DISCRETE
    real = theta.dtype.type
    inverse_batch = real(1) / real(batch)
    dual_step = real(steps.dual) * inverse_batch
    parity = real(objective.parity) * inverse_batch

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
                    write_order(work.target_scores, work.target_order)
                else:
                    chebyshev(work.target_scores, work.target_table)

            model = np.uint64(batches.models[cell] if theta.shape[0] > 1 else 0)
            draw_rows(batches.population, cell, seed, position + np.uint64(cell * batch), work.drawn)
            score_rows(batches.rows, work.drawn, theta, model, work.logits)
            write_scores(objective.link, work.logits, work.scores)
            if target < 0:
                work.score_gradient[:] = real(0)
            elif discrete:
                couple_batches(work)
            else:
                step_duals(objective.transport, dual_step, cell, state.duals, state.target_duals, work)
            cell_parity = parity * real(objective.cell_weight[cell])
            _logit_gradient(objective, cell_parity, inverse_batch, cell, batches, work)
            add_rows(batches.rows, work.drawn, work.logit_gradient, work.gradient, model)

        _step_parameters(objective, steps, update, theta, work)
        if update >= average_from:
            for m in range(theta.shape[0]):
                for j in range(n_columns):
                    state.theta_sum[m, j] += theta[m, j]


# Arrays that the stochastic solver writes to on the way, allocated once so that its loop allocates nothing.


_CACHE_LINE = 64  # bytes


class Workspace(NamedTuple):
    """Scratch arrays of one run."""

    gradient: NDArray[Any]
    drawn: Ints
    logits: NDArray[Any]
    scores: NDArray[Any]
    target_scores: NDArray[Any]
    table: NDArray[Any]
    target_table: NDArray[Any]
    coefficients: NDArray[Any]
    moments: NDArray[Any]
    target_moments: NDArray[Any]
    dual: NDArray[Any]
    target_dual: NDArray[Any]
    f: NDArray[Any]
    h: NDArray[Any]
    alpha: NDArray[Any]
    surplus: NDArray[Any]
    target_surplus: NDArray[Any]
    score_gradient: NDArray[Any]
    logit_gradient: NDArray[Any]
    order: Ints
    target_order: Ints


def make_workspace(
    theta_shape: tuple[int, ...], table_shape: tuple[int, ...], *, batch: int, dtype: np.dtype[Any]
) -> Workspace:
    """Allocate the scratch arrays, each of which begins at a cache line."""
    n_degrees, width = table_shape
    padded = -(-batch * dtype.itemsize // _CACHE_LINE) * _CACHE_LINE // dtype.itemsize

    def aligned(shape: int | tuple[int, ...]) -> NDArray[Any]:
        n_bytes = int(np.prod(shape)) * dtype.itemsize
        buffer = np.zeros(n_bytes + _CACHE_LINE, np.uint8)
        return buffer[-buffer.ctypes.data % _CACHE_LINE :][:n_bytes].view(dtype).reshape(shape)

    shapes: dict[str, tuple[int, ...]] = {
        "gradient": theta_shape,
        **dict.fromkeys(("table", "target_table"), (n_degrees, padded)),
        **dict.fromkeys(("coefficients", "moments", "target_moments"), (n_degrees,)),
        **dict.fromkeys(("dual", "target_dual"), (width,)),
    }
    numbers = {name: aligned(shapes.get(name, padded)) for name in Workspace._fields}
    return Workspace(**numbers | {name: np.zeros(batch, np.int64) for name in ("drawn", "order", "target_order")})
