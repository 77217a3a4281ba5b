r"""One batch of a stream -> a model a little nearer to parity: what is remembered, and how theta moves.

Of each group a sketch is kept: a histogram of its logits, its mean features and their covariance with the logit. A
step of theta moves a logit by :math:`\delta \cdot x`, in the mean over rows of logit l by
:math:`\delta \cdot (\mu + c (l - m))`, c the regression of the features on the logit. So a sketch can follow theta
without a row, and the gradient of the transport term,

.. math:: E[\,\mathrm{slope}(s)\, s (1 - s)\, x\,] = E[\,\mathrm{slope}(s)\, s (1 - s)\, E[x \mid l]\,],

needs none either. It has the noise of all rows remembered, not that of a batch, which may be a single row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.penalties import Comparisons, TransportPenalty
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.online.sketches import Sketches

__all__ = ["Adjustment", "Batch", "Rule", "adjust"]

_FRACTION = 0.5  # of the step that is stable, as in `steps`
_FARTHEST = 0.5  # logits that the mean row of a group may move in one update
_MOST_TRIALS = 8  # of sizes for one update
_ROUNDING = 1e-6
_STEEPEST = 0.25  # curvature of the logistic loss in a logit


@dataclass(frozen=True, eq=False)
class Adjustment:
    """What ``partial_fit`` remembers between two batches; its size does not depend on how many there were.

    Attributes
    ----------
    parity, anchor : float
        Weights of the transport term and of the anchor.
    curvature : float
        Mean slope of the logistic function at the scores of training.
    size, trace : float
        A named step of theta, or 0 where it sets itself; and what drawing one row adds to the curvature.
    origin, unit : ndarray of shape (n_features,)
        Units of the columns.
    scale, matrix : ndarray
        What a gradient is multiplied with in these units: a number for each column, or, where there is one, a matrix.
    centre : ndarray of shape (1 or n_groups, n_features + 1)
        The model that the anchor holds to: that of the last ``fit``, and what labels have taught since.
    target : ndarray of shape (64,)
        The target; each point a mean of several people's scores.
    sketches : Sketches
        What is known of each group.
    n_batches, n_rows : int
        Seen so far.
    """

    parity: float
    anchor: float
    curvature: float
    size: float
    trace: float
    origin: NDArray[np.float64]
    unit: NDArray[np.float64]
    scale: NDArray[np.float64]
    matrix: NDArray[np.float64]
    centre: NDArray[np.float64]
    target: NDArray[np.float64]
    sketches: Sketches
    n_batches: int = 0
    n_rows: int = 0

    def widened(self, n_groups: int, *, each_other: bool) -> Adjustment:
        """Make room for groups behind those known. A new one begins like the target, or like the others' mean."""
        known = len(self.sketches)
        if n_groups == known:
            return self
        like = np.mean(self.sketches.scores(), axis=0) if each_other else self.target
        centre = widened_weights(self.centre, n_groups)
        return replace(self, centre=centre, sketches=self.sketches.widened(n_groups, like))

    def step_for(self, gradients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn gradients for raw columns (intercept last) into steps of theta for raw columns."""
        own = gradients.copy()
        own[:, :-1] = (gradients[:, :-1] - self.origin * gradients[:, -1:]) / self.unit
        own = own @ self.matrix if len(self.matrix) else own * self.scale
        own[:, :-1] /= self.unit
        own[:, -1] -= own[:, :-1] @ self.origin
        return own


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a stream: features, groups, the mass of each row (1 without weights), and labels, 0 or 1, if known."""

    X: Any
    groups: Groups
    mass: NDArray[np.float64]
    labels: NDArray[np.float64] | None

    @property
    def size(self) -> float:
        """Rows, or the sum of their weights."""
        return float(self.mass.sum())

    def logits(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logit of each row; its group's where each has weights of its own."""
        if len(theta) == 1:
            return np.asarray(self.X @ theta[0, :-1] + theta[0, -1], dtype=np.float64)
        logits = np.zeros(self.X.shape[0])
        for a, rows in enumerate(self.groups.rows):
            logits[rows] = self.X[rows] @ theta[a, :-1] + theta[a, -1]
        return logits


@dataclass(frozen=True, eq=False)
class Rule:
    """How batches are used: the penalty, what groups are compared with, the memory, and the updates of one batch."""

    penalty: TransportPenalty
    each_other: bool
    half_life: float
    updates: int

    def comparisons(self, n_groups: int, target: NDArray[np.float64]) -> Comparisons:
        """Return the pairs of groups, or the pairs of each group and the target."""
        cells = [np.array([group]) for group in range(n_groups)]  # the rows are in the sketches
        if self.each_other:
            return Comparisons.of_cells(n_groups, cells, list(combinations(range(n_groups), 2)))
        return Comparisons.of_cells(n_groups, cells, [(group, n_groups) for group in range(n_groups)], targets=[target])


def adjust(
    state: Adjustment, theta: NDArray[np.float64], batch: Batch, rule: Rule
) -> tuple[Adjustment, NDArray[np.float64]]:
    """Take a batch into the sketches, then move theta along the penalty on them; nothing that is given is changed.

    Parameters
    ----------
    state : Adjustment
    theta : ndarray of shape (1 or n_groups, n_features + 1)
        The intercept last.
    batch : Batch
    rule : Rule

    Returns
    -------
    Adjustment, ndarray
        Both new.
    """
    state = replace(
        state,
        sketches=state.sketches.seen(batch.X, batch.logits(theta), batch.groups, batch.mass, rule.half_life),
        n_batches=state.n_batches + 1,
        n_rows=state.n_rows + batch.X.shape[0],
    )
    if batch.labels is not None and state.anchor > 0.0 and rule.updates:
        state, theta = _taught(state, theta, batch)
    if rule.updates:
        state, theta = _followed(state, theta, rule)
    return state, theta


def _followed(state: Adjustment, theta: NDArray[np.float64], rule: Rule) -> tuple[Adjustment, NDArray[np.float64]]:
    """Move theta down the penalty's gradient and back to the centre, in a few updates; the sketches follow."""
    n_groups = len(state.sketches)
    comparisons = rule.comparisons(n_groups, state.target)
    pairs_of_a_group = n_groups - 1 if rule.each_other else 1
    size = state.size or _FRACTION / max(state.anchor + state.parity * pairs_of_a_group, 1e-300)
    value, gradients = _penalty_at(state, theta, comparisons, rule)
    for _ in range(rule.updates):
        for _ in range(_MOST_TRIALS):
            step, used = _step(state, theta, gradients, size)
            if not np.isfinite(step).all():  # columns beyond what numbers can hold
                return state, theta
            moved = replace(state, sketches=state.sketches.moved(step))
            new_value, new_gradients = _penalty_at(moved, theta + step, comparisons, rule)
            shrink = 1.0 if state.size else _shrinkage(state, gradients, step, used, new_value - value)
            if shrink == 1.0:
                state, theta, value, gradients = moved, theta + step, new_value, new_gradients
                break
            size = used * shrink
    return state, theta


def _penalty_at(
    state: Adjustment, theta: NDArray[np.float64], comparisons: Comparisons, rule: Rule
) -> tuple[float, NDArray[np.float64]]:
    """Return the weighted penalty of the sketches, and its gradient with respect to theta."""
    logits = state.sketches.points()
    scores = sigmoid(logits)
    terms = rule.penalty.slice_terms(scores, state.sketches.weights, comparisons)
    gradients = state.sketches.weighed(logits, state.parity * np.array(terms.slopes) * scores * (1.0 - scores))
    return state.parity * terms.value, gradients.sum(axis=0, keepdims=True) if len(theta) == 1 else gradients


def _step(
    state: Adjustment, theta: NDArray[np.float64], gradients: NDArray[np.float64], size: float
) -> tuple[NDArray[np.float64], float]:
    """Return a step, and its size: the given one, or the largest that moves no group's mean row too far."""
    with np.errstate(all="ignore"):
        step = -size * state.step_for(gradients)
        step -= min(1.0, size * state.anchor * state.curvature) * (theta - state.centre)
        farthest = float(np.abs(state.sketches.mean_moves(step)).max())
    if not farthest > _FARTHEST:
        return step, size
    return step * (_FARTHEST / farthest), size * (_FARTHEST / farthest)


def _shrinkage(
    state: Adjustment, gradients: NDArray[np.float64], step: NDArray[np.float64], size: float, change: float
) -> float:
    """Return 1 where the penalty lies below the parabola that the step minimises, and else a factor of the size.

    Without this test, theta would swing around parity: how much the penalty is curved depends on the distance, its
    scale, and how far apart the groups are. The parabola is that of proximal gradient steps (Beck and Teboulle, 2009),
    with its norm bounded from below by the Cauchy-Schwarz inequality.
    """
    predicted = float((gradients * step).sum())
    steepness = float((gradients * state.step_for(gradients)).sum())
    if steepness <= 0.0:
        return 1.0
    allowed, curved = predicted**2 / (2.0 * size * steepness), change - predicted
    if curved <= allowed + _ROUNDING * abs(predicted):
        return 1.0
    return min(0.5, max(0.1, 0.9 * allowed / curved))


def _taught(state: Adjustment, theta: NDArray[np.float64], batch: Batch) -> tuple[Adjustment, NDArray[np.float64]]:
    """Let labels move the centre by a step of online logistic regression; theta and the sketches go along."""
    if batch.labels is None or batch.size <= 0.0:
        return state, theta
    push = batch.mass / batch.size * (sigmoid(batch.logits(state.centre)) - batch.labels)
    if len(theta) == 1:
        gradients = np.append(np.asarray(batch.X.T @ push, dtype=np.float64), push.sum())[None]
    else:
        gradients = np.array([np.append(batch.X[r].T @ push[r], push[r].sum()) for r in batch.groups.rows])
    # As if the centre had been learned from so many rows, however many there were, so that it can still change.
    behind = max(state.sketches.memory, 10.0 * state.trace)
    step = -(batch.size / (batch.size + behind) / _STEEPEST) * state.step_for(gradients)
    if not np.isfinite(step).all():
        return state, theta
    state = replace(state, centre=state.centre + step, sketches=state.sketches.moved(step))
    return state, theta + step


def widened_weights(theta: NDArray[np.float64], n_groups: int) -> NDArray[np.float64]:
    """Where each group has weights, give new ones the mean of the others'."""
    if len(theta) == 1 or n_groups <= len(theta):
        return theta
    return np.concatenate((theta, np.tile(theta.mean(axis=0), (n_groups - len(theta), 1))))
