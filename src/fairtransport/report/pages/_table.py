"""A table of a page: each cell as a reader sees it and as a spreadsheet wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import one_line

if TYPE_CHECKING:
    from fairtransport.auditing import Estimate

__all__ = ["METRIC_WORDS", "NOTHING", "Cell", "Row", "Table", "estimate_cell", "interval_cell", "number_cell"]

METRIC_WORDS = {
    "error_rate": ("Wrong decisions", "Share of people on the wrong side of the first threshold."),
    "wasserstein_disparity": ("To the target", "Distance of each group's scores from the target, added up."),
    "strong_demographic_disparity": ("To everyone", "Distance of each group's scores from everyone's, added up."),
    "strong_pairwise_disparity": ("Between all pairs", "Distance between the scores of every two groups, added up."),
}
"""Each metric in a few words, and in a sentence."""


@dataclass(frozen=True)
class Cell:
    """One value: what is shown, and what a spreadsheet gets."""

    shown: str
    raw: Any


NOTHING = Cell("\N{EN DASH}", "")


@dataclass(frozen=True)
class Row:
    """A line of a table: its head, and the cells.

    Parameters
    ----------
    head : str
    cells : tuple of Cell
    place : int or None
        Of the group that the line is about, for its swatch.
    note : str
        A line below the head.
    unsure : bool
    """

    head: str
    cells: tuple[Cell, ...]
    place: int | None = None
    note: str = ""
    unsure: bool = False

    @property
    def told(self) -> str:
        """The head as one line."""
        return one_line(self.head)


@dataclass(frozen=True)
class Table:
    """A table with its caption.

    Parameters
    ----------
    key : str
        Name of the file that it can be saved as, and of its element.
    title, caption : str
    columns : tuple of str
        Heads, that of the first column included.
    rows : tuple of Row
    wide : frozenset of int
        Positions of columns that narrow screens leave out.
    """

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    wide: frozenset[int] = field(default_factory=frozenset)

    @property
    def sheet(self) -> list[list[Any]]:
        """Return rows for a spreadsheet, the heads first."""
        return [list(self.columns), *([row.told, *(cell.raw for cell in row.cells)] for row in self.rows)]


def interval_cell(low: float, high: float, show: Any) -> Cell:
    """Return an interval."""
    told = show(high) if np.isfinite(high) else "∞"
    return Cell(f"{show(low)} to {told}", f"{low} to {high}")


def number_cell(value: float | None, show: Any) -> Cell:
    """Return a number, or nothing where there is none."""
    return NOTHING if value is None or not np.isfinite(value) else Cell(show(value), value)


def estimate_cell(found: Estimate | None, show: Any) -> Cell:
    """Return the value of an estimate, or nothing where there is none."""
    return NOTHING if found is None else number_cell(found.value, show)
