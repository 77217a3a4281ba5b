"""Rows that stay in parts, on disk or on workers, and the sums over them that training needs.

A source has raw parts, whose columns are read by name. It is asked twice: to summarise each part, and to encode each as
`EncodedRows`, which stay where they are. Training then needs sums over all encoded rows, which are added part by part.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fairtransport._arrays import Floats, Ints
from fairtransport.linear._constants import SATURATED
from fairtransport.training.responses import Loss
from fairtransport.transport.kernels.binned import count_masses

T = TypeVar("T")
Sums = tuple[Any, ...]

_ROWS_AT_ONCE = 8192  # whose numbers, in double precision, fit into a cache
_BLOCK = 1 << 16  # rows of a block of the cache
_NO_WEIGHTS = np.zeros(0)


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Scaled features in single precision, the cell of each row, and what cells do not say of it."""

    X: NDArray[np.float32]
    cells: NDArray[np.int32]
    outcomes: Floats | None
    weights: Floats | None
    first: int  # number of the first row in the table

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield some rows at a time, with their features in double precision."""
        for start in range(0, len(self.cells), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            yield rows, self.X[rows].astype(np.float64)


@dataclass(frozen=True, eq=False)
class LossModel:
    """A linear model of encoded rows: what a pass over them needs to know."""

    loss: Loss
    theta: Floats
    total: float  # weight of all rows
    cell_outcomes: Floats  # of rows that have none of their own
    cell_factors: Floats  # of the weights, where rows are a sample of their cell
    interval: tuple[float, float] = (0.0, 1.0)
    n_bins: int = 1

    def terms(self, part: EncodedRows, rows: slice, X: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return predictors, outcomes, weights and scores of some rows."""
        cells = part.cells[rows]
        predictors = X @ self.theta[:-1] + self.theta[-1]
        outcomes = self.cell_outcomes[cells] if part.outcomes is None else part.outcomes[rows]
        weights = self.cell_factors[cells]
        if part.weights is not None:
            weights = weights * part.weights[rows]
        return predictors, outcomes, weights, self.loss.scores(predictors)

    def positions(self, scores: Floats) -> Floats:
        """Return where scores lie in the interval, from 0 to 1."""
        low, high = self.interval
        return np.clip((scores - low) / (high - low), 0.0, 1.0)


def score_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the loss, and the weight at each edge of the bins of scores for each cell of rows."""
    loss, masses = np.zeros(1), np.zeros((len(model.cell_factors), model.n_bins + 1))
    for rows, X in part.blocks():
        predictors, outcomes, weights, scores = model.terms(part, rows, X)
        loss += weights @ model.loss.losses(predictors, outcomes) / model.total
        count_masses(model.positions(scores), part.cells[rows], weights, masses)
    return loss, masses


def gradient_sums(part: EncodedRows, model: LossModel, slopes: Floats | None) -> Sums:
    """Return the loss and the gradient, with slopes of a function of the scores for each cell and bin."""
    loss, gradient = np.zeros(1), np.zeros(len(model.theta))
    for rows, X in part.blocks():
        predictors, outcomes, weights, scores = model.terms(part, rows, X)
        loss += weights @ model.loss.losses(predictors, outcomes) / model.total
        row_slopes = model.loss.residuals(predictors, outcomes) / model.total
        if slopes is not None:
            bins = np.minimum((model.positions(scores) * model.n_bins).astype(np.int64), model.n_bins - 1)
            row_slopes += slopes[part.cells[rows], bins] * model.loss.score_slopes(scores)
        row_slopes *= weights
        gradient[:-1] += row_slopes @ X
        gradient[-1] += row_slopes.sum()
    return loss, gradient


def score_derivatives(part: EncodedRows, model: LossModel, sums: Ints, factors: Floats, n_sums: int) -> Sums:
    """Return derivatives of weighted sums of scores: the sum that a cell and bin is part of, and its weight."""
    total = np.zeros((n_sums, len(model.theta)))
    for rows, X in part.blocks():
        _, _, weights, scores = model.terms(part, rows, X)
        at = part.cells[rows], np.minimum((model.positions(scores) * model.n_bins).astype(np.int64), model.n_bins - 1)
        slopes = weights * factors[at] * model.loss.score_slopes(scores)
        matrix = sparse.csr_matrix((slopes, (sums[at], np.arange(len(X)))), (n_sums, len(X)))
        total[:, :-1] += matrix @ X
        total[:, -1] += np.bincount(sums[at], slopes, n_sums)
    return (total,)


def feature_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the weighted sums of the features of each cell, and its weight."""
    total = np.zeros((len(model.cell_factors), len(model.theta)))
    for rows, X in part.blocks():
        weights, cells = model.terms(part, rows, X)[2], part.cells[rows]
        total[:, :-1] += sparse.csr_matrix((weights, (cells, np.arange(len(X)))), (len(total), len(X))) @ X
        total[:, -1] += np.bincount(cells, weights, len(total))
    return (total,)


