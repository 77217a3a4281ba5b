"""Store of a stream, with its journal: it can be resumed after a kill, a full disk or a damaged file.

===================== =============================================================================================
``model.ft``          the model at the start of the stream, as `fairtransport.save` writes it
``checkpoint-*.ft``   the last states: model, monitor, alarm, counters, positions; with checksums, written atomically
``journal.jsonl``     one line for each batch
``rejected.jsonl``    lines that the command could not score: number and reason
``clock.json``        times for the live page; nothing depends on them
``writer``            a token of the process that last opened the store
===================== =============================================================================================

**Protocol.** A batch is processed in this order; a kill, or a loss of power, may come at any point.

1. The journal gets an entry, with the number of lines of the batch. If the batch might have ended elsewhere, by a clock
   or at the moment of a signal, the journal is flushed to the disk before anything else is written.
2. Rejected lines are added to their file, scored lines to the output. From here on, a reader may have them.
3. After some batches, output, file of rejected lines and journal are flushed, and a checkpoint is written, which stores
   the length of each.

A resumed run starts from the newest intact checkpoint and removes nothing, apart from an incomplete last line of the
journal, which is older than anything in the output. It processes the batches of the journal once more, as they
were; then, as long as the output is longer than what it has written again, full batches. The run is deterministic, so
everything that it writes is there already or is a continuation of it. This is compared, and a difference ends the run.
Since a resumed run destroys nothing that it needs, it may be killed and resumed any number of times.

**One writer.** The journal is locked as an open file, so no name can be removed to release the lock. On file systems
without locks, and against copies and replaced folders, each process writes a token when it opens the store, and stops
when the token is no longer its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport import storage
from fairtransport._warnings import warn_caller
from fairtransport.storage.schema import from_json
from fairtransport.stream._line_file import LineFile, StoreError, StoreWarning

# Journal of a stream: one line of JSON for each batch, with a checksum that reveals incomplete lines.

_MARK = b',"check":"'
_TAIL = len(_MARK) + 10  # eight digits, a quote and a brace


class Journal(LineFile):
    """Journal of a store.

    After a kill it has entries that are newer than the last checkpoint. They stay where they are, since they say at
    which line a batch ended whose scores may have been written. A resumed run adds them again, and they are compared.
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
        """Append an entry, or confirm a pending one."""
        line = journal_line(entry)
        if self.pending and self._read(len(line)) != line:
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
    """Return an entry as a line with a checksum."""
    text = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode()
    return text[:-1] + _MARK + b"%08x" % zlib.crc32(text) + b'"}\n'


