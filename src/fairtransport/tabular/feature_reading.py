"""Columns of a raw table -> the features that a fitted estimator takes, and the rows for which that fails."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._sklearn.estimator_calls import take_rows
from fairtransport.tabular.known_values import match_column
from fairtransport.tabular.value_parsing import parse_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.tabular.input_columns import InputColumn

__all__ = ["FeatureReader", "SetAside", "UnscorableRowError"]


class UnscorableRowError(ValueError):
    """A row that cannot be scored; the message is the reason, without any value of the row."""


class SetAside:
    """Rows that cannot be scored, each with its first reason.

    Parameters
    ----------
    n_rows : int
    """

    def __init__(self, n_rows: int) -> None:
        self._reasons: list[str] = []
        self._codes = np.full(n_rows, -1, dtype=np.int64)

    def add(self, rows: NDArray[Any], reason: str) -> None:
        """Set rows aside, as a mask or as indices; a row that already is keeps its reason."""
        chosen = np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
        chosen = chosen[self._codes[chosen] < 0]
        if chosen.size:
            self._codes[chosen] = len(self._reasons)
            self._reasons.append(reason)

    @property
    def kept(self) -> NDArray[np.int64]:
        """The other rows, ascending."""
        return np.flatnonzero(self._codes < 0)

    @property
    def reasons(self) -> dict[int, str]:
        """The reason of each row that is set aside, by its number from 0."""
        rows = np.flatnonzero(self._codes >= 0)
        return {int(row): self._reasons[self._codes[row]] for row in rows}


@dataclass(frozen=True)
class FeatureReader:
    """Reader of the features of an estimator.

    Parameters
    ----------
    columns : sequence of InputColumn
        Columns to read.
    named : bool
        Whether the estimator takes a table with names; otherwise it takes a matrix.
    decimal : {".", ","}, default="."
    """

    columns: Sequence[InputColumn]
    named: bool
    decimal: str = "."

    def require(self, table: Mapping[str, Any]) -> Any:
        """Return all rows as the estimator takes them; raise UnscorableRowError, with the reason, if one cannot be."""
        n_rows = len(next(iter(table.values()))) if table else 0
        set_aside = SetAside(n_rows)
        values = self.read(table, set_aside)
        for reason in set_aside.reasons.values():
            raise UnscorableRowError(reason)
        return self.features(values, set_aside.kept)

    def read(self, table: Mapping[str, Any], set_aside: SetAside) -> dict[str, NDArray[Any]]:
        """Return the columns as numbers and known categories; rows that no estimator could score are set aside."""
        numbers = self._finite_numbers(table)
        if numbers is not None:
            return numbers
        return {column.name: self._read_column(column, table[column.name], set_aside) for column in self.columns}

    def _finite_numbers(self, table: Mapping[str, Any]) -> dict[str, NDArray[Any]] | None:
        """Return the columns if all of them are finite numbers already, as in most requests to a server, else None."""
        if not self.columns or any(one.kind != "number" or one.categories is not None for one in self.columns):
            return None
        cells = [table[column.name] for column in self.columns]
        if not all(isinstance(one, np.ndarray) and one.dtype.kind in "iuf" for one in cells):
            return None
        matrix = np.column_stack(cells).astype(np.float64, copy=False)
        if not np.isfinite(matrix).all():
            return None
        return {column.name: matrix[:, index] for index, column in enumerate(self.columns)}

    def _read_column(self, column: InputColumn, cells: Any, set_aside: SetAside) -> NDArray[Any]:
        name = column.name
        values: NDArray[Any]
        if column.kind == "number":
            values = self.numbers(cells, name, set_aside)
            missing = np.isnan(values)
            if column.categories is not None and not column.allows_unknown:
                known = np.array([float(value) for value in column.categories if value == value])  # noqa: PLR0124
                set_aside.add(~missing & ~np.isin(values, known), f"column {name!r} has an unknown category")
        else:
            marker = None if column.categories is not None and None in column.categories else np.nan
            values, missing, unknown = match_column(cells, name, column.categories, marker)
            if column.is_category:
                values[unknown] = marker  # as the library itself treats it
            elif not column.allows_unknown:
                set_aside.add(unknown, f"column {name!r} has an unknown category")
        if not column.allows_missing:
            set_aside.add(missing, f"column {name!r} has no value")
        return values

    def numbers(self, cells: Any, name: str, set_aside: SetAside) -> NDArray[np.float64]:
        """Return a column as numbers; rows with something else are set aside."""
        values, unreadable = parse_numbers(cells, name, self.decimal)
        set_aside.add(unreadable, f"column {name!r} is not a number")
        return values

    def features(self, values: dict[str, NDArray[Any]], rows: NDArray[np.int64]) -> Any:
        """Return some rows as the estimator takes them: a table with names, or a matrix."""
        chosen = {name: take_rows(column, rows) for name, column in values.items()}
        if not self.named:
            return np.column_stack([*chosen.values()]) if chosen else np.empty((rows.size, 0))
        if find_spec("pandas") is None and find_spec("polars") is not None:
            return load_extra("polars").DataFrame(chosen)
        pandas = load_extra("pandas")
        if all(column.dtype == np.float64 for column in chosen.values()):  # one block, which scikit-learn reads at once
            return pandas.DataFrame(np.column_stack([*chosen.values()]), columns=[*chosen], copy=False)
        for column in self.columns:
            if column.is_category:
                chosen[column.name] = pandas.Categorical(chosen[column.name], categories=[*(column.categories or ())])
        return pandas.DataFrame(chosen, copy=False)
