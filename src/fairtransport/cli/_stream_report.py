"""Progress of ``fairtransport stream`` on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from fairtransport._text import one_line
from fairtransport.cli._errors import print_stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fairtransport.stream import AdjustmentReport

__all__ = ["StreamReporter", "make_reporter"]


class StreamReporter:
    """Reports batches at intervals, and alarms at once.

    Parameters
    ----------
    seconds : float
        Time between two lines.
    show : callable, optional
        Changes the live line; without one, lines are printed.
    say : callable
        Prints a line.
    """

    def __init__(
        self, seconds: float, show: Callable[[str], None] | None = None, say: Callable[[str], None] = print_stderr
    ) -> None:
        self._seconds, self._show, self._say = seconds, show, say
        self._due = time.monotonic() + seconds
        self._since, self._rows = time.monotonic(), 0
        self._last = ""

    def report_batch(self, report: AdjustmentReport, *, lines: int, rejected: int) -> None:
        """Report a batch."""
        self._rows += len(report.scores)
        if report.alarm:
            self._say(f"alarm: batch {report.batch}: a group's scores have changed; adjusting")
        if time.monotonic() < self._due and self._show is None and not report.alarm:
            return
        self._last = self._line(report, lines, rejected)
        if self._show is not None:
            self._show(self._last)
        else:
            self._say(self._last)
        self._due = time.monotonic() + self._seconds

    def warn(self, text: str) -> None:
        """Report a warning."""
        self._say(f"warning: {text}")

    def end(
        self, *, rows: int, rejected: int, alarms: int, rows_without_group: int = 0, rejected_file: Path | None = None
    ) -> None:
        """Print the totals, when the live line is gone."""
        where = f" (see {rejected_file})" if rejected and rejected_file is not None else ""
        unknown = f" ({rows_without_group:,} without a known group)" if rows_without_group else ""
        print_stderr(f"done: {rows:,} rows scored{unknown}, {rejected:,} lines rejected{where}, {alarms} alarms")

    def _line(self, report: AdjustmentReport, lines: int, rejected: int) -> str:
        spent = max(time.monotonic() - self._since, 1e-9)
        state = "frozen" if report.frozen else "at the border of the trust region" if report.at_border else "adjusting"
        unknown = f"{report.rows_without_group:,} without a known group, " if report.rows_without_group else ""
        return (
            f"batch {report.batch:,}: {lines:,} lines, {rejected:,} rejected, {unknown}"
            f"{self._rows / spent:,.0f} rows/s; disparity {report.disparity_after:.3f} (before "
            f"{report.disparity_before:.3f}, noise floor {report.noise_floor:.3f}); {state}, "
            f"moved {report.moved:.3f}, agreement {report.agreement:.3f}"
        )


@contextlib.contextmanager
def make_reporter(*, seconds: float) -> Iterator[StreamReporter]:
    """Yield the reporter for a terminal, or for another kind of standard error."""
    console: Any = Console(stderr=True)
    if not (console.is_terminal and sys.stderr.isatty()):
        yield StreamReporter(seconds)
        return
    with console.status(Text("waiting for lines")) as status:
        yield StreamReporter(
            seconds,
            show=lambda line: status.update(Text(one_line(line))),
            say=lambda line: console.print(Text(one_line(line)), soft_wrap=True),
        )
