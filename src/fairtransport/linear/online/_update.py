"""The steps of one batch: the sketches take it up, labels move the centre, theta follows the penalty's gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.criteria import MAX_PAIRED_GROUPS, pairs_of_groups
from fairtransport.linear.online.sketches import POINTS
from fairtransport.penalties import Comparisons, TransportPenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.online.memory import Batch, OnlineMemory

__all__ = ["UpdateStep", "update_weights"]

_FRACTION = 0.5  # of the step that is stable, as in `fairtransport.linear.solvers._step_sizes`
_MAX_SHIFT = 0.5  # logits, or standard deviations of y, that the mean row of a group may move in one update
_MAX_TRIALS = 8  # of step sizes for one update
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class UpdateStep:
    """How a batch is used.

    Attributes
    ----------
    penalty : TransportPenalty
    each_other : bool
        Compare groups with each other, not with the target.
    half_life : float
        After so many rows of its group a row counts half.
    n_updates : int
        Updates of theta.
    """

    penalty: TransportPenalty
    each_other: bool
    half_life: float
    n_updates: int

    def comparisons(self, memory: OnlineMemory) -> Comparisons:
        """Return the pairs of groups, or the pairs of each group and the target or everyone, in each block.

        Each sketch is one cell, which stands for its rows. Everyone is a cell of the points of all groups of a block,
        so there the points are rows.
        """
        n_groups, n_cells = memory.n_groups, len(memory.sketches)
        blocks = range(len(memory.blocks))
        names: list[int | None] = [group for _ in blocks for group in range(n_groups)]
        as_rows = self.each_other and n_groups > MAX_PAIRED_GROUPS
        points = np.arange(n_cells * POINTS if as_rows else n_cells)
        cells = list(points.reshape(n_cells, -1))
        pairs: list[tuple[int, int]] = []
        for block in blocks:
            first = block * n_groups
            if as_rows:
                pairs += [(first + group, n_cells + block) for group in range(n_groups)]
            elif self.each_other:
                pairs += [(first + one, first + other) for one, other in pairs_of_groups(n_groups)]
            else:
                pairs += [(first + group, n_cells + block) for group in range(n_groups)]
        masses = None
        if as_rows:
            cells += list(points.reshape(len(memory.blocks), -1))
            names += [None] * len(memory.blocks)
            masses = np.repeat(memory.sketches.weights / memory.sketches.weights.sum(), POINTS)
        return Comparisons.of_cells(
            points.size,
            cells,
            pairs,
            weights=np.repeat(memory.blocks[:, 2], len(pairs) // len(memory.blocks)),
            targets=() if self.each_other else list(memory.target),
            row_weights=masses,
            names=names,
        )


def update_weights(
    memory: OnlineMemory, theta: NDArray[np.float64], batch: Batch, step: UpdateStep
) -> tuple[OnlineMemory, NDArray[np.float64]]:
    """Return memory and weights after a batch; the arguments are not changed.

    Parameters
    ----------
    memory : OnlineMemory
    theta : ndarray of shape (1 or n_groups, n_features + 1)
        The intercept last.
    batch : Batch
    step : UpdateStep

    Returns
    -------
    OnlineMemory, ndarray
    """
    cells = batch.cells(memory.blocks)
    memory = replace(
        memory,
        sketches=memory.sketches.seen(
            batch.X, batch.predictors(theta), cells, batch.mass, step.half_life, loss=memory.loss
        ),
        n_batches=memory.n_batches + 1,
        n_rows=memory.n_rows + batch.X.shape[0],
    )
    if batch.labels is not None and memory.anchor > 0.0 and step.n_updates:
        memory, theta = _learn_labels(memory, theta, batch)
    if step.n_updates:
        memory, theta = _descend(memory, theta, step)
    return memory, theta


def _descend(
    memory: OnlineMemory, theta: NDArray[np.float64], step: UpdateStep
) -> tuple[OnlineMemory, NDArray[np.float64]]:
    """Move theta down the penalty's gradient and back to the centre, in a few updates; the sketches follow."""
    comparisons = step.comparisons(memory)
    n_groups = memory.n_groups
    pairs_of_a_group = n_groups - 1 if step.each_other and n_groups <= MAX_PAIRED_GROUPS else 1
    size = memory.size or _FRACTION / max(memory.anchor + memory.parity * pairs_of_a_group, 1e-300)
    value, gradients = _penalty_at(memory, theta, comparisons, step)
    for _ in range(step.n_updates):
        for _ in range(_MAX_TRIALS):
            change, used = _bounded_change(memory, theta, gradients, size)
            if not np.isfinite(change).all():  # columns beyond the range of floating-point numbers
                return memory, theta
            moved = memory.moved(change)
            new_value, new_gradients = _penalty_at(moved, theta + change, comparisons, step)
            shrink = 1.0 if memory.size else _shrinkage(memory, gradients, change, used, new_value - value)
            if shrink == 1.0:
                memory, theta, value, gradients = moved, theta + change, new_value, new_gradients
                break
            size = used * shrink
    return memory, theta


