"""The first lines of CSV files and of JSON lines, which Python reads before the engine does."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path

from fairtransport.tables.files._formats import _check_keys, read_head
from fairtransport.tables.files.paths import find_files

SHARE = 2
REFUSALS = (ValueError, OSError)

_KEY = re.compile(rb'"([^"]*)"\s*:')
_MEMORY = Path("/dev/shm")  # noqa: S108 - in memory, where the system allows it
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
_CSV, _JSON = _FOLDER / "case.csv", _FOLDER / "case.jsonl"
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def seeds() -> list[bytes]:
    """Return typical first lines, and damaged ones."""
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


def quotable(data: bytes) -> bytes:
    """Return the names of columns: the first line of a CSV file, or the keys of objects."""
    if data[:1] and data[0] % 2:
        return b" ".join(_KEY.findall(data))
    return data[1:].lstrip().splitlines()[0] if data[1:].strip() else b""


def case(data: bytes) -> None:
    """Read the case as the format and encoding that the first byte selects."""
    kind = data[0] if data else 0
    path = _JSON if kind % 2 else _CSV
    path.write_bytes(data[1:])
    (file,) = find_files([path])
    if kind % 2:
        _check_keys(file)
    else:
        read_head(file, encoding=("utf-8", "latin-1", "utf-16")[kind // 2 % 3])
