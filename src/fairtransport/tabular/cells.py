"""Rows of text or JSON -> columns of cells: the reader that streams, servers and files share.

A row is a JSON object, or the fields of a line of CSV. Whatever the format, a column has the same content: numbers as
numbers, or as the texts that they were written as; everything else as text, so that ``1`` and ``true``, which Python
takes for equal, are not confused. `fairtransport.tabular.RowScorer.read` turns such columns into what a model takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Ints
from fairtransport.tabular.column_plans import normalize_text
from fairtransport.tabular.rows import Owners, ReasonKind, RowReason

#: Columns that an input may have besides those of the model; more of them are refused while they are read.
MAX_FURTHER_COLUMNS = 10_000

_NUMBERS = frozenset({int, float})
_NESTED = (dict, list)
_NO_OBJECT = RowReason("not a JSON object", ReasonKind.NOT_READABLE)


class UnreadableRowError(ValueError):
    """A row that cannot be read, with the reason."""

    def __init__(self, text: str, kind: ReasonKind = ReasonKind.NOT_READABLE) -> None:
        super().__init__(text)
        self.reason = RowReason(text, kind)


@dataclass(frozen=True)
class WantedColumns:
    """Columns to read: a row must have those that are needed; ``numbers`` are those of either that contain numbers."""

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, those that are needed first."""
        return (*self.needed, *self.optional)


@dataclass(frozen=True, eq=False, repr=False)  # a repr may end up in a log
class RowCells:
    """Cells, by column, of those of ``n_rows`` rows that can be read; the others, by number, with their reasons."""

    n_rows: int
    columns: Any
    rejected: dict[int, RowReason] = field(default_factory=dict)
    owners: Owners | None = None

    @cached_property
    def kept(self) -> Ints:
        """Numbers of the rows that can be read."""
        return np.array([row for row in range(self.n_rows) if row not in self.rejected], dtype=np.int64)


# JSON objects.


