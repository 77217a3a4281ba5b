"""A progress bar on standard error: rich where it is installed, ten plain lines otherwise and in log files."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator


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
    """Ten lines in total, for log files and where rich is not installed."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.tenth = title, total, 0
        self.started = time.monotonic()

    def advance(self, done: int, note: str = "") -> None:
        tenth = 10 * done // max(self.total, 1)
        if tenth > self.tenth:
            self.tenth = tenth
            left = (time.monotonic() - self.started) * (self.total - done) / max(done, 1)
            line = f"{self.title}: {10 * tenth}% {note}".rstrip() + (f", about {left:.0f} s left" if left >= 1 else "")
            print(line, file=sys.stderr, flush=True)  # noqa: T201


@contextlib.contextmanager
def progress(title: str, total: int, *, show: bool = True, after: float = 0.0) -> Iterator[Progress]:
    """Show a bar with the time left while the block runs."""
    if not show:
        yield Progress()
        return
    if after > 0:
        with contextlib.ExitStack() as stack:
            yield _Delayed(lambda: stack.enter_context(progress(title, total)), after)
        return
    try:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
        from rich.progress import Progress as RichProgress  # noqa: PLC0415
    except ImportError:
        yield _Lines(title, total)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(title, total)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with RichProgress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, note="")

        class _Bar(Progress):
            def advance(self, done: int, note: str = "") -> None:
                bar.update(task, completed=done, note=note)

        yield _Bar()
