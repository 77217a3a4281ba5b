"""Base class of the displays: axes, legends, and lines of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport.auditing import Audit
from fairtransport.groups import Groups
from fairtransport.report.style.figures import THEMES, GroupStyle, add_grid, group_styles

Entries = Sequence[tuple[Any, str]]
Legend = tuple[Callable[[int], Entries], Entries]  # groups by the characters of a label, and what comes after

# Axes of the displays: font sizes that fit their width, labels, and a legend above them.

THEME = THEMES["light"]
_NARROW = 3.4  # inches below which fonts and lines are smaller
_LEGEND_SHARE = 0.4  # largest share of the height that a legend takes from a figure of the caller
_GROWTH_SHARE = 0.22  # share of the height above which a new figure grows with its legend


def is_narrow(ax: Any) -> bool:
    """Return whether the axes are so narrow that fonts and lines have to be smaller, as in a column of 6 cm."""
    share = max(ax.get_position(original=True).width / 0.775, 0.05)  # of the figure, with the labels
    return bool(ax.figure.get_size_inches()[0] * share < _NARROW)


def font_size(ax: Any) -> float:
    """Return the font size of labels and legends, in points."""
    return 7.0 if is_narrow(ax) else 9.0


def label_axes(
    ax: Any, *, xlabel: str, ylabel: str, grid: bool = True, few_ticks: bool = False, percent: bool = False
) -> None:
    """Label the axes, with a light grid, as many ticks as there is room for, and percentages on the vertical axis."""
    size = font_size(ax)
    if few_ticks:
        ax.locator_params(nbins=4 if is_narrow(ax) else 6)
    if percent:
        percent_axis(ax.yaxis)
    ax.set_xlabel(xlabel, fontsize=size)
    ax.set_ylabel(ylabel, fontsize=size)
    ax.tick_params(labelsize=size - 0.5)
    add_grid(ax, THEME, width=0.5, visible=grid)


def percent_axis(axis: Any) -> None:
    """Write the shares on an axis as percentages."""
    axis.set_major_formatter(load_extra("matplotlib.ticker").PercentFormatter(1.0, decimals=0))


def error_bars(estimates: Sequence[Any]) -> Floats:
    """Return the distances of values to the ends of their intervals, as matplotlib's ``errorbar`` takes them."""
    ends = [[one.value - one.low for one in estimates], [one.high - one.value for one in estimates]]
    return np.maximum(ends, 0.0)


def empty_handle() -> Any:
    """Return a legend handle that shows nothing, for an entry of text only."""
    return load_extra("matplotlib.lines").Line2D([], [], linestyle="none")


def legend_above(ax: Any, entries: Callable[[int], Entries], last: Entries = (), *, grow: bool = False) -> Any:
    """Place a legend above the axes, no wider than the axes with their labels, so that it does not squeeze them."""
    figure = ax.figure
    figure.draw_without_rendering()  # settles the layout
    outer, inner = ax.get_tightbbox(), ax.get_window_extent()
    left = (outer.x0 - inner.x0) / inner.width
    max_chars, n_entries = 48, len(entries(48))
    columns = min(3, n_entries + len(last))
    while True:
        legend = _legend(ax, [*_first_entries(entries(max_chars), n_entries), *last], left, columns)
        box = legend.get_window_extent()
        if box.width > outer.width and max_chars > 12:
            columns, max_chars = (columns - 1, max_chars) if columns > 1 else (1, max_chars - 3)
        elif box.height > _LEGEND_SHARE * figure.bbox.height and n_entries > 1 and not grow:
            n_entries -= 1
        else:
            break
    extra = (box.height - _GROWTH_SHARE * figure.bbox.height) / figure.dpi
    if grow and extra > 0:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + extra)
    return legend


def _first_entries(entries: Entries, n_entries: int) -> list[tuple[Any, str]]:
    """Return the first entries, and one that counts the others."""
    if len(entries) <= n_entries:
        return list(entries)
    return [*entries[:n_entries], (empty_handle(), f"and {len(entries) - n_entries} more")]


def _legend(ax: Any, entries: Entries, left: float, columns: int) -> Any:
    anchor = {"loc": "lower left", "bbox_to_anchor": (left, 1.01), "borderpad": 0.2, "borderaxespad": 0.0}
    spacing = {"handlelength": 2.6, "labelspacing": 0.25, "columnspacing": 1.2}
    legend = plain_legend(ax, entries, ncols=columns, fontsize=font_size(ax), **anchor, **spacing)
    for text in legend.get_texts():
        text.set_color(THEME.ink)
    return legend


def plain_legend(owner: Any, entries: Entries, **options: Any) -> Any:
    """Add a legend without a frame to axes or a figure, whatever characters its labels have."""
    legend = owner.legend([handle for handle, _ in entries], [""] * len(entries), frameon=False, **options)
    # Set one by one, and as plain text: matplotlib omits labels that begin with an underscore and parses dollar signs
    # as mathematics.
    for text, (_, label) in zip(legend.get_texts(), entries, strict=True):
        text.set_text(label)
        text.set_parse_math(False)
    return legend


class Display(ABC):
    """Base class of the displays: ``plot`` finds the axes, a subclass draws on them."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the display on ``ax_``, axes of ``figure_``.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.
        """
        size = self._check_and_size()
        self.ax_ = load_extra("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        legend = self._draw()
        if legend is not None:
            legend_above(self.ax_, *legend, grow=ax is None)
        return self

    def _check_and_size(self) -> tuple[float, float]:
        """Check the parameters; return the width and height of a new figure, in inches."""
        return (5.6, 3.8)

    @abstractmethod
    def _draw(self) -> Legend | None:
        """Draw on ``ax_``; return the entries of a legend above it, if any."""


@dataclass(eq=False, repr=False)
class AuditDisplay(Display):
    """Base class of the displays that keep an audit and draw its groups."""

    audit: Audit

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None, **options: Any) -> Self:
        """Draw an audit with labels.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        ax, **options
            Axes to draw on, by default of a new figure, and parameters of the display.
        """
        return cls(audit, **options).plot(ax)

    def _group_lines(self) -> GroupLines:
        """Return the lines of the groups, faint where they have too few rows to judge."""
        audit = self.audit
        judged = [group.judged for group in audit.groups]
        return GroupLines(audit.histograms.groups, audit.histograms.group_rows, judged)


# Lines of groups: one style for each group, faint where it has few rows, and labels for the legend.

_FAINT = 0.45


def line_options(style: GroupStyle) -> dict[str, Any]:
    """Return the options of matplotlib for the line of a group."""
    width, layer = (1.9, 4) if style.named else (0.8, 3)
    return {"color": style.colour, "linestyle": style.line_style, "linewidth": width, "zorder": layer}


class GroupLines:
    """One line for each group, with its label in the legend."""

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
        """Return the entries of a legend: groups with a style of their own by name, the others as one."""
        drawn = list(enumerate(zip(self.lines, self.styles, strict=True)))
        entries = [(line, self._label(index, max_chars)) for index, (line, style) in drawn if style.named]
        others = [line for _, (line, style) in drawn if not style.named]
        return [*entries, (others[0], f"{len(others):,} smaller groups")] if others else entries

    def _label(self, index: int, max_chars: int) -> str:
        remarks = [] if self.counts is None else [f"n = {self.counts[index]:,}"]
        if not self.judged[index]:
            remarks.append("few rows")
        suffix = f" ({', '.join(remarks)})" if remarks else ""
        return f"{shorten(self.names[index], max(4, max_chars - len(suffix)), self.names)}{suffix}"