def read_journal(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the journal of a store, which may be in use: a dict for each batch and for each action of an operator.

    Entries end at the first line that is incomplete or changed.
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
    except storage.ModelFileError:  # a checksum protects against accidents, not against manipulation
        return None
    return entry if isinstance(entry, dict) else None


_KIND = "checkpoint"
_MODEL, _CLOCK, _WRITER = "model.ft", "clock.json", "writer"
_NAME = re.compile(r"checkpoint-(\d{9})\.ft")
_REVEALS = (
    "The state of a stream: the model (its model file says what that reveals), histograms of each group's scores with "
    "a few hundred bins, names and sizes of groups, and counts. It contains no rows and no scores, but in a small "
    "group a bin may reveal the score of one person to within a two-hundredth of the range."
)


class Store:
    """Folder of one stream, locked by this process."""

    def __init__(self, folder: str | os.PathLike[str], *, keep: int = 5) -> None:
        self.folder, self.keep = Path(folder), keep
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError("The store is a file; it must be a folder. Choose another path.")
        if not self.folder.exists():
            self.folder.mkdir(exist_ok=True)
            storage.sync_folder(self.folder.parent)
        self.journal = Journal(self.folder / "journal.jsonl")
        try:
            storage.write_atomically(self.folder / _WRITER, secrets.token_hex(16).encode())
            self._writer = os.open(self.folder / _WRITER, os.O_RDONLY)
        except BaseException:
            self.journal.close()
            raise
        self.is_open = True

    @property
    def used(self) -> bool:
        return (self.folder / _MODEL).exists()

    @property
    def has_checkpoint(self) -> bool:
        """True if the first checkpoint was written; a kill may have prevented it."""
        return bool(self.versions() or self.journal.length or list(self.folder.glob("*.damaged")))

    def start(self, model: bytes) -> None:
        """Write the model at the start of a stream; raise if the folder has checkpoints."""
        if self.used:
            self.check_model(model)
        if self.has_checkpoint:
            raise StoreError(
                "The store contains a stream already. Resume it (--resume, or ContinualAdjuster.resume), or choose an "
                "empty folder."
            )
        storage.write_atomically(self.folder / _MODEL, model)

    def model(self) -> bytes:
        """Return the checked content of the file of the model at the start of the stream."""
        try:
            content = (self.folder / _MODEL).read_bytes()
            storage.unpack_container(content, kind="model")
        except FileNotFoundError:
            raise StoreError("The folder is not a store: it has no model.ft. Check the path.") from None
        except storage.ModelFileError as error:
            raise StoreError(
                f"The store's model.ft cannot be used. {error} Replace it by a copy of the model file that the stream "
                "was started with."
            ) from None
        return content

    def check_model(self, model: bytes) -> None:
        if digest_of(model) != digest_of(self.model()):
            raise StoreError("The store belongs to another model. Use that model, or choose an empty folder.")

    def versions(self) -> list[int]:
        """Return the numbers of the existing checkpoints in ascending order."""
        matches = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def write(self, version: int, schema: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write a checkpoint after flushing the journal; then remove the oldest ones."""
        self.check_writer()
        self.journal.sync()
        path = self._path(version)
        content = storage.pack_container(_KIND, {**schema, "journal": self.journal.length}, arrays, reveals=_REVEALS)
        storage.remove_leftovers(path, older_than=0.0)
        storage.write_atomically(path, content)
        self.prune()

    def prune(self) -> None:
        """Remove the oldest checkpoints; a resumed run does so, too, in case a kill has prevented it."""
        for old in self.versions()[: -self.keep]:
            self._path(old).unlink(missing_ok=True)

    def read(self, version: int) -> storage.Container:
        try:
            checkpoint = storage.read_container(self._path(version), kind=_KIND)
            if checkpoint.schema["version"] != version:
                raise storage.ModelFileError("The checkpoint has the name of another version.")
        except FileNotFoundError:
            kept = ", ".join(map(str, self.versions())) or "none"
            raise StoreError(f"There is no version {version}. Available: {kept}.") from None
        except KeyError:
            raise storage.ModelFileError("The checkpoint has no version number; do not trust it.") from None
        return checkpoint

    def newest(self) -> storage.Container:
        """Return the newest intact checkpoint, and continue the journal from it.

        Damaged checkpoints are renamed to ``*.damaged``, with a warning.
        """
        if not self.has_checkpoint:
            raise StoreError("The store has no checkpoint yet. Start again with ContinualAdjuster(model, store=...).")
        damaged, checkpoint = [], None
        for version in reversed(self.versions()):
            try:
                checkpoint = self.read(version)
                break
            except (storage.ModelFileError, OSError):
                damaged.append(version)
        if checkpoint is None:
            raise StoreError(
                f"None of the {len(damaged)} checkpoints can be read. Restore the folder from a backup, or start a new "
                "store with the model."
            )
        for version in damaged:
            with contextlib.suppress(OSError):
                self._path(version).replace(self._path(version).with_suffix(".ft.damaged"))
        if damaged:
            warn_caller(
                f"{len(damaged)} checkpoint(s) of the store are damaged; the run continues from version "
                f"{checkpoint.schema['version']}, the newest intact one.",
                StoreWarning,
            )
        length = int(checkpoint.schema["journal"])
        if self.journal.length < length:
            warn_caller(
                f"The journal of the store lacks {length - self.journal.length} bytes that were written; the run "
                "continues without them.",
                StoreWarning,
            )
        self.journal.continue_after(min(length, self.journal.length))
        return checkpoint

    def _path(self, version: int) -> Path:
        return self.folder / f"checkpoint-{version:09d}.ft"

    def note(self, entry: Mapping[str, Any], *, durable: bool = False) -> None:
        """Add an entry to the journal, and flush it to the disk if it has to be durable."""
        self.check_writer()
        self.journal.add_entry(entry)
        if durable:
            self.journal.sync()

    def check_writer(self) -> None:
        """Raise if another process has opened the store since."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat((self.folder / _WRITER).stat(), os.fstat(self._writer)):
                return
        raise StoreError(
            "Another process has opened the store, or its files were replaced. Only one may use it: stop all of them, "
            "and resume one."
        )

    def write_clock(self, seconds: float, times: Mapping[int, str]) -> None:
        """Write the times; a failure is ignored."""
        with contextlib.suppress(OSError):
            (self.folder / _CLOCK).write_text(json.dumps({"seconds": seconds, "times": times}), encoding="utf-8")

    def read_clock(self) -> tuple[float, dict[int, str]]:
        """Return the times, as far as they are readable."""
        try:
            clock = json.loads((self.folder / _CLOCK).read_text(encoding="utf-8"))
            return float(clock["seconds"]), {int(batch): str(time) for batch, time in clock["times"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0.0, {}

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.journal.close()
            os.close(self._writer)


def digest_of(model: bytes) -> str:
    """Return a digest of a model file that does not depend on the versions of libraries that wrote it."""
    container = storage.unpack_container(model, kind="model")
    digest = hashlib.sha256(json.dumps(container.schema, sort_keys=True).encode())
    for name in sorted(container.arrays):
        array = container.arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