def _penalty_at(
    memory: OnlineMemory, theta: NDArray[np.float64], comparisons: Comparisons, step: UpdateStep
) -> tuple[float, NDArray[np.float64]]:
    """Return the weighted penalty of the sketches, and its gradient with respect to theta."""
    predictors = memory.sketches.points()
    scores = memory.loss.scores(predictors)
    if comparisons.n_rows == scores.size:
        penalty = step.penalty.value_and_gradient(scores.ravel(), comparisons)
        value, slopes = penalty.value, penalty.gradient.reshape(scores.shape) * scores.shape[1]
    else:
        terms = step.penalty.slice_terms(scores, memory.sketches.weights, comparisons)
        value, slopes = terms.value, np.array(terms.slopes)
    gradients = memory.sketches.mean_gradients(predictors, memory.parity * slopes * memory.loss.score_slopes(scores))
    if len(theta) == 1:
        return memory.parity * value, gradients.sum(axis=0, keepdims=True)
    return memory.parity * value, gradients.reshape(len(memory.blocks), *theta.shape).sum(axis=0)


def _bounded_change(
    memory: OnlineMemory, theta: NDArray[np.float64], gradients: NDArray[np.float64], size: float
) -> tuple[NDArray[np.float64], float]:
    """Return a change of theta and its step size: the given one, or the largest that moves no group too far."""
    with np.errstate(all="ignore"):
        change = -size * memory.step_for(gradients)
        change -= min(1.0, size * memory.anchor * memory.curvature) * (theta - memory.centre)
        shift = float(np.abs(memory.sketches.mean_moves(memory.by_cell(change))).max())
    if not shift > _MAX_SHIFT:
        return change, size
    return change * (_MAX_SHIFT / shift), size * (_MAX_SHIFT / shift)


def _shrinkage(
    memory: OnlineMemory, gradients: NDArray[np.float64], change: NDArray[np.float64], size: float, difference: float
) -> float:
    """Return 1 where the penalty lies below the parabola that the step minimises, and else a factor of the size.

    Without this test theta would oscillate around parity: the curvature of the penalty depends on the distance, its
    scale, and how far apart the groups are. The parabola is that of proximal gradient steps (Beck and Teboulle, 2009),
    with its norm bounded from below by the Cauchy-Schwarz inequality.
    """
    predicted = float((gradients * change).sum())
    steepness = float((gradients * memory.step_for(gradients)).sum())
    if steepness <= 0.0:
        return 1.0
    allowed, curved = predicted**2 / (2.0 * size * steepness), difference - predicted
    if curved <= allowed + _ROUNDING * abs(predicted):
        return 1.0
    return min(0.5, max(0.1, 0.9 * allowed / curved))


def _learn_labels(
    memory: OnlineMemory, theta: NDArray[np.float64], batch: Batch
) -> tuple[OnlineMemory, NDArray[np.float64]]:
    """Let labels move the centre by a step of online regression; theta and the sketches go along."""
    if batch.labels is None or batch.size <= 0.0:
        return memory, theta
    residuals = memory.loss.residuals(batch.predictors(memory.centre), batch.labels)
    residuals *= batch.mass / batch.size
    if len(theta) == 1:
        gradients = np.append(np.asarray(batch.X.T @ residuals, dtype=np.float64), residuals.sum())[None]
    else:
        gradients = np.array([np.append(batch.X[r].T @ residuals[r], residuals[r].sum()) for r in batch.groups.rows])
    # As if the centre had been learned from so many rows, however many there were, so that it can still change.
    prior_rows = max(memory.sketches.memory, 10.0 * memory.trace)
    change = -(batch.size / (batch.size + prior_rows) / memory.loss.max_curvature) * memory.step_for(gradients)
    if not np.isfinite(change).all():
        return memory, theta
    return replace(memory.moved(change), centre=memory.centre + change), theta + change
