"""A progress bar on standard error: rich where it is installed, a few plain lines otherwise and in log files.

Work whose length is not known ahead has neither a percentage nor a time that is left: what it has taken is shown.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_FIRST_LINE, _LINE_EVERY = 1.0, 60.0  # seconds; in between, lines come when the time taken has doubled


class Progress:
    """Receiver of the progress of a long computation, which shows nothing."""

    def advance(self, done: int, note: str = "") -> None:
        """Report the number of units finished so far, with a short note."""


class _Delayed(Progress):
    """A bar that appears only once the work has taken a while."""

    def __init__(self, open_bar: Callable[[], Progress], after: float) -> None:
        self._open_bar = open_bar
        self._bar: Progress | None = None
        self._due = time.monotonic() + after

    def advance(self, done: int, note: str = "") -> None:
        if self._bar is None and time.monotonic() >= self._due:
            self._bar = self._open_bar()
        if self._bar is not None:
            self._bar.advance(done, note)


class _Lines(Progress):
    """Ten lines in total, for log files and where rich is not installed; of an unknown total one each minute."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title, self.total, self.tenth = title, total, 0
        self.started = time.monotonic()
        self.due = self.started + _FIRST_LINE

    def advance(self, done: int, note: str = "") -> None:
        if self.total is None:
            now = time.monotonic()
            if now >= self.due:
                self.due = now + min(now - self.started, _LINE_EVERY)
                print(f"{self.title}: {now - self.started:.0f} s, {note}", file=sys.stderr, flush=True)  # noqa: T201
            return
        tenth = 10 * done // max(self.total, 1)
        if tenth > self.tenth:
            self.tenth = tenth
            left = (time.monotonic() - self.started) * (self.total - done) / max(done, 1)
            line = f"{self.title}: {10 * tenth}% {note}".rstrip() + (f", about {left:.0f} s left" if left >= 1 else "")
            print(line, file=sys.stderr, flush=True)  # noqa: T201


@contextlib.contextmanager
def progress(title: str, total: int | None, *, show: bool = True, after: float = 0.0) -> Iterator[Progress]:
    """Show a bar while the block runs: with the time left, or with the time taken where the total is not known."""
    if not show:
        yield Progress()
        return
    if after > 0:
        with contextlib.ExitStack() as stack:
            yield _Delayed(lambda: stack.enter_context(progress(title, total)), after)
        return
    try:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415
        from rich.progress import Progress as RichProgress  # noqa: PLC0415
    except ImportError:
        yield _Lines(title, total)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(title, total)
        return
    percentage = TextColumn("{task.percentage:>3.0f}%")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        *((TimeElapsedColumn(),) if total is None else (percentage, TimeRemainingColumn(compact=True))),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with RichProgress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, note="")

        class _Bar(Progress):
            def advance(self, done: int, note: str = "") -> None:
                bar.update(task, completed=done, note=note)

        yield _Bar()
