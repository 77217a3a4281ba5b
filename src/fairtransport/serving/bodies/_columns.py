"""Columns of a request, taken from rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport.serving._errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RequestRows", "WantedColumns", "columns_of_rows", "missing_columns"]

_NESTED = (dict, list)


@dataclass(frozen=True)
class WantedColumns:
    """Columns that are read from a request.

    Attributes
    ----------
    needed : tuple of str
        A request without one of them cannot be scored.
    numbers : frozenset of str
        Those of them that contain numbers.
    optional : tuple of str
        Columns that are read where they are present.
    """

    needed: tuple[str, ...]
    numbers: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequestRows:
    """Rows of a request.

    Attributes
    ----------
    n_rows : int
    table : dict of str to array, or pyarrow.Table
        Columns of the rows that can be read.
    rejected : dict of int to str
        Reason for each row that cannot be read, by number; the other rows are in ``table``, in their order.
    """

    n_rows: int
    table: Any
    rejected: dict[int, str] = field(default_factory=dict)


def missing_columns(names: Sequence[str]) -> RequestError:
    """Return the error of a request that lacks columns."""
    return RequestError(422, f"The rows have no {say_columns(list(names))}, which the model needs.")


def columns_of_rows(rows: Sequence[Any], wanted: WantedColumns, rejected: dict[int, str] | None = None) -> RequestRows:
    """Return the wanted columns of rows that are dicts.

    Parameters
    ----------
    rows : sequence
        Dicts; anything else is rejected. None for one that is rejected already.
    wanted : WantedColumns
    rejected : dict of int to str, optional
        Reasons for the rows that are None.

    Returns
    -------
    RequestRows

    Raises
    ------
    RequestError
        If no row has a column that is needed.
    """
    try:
        if not rejected:
            return RequestRows(len(rows), _take_columns(rows, wanted))
    except (KeyError, TypeError, AttributeError, _NestedValueError):
        pass
    reasons = dict(rejected or {})
    reasons |= {n: "not an object" for n, row in enumerate(rows) if n not in reasons and not isinstance(row, dict)}
    objects = [(n, row) for n, row in enumerate(rows) if n not in reasons]
    absent = [name for name in wanted.needed if not any(name in row for _, row in objects)]
    if absent and objects:
        raise missing_columns(absent)
    for n, row in objects:
        for name in wanted.needed:
            if name not in row:
                reasons[n] = f"no column {name!r}"
                break
        else:
            nested = [name for name in (*wanted.needed, *wanted.optional) if isinstance(row.get(name), _NESTED)]
            if nested:
                reasons[n] = f"column {nested[0]!r} is not a single value"
    kept = [row for n, row in objects if n not in reasons]
    return RequestRows(len(rows), _take_columns(kept, wanted), dict(sorted(reasons.items())))


class _NestedValueError(ValueError):
    """A list or an object where a single value is expected."""


def _take_columns(rows: Sequence[Any], wanted: WantedColumns) -> dict[str, Any]:
    """Return the columns; raise KeyError or TypeError if one of the rows does not have them all."""
    columns: dict[str, Any] = {}
    numbers = [name for name in wanted.needed if name in wanted.numbers]
    if numbers and rows:
        columns = _take_numbers(rows, numbers)
    for name in wanted.needed:
        if name not in columns:
            columns[name] = _object_array([row[name] for row in rows])
    for name in wanted.optional:
        if name not in columns and rows and name in rows[0]:
            columns[name] = _object_array([row.get(name) for row in rows])
    return columns


def _take_numbers(rows: Sequence[Any], names: list[str]) -> dict[str, Any]:
    """Return the columns as one matrix of numbers, or those that are none as they are."""
    take = itemgetter(*names)
    values = [take(row) for row in rows]
    try:
        matrix = np.array(values)
    except ValueError:  # lists of different lengths
        matrix = np.empty(0, dtype=object)
    if matrix.dtype.kind in "iuf":
        if matrix.shape == (len(rows), len(names)) and len(names) > 1:
            return dict(zip(names, matrix.T, strict=True))
        if matrix.shape == (len(rows),) and len(names) == 1:
            return {names[0]: matrix}
    columns = {}
    for name in names:
        column = [row[name] for row in rows]
        if {*map(type, column)} <= {int, float}:
            try:
                columns[name] = np.array(column, dtype=np.float64)
                continue
            except OverflowError:  # an integer beyond the largest float
                pass
        columns[name] = _object_array(column)
    return columns


def _object_array(values: list[Any]) -> Any:
    if any(isinstance(value, _NESTED) for value in values):
        raise _NestedValueError
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
