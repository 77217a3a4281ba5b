"""Conditional distributions of a node given its causes, as ranks and quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import distinct_values
from fairtransport._columns.compilation import cached_njit
from fairtransport._sklearn import last_step
from fairtransport.transport.line import Sample

# Models of the probability of each cell of a node given its causes, as arrays.

#: Ways to estimate conditional distributions.
METHODS = ("auto", "linear", "forest", "boosted")

FEW_CELLS = 25
"""Up to so many cells are levels, not numbers."""

_TREES = 30
_LEAST_LEAF, _MOST_LEAF = 10, 200
_LEAST_ROWS, _MOST_ROWS = 2_000, 8_000  # that the splits of a tree are found on; all rows are counted in its leaves


class CellModel(Protocol):
    """Estimates the probability of each cell for rows of a design matrix."""

    def predict(self, X: Floats) -> Floats:
        """Return probabilities of shape (n_rows, n_cells)."""


@dataclass(frozen=True, eq=False)
class MarginalCells:
    """The same probabilities of cells for every row."""

    shares: Floats

    @classmethod
    def of(cls, located: Ints, weights: Floats, n_cells: int) -> MarginalCells:
        """Count the rows of each cell."""
        counts = np.bincount(located, weights, minlength=n_cells)
        return cls(counts / counts.sum())

    def predict(self, X: Floats) -> Floats:
        """Return probabilities of shape (n_rows, n_cells)."""
        return np.broadcast_to(self.shares, (X.shape[0], self.shares.size))


@dataclass(frozen=True, eq=False)
class MultinomialCells:
    """Multinomial logistic regression of the cells."""

    weights: Floats
    intercepts: Floats
    present: Ints
    n_cells: int

    @classmethod
    def of(cls, X: Floats, located: Ints, weights: Floats, n_cells: int) -> MultinomialCells:
        """Fit the regression, on standardised features."""
        scaler = StandardScaler().fit(X, sample_weight=weights)
        model = LogisticRegression(max_iter=300).fit(scaler.transform(X), located, sample_weight=weights)
        slopes, intercepts = model.coef_, model.intercept_
        if len(slopes) == 1:  # two cells
            slopes, intercepts = np.vstack([np.zeros_like(slopes), slopes]), np.array([0.0, intercepts[0]])
        slopes = slopes / scaler.scale_
        return cls(slopes, intercepts - slopes @ scaler.mean_, model.classes_.astype(np.int64), n_cells)

    def predict(self, X: Floats) -> Floats:
        """Return probabilities of shape (n_rows, n_cells)."""
        shares = np.zeros((X.shape[0], self.n_cells))
        shares[:, self.present] = softmax(X @ self.weights.T + self.intercepts, axis=1)
        return shares


class Trees(NamedTuple):
    """Nodes of all trees of a forest, one after another."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    roots: Ints
    leaf: Ints
    shares: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ForestCells:
    """Quantile regression forest (Meinshausen, 2006): mean over trees of the distribution within a row's leaf."""

    trees: Trees
    n_features: int

    @classmethod
    def of(
        cls, X: Floats, numbers: Floats, located: Ints, weights: Floats, *, n_cells: int, random_state: int
    ) -> ForestCells:
        """Find splits on some of the rows, and count all rows in the leaves."""
        n_rows = X.shape[0]
        some = min(n_rows, int(np.clip(n_rows // 4, _LEAST_ROWS, _MOST_ROWS)))
        leaf = int(np.clip(n_rows**0.6 / 3, _LEAST_LEAF, _MOST_LEAF) * some / n_rows)
        forest = RandomForestRegressor(
            _TREES,
            min_samples_leaf=max(5, min(leaf, some // 4)),
            max_features=max(1, -(-2 * X.shape[1] // 3)),
            max_samples=some,
            random_state=random_state,
        ).fit(X, _targets(numbers, located, n_cells), sample_weight=weights)
        trees = [one.tree_ for one in forest.estimators_]
        sizes = np.array([tree.node_count for tree in trees])
        roots = np.cumsum(sizes) - sizes
        moved = np.repeat(roots, sizes)
        left, right, feature = (
            np.concatenate([getattr(tree, name) for tree in trees]).astype(np.int64)
            for name in ("children_left", "children_right", "feature")
        )
        inner = left >= 0
        leaves = np.where(inner, -1, np.cumsum(~inner) - 1)
        rows, counts = X.astype(np.float32), []
        for root, tree, size in zip(roots, trees, sizes, strict=True):
            own = leaves[root : root + size]
            first, n_leaves = own.max(initial=-1) - (own >= 0).sum() + 1, int((own >= 0).sum())
            reached = own[tree.apply(rows)] - first
            counts.append(np.bincount(reached * n_cells + located, weights, minlength=n_leaves * n_cells))
        shares = np.concatenate(counts).reshape(-1, n_cells).astype(np.float32)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)
        nodes = Trees(
            feature=np.where(inner, feature, 0),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            left=np.where(inner, left + moved, -1),
            right=np.where(inner, right + moved, -1),
            roots=roots.astype(np.int64),
            leaf=leaves.astype(np.int64),
            shares=shares,
        )
        return cls(nodes, X.shape[1])

    def predict(self, X: Floats) -> Floats:
        """Return probabilities of shape (n_rows, n_cells)."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"The causes have {X.shape[1]} features; the forest was fitted to {self.n_features}.")
        total = np.zeros((X.shape[0], self.trees.shares.shape[1]), dtype=np.float32)
        _add_leaf_shares(X.astype(np.float32), self.trees, total)
        return (total / np.float32(len(self.trees.roots))).astype(np.float64)


@cached_njit(nogil=True)
def _add_leaf_shares(X: Any, trees: Trees, total: Any) -> None:
    """Add the shares of each row's leaf in every tree to its total."""
    for row in range(X.shape[0]):
        for root in trees.roots:
            node = root
            while trees.left[node] >= 0:
                goes_left = X[row, trees.feature[node]] <= trees.threshold[node]
                node = trees.left[node] if goes_left else trees.right[node]
            leaf = trees.leaf[node]
            for cell in range(total.shape[1]):
                total[row, cell] += trees.shares[leaf, cell]


def _targets(numbers: Floats, located: Ints, n_cells: int) -> Floats:
    """Return what trees split by: levels as indicators, or numbers with their absolute deviation, standardised."""
    known = np.isfinite(numbers)
    if n_cells <= FEW_CELLS:
        return (located[:, None] == np.arange(n_cells)).astype(np.float64)
    filled = np.where(known, numbers, np.median(numbers[known]))
    low, high = np.quantile(filled, [0.005, 0.995])
    clipped = np.clip(filled, low, high)
    parts = [clipped, np.abs(clipped - np.median(clipped))]
    if not known.all():
        parts.append((~known).astype(np.float64))
    return np.column_stack([part / max(float(part.std()), 1e-300) for part in parts])


_N_CELLS = 200
_TAILS = (0.0005, 0.001, 0.002, 0.0035)
_HEAVY, _LEAST_HEAVY = 0.02, 15  # share and number of rows with one value from which on it is an atom
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the pinball loss by which a method is chosen
_MOST_CHOOSING, _LEAST_CHOOSING = (
    2_000,
    40,
)  # rows of a group that a method is chosen on, and fewest that it learns from
_CHUNK = 20_000  # rows whose distributions are in memory at a time


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the line, in order: atoms (one value) and the intervals between them; missing values come first."""

    low: Floats
    high: Floats

    @classmethod
    def of_levels(cls, n_levels: int, *, missing: bool) -> Cells:
        """Return one atom for each level."""
        ends = np.concatenate([np.full(int(missing), np.nan), np.arange(n_levels, dtype=np.float64)])
        return cls(ends, ends)

    @classmethod
    def of_numbers(cls, numbers: Floats, weights: Floats, *, missing: bool) -> Cells:
        """Return about 200 cells with equal numbers of rows, finer at the ends; frequent values are atoms."""
        known = np.isfinite(numbers)
        numbers, weights = numbers[known], weights[known]
        values, counts = _counted(numbers, weights)
        atoms = values[counts > max(_HEAVY * counts.sum(), _LEAST_HEAVY)]
        levels = np.concatenate([_TAILS, np.arange(1, _N_CELLS) / _N_CELLS, 1.0 - np.array(_TAILS)])
        cuts = Sample.from_values(numbers, weights).quantile(np.sort(levels))
        edges = np.unique(np.concatenate([values[[0, -1]], cuts, atoms]))
        low, high = _paired(edges, atoms)
        gone = np.full(int(missing), np.nan)
        return cls(np.concatenate([gone, low]), np.concatenate([gone, high]))

    @property
    def is_atom(self) -> Bools:
        """True for cells with one value."""
        return ~(self.high > self.low)

    def locate(self, numbers: Floats) -> tuple[Ints, Floats]:
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

    def value(self, cells: Ints, inner: Floats) -> Floats:
        """Return the number at a position within a cell; the inverse of `locate`."""
        return self.low[cells] + inner * (self.high[cells] - self.low[cells])


def _counted(numbers: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the different numbers and the weight of each."""
    values, index = np.unique(numbers, return_inverse=True)
    return values, np.asarray(np.bincount(index, weights), dtype=np.float64)


def _paired(edges: Floats, atoms: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the intervals between edges and of atoms, in order."""
    low = np.concatenate([edges[:-1], atoms])
    high = np.concatenate([edges[1:], atoms])
    if not low.size:
        return edges[:1], edges[:1]
    order = np.lexsort((high, low))
    return low[order], high[order]


@dataclass(frozen=True, eq=False)
class ConditionalDistribution:
    """The distribution of a node given its causes."""

    cells: Cells
    model: CellModel
    location: Any = None
    scale: Any = None

    def ranks(self, X: Floats, numbers: Floats, ties: Floats) -> Any:
        """Return P(value < number) + tie * P(value = number), given the causes; ties are within 0 and 1."""
        centre, unit = _centre(self.location, self.scale, X)
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

    def quantiles(self, X: Floats, ranks: Floats) -> Floats:
        """Return the value of each rank, given the causes."""
        centre, unit = _centre(self.location, self.scale, X)
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


def fit_conditional(
    X: Floats, numbers: Floats, weights: Floats, *, n_levels: int | None, method: Any, random_state: int
) -> ConditionalDistribution:
    """Estimate the distribution of a node given its causes."""
    known = np.isfinite(numbers)
    missing = not known.all()
    if n_levels is not None:
        cells = Cells.of_levels(n_levels, missing=missing)
        return ConditionalDistribution(
            cells, _fit_cells(X, numbers, weights, cells, method=method, random_state=random_state)
        )
    values, counts = _counted(numbers[known], weights[known])
    location = scale = None
    if X.shape[1] and values.size > 1 and counts.max() <= max(_HEAVY * counts.sum(), _LEAST_HEAVY):
        location = _location(method, random_state)
        name = f"{last_step(location)[0]}sample_weight"
        location.fit(X[known], numbers[known], **({name: weights[known]} if np.ptp(weights) > 0 else {}))
        if method == "linear":
            scale = LinearSpread.of(X[known], numbers[known] - location.predict(X[known]), weights[known])
    centre, unit = _centre(location, scale, X)
    residuals = (numbers - centre) / unit
    cells = Cells.of_numbers(residuals, weights, missing=missing)
    if location is not None and method != "forest" and not missing:
        model: CellModel = MarginalCells.of(cells.locate(residuals)[0], weights, cells.low.size)
    else:
        model = _fit_cells(X, residuals, weights, cells, method=method, random_state=random_state)
    return ConditionalDistribution(cells, model, location, scale)


def _location(method: Any, random_state: int) -> Any:
    """Return the regression that residuals are taken from."""
    if method == "boosted":
        return HistGradientBoostingRegressor(max_leaf_nodes=8, early_stopping=False, random_state=random_state)
    return LinearRegression() if isinstance(method, str) else clone(method)


def choose_method(parts: Sequence[tuple[Floats, Floats, Floats]], *, n_levels: int | None, random_state: int) -> str:
    """Return the method with the least pinball loss on held-out rows of all groups; linear unless another is better.

    Better is by more than one standard error. Half of at most 2,000 rows of each group are held out.
    """
    losses: dict[str, list[Floats]] = {"linear": [], "forest": [], "boosted": []}
    if n_levels is not None:  # levels have no residuals to boost
        del losses["boosted"]
    counted = []
    for X, numbers, weights in parts:
        rows = np.random.default_rng(random_state).permutation(numbers.size)[:_MOST_CHOOSING]
        some, held_out = rows[::2], rows[1::2]
        if (
            not X.shape[1]
            or some.size < _LEAST_CHOOSING
            or np.unique(numbers[some][np.isfinite(numbers[some])]).size < 2
        ):
            return "linear"
        counted.append(weights[held_out])
        for method, found in losses.items():
            one = fit_conditional(
                X[some], numbers[some], weights[some], n_levels=n_levels, method=method, random_state=random_state
            )
            found.append(_pinball(one, X[held_out], numbers[held_out]))
    shares = np.concatenate(counted)
    shares /= shares.sum()
    each = {method: np.concatenate(found) for method, found in losses.items()}
    best = min(each, key=lambda method: float(shares @ each[method]))
    gain = each["linear"] - each[best]
    noise = np.sqrt(shares**2 @ (gain - shares @ gain) ** 2)
    return best if shares @ gain > noise else "linear"


def _pinball(distribution: ConditionalDistribution, X: Floats, numbers: Floats) -> Floats:
    """Return the mean pinball loss of each row over levels; 0 for missing values."""
    total = np.zeros(numbers.size)
    for level in _LEVELS:
        excess = numbers - distribution.quantiles(X, np.full(numbers.size, level))
        total += np.nan_to_num(np.maximum(level * excess, (level - 1.0) * excess))
    return total / len(_LEVELS)


def _centre(location: Any, scale: Any, X: Floats) -> tuple[Any, Any]:
    if location is None:
        return 0.0, 1.0
    centre = np.asarray(location.predict(X), dtype=np.float64)
    if scale is None:
        return centre, 1.0
    return centre, scale.predict(X)


def _fit_cells(
    X: Floats, numbers: Floats, weights: Floats, cells: Cells, *, method: Any, random_state: int
) -> CellModel:
    located = cells.locate(numbers)[0]
    if not X.shape[1] or np.unique(located).size == 1:
        return MarginalCells.of(located, weights, cells.low.size)
    if isinstance(method, str) and method == "linear" and cells.low.size <= FEW_CELLS:
        return MultinomialCells.of(X, located, weights, cells.low.size)
    return ForestCells.of(X, numbers, located, weights, n_cells=cells.low.size, random_state=random_state)


@dataclass(frozen=True, eq=False)
class LinearSpread:
    """Linear regression of absolute residuals, at least a tenth of their mean."""

    model: LinearRegression
    least: float

    @classmethod
    def of(cls, X: Floats, residuals: Floats, weights: Floats) -> LinearSpread:
        """Fit the regression."""
        sizes = np.abs(residuals)
        mean = float(np.average(sizes, weights=weights))
        return cls(LinearRegression().fit(X, sizes, sample_weight=weights), max(0.1 * mean, 1e-300))

    def predict(self, X: Floats) -> Floats:
        """Return the spread of each row."""
        return np.maximum(self.model.predict(X), self.least)


def _chunks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _CHUNK):
        yield slice(start, start + _CHUNK)


# Columns of a table as nodes of a graph: numbers, or levels in an order.

_MOST_LEVELS = 20  # different numbers of a column that are levels
_MOST_INDICATORS = 30  # levels of a cause that have a column of the design each


class Table:
    """Reads and replaces columns of a table of pandas, polars or pyarrow, or of a dict of columns."""

    def __init__(self, table: Any) -> None:
        self._native = table
        self._columns: dict[str, Any]
        if isinstance(table, Mapping):
            self._columns = {str(name): np.asarray(column) for name, column in table.items()}
            lengths = {column.shape[:1] for column in self._columns.values()}
            if len(lengths) > 1:
                raise ValueError("The columns of the table have different lengths.")
            self.n_rows = len(next(iter(self._columns.values()), ()))
            return
        frame = nw.from_native(table, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise TypeError("The table is lazy; collect it first (.collect()).")
        if not isinstance(frame, nw.DataFrame):
            raise TypeError(f"table must have named columns, as a DataFrame has; got a {type(table).__name__}.")
        self._frame = frame
        self._columns = {name: frame[name] for name in frame.columns}
        self.n_rows = len(frame)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def replaced(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Return the table with new values in some columns, of the type of the old ones where these allow it."""
        if isinstance(self._native, Mapping):
            return {**self._native, **columns}
        series = [
            _new_series(name, values, self._columns[name], self._frame.implementation)
            for name, values in columns.items()
        ]
        if hasattr(self._native, "index") and hasattr(self._native, "assign"):  # pandas: rows keep their index
            named = {one.name: one.to_native().to_numpy() for one in series}
            return self._native.assign(**{name: _as_type(named[name], self._native[name]) for name in named})
        return self._frame.with_columns(*series).to_native()


def _as_type(values: NDArray[Any], old: Any) -> Any:
    try:
        return type(old)(values, index=old.index, dtype=old.dtype)
    except (TypeError, ValueError):  # missing values in a column of whole numbers, for instance
        return values


def _new_series(name: str, values: NDArray[Any], old: Any, backend: Any) -> nw.Series[Any]:
    plain = [None if value is None or value != value else value for value in values.tolist()]  # noqa: PLR0124 - NaN
    try:
        return nw.new_series(name, plain, old.dtype, backend=backend)
    except Exception:  # noqa: BLE001 - each library raises its own where a value does not fit the type
        return nw.new_series(name, plain, backend=backend)


@dataclass(frozen=True, eq=False)
class NodeColumn:
    """The reading of a column: as numbers, or as levels in an order."""

    name: str
    levels: tuple[Any, ...] | None
    ordered: bool
    whole: bool

    @classmethod
    def of(cls, name: str, column: Any, order: Sequence[Any] | None = None) -> NodeColumn:
        """Return how a column is read: more than 20 different numbers are numbers, everything else is levels."""
        values, codes = distinct_values(column, name)
        present = [value for value in values if value is not None and value == value]  # noqa: PLR0124 - NaN
        if not present:
            raise ValueError(f"Column {name!r} has no values.")
        numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
        if numeric and not all(map(np.isfinite, present)):
            raise ValueError(f"Column {name!r} has infinite values.")
        if order is not None:
            return cls(name, _in_order(name, present, order), False, False)
        if numeric and len(present) > _MOST_LEVELS:
            return cls(name, None, True, all(float(value).is_integer() for value in present))
        given = _order_of(column)
        if given is not None:
            return cls(name, tuple(value for value in given if value in {*present}), True, False)
        if numeric or all(isinstance(value, bool) for value in present):
            return cls(name, tuple(sorted(present)), True, False)
        sizes = np.bincount(codes[codes >= 0], minlength=len(values))
        count = dict(zip(values, sizes.tolist(), strict=True))
        return cls(name, tuple(sorted(present, key=lambda value: (-count[value], str(value)))), False, False)

    def encode(self, column: Any) -> Floats:
        """Return numbers, or the index of each level; NaN where a value is missing."""
        values, codes = distinct_values(column, self.name)
        if self.levels is None:
            try:
                table = [np.nan if value is None else float(value) for value in values]
            except (TypeError, ValueError):
                raise ValueError(f"Column {self.name!r} was one of numbers in fit, and is not here.") from None
        else:
            index = {level: number for number, level in enumerate(self.levels)}
            missing = [value is None or value != value for value in values]  # noqa: PLR0124 - NaN
            n_new = sum(not gone and value not in index for gone, value in zip(missing, values, strict=True))
            if n_new:
                raise ValueError(f"Column {self.name!r} has {n_new} values that the table of fit did not have.")
            table = [np.nan if gone else index[value] for gone, value in zip(missing, values, strict=True)]
        return np.array([*table, np.nan])[codes]

    def decode(self, numbers: Floats) -> NDArray[Any]:
        """Return values of the column from what `encode` returns."""
        if self.levels is None:
            whole = self.whole and bool(np.isfinite(numbers).all())
            return np.rint(numbers).astype(np.int64) if whole else np.rint(numbers) if self.whole else numbers
        known = np.isfinite(numbers)
        codes = np.where(known, numbers, len(self.levels)).astype(np.int64)
        return np.array([*self.levels, None], dtype=object)[codes]

    def features(self, numbers: Floats) -> Floats:
        """Return the columns that this one has in a design matrix; missing values are 0 and have an indicator."""
        known = np.isfinite(numbers)
        missing = (~known).astype(np.float64)[:, None]
        if self.levels is None or self.ordered or len(self.levels) > _MOST_INDICATORS:
            return np.column_stack([np.where(known, numbers, 0.0), missing])
        return np.column_stack([numbers[:, None] == np.arange(len(self.levels)), missing]).astype(np.float64)


def design_matrix(columns: Sequence[NodeColumn], values: Sequence[Floats], n_rows: int) -> Any:
    """Return the features of some columns, side by side."""
    parts = [column.features(numbers) for column, numbers in zip(columns, values, strict=True)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((n_rows, 0))


def _in_order(name: str, present: Sequence[Any], order: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of a column in a given order, which has to have each of them once."""
    chosen = tuple(value for value in dict.fromkeys(order) if value in {*present})
    if len(chosen) < len(present):
        raise ValueError(f"orders lacks {len(present) - len(chosen)} of the {len(present)} values of column {name!r}.")
    return chosen


@dataclass(frozen=True, eq=False)
class SeenValues:
    """The values that rows have: between the lowest and the highest, or among the levels."""

    low: float
    high: float
    levels: Floats | None
    missing: bool

    @classmethod
    def of(cls, numbers: Floats, *, levels: bool) -> SeenValues:
        """Return what the numbers of `NodeColumn.encode` have."""
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if known.size else (np.inf, -np.inf)
        return cls(low, high, np.unique(known) if levels else None, known.size < numbers.size)

    def includes(self, numbers: Floats) -> Bools:
        """Return which numbers lie within."""
        inside = (numbers >= self.low) & (numbers <= self.high)
        if self.levels is not None:
            inside = np.isin(numbers, self.levels)
        return np.asarray(inside | (np.isnan(numbers) & self.missing))

    def overlaps(self, other: SeenValues) -> bool:
        """Return whether there can be rows with the same value."""
        if self.levels is not None and other.levels is not None:
            return bool(np.intersect1d(self.levels, other.levels).size) or (self.missing and other.missing)
        return max(self.low, other.low) <= min(self.high, other.high) or (self.missing and other.missing)


def _order_of(column: Any) -> list[Any] | None:
    """Return the categories of an ordered column of pandas, or of an enum of polars, in their order."""
    native = nw.to_native(column, pass_through=True)
    kind: Any = getattr(native, "dtype", None)
    if getattr(kind, "ordered", False) and hasattr(kind, "categories"):
        return list(kind.categories)
    if isinstance(column, nw.Series) and column.dtype == nw.Enum:
        return list(column.dtype.categories)  # type: ignore[attr-defined]
    return None
