"""One line of JSON for each batch, each with its own checksum, so that a torn line is noticed and cut."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtransport.storage import ModelFileError, sync_folder
from fairtransport.storage.schema import from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Journal", "LineFile", "journal_line", "read_journal", "whole_entries"]

_MARK = b',"check":"'
_WHOLE = "what the last checkpoint knows of is whole. Make room, then resume"
_TAIL = len(_MARK) + 10  # eight digits, quote and brace


class LineFile:
    """A file that lines are added to, whose length is known, and which is cut when a run goes on.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self.length = os.fstat(self._handle).st_size
        if self.length == 0:  # perhaps it is new: its name must last before a checkpoint speaks of it
            sync_folder(self.path.parent)

    def add(self, content: bytes) -> None:
        """Write to the end; on a full disk nothing or a part of it, which the next run cuts."""
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; {_WHOLE}", str(self.path)) from error
        self.length += len(content)

    def cut(self, length: int) -> None:
        """Keep so many bytes."""
        os.ftruncate(self._handle, length)
        self.length = length

    def sync(self) -> None:
        """Make sure that all is on the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Journal(LineFile):
    """The journal of a store."""

    def add_entry(self, entry: Mapping[str, Any]) -> None:
        """Add a line."""
        self.add(journal_line(entry))

    def entries_from(self, length: int) -> list[dict[str, Any]]:
        """Return what the whole lines behind so many bytes say."""
        with self.path.open("rb") as lines:
            lines.seek(length)
            return whole_entries(lines)


def journal_line(entry: Mapping[str, Any]) -> bytes:
    r"""Return an entry as a line with a checksum.

    Examples
    --------
    >>> journal_line({"batch": 1})
    b'{"batch":1,"check":"67d30631"}\n'
    """
    text = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode()
    return text[:-1] + _MARK + b"%08x" % zlib.crc32(text) + b'"}\n'


def read_journal(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the journal of a store, a dict for each batch and each thing that an operator did.

    Parameters
    ----------
    folder : path
        Of the store. It may be in use.

    Returns
    -------
    list of dict
        Up to the first line that is torn or changed.
    """
    with (Path(folder) / "journal.jsonl").open("rb") as lines:
        return whole_entries(lines)


def whole_entries(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return what lines say, up to the first that is torn, changed or no entry."""
    entries = []
    for line in lines:
        entry = _checked(line)
        if entry is None:
            break
        entries.append(entry)
    return entries


def _checked(line: bytes) -> dict[str, Any] | None:
    """Return what a line says, or None for one that is not whole."""
    text, check = line[: -_TAIL - 1] + b"}", line[-_TAIL - 1 :]
    if check != _MARK + b"%08x" % zlib.crc32(text) + b'"}\n':
        return None
    try:
        entry = from_json(text, name="journal")
    except ModelFileError:  # a checksum keeps accidents out, not people
        return None
    return entry if isinstance(entry, dict) else None
