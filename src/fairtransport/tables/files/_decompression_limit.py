"""Packed files that unpack to more than anybody means: a limit, watched while the engine reads.

The engine unpacks as a stream, so such a file costs neither memory nor disk, but it may cost days. Nothing in its head
says so truthfully. A second reader, which only counts, runs beside the engine and is several times as fast as it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = ["ALWAYS_ALLOWED", "MOST_EXPANSION", "UnpackingGuard"]

#: A file may unpack to this many times its size.
MOST_EXPANSION = 200.0
#: Bytes that every file may unpack to, whatever its size.
ALWAYS_ALLOWED = 1 << 30

_DEFLATE = 1032  # no gzip file unpacks to more times its size
_CHUNK = 1 << 20
_POLL = 0.1


class UnpackingGuard:
    """Unpacks files in a thread of its own, throws the bytes away and counts them.

    Parameters
    ----------
    files : sequence of FoundFile
    most : float
        Refuse a file when its first part, of more than `ALWAYS_ALLOWED` bytes, is more than ``most`` times what it was
        unpacked from.
    """

    def __init__(self, files: Sequence[FoundFile], most: float = MOST_EXPANSION) -> None:
        self.most = most
        self.error: ValueError | None = None
        self._files = [file for file in files if _can_exceed(file, most)]
        self._stopped = threading.Event()
        self._ended = threading.Event()
        if self._files:
            threading.Thread(target=self._read, daemon=True, name="unpacking guard").start()
        else:
            self._ended.set()

    def check(self, *, wait: bool) -> None:
        """Raise what has been found; with ``wait``, when all files have been counted."""
        while wait and not self._ended.wait(_POLL):
            pass
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Stop counting; what has been found stays."""
        self._stopped.set()
        self._ended.wait()

    def _read(self) -> None:
        try:
            for file in self._files:
                if self.error is None and not self._stopped.is_set():
                    self._read_file(file)
        finally:
            self._ended.set()

    def _read_file(self, file: FoundFile) -> None:
        arrow: Any = load_extra("pyarrow")
        unpacked = 0
        try:
            with arrow.OSFile(str(file.path)) as raw, arrow.CompressedInputStream(raw, file.packed) as stream:
                while not self._stopped.is_set():
                    size = stream.read_buffer(_CHUNK).size
                    unpacked += size
                    if size == 0:
                        return
                    if unpacked > ALWAYS_ALLOWED and unpacked > self.most * raw.tell():
                        self.error = ValueError(
                            f"{file.path} unpacks to more than {self.most:g} times its size and more than "
                            f"{ALWAYS_ALLOWED / 2**30:.3g} GiB; that is the mark of a file made to do harm. If it is "
                            "sound, raise max_expansion=."
                        )
                        return
        except (arrow.ArrowException, OSError):  # damaged: the engine says so
            return


def _can_exceed(file: FoundFile, most: float) -> bool:
    if file.packed is None:
        return False
    if file.packed != "gzip":
        return True
    return most < _DEFLATE and file.path.stat().st_size * _DEFLATE > ALWAYS_ALLOWED
