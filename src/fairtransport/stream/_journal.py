"""Journal of a stream: one line of JSON for each batch, with a checksum that reveals incomplete lines."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtransport.storage import ModelFileError
from fairtransport.storage.schema import from_json
from fairtransport.stream._errors import StoreError
from fairtransport.stream._line_file import LineFile

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

__all__ = ["Journal", "complete_entries", "journal_line", "read_journal"]

_MARK = b',"check":"'
_TAIL = len(_MARK) + 10  # eight digits, a quote and a brace


class Journal(LineFile):
    """Journal of a store.

    After a kill it has entries that are newer than the last checkpoint. They stay where they are, since they say at
    which line a batch ended whose scores may have been written. A resumed run adds them again, and they are compared.

    Attributes
    ----------
    pending : list of dict
        Entries after the checkpoint that were not added again yet.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.pending: list[dict[str, Any]] = []

    def continue_after(self, length: int) -> None:
        """Continue after so many bytes; an incomplete line at the end is truncated."""
        with self.path.open("rb") as file:
            file.seek(length)
            lines = file.readlines()
        self.pending = complete_entries(lines)
        self.cut(length + sum(map(len, lines[: len(self.pending)])))
        self.length = length

    def add_entry(self, entry: Mapping[str, Any]) -> None:
        """Append an entry, or confirm a pending one.

        Raises
        ------
        StoreError
            If the entry differs from a pending one of ``fairtransport stream``. Other pending entries are replaced.
        """
        line = journal_line(entry)
        if self.pending and not self.continues_with(line):
            if "lines" in entry and "lines" in self.pending[0]:
                raise StoreError(
                    "A batch that is processed again gives another result: the input was changed, or the run is "
                    "continued on another machine or with other versions of libraries. Resume it where it was started."
                )
            self.check_may_replace()
            self.pending.clear()
            self.cut(self.length)
        self.add(line)
        if self.pending:
            self.pending.pop(0)

    def check_may_replace(self) -> None:
        """Raise if there are pending entries of ``fairtransport stream``, whose scores are in an output file."""
        batches = sum("lines" in entry for entry in self.pending)
        if batches:
            raise StoreError(
                f"After the last checkpoint, `fairtransport stream` has processed {batches} more batch(es) and given "
                "their scores out. Continue it with --resume and the same input first; SIGTERM ends it with a "
                "checkpoint."
            )


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
