"""Bodies of requests in JSON, JSON lines, CSV and Arrow: rows with the columns that a model needs."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from anyio import CapacityLimiter, to_thread
from numpy.typing import NDArray

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport.tabular.cells import (
    MAX_FURTHER_COLUMNS,
    RowCells,
    UnreadableRowError,
    WantedColumns,
    as_column,
    cells_of_fields,
    cells_of_objects,
    check_header,
    decode_object,
)
from fairtransport.tabular.rows import ReasonKind, RowReason

SMALL_BODY = 2**13  # bytes up to which a body is read in the event loop; a thread costs more than it saves
_FEW_CELLS = 2000  # up to which a text that is longer is, too
_LARGE = 2**16  # bytes from which one thread works: two keep the event loop waiting for twice as long
_PIECE = 2**18  # characters that a row of JSON may have; with many columns more
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
_DATA, _IS_DELTA = 1, 2  # of a DictionaryBatch: a RecordBatch, and whether it extends an earlier one
_MAX_MESSAGES = 1000  # of a stream; each takes memory of its own
_MAX_TEXTS = 2**25  # bytes
_TYPES = "number, text, boolean, date or timestamp"


def _read_arrow(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    """Return the rows of an Arrow IPC stream, as JSON would have them."""
    arrow: Any = load_extra("pyarrow")
    load_extra("pyarrow.ipc")
    try:
        _check_messages(arrow, body, max_rows)
        with arrow.ipc.open_stream(body) as reader:
            positions = _check_names(reader.schema.names, wanted)
            kinds = {name: _plain_type(arrow, reader.schema.field(name).type) for name in positions}
            refused = [name for name, kind in kinds.items() if kind is None]
            if refused:
                raise RequestError(422, f"The type of {say_columns(refused)} is not {_TYPES}.")
            table = reader.read_all().select([*positions])
        table.validate(full=True)  # offsets and indices, which compiled code trusts
        texts = sum(_text_bytes(arrow, chunk) for column in table.columns for chunk in column.chunks)
        if texts > _MAX_TEXTS:
            raise RequestError(413, f"The texts have more than {_MAX_TEXTS:,} bytes; send several requests.")
        columns = {
            name: _arrow_cells(arrow, column, kinds[name], number=name in wanted.numbers)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    except (arrow.ArrowException, OSError, struct.error, IndexError, ValueError, OverflowError):
        raise RequestError(400, "The body is not an Arrow IPC stream that can be read.") from None
    return RowCells(table.num_rows, columns)


def _plain_type(arrow: Any, kind: Any) -> Any:
    """Return the type that a column is converted to; None if its cells are nothing that a model takes."""
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_floating(kind) or types.is_decimal(kind):
        return arrow.float64()
    if types.is_timestamp(kind):
        return arrow.timestamp("us")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return arrow.large_string()
    kept = (types.is_integer, types.is_boolean, types.is_date, types.is_null)
    return kind if any(test(kind) for test in kept) else None


def _text_bytes(arrow: Any, cells: Any) -> int:
    """Return the bytes of the texts of an array, or of its dictionary if those are more; both may repeat bytes."""
    rows: Any = slice(None)
    if arrow.types.is_dictionary(cells.type):
        cells, rows = cells.dictionary, cells.indices.drop_null().to_numpy()
    if arrow.types.is_string_view(cells.type):
        parts = [None, *cells.buffers()[1:]]  # Arrow also converts the views of missing cells, which it has not checked
        arrow.Array.from_buffers(cells.type, len(cells), parts, 0, cells.offset).validate(full=True)
        sizes = np.frombuffer(parts[1], dtype="<i4")[4 * cells.offset :: 4][: len(cells)]
    elif arrow.types.is_string(cells.type) or arrow.types.is_large_string(cells.type):
        sizes = np.asarray(load_extra("pyarrow.compute").binary_length(cells).fill_null(0))
    else:
        return 0
    sizes = np.maximum(sizes, 0).astype(np.int64)
    return int(max(sizes.sum(), sizes[rows].sum()))


def _arrow_cells(arrow: Any, column: Any, kind: Any, *, number: bool) -> NDArray[Any]:
    """Return the cells of a column of Arrow as a column of JSON has them."""
    if arrow.types.is_dictionary(column.type):  # its values first: Arrow cannot take text views by an index
        parts = [part.dictionary.cast(kind, safe=False).take(part.indices) for part in column.chunks]
        column = arrow.chunked_array(parts, kind)
    column = column.cast(kind, safe=False)
    if number and (arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type)):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return as_column(column.to_pylist(), number=number)


def _check_messages(arrow: Any, body: bytes, max_rows: int) -> None:
    n_rows = 0
    for number, message in enumerate(arrow.ipc.MessageReader.open_stream(body)):
        if number > _MAX_MESSAGES:
            raise RequestError(413, f"The Arrow stream has more than {_MAX_MESSAGES:,} messages; send larger batches.")
        metadata = memoryview(message.metadata)
        root = struct.unpack_from("<I", metadata)[0]
        kind = _field(metadata, root, _HEADER_TYPE)
        header = _follow(metadata, _field(metadata, root, _HEADER))
        if kind is None or header is None:
            raise struct.error
        type_code = metadata[kind]
        if type_code == _DICTIONARY_BATCH:
            delta = _field(metadata, header, _IS_DELTA)
            if delta is not None and metadata[delta]:  # each would be joined to those before it
                raise RequestError(415, "The Arrow stream extends a dictionary; send it as a whole.")
            header = _follow(metadata, _field(metadata, header, _DATA))
        if type_code not in (_DICTIONARY_BATCH, _RECORD_BATCH) or header is None:
            continue
        if _field(metadata, header, _COMPRESSION) is not None:
            raise RequestError(415, "The Arrow stream is compressed; send it without compression.")
        length = _field(metadata, header, _LENGTH)
        rows = 0 if length is None else struct.unpack_from("<q", metadata, length)[0]
        n_rows += rows if type_code == _RECORD_BATCH else 0
        _check_size(max_rows + 1 if rows < 0 else max(n_rows, rows), max_rows)


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


def is_small(body: bytes, file_format: str) -> bool:
    """Return whether the rows of a body take so little time that the event loop may read and score them."""
    if len(body) <= SMALL_BODY or len(body) > 4 * SMALL_BODY or file_format == "arrow":
        return len(body) <= SMALL_BODY
    return body.count(b",") + body.count(b"\n") <= _FEW_CELLS


async def in_worker(n_bytes: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return ``function(*arguments)``, computed in one of few threads; only one of them takes what is large."""
    limiters = _WORKERS.setdefault(asyncio.get_running_loop(), (CapacityLimiter(2), CapacityLimiter(1)))
    limiter = limiters[n_bytes > _LARGE]
    return await to_thread.run_sync(function, *arguments, abandon_on_cancel=True, limiter=limiter)


