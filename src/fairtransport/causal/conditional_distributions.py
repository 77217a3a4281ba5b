"""Conditional distributions of a node given its causes, as ranks and quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from fairtransport.causal.cell_models import FEW_CELLS, CellModel, ForestCells, MarginalCells, MultinomialCells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Cells", "ConditionalDistribution", "LinearSpread", "fit_conditional"]

_N_CELLS = 200
_TAILS = (0.0005, 0.001, 0.002, 0.0035)
_HEAVY, _LEAST_HEAVY = 0.02, 15  # share and number of rows with one value from which on it is an atom
_CHUNK = 20_000  # rows whose distributions are in memory at a time


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


@dataclass(frozen=True, eq=False)
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

    cells: Cells
    model: CellModel
    location: Any = None
    scale: Any = None

    def ranks(self, X: NDArray[np.float64], numbers: NDArray[np.float64], ties: NDArray[np.float64]) -> Any:
        """Return P(value < number) + tie * P(value = number), given the causes; ties are within 0 and 1."""
        centre, unit = self._centre(X)
        cells, inner = self.cells.locate((numbers - centre) / unit)
        share = np.where(self.cells.is_atom[cells], ties, inner)
        ranks = np.empty(numbers.size)
        for rows in _chunks(numbers.size):
            probabilities = self.model.predict(X[rows])
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
            probabilities = self.model.predict(X[rows])
            ends = np.cumsum(probabilities, axis=1)
            ends /= ends[:, -1:]
            level = np.minimum(ranks[rows], 1.0 - 1e-12)[:, None]
            cells = (ends <= level).sum(axis=1)
            index = np.arange(ends.shape[0])
            own = probabilities[index, cells]
            inner = 1.0 - (ends[index, cells] - level[:, 0]) / np.where(own > 0, own, 1.0)
            values[rows] = self.cells.value(cells, np.clip(inner, 0.0, 1.0))
        return centre + unit * values

    def _centre(self, X: NDArray[np.float64]) -> tuple[Any, Any]:
        return _centre(self.location, self.scale, X)


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
            scale = LinearSpread.of(X[known], numbers[known] - location.predict(X[known]))
    centre, unit = _centre(location, scale, X)
    residuals = (numbers - centre) / unit
    cells = Cells.of_numbers(residuals, missing=missing)
    if location is not None and method != "forest" and not missing:
        model: CellModel = MarginalCells.of(cells.locate(residuals)[0], cells.low.size)
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
        return MarginalCells.of(located, cells.low.size)
    if isinstance(method, str) and method == "linear" and cells.low.size <= FEW_CELLS:
        return MultinomialCells.of(X, located, cells.low.size)
    return ForestCells.of(X, numbers, located, cells.low.size, random_state)


@dataclass(frozen=True, eq=False)
class LinearSpread:
    """Linear regression of absolute residuals, at least a tenth of their mean."""

    model: LinearRegression
    least: float

    @classmethod
    def of(cls, X: NDArray[np.float64], residuals: NDArray[np.float64]) -> LinearSpread:
        """Fit the regression."""
        sizes = np.abs(residuals)
        return cls(LinearRegression().fit(X, sizes), max(0.1 * float(sizes.mean()), 1e-300))

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the spread of each row."""
        return np.maximum(self.model.predict(X), self.least)


def _chunks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _CHUNK):
        yield slice(start, start + _CHUNK)
