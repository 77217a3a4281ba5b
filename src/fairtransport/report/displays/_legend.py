"""The legend above the panels: groups with their numbers of rows, and the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport.report.style.colors import GroupStyle, Theme, group_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.groups import Groups

__all__ = ["Entry", "add_legend", "legend_columns", "legend_entries", "line_options"]

_SIGN, _HANDLE, _GAP = 0.075, 0.42, 0.175  # inches of a label's sign, a line sample, and between columns
_FONT_SIZE = 9.0


@dataclass(frozen=True)
class Entry:
    """One label with the line of a group, or with the area of the target.

    Attributes
    ----------
    label : str
    style : GroupStyle or Theme
    """

    label: str
    style: GroupStyle | Theme


def legend_entries(groups: Groups, theme: Theme) -> list[Entry]:
    """List the groups that have a line of their own, the others as one, and the target.

    Parameters
    ----------
    groups : Groups
    theme : Theme

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
    """Return the most columns, five at most, that fit side by side.

    Parameters
    ----------
    labels : sequence of str
        Filled into the columns one after the other.
    width : float
        Inches that there are.

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
        longest = sum(float(part.max()) for part in np.array_split(sizes, columns))
        if _SIGN * longest + _HANDLE * columns + _GAP * (columns - 1) <= width:
            return columns
    return 1


def add_legend(figure: Any, entries: Sequence[Entry], columns: int) -> None:
    """Put the legend above the panels.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    entries : sequence of Entry
    columns : int
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
    # Set one by one: matplotlib leaves out legend labels that begin with an underscore.
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        text.set_text(entry.label)


def line_options(style: GroupStyle) -> dict[str, Any]:
    """Return how matplotlib draws a group's line.

    Parameters
    ----------
    style : GroupStyle

    Returns
    -------
    dict
    """
    dashes = (0, style.dashes) if style.dashes else "solid"
    width, layer = (1.9, 4) if style.named else (0.8, 3)
    return {"color": style.colour, "linestyle": dashes, "linewidth": width, "zorder": layer}


def _handle(style: GroupStyle | Theme) -> Any:
    if isinstance(style, Theme):
        return load_extra("matplotlib.patches").Patch(facecolor=style.target, edgecolor=style.line)
    return load_extra("matplotlib.lines").Line2D([], [], **line_options(style))
