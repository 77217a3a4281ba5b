"""Bodies of requests to a server: CSV and its header, JSON, JSON lines and Arrow streams, any bytes."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from fairtransport.serving.bodies import RequestError, read_rows
from fairtransport.tabular.cells import RowCells, WantedColumns

SHARE = 2
REFUSALS = (RequestError,)

_FORMATS = ("csv", "json", "jsonl", "arrow")
WANTED = WantedColumns(("s", "g"), ("h",), frozenset({"s"}))
_MAX_ROWS = 50


def seeds() -> list[bytes]:
    """Return typical bodies of each format, and damaged ones."""
    rows = [{"s": 0.5, "g": "CANARY7"}, {"s": None, "g": "b", "h": 1}]
    texts = [
        "s,g\n0.5,CANARY7\n",
        '"s","g","h"\r\n1,"a\n",2\r\n',
        "g,s,n,n\na,1,2,3\na\n",
        "s,s,g\n",
        "s,g\n" + "1,a\n" * 60,
    ]
    words = pa.array(["a", "CANARY7"])
    columns = [words, words.dictionary_encode(), words.cast(pa.string_view()), words.cast(pa.large_string())]
    tables = [pa.table({"s": np.array([0.5, 1.0]), "g": column}) for column in columns]
    tables += [pa.table({"s": pa.array([1, None]), "g": pa.array([True, False])}), pa.table({"s": words})]
    return [
        *(b"\0" + text.encode() for text in texts),
        *(b"\1" + json.dumps(one).encode() for one in (rows, rows[0], [*rows, 3, "x"])),
        *(b"\2" + text.encode() for text in ("\n".join(map(json.dumps, rows)), "[" * 60, '{"s": 1}\n\n{"g": ')),
        *(b"\3" + stream(one) for one in tables),
    ]


def stream(table: pa.Table) -> bytes:
    """Return an Arrow stream with a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def case(data: bytes) -> None:
    """Read the rest of the case in the format that the first byte selects."""
    read_checked(data[1:], _FORMATS[data[0] % 4 if data else 0])


def read_checked(body: bytes, file_format: str, wanted: WantedColumns = WANTED) -> RowCells:
    """Return the rows of a body, which are few, in equal columns, and not much larger than the body."""
    cells = read_rows(body, file_format, wanted, _MAX_ROWS)
    if cells.n_rows > _MAX_ROWS or any(len(column) != cells.kept.size for column in cells.columns.values()):
        raise RuntimeError("There are more rows than allowed, or columns of different lengths.")
    if any("CANARY7" in reason for reason in cells.rejected.values()):
        raise RuntimeError("A reason quotes a value.")
    if sum(len(cell) for column in cells.columns.values() for cell in column if isinstance(cell, str)) > 2**26:
        raise RuntimeError("A small body became large.")
    return cells
