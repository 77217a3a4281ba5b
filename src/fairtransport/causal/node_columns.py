"""Columns of a table as nodes of a graph: numbers, or levels in an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._columns import distinct_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["NodeColumn", "SeenValues", "Table", "design_matrix"]

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
    """How a column is read: as numbers, or as levels in an order.

    Parameters
    ----------
    name : str
    levels : tuple or None
        Values of a column with levels, in order; None for numbers.
    ordered : bool
        Whether that order is the values' own; levels of categories are ordered by frequency, or as the user says.
    whole : bool
        Whether numbers are whole.
    """

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

    def encode(self, column: Any) -> NDArray[np.float64]:
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

    def decode(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """Return values of the column from what `encode` returns."""
        if self.levels is None:
            whole = self.whole and bool(np.isfinite(numbers).all())
            return np.rint(numbers).astype(np.int64) if whole else np.rint(numbers) if self.whole else numbers
        known = np.isfinite(numbers)
        codes = np.where(known, numbers, len(self.levels)).astype(np.int64)
        return np.array([*self.levels, None], dtype=object)[codes]

    def features(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the columns that this one has in a design matrix; missing values are 0 and have an indicator."""
        known = np.isfinite(numbers)
        missing = (~known).astype(np.float64)[:, None]
        if self.levels is None or self.ordered or len(self.levels) > _MOST_INDICATORS:
            return np.column_stack([np.where(known, numbers, 0.0), missing])
        return np.column_stack([numbers[:, None] == np.arange(len(self.levels)), missing]).astype(np.float64)


def design_matrix(columns: Sequence[NodeColumn], values: Sequence[NDArray[np.float64]], n_rows: int) -> Any:
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
    """Which values some rows have: between the lowest and the highest, or among the levels.

    Parameters
    ----------
    low, high : float
    levels : ndarray or None
        Indices of the levels that occur; None for numbers.
    missing : bool
        Whether a value is missing.
    """

    low: float
    high: float
    levels: NDArray[np.float64] | None
    missing: bool

    @classmethod
    def of(cls, numbers: NDArray[np.float64], *, levels: bool) -> SeenValues:
        """Return what the numbers of `NodeColumn.encode` have."""
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if known.size else (np.inf, -np.inf)
        return cls(low, high, np.unique(known) if levels else None, known.size < numbers.size)

    def includes(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
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