def decode_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a line contains; raise `UnreadableRowError` if it contains something else."""
    try:
        fields = _decode(text)
    except UnreadableRowError:
        raise
    except (ValueError, RecursionError):
        raise UnreadableRowError("not JSON") from None
    if not isinstance(fields, dict):
        raise UnreadableRowError("not a JSON object")
    return fields


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise UnreadableRowError("a key is repeated")
    return fields


_decode = json.JSONDecoder(object_pairs_hook=_object).decode


def cells_of_objects(rows: Sequence[Any], wanted: WantedColumns) -> RowCells:
    """Return the cells of rows that are dicts; a row may be a `RowReason` instead."""
    try:
        return RowCells(len(rows), _take_columns(rows, wanted))
    except (KeyError, TypeError, AttributeError, UnreadableRowError):  # of one row or more
        reasons = [_reason_against(row, wanted) for row in rows]
    kept = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    rejected = {n: reason for n, reason in enumerate(reasons) if reason is not None}
    return RowCells(len(rows), _take_columns(kept, wanted), rejected)


def _reason_against(row: Any, wanted: WantedColumns) -> RowReason | None:
    if isinstance(row, RowReason):
        return row
    if not isinstance(row, dict):
        return _NO_OBJECT
    for name in wanted.needed:
        if name not in row:
            return RowReason(f"no column {name!r}", ReasonKind.MISSING_COLUMN)
    try:
        for name in wanted.names:
            _check_cells([row.get(name)], name)
    except UnreadableRowError as error:
        return error.reason
    return None


def _take_columns(rows: Sequence[Any], wanted: WantedColumns) -> dict[str, Any]:
    """Return the columns; raise KeyError, TypeError or `UnreadableRowError` if one of the rows does not have them."""
    numbers = [name for name in wanted.needed if name in wanted.numbers]
    columns = _take_matrix(rows, numbers) if numbers and rows else {}
    for name in wanted.names:
        if name in columns or (name in wanted.optional and not any(name in row for row in rows)):
            continue
        cells = [row[name] for row in rows] if name in wanted.needed else [row.get(name) for row in rows]
        _check_cells(cells, name)
        columns[name] = as_column(cells, number=name in wanted.numbers)
    return columns


def as_column(cells: Sequence[Any], *, number: bool) -> NDArray[Any]:
    """Return cells as a column; the numbers of a column of text are texts, as CSV has them."""
    return object_array(
        cells if number else [normalize_text(cell) if type(cell) in _NUMBERS else cell for cell in cells]
    )


def _take_matrix(rows: Sequence[Any], names: list[str]) -> dict[str, Any]:
    """Return columns of numbers as those of one matrix; none if there is another value among them."""
    take = itemgetter(*names)
    try:
        matrix = np.array([take(row) for row in rows])
    except (ValueError, OverflowError):  # lists of different lengths, large integers
        return {}
    matrix = matrix[:, None] if len(names) == 1 and matrix.ndim == 1 else matrix
    if matrix.dtype.kind not in "iuf" or matrix.shape != (len(rows), len(names)):
        return {}
    return dict(zip(names, matrix.T, strict=True))


def _check_cells(cells: Iterable[Any], name: str) -> None:
    """Raise `UnreadableRowError` for lists and objects, and for texts with half of a surrogate pair."""
    for cell in cells:
        if isinstance(cell, _NESTED):
            raise UnreadableRowError(f"column {name!r} is not a single value", ReasonKind.NOT_A_NUMBER)
        if isinstance(cell, str) and not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError:
                raise UnreadableRowError(f"column {name!r} is not valid Unicode") from None


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a one-dimensional array of the values, without converting them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def join_cells(parts: Sequence[RowCells], wanted: WantedColumns) -> RowCells:
    """Return the rows of several parts one after the other; what a part lacks of an optional column is missing."""
    columns = {}
    for name in wanted.names:
        if any(name in part.columns for part in parts):
            columns[name] = np.concatenate([part.columns.get(name, np.full(part.kept.size, None)) for part in parts])
    starts = np.cumsum([0, *(part.n_rows for part in parts)]).tolist()
    rejected = {
        start + row: reason for start, part in zip(starts, parts, strict=False) for row, reason in part.rejected.items()
    }
    return RowCells(starts[-1], columns, rejected)


# Fields of CSV.


def check_header(header: Sequence[str], wanted: WantedColumns) -> dict[str, int]:
    """Return the positions of the wanted columns in a header; raise ValueError if one of them is there twice."""
    if len(header) > len(wanted.names) + MAX_FURTHER_COLUMNS:
        raise ValueError(
            f"The header names more than {MAX_FURTHER_COLUMNS:,} columns that the model does not need; send only those "
            "that it needs."
        )
    positions: dict[str, int] = {}
    names = frozenset(wanted.names)
    for index, name in enumerate(header):
        if name in names and positions.setdefault(name, index) != index:
            raise ValueError(f"The header names a column twice that the model needs: {name!r}.")
    return positions


def cells_of_fields(rows: Sequence[Any], n_fields: int, positions: dict[str, int]) -> RowCells:
    """Return the cells of rows that are lists of fields; a row may be a `RowReason` instead."""
    rejected, reasons = {}, dict[int, RowReason]()  # by the number of fields: many rows may have the same
    for n, row in enumerate(rows):
        if isinstance(row, RowReason):
            rejected[n] = row
        elif len(row) != n_fields:
            text = f"has {len(row)} fields; the header has {n_fields}"
            rejected[n] = reasons.setdefault(len(row), RowReason(text, ReasonKind.NOT_READABLE))
    kept = [row for n, row in enumerate(rows) if n not in rejected] if rejected else rows
    columns = {name: object_array([row[index] for row in kept]) for name, index in positions.items()}
    return RowCells(len(rows), columns, rejected)
