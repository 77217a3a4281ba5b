"""Lines of a file, a growing file or a pipe, with the position reached."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_LINE_BYTES", "LineSource"]

#: Length of a line in bytes; longer ones are rejected.
MAX_LINE_BYTES = 1 << 20

_CHUNK = 1 << 18
_POLL_INTERVAL = 0.1  # seconds
_HEAD = 4096  # bytes at the beginning that identify the input


class _LongLine(bytes):
    """The beginning of a line that is too long, with the number of bytes that were skipped."""

    skipped = 0


class LineSource:
    """Lines of an open file or pipe, read in blocks.

    Parameters
    ----------
    handle : int
        File descriptor.
    follow : bool, default=False
        Wait for more lines at the end of a file.
    stop : callable, optional
        Returns True when waiting should end.

    Attributes
    ----------
    position : int
        Length of the lines taken so far, in bytes.
    lines : int
        Number of lines taken so far.
    ended : bool
        Whether the end of the input was reached.
    """

    def __init__(self, handle: int, *, follow: bool = False, stop: Callable[[], bool] = lambda: False) -> None:
        self._handle, self._follow, self._stop = handle, follow, stop
        self.seekable = stat.S_ISREG(os.fstat(handle).st_mode)
        self._ready: list[bytes] = []
        self._rest, self._unterminated = b"", False  # an incomplete line; whether the last line has no newline
        self._skipping: _LongLine | None = None
        self.position = self.lines = 0
        self.ended = False
        self._head, self._head_bytes = hashlib.sha256(), 0

    @property
    def head(self) -> tuple[int, str]:
        """Length and checksum of the beginning of the input, as far as it was taken."""
        return self._head_bytes, self._head.hexdigest()

    def take(self, n_lines: int, *, wait: float | None = None) -> list[bytes]:
        """Return the next lines without newlines; fewer at the end, when stopped, or after ``wait`` seconds.

        A line that is too long is cut, to a length that still exceeds `MAX_LINE_BYTES`.
        """
        deadline = None
        while len(self._ready) < n_lines and not self.ended:
            if wait is not None and deadline is None and self._ready:
                deadline = time.monotonic() + wait
            if self._stop() or (deadline is not None and time.monotonic() >= deadline):
                break
            if not self._wait_for_input(deadline):
                continue
            self._read()
        if self._stop() and self.seekable and len(self._ready) < n_lines and not self.ended:
            return []  # the next run reads them from the file
        taken, self._ready = self._ready[:n_lines], self._ready[n_lines:]
        return self._advance(taken)

    def skip(self, position: int, lines: int, head: tuple[int, str]) -> None:
        """Skip what an earlier run has read; raise if the input is a different one."""
        if self.seekable:
            self._head, self._head_bytes = hashlib.sha256(os.pread(self._handle, head[0], 0)), head[0]
        while not self.seekable and self.lines < lines and self.position < max(head[0], 1) and self.take(1):
            pass  # line by line, because the checksum covers whole lines
        self._check_stop()
        if self.head != (head[0], head[1]):
            raise ValueError(
                "The input does not begin like the input of the run to resume. Pass the same input, from its start."
            )
        if self.seekable:
            if os.fstat(self._handle).st_size < position:
                raise ValueError(
                    f"The input has fewer bytes than were read before ({position}). Pass the same, complete file."
                )
            os.lseek(self._handle, position, os.SEEK_SET)
            self._ready, self._rest, self._skipping = [], b"", None
            self.ended = self._unterminated = False
            self.position, self.lines = position, lines
            self._skip_added_newline()
            return
        while self.lines < lines and not self.ended:
            self.take(min(10_000, lines - self.lines))
            self._check_stop()
        if self.lines < lines:
            raise ValueError(
                f"The input ends before line {lines}, up to which it was read before. Pass it from its start."
            )

    def _check_stop(self) -> None:
        if self._stop():
            raise KeyboardInterrupt

    def _skip_added_newline(self) -> None:
        """Skip the newline of a line that had none when it was read as the last line of the file."""
        around = os.pread(self._handle, 2, max(self.position - 1, 0))
        if self.position and around[1:] == b"\n" and around[:1] != b"\n":
            self.position += 1
            if self._head_bytes < _HEAD:
                self._head.update(b"\n")
                self._head_bytes += 1
            os.lseek(self._handle, self.position, os.SEEK_SET)

    def _advance(self, taken: list[bytes]) -> list[bytes]:
        """Move the position past these lines, and return them without carriage returns."""
        unterminated = self._unterminated and not self._ready and bool(taken)
        if self._head_bytes < _HEAD:
            head = b"".join(line + b"\n" for line in taken)[: -1 if unterminated else None][: _HEAD - self._head_bytes]
            self._head.update(head)
            self._head_bytes += len(head)
        self.lines += len(taken)
        self.position += sum(map(len, taken)) + len(taken) - unterminated
        self.position += sum(line.skipped for line in taken if isinstance(line, _LongLine))
        return [line.removesuffix(b"\r") for line in taken]

    def _wait_for_input(self, deadline: float | None) -> bool:
        """Return whether the input can be read now; a file always can."""
        if self.seekable:
            return True
        pause = _POLL_INTERVAL if deadline is None else min(_POLL_INTERVAL, max(0.0, deadline - time.monotonic()))
        return bool(select.select([self._handle], [], [], pause)[0])

    def _read(self) -> None:
        block = os.read(self._handle, _CHUNK)
        if not block:
            if self._follow and self.seekable:
                self._check_truncation()
                time.sleep(_POLL_INTERVAL)
                return
            self.ended = True
            last = self._skipping or self._rest
            if last:
                self._ready.append(last)
                self._unterminated = True
            self._rest, self._skipping = b"", None
            return
        if self._skipping:
            block = self._skip_rest(block)
        *complete, self._rest = (self._rest + block).split(b"\n")
        self._ready += complete
        if len(self._rest) > MAX_LINE_BYTES and not self._skipping:
            self._skipping = _LongLine(self._rest)
            self._rest = b""

    def _skip_rest(self, block: bytes) -> bytes:
        """Skip the rest of a line that is too long, and return what follows it."""
        if self._skipping is None:
            return block
        line, end, following = block.partition(b"\n")
        self._skipping.skipped += len(line)
        if end:
            self._ready.append(self._skipping)
            self._skipping = None
        return following

    def _check_truncation(self) -> None:
        if os.fstat(self._handle).st_size < os.lseek(self._handle, 0, os.SEEK_CUR):
            raise ValueError("The input file became shorter while it was followed; only appending is allowed.")
