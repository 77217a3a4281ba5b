"""Settings and training problem of the stochastic solver: packed rows, outcomes, cells and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fairtransport.training.responses import LOSSES
from fairtransport.transport.kernels.rows import Population, Rows, fill_alias
from fairtransport.transport.kernels.sgd import Batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.criteria import ComparedStrata
    from fairtransport.groups import Groups
    from fairtransport.training.responses import Loss

# Rows packed into few bytes for the compiled loop of the stochastic solver.

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


_FEW_COPIES = 10_000


def as_copies(weights: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """Return each row's index as often as its weight says, or None where weights are no integers or too large.

    Drawing rows in proportion to their weights is equivalent to copies only in expectation; copies are exact.
    """
    if weights is None or np.any(weights != np.rint(weights)) or weights.sum() > max(_FEW_COPIES, 2 * weights.size):
        return None
    return np.repeat(np.arange(weights.size), weights.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Cells:
    """The samples that the stochastic solver draws from, and what each is compared with."""

    rows: tuple[NDArray[np.int64], ...]
    groups: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, groups: Groups, strata: ComparedStrata | None) -> Cells:
        """Return the groups or, with strata, the groups' rows in each, which have the target of their stratum."""
        n = len(groups)
        if strata is None or strata.is_everywhere:
            return cls(groups.rows, np.arange(n), np.zeros(n, dtype=np.int64), np.ones(n))
        rest = [np.ones(members.size, dtype=bool) for members in groups.rows]
        compared = []
        for number, stratum in enumerate(strata.compared):
            for group, members in zip(stratum.groups, stratum.rows, strict=True):
                rest[group][np.searchsorted(groups.rows[group], members)] = False
                compared.append((members, group, number, stratum.weight))
        others = [
            (members[left], group, -1, 0.0)
            for group, (members, left) in enumerate(zip(groups.rows, rest, strict=True))
            if left.any()
        ]
        rows, owners, targets, weights = zip(*others, *compared, strict=True)
        return cls(tuple(rows), np.array(owners), np.array(targets), np.array(weights, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, outcomes and groups, laid out for the compiled loop."""

    X: Any
    rows: PackedRows
    loss: Loss
    outcomes: NDArray[Any]
    groups: Groups
    cells: Cells
    share: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    targets: NDArray[Any]
    accept: NDArray[np.uint64]
    alias: NDArray[np.int64]
    numbers: NDArray[np.int64] | None

    @classmethod
    def build(
        cls,
        X: Any,
        outcomes: NDArray[Any],
        groups: Groups,
        target: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        *,
        strata: ComparedStrata | None = None,
        loss: Loss = LOSSES["logistic"],
    ) -> TrainingProblem:
        """Pack the rows and, where they have weights, make the tables for drawing them.

        ``target`` has one row for each of the strata, if any.
        """
        cells = Cells.of(groups, strata)
        mass = np.array([rows.size if weights is None else weights[rows].sum() for rows in cells.rows], dtype=float)
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = _cell_starts(cells)
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(cells.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        # Rows that lie cell by cell need no list of their numbers, but it would cost a copy of a dense matrix.
        disjoint = groups.counts.sum() <= X.shape[0]
        numbers = np.concatenate(cells.rows) if sparse.issparse(X) and disjoint else None
        return cls(
            X=X,
            rows=PackedRows.pack(X, numbers),
            loss=loss,
            outcomes=outcomes.astype(X.dtype),
            groups=groups,
            cells=cells,
            share=mass / mass.sum(),
            weights=weights,
            # Dual potentials are defined on [0, 1], and the loop takes scores beyond it as at its ends.
            targets=np.clip(np.atleast_2d(target), 0.0, 1.0).astype(X.dtype),
            accept=accept,
            alias=alias,
            numbers=numbers,
        )

    @property
    def target(self) -> NDArray[Any]:
        """The first target: for demographic parity the only one."""
        return np.asarray(self.targets[0])

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def batches(self, seed: int, size: int) -> Batches:
        """Return what the compiled loop draws its batches from."""
        outcomes, cells = self.outcomes, self.cells
        if self.numbers is None:
            rows = np.concatenate(cells.rows).astype(np.int64)
        else:
            outcomes, rows = outcomes[self.numbers], np.zeros(0, np.int64)  # packed cell by cell
        population = Population(_cell_starts(cells), rows, self.accept, self.alias)
        return Batches(seed, size, self.rows.arrays(), outcomes, population, cells.groups, self.targets, cells.targets)


def _cell_starts(cells: Cells) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum([rows.size for rows in cells.rows]))).astype(np.int64)
