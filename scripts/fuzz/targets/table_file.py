"""Files of tables, read by the engine and counted as in an audit: CSV, JSON lines, Parquet and Feather."""

from __future__ import annotations

import atexit
import io
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
from pyarrow import feather, parquet

from fairtransport.tables import Columns, count_table
from fairtransport.tables.files._file_table import FileTable
from fairtransport.tables.files._formats import CsvOptions
from fairtransport.tables.files.engine import Engine
from fairtransport.tables.files.paths import find_files

from .table_head import quotable as column_names

SHARE = 2
REFUSALS = (ValueError, TypeError, OSError)

_ENDINGS = ("csv", "jsonl", "csv.gz", "parquet", "feather")
_COLUMNS = Columns.named(score="s", sensitive_features="g")
_MEMORY = Path("/dev/shm")  # noqa: S108 - in memory, where the system allows it
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
ENGINE = Engine(memory="512MiB", threads=1)
_KEPT_OPEN = ENGINE.close  # one engine serves all cases, so that closing a table must not close it
ENGINE.close = lambda: None  # type: ignore[method-assign]
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
atexit.register(_KEPT_OPEN)


def seeds() -> list[bytes]:
    """Return a small file of each kind, and damaged ones."""
    csv = [
        "s,g\n0.5,a\n0.25,CANARY7\n",
        "s,g\n0.5,a,CANARY7\n",
        's,g\nCANARY7,a\n0.5,"b\n',
        "s;g\n1;a\n0;b\n",
        "g,s\nb,\n",
    ]
    lines = [
        '{"s": 0.5, "g": "a"}\n{"s": 1, "g": "CANARY7"}\n',
        '{"s": "CANARY7", "g": 1}\n',
        '{"s": 1e999, "g": [1]}\n',
    ]
    table = pa.table({"s": [0.5, 0.25], "g": ["a", "CANARY7"]})
    packed, framed = io.BytesIO(), io.BytesIO()
    parquet.write_table(table, packed)
    feather.write_feather(table, framed)
    return [*(b"\0" + text.encode() for text in csv), *(b"\1" + text.encode() for text in lines),
            b"\3" + packed.getvalue(), b"\4" + framed.getvalue()]  # fmt: skip


def quotable(data: bytes) -> bytes:
    """Return the names of columns: the first line of a CSV file, or the keys of objects."""
    return column_names(data[:1] and bytes([data[0] % len(_ENDINGS)]) + data[1:])


def case(data: bytes) -> None:
    """Read the case as the format that the first byte selects."""
    path = FOLDER / f"case.{_ENDINGS[(data[0] if data else 0) % len(_ENDINGS)]}"
    path.write_bytes(data[1:])
    with FileTable(ENGINE, find_files([path]), CsvOptions(), max_expansion=200.0) as table:
        counted = table.run(count_table, _COLUMNS)
    if not 0 < len(counted.histograms.groups) <= len(data):
        raise RuntimeError("More groups than rows, or none.")
