r"""What ``partial_fit`` remembers between two batches: a sketch of each group, and step sizes.

Of each group a sketch is kept: a histogram of its logits, its mean features and their covariance with the logit. A
step of theta moves a logit by :math:`\delta \cdot x`, in the mean over rows of logit l by
:math:`\delta \cdot (\mu + c (l - m))`, c the regression of the features on the logit. So a sketch can follow theta
without a row, and the gradient of the transport term,

.. math:: E[\,\mathrm{slope}(s)\, s (1 - s)\, x\,] = E[\,\mathrm{slope}(s)\, s (1 - s)\, E[x \mid l]\,],

needs none either. Its noise is that of all rows remembered, not that of a batch, which may be a single row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.criteria import MAX_PAIRED_GROUPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.online.sketches import Sketches

__all__ = ["Batch", "OnlineMemory", "widened_weights"]

_MIN_DISTANCE = 1e-9


@dataclass(frozen=True, eq=False)
class OnlineMemory:
    """Memory of ``partial_fit``; its size does not depend on the number of batches.

    Attributes
    ----------
    parity, anchor : float
        Weights of the transport term and of the anchor.
    curvature : float
        Mean slope of the logistic function at the scores of training.
    size, trace : float
        A step size of theta that the user has set, or 0 where it is chosen; and what drawing one row adds to the
        curvature.
    origin, unit : ndarray of shape (n_features,)
        Units of the columns.
    scale, matrix : ndarray
        What a gradient in these units is multiplied with: a number for each column or, where it is not empty, a matrix.
    centre : ndarray of shape (1 or n_groups, n_features + 1)
        The model that the anchor is centred at: that of the last ``fit``, and what labels have taught since.
    target : ndarray of shape (64,)
        The target; each point is a mean of several people's scores.
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

    def widened(self, n_groups: int, *, each_other: bool) -> OnlineMemory:
        """Return the memory of more groups. A new one starts like the target, or like the mean of the others."""
        if n_groups == len(self.sketches):
            return self
        scores = self.sketches.scores()
        like = np.mean(scores, axis=0) if each_other else self.target
        parity = self.parity
        if each_other and len(scores) <= MAX_PAIRED_GROUPS < n_groups:
            parity *= _pairs_per_group(scores)
        centre = widened_weights(self.centre, n_groups)
        return replace(self, parity=parity, centre=centre, sketches=self.sketches.widened(n_groups, like))

    def step_for(self, gradients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return steps of theta for gradients; both for the columns as given, the intercept last."""
        steps = gradients.copy()
        steps[:, :-1] = (gradients[:, :-1] - self.origin * gradients[:, -1:]) / self.unit
        steps = steps @ self.matrix if len(self.matrix) else steps * self.scale
        steps[:, :-1] /= self.unit
        steps[:, -1] -= steps[:, :-1] @ self.origin
        return steps

    def to_scaled(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights for scaled columns: each in the unit of its column, the intercept at the origin."""
        return np.column_stack((theta[:, :-1] * self.unit, theta[:, -1] + theta[:, :-1] @ self.origin))


def _pairs_per_group(scores: NDArray[np.float64]) -> float:
    """Return the sum of the distances of all pairs in units of that of each group to everyone.

    Where new groups make the comparison change from one to the other, the penalty keeps its weight.
    """
    between = sum(float(np.abs(scores[:a] - scores[a]).mean(axis=1).sum()) for a in range(1, len(scores)))
    to_everyone = float(np.abs(scores - scores.mean(axis=0)).mean(axis=1).sum())
    return between / to_everyone if to_everyone > _MIN_DISTANCE else 0.5 * len(scores)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a stream: features, groups, the mass of each row (1 without weights), and labels, 0 or 1, if known."""

    X: Any
    groups: Groups
    mass: NDArray[np.float64]
    labels: NDArray[np.float64] | None = None

    @property
    def size(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.mass.sum())

    def logits(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logit of each row, by the weights of its group where each has its own."""
        if len(theta) == 1:
            return np.asarray(self.X @ theta[0, :-1] + theta[0, -1], dtype=np.float64)
        logits = np.zeros(self.X.shape[0])
        for group, rows in enumerate(self.groups.rows):
            logits[rows] = self.X[rows] @ theta[group, :-1] + theta[group, -1]
        return logits


def widened_weights(theta: NDArray[np.float64], n_groups: int) -> NDArray[np.float64]:
    """Return weights of more groups: where each group has its own, new ones have the mean of the others."""
    if len(theta) == 1 or n_groups <= len(theta):
        return theta
    return np.concatenate((theta, np.tile(theta.mean(axis=0), (n_groups - len(theta), 1))))
