"""The head of a CSV file: its separator and the names of its columns.

DuckDB could guess both, and guesses around damage: a ragged file may pass as a table of one column. So they are read
here, and the engine is told; then a row that does not fit is an error with a line number.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra

if TYPE_CHECKING:
    from fairtransport.tables.files.paths import FoundFile

__all__ = ["ENCODINGS", "MOST_LINE", "Head", "first_bytes", "read_head"]

#: Encodings that the engine reads, by what Python calls them.
ENCODINGS = {"utf-8": "utf-8-sig", "latin-1": "latin-1", "utf-16": "utf-16"}
#: Longest line, in bytes; the engine has the same limit.
MOST_LINE = 2_000_000
_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 1 << 17
_MOST_RECORDS = 50


@dataclass(frozen=True)
class Head:
    """What stands at the beginning of a CSV file.

    Parameters
    ----------
    names : tuple of str
    delimiter : str
    skipped : int
        Empty lines before the names.
    """

    names: tuple[str, ...]
    delimiter: str
    skipped: int = 0


def read_head(file: FoundFile, *, delimiter: str | None = None, encoding: str = "utf-8") -> Head:
    """Read the names of the columns and find the separator: the one that cuts the first lines most evenly.

    Parameters
    ----------
    file : FoundFile
    delimiter : str, optional
        One sign; looked for among comma, semicolon, tab and bar when omitted.
    encoding : {"utf-8", "latin-1", "utf-16"}, default "utf-8"

    Returns
    -------
    Head
    """
    text = _first_text(file, encoding)
    lines = list(io.StringIO(text, newline=""))
    skipped = next((place for place, line in enumerate(lines) if line.strip()), None)
    if skipped is None:
        raise ValueError(f"{file.path} has only empty lines.")
    body = lines[skipped:]
    if delimiter is None and file.tabbed:
        delimiter = "\t"
    tried = (delimiter,) if delimiter is not None else _DELIMITERS
    cuts = {sign: _records(body, sign) for sign in tried}
    best = max(tried, key=lambda sign: _evenness(cuts[sign]))
    return Head(tuple(name.strip() for name in cuts[best][0]), best, skipped)


def _first_text(file: FoundFile, encoding: str) -> str:
    """Return the first lines as text, without a line that is cut off unless it is the only one."""
    data = first_bytes(file, _LOOKED_AT)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and encoding != "utf-16":
        raise ValueError(f"{file.path} is UTF-16; say encoding='utf-16'.")
    if encoding != "utf-16" and b"\0" in data:
        raise ValueError(f"{file.path} is no CSV file: it holds zero bytes.")
    whole = len(data) < _LOOKED_AT
    decoder = codecs.getincrementaldecoder(ENCODINGS[encoding])(errors="strict")
    try:
        text = decoder.decode(data, final=whole)
        if not whole and "\n" not in text and "\r" not in text:
            data = first_bytes(file, MOST_LINE)
            text = codecs.getincrementaldecoder(ENCODINGS[encoding])(errors="strict").decode(data, final=False)
            whole = len(data) < MOST_LINE
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{file.path}, line {line}: the file is not {encoding.upper()}; say its encoding= "
            f"({', '.join(ENCODINGS)}), or convert it."
        ) from None
    if whole:
        return text
    end = max(text.rfind("\n"), text.rfind("\r"))
    if end < 0:
        raise ValueError(f"{file.path} is no CSV file: its first line does not end within {MOST_LINE:,} bytes.")
    return text[: end + 1]


def first_bytes(file: FoundFile, size: int) -> bytes:
    """Return the beginning of a file, unpacked."""
    if file.packed is None:
        with file.path.open("rb") as plain:
            return plain.read(size)
    arrow: Any = load_extra("pyarrow")
    try:
        with arrow.OSFile(str(file.path)) as raw, arrow.CompressedInputStream(raw, file.packed) as stream:
            return bytes(stream.read(size))
    except (arrow.ArrowException, OSError):
        raise ValueError(f"{file.path} is no {file.packed} file, or is cut off.") from None


def _records(lines: list[str], delimiter: str) -> list[list[str]]:
    """Cut the first lines into fields; the first record has the names."""
    records: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # a field of more than 128 KiB; the engine will say where
        for record in csv.reader(lines, delimiter=delimiter):
            if record:
                records.append(record)
            if len(records) == _MOST_RECORDS:
                break
    return records or [[""]]


def _evenness(records: list[list[str]]) -> tuple[float, int]:
    """Return the share of records with as many fields as the names, if there are two, and how many these are."""
    n_names = len(records[0])
    even = sum(len(record) == n_names for record in records) / len(records)
    return (even if n_names > 1 else 0.0), n_names
