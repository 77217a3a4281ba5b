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

__all__ = ["PackedRows", "TrainingProblem", "sigmoid"]

# A column of a sparse matrix with more non-zeros than this share is cheaper as a dense one.
_DENSE_SHARE = 0.5


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute the logistic function without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows as few bytes: dense columns first, then where a row is 1, then the rest with values.

    A table of numbers and one-hot columns becomes a short dense block and a few column numbers, about one
    cache line a row.

    Attributes
    ----------
    dense : ndarray of shape (n_rows, n_dense)
    unit_columns, unit_starts : ndarray
        Columns with only zeros and ones, as a CSR pattern without values.
    values, columns, starts : ndarray
        All others, as CSR. Column numbers count in the packed order.
    order : ndarray of shape (n_columns,)
        ``order[j]`` is the original number of packed column j.
    """

    dense: NDArray[Any]
    unit_columns: NDArray[np.int32]
    unit_starts: NDArray[np.int64]
    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def pack(cls, X: Any) -> PackedRows:
        """Lay out a dense or CSR matrix."""
        n_rows, n_columns = X.shape
        nothing = np.zeros(0, np.int32), np.zeros(n_rows + 1, np.int64)
        if not sparse.issparse(X):
            dense = np.ascontiguousarray(X)
            return cls(dense, *nothing, np.zeros(0, X.dtype), *nothing, np.arange(n_columns))
        X = sparse.csr_matrix(X, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        filled = np.bincount(X.indices, minlength=n_columns)
        other = np.bincount(X.indices[X.data != 1.0], minlength=n_columns)
        is_dense = filled > _DENSE_SHARE * n_rows
        is_unit = ~is_dense & (other == 0)
        kinds = [np.flatnonzero(mask) for mask in (is_dense, is_unit, ~is_dense & ~is_unit)]
        order = np.concatenate(kinds)
        blocks = [X[:, kind].tocsr() for kind in kinds]
        first_unit, first_value = len(kinds[0]), len(kinds[0]) + len(kinds[1])
        return cls(
            np.ascontiguousarray(blocks[0].toarray()),
            (blocks[1].indices + first_unit).astype(np.int32),
            blocks[1].indptr.astype(np.int64),
            blocks[2].data,
            (blocks[2].indices + first_value).astype(np.int32),
            blocks[2].indptr.astype(np.int64),
            order,
        )

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return what the loop reads, in its order."""
        return self.dense, self.unit_columns, self.unit_starts, self.values, self.columns, self.starts


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, labels and groups, laid out for the compiled loop.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The features as validated.
    rows : PackedRows
        The same, packed.
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
    rows: PackedRows
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
        mass = groups.counts.astype(float) if weights is None else np.array([weights[r].sum() for r in groups.rows])
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = np.concatenate(([0], np.cumsum(groups.counts)))
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(groups.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        return cls(
            X=X,
            rows=PackedRows.pack(X),
            labels=labels.astype(X.dtype),
            groups=groups,
            share=mass / mass.sum(),
            weights=weights,
            target=target.astype(X.dtype),
            accept=accept,
            alias=alias,
        )

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def group_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All groups' row numbers end to end, and where each group starts."""
        starts = np.concatenate(([0], np.cumsum(self.groups.counts))).astype(np.int64)
        return np.concatenate(self.groups.rows).astype(np.int64), starts
