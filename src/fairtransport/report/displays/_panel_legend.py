"""Legend above the panels of methods: groups with their numbers of rows, and the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport.report.displays._group_lines import line_options
from fairtransport.report.style.colors import GroupStyle, Theme, group_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.groups import Groups

__all__ = ["Entry", "add_legend", "legend_columns", "legend_entries"]

_CHAR_WIDTH, _HANDLE_WIDTH, _COLUMN_GAP = 0.075, 0.42, 0.175  # inches
_FONT_SIZE = 9.0


@dataclass(frozen=True)
class Entry:
    """A label with the line of a group, or with the area of the target.

    Attributes
    ----------
    label : str
    style : GroupStyle or Theme
    """

    label: str
    style: GroupStyle | Theme


def legend_entries(groups: Groups, theme: Theme) -> list[Entry]:
    """List the groups with a style of their own, the others as one, and the target.

    Parameters
    ----------
    groups : Groups
        The groups.
    theme : Theme
        Colours of the target.

    Returns
    -------
    list of Entry
    """
    styles = group_styles(groups)
    named = zip(groups.names, groups.counts.tolist(), styles, strict=True)
    entries = [Entry(f"{shorten(name, 28)} (n = {count:,})", style) for name, count, style in named if style.named]
    others = [style for style in styles if not style.named]
    if others:
        entries.append(Entry(f"{len(others):,} smaller groups", others[0]))
    return [*entries, Entry("Target", theme)]


def legend_columns(labels: Sequence[str], width: float) -> int:
    """Return the largest number of columns, at most five, that fit side by side.

    Parameters
    ----------
    labels : sequence of str
        Labels, which fill one column after the other.
    width : float
        Available width, in inches.

    Returns
    -------
    int

    Examples
    --------
    >>> legend_columns(["Female", "Male", "Target"], 6.0), legend_columns(["A long name"] * 4, 3.2)
    (3, 2)
    """
    sizes = np.array([len(label) + 0.25 * sum(map(str.isupper, label)) for label in labels])
    for columns in range(min(5, sizes.size), 1, -1):
        chars = sum(float(column.max()) for column in np.array_split(sizes, columns))
        if _CHAR_WIDTH * chars + _HANDLE_WIDTH * columns + _COLUMN_GAP * (columns - 1) <= width:
            return columns
    return 1


def add_legend(figure: Any, entries: Sequence[Entry], columns: int) -> None:
    """Place the legend above the panels.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure with the panels.
    entries : sequence of Entry
        Entries of the legend.
    columns : int
        Number of columns.
    """
    legend = figure.legend(
        [_handle(entry.style) for entry in entries],
        [""] * len(entries),
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        fontsize=_FONT_SIZE,
        handlelength=2.4,
        columnspacing=1.4,
    )
    # Set one by one: matplotlib omits labels that begin with an underscore.
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        text.set_text(entry.label)


def _handle(style: GroupStyle | Theme) -> Any:
    if isinstance(style, Theme):
        return load_extra("matplotlib.patches").Patch(facecolor=style.target, edgecolor=style.line)
    return load_extra("matplotlib.lines").Line2D([], [], **line_options(style))
