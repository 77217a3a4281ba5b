"""The arrays that the fused loop reads: features, labels, groups and target of one training problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fairtransport.transport.kernels import fill_alias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["TrainingProblem", "sigmoid"]


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute the logistic function without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, labels and groups, laid out for the compiled loop.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The features as validated.
    labels : ndarray
        0 or 1 for each row.
    groups : Groups
        Row lists; they may overlap.
    share : ndarray
        Each group's share of the total weight; how the anchor loss weighs the groups' batches.
    weights : ndarray or None
        Row weights; rows are drawn in proportion to them.
    target : ndarray
        Scores of equal mass that stand for the target distribution.
    """

    X: Any
    labels: NDArray[Any]
    groups: Groups
    share: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    target: NDArray[Any]
    accept: NDArray[np.uint64]
    alias: NDArray[np.int64]

    @classmethod
    def build(
        cls,
        X: Any,
        labels: NDArray[Any],
        groups: Groups,
        target: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> TrainingProblem:
        """Lay out; with weights also the tables for drawing rows in proportion."""
        dtype = X.dtype
        mass = groups.counts.astype(float) if weights is None else np.array([weights[r].sum() for r in groups.rows])
        if not np.all(mass > 0):
            empty = int(np.count_nonzero(mass <= 0))
            raise ValueError(
                f"{empty} of {len(mass)} groups have total sample_weight 0; drop their rows or weigh them."
            )
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = np.concatenate(([0], np.cumsum(groups.counts)))
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(groups.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        return cls(X, labels.astype(dtype), groups, mass / mass.sum(), weights, target.astype(dtype), accept, alias)

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def feature_arrays(self) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64], int]:
        """Values, column numbers, row starts, and the width (0: sparse) as the loop wants them."""
        if sparse.issparse(self.X):
            return self.X.data, self.X.indices.astype(np.int32, copy=False), self.X.indptr.astype(np.int64), 0
        dense = np.ascontiguousarray(self.X).ravel()
        return dense, np.zeros(0, np.int32), np.zeros(0, np.int64), self.n_columns

    def group_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All groups' row numbers end to end, and where each group starts."""
        starts = np.concatenate(([0], np.cumsum(self.groups.counts))).astype(np.int64)
        return np.concatenate(self.groups.rows).astype(np.int64), starts