def curvature_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the weighted outer products of the rows, with a last column of ones; weights are curvatures."""
    moments = np.zeros((len(model.theta), len(model.theta)))
    for rows, X in part.blocks():
        _, _, weights, scores = model.terms(part, rows, X)
        curvature = weights / model.total * np.maximum(model.loss.curvature(scores), SATURATED)
        dense = np.column_stack((X, np.ones(len(X))))
        moments += dense.T @ (curvature[:, None] * dense)
    return (moments,)


def moment_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the sums of weights, scores and squared scores."""
    sums = np.zeros(3)
    for rows, X in part.blocks():
        _, _, weights, scores = model.terms(part, rows, X)
        sums += weights.sum(), weights @ scores, weights @ scores**2
    return (sums,)


def cell_weights(part: EncodedRows, n_cells: int) -> Sums:
    """Return the weight of the rows of each cell."""
    return (np.bincount(part.cells, part.weights, minlength=n_cells).astype(np.float64),)


def thinned(part: EncodedRows, rates: Floats) -> EncodedRows:
    """Return a share of the rows of each cell, chosen by the number of the row in the table."""
    keys = np.arange(part.first, part.first + len(part.cells), dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    kept = (keys ^ (keys >> np.uint64(31))).astype(np.float64) < rates[part.cells] * 2.0**64
    outcomes, weights = (None if each is None else each[kept] for each in (part.outcomes, part.weights))
    return EncodedRows(part.X[kept], part.cells[kept], outcomes, weights, part.first)


def add(one: Sums, other: Sums) -> Sums:
    """Return the sum of two results of passes."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


class Partitions(ABC):
    """Encoded rows in parts that stay where they are."""

    @abstractmethod
    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """Return the sum of ``work(part, *shared)`` over all parts."""

    @abstractmethod
    def thinned(self, rates: Floats) -> Partitions:
        """Return a share of the rows of each cell, as parts at the same places."""

    def close(self) -> None:  # noqa: B027 - rows in memory need nothing
        """Give the rows up."""


class RawParts(ABC):
    """Raw parts of a table."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the columns."""

    @abstractmethod
    def summaries(self, work: Callable[[Any], T], names: Sequence[str]) -> Iterable[T]:
        """Return ``work(rows)`` of each part in order; parts are Arrow tables with these columns."""

    @abstractmethod
    def encoded(
        self, work: Callable[[Any, int], EncodedRows], names: Sequence[str], sizes: Sequence[int]
    ) -> Partitions:
        """Return the parts encoded by ``work(rows, first)``; ``sizes`` are their numbers of rows."""


# Files, read in batches by DuckDB and cached in blocks of a fixed number of rows.


def _in_order(work: Callable[[Any], T], items: Iterable[Any], pool: ThreadPoolExecutor) -> Iterator[T]:
    """Yield results in the order of the items, with few of them in memory at a time."""
    waiting: deque[Any] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > n_threads():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def n_threads() -> int:
    """Return the number of threads: one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class FileParts(RawParts):
    """Files that `fairtransport.tables.open_files` has opened, in the batches in which they are read."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return tuple(self._table.names)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of some columns, in their order."""
        for rows, _ in self._table.scan(names):
            yield rows

    def summaries(self, work: Callable[[Any], T], names: Sequence[str]) -> Iterator[T]:
        """Return the summary of each batch."""
        with ThreadPoolExecutor(n_threads()) as pool:
            yield from _in_order(work, self.batches(names), pool)

    def encoded(
        self, work: Callable[[Any, int], EncodedRows], names: Sequence[str], sizes: Sequence[int]
    ) -> Partitions:
        """Return the rows in a cache on disk, which is removed when it is closed."""
        cache = DiskCache()
        try:
            starts = np.cumsum([0, *sizes]).tolist()
            batches = zip(self.batches(names), starts, strict=False)
            with ThreadPoolExecutor(n_threads()) as pool:
                cache.write(_in_order(lambda batch: work(*batch), batches, pool))
        except BaseException:
            cache.close()
            raise
        return cache


class DiskCache(Partitions):
    """Encoded rows in a temporary file, in blocks of 65,536 rows whatever the batches were that they came in.

    Sums are therefore the same, to the last bit, for any number of files and batches. Blocks are read, not mapped: the
    memory of the process stays that of a few blocks.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fairtransport-"))
        self._pool = ThreadPoolExecutor(n_threads())
        self._layout: list[tuple[np.dtype[Any], int]] = []
        self._sizes: list[int] = []

    def write(self, parts: Iterable[EncodedRows]) -> None:
        """Write encoded rows in order."""
        waiting: list[list[NDArray[Any]]] = []
        n_waiting = 0
        with (self._folder / "rows").open("wb") as file:
            for part in parts:
                arrays = [a for a in (part.X, part.cells, part.outcomes, part.weights) if a is not None]
                if not self._layout:
                    self._layout = [(a.dtype, a.shape[1] if a.ndim == 2 else 0) for a in arrays]
                    self._has = part.outcomes is not None, part.weights is not None
                waiting.append(arrays)
                n_waiting += len(part.cells)
                while n_waiting >= _BLOCK:
                    whole = [np.concatenate(each) for each in zip(*waiting, strict=True)]
                    self._append(file, [each[:_BLOCK] for each in whole])
                    waiting, n_waiting = [[each[_BLOCK:] for each in whole]], n_waiting - _BLOCK
            if n_waiting:
                self._append(file, [np.concatenate(each) for each in zip(*waiting, strict=True)])

    def _append(self, file: Any, arrays: list[NDArray[Any]]) -> None:
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)
        self._sizes.append(len(arrays[0]))

    def _read(self, index: int) -> EncodedRows:
        size, width = self._sizes[index], sum(kind.itemsize * max(1, n) for kind, n in self._layout)
        with (self._folder / "rows").open("rb", buffering=0) as file:
            file.seek(index * _BLOCK * width)
            arrays = []
            for kind, n in self._layout:
                array = np.empty((size, n) if n else size, dtype=kind)
                view, done = array.reshape(-1).view(np.uint8).data, 0
                while done < len(view):
                    done += file.readinto(view[done:]) or _truncated()
                arrays.append(array)
        X, cells, *rest = arrays
        outcomes, weights = (rest.pop(0) if has else None for has in self._has)
        return EncodedRows(X, cells, outcomes, weights, index * _BLOCK)

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """Return the sum over all blocks, added in their order."""
        return _total(_in_order(lambda index: work(self._read(index), *shared), range(len(self._sizes)), self._pool))

    def thinned(self, rates: Floats) -> Partitions:
        """Return a share of the rows in memory."""
        indices = range(len(self._sizes))
        return PartsInMemory([*_in_order(lambda index: thinned(self._read(index), rates), indices, self._pool)])

    def close(self) -> None:
        """Remove the file."""
        self._pool.shutdown(cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def _truncated() -> int:
    raise OSError("The temporary file of encoded rows was truncated while it was read.")


class PartsInMemory(Partitions):
    """Encoded rows in memory, such as a sample of a table."""

    def __init__(self, parts: Sequence[EncodedRows]) -> None:
        def joined(name: str) -> Any:
            arrays = [getattr(part, name) for part in parts]
            return None if arrays[0] is None else np.concatenate(arrays)

        self._rows = EncodedRows(joined("X"), joined("cells"), joined("outcomes"), joined("weights"), 0)

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """Return the sum."""
        return work(self._rows, *shared)

    def thinned(self, rates: Floats) -> Partitions:
        """Return a share of the rows."""
        return PartsInMemory([thinned(self._rows, rates)])


def _total(results: Iterable[Sums]) -> Sums:
    total: Sums | None = None
    for result in results:
        total = result if total is None else add(total, result)
    if total is None:
        raise ValueError("The table has no rows.")
    return total
