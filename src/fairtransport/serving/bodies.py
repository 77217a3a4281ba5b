"""Bodies of requests in JSON, JSON lines, CSV and Arrow: rows with the columns that a model needs."""

from __future__ import annotations

import csv
import io
import json
import struct
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport.tabular.rows import ReasonKind, RowReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Errors that become responses.


class RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# Columns of a request, taken from rows.

_NESTED = (dict, list)


@dataclass(frozen=True)
class WantedColumns:
    """Columns that are read from a request."""

    needed: tuple[str, ...]
    numbers: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequestRows:
    """Rows of a request."""

    n_rows: int
    table: Any
    rejected: dict[int, RowReason] = field(default_factory=dict)


def missing_columns(names: Sequence[str]) -> RequestError:
    """Return the error of a request that lacks columns."""
    return RequestError(422, f"The rows have no {say_columns(list(names))}, which the model needs.")


def columns_of_rows(
    rows: Sequence[Any], wanted: WantedColumns, rejected: dict[int, RowReason] | None = None
) -> RequestRows:
    """Return the wanted columns of rows that are dicts."""
    try:
        if not rejected:
            return RequestRows(len(rows), _take_columns(rows, wanted))
    except (KeyError, TypeError, AttributeError, _NestedValueError):
        pass
    reasons = dict(rejected or {})
    reasons |= {
        n: RowReason("not an object", ReasonKind.NOT_READABLE)
        for n, row in enumerate(rows)
        if n not in reasons and not isinstance(row, dict)
    }
    objects = [(n, row) for n, row in enumerate(rows) if n not in reasons]
    absent = [name for name in wanted.needed if not any(name in row for _, row in objects)]
    if absent and objects:
        raise missing_columns(absent)
    for n, row in objects:
        for name in wanted.needed:
            if name not in row:
                reasons[n] = RowReason(f"no column {name!r}", ReasonKind.MISSING_COLUMN)
                break
        else:
            nested = [name for name in (*wanted.needed, *wanted.optional) if isinstance(row.get(name), _NESTED)]
            if nested:
                reasons[n] = RowReason(f"column {nested[0]!r} is not a single value", ReasonKind.NOT_A_NUMBER)
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


# Arrow IPC streams as bodies of requests.

# Positions of fields in the tables of Arrow's Message.fbs.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_LENGTH, _COMPRESSION = 0, 3  # of a RecordBatch
_DATA = 1  # of a DictionaryBatch: a RecordBatch


