"""Displays of differences: between pairs of groups, along causal paths, and over a series of audits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport._text import one_line, shorten
from fairtransport.auditing import Audit, AuditSeries
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.tables import pair_distances
from fairtransport.groups import make_groups
from fairtransport.histograms import display_points
from fairtransport.metrics import pairwise_distances
from fairtransport.report.displays import _base as base
from fairtransport.report.displays._distributions import ScoreDisplay
from fairtransport.report.style.figures import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.causal import CounterfactualAudit, GroupEffects

_DARK, _LIGHT = "#0b5cad", "#ffffff"
_NUMBER_WIDTH = 0.34  # inches of a cell that has room for a number of 9 points


@dataclass(eq=False, repr=False)
class PairwiseDisparityDisplay(ScoreDisplay):
    """Heat map of the Wasserstein-1 distances between all pairs of groups, in percentage points.

    Parameters
    ----------
    distances : array of shape (n_groups, n_groups)
        Distances, as shares of the range of scores.
    names : sequence of str
        Names of the groups.
    counts : array-like of shape (n_groups,)
        Rows of each group.
    judged : array-like of bool of shape (n_groups,)
        Groups with too few rows to judge; marked with a question mark.
    most : int or None, default=12
        With more groups than this only the largest are shown; None shows all.

    Attributes
    ----------
    image_ : matplotlib.image.AxesImage
        The heat map.
    indices_ : ndarray of int
        Indices of the groups that are shown.
    texts_ : list of matplotlib.text.Text
        Numbers in the cells, if there is room for them.

    See Also
    --------
    CdfDisplay : The distance of two groups as an area.
    fairtransport.metrics.pairwise_disparity : Mean of the distances.
    fairtransport.Audit.plot : Draws this display with ``kind="pairs"``.

    Examples
    --------
    >>> from fairtransport.report import PairwiseDisparityDisplay
    >>> display = PairwiseDisparityDisplay.from_predictions([0.1, 0.3, 0.7], sensitive_features=["a", "b", "c"])
    >>> display.image_.get_array().round(1).tolist()
    [[0.0, 20.0, 60.0], [20.0, 0.0, 40.0], [60.0, 40.0, 0.0]]
    """

    distances: ArrayLike
    names: Sequence[str]
    _: KW_ONLY
    counts: ArrayLike
    judged: ArrayLike
    most: int | None = MOST_NAMED
    title: str = field(default="Distance, percentage points", init=False)

    @classmethod
    def from_audit(cls, audit: Audit, *, most: int | None = MOST_NAMED, ax: Any = None) -> Self:
        """Draw the distances of an audit; those between ranks, where scores have no known bounds.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        most, ax
            As for the class, and in `plot`.
        """
        judged = [group.judged for group in audit.groups]
        counts = audit.histograms.group_rows
        display = cls(pair_distances(audit), audit.names, counts=counts, judged=judged, most=most)
        if audit.rank_distances is not None:
            display.title = "Distance between ranks, percentage points"
        return display.plot(ax)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        min_size: int = 30,
        most: int | None = MOST_NAMED,
        ax: Any = None,
    ) -> Self:
        """Measure the distances of scores within [0, 1] and draw them.

        Parameters
        ----------
        scores, sensitive_features, sample_weight
            As in `CdfDisplay.from_predictions`, scores within [0, 1].
        min_size : int, default=30
            Groups with fewer rows are marked: they have too few to be judged.
        most, ax
            As in `from_audit`.
        """
        groups = make_groups(sensitive_features, at_least=2)
        distances = pairwise_distances(scores, sensitive_features=groups, sample_weight=sample_weight)
        judged = groups.counts >= min_size
        return cls(distances, groups.names, counts=groups.counts, judged=judged, most=most).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        counts = np.asarray(self.counts)
        most = counts.size if self.most is None else self.most
        self.indices_ = np.sort(np.argsort(-counts, kind="stable")[:most])
        return (min(9.0, 3.2 + 0.42 * self.indices_.size), min(7.6, 1.5 + 0.42 * self.indices_.size))

    def _draw(self) -> None:
        ax, size = self.ax_, base.font_size(self.ax_)
        points = 100 * np.asarray(self.distances, dtype=np.float64)[np.ix_(self.indices_, self.indices_)]
        colours = load_extra("matplotlib.colors").LinearSegmentedColormap.from_list("distance", [_LIGHT, _DARK])
        self.image_ = ax.imshow(points, cmap=colours, vmin=0.0, vmax=max(float(points.max()), 1e-9), aspect="equal")
        self._label_groups()
        self.figure_.draw_without_rendering()  # settles how large a cell is
        cell_width = ax.get_window_extent().width / self.figure_.dpi / self.indices_.size
        self.texts_ = self._write_numbers(points) if cell_width >= _NUMBER_WIDTH * size / 9.0 else []
        if not self.texts_:
            bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
            bar.set_label(self.title, fontsize=size)
            bar.ax.tick_params(labelsize=size - 0.5)
            bar.outline.set_visible(False)

    def _label_groups(self) -> None:
        """Write names with numbers on the left, and the numbers below."""
        ax, n_shown = self.ax_, self.indices_.size
        left_out = np.asarray(self.counts).size - n_shown
        xlabel = f"{left_out:,} smaller groups left out" if left_out else self.title
        base.label_axes(ax, xlabel=xlabel, ylabel="", grid=False)
        judged = np.asarray(self.judged)
        max_chars = 14 if base.is_narrow(ax) else 26
        rows = list(range(0, n_shown, max(1, round(n_shown / 24))))  # as many names as can be read
        names = [
            f"{shorten(self.names[index], max_chars, self.names)}{'' if judged[index] else ' ?'}  {row + 1}"
            for row, index in zip(rows, self.indices_[rows], strict=True)
        ]
        ax.set_yticks(rows, names, fontsize=base.font_size(ax) - 0.5, parse_math=False)
        ax.set_xticks(rows, [str(row + 1) for row in rows], fontsize=base.font_size(ax) - 0.5)
        ax.tick_params(length=0, labelcolor=base.THEME.ink)
        ax.spines[:].set_visible(False)

    def _write_numbers(self, points: Floats) -> list[Any]:
        texts = []
        for (row, column), value in np.ndenumerate(points):
            if row != column:
                colour = _LIGHT if value > 0.55 * points.max() else base.THEME.ink
                options = {"ha": "center", "va": "center", "fontsize": base.font_size(self.ax_) - 1, "color": colour}
                texts.append(self.ax_.text(column, row, f"{value:.1f}", **options))
        return texts


_SCORE = "score"
_MOST_WIDTH = 7.0  # points, of the edge with the largest effect


@dataclass(eq=False, repr=False)
class CausalEffectsDisplay(base.Display):
    """A causal graph, with the mean effect on the score of the paths that begin with each edge of the sensitive column.

    Parameters
    ----------
    effects : CounterfactualAudit
        Result of `fairtransport.causal.audit_counterfactual`.
    group : group, default=None
        Whose effects are drawn; if None, those of the largest one.

    Attributes
    ----------
    positions_ : dict of str to (float, float)
        Where each node is drawn.

    See Also
    --------
    fairtransport.causal.CounterfactualAudit.plot : Draws this display.

    Notes
    -----
    Edges from the sensitive column are as wide as their effects are large, with the share of the difference between
    the groups' mean scores in parentheses; the dashed one is the direct effect. Thin edges pass effects on. Columns
    that the sensitive one does not affect are not drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> group = np.arange(200) % 2
    >>> table = {"group": group, "hours": 35 + 4 * group + np.sin(np.arange(200))}
    >>> transport = ft.causal.CounterfactualTransport({"group": ["hours"]}, sensitive="group")
    >>> effects = ft.causal.audit_counterfactual(lambda rows: rows["hours"], table, transport, n_orders=0)
    >>> sorted(ft.report.CausalEffectsDisplay.from_effects(effects).positions_)
    ['group', 'hours', 'score']
    """

    effects: CounterfactualAudit
    _: KW_ONLY
    group: Any = None

    @classmethod
    def from_effects(cls, effects: CounterfactualAudit, *, group: Any = None, ax: Any = None) -> Self:
        """Draw the effects of an audit along paths.

        Parameters
        ----------
        effects, group, ax
            As for the class, and in `plot`.
        """
        return cls(effects, group=group).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        return (7.6, 1.9 + 0.62 * max(len(self._of_group().paths), 2))

    def _of_group(self) -> GroupEffects:
        if self.group is None:
            return max(self.effects.groups, key=lambda one: one.rows)
        found = [one for one in self.effects.groups if one.group == self.group]
        if not found:
            raise ValueError("group must be one of the groups of the audit, other than the one that people move to.")
        return found[0]

    def _draw(self) -> None:
        ax, audit, effects = self.ax_, self.effects, self._of_group()
        ax.set_axis_off()
        through = {one.name.removeprefix("through "): one.mean for one in effects.paths if one.name != "direct"}
        direct = effects.effects["direct"].mean
        mediators = [node for node in audit.graph.nodes if node in through]
        self.positions_: dict[str, tuple[float, float]] = {audit.sensitive: (0.0, 0.0), _SCORE: (2.0, 0.0)}
        middle = (len(mediators) - 1) / 2
        self.positions_ |= {node: (1.0, middle - index) for index, node in enumerate(mediators)}
        unit = max(abs(direct), *map(abs, through.values())) or 1.0
        for one, other in audit.graph.edges:  # what passes effects on
            if one in through and other in through:
                self._arrow(one, other, bend=0.55)
        for node, mean in through.items():
            self._arrow(node, _SCORE)
            self._arrow(audit.sensitive, node, mean=mean, unit=unit)
        top = middle + 1.15
        self._direct(top, direct, unit)
        for node, (x, y) in self.positions_.items():
            strong = node in {audit.sensitive, _SCORE}
            ax.text(
                x, y, shorten(node, 24, self.positions_), ha="center", va="center", zorder=4, parse_math=False,
                fontweight="bold" if strong else "normal",
                bbox={
                    "boxstyle": "round,pad=0.4", "facecolor": base.THEME.paper,
                    "edgecolor": base.THEME.ink if strong else base.THEME.quiet,
                },
            )  # fmt: skip
        ax.set(xlim=(-0.3, 2.3), ylim=(-middle - 0.8, top + 0.35))
        group, to = one_line(effects.group), one_line(audit.to)
        title = f"If {group} were {to}: mean score {effects.effects['total'].mean:+.3f}, under this graph"
        ax.set_title(title, loc="left", fontsize="medium", parse_math=False)

    def _arrow(self, one: str, other: str, *, mean: float | None = None, unit: float = 1.0, bend: float = 0.0) -> None:
        (x0, y0), (x1, y1) = self.positions_[one], self.positions_[other]
        width = 0.8 if mean is None else 0.8 + (_MOST_WIDTH - 0.8) * abs(mean) / unit
        self.ax_.annotate(
            "", xy=(x1 - 0.24 * (x1 > x0), y1), xytext=(x0 + (0.24 if x0 else 0.14) * (x1 > x0), y0),
            zorder=2 if mean is None else 3, arrowprops=_arrow_style(width, effect=mean is not None, bend=bend),
        )  # fmt: skip
        if mean is not None:
            share = 0.62
            x, y = x0 + 0.14 + share * (x1 - 0.24 - x0 - 0.14), y0 + share * (y1 - y0)
            self._label(x, y, mean)

    def _direct(self, top: float, mean: float, unit: float) -> None:
        """Draw the direct effect, over the mediators."""
        width = 0.8 + (_MOST_WIDTH - 0.8) * abs(mean) / unit
        line = {"color": base.THEME.ink, "linewidth": width, "linestyle": "--", "zorder": 3}
        self.ax_.plot([0.0, 0.0, 2.0, 2.0], [0.35, top, top, 0.7], **line)
        self.ax_.annotate("", xy=(2.0, 0.3), xytext=(2.0, 0.7), arrowprops=_arrow_style(width, effect=True))
        self._label(1.0, top, mean, "directly ")

    def _label(self, x: float, y: float, mean: float, before: str = "") -> None:
        self.ax_.text(
            x, y, f"{before}{mean:+.3f}{self._share(mean)}", ha="center", va="center", zorder=5, fontsize="small",
            bbox={"boxstyle": "round,pad=0.15", "facecolor": base.THEME.paper, "edgecolor": "none"},
        )  # fmt: skip

    def _share(self, mean: float) -> str:
        """Return the share of the difference between the groups' means, where there is one to speak of."""
        gap = self._of_group().gap
        return f" ({mean / gap:.0%})".replace("-0%", "0%") if abs(gap) >= 0.001 * max(1.0, abs(mean)) else ""


