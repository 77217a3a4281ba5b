"""Tables of a page: each cell as a reader sees it and as a spreadsheet receives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairtransport.auditing import Estimate

__all__ = ["EMPTY_CELL", "METRIC_NAMES", "Cell", "Row", "Table", "estimate_cell", "interval_cell", "number_cell"]

METRIC_NAMES = {
    "error_rate": ("Wrong decisions", "Share of people on the wrong side of the first threshold."),
    "wasserstein_disparity": ("To the target", "Sum of the distances from each group's scores to the target."),
    "strong_demographic_disparity": ("To everyone", "Sum of the distances from each group's scores to everyone's."),
    "strong_pairwise_disparity": ("Between all pairs", "Sum of the distances between the scores of every two groups."),
    "rank_disparity": (
        "Between ranks",
        "Sum over pairs of the difference between two groups' selection rates, over all shares of people selected.",
    ),
    "kolmogorov_smirnov_disparity": (
        "Largest difference",
        "Between two groups' shares above any threshold (Kolmogorov-Smirnov).",
    ),
}
"""Name of each metric in a few words, and its description."""


@dataclass(frozen=True)
class Cell:
    """A value: as it is shown, and as a spreadsheet receives it."""

    shown: str
    raw: Any


EMPTY_CELL = Cell("\N{EN DASH}", "")


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Parameters
    ----------
    name : str
        Head of the row.
    cells : tuple of Cell
        The other cells.
    group : int or None
        Index of the group that the row is about, for its line sample.
    note : str
        A line below the head.
    """

    name: str
    cells: tuple[Cell, ...]
    group: int | None = None
    note: str = ""

    @property
    def head(self) -> str:
        """The name as one line."""
        return one_line(self.name)


@dataclass(frozen=True)
class Table:
    """A table with its caption.

    Parameters
    ----------
    key : str
        Name of the file that it can be saved as, and of its element.
    title, caption : str
        Heading and caption.
    columns : tuple of str
        Heads of all columns, that of the rows included.
    rows : tuple of Row
        The rows.
    wide : frozenset of int
        Indices of the columns that narrow screens leave out.
    """

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    wide: frozenset[int] = field(default_factory=frozenset)

    @property
    def sheet(self) -> list[list[Any]]:
        """Rows for a spreadsheet, the heads first."""
        return [list(self.columns), *([row.head, *(cell.raw for cell in row.cells)] for row in self.rows)]


def interval_cell(low: float, high: float, show: Callable[[float], str]) -> Cell:
    """Return the cell of an interval."""
    upper = show(high) if np.isfinite(high) else "∞"
    return Cell(f"{show(low)} to {upper}", f"{low} to {high}")


def number_cell(value: float | None, show: Callable[[float], str]) -> Cell:
    """Return the cell of a number; an empty one if it is None or not finite."""
    return EMPTY_CELL if value is None or not np.isfinite(value) else Cell(show(value), value)


def estimate_cell(estimate: Estimate | None, show: Callable[[float], str]) -> Cell:
    """Return the cell of the value of an estimate; an empty one if there is none."""
    return EMPTY_CELL if estimate is None else number_cell(estimate.value, show)
