"""The common style of the reproduced figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport.report.style.figures import THEMES, GroupStyle, add_grid

THEME = THEMES["light"]


@contextlib.contextmanager
def default_style() -> Iterator[None]:
    """Draw with matplotlib's default settings, whatever the caller's are; also a decorator."""
    mpl = load_extra("matplotlib")
    with mpl.rc_context():
        mpl.rcdefaults()
        yield


def start_figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, NDArray[Any]]:
    """Return a figure and its axes in the common style."""
    figure = load_extra("matplotlib.figure").Figure(figsize=size, layout="constrained", facecolor=THEME.paper)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.05)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        add_grid(axis, THEME, width=0.6)
        axis.spines[["left", "bottom"]].set_color(THEME.quiet)
        axis.tick_params(colors=THEME.quiet, labelcolor=THEME.ink, labelsize=8.5)
    return figure, axes


def label(axis: Any, *, title: str = "", x: str = "", y: str = "") -> None:
    """Write the title on the left, and the labels of the two axes."""
    if title:
        axis.set_title(title, fontsize=10, loc="left")
    if x:
        axis.set_xlabel(x, fontsize=9)
    if y:
        axis.set_ylabel(y, fontsize=9)


def add_legend(owner: Any, loc: str, *, size: float = 8.5, entries: tuple[Any, ...] = (), **options: Any) -> None:
    """Add a legend without a frame to a figure or to axes."""
    owner.legend(*entries, loc=loc, fontsize=size, frameon=False, **options)


def draw_seeds(axis: Any, x: Any, values: Floats, style: GroupStyle, *, alpha: float, **line: Any) -> None:
    """Draw the mean over seeds, the first axis of the values, as a line, and lowest to highest as a band."""
    axis.fill_between(x, values.min(axis=0), values.max(axis=0), color=style.colour, alpha=alpha, linewidth=0)
    axis.plot(x, values.mean(axis=0), color=style.colour, linestyle=style.line_style, **line)
