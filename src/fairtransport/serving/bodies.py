"""Bodies of requests in JSON, JSON lines, CSV and Arrow: rows with the columns that a model needs."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

from anyio import to_thread

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport.tabular.cells import (
    RowCells,
    UnreadableRowError,
    WantedColumns,
    cells_of_fields,
    cells_of_objects,
    check_header,
    decode_object,
)
from fairtransport.tabular.rows import ReasonKind, RowReason

_SMALL_BODY = 2**13  # bytes up to which a body is read in the event loop
Result = TypeVar("Result")

# Errors that become responses.


class RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def missing_columns(names: Sequence[str]) -> RequestError:
    """Return the error of a request that lacks columns."""
    return RequestError(422, f"The rows have no {say_columns(list(names))}, which the model needs.")


# Arrow IPC streams as bodies of requests.

# Positions of fields in the tables of Arrow's Message.fbs.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_LENGTH, _COMPRESSION = 0, 3  # of a RecordBatch
_DATA = 1  # of a DictionaryBatch: a RecordBatch


def _read_arrow(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    """Return the rows of an Arrow IPC stream."""
    arrow: Any = load_extra("pyarrow")
    load_extra("pyarrow.ipc")
    try:
        _check_messages(arrow, body, max_rows)
        with arrow.ipc.open_stream(body) as reader:
            positions = _check_names(reader.schema.names, wanted)
            table = reader.read_all().select([*positions])
        table.validate(full=True)
        table = _decoded(arrow, table)
    except (arrow.ArrowException, OSError, struct.error, IndexError):
        raise RequestError(400, "The body is not an Arrow IPC stream that can be read.") from None
    return RowCells(table.num_rows, dict(zip(table.column_names, table.columns, strict=True)))


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


def read_rows(body: bytes, file_format: str, wanted: WantedColumns, max_rows: int) -> RowCells:
    """Return the cells of the rows of a body."""
    if not body:
        raise RequestError(400, "The request has no body.")
    return _READERS[file_format](body, wanted, max_rows)


async def in_worker(body: bytes, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return ``function(body, *arguments)``, in a thread unless the body is small; it costs more than it saves then."""
    if len(body) <= _SMALL_BODY:
        return function(body, *arguments)
    return await to_thread.run_sync(function, body, *arguments, abandon_on_cancel=True)


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON")


_decode_json: Callable[[str], Any] = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _read_json(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    try:
        rows = _decode_json(body.decode())
    except RecursionError:
        raise RequestError(400, "The JSON is nested too deeply; rows are objects of single values.") from None
    except ValueError:
        raise RequestError(
            400, "The body is not JSON. NaN and Infinity are none either; a missing value is null."
        ) from None
    if not isinstance(rows, list):
        raise RequestError(422, 'The JSON must be a list of rows: [{"column": value, ...}, ...].')
    return _read_objects(rows, wanted, max_rows)


def _read_json_lines(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    lines = [line for line in body.splitlines() if line.strip()]
    _check_size(len(lines), max_rows)
    rows: list[Any] = []
    for line in lines:
        try:
            rows.append(decode_object(line.decode()))
        except UnreadableRowError as error:
            rows.append(error.reason)
        except UnicodeDecodeError:
            rows.append(RowReason("not UTF-8", ReasonKind.NOT_READABLE))
    return _read_objects(rows, wanted, max_rows)


def _read_objects(rows: list[Any], wanted: WantedColumns, max_rows: int) -> RowCells:
    _check_size(len(rows), max_rows)
    cells = cells_of_objects(rows, wanted)
    if len(cells.rejected) == len(rows):
        objects = [row for row in rows if isinstance(row, dict)]
        absent = [name for name in wanted.needed if not any(name in row for row in objects)]
        if absent and objects:
            raise missing_columns(absent)
    return cells


def _read_csv(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "The CSV is not UTF-8.") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        positions = _check_names(header, wanted)
        rows = [*islice(filter(None, reader), max_rows + 1)]
    except csv.Error:
        raise RequestError(400, "The body is not CSV: a quote is not closed, or a field is too long.") from None
    _check_size(len(rows), max_rows)
    return cells_of_fields(rows, len(header), positions)


def _check_names(names: Sequence[str], wanted: WantedColumns) -> dict[str, int]:
    """Return the positions of the wanted columns."""
    try:
        positions = check_header(names, wanted)
    except ValueError as error:
        raise RequestError(400, str(error)) from None
    absent = [name for name in wanted.needed if name not in positions]
    if absent:
        raise missing_columns(absent)
    return positions


def _check_size(n_rows: int, most: int) -> None:
    if n_rows > most:
        raise RequestError(413, f"The request has more than {most:,} rows; send them in several requests.")


_READERS: dict[str, Callable[[bytes, WantedColumns, int], RowCells]] = {
    "json": _read_json,
    "jsonl": _read_json_lines,
    "csv": _read_csv,
    "arrow": _read_arrow,
}