def _arrow_style(width: float, *, effect: bool, bend: float = 0.0) -> dict[str, Any]:
    return {
        "arrowstyle": "-|>", "color": base.THEME.ink if effect else base.THEME.quiet, "alpha": 1.0 if effect else 0.45,
        "linewidth": width, "shrinkA": 0 if not bend else 8, "shrinkB": 0 if not bend else 8,
        "mutation_scale": 9 + 1.5 * width, "connectionstyle": f"arc3,rad={bend}",
    }  # fmt: skip


# Displays of a series of audits: a control chart, and small multiples of the groups' distributions.

#: Largest number of panels of small multiples.
MAX_PANELS = 24
_POINTS = 257
_OUTSIDE = "#b3261e"


@dataclass(eq=False, repr=False)
class AuditSeriesDisplay(base.Display):
    """Control chart of the mean distance between groups, for each value of a column.

    Parameters
    ----------
    series : AuditSeries
        Result of `fairtransport.audit_table` with ``by``.

    Attributes
    ----------
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
    >>> import fairtransport as ft
    >>> from fairtransport.report import AuditSeriesDisplay
    >>> table = {"s": [0.1, 0.4, 0.3, 0.8] * 20, "g": ["a", "b"] * 40, "month": [1, 1, 2, 2] * 20}
    >>> import polars as pl
    >>> series = ft.audit_table(pl.DataFrame(table), by="month", score="s", sensitive_features="g")
    >>> AuditSeriesDisplay.from_series(series).ax_.get_xlabel()
    'month'
    """

    series: AuditSeries

    @classmethod
    def from_series(cls, series: AuditSeries, *, ax: Any = None) -> Self:
        """Draw the control chart of a series.

        Parameters
        ----------
        series, ax
            As for the class, and in `plot`.
        """
        return cls(series).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        return (min(12.0, max(5.6, 0.32 * len(self.series.points))), 3.8)

    def _draw(self) -> base.Legend:
        ax, points, centre = self.ax_, self.series.points, self.series.centre
        x = np.arange(len(points))
        edges = np.append(x - 0.5, x[-1] + 0.5)
        lower, upper = ([getattr(point, name) for point in points] for name in ("lower_limit", "upper_limit"))
        limits = [*lower, lower[-1]], [*upper, upper[-1]]
        band = ax.fill_between(edges, *limits, step="post", color=base.THEME.target, linewidth=0, zorder=1)
        (line,) = ax.plot(edges[[0, -1]], [centre, centre], color=base.THEME.quiet, linewidth=1, zorder=2)
        estimates = [Estimate(point.distance, point.low, point.high) for point in points]
        values = np.array([point.distance for point in points])
        style = {"fmt": "o", "color": base.THEME.ink, "markersize": 4.5, "linewidth": 1, "zorder": 4}
        self.points_ = ax.errorbar(x, values, yerr=base.error_bars(estimates), **style)
        outside = np.array([point.outside for point in points])
        last = [(band, "Control limits"), (line, f"All rows, {100 * centre:.1f} points")]
        if outside.any():
            (marks,) = ax.plot(x[outside], values[outside], "s", color=_OUTSIDE, markersize=7, zorder=5)
            last.append((marks, "Outside the limits"))
        ax.set(xlim=(edges[0], edges[-1]))
        ax.set_ylim(bottom=0)
        names = [shorten(point.value, 18, [other.value for other in points]) for point in points]
        step = math.ceil(len(names) / 40)
        turned = max(map(len, names)) > 4
        direction = {"rotation": 45, "ha": "right"} if turned else {"rotation": 0, "ha": "center"}
        ax.set_xticks(x[::step], names[::step], parse_math=False, **direction)
        base.label_axes(ax, xlabel=shorten(self.series.by, 40), ylabel="Mean distance of two groups", percent=True)
        ax.xaxis.label.set_parse_math(False)
        return lambda _: [(self.points_, "Distance and interval")], last