_WORKERS: WeakKeyDictionary[Any, tuple[CapacityLimiter, CapacityLimiter]] = WeakKeyDictionary()


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON")


_FIRST, _NEXT = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*"), re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*")  # in a list
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def _read_json(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    try:
        text = body.decode()
        rows = _decoder.decode(text) if len(text) <= _LARGE else _decode_rows(text, max_rows, _max_row(wanted))
    except RecursionError:
        raise RequestError(400, "The JSON is nested too deeply; rows are objects of single values.") from None
    except ValueError:
        raise RequestError(
            400, "The body is not JSON. NaN and Infinity are none either; a missing value is null."
        ) from None
    if not isinstance(rows, list):
        raise RequestError(422, 'The JSON must be a list of rows: [{"column": value, ...}, ...].')
    return _read_objects(rows, wanted, max_rows)


def _max_row(wanted: WantedColumns) -> int:
    """Return the largest number of characters of a row of JSON; a larger one would stop all other threads."""
    return _PIECE + sum(len(name) + 100 for name in wanted.names)


def _decode_rows(text: str, max_rows: int, max_row: int) -> list[Any] | None:
    """Return the elements of a list, decoded one by one, so that other threads run meanwhile; None for no list."""
    found = _FIRST.match(text)
    if found is None:
        return None
    rows: list[Any] = []
    start, sign = found.end(), ","
    while sign == ",":
        piece, done = text[start : start + max_row], 0
        with contextlib.suppress(ValueError):  # no JSON, or a row that the piece cuts, which begins the next one
            while sign == ",":
                row, end = _decoder.raw_decode(piece, done)
                found = _NEXT.match(piece, end)
                if found is None:
                    break
                rows.append(row)
                _check_size(len(rows), max_rows)
                sign, done = found[1], found.end()
        start += done
        if not done or (sign == "]" and text[start:].strip(" \t\n\r")):
            raise RequestError(400, f"The body is not JSON, or a row has more than {max_row:,} characters.")
    return rows


def _read_json_lines(body: bytes, wanted: WantedColumns, max_rows: int) -> RowCells:
    found = (match[0] for match in re.finditer(rb"[^\r\n]+", body))
    lines = [*islice((line for line in found if line.strip()), max_rows + 1)]
    _check_size(len(lines), max_rows)
    rows: list[Any] = []
    max_row = _max_row(wanted)
    for line in lines:
        if len(line) > max_row:
            rows.append(RowReason(f"longer than {max_row} bytes", ReasonKind.NOT_READABLE))
            continue
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
    reader = csv.reader(_narrow_lines(text, wanted), strict=True)
    try:
        header = next(reader, [])
        positions = _check_names(header, wanted)
        rows = [*islice(filter(None, reader), max_rows + 1)]
    except csv.Error:
        raise RequestError(400, "The body is not CSV: a quote is not closed, or a field is too long.") from None
    _check_size(len(rows), max_rows)
    if not rows and text.rstrip("\r\n") == text:
        raise RequestError(400, "The CSV is a single line, without line ends; curl keeps them with --data-binary.")
    return cells_of_fields(rows, len(header), positions)


def _narrow_lines(text: str, wanted: WantedColumns) -> Iterator[str]:
    """Yield the lines of a text; refuse one with many columns before it is divided into them."""
    for line in io.StringIO(text, newline=""):
        if line.count(",") > len(wanted.names) + MAX_FURTHER_COLUMNS:
            further = f"more than {MAX_FURTHER_COLUMNS:,} columns that the model does not need"
            raise RequestError(400, f"A line has {further}; send only those that it needs.")
        yield line


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
