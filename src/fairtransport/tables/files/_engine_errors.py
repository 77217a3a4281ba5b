"""What the engine says when a file is damaged, without what it quotes.

DuckDB's errors show the line that it could not read. Here only the kind of the error, the file, the line's number and
the column's name are kept, and each only where it is one that we know.
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

__all__ = ["plain_error"]

_CSV_LINE = re.compile(r"\A[\w ]+ Error: CSV Error on Line: (\d+)\n")
_CSV_COLUMN = re.compile(r'^Error when converting column "c(\d+)"\.', re.MULTILINE)
_JSON_LINE = re.compile(r"(?:at byte \d+ )?in line (\d+):")


def plain_error(
    error: Exception, files: Sequence[FoundFile], names_of: Callable[[FoundFile], Sequence[str]]
) -> Exception:
    """Return an error that may be shown in place of the engine's.

    Parameters
    ----------
    error : Exception
        Of DuckDB or pyarrow.
    files : sequence of FoundFile
        Those that were read.
    names_of : callable
        From a CSV file to the names of its columns, in order.

    Returns
    -------
    Exception
        ValueError or OSError.
    """
    text = str(error)
    duckdb: Any = load_extra("duckdb")
    if isinstance(error, (duckdb.OutOfMemoryException, MemoryError)) or "Out of Memory" in text[:60]:
        return OSError(errno.ENOMEM, "The engine needs more memory than it may have; raise memory=")
    if "No space left" in text or "max_temp_directory_size" in text:
        return OSError(errno.ENOSPC, "The disk for temporary files is full")
    line = _CSV_LINE.match(text)
    if line is not None:
        return _csv_error(text, int(line[1]), files, names_of)
    for opening in ("Malformed JSON", "JSON transform error"):
        for file in files:
            start = f'Invalid Input Error: {opening} in file "{file.path}", '
            found = _JSON_LINE.match(text[len(start) :]) if text.startswith(start) else None
            if found is not None:
                return _json_error(file, int(found[1]), broken=opening == "Malformed JSON")
    return _other_error(text, files)


def _csv_error(
    text: str, line: int, files: Sequence[FoundFile], names_of: Callable[[FoundFile], Sequence[str]]
) -> ValueError:
    file = _last_named(text, files)
    where = f"line {line}" if file is None else f"{file.path}, line {line}"
    told = text[text.find("\nOriginal Line:") :]
    column = _CSV_COLUMN.search(told)
    if column is not None:
        names = [] if file is None else names_of(file)
        place = int(column[1])
        named = f"column {names[place]!r}" if place < len(names) else "a column"
        return ValueError(
            f"{where}: {named} holds something that is no number there. If it marks a missing value, say so with "
            "null=; if numbers have a decimal comma, with decimal=','; otherwise name another column."
        )
    if "Invalid unicode" in told:
        return ValueError(f"{where}: the file is not UTF-8; say its encoding=, or convert it.")
    if "unterminated quote" in told or "quote should be followed" in told:
        return ValueError(f"{where}: a quotation mark has no partner, or signs follow the closing one.")
    if "Maximum line size" in told:
        return ValueError(f"{where}: the line is longer than {MOST_LINE:,} bytes.")
    if "Expected Number of Columns" in told:
        n_names = None if file is None else len(names_of(file))
        many = "the number of fields" if n_names is None else f"the {n_names} fields"
        return ValueError(f"{where}: the row does not have {many} that the first line has.")
    return ValueError(f"{where}: the row could not be read.")


def _json_error(file: FoundFile, line: int, *, broken: bool) -> ValueError:
    if not broken:
        return ValueError(
            f"{file.path}, line {line}: a value is not of the kind that its column holds, or a name is there twice."
        )
    return ValueError(f"{file.path}, line {_broken_line(file, line)}: this is no JSON object on a line of its own.")


def _broken_line(file: FoundFile, line: int) -> int:
    """Return the line's number. The engine counts broken lines from 1 or from 2, depending on its version."""
    if file.packed is not None:
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
    return ValueError(f"{named} cannot be read: it is damaged, cut off, or not of the format that its name says.")


def _last_named(text: str, files: Sequence[FoundFile]) -> FoundFile | None:
    """Return the file that the text names last: the engine ends with it, after what it quotes."""
    if len(files) == 1:
        return files[0]
    places = [(text.rfind(str(file.path)), len(str(file.path)), file) for file in files]
    place, _, file = max(places, key=lambda entry: entry[:2])
    return file if place >= 0 else None
