"""Rows packed into few bytes for the compiled loop of the stochastic solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fairtransport.transport.kernels.packed_rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PackedRows"]

# A column of a sparse matrix with a larger share of non-zeros than this is cheaper as a dense one. For columns of zeros
# and ones several shares are tried.
_DENSE_SHARE = 0.5
_UNIT_SHARES = (0.5, 0.7, 0.9, 1.0)
_CACHE_LINE = 64  # bytes


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows as records: dense columns first, then the columns where a row is 1, then the rest with values.

    A row of numbers and one-hot columns becomes one record, a short dense block and a fixed number of column numbers
    ("slots") side by side, so that it occupies one or two cache lines. Ones beyond the slots are kept with the values.

    Attributes
    ----------
    dense : ndarray of shape (n_rows, record_size)
        The records. The first ``n_dense`` columns are the dense ones of the row.
    words : ndarray of shape (n_rows, n_record_words) and dtype uint64
        The same bytes. From ``first_word`` on, ``n_words`` words of four slots each: columns where the row is 1. Slots
        that are not needed hold the number after the intercept's.
    values, columns, starts : ndarray
        The other entries in compressed sparse row format, with columns in the packed order.
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
        """Pack a dense matrix, or a sparse one with its rows in the order of ``rows``."""
        if not sparse.issparse(X):
            empty = np.zeros(0, X.dtype), np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.arange(X.shape[1])
            return cls(np.ascontiguousarray(X), X.shape[1], np.zeros((0, 0), np.uint64), 0, 0, *empty)
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
        # Columns with values, and the ones that are beyond the slots.
        other_rows = np.repeat(np.arange(X.shape[0]), np.diff(others.indptr))
        rest = sparse.csr_matrix(
            (
                np.concatenate((others.data, np.ones((~fits).sum(), X.dtype))),
                (
                    np.concatenate((other_rows, row[~fits])),
                    np.concatenate((others.indices + first_other, ones.indices[~fits] + n_dense)),
                ),
            ),
            shape=X.shape,
        )
        return cls(
            records, n_dense, records.view(np.uint64), first_word, n_slots // 4,
            rest.data, rest.indices.astype(np.uint32), rest.indptr.astype(np.uint64), np.concatenate(kinds),
        )  # fmt: skip

    def arrays(self) -> Rows:
        """Return the flat arrays that the compiled loop reads."""
        return Rows(
            dense=self.dense.ravel(),
            stride=self.dense.shape[1],
            n_dense=self.n_dense,
            words=self.words.ravel(),
            word_stride=self.words.shape[1],
            first_word=self.first_word,
            n_words=self.n_words,
            values=self.values,
            columns=self.columns,
            starts=self.starts,
        )


def _plan(X: sparse.csr_matrix) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    # Which columns are dense, which are stored as slots, and how many slots a row has, so that the loop costs least. A
    # slot has 16 bits; entries beyond the slots cost a second pass over the row.
    n_rows, n_columns = X.shape
    filled = np.bincount(X.indices, minlength=n_columns)
    can_slot = (np.bincount(X.indices[X.data != 1.0], minlength=n_columns) == 0) & (n_columns + 2 <= 2**16)
    rows = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    plans: list[tuple[Any, ...]] = []
    for share in _UNIT_SHARES:
        is_dense = filled > np.where(can_slot, share, _DENSE_SHARE) * n_rows
        is_unit = can_slot & ~is_dense
        n_rows_by_ones = np.bincount(np.bincount(rows[is_unit[X.indices]], minlength=n_rows))
        for n_slots in range(0, len(n_rows_by_ones) + 7, 8):
            beyond = n_rows_by_ones[n_slots + 1 :]
            left = float(beyond @ np.arange(1, len(beyond) + 1)) / n_rows
            cost = is_dense.sum() + 1.5 * n_slots + (8.0 + 4.0 * left if left else 0.0)
            plans.append((cost, len(plans), is_dense, is_unit, n_slots))
    return min(plans)[2:]


def _records(block: sparse.csr_matrix, n_slots: int) -> tuple[NDArray[Any], NDArray[np.uint16], int]:
    # A record for each row with the dense block filled in, its slots, and the first word of the slots. Records occupy
    # whole cache lines where that wastes little.
    item = block.dtype.itemsize
    first_word = -(-block.shape[1] * item // 8)
    needed = max(8, 8 * first_word + 2 * n_slots)
    width = next(w for line in (_CACHE_LINE, _CACHE_LINE // 2, 8) if (w := -(-needed // line) * line) <= 1.25 * needed)
    buffer = np.zeros(block.shape[0] * width + _CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % _CACHE_LINE
    record_bytes = buffer[start : start + block.shape[0] * width].reshape(-1, width)
    records = record_bytes.view(block.dtype)
    records[:, : block.shape[1]] = block.toarray()
    return records, record_bytes.view(np.uint16)[:, 4 * first_word : 4 * first_word + n_slots], first_word
