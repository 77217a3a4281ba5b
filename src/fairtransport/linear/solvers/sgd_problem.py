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

__all__ = ["PackedRows", "TrainingProblem", "as_copies"]

# A column of a sparse matrix with more non-zeros than this share is cheaper as a dense one. Columns of zeros and ones
# are tried with each of several shares.
_DENSE_SHARE = 0.5
_UNIT_SHARES = (0.5, 0.7, 0.9, 1.0)
_LINE = 64  # bytes that a processor fetches at a time
_FEW_COPIES = 10_000


def as_copies(weights: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """Return each row's number as often as its weight says, or None where that would be no copies or too many.

    Drawing rows by weight gives what copies give only in the long run; copies give it exactly.
    """
    if weights is None or np.any(weights != np.rint(weights)) or weights.sum() > max(_FEW_COPIES, 2 * weights.size):
        return None
    return np.repeat(np.arange(weights.size), weights.astype(np.int64))


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows as few bytes: dense columns first, then where a row is 1, then the rest with values.

    A table of numbers and one-hot columns becomes one record a row: a short dense block and a fixed number of column
    numbers ("slots"), side by side, so that a row is one or two cache lines. Ones beyond the slots stand with the
    values.

    Attributes
    ----------
    dense : ndarray of shape (n_rows, any)
        The records. The first ``n_dense`` columns are the row's dense ones.
    words : ndarray of shape (n_rows, any) and dtype uint64
        The same bytes. From ``first_word`` on, ``n_words`` words of four slots each: columns where the row is 1. Slots
        that are not needed hold the number after the intercept's.
    values, columns, starts : ndarray
        All others, as CSR. Column numbers count in the packed order.
    order : ndarray of shape (n_columns,)
        ``order[j]`` is the original number of packed column j.
    """

    dense: NDArray[Any]
    n_dense: int
    words: NDArray[np.uint64]
    first_word: int
    n_words: int
    values: NDArray[Any]
    columns: NDArray[np.uint32]
    starts: NDArray[np.uint64]
    order: NDArray[np.int64]

    @classmethod
    def pack(cls, X: Any, rows: NDArray[np.int64] | None = None) -> PackedRows:
        """Lay out a dense matrix, or a CSR matrix with its rows in the order of ``rows``."""
        if not sparse.issparse(X):
            nothing = np.zeros(0, X.dtype), np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.arange(X.shape[1])
            return cls(np.ascontiguousarray(X), X.shape[1], np.zeros((0, 0), np.uint64), 0, 0, *nothing)
        X = sparse.csr_matrix(X, copy=True) if rows is None else sparse.csr_matrix(X)[rows]
        X.sum_duplicates()
        X.eliminate_zeros()
        is_dense, is_unit, n_slots = _plan(X)
        kinds = [np.flatnonzero(mask) for mask in (is_dense, is_unit, ~is_dense & ~is_unit)]
        block, ones, others = (X[:, kind].tocsr() for kind in kinds)
        n_dense, first_other = len(kinds[0]), len(kinds[0]) + len(kinds[1])
        records, slots, first_word = _records(block, n_slots)
        if n_slots:
            slots[:] = X.shape[1] + 1
        row = np.repeat(np.arange(X.shape[0]), np.diff(ones.indptr))
        slot = np.arange(ones.nnz) - ones.indptr[row]
        fits = slot < n_slots
        slots[row[fits], slot[fits]] = ones.indices[fits] + n_dense
        # The columns with values, moved to their places, and the ones that found no slot.
        places = np.repeat(np.arange(X.shape[0]), np.diff(others.indptr))
        rest = sparse.csr_matrix(
            (
                np.concatenate((others.data, np.ones((~fits).sum(), X.dtype))),
                (
                    np.concatenate((places, row[~fits])),
                    np.concatenate((others.indices + first_other, ones.indices[~fits] + n_dense)),
                ),
            ),
            shape=X.shape,
        )
        return cls(
            records, n_dense, records.view(np.uint64), first_word, n_slots // 4,
            rest.data, rest.indices.astype(np.uint32), rest.indptr.astype(np.uint64), np.concatenate(kinds),
        )  # fmt: skip

    def arrays(self) -> tuple[Any, ...]:
        """Return what the loop reads, in its order."""
        return (
            self.dense.ravel(), self.dense.shape[1], self.n_dense,
            self.words.ravel(), self.words.shape[1], self.first_word, self.n_words,
            self.values, self.columns, self.starts,
        )  # fmt: skip


def _plan(X: sparse.csr_matrix) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    # Which columns are dense, which are held by their ones, and in how many slots: what costs the loop least. A slot
    # has 16 bits, and a row of dense columns and slots costs what they are; what is left costs a list of its own.
    n_rows, n_columns = X.shape
    filled = np.bincount(X.indices, minlength=n_columns)
    can_slot = (np.bincount(X.indices[X.data != 1.0], minlength=n_columns) == 0) & (n_columns + 2 <= 2**16)
    rows = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    plans: list[tuple[Any, ...]] = []
    for share in _UNIT_SHARES:
        is_dense = filled > np.where(can_slot, share, _DENSE_SHARE) * n_rows
        is_unit = can_slot & ~is_dense
        rows_with = np.bincount(np.bincount(rows[is_unit[X.indices]], minlength=n_rows))
        for n_slots in range(0, len(rows_with) + 7, 8):
            beyond = rows_with[n_slots + 1 :]
            left = float(beyond @ np.arange(1, len(beyond) + 1)) / n_rows
            cost = is_dense.sum() + 1.5 * n_slots + (8.0 + 4.0 * left if left else 0.0)
            plans.append((cost, len(plans), is_dense, is_unit, n_slots))
    return min(plans)[2:]


def _records(block: sparse.csr_matrix, n_slots: int) -> tuple[NDArray[Any], NDArray[np.uint16], int]:
    # One record a row, the dense block filled in; its slots; its first word. Whole cache lines where it wastes little.
    item = block.dtype.itemsize
    first_word = -(-block.shape[1] * item // 8)
    needed = max(8, 8 * first_word + 2 * n_slots)
    width = next(w for line in (_LINE, _LINE // 2, 8) if (w := -(-needed // line) * line) <= 1.25 * needed)
    room = np.zeros(block.shape[0] * width + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    record_bytes = room[start : start + block.shape[0] * width].reshape(-1, width)
    records = record_bytes.view(block.dtype)
    records[:, : block.shape[1]] = block.toarray()
    return records, record_bytes.view(np.uint16)[:, 4 * first_word : 4 * first_word + n_slots], first_word


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, labels and groups, laid out for the compiled loop.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The features as validated.
    rows : PackedRows
        The same, packed; in the order of ``numbers``.
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
    accept, alias : ndarray
        Tables for drawing rows in proportion to their weights.
    numbers : ndarray or None
        Row numbers of the packed rows; None: as in ``X``.
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
    numbers: NDArray[np.int64] | None

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
        # Rows side by side with those of their group need no list of them; it would cost a copy of a dense matrix.
        disjoint = groups.counts.sum() <= X.shape[0]
        numbers = np.concatenate(groups.rows) if sparse.issparse(X) and disjoint else None
        return cls(
            X=X,
            rows=PackedRows.pack(X, numbers),
            labels=labels.astype(X.dtype),
            groups=groups,
            share=mass / mass.sum(),
            weights=weights,
            target=target.astype(X.dtype),
            accept=accept,
            alias=alias,
            numbers=numbers,
        )

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def group_arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Labels as packed, all groups' packed rows end to end (none: they lie so), and where each group starts."""
        starts = np.concatenate(([0], np.cumsum(self.groups.counts))).astype(np.int64)
        labels = self.labels.astype(np.uint8)
        if self.numbers is None:
            return labels, np.concatenate(self.groups.rows).astype(np.int64), starts
        return labels[self.numbers], np.zeros(0, np.int64), starts
