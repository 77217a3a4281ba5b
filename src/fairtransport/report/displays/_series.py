"""Displays of a series of audits: a control chart, and small multiples of the groups' distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import one_line, shorten
from fairtransport.histograms import display_points
from fairtransport.report.displays._axes import THEME, font_size, label_axes, legend_above, percent_axis
from fairtransport.report.displays._base import Display
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from fairtransport.auditing import AuditSeries

__all__ = ["MAX_PANELS", "AuditSeriesDisplay", "small_multiples"]

#: Largest number of panels of small multiples.
MAX_PANELS = 24
_POINTS = 257
_OUTSIDE = "#b3261e"


class AuditSeriesDisplay(Display):
    """Control chart of the mean distance between groups, for each value of a column.

    Use `from_series` to create a display.

    Parameters
    ----------
    series : AuditSeries
        Result of `fairtransport.audit_by`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    points_ : matplotlib.container.ErrorbarContainer
        The distances with their confidence intervals.

    See Also
    --------
    fairtransport.AuditSeries.plot : Draws this display.

    Notes
    -----
    The shaded band has the control limits of each point: three standard errors from the mean distance among all rows.
    A point outside it differs from the others by more than chance; such points are drawn as squares.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import fairtransport as ft
    >>> from fairtransport.report import AuditSeriesDisplay
    >>> table = {"s": [0.1, 0.4, 0.3, 0.8] * 20, "g": ["a", "b"] * 40, "month": [1, 1, 2, 2] * 20}
    >>> import polars as pl
    >>> series = ft.audit_by(pl.DataFrame(table), by="month", score="s", sensitive_features="g", random_state=0)
    >>> AuditSeriesDisplay.from_series(series).ax_.get_xlabel()
    'month'
    """

    points_: Any

    def __init__(self, series: AuditSeries) -> None:
        self.series = series

    @classmethod
    def from_series(cls, series: AuditSeries, *, ax: Any = None) -> Self:
        """Draw the control chart of a series.

        Parameters
        ----------
        series : AuditSeries
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        AuditSeriesDisplay
        """
        return cls(series).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        return (min(12.0, max(5.6, 0.32 * len(self.series.points))), 3.8)

    def _draw(self, *, new_figure: bool) -> None:
        ax, points, centre = self.ax_, self.series.points, self.series.centre
        x = np.arange(len(points))
        edges = np.append(x - 0.5, x[-1] + 0.5)
        lower, upper = ([getattr(point, name) for point in points] for name in ("lower_limit", "upper_limit"))
        band = ax.fill_between(
            edges, [*lower, lower[-1]], [*upper, upper[-1]], step="post", color=THEME.target, linewidth=0, zorder=1
        )
        (line,) = ax.plot(edges[[0, -1]], [centre, centre], color=THEME.quiet, linewidth=1, zorder=2)
        values = np.array([point.distance for point in points])
        errors = np.array([(point.distance - point.low, point.high - point.distance) for point in points]).T
        self.points_ = ax.errorbar(
            x, values, yerr=np.maximum(errors, 0), fmt="o", color=THEME.ink, markersize=4.5, linewidth=1, zorder=4
        )
        outside = np.array([point.outside for point in points])
        last = [(band, "Control limits"), (line, f"All rows, {100 * centre:.1f} points")]
        if outside.any():
            (marks,) = ax.plot(x[outside], values[outside], "s", color=_OUTSIDE, markersize=7, zorder=5)
            last.append((marks, "Outside the limits"))
        ax.set(xlim=(edges[0], edges[-1]))
        ax.set_ylim(bottom=0)
        names = [shorten(point.value, 18) for point in points]
        step = math.ceil(len(names) / 40)
        ax.set_xticks(x[::step], names[::step], rotation=45 if max(map(len, names)) > 4 else 0, ha="right")
        for text in ax.get_xticklabels():
            text.set_parse_math(False)
        if max(map(len, names)) <= 4:
            for text in ax.get_xticklabels():
                text.set_horizontalalignment("center")
        percent_axis(ax)
        label_axes(ax, xlabel=shorten(self.series.by, 40), ylabel="Mean distance of two groups")
        ax.xaxis.label.set_parse_math(False)
        legend_above(ax, lambda _: [(self.points_, "Distance and interval")], last, grow=new_figure)


def small_multiples(series: AuditSeries, *, n_columns: int = 4) -> Any:
    """Draw the distribution functions of the groups for each value, with the same axes.

    Parameters
    ----------
    series : AuditSeries
    n_columns : int, default=4

    Returns
    -------
    matplotlib.figure.Figure
        At most `MAX_PANELS` panels: the first values.
    """
    audits = list(series.audits.items())[:MAX_PANELS]
    n_rows = math.ceil(len(audits) / n_columns)
    figure = load_extra("matplotlib.figure").Figure(figsize=(2.4 * n_columns, 1.9 * n_rows + 0.7), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    everyone = series.overall.histograms.groups
    order = {label: index for index, label in enumerate(everyone.labels)}
    outside = {point.value for point in series.points if point.outside}
    handles = None
    for ax, (value, audit) in zip(axes.flat, audits, strict=False):
        points = display_points(audit.histograms, _POINTS)
        curves = np.full((len(everyone), _POINTS), np.nan)
        curves[[order[label] for label in audit.histograms.groups.labels]] = audit.cdf(points)
        lines = GroupLines(everyone, series.overall.histograms.group_rows)
        for curve in curves:
            lines.draw(ax, points, curve)
        handles = handles or lines.entries(30)
        ax.set(xlim=(points[0], points[-1]), ylim=(0, 1))
        mark = " (outside the limits)" if value in outside else ""
        title = ax.set_title(
            shorten(one_line(value), 26) + mark, fontsize=font_size(ax) + 0.5, color=_OUTSIDE if mark else THEME.ink
        )
        title.set_parse_math(False)
        label_axes(ax, xlabel="", ylabel="")
        percent_axis(ax)
    for ax in axes.flat[len(audits) :]:
        ax.set_visible(False)
    legend = figure.legend(
        [handle for handle, _ in handles or ()], [""] * len(handles or ()), loc="outside upper left", ncols=4,
        frameon=False, fontsize=8,
    )  # fmt: skip
    for text, (_, label) in zip(legend.get_texts(), handles or (), strict=True):
        text.set_text(label)
        text.set_parse_math(False)
    return figure
