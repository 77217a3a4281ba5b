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
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.estimators.problem import sigmoid
from fairtransport.penalties.pulls import NODES, Pulls, problems_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.sketches import Sketches
    from fairtransport.groups import Groups
    from fairtransport.transport.dual import DualProblem

__all__ = ["Adjustment", "Batch", "Rule", "adjust"]

_CLIMBS, _FIRST_CLIMBS = 50, 200  # steps of the duals for each update: they must be ahead of theta, or both swing
_FRACTION = 0.5  # of the step that is stable, as in `steps`
_FARTHEST = 0.5  # logits that the mean row of a group may move in one update
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
    f, h, selves : ndarray
        Coefficients of the dual variables of each problem, and of each group with itself.
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
    f: NDArray[np.float64]
    h: NDArray[np.float64]
    selves: NDArray[np.float64]
    n_batches: int = 0
    n_rows: int = 0

    def widened(self, n_groups: int, *, each_other: bool) -> Adjustment:
        """Make room for groups behind those known. A new one begins like the target, or like the others' mean."""
        known = len(self.sketches)
        if n_groups == known:
            return self
        like = np.mean(self.sketches.pictures(), axis=0) if each_other else self.target
        problems = problems_of(n_groups, each_other=each_other)
        before = {pair: i for i, pair in enumerate(problems_of(known, each_other=each_other))}
        f, h = np.zeros((2, len(problems), self.f.shape[1]))
        for place, (a, b) in enumerate(problems):
            was = before.get((a, b) if each_other else (a, known))
            if was is not None:
                f[place], h[place] = self.f[was], self.h[was]
        selves = np.concatenate((self.selves, np.zeros((n_groups - known, self.selves.shape[1]))))
        centre = widened_weights(self.centre, n_groups)
        sketches = self.sketches.widened(n_groups, like)
        return replace(self, centre=centre, sketches=sketches, f=f, h=h, selves=selves)

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


@dataclass(frozen=True)
class Rule:
    """How batches are used: the transport problems, the memory, and how many updates a batch is worth."""

    dual: DualProblem | None
    dual_step: float
    each_other: bool
    half_life: float
    updates: int


def adjust(
    state: Adjustment, theta: NDArray[np.float64], batch: Batch, rule: Rule
) -> tuple[Adjustment, NDArray[np.float64]]:
    """Look at a batch, then move duals and theta on what is remembered; nothing that is given is changed.

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
    first = state.n_batches == 0
    state = replace(
        state,
        sketches=state.sketches.seen(batch.X, batch.logits(theta), batch.groups, batch.mass, rule.half_life),
        n_batches=state.n_batches + 1,
        n_rows=state.n_rows + batch.X.shape[0],
    )
    if batch.labels is not None and state.anchor > 0.0 and rule.updates:
        state, theta = _taught(state, theta, batch)
    pulls = Pulls(len(state.sketches), rule.dual, each_other=rule.each_other)
    pulls.f, pulls.h, pulls.selves = state.f.copy(), state.h.copy(), state.selves.copy()
    for update in range(max(1, rule.updates)):
        climbs = _FIRST_CLIMBS if first and update == 0 else _CLIMBS
        pictures = state.sketches.pictures()
        if rule.dual is None:
            slopes = pulls.coupled(pictures, state.target)
        else:
            slopes = pulls.climbed(pictures, state.target, dual=rule.dual, step=rule.dual_step, n_climbs=climbs)
        if rule.updates:
            state, theta = _followed(state, theta, slopes, rule)
    return replace(state, f=pulls.f, h=pulls.h, selves=pulls.selves), theta


def _followed(
    state: Adjustment, theta: NDArray[np.float64], slopes: NDArray[np.float64], rule: Rule
) -> tuple[Adjustment, NDArray[np.float64]]:
    """Make one update of theta along the slopes and back to the centre; the sketches follow."""
    logits, n_groups = state.sketches.points(), len(slopes)
    scores = sigmoid(logits)
    pushes = np.array([np.interp(s, NODES, own) for s, own in zip(scores, slopes, strict=True)])
    pushes *= state.parity * scores * (1.0 - scores)
    gradients = state.sketches.weighed(logits, pushes)
    if len(theta) == 1:
        gradients = gradients.sum(axis=0, keepdims=True)
    size = state.size
    if size == 0.0:
        size = _FRACTION / max(state.anchor + state.parity * (n_groups - 1 if rule.each_other else 1), 1e-300)
    with np.errstate(all="ignore"):
        step = -size * state.step_for(gradients)
        step -= min(1.0, size * state.anchor * state.curvature) * (theta - state.centre)
        farthest = float(np.abs(state.sketches.mean_moves(step)).max())
    if not (np.isfinite(farthest) and np.isfinite(step).all()):  # columns beyond what numbers can hold
        return state, theta
    step *= min(1.0, _FARTHEST / farthest) if farthest > 0.0 else 1.0
    return replace(state, sketches=state.sketches.moved(step)), theta + step


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
