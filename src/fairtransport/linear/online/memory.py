r"""What ``partial_fit`` remembers between two batches: a sketch of each group, and step sizes.

Of each group, or of its rows with one label or in one stratum, a sketch is kept: a histogram of its linear
predictors (logits, for a classifier), its mean features and their covariance with the predictor. A step of theta moves
a predictor by :math:`\delta \cdot x`, in the mean over rows of predictor l by :math:`\delta \cdot (\mu + c (l - m))`, c
the regression of the features on the predictor. So a sketch can follow theta without a row, and the gradient of
the transport term,

.. math:: E[\,\mathrm{slope}(s)\, s'(l)\, x\,] = E[\,\mathrm{slope}(s)\, s'(l)\, E[x \mid l]\,],

needs none either. Its noise is that of all rows remembered, not that of a batch, which may be a single row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.criteria import MAX_PAIRED_GROUPS
from fairtransport.linear.losses import LOSSES
from fairtransport.linear.online.sketches import Sketches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.losses import Loss

__all__ = ["Batch", "OnlineMemory", "widened_weights"]

_MIN_DISTANCE = 1e-9


@dataclass(frozen=True, eq=False)
class OnlineMemory:
    """Memory of ``partial_fit``; its size does not depend on the number of batches.

    Attributes
    ----------
    loss_name : str
        Name of the loss of the model.
    parity, anchor : float
        Weights of the transport term and of the anchor.
    curvature : float
        Mean curvature of the loss at the scores of training.
    size, trace : float
        A step size of theta that the user has set, or 0 where it is chosen; and what drawing one row adds to the
        curvature.
    origin, unit : ndarray of shape (n_features,)
        Units of the columns.
    scale, matrix : ndarray
        What a gradient in these units is multiplied with: a number for each column or, where it is not empty, a matrix.
    centre : ndarray of shape (1 or n_groups, n_features + 1)
        The model that the anchor is centred at: that of the last ``fit``, and what labels have taught since.
    blocks : ndarray of shape (n_blocks, 3)
        Where groups are compared: the label (0 or 1; -1 for all rows), the stratum (-1 for all rows) and the weight.
        One block for demographic parity.
    target : ndarray of shape (n_blocks, 64)
        The target of each block; each point is a mean of several people's scores.
    sketches : Sketches
        What is known of each group in each block; the groups of a block follow each other.
    n_batches, n_rows : int
        Seen so far.
    """

    loss_name: str
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
    blocks: NDArray[np.float64]
    target: NDArray[np.float64]
    sketches: Sketches
    n_batches: int = 0
    n_rows: int = 0

    @property
    def loss(self) -> Loss:
        """The loss of the model."""
        return LOSSES[self.loss_name]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.sketches) // len(self.blocks)

    def widened(self, n_groups: int, *, each_other: bool) -> OnlineMemory:
        """Return the memory of more groups. A new one starts like the target, or like the mean of the others."""
        if n_groups == self.n_groups:
            return self
        parity, parts = self.parity, []
        for sketches, target in zip(self.sketches.split(len(self.blocks)), self.target, strict=True):
            scores = self.loss.scores(sketches.points())
            like = self.loss.predictors(np.mean(scores, axis=0) if each_other else target)
            parts.append(sketches.widened(n_groups, like))
            if each_other and len(scores) <= MAX_PAIRED_GROUPS < n_groups:
                parity += self.parity * (_pairs_per_group(scores) - 1.0) / len(self.blocks)
        centre = widened_weights(self.centre, n_groups)
        return replace(self, parity=parity, centre=centre, sketches=Sketches.joined(parts))

    def moved(self, change: NDArray[np.float64]) -> OnlineMemory:
        """Return the memory after a change of theta, which the sketches follow."""
        return replace(self, sketches=self.sketches.moved(self.by_cell(change)))

    def by_cell(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a change of theta for each sketch, or the one of all."""
        return change if len(change) == 1 else np.tile(change, (len(self.blocks), 1))

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
    """Rows of a stream.

    Attributes
    ----------
    X : ndarray or csr_matrix
    groups : Groups
    mass : ndarray
        Weight of each row, 1 without weights.
    labels : ndarray or None
        0 or 1, or a standardised y, if known.
    strata : ndarray or None
        Number of each row's stratum; those of no known stratum are in no block.
    """

    X: Any
    groups: Groups
    mass: NDArray[np.float64]
    labels: NDArray[np.float64] | None = None
    strata: NDArray[np.int64] | None = None

    def cells(self, blocks: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """Return the rows of each group in each block."""
        cells: list[NDArray[np.int64]] = []
        for label, stratum, _ in blocks:
            inside = np.ones(len(self.mass), dtype=bool)
            for column, value in ((self.labels, label), (self.strata, stratum)):
                if value >= 0:
                    inside &= False if column is None else column == value
            cells += list(self.groups.rows if inside.all() else (rows[inside[rows]] for rows in self.groups.rows))
        return cells

    @property
    def size(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.mass.sum())

    def predictors(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the linear predictor of each row, by the weights of its group where each has its own."""
        if len(theta) == 1:
            return np.asarray(self.X @ theta[0, :-1] + theta[0, -1], dtype=np.float64)
        predictors = np.zeros(self.X.shape[0])
        for group, rows in enumerate(self.groups.rows):
            predictors[rows] = self.X[rows] @ theta[group, :-1] + theta[group, -1]
        return predictors


def widened_weights(theta: NDArray[np.float64], n_groups: int) -> NDArray[np.float64]:
    """Return weights of more groups: where each group has its own, new ones have the mean of the others."""
    if len(theta) == 1 or n_groups <= len(theta):
        return theta
    return np.concatenate((theta, np.tile(theta.mean(axis=0), (n_groups - len(theta), 1))))
