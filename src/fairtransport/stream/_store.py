"""A folder that a stream can go on from after a kill, a full disk or a damaged file.

===================== =============================================================================================
``model.ft``          the model that the stream began with, as `fairtransport.save` writes it
``checkpoint-*.ft``   the last few states: model, monitor, alarm, counters, positions; checksummed, written beside and
                      renamed
``journal.jsonl``     a line for each batch
``rejected.jsonl``    lines that the command could not use: number and reason
``clock.json``        times for the page; nothing depends on them
``lock``              held by the process that writes
===================== =============================================================================================
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.storage import (
    Container,
    ModelFileError,
    pack_container,
    read_container,
    remove_leftovers,
    unpack_container,
    write_atomically,
)
from fairtransport.stream._journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Store", "StoreError", "StoreWarning", "digest_of"]

_KIND = "checkpoint"
_MODEL, _CLOCK, _LOCK = "model.ft", "clock.json", "lock"
_NAME = re.compile(r"checkpoint-(\d{9})\.ft")
_REVEALS = (
    "The state of a stream: the model (see its own file for what that tells), histograms of each group's scores with a "
    "few hundred bins, names and sizes of groups, counts. No row and no score; but in a group of few people a bin may "
    "stand for one person's score, to within a two-hundredth of the range."
)


class StoreError(ValueError):
    """A store that cannot be used: in use by another process, of another model, or damaged beyond what is kept."""


class StoreWarning(UserWarning):
    """Something in a store was damaged, and the run goes on from what was whole."""


class Store:
    """The folder of one stream, locked by this process.

    Parameters
    ----------
    folder : path
        Made if it does not exist; its parent must.
    keep : int, default=5
        How many checkpoints are kept.
    """

    def __init__(self, folder: str | os.PathLike[str], *, keep: int = 5) -> None:
        self.folder, self.keep = Path(folder), keep
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError("The store is a file; it must be a folder. Name another one.")
        self.folder.mkdir(exist_ok=True)
        self._lock = _locked(self.folder / _LOCK)
        try:
            self.journal = Journal(self.folder / "journal.jsonl")
        except BaseException:
            os.close(self._lock)
            raise
        self.is_open = True
        self.lost: list[dict[str, Any]] = []

    # ---------------------------------------------------------------- the model it began with

    @property
    def used(self) -> bool:
        """Whether a stream has begun here."""
        return (self.folder / _MODEL).exists()

    @property
    def begun(self) -> bool:
        """Whether it came as far as its first checkpoint; a kill may come between."""
        return bool(self.versions() or self.journal.length or list(self.folder.glob("*.damaged")))

    def begin(self, model: bytes) -> None:
        """Write the model that a stream begins with; raise where one has begun."""
        if self.used:
            self.check_model(model)
        if self.begun:
            raise StoreError(
                "The store has been used. Go on with ContinualAdjuster.resume(store), or choose an empty folder."
            )
        write_atomically(self.folder / _MODEL, model)

    def model(self) -> bytes:
        """Return the model that the stream began with, as bytes that were checked."""
        try:
            content = (self.folder / _MODEL).read_bytes()
            unpack_container(content, kind="model")
        except FileNotFoundError:
            raise StoreError("The folder is no store: it has no model.ft. Check the path.") from None
        except ModelFileError as error:
            raise StoreError(
                f"The store's model.ft cannot be used. {error} The model file that the stream was started with can be "
                "copied to its place."
            ) from None
        return content

    def check_model(self, model: bytes) -> None:
        """Raise when the stream began with another model."""
        if digest_of(model) != digest_of(self.model()):
            raise StoreError("The store belongs to another model. Use that model, or an empty folder for this one.")

    # ---------------------------------------------------------------- checkpoints

    def versions(self) -> list[int]:
        """Return the numbers of the checkpoints that are there, ascending."""
        found = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def write(self, version: int, schema: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write a checkpoint, once the journal is on the disk; then remove the oldest."""
        self.journal.sync()
        goal = self._path(version)
        content = pack_container(_KIND, {**schema, "journal": self.journal.length}, arrays, reveals=_REVEALS)
        remove_leftovers(goal, older_than=0.0)
        write_atomically(goal, content)
        self.prune()

    def prune(self) -> None:
        """Remove the oldest checkpoints; a run that goes on does so, too, since a kill may have come before."""
        for old in self.versions()[: -self.keep]:
            self._path(old).unlink(missing_ok=True)

    def read(self, version: int) -> Container:
        """Read one checkpoint."""
        try:
            held = read_container(self._path(version), kind=_KIND)
            if held.schema["version"] != version:
                raise ModelFileError("The checkpoint has the name of another one.")
        except FileNotFoundError:
            kept = ", ".join(map(str, self.versions())) or "none"
            raise StoreError(f"Version {version} is not kept; these are: {kept}.") from None
        except KeyError:
            raise ModelFileError("The checkpoint does not say which one it is; do not trust it.") from None
        return held

    def newest(self) -> Container:
        """Return the newest checkpoint that is whole, and cut the journal to it.

        Damaged ones get the ending ``.damaged``, and a warning says so.
        """
        if not self.begun:  # killed before its first checkpoint
            raise StoreError("The store has no checkpoint yet. Begin again: ContinualAdjuster(model, store=...).")
        damaged, held = [], None
        for version in reversed(self.versions()):
            try:
                held = self.read(version)
                break
            except (ModelFileError, OSError):
                damaged.append(version)
        if held is None:
            raise StoreError(
                f"None of the {len(damaged)} checkpoints can be read. Restore the folder from a backup, or begin a new "
                "store with the model."
            )
        for version in damaged:
            with contextlib.suppress(OSError):
                self._path(version).replace(self._path(version).with_suffix(".ft.damaged"))
        if damaged:
            warnings.warn(
                f"{len(damaged)} checkpoint(s) of the store were damaged, the newest ones; going on from version "
                f"{held.schema['version']}, the newest that is whole.",
                StoreWarning,
                stacklevel=3,
            )
        self._cut_journal(int(held.schema["journal"]))
        return held

    def _cut_journal(self, length: int) -> None:
        if self.journal.length < length:
            warnings.warn(
                f"The store's journal lacks {length - self.journal.length} bytes that were written; going on without.",
                StoreWarning,
                stacklevel=4,
            )
            return
        self.lost = self.journal.entries_from(length)
        self.journal.cut(length)

    def _path(self, version: int) -> Path:
        return self.folder / f"checkpoint-{version:09d}.ft"

    # ---------------------------------------------------------------- the rest

    def note(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the journal."""
        self.journal.add_entry(entry)

    def write_clock(self, clock: Mapping[str, Any]) -> None:
        """Write the times; they may be lost."""
        with contextlib.suppress(OSError):
            (self.folder / _CLOCK).write_text(json.dumps(clock), encoding="utf-8")

    def read_clock(self) -> dict[str, Any]:
        """Return the times, as far as they are known."""
        try:
            clock = json.loads((self.folder / _CLOCK).read_text(encoding="utf-8"))
            times = {int(batch): str(time) for batch, time in clock["times"].items()}
            return {"seconds": float(clock["seconds"]), "times": times}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {"seconds": 0.0, "times": {}}

    def close(self) -> None:
        """Let another process have the store."""
        if self.is_open:
            self.is_open = False
            self.journal.close()
            os.close(self._lock)


def digest_of(model: bytes) -> str:
    """Say which model a file holds, whatever version of the libraries wrote it."""
    held = unpack_container(model, kind="model")
    found = hashlib.sha256(json.dumps(held.schema, sort_keys=True).encode())
    for name in sorted(held.arrays):
        array = held.arrays[name]
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _locked(path: Path) -> int:
    """Open the lock file and lock it; the system lets go of it when the process ends, however it ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            import fcntl  # noqa: PLC0415 - not on Windows
        except ImportError:  # pragma: no cover
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError(
            "The store is in use by another process. Stop that one first, or choose another folder."
        ) from None
    return handle
