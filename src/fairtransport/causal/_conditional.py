"""Conditional distributions of a node given its causes, as ranks and quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Cells", "ConditionalDistribution", "fit_conditional"]

_N_CELLS = 200
_TAILS = (0.0005, 0.001, 0.002, 0.0035)
_HEAVY, _LEAST_HEAVY = 0.02, 15  # share and number of rows with one value from which on it is an atom
_FEW_CELLS = 25  # levels, not numbers
_TREES = 30
_CHUNK = 20_000  # rows whose distributions are in memory at a time
_LEAST_LEAF, _MOST_LEAF = 10, 200
_LEAST_ROWS, _MOST_ROWS = 2_000, 8_000  # that the splits of a tree are found on; all rows are counted in its leaves


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the line, in order: atoms (one value) and the intervals between them; missing values come first.

    Parameters
    ----------
    low, high : ndarray of shape (n_cells,)
        Equal for atoms; NaN for missing values.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of_levels(cls, n_levels: int, *, missing: bool) -> Cells:
        """Return one atom for each level."""
        ends = np.concatenate([np.full(int(missing), np.nan), np.arange(n_levels, dtype=np.float64)])
        return cls(ends, ends)

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.float64], *, missing: bool) -> Cells:
        """Return about 200 cells with equal numbers of rows, finer at the ends; frequent values are atoms."""
        known = numbers[np.isfinite(numbers)]
        values, counts = np.unique(known, return_counts=True)
        atoms = values[counts > max(_HEAVY * known.size, _LEAST_HEAVY)]
        levels = np.concatenate([_TAILS, np.arange(1, _N_CELLS) / _N_CELLS, 1.0 - np.array(_TAILS)])
        edges = np.unique(np.concatenate([values[[0, -1]], np.quantile(known, np.sort(levels)), atoms]))
        low, high = _paired(edges, atoms)
        gone = np.full(int(missing), np.nan)
        return cls(np.concatenate([gone, low]), np.concatenate([gone, high]))

    @property
    def is_atom(self) -> NDArray[np.bool_]:
        """Which cells have one value."""
        return ~(self.high > self.low)

    def locate(self, numbers: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the cell of each number, and its position within an interval, from 0 to 1; 1 for atoms."""
        first = int(np.isnan(self.low[:1]).sum())
        low, high = self.low[first:], self.high[first:]
        known = np.isfinite(numbers)
        inside = np.clip(np.where(known, numbers, low[0]), low[0], high[-1])
        cells = np.searchsorted(high, inside, side="left")
        atom_next = np.minimum(cells + 1, high.size - 1)  # an interval that ends where an atom begins
        cells = np.where((low[atom_next] == inside) & (high[atom_next] == inside), atom_next, cells)
        width = high[cells] - low[cells]
        inner = np.where(width > 0, (inside - low[cells]) / np.where(width > 0, width, 1.0), 1.0)
        return np.where(known, cells + first, 0).astype(np.int64), np.where(known, inner, 1.0)

    def value(self, cells: NDArray[np.int64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the number at a position within a cell; the inverse of `locate`."""
        return self.low[cells] + inner * (self.high[cells] - self.low[cells])


def _paired(edges: NDArray[np.float64], atoms: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals between edges and of atoms, in order."""
    low = np.concatenate([edges[:-1], atoms])
    high = np.concatenate([edges[1:], atoms])
    if not low.size:
        return edges[:1], edges[:1]
    order = np.lexsort((high, low))
    return low[order], high[order]


class CellModel(Protocol):
    """Estimates the probability of each cell for rows of a design matrix."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of shape (n_rows, n_cells)."""


class ConditionalDistribution:
    """The distribution of a node given its causes.

    Parameters
    ----------
    cells : Cells
    model : CellModel
    location : regressor or None
        Of numbers without atoms: the cells are then those of its residuals.
    scale : regressor or None
        Of the residuals' absolute values, by which they are divided.
    """

    def __init__(self, cells: Cells, model: CellModel, location: Any = None, scale: Any = None) -> None:
        self._cells, self._model, self._location, self._scale = cells, model, location, scale

    def ranks(self, X: NDArray[np.float64], numbers: NDArray[np.float64], ties: NDArray[np.float64]) -> Any:
        """Return P(value < number) + tie * P(value = number), given the causes; ties are within 0 and 1."""
        centre, unit = self._centre(X)
        cells, inner = self._cells.locate((numbers - centre) / unit)
        share = np.where(self._cells.is_atom[cells], ties, inner)
        ranks = np.empty(numbers.size)
        for rows in _chunks(numbers.size):
            probabilities = self._model.predict(X[rows])
            ends = np.cumsum(probabilities, axis=1)
            index = np.arange(ends.shape[0])
            own = probabilities[index, cells[rows]]
            ranks[rows] = ends[index, cells[rows]] - (1.0 - share[rows]) * own
        return np.clip(ranks, 0.0, 1.0)

    def quantiles(self, X: NDArray[np.float64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of each rank, given the causes."""
        centre, unit = self._centre(X)
        values = np.empty(ranks.size)
        for rows in _chunks(ranks.size):
            probabilities = self._model.predict(X[rows])
            ends = np.cumsum(probabilities, axis=1)
            ends /= ends[:, -1:]
            level = np.minimum(ranks[rows], 1.0 - 1e-12)[:, None]
            cells = (ends <= level).sum(axis=1)
            index = np.arange(ends.shape[0])
            own = probabilities[index, cells]
            inner = 1.0 - (ends[index, cells] - level[:, 0]) / np.where(own > 0, own, 1.0)
            values[rows] = self._cells.value(cells, np.clip(inner, 0.0, 1.0))
        return centre + unit * values

    def _centre(self, X: NDArray[np.float64]) -> tuple[Any, Any]:
        return _centre(self._location, self._scale, X)


def fit_conditional(
    X: NDArray[np.float64],
    numbers: NDArray[np.float64],
    *,
    n_levels: int | None,
    method: Any,
    random_state: int,
) -> ConditionalDistribution:
    """Estimate the distribution of a node given its causes.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Features of its causes; it may have no columns.
    numbers : ndarray of shape (n_rows,)
        Numbers, or indices of levels; NaN where missing.
    n_levels : int or None
        Number of levels; None for numbers.
    method : {"forest", "linear"} or regressor
    random_state : int

    Returns
    -------
    ConditionalDistribution
    """
    known = np.isfinite(numbers)
    missing = not known.all()
    if n_levels is not None:
        cells = Cells.of_levels(n_levels, missing=missing)
        return ConditionalDistribution(cells, _fit_cells(X, numbers, cells, method=method, random_state=random_state))
    values, counts = np.unique(numbers[known], return_counts=True)
    location = scale = None
    if X.shape[1] and values.size > 1 and counts.max() <= max(_HEAVY * known.sum(), _LEAST_HEAVY):
        location = LinearRegression() if isinstance(method, str) else clone(method)
        location.fit(X[known], numbers[known])
        if method == "linear":
            scale = _Spread(X[known], numbers[known] - location.predict(X[known]))
    centre, unit = _centre(location, scale, X)
    residuals = (numbers - centre) / unit
    cells = Cells.of_numbers(residuals, missing=missing)
    if location is not None and method != "forest" and not missing:
        model: CellModel = _Marginal.of(cells.locate(residuals)[0], cells)
    else:
        model = _fit_cells(X, residuals, cells, method=method, random_state=random_state)
    return ConditionalDistribution(cells, model, location, scale)


def _centre(location: Any, scale: Any, X: NDArray[np.float64]) -> tuple[Any, Any]:
    if location is None:
        return 0.0, 1.0
    centre = np.asarray(location.predict(X), dtype=np.float64)
    if scale is None:
        return centre, 1.0
    return centre, scale.predict(X)


def _fit_cells(
    X: NDArray[np.float64], numbers: NDArray[np.float64], cells: Cells, *, method: Any, random_state: int
) -> CellModel:
    located = cells.locate(numbers)[0]
    if not X.shape[1] or np.unique(located).size == 1:
        return _Marginal.of(located, cells)
    if isinstance(method, str) and method == "linear" and cells.low.size <= _FEW_CELLS:
        return _Multinomial(X, located, cells.low.size)
    return _Forest(X, numbers, located, cells.low.size, random_state)


class _Spread:
    """Linear regression of absolute residuals, at least a tenth of their mean."""

    def __init__(self, X: NDArray[np.float64], residuals: NDArray[np.float64]) -> None:
        self._least = max(0.1 * float(np.abs(residuals).mean()), 1e-300)
        self._model = LinearRegression().fit(X, np.abs(residuals))

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(self._model.predict(X), self._least)


@dataclass(frozen=True, eq=False)
class _Marginal:
    """The same distribution for every row."""

    shares: NDArray[np.float64]

    @classmethod
    def of(cls, located: NDArray[np.int64], cells: Cells) -> _Marginal:
        counts = np.bincount(located, minlength=cells.low.size).astype(np.float64)
        return cls(counts / counts.sum())

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.broadcast_to(self.shares, (X.shape[0], self.shares.size))


class _Multinomial:
    """Multinomial logistic regression of the cells."""

    def __init__(self, X: NDArray[np.float64], located: NDArray[np.int64], n_cells: int) -> None:
        self._n_cells = n_cells
        self._model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(X, located)

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = np.zeros((X.shape[0], self._n_cells))
        shares[:, self._model.classes_] = self._model.predict_proba(X)
        return shares


class _Forest:
    """Quantile regression forest (Meinshausen, 2006): mean over trees of the distribution within a row's leaf."""

    def __init__(
        self, X: NDArray[np.float64], numbers: NDArray[np.float64], located: NDArray[np.int64], n_cells: int, seed: int
    ) -> None:
        n_rows = X.shape[0]
        some = min(n_rows, int(np.clip(n_rows // 4, _LEAST_ROWS, _MOST_ROWS)))
        leaf = int(np.clip(n_rows**0.6 / 3, _LEAST_LEAF, _MOST_LEAF) * some / n_rows)
        self._forest = RandomForestRegressor(
            _TREES,
            min_samples_leaf=max(5, min(leaf, some // 4)),
            max_features=max(1, -(-2 * X.shape[1] // 3)),
            max_samples=some,
            random_state=seed,
        )
        targets = _targets(numbers, located, n_cells)
        self._forest.fit(X, targets)
        self._shares = []
        for tree in self._forest.estimators_:
            leaves = tree.apply(X.astype(np.float32))
            n_nodes = tree.tree_.node_count
            counts = np.bincount(leaves * n_cells + located, minlength=n_nodes * n_cells).reshape(n_nodes, n_cells)
            sizes = counts.sum(axis=1, keepdims=True)
            self._shares.append((counts / np.maximum(sizes, 1)).astype(np.float32))

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = X.astype(np.float32)
        total = np.zeros((X.shape[0], self._shares[0].shape[1]), dtype=np.float32)
        for tree, shares in zip(self._forest.estimators_, self._shares, strict=True):
            total += shares[tree.apply(rows)]
        return (total / len(self._shares)).astype(np.float64)


def _targets(numbers: NDArray[np.float64], located: NDArray[np.int64], n_cells: int) -> NDArray[np.float64]:
    """Return what trees split by: levels as indicators, or numbers with their absolute deviation, standardised."""
    known = np.isfinite(numbers)
    if n_cells <= _FEW_CELLS:
        return (located[:, None] == np.arange(n_cells)).astype(np.float64)
    filled = np.where(known, numbers, np.median(numbers[known]))
    low, high = np.quantile(filled, [0.005, 0.995])
    clipped = np.clip(filled, low, high)
    parts = [clipped, np.abs(clipped - np.median(clipped))]
    if not known.all():
        parts.append((~known).astype(np.float64))
    return np.column_stack([part / max(float(part.std()), 1e-300) for part in parts])


def _chunks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _CHUNK):
        yield slice(start, start + _CHUNK)
