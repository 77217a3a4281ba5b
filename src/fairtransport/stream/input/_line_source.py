"""Lines from a file, a growing file or a pipe, and how far one has come."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LONGEST", "LineSource"]

#: Bytes of a line; a longer one is set aside.
LONGEST = 1 << 20

_CHUNK = 1 << 18
_PAUSE = 0.1  # seconds between two looks
_HEAD = 4096  # bytes at the beginning that say which input it is


class _LongLine(bytes):
    """The beginning of a line that is too long, and how many bytes of it were passed over."""

    dropped = 0


class LineSource:
    """Lines of an open file, read in blocks.

    Parameters
    ----------
    handle : int
        The file's descriptor.
    follow : bool, default=False
        Wait for more at the end of a file.
    stop : callable, optional
        Says that nobody waits any more.

    Attributes
    ----------
    position : int
        Bytes of the lines that were taken.
    lines : int
        How many that were.
    ended : bool
        Whether there is no more.
    """

    def __init__(self, handle: int, *, follow: bool = False, stop: Callable[[], bool] = lambda: False) -> None:
        self._handle, self._follow, self._stop = handle, follow, stop
        self.seekable = stat.S_ISREG(os.fstat(handle).st_mode)
        self._ready: list[bytes] = []
        self._rest, self._unended = b"", False  # the beginning of a line; whether the last one has no end
        self._dropping: _LongLine | None = None
        self.position = self.lines = 0
        self.ended = False
        self._head, self._head_bytes = hashlib.sha256(), 0

    @property
    def head(self) -> tuple[int, str]:
        """Length and checksum of the beginning, as far as it was taken."""
        return self._head_bytes, self._head.hexdigest()

    def take(self, most: int, *, wait: float | None = None) -> list[bytes]:
        """Return the next lines without their ends; fewer at the end, when stopped, or after ``wait`` seconds.

        A line that is too long comes as its first bytes, longer than `LONGEST`.
        """
        late = None
        while len(self._ready) < most and not self.ended:
            if wait is not None and late is None and self._ready:
                late = time.monotonic() + wait
            if self._stop() or (late is not None and time.monotonic() >= late):
                break
            if not self._wait_for_input(late):
                continue
            self._read()
        if self._stop() and self.seekable and len(self._ready) < most and not self.ended:
            return []  # left in the file, for the next run
        taken, self._ready = self._ready[:most], self._ready[most:]
        return self._counted(taken)

    def skip(self, position: int, lines: int, head: tuple[int, str]) -> None:
        """Go to where an earlier run came to, and make sure that it is the same input."""
        if self.seekable:
            self._head, self._head_bytes = hashlib.sha256(os.pread(self._handle, head[0], 0)), head[0]
        while not self.seekable and self.lines < lines and self.position < max(head[0], 1) and self.take(1):
            pass  # the head, line by line, for its checksum
        self._leave_if_stopped()
        if self.head != (head[0], head[1]):
            raise ValueError(
                "The input does not begin like the one that the store knows. Give the same, from its start."
            )
        if self.seekable:
            if os.fstat(self._handle).st_size < position:
                raise ValueError(
                    f"The input has fewer bytes than were read before ({position}). Give the same file, whole."
                )
            os.lseek(self._handle, position, os.SEEK_SET)
            self._ready, self._rest, self._dropping = [], b"", None
            self.ended = self._unended = False
            self.position, self.lines = position, lines
            self._pass_late_end()
            return
        while self.lines < lines and not self.ended:
            self.take(min(10_000, lines - self.lines))
            self._leave_if_stopped()
        if self.lines < lines:
            raise ValueError(
                f"The input ends before line {lines}, up to which it was read before. Give it from its start."
            )

    def _leave_if_stopped(self) -> None:
        if self._stop():
            raise KeyboardInterrupt  # before anything was done

    def _pass_late_end(self) -> None:
        """Pass the end of a line that had none when it was read as the last of a file."""
        around = os.pread(self._handle, 2, max(self.position - 1, 0))
        if self.position and around[1:] == b"\n" and around[:1] != b"\n":
            self.position += 1
            if self._head_bytes < _HEAD:
                self._head.update(b"\n")
                self._head_bytes += 1
            os.lseek(self._handle, self.position, os.SEEK_SET)

    def _counted(self, taken: list[bytes]) -> list[bytes]:
        """Note how far the lines go, and take carriage returns off."""
        unended = self._unended and not self._ready and bool(taken)
        if self._head_bytes < _HEAD:
            head = b"".join(line + b"\n" for line in taken)[: -1 if unended else None][: _HEAD - self._head_bytes]
            self._head.update(head)
            self._head_bytes += len(head)
        self.lines += len(taken)
        self.position += sum(map(len, taken)) + len(taken) - unended
        self.position += sum(line.dropped for line in taken if isinstance(line, _LongLine))
        return [line.removesuffix(b"\r") for line in taken]

    def _wait_for_input(self, late: float | None) -> bool:
        """Return whether something can be read; files always can."""
        if self.seekable:
            return True
        pause = _PAUSE if late is None else min(_PAUSE, max(0.0, late - time.monotonic()))
        return bool(select.select([self._handle], [], [], pause)[0])

    def _read(self) -> None:
        block = os.read(self._handle, _CHUNK)
        if not block:
            if self._follow and self.seekable:
                self._look_for_truncation()
                time.sleep(_PAUSE)
                return
            self.ended = True
            last = self._dropping or self._rest
            if last:
                self._ready.append(last)
                self._unended = True
            self._rest, self._dropping = b"", None
            return
        if self._dropping:
            block = self._drop(block)
        *whole, self._rest = (self._rest + block).split(b"\n")
        self._ready += whole
        if len(self._rest) > LONGEST and not self._dropping:
            self._dropping = _LongLine(self._rest)
            self._rest = b""

    def _drop(self, block: bytes) -> bytes:
        """Pass over the rest of a line that is too long, and return what comes behind it."""
        if self._dropping is None:
            return block
        line, end, behind = block.partition(b"\n")
        self._dropping.dropped += len(line)
        if end:
            self._ready.append(self._dropping)
            self._dropping = None
        return behind

    def _look_for_truncation(self) -> None:
        if os.fstat(self._handle).st_size < os.lseek(self._handle, 0, os.SEEK_CUR):
            raise ValueError("The input file has become shorter while it was followed; it must only grow.")
