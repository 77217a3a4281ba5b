"""The heads of CSV files and of JSON lines: what is read in Python before the engine sees the file."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path

from fairtransport.tables.files._csv_head import read_head
from fairtransport.tables.files._csv_json import _check_keys
from fairtransport.tables.files.paths import find_files

SHARE = 2
REFUSALS = (ValueError, OSError)

_KEY = re.compile(rb'"([^"]*)"\s*:')
_MEMORY = Path("/dev/shm")  # noqa: S108 - no disk is needed, where there is such a thing
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
_CSV, _JSON = _FOLDER / "case.csv", _FOLDER / "case.jsonl"
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def seeds() -> list[bytes]:
    """Return heads as people have them."""
    texts = [
        "s,g\n0.5,CANARY7\n",
        "s;g\r\n0,5;a\r\n",
        '"s","g"\n"0.5","a ""b"""\n',
        "\n\ns\tg\n1\t2\n",
        "\ufeffs|g\n1|a\n",
    ]
    objects = ['{"s": 0.5, "g": "CANARY7"}\n', '{"S": 1, "s": 2}\n', '[1]\n{"a": {"b": []}}\n', "[" * 50]
    return [*(b"\0" + text.encode() for text in texts), b"\0" + "s,g\n".encode("utf-16"),
            *(b"\1" + text.encode() for text in objects)]  # fmt: skip


def told(data: bytes) -> bytes:
    """Return the names of columns: the first line of a CSV file, the keys of objects."""
    if data[:1] and data[0] % 2:
        return b" ".join(_KEY.findall(data))
    return data[1:].lstrip().splitlines()[0] if data[1:].strip() else b""


def case(data: bytes) -> None:
    """Let the first byte say which of the two, and which encoding."""
    kind = data[0] if data else 0
    path = _JSON if kind % 2 else _CSV
    path.write_bytes(data[1:])
    (file,) = find_files([path])
    if kind % 2:
        _check_keys(file)
    else:
        read_head(file, encoding=("utf-8", "latin-1", "utf-16")[kind // 2 % 3])
