"""Errors of the engine about malformed files, without the values that they quote.

Errors of DuckDB show the line that it could not read. Here only the kind of the error, the file, the line number and
the name of the column are kept.
"""

from __future__ import annotations

import errno
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.tables.files._csv_head import MOST_LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = ["redacted_error"]

_CSV_LINE = re.compile(r"\A[\w ]+ Error: CSV Error on Line: (\d+)\n")
_CSV_COLUMN = re.compile(r'^Error when converting column "c(\d+)"\.', re.MULTILINE)
_JSON_LINE = re.compile(r"(?:at byte \d+ )?in line (\d+):")


def redacted_error(
    error: Exception, files: Sequence[FoundFile], names_of: Callable[[FoundFile], Sequence[str]]
) -> Exception:
    """Return an error without quoted values, to raise in place of one of the engine.

    Parameters
    ----------
    error : Exception
        Raised by DuckDB or pyarrow.
    files : sequence of FoundFile
        The files that were read.
    names_of : callable
        Returns the names of the columns of a CSV file, in order.

    Returns
    -------
    Exception
        ValueError or OSError.
    """
    text = str(error)
    duckdb: Any = load_extra("duckdb")
    if isinstance(error, (duckdb.OutOfMemoryException, MemoryError)) or "Out of Memory" in text[:60]:
        return OSError(errno.ENOMEM, "The engine needs more memory than its limit; raise memory=")
    if "No space left" in text or "max_temp_directory_size" in text:
        return OSError(errno.ENOSPC, "The disk for temporary files is full")
    line = _CSV_LINE.match(text)
    if line is not None:
        return _csv_error(text, int(line[1]), files, names_of)
    for opening in ("Malformed JSON", "JSON transform error"):
        for file in files:
            start = f'Invalid Input Error: {opening} in file "{file.location}", '
            match = _JSON_LINE.match(text[len(start) :]) if text.startswith(start) else None
            if match is not None:
                return _json_error(file, int(match[1]), malformed=opening == "Malformed JSON")
    return _other_error(text, files)


def _csv_error(
    text: str, line: int, files: Sequence[FoundFile], names_of: Callable[[FoundFile], Sequence[str]]
) -> ValueError:
    file = _last_named(text, files)
    where = f"line {line}" if file is None else f"{file.path}, line {line}"
    details = text[text.find("\nOriginal Line:") :]
    column = _CSV_COLUMN.search(details)
    if column is not None:
        names = [] if file is None else names_of(file)
        index = int(column[1])
        named = f"column {names[index]!r}" if index < len(names) else "a column"
        return ValueError(
            f"{where}: {named} contains something that is not a number. If it marks a missing value, give it with "
            "null=; if numbers have a decimal comma, use decimal=','; otherwise name another column."
        )
    if "Invalid unicode" in details:
        return ValueError(f"{where}: the file is not UTF-8; give its encoding=, or convert it.")
    if "unterminated quote" in details or "quote should be followed" in details:
        return ValueError(f"{where}: a quotation mark is not closed, or characters follow the closing one.")
    if "Maximum line size" in details:
        return ValueError(f"{where}: the line is longer than {MOST_LINE:,} bytes.")
    if "Expected Number of Columns" in details:
        n_names = None if file is None else len(names_of(file))
        expected = "the number of fields" if n_names is None else f"the {n_names} fields"
        return ValueError(f"{where}: the row does not have {expected} that the first line has.")
    return ValueError(f"{where}: the row could not be read.")


def _json_error(file: FoundFile, line: int, *, malformed: bool) -> ValueError:
    if not malformed:
        return ValueError(
            f"{file.path}, line {line}: a value does not have the type of its column, or a name occurs twice."
        )
    return ValueError(f"{file.path}, line {_malformed_line(file, line)}: the line is not a JSON object.")


def _malformed_line(file: FoundFile, line: int) -> int:
    """Return the line number; the engine counts malformed lines from 1 or from 2, depending on its version."""
    if file.compression is not None:
        return line
    with file.path.open("rb") as lines:
        before = next(islice(lines, line - 2, None), b"{}") if line > 1 else b"{}"
    try:
        json.loads(before)
    except (ValueError, RecursionError):
        return line - 1
    return line


def _other_error(text: str, files: Sequence[FoundFile]) -> ValueError:
    file = _last_named(text, files)
    if file is None:
        named = str(files[0].path) if len(files) == 1 else f"One of the {len(files)} files"
    else:
        named = str(file.path)
    if "invalid state" in text:
        return ValueError(f"{named} cannot be read as CSV: line ends or quotation marks are mixed.")
    return ValueError(
        f"{named} cannot be read: it is damaged, truncated, or not of the format that its extension says."
    )


def _last_named(text: str, files: Sequence[FoundFile]) -> FoundFile | None:
    """Return the file that the text names last: the engine names it after the values that it quotes."""
    if len(files) == 1:
        return files[0]
    positions = [(text.rfind(file.location), len(file.location), file) for file in files]
    position, _, file = max(positions, key=lambda entry: entry[:2])
    return file if position >= 0 else None
