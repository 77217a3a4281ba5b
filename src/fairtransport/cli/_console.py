"""What the commands print with rich: tables, sentences, paths, and progress on a terminal."""

from __future__ import annotations

import contextlib
import itertools
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairtransport._progress import progress
from fairtransport._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "can_ask",
    "count_of",
    "make_table",
    "print_paths",
    "print_sentence",
    "print_table",
    "progress_bar",
    "spinner",
    "stderr_is_terminal",
    "step_progress",
]


def stderr_is_terminal() -> bool:
    """Return whether standard error is a terminal; progress is shown only there."""
    return sys.stderr.isatty()


def can_ask() -> bool:
    """Return whether a question can be asked and answered on the terminal."""
    return stderr_is_terminal() and sys.stdin.isatty()


def make_table(title: str, left: Sequence[str], right: Sequence[str], *, gap: int = 2) -> Table:
    """Return an empty table.

    Parameters
    ----------
    title : str
    left, right : sequence of str
        Columns of text, then columns of numbers.
    gap : int, default=2
        Spaces between columns.

    Returns
    -------
    rich.table.Table
    """
    table = Table(
        title=Text(one_line(title), style="bold"),
        title_justify="left",
        box=None,
        padding=(0, gap, 0, 0),
        pad_edge=False,
    )
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is one.

    Examples
    --------
    >>> count_of(1, "row"), count_of(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def print_table(table: Table) -> None:
    """Print a table and an empty line.

    Parameters
    ----------
    table : rich.table.Table
    """
    console = Console(highlight=False)
    console.print(table)
    console.print()


def print_sentence(text: str) -> None:
    """Print text, wrapped to the width of the terminal and without interpreting markup.

    Parameters
    ----------
    text : str
    """
    Console(highlight=False).print(Text(one_line(text)))


def print_paths(paths: Mapping[str, Path | None]) -> None:
    """Print each path on one line, however long, so that it can be copied.

    Parameters
    ----------
    paths : mapping
        Label -> path; what has no path is left out.
    """
    for label, path in paths.items():
        if path is not None:
            Console(highlight=False).print(Text(one_line(f"{label}: {path}")), soft_wrap=True)


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal once the work has taken two seconds.

    Parameters
    ----------
    title : str

    Yields
    ------
    callable
        Takes the fraction of the work that is done.
    """
    from fairtransport.tables.files.engine import QUIET  # noqa: PLC0415 - narwhals takes a while

    with progress(title, 1000, show=stderr_is_terminal(), after=QUIET) as bar:
        yield lambda fraction: bar.advance(int(1000 * fraction))


@contextlib.contextmanager
def step_progress(title: str, n_steps: int) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal how many steps are done, and the time left.

    Parameters
    ----------
    title : str
    n_steps : int

    Yields
    ------
    callable or None
        Takes a description of the step that begins; None if there is no terminal.
    """
    if not Console(stderr=True).is_terminal:
        yield None
        return
    done = itertools.count()
    with progress(title, n_steps) as bar:
        yield lambda note: bar.advance(min(next(done), n_steps - 1), one_line(note))


@contextlib.contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal that work is going on.

    Parameters
    ----------
    text : str
        What is being done.

    Yields
    ------
    callable or None
        Takes a new text; None if there is no terminal.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(Text(text)) as status:
        yield lambda note: status.update(Text(one_line(note)))
