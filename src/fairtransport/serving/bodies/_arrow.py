"""Arrow IPC streams as bodies of requests.

A compressed buffer may be thousands of times larger than the body, and pyarrow allocates it before anything can be
checked, so the metadata of each message are read first, and compressed ones are refused.
"""

from __future__ import annotations

import struct
from typing import Any

from fairtransport._extras import load_extra
from fairtransport.serving._errors import RequestError
from fairtransport.serving.bodies._columns import RequestRows, WantedColumns, missing_columns

__all__ = ["read_arrow"]

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
    for index, field in enumerate(table.schema):
        if arrow.types.is_nested(field.type):
            raise RequestError(422, f"Column {field.name!r} is nested; each cell must be a single value.")
        if arrow.types.is_dictionary(field.type):
            column = table.column(index).cast(field.type.value_type)
            table = table.set_column(index, field.name, column)
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
