"""Journal of a stream: one line of JSON for each batch, with a checksum that reveals incomplete lines."""

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

__all__ = ["Journal", "LineFile", "complete_entries", "journal_line", "read_journal"]

_MARK = b',"check":"'
_HINT = "the last checkpoint is intact. Free disk space, then resume"
_TAIL = len(_MARK) + 10  # eight digits, a quote and a brace


class LineFile:
    """An append-only file of lines that a resumed run can truncate.

    Parameters
    ----------
    path : path
        Created if it does not exist.

    Attributes
    ----------
    path : Path
    length : int
        Length in bytes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self.length = os.fstat(self._handle).st_size
        if self.length == 0:  # a new file must be durable before a checkpoint refers to it
            sync_folder(self.path.parent)

    def add(self, content: bytes) -> None:
        """Append the content; on a full disk a part of it may be written, which a resumed run truncates."""
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; {_HINT}", str(self.path)) from error
        self.length += len(content)

    def cut(self, length: int) -> None:
        """Truncate the file to so many bytes."""
        os.ftruncate(self._handle, length)
        self.length = length

    def sync(self) -> None:
        """Flush the file to the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; further calls do nothing."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Journal(LineFile):
    """Journal of a store."""

    def add_entry(self, entry: Mapping[str, Any]) -> None:
        """Append an entry."""
        self.add(journal_line(entry))

    def entries_from(self, length: int) -> list[dict[str, Any]]:
        """Return the complete entries after so many bytes."""
        with self.path.open("rb") as lines:
            lines.seek(length)
            return complete_entries(lines)


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
    """Return the journal of a store: a dict for each batch and for each action of an operator.

    Parameters
    ----------
    folder : path
        Folder of the store, which may be in use.

    Returns
    -------
    list of dict
        Entries up to the first line that is incomplete or changed.
    """
    with (Path(folder) / "journal.jsonl").open("rb") as lines:
        return complete_entries(lines)


def complete_entries(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the entries of the lines up to the first that is incomplete, changed or not an entry."""
    entries = []
    for line in lines:
        entry = _checked_entry(line)
        if entry is None:
            break
        entries.append(entry)
    return entries


def _checked_entry(line: bytes) -> dict[str, Any] | None:
    """Return the entry of a line; None if the checksum does not match."""
    text, check = line[: -_TAIL - 1] + b"}", line[-_TAIL - 1 :]
    if check != _MARK + b"%08x" % zlib.crc32(text) + b'"}\n':
        return None
    try:
        entry = from_json(text, name="journal")
    except ModelFileError:  # a checksum protects against accidents, not against manipulation
        return None
    return entry if isinstance(entry, dict) else None
