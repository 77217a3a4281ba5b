"""Lines of groups on axes: colours and dashes as everywhere, those of few rows faint, and a legend that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import shorten
from fairtransport.report.displays._axes import is_narrow
from fairtransport.report.displays._legend import line_options
from fairtransport.report.style.colors import group_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from fairtransport.groups import Groups

__all__ = ["GroupLines"]

_FAINT = 0.45


class GroupLines:
    """Draws one line for each group, and names them.

    Parameters
    ----------
    groups : Groups
    counts : array-like of shape (n_groups,), optional
        Rows of each group; unknown where omitted.
    unsure : array-like of bool, optional
        Groups with too few rows to say much.

    Attributes
    ----------
    lines : list of matplotlib.lines.Line2D
        In the groups' order.
    """

    def __init__(self, groups: Groups, counts: ArrayLike | None = None, unsure: ArrayLike | None = None) -> None:
        self.names: Sequence[str] = groups.names
        self.counts = None if counts is None else np.asarray(counts)
        self.unsure = np.zeros(len(groups), dtype=np.bool_) if unsure is None else np.asarray(unsure, dtype=np.bool_)
        self.styles = group_styles(groups, self.counts)
        self.lines: list[Any] = []

    def style(self, place: int, ax: Any) -> dict[str, Any]:
        """Return how matplotlib draws the line of a group."""
        options = line_options(self.styles[place])
        if is_narrow(ax):
            options["linewidth"] *= 0.7
        if self.unsure[place]:
            options |= {"alpha": _FAINT, "linewidth": 0.7 * options["linewidth"], "zorder": 3}
        return options

    def draw(self, ax: Any, place: int, x: ArrayLike, y: ArrayLike, **options: Any) -> None:
        """Draw the line of the next group."""
        self.lines.extend(ax.plot(x, y, **{**self.style(place, ax), **options}))

    def entries(self, longest: int) -> list[tuple[Any, str]]:
        """Return what a legend says: groups with a colour of their own by name, the others as one.

        Parameters
        ----------
        longest : int
            Most signs of a text.
        """
        found, others = [], []
        for place, (name, style, line) in enumerate(zip(self.names, self.styles, self.lines, strict=True)):
            if style.named:
                found.append((line, self._label(place, name, longest)))
            else:
                others.append(line)
        if others:
            found.append((others[0], f"{len(others):,} smaller groups"))
        return found

    def _label(self, place: int, name: str, longest: int) -> str:
        told = [] if self.counts is None else [f"n = {self.counts[place]:,}"]
        if self.unsure[place]:
            told.append("unsure")
        after = f" ({', '.join(told)})" if told else ""
        return f"{shorten(name, max(4, longest - len(after)))}{after}"
