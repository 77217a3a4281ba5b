"""Lines of groups: one style for each group, faint where it has few rows, and labels for the legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import shorten
from fairtransport.report.displays._axes import is_narrow
from fairtransport.report.style.colors import GroupStyle, group_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from fairtransport.groups import Groups

__all__ = ["GroupLines", "line_options"]

_FAINT = 0.45


def line_options(style: GroupStyle) -> dict[str, Any]:
    """Return the options of matplotlib for the line of a group.

    Parameters
    ----------
    style : GroupStyle
        Style of the group.

    Returns
    -------
    dict
    """
    dashes = (0, style.dashes) if style.dashes else "solid"
    width, layer = (1.9, 4) if style.named else (0.8, 3)
    return {"color": style.colour, "linestyle": dashes, "linewidth": width, "zorder": layer}


class GroupLines:
    """One line for each group, with its label in the legend.

    Parameters
    ----------
    groups : Groups
        The groups.
    counts : array-like of shape (n_groups,), default=None
        Rows of each group; if None, labels do not show them.
    judged : array-like of bool, default=None
        Groups with enough rows to be judged; if None, all.

    Attributes
    ----------
    lines : list of matplotlib.lines.Line2D
        The lines drawn so far, in the order of the groups.
    """

    def __init__(self, groups: Groups, counts: ArrayLike | None = None, judged: ArrayLike | None = None) -> None:
        self.names: Sequence[str] = groups.names
        self.counts = None if counts is None else np.asarray(counts)
        self.judged = np.ones(len(groups), dtype=np.bool_) if judged is None else np.asarray(judged, dtype=np.bool_)
        self.styles = group_styles(groups, self.counts)
        self.lines: list[Any] = []

    def draw(self, ax: Any, x: ArrayLike, y: ArrayLike) -> None:
        """Draw the line of the next group."""
        index = len(self.lines)
        options = line_options(self.styles[index])
        if is_narrow(ax):
            options["linewidth"] *= 0.7
        if not self.judged[index]:
            options |= {"alpha": _FAINT, "linewidth": 0.7 * options["linewidth"], "zorder": 3}
        self.lines.extend(ax.plot(x, y, **options))

    def entries(self, max_chars: int) -> list[tuple[Any, str]]:
        """Return the entries of a legend: groups with a style of their own by name, the others as one.

        Parameters
        ----------
        max_chars : int
            Largest number of characters of a label.

        Returns
        -------
        list of (handle, label)
        """
        entries, others = [], []
        for index, (style, line) in enumerate(zip(self.styles, self.lines, strict=True)):
            if style.named:
                entries.append((line, self._label(index, max_chars)))
            else:
                others.append(line)
        if others:
            entries.append((others[0], f"{len(others):,} smaller groups"))
        return entries

    def _label(self, index: int, max_chars: int) -> str:
        remarks = [] if self.counts is None else [f"n = {self.counts[index]:,}"]
        if not self.judged[index]:
            remarks.append("few rows")
        suffix = f" ({', '.join(remarks)})" if remarks else ""
        return f"{shorten(self.names[index], max(4, max_chars - len(suffix)))}{suffix}"