def read_arrow(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    """Return the rows of an Arrow IPC stream; see `read_rows`."""
    arrow: Any = load_extra("pyarrow")
    load_extra("pyarrow.ipc")
    try:
        _check_messages(arrow, body, max_rows)
        with arrow.ipc.open_stream(body) as reader:
            names = reader.schema.names
            columns = [*wanted.needed, *(name for name in wanted.optional if name in names)]
            absent = [name for name in wanted.needed if name not in names]
            if absent:
                raise missing_columns(absent)
            repeated = [name for name in columns if names.count(name) > 1]
            if repeated:
                raise RequestError(400, f"The stream has a column twice: {', '.join(map(repr, repeated))}.")
            table = reader.read_all().select(columns)
        table.validate(full=True)
        table = _decoded(arrow, table)
    except (arrow.ArrowException, OSError, struct.error, IndexError):
        raise RequestError(400, "The body is not an Arrow IPC stream that can be read.") from None
    return RequestRows(table.num_rows, table)


def _decoded(arrow: Any, table: Any) -> Any:
    """Return the table with single values instead of dictionaries; refuse nested columns."""
    for index, declared in enumerate(table.schema):
        if arrow.types.is_nested(declared.type):
            raise RequestError(422, f"Column {declared.name!r} is nested; each cell must be a single value.")
        if arrow.types.is_dictionary(declared.type):
            column = table.column(index).cast(declared.type.value_type)
            table = table.set_column(index, declared.name, column)
    return table


def _check_messages(arrow: Any, body: bytes, max_rows: int) -> None:
    n_rows = 0
    for message in arrow.ipc.MessageReader.open_stream(body):
        metadata = memoryview(message.metadata)
        root = struct.unpack_from("<I", metadata)[0]
        kind = _field(metadata, root, _HEADER_TYPE)
        header = _follow(metadata, _field(metadata, root, _HEADER))
        if kind is None or header is None:
            raise struct.error
        type_code = metadata[kind]
        if type_code == _DICTIONARY_BATCH:
            header = _follow(metadata, _field(metadata, header, _DATA))
        if type_code not in (_DICTIONARY_BATCH, _RECORD_BATCH) or header is None:
            continue
        if _field(metadata, header, _COMPRESSION) is not None:
            raise RequestError(415, "The Arrow stream is compressed; send it without compression.")
        length = _field(metadata, header, _LENGTH)
        rows = 0 if length is None else struct.unpack_from("<q", metadata, length)[0]
        n_rows += rows if type_code == _RECORD_BATCH else 0
        if rows < 0 or max(n_rows, rows) > max_rows:
            raise RequestError(413, f"The request has more than {max_rows:,} rows; send them in several requests.")


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Return the position of a field of a flatbuffer's table; None if the field is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", data, vtable + entry)[0] if entry + 2 <= size else 0
    return table + offset if offset else None


def _follow(data: memoryview, position: int | None) -> int | None:
    """Return the position of the table that a field refers to."""
    return None if position is None else position + struct.unpack_from("<I", data, position)[0]


#: Media types, and the format that each means.
FORMATS = {
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}


def read_rows(body: bytes, file_format: str, wanted: WantedColumns, max_rows: int) -> RequestRows:
    """Return the rows of a body."""
    if not body:
        raise RequestError(400, "The request has no body.")
    if file_format == "arrow":
        return read_arrow(body, wanted, max_rows)
    return _READERS[file_format](body, wanted, max_rows)


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON")


_decode_json: Callable[[str], Any] = json.JSONDecoder(parse_constant=_refuse_constant).decode
_load_json: Callable[[bytes], Any]
if find_spec("orjson") is not None:
    _load_json = import_module("orjson").loads
else:

    def _load_json(body: bytes) -> Any:
        return _decode_json(body.decode())


def _read_json(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    try:
        rows = _load_json(body)
    except RecursionError:
        raise RequestError(400, "The JSON is nested too deeply; rows are objects of single values.") from None
    except ValueError:
        raise RequestError(
            400, "The body is not JSON. NaN and Infinity are none either; a missing value is null."
        ) from None
    if not isinstance(rows, list):
        raise RequestError(422, 'The JSON must be a list of rows: [{"column": value, ...}, ...].')
    _check_rows(len(rows), max_rows)
    return columns_of_rows(rows, wanted)


def _read_json_lines(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    lines = [line for line in body.splitlines() if line.strip()]
    _check_rows(len(lines), max_rows)
    rows: list[Any] = []
    rejected: dict[int, RowReason] = {}
    for n, line in enumerate(lines):
        try:
            rows.append(_load_json(line))
        except (ValueError, RecursionError):
            rows.append(None)
            rejected[n] = RowReason("not JSON", ReasonKind.NOT_READABLE)
    return columns_of_rows(rows, wanted, rejected)


def _read_csv(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "The CSV is not UTF-8.") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        rows = [row for row in reader if row]
    except csv.Error:
        raise RequestError(400, "The body is not CSV: a quote is not closed, or a field is too long.") from None
    _check_rows(len(rows), max_rows)
    repeated = sorted({name for name in header if header.count(name) > 1} & {*wanted.needed, *wanted.optional})
    if repeated:
        raise RequestError(400, f"The header of the CSV has a column twice: {', '.join(map(repr, repeated))}.")
    positions = {name: index for index, name in enumerate(header)}
    absent = [name for name in wanted.needed if name not in positions]
    if absent:
        raise missing_columns(absent)
    text = f"another number of fields than the header, which has {len(header)}"
    reason = RowReason(text, ReasonKind.NOT_READABLE)
    rejected = {n: reason for n, row in enumerate(rows) if len(row) != len(header)}
    kept = [row for row in rows if len(row) == len(header)] if rejected else rows
    columns = [*wanted.needed, *(name for name in wanted.optional if name in positions)]
    table = {name: np.array([row[positions[name]] for row in kept], dtype=object) for name in columns}
    return RequestRows(len(rows), table, rejected)


def _check_rows(n_rows: int, most: int) -> None:
    if n_rows > most:
        raise RequestError(413, f"The request has more than {most:,} rows; send them in several requests.")


_READERS: dict[str, Callable[[bytes, WantedColumns, int], RequestRows]] = {
    "json": _read_json,
    "jsonl": _read_json_lines,
    "csv": _read_csv,
}
