"""Rows that stay in parts, on disk or on workers, and the sums over them that training needs.

A source has raw parts, whose columns are read by name. It is asked twice: to summarise each part, and to encode each as
`EncodedRows`, which stay where they are. Training then needs sums over all encoded rows, which are added part by part.
No result depends on the order of rows, or on how they are divided, but for the rounding of sums.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import pickle
import shutil
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport.linear._constants import SATURATED
from fairtransport.training.responses import Loss
from fairtransport.transport.kernels.binned import count_scores

T = TypeVar("T")
Sums = tuple[Any, ...]

_ROWS_AT_ONCE = 8192  # whose numbers, in double precision, fit into a cache
_BLOCK = 1 << 16  # rows of a block of the cache
_MIDDLE = 0x2AAAAAAA  # coordinate of the mean: a third of the way into boxes, however many are joined


class Features(NamedTuple):
    """The features of some rows, in double precision: numbers, and indicators of categories, of which few are 1."""

    numbers: Floats
    indicators: Any = None  # CSR matrix

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)

    def predictors(self, theta: Floats) -> Floats:
        """Return the linear predictors, the intercept last in ``theta``."""
        n = self.numbers.shape[1]
        predictors: Floats = self.numbers @ theta[:n] + theta[-1]
        return predictors if self.indicators is None else predictors + self.indicators @ theta[n:-1]

    def weighted_sums(self, weights: Any) -> Floats:
        """Return the product of a matrix, with a column for each row, and the features with a last column of ones."""
        sums = [weights @ self.numbers, np.asarray(weights.sum(axis=1)).reshape(-1, 1)]
        if self.indicators is not None:
            product = weights @ self.indicators
            sums.insert(1, product.toarray() if sparse.issparse(product) else product)
        return np.hstack(sums)

    def dense(self) -> Floats:
        """Return one matrix, with a last column of ones."""
        more = [] if self.indicators is None else [self.indicators.toarray()]
        return np.hstack([self.numbers, *more, np.ones((len(self), 1))])


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Scaled numbers in single precision, the cell of each row, and what cells do not say of it."""

    X: NDArray[np.float32]
    cells: NDArray[np.int32]
    outcomes: Floats | None = None
    weights: Floats | None = None
    codes: NDArray[np.int32] | None = None  # of each column of categories the indicator that is 1, or -1
    n_indicators: int = 0

    def blocks(self) -> Iterator[tuple[slice, Features]]:
        """Yield some rows at a time, with their features."""
        for start in range(0, len(self.cells), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            numbers, indicators = self.X[rows].astype(np.float64), None
            if self.codes is not None:
                codes = self.codes[rows]
                ends = np.arange(0, codes.size + 1, codes.shape[1])
                parts = (codes >= 0).astype(np.float64).ravel(), np.maximum(codes, 0).ravel(), ends
                indicators = sparse.csr_matrix(parts, (len(codes), self.n_indicators))
            yield rows, Features(numbers, indicators)

    def select(self, kept: Bools) -> EncodedRows:
        """Return some rows."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        arrays |= {name: array[kept] for name, array in arrays.items() if array is not None}
        return replace(self, **arrays)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a number of 64 bits for each row that depends on its content only."""
        keys = self.cells.astype(np.uint64)
        for array in (self.X, self.codes, self.outcomes, self.weights):
            if array is not None:
                bits = (array[:, None] if array.ndim == 1 else array).view(f"u{array.itemsize}")
                for column in range(bits.shape[1]):  # SplitMix64
                    keys = (keys ^ bits[:, column]) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(0x9E3779B97F4A7C15)
                    keys ^= keys >> np.uint64(29)
        return (keys * np.uint64(0x94D049BB133111EB)) ^ (keys >> np.uint64(31))


ARRAYS = ("X", "cells", "outcomes", "weights", "codes")


@dataclass(frozen=True, eq=False)
class LossModel:
    """A linear model of encoded rows: what a pass over them needs to know."""

    loss: Loss
    thetas: Floats  # of one model, or of one for each group
    total: float  # weight of all rows
    cell_outcomes: Floats  # of rows that have none of their own
    cell_factors: Floats  # of the weights, where rows are a sample of their cell
    cell_models: Ints  # which of the models its rows have
    interval: tuple[float, float] = (0.0, 1.0)
    n_bins: int = 1

    def terms(self, part: EncodedRows, rows: slice, X: Features) -> tuple[Floats, Floats, Floats, Floats]:
        """Return predictors, outcomes, weights and scores of some rows."""
        cells = part.cells[rows]
        if len(self.thetas) == 1:
            predictors = X.predictors(self.thetas[0])
        else:
            every = np.column_stack([X.predictors(theta) for theta in self.thetas])
            predictors = every[np.arange(len(X)), self.cell_models[cells]]
        outcomes = self.cell_outcomes[cells] if part.outcomes is None else part.outcomes[rows]
        return predictors, outcomes, self.weights(part, rows), self.loss.scores(predictors)

    def weights(self, part: EncodedRows, rows: slice) -> Floats:
        """Return the weights of some rows."""
        factors = self.cell_factors[part.cells[rows]]
        return factors if part.weights is None else factors * part.weights[rows]

    def by_model(self, values: Floats, cells: NDArray[np.int32]) -> Any:
        """Return the values of rows as a matrix with a row for each model."""
        if len(self.thetas) == 1:
            return values[None]
        at = self.cell_models[cells], np.arange(len(values))
        return sparse.csr_matrix((values, at), (len(self.thetas), len(values)))

    def bins(self, scores: Floats) -> Ints:
        """Return the number of the bin of each score."""
        low, high = self.interval
        return np.clip((scores - low) * (self.n_bins / (high - low)), 0.0, self.n_bins - 1.0).astype(np.int64)


def score_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the loss, and the weight and the weighted sum of the scores in each bin for each cell of rows."""
    loss, (masses, sums) = np.zeros(1), np.zeros((2, len(model.cell_factors), model.n_bins))
    for rows, X in part.blocks():
        predictors, outcomes, weights, scores = model.terms(part, rows, X)
        loss += weights @ model.loss.losses(predictors, outcomes) / model.total
        step = (model.interval[1] - model.interval[0]) * 2.0**-26  # of scores, so that their sums are exact
        count_scores(np.rint(scores / step) * step, model.bins(scores), part.cells[rows], weights, masses, sums)
    return loss, masses, sums


def gradient_sums(part: EncodedRows, model: LossModel, slopes: Floats | None) -> Sums:
    """Return the loss and the gradient, with slopes of a function of the scores for each cell and bin."""
    loss, gradient = np.zeros(1), np.zeros(model.thetas.shape)
    for rows, X in part.blocks():
        predictors, outcomes, weights, scores = model.terms(part, rows, X)
        loss += weights @ model.loss.losses(predictors, outcomes) / model.total
        row_slopes = model.loss.residuals(predictors, outcomes) / model.total
        if slopes is not None:
            row_slopes += slopes[part.cells[rows], model.bins(scores)] * model.loss.score_slopes(scores)
        gradient += X.weighted_sums(model.by_model(row_slopes * weights, part.cells[rows]))
    return loss, gradient


def score_derivatives(part: EncodedRows, model: LossModel, sums: Ints, factors: Floats, n_sums: int) -> Sums:
    """Return derivatives of weighted sums of scores: the sum that a cell and bin is part of, and its weight."""
    n_models = len(model.thetas)
    total = np.zeros((n_sums * n_models, model.thetas.shape[1]))
    for rows, X in part.blocks():
        _, _, weights, scores = model.terms(part, rows, X)
        at = part.cells[rows], model.bins(scores)
        slopes = weights * factors[at] * model.loss.score_slopes(scores)
        numbers = sums[at] * n_models + model.cell_models[part.cells[rows]]
        total += X.weighted_sums(sparse.csr_matrix((slopes, (numbers, np.arange(len(X)))), (len(total), len(X))))
    return (total.reshape(n_sums, *model.thetas.shape),)


def feature_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the weighted sums of the features of each cell, and its weight."""
    total = np.zeros((len(model.cell_factors), model.thetas.shape[1]))
    for rows, X in part.blocks():
        weights, cells = model.terms(part, rows, X)[2], part.cells[rows]
        total += X.weighted_sums(sparse.csr_matrix((weights, (cells, np.arange(len(X)))), (len(total), len(X))))
    return (total,)


def curvature_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return for each model the weighted outer products of its rows, with a last column of ones, by curvature."""
    n_models, size = model.thetas.shape
    moments = np.zeros((n_models, size, size))
    for rows, X in part.blocks():
        _, _, weights, scores = model.terms(part, rows, X)
        curvature = weights / model.total * np.maximum(model.loss.curvature(scores), SATURATED)
        dense, owners = X.dense(), model.cell_models[part.cells[rows]]
        for number in range(n_models):
            mine = slice(None) if n_models == 1 else owners == number
            moments[number] += dense[mine].T @ (curvature[mine, None] * dense[mine])
    return (moments,)


def moment_sums(part: EncodedRows, model: LossModel) -> Sums:
    """Return the sums of weights, scores and squared scores."""
    sums = np.zeros(3)
    for rows, X in part.blocks():
        _, _, weights, scores = model.terms(part, rows, X)
        sums += weights.sum(), weights @ scores, weights @ scores**2
    return (sums,)


def class_sums(part: EncodedRows, model: LossModel, classes: Ints) -> Sums:
    """Return the logarithmic loss of a model with weights for each class of cells, and its gradient."""
    loss, gradient = np.zeros(1), np.zeros(model.thetas.shape)
    for rows, X in part.blocks():
        cells, index = part.cells[rows], np.arange(len(X))
        weights = model.weights(part, rows) / model.total
        logs = log_softmax(np.column_stack([X.predictors(theta) for theta in model.thetas]), axis=1)
        loss -= weights @ logs[index, classes[cells]]
        excess = np.exp(logs)
        excess[index, classes[cells]] -= 1.0
        gradient += X.weighted_sums((excess * weights[:, None]).T)
    return loss, gradient


def _predicted(
    part: EncodedRows, model: LossModel, of_classes: Floats
) -> Iterator[tuple[NDArray[Any], Floats, Floats]]:
    """Yield cells and weights of rows that count, with their scores and probabilities of classes, outcomes, squares.

    Values are multiples of 2^-26, so that their sums are exact.
    """
    for rows, X in part.blocks():
        cells = part.cells[rows]
        _, outcomes, weights, scores = model.terms(part, rows, X)
        logits = np.array([[X.predictors(theta) for theta in thetas] for thetas in of_classes])
        shown = softmax(logits[model.cell_models[cells], :, np.arange(len(X))], axis=1)
        values = np.rint(np.column_stack((scores, shown, outcomes, outcomes**2)) * 2.0**26) * 2.0**-26
        counted = weights > 0.0
        yield cells[counted], weights[counted], values[counted]


def prediction_moments(part: EncodedRows, model: LossModel, of_classes: Floats) -> Sums:
    """Return the weight of the rows, the sums of scores and probabilities, and those of their products."""
    n = of_classes.shape[1] + 1
    weight, total, products = np.zeros(1), np.zeros(n), np.zeros((n, n))
    for _, weights, values in _predicted(part, model, of_classes):
        weight += weights.sum()
        total += weights @ values[:, :n]
        products += (weights[:, None] * values[:, :n]).T @ values[:, :n]
    return weight, total, products


@dataclass(frozen=True, eq=False)
class PredictionCounts:
    """Weights, and weighted sums of predictions, of the rows of each class of cells in each box of a grid.

    Where there are more than ``most`` of them, boxes are joined in pairs along one axis after another. Boxes and sums
    of all rows are therefore the same, however rows are divided.
    """

    boxes: NDArray[np.int32]  # class of cells and coordinates
    sums: Floats
    most: int
    level: int = 0

    def __add__(self, other: PredictionCounts) -> PredictionCounts:
        level = max(self.level, other.level)
        boxes, sums = np.vstack((self._at(level), other._at(level))), np.vstack((self.sums, other.sums))
        return replace(self, boxes=boxes, sums=sums, level=level).joined()

    def _at(self, level: int) -> NDArray[np.int32]:
        """Return classes, and coordinates after so many joins."""
        order = np.arange(1, self.boxes.shape[1])
        shifts = (level - order) // order.size - (self.level - order) // order.size
        return np.column_stack((self.boxes[:, :1], self.boxes[:, 1:] >> shifts.astype(np.int32)))

    def joined(self) -> PredictionCounts:
        """Return distinct boxes, no more than there may be, or than there are classes."""
        boxes, level = self.boxes, self.level
        odd = np.random.default_rng(0).integers(1 << 62, size=boxes.shape[1]) * 2 + 1
        while True:
            _, first, index = np.unique(boxes.astype(np.int64) @ odd, return_index=True, return_inverse=True)
            if first.size <= self.most or not boxes[:, 1:].any():  # nothing is left to join
                sums = np.array([np.bincount(index, column, first.size) for column in self.sums.T], dtype=np.float64).T
                return replace(self, boxes=boxes[first], sums=sums, level=level)
            level += 1
            boxes = self._at(level)


@dataclass(frozen=True, eq=False)
class Grid:
    """Boxes of the width 1 along some axes of predictions, for each class of cells."""

    classes: Ints
    center: Floats
    axes: Floats
    most: int

    def counted(self, cells: NDArray[Any], weights: Floats, values: Floats) -> PredictionCounts:
        """Return the counts of some rows."""
        at = np.clip((values[:, : len(self.axes)] - self.center) @ self.axes, -_MIDDLE, _MIDDLE) + (_MIDDLE + 0.5)
        boxes = np.column_stack((self.classes[cells], np.floor(at))).astype(np.int32)
        return PredictionCounts(boxes, np.column_stack((weights, weights[:, None] * values)), self.most).joined()


def count_predictions(part: EncodedRows, model: LossModel, of_classes: Floats, grid: Grid) -> tuple[PredictionCounts]:
    """Return counts of predictions in the boxes of a grid."""
    predicted, n = _predicted(part, model, of_classes), len(grid.axes)
    total = grid.counted(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, n + 2)))
    while some := list(islice(predicted, _BLOCK // _ROWS_AT_ONCE)):
        total += grid.counted(*(np.concatenate(each) for each in zip(*some, strict=True)))
    return (total,)


def cell_weights(part: EncodedRows, n_cells: int) -> Sums:
    """Return the weight of the rows of each cell."""
    return (np.bincount(part.cells, part.weights, minlength=n_cells).astype(np.float64),)


def thinned(part: EncodedRows, rates: Floats) -> EncodedRows:
    """Return a share of the rows of each cell, chosen by their content."""
    return part.select(part.hashes().astype(np.float64) < rates[part.cells] * 2.0**64)


def content_sums(part: EncodedRows) -> Sums:
    """Return a number that depends on the content of the rows, and not on their order."""
    return (part.hashes().sum(dtype=np.uint64, keepdims=True),)


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

    is_remote = False  # whether the rows are on workers

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the columns."""

    @abstractmethod
    def summaries(self, work: Callable[[Any], T], names: Sequence[str]) -> Iterable[T]:
        """Return ``work(rows)`` of each part in order; parts are Arrow tables with these columns."""

    @abstractmethod
    def encoded(self, work: Callable[[Any], EncodedRows], names: Sequence[str]) -> Partitions:
        """Return the parts encoded."""


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

    def __init__(self, table: Any, *, raw: bool = False) -> None:
        self._table, self._raw = table, raw

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return tuple(self._table.names)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of some columns, in their order."""
        for rows, _ in self._table.scan(names, raw=self._raw):
            yield rows

    def summaries(self, work: Callable[[Any], T], names: Sequence[str]) -> Iterator[T]:
        """Return the summary of each batch."""
        with ThreadPoolExecutor(n_threads()) as pool:
            yield from _in_order(work, self.batches(names), pool)

    def encoded(self, work: Callable[[Any], EncodedRows], names: Sequence[str]) -> Partitions:
        """Return the rows in a cache on disk, which is removed when it is closed."""
        cache = DiskCache()
        try:
            with ThreadPoolExecutor(n_threads()) as pool:
                cache.write(_in_order(work, self.batches(names), pool))
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
        self._layout: dict[str, tuple[np.dtype[Any], int | None]] = {}
        self._sizes: list[int] = []

    def write(self, parts: Iterable[EncodedRows]) -> None:
        """Write encoded rows in order."""
        waiting: list[list[NDArray[Any]]] = []
        n_waiting = 0
        with (self._folder / "rows").open("wb") as file:
            for part in parts:
                named = {name: getattr(part, name) for name in ARRAYS if getattr(part, name) is not None}
                arrays, self._n_indicators = [*named.values()], part.n_indicators
                self._layout = {name: (a.dtype, a.shape[1] if a.ndim == 2 else None) for name, a in named.items()}
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
        size, kinds = self._sizes[index], self._layout.values()
        width = sum(kind.itemsize * (1 if n is None else n) for kind, n in kinds)
        with (self._folder / "rows").open("rb", buffering=0) as file:
            file.seek(index * _BLOCK * width)
            arrays = []
            for kind, n in kinds:
                array = np.empty(size if n is None else (size, n), dtype=kind)
                view, done = array.reshape(-1).view(np.uint8).data, 0
                while done < len(view):
                    done += file.readinto(view[done:]) or _truncated()
                arrays.append(array)
        return EncodedRows(**dict(zip(self._layout, arrays, strict=True)), n_indicators=self._n_indicators)

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
        arrays = {name: [getattr(part, name) for part in parts] for name in ARRAYS}
        joined: dict[str, Any] = {name: None if a[0] is None else np.concatenate(a) for name, a in arrays.items()}
        self._rows = replace(parts[0], **joined)

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


# Results of passes on disk, from which an interrupted training continues.

_JOURNAL = b"fairtransport training 1\n"


class Journal:
    """A file of the results of passes over a table, in their order.

    Training is deterministic: repeated from the beginning, it asks for the same passes. As far as the file has them,
    for the same table and the same parameters, results are read instead of computed. Each record has the hash of all
    requests up to its own; at the first that differs, or that was not written in full, the file is cut. A file that is
    something else is refused.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.absolute().parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "There is no such folder for the checkpoint", str(self._path.parent))
        if self._path.exists():
            with self._path.open("rb") as file:
                if file.read(len(_JOURNAL)) not in {b"", _JOURNAL}:
                    text = "This file is not a checkpoint of a training; choose another name"
                    raise FileExistsError(errno.EEXIST, text, str(path))

    def start(self, table: bytes) -> None:
        """Open the file for the passes over a table."""
        self._file = self._path.open("a+b")
        if not self._file.tell():
            self._file.write(_JOURNAL)
        self._file.seek(len(_JOURNAL))
        self._digest, self._is_known = hashlib.sha256(table).digest(), True

    def result(self, request: bytes, compute: Callable[[], Sums]) -> Sums:
        """Return the result of a pass from the file, or compute and store it."""
        self._digest = hashlib.sha256(self._digest + request).digest()
        if self._is_known:
            start, head = self._file.tell(), self._file.read(40)
            size = int.from_bytes(head[32:], "little")
            content = self._file.read(size) if head[:32] == self._digest else b""
            if content and len(content) == size:
                return _from_bytes(content)
            self._file.truncate(start)
            self._is_known = False
        sums = compute()
        content = _to_bytes(sums)
        self._file.write(self._digest + len(content).to_bytes(8, "little") + content)
        self._file.flush()
        return sums

    def close(self) -> None:
        """Close the file, which stays."""
        self._file.close()

    def remove(self) -> None:
        """Remove the file: the training has ended."""
        self._path.unlink()


def _to_bytes(sums: Sums) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, *sums)
    return zlib.compress(stream.getvalue(), 1)


def _from_bytes(content: bytes) -> Sums:
    arrays = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return tuple(arrays[f"arr_{index}"] for index in range(len(arrays.files)))


class JournaledPartitions(Partitions):
    """Encoded rows whose sums are stored in a journal."""

    def __init__(self, rows: Partitions, journal: Journal, sample: bytes = b"") -> None:
        self._rows, self._journal, self._sample = rows, journal, sample

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """Return the sum over all parts, computed or stored."""
        request = self._sample + work.__name__.encode() + pickle.dumps(shared, protocol=5)  # hashed, never loaded
        return self._journal.result(request, lambda: self._rows.total(work, *shared))

    def thinned(self, rates: Floats) -> Partitions:
        """Return a share of the rows of each cell."""
        return JournaledPartitions(self._rows.thinned(rates), self._journal, rates.tobytes())

    def close(self) -> None:
        """Give the rows up; the journal stays."""
        self._rows.close()
        self._journal.close()
