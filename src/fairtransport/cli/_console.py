"""What the commands print with rich: tables, sentences, and a sign of life on a terminal."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairtransport._progress import progress
from fairtransport._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["make_table", "many", "print_path", "print_sentence", "print_table", "spinner", "steps"]


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


def many(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> many(1, "row"), many(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


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
    """Print text, wrapped to the terminal, as it is: no markup.

    Parameters
    ----------
    text : str
    """
    Console(highlight=False).print(Text(one_line(text)))


def print_path(label: str, path: object) -> None:
    """Print a path on one line, however long, so that it can be copied.

    Parameters
    ----------
    label : str
    path : object
    """
    Console(highlight=False).print(Text(one_line(f"{label} {path}")), soft_wrap=True)


@contextlib.contextmanager
def steps(title: str, number: int) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal how many of some steps are done, and the time left; elsewhere nothing.

    Parameters
    ----------
    title : str
    number : int
        Of the steps.

    Yields
    ------
    callable or None
        Takes what is being done in the step that begins.
    """
    if not Console(stderr=True).is_terminal:
        yield None
        return
    begun = itertools.count()
    with progress(title, number) as bar:
        yield lambda note: bar.advance(min(next(begun), number - 1), one_line(note))


@contextlib.contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal that work goes on; elsewhere nothing.

    Parameters
    ----------
    text : str
        What is being done.

    Yields
    ------
    callable or None
        Takes the next thing that is being done.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(Text(text)) as status:
        yield lambda note: status.update(Text(one_line(note)))
