"""What every display shares: where it is drawn, letters that fit, quiet axes, and the legend above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.report.style.colors import THEMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Entries = Sequence[tuple[Any, str]]

__all__ = ["THEME", "axes_width", "dress", "get_axes", "is_narrow", "legend_above", "letter_size"]

THEME = THEMES["light"]
_NARROW = 3.4  # inches below which letters and lines are smaller
_MOST_OF_HEIGHT = 0.4  # that a legend takes from a figure that is not ours
_GROWS_FROM = 0.22  # shares of its height above which a figure of our own makes room for the legend


def get_axes(ax: Any = None, size: tuple[float, float] = (5.6, 3.8)) -> Any:
    """Return the axes given, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
    size : tuple of float
        Of the new figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if ax is not None:
        return ax
    return load_extra("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def axes_width(ax: Any) -> float:
    """Return the inches that the figure has for these axes."""
    return float(ax.figure.get_size_inches()[0] * max(ax.get_position(original=True).width / 0.775, 0.05))


def is_narrow(ax: Any) -> bool:
    """Whether there is so little room that letters and lines have to be smaller: a column of 6 cm."""
    return axes_width(ax) < _NARROW


def letter_size(ax: Any) -> float:
    """Return the size of letters, in points."""
    return 7.0 if is_narrow(ax) else 9.0


def dress(ax: Any, *, xlabel: str, ylabel: str, grid: bool = True) -> None:
    """Write what the axes show, and make all that is not data quiet.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    xlabel, ylabel : str
    grid : bool, default True
    """
    letters = letter_size(ax)
    ax.set_xlabel(xlabel, fontsize=letters)
    ax.set_ylabel(ylabel, fontsize=letters)
    ax.tick_params(labelsize=letters - 0.5)
    if grid:
        ax.grid(visible=True, color=THEME.line, linewidth=0.5, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def legend_above(ax: Any, entries: Callable[[int], Entries], tail: Entries = (), *, grow: bool = False) -> Any:
    """Put the legend above the axes, no wider than they and their labels are, or it would squeeze them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    entries : callable
        Takes the most signs that a text may have; returns handles and texts. Where they would take more than two
        fifths of the figure's height, the last ones are left out and counted.
    tail : sequence of (handle, text)
        Entries that are never left out.
    grow : bool, default False
        Whether the figure is ours, and may become higher for a large legend.

    Returns
    -------
    matplotlib.legend.Legend
    """
    figure = ax.figure
    figure.draw_without_rendering()  # settles where things are
    whole, inner = ax.get_tightbbox(), ax.get_window_extent()
    left = (whole.x0 - inner.x0) / inner.width
    longest, most = 48, len(entries(48))
    columns = min(3, most + len(tail))
    room = _MOST_OF_HEIGHT * figure.bbox.height
    while True:
        legend = _legend(ax, [*_first(entries(longest), most), *tail], left, columns)
        box = legend.get_window_extent()
        if box.width > whole.width and longest > 12:
            columns, longest = (columns - 1, longest) if columns > 1 else (1, longest - 3)
        elif box.height > room and most > 1 and not grow:
            most -= 1
        else:
            break
    extra = (box.height - _GROWS_FROM * figure.bbox.height) / figure.dpi
    if grow and extra > 0:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + extra)
    return legend


def _first(entries: Entries, most: int) -> list[tuple[Any, str]]:
    """Return the first entries, and how many there are more."""
    if len(entries) <= most:
        return list(entries)
    nothing = load_extra("matplotlib.lines").Line2D([], [], linestyle="none")
    return [*entries[:most], (nothing, f"and {len(entries) - most} more")]


def _legend(ax: Any, entries: Entries, left: float, columns: int) -> Any:
    legend = ax.legend(
        [handle for handle, _ in entries],
        [""] * len(entries),
        loc="lower left",
        bbox_to_anchor=(left, 1.01),
        ncols=columns,
        frameon=False,
        fontsize=letter_size(ax),
        handlelength=2.6,
        borderpad=0.2,
        borderaxespad=0.0,
        labelspacing=0.25,
        columnspacing=1.2,
    )
    # Set one by one, and as plain text: matplotlib leaves out labels that begin with an underscore, and reads
    # dollar signs as mathematics.
    for text, (_, words) in zip(legend.get_texts(), entries, strict=True):
        text.set_text(words)
        text.set_parse_math(False)
        text.set_color(THEME.ink)
    return legend
