"""The common style of the reproduced figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.report.style.axes import add_grid
from fairtransport.report.style.colors import THEMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["start_figure"]


def start_figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, NDArray[Any]]:
    """Return a figure and its axes in the common style, whatever matplotlib's settings are.

    Parameters
    ----------
    rows, columns : int
        Number of panels.
    size : tuple of float
        Width and height in inches.
    **options
        For ``matplotlib.figure.Figure.subplots``.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : ndarray of Axes, of shape (rows, columns)
    """
    mpl, theme = load_extra("matplotlib"), THEMES["light"]
    with mpl.rc_context():
        mpl.rcdefaults()
        figure = load_extra("matplotlib.figure").Figure(figsize=size, layout="constrained", facecolor=theme.paper)
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.05)
        axes = figure.subplots(rows, columns, squeeze=False, **options)
        for axis in axes.flat:
            add_grid(axis, theme, width=0.6)
            axis.spines[["left", "bottom"]].set_color(theme.quiet)
            axis.tick_params(colors=theme.quiet, labelcolor=theme.ink, labelsize=8.5)
    return figure, axes
