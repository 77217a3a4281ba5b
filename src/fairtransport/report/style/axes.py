"""Axes with a light grid and without a box: the same in displays, panels and the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtransport.report.style.colors import Theme

__all__ = ["add_grid"]


def add_grid(ax: Any, theme: Theme, *, width: float, visible: bool = True) -> None:
    """Draw a light grid behind the data and remove the upper and right spines.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes to style.
    theme : Theme
        Colours.
    width : float
        Width of the grid lines, in points.
    visible : bool, default=True
        Whether there is a grid at all.
    """
    if visible:
        ax.grid(visible=True, color=theme.line, linewidth=width, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
