"""Lines of a file, a growing file or a pipe, with the position reached."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

#: Length of a line in bytes; longer ones are rejected.
MAX_LINE_BYTES = 1 << 20
#: Length of the lines of a batch in bytes; a batch has fewer lines than asked for where they are longer.
MAX_BATCH_BYTES = 8 << 20

_CHUNK = 1 << 18  # less than MAX_LINE_BYTES, so only a line that spans several blocks can be too long
_POLL_INTERVAL = 0.1  # seconds
_HEAD = 4096  # bytes at the beginning that identify the input
_WINDOW = 4096  # bytes before the next block that must not have changed
_SKIPPED_LINES = 10_000  # taken at once when a resumed run skips lines


class _LongLine(bytes):
    """The beginning of a line that is too long, with the number of bytes that were left out."""

    left_out = 0


class Source(ABC):
    """Lines of an input, and what a resumed run has to know about it."""

    seekable = True  # whether lines that were not taken can be read again
    reproducible = True  # whether the lines alone decide where a batch ends
    incomplete = False  # whether the input ended in the middle of a line, which is not taken
    header: bytes | None = None  # of CSV, if it is not the first line
    max_line_bytes = MAX_LINE_BYTES

    def __init__(self, *, follow: bool, stop: Callable[[], bool]) -> None:
        self._follow, self._stop = follow, stop
        self._ready: list[Any] = []
        self.lines = 0
        self.ended = False

    @abstractmethod
    def take(self, n_lines: int, *, wait: float | None = None) -> list[bytes]:
        """Return the next lines without newlines; fewer at the end, when stopped, or after ``wait`` seconds.

        There are also fewer if they would be longer than `MAX_BATCH_BYTES`, but at least one.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what a checkpoint stores."""

    @abstractmethod
    def restore(self, stored: Mapping[str, Any]) -> None:
        """Continue after the lines that a checkpoint says were taken."""

    @property
    def settings(self) -> dict[str, Any]:
        """Options that a resumed run must repeat."""
        return {}

    def repeat(self, entry: Mapping[str, Any]) -> None:  # noqa: B027
        """Let the next batch be the one of a journal entry; by default its number of lines says which it is."""

    def batch_end(self) -> dict[str, Any]:
        """Return what the journal says about the end of a batch, besides its number of lines."""
        return {}

    def locate(self, line: int) -> dict[str, int]:
        """Say where a line of the last batch is."""
        return {"line": line}

    def checkpointed(self) -> None:  # noqa: B027
        """Note that a checkpoint was written, which has the position."""

    def _wait_for_batch(self, n_lines: int, wait: float | None) -> list[Any]:
        """Read until a batch is full, the input ends, it has waited long enough or is stopped; return what is ready."""
        deadline = None
        while True:
            size, full = self._batch_size(n_lines)
            if full or self._has_ended():
                break
            if wait is not None and deadline is None and self._ready:
                deadline = time.monotonic() + wait
            left = _POLL_INTERVAL if deadline is None else deadline - time.monotonic()
            if self._stop() and self.seekable:
                return []  # the next run reads them again
            if self._stop() or left <= 0.0:
                break
            self._poll(min(_POLL_INTERVAL, left))
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken

    def _batch_size(self, n_lines: int) -> tuple[int, bool]:
        """Return how many of the lines are the next batch, and whether it is full; that depends on the lines only."""
        n_bytes = 0
        for number, line in enumerate(self._ready[:n_lines]):
            n_bytes += len(line)
            if number and n_bytes > MAX_BATCH_BYTES:
                return number, True
        return min(n_lines, len(self._ready)), len(self._ready) >= n_lines

    def _has_ended(self) -> bool:
        return self.ended

    @abstractmethod
    def _poll(self, seconds: float) -> Any:
        """Wait so long for more lines."""


class LineSource(Source):
    r"""Lines of an open file or pipe, read in blocks.

    A line ends with ``\n``, and only there; one ``\r`` before it is removed. What follows the last ``\n`` is no line:
    the writer may have been interrupted in the middle of a number.
    """

    def __init__(self, handle: int, *, follow: bool = False, stop: Callable[[], bool] = lambda: False) -> None:
        super().__init__(follow=follow, stop=stop)
        self._handle = handle
        self.seekable = stat.S_ISREG(os.fstat(handle).st_mode)
        self._offset = os.lseek(handle, 0, os.SEEK_CUR) if self.seekable else 0  # of the next block
        self._window = b""  # the last bytes before it
        self._pieces: list[bytes] = []  # of an incomplete line, up to the length at which it is too long
        self._kept_bytes = self._line_bytes = 0  # of the pieces, and of the line
        self.position = 0
        self._head, self._head_bytes, self._prefix = hashlib.sha256(), 0, hashlib.sha256()

    @property
    def incomplete(self) -> bool:  # type: ignore[override]
        return self.ended and self._line_bytes > 0

    def take(self, n_lines: int, *, wait: float | None = None) -> list[bytes]:
        """Return the next lines; one that is too long is cut to `MAX_LINE_BYTES` and one byte."""
        return self._advance(self._wait_for_batch(n_lines, wait))

    def state(self) -> dict[str, Any]:
        head = [self._head_bytes, self._head.hexdigest()]  # the beginning, as far as it was taken
        return {"position": self.position, "lines": self.lines, "head": head, "checksum": self._prefix.hexdigest()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Skip what an earlier run has read; raise if the input is a different one."""
        position, lines, head = stored["position"], stored["lines"], stored["head"]
        if self.seekable and os.fstat(self._handle).st_size < position:
            raise ValueError(
                f"The input has fewer bytes than were read before ({position}). Pass the same, complete file."
            )
        follow, self._follow = self._follow, False  # all of these lines are there
        while self.lines < lines and self.position < max(head[0], 1) and self.take(1):
            pass  # line by line, because the checksum covers whole lines
        self._check_stop()
        if self.state()["head"] != list(head):
            raise ValueError(
                "The input does not begin like the input of the run to resume. Pass the same input, from its start."
            )
        while self.lines < lines and self.take(min(_SKIPPED_LINES, lines - self.lines)):
            self._check_stop()
        self._check_stop()
        if self.lines < lines:
            raise ValueError(
                f"The input ends before line {lines}, up to which it was read before. Pass it from its start."
            )
        if (self.position, self._prefix.hexdigest()) != (position, stored["checksum"]):
            raise ValueError(
                f"The first {lines} lines of the input are not those that the run to resume has read. Pass the same "
                "input, to which lines were only appended."
            )
        self._follow = follow
        self.ended = self.ended and not self.seekable  # a file is read on, as far as it has grown

    def _check_stop(self) -> None:
        if self._stop():
            raise KeyboardInterrupt

    def _advance(self, taken: list[bytes]) -> list[bytes]:
        """Move the position past these lines, and return them without carriage returns."""
        if not taken:
            return []
        content = b"\n".join(taken) + b"\n"
        n_bytes = len(content)
        if any(isinstance(line, _LongLine) for line in taken):
            left_out = [line.left_out if isinstance(line, _LongLine) else 0 for line in taken]
            n_bytes += sum(left_out)
            content = b"".join(
                b"%b%d\n" % pair if pair[1] else pair[0] + b"\n" for pair in zip(taken, left_out, strict=True)
            )
        self._prefix.update(content)
        if self._head_bytes < _HEAD:
            head = content[: _HEAD - self._head_bytes]
            self._head.update(head)
            self._head_bytes += len(head)
        self.lines += len(taken)
        self.position += n_bytes
        return [line.removesuffix(b"\r") for line in taken]

    def _poll(self, seconds: float) -> None:
        if not self.seekable and not select.select([self._handle], [], [], seconds)[0]:
            return
        block = self._next_block() if self.seekable else os.read(self._handle, _CHUNK)
        if not block:
            if self._follow and self.seekable:
                time.sleep(_POLL_INTERVAL)
            else:
                self.ended = True
            return
        beginning, *others = block.split(b"\n")
        self._extend_line(beginning)
        if others:
            *complete, rest = others
            self._ready += [self._finish_line(), *complete]
            self._extend_line(rest)

    def _extend_line(self, piece: bytes) -> None:
        kept = piece[: MAX_LINE_BYTES + 1 - self._kept_bytes]
        self._pieces += [kept] if kept else []
        self._kept_bytes += len(kept)
        self._line_bytes += len(piece)

    def _finish_line(self) -> bytes:
        line = b"".join(self._pieces)
        if self._line_bytes > MAX_LINE_BYTES:
            line = _LongLine(line)
            line.left_out = self._line_bytes - self._kept_bytes
        self._pieces, self._kept_bytes, self._line_bytes = [], 0, 0
        return line

    def _next_block(self) -> bytes:
        """Return the next block of a file; raise if what was read before it is no longer there."""
        known = len(self._window)
        content = os.pread(self._handle, known + _CHUNK, self._offset - known)
        if len(content) < known:
            raise ValueError("The input file became shorter while it was read; only appending is allowed.")
        if content[:known] != self._window:
            raise ValueError("The input file was rewritten while it was read; only appending is allowed.")
        self._offset += len(content) - known
        self._window = content[-_WINDOW:]
        return content[known:]