def small_multiples(series: AuditSeries, *, n_columns: int = 4) -> Any:
    """Draw the distribution functions of the groups for each value, with the same axes."""
    audits = [(value, audit.shown) for value, audit in series.audits.items()][:MAX_PANELS]
    n_rows = math.ceil(len(audits) / n_columns)
    figure = load_extra("matplotlib.figure").Figure(figsize=(2.4 * n_columns, 1.9 * n_rows + 0.7), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    everyone = series.overall.histograms.groups
    order = {label: index for index, label in enumerate(everyone.labels)}
    outside = {point.value for point in series.points if point.outside}
    handles: list[tuple[Any, str]] = []
    for ax, (value, audit) in zip(axes.flat, audits, strict=False):
        points = display_points(audit.histograms, _POINTS)
        curves = np.full((len(everyone), _POINTS), np.nan)
        for label, curve in zip(audit.histograms.groups.labels, audit.cdf(points), strict=True):
            if label in order:  # all of its rows may be withheld
                curves[order[label]] = curve
        lines = base.GroupLines(everyone, series.overall.histograms.group_rows)
        for curve in curves:
            lines.draw(ax, points, curve)
        handles = handles or lines.entries(30)
        ax.set(xlim=(points[0], points[-1]), ylim=(0, 1))
        mark = " (outside the limits)" if value in outside else ""
        title = ax.set_title(
            shorten(one_line(value), 26) + mark,
            fontsize=base.font_size(ax) + 0.5,
            color=_OUTSIDE if mark else base.THEME.ink,
        )
        title.set_parse_math(False)
        base.label_axes(ax, xlabel="", ylabel="", percent=True)
    for ax in axes.flat[len(audits) :]:
        ax.set_visible(False)
    base.plain_legend(figure, handles, loc="outside upper left", ncols=4, fontsize=8)
    return figure
