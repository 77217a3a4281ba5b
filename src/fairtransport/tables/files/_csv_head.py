"""The header of a CSV file: its delimiter and the names of its columns.

DuckDB could infer both, but tolerates malformed files: a ragged file may pass as a table of one column. With the header
that is read here, a row that does not fit is an error with a line number.
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

#: Encodings that the engine reads, and their names in Python.
ENCODINGS = {"utf-8": "utf-8-sig", "latin-1": "latin-1", "utf-16": "utf-16"}
#: Largest length of a line in bytes, as in the engine.
MOST_LINE = 2_000_000
_DELIMITERS = (",", ";", "\t", "|")
_SAMPLED_BYTES = 1 << 17
_MOST_RECORDS = 50


@dataclass(frozen=True)
class Head:
    """Header of a CSV file.

    Parameters
    ----------
    names : tuple of str
    delimiter : str
    skipped : int
        Number of empty lines before the names.
    """

    names: tuple[str, ...]
    delimiter: str
    skipped: int = 0


def read_head(file: FoundFile, *, delimiter: str | None = None, encoding: str = "utf-8") -> Head:
    """Read the names of the columns and infer the delimiter: the one that splits the first lines most evenly.

    Parameters
    ----------
    file : FoundFile
    delimiter : str, optional
        One character; inferred among comma, semicolon, tab and vertical bar when omitted.
    encoding : {"utf-8", "latin-1", "utf-16"}, default "utf-8"

    Returns
    -------
    Head
    """
    text = _first_text(file, encoding)
    lines = list(io.StringIO(text, newline=""))
    skipped = next((index for index, line in enumerate(lines) if line.strip()), None)
    if skipped is None:
        raise ValueError(f"{file.path} has only empty lines.")
    body = lines[skipped:]
    if delimiter is None and file.tabbed:
        delimiter = "\t"
    candidates = (delimiter,) if delimiter is not None else _DELIMITERS
    records = {character: _records(body, character) for character in candidates}
    best = max(candidates, key=lambda character: _evenness(records[character]))
    return Head(tuple(name.strip() for name in records[best][0]), best, skipped)


def _first_text(file: FoundFile, encoding: str) -> str:
    """Return the first lines as text, without an incomplete last line."""
    data = first_bytes(file, _SAMPLED_BYTES)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and encoding != "utf-16":
        raise ValueError(f"{file.path} is UTF-16; use encoding='utf-16'.")
    if encoding != "utf-16" and b"\0" in data:
        raise ValueError(f"{file.path} is not a CSV file: it contains zero bytes.")
    whole = len(data) < _SAMPLED_BYTES
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
            f"{file.path}, line {line}: the file is not {encoding.upper()}; give its encoding= "
            f"({', '.join(ENCODINGS)}), or convert it."
        ) from None
    if whole:
        return text
    end = max(text.rfind("\n"), text.rfind("\r"))
    if end < 0:
        raise ValueError(f"{file.path} is not a CSV file: its first line does not end within {MOST_LINE:,} bytes.")
    return text[: end + 1]


def first_bytes(file: FoundFile, size: int) -> bytes:
    """Return the first bytes of a file, decompressed."""
    if file.compression is None:
        with file.path.open("rb") as plain:
            return plain.read(size)
    arrow: Any = load_extra("pyarrow")
    try:
        with arrow.OSFile(file.location) as raw, arrow.CompressedInputStream(raw, file.compression) as stream:
            return bytes(stream.read(size))
    except (arrow.ArrowException, OSError):
        raise ValueError(f"{file.path} is not a {file.compression} file, or is truncated.") from None


def _records(lines: list[str], delimiter: str) -> list[list[str]]:
    """Split the first lines into fields; the first record has the names."""
    records: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # the engine reports fields of more than 128 KiB
        for record in csv.reader(lines, delimiter=delimiter):
            if record:
                records.append(record)
            if len(records) == _MOST_RECORDS:
                break
    return records or [[""]]


def _evenness(records: list[list[str]]) -> tuple[float, int]:
    """Return the share of records with as many fields as there are names, and the number of names."""
    n_names = len(records[0])
    even = sum(len(record) == n_names for record in records) / len(records)
    return (even if n_names > 1 else 0.0), n_names
