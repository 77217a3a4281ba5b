"""Display of the cumulative distribution functions of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import score_text, shorten
from fairtransport.report.displays._axes import (
    THEME,
    font_size,
    is_narrow,
    label_axes,
    legend_above,
    percent_axis,
    set_tick_count,
)
from fairtransport.report.displays._group_lines import GroupLines
from fairtransport.report.displays._histogram_display import HistogramDisplay

if TYPE_CHECKING:
    from fairtransport.histograms import GroupHistograms

__all__ = ["CdfDisplay"]

_MAX_POINTS = 1024


class CdfDisplay(HistogramDisplay):
    r"""Cumulative distribution function of the scores of each group, with the distance of two groups as an area.

    Use `from_audit`, `from_predictions` or `from_estimator` to create a display.

    Parameters
    ----------
    histograms : GroupHistograms
        Histogram of the scores of each group; no group is empty.
    min_judged_rows : int, default=30
        Groups with fewer rows are marked: they have too few to be judged.
    pair : pair of labels or names, default=None
        Groups whose distance is shaded; if None, the two farthest apart among those that are judged.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    lines_ : list of matplotlib.lines.Line2D
        One line for each group.
    area_ : matplotlib.collections.PolyCollection
        The shaded area.
    distance_ : float
        Wasserstein-1 distance of the pair, as a share of the range of scores, or in units of scores without bounds.

    See Also
    --------
    GroupDistributionDisplay : Densities or histograms of the same scores.
    PairwiseDisparityDisplay : Distances between all pairs of groups.
    fairtransport.Audit.plot : Draws this display with ``kind="cdf"``.

    Notes
    -----
    The area between the distribution functions of two groups is their Wasserstein-1 distance,

    .. math:: W_1 = \int |F_a(v) - F_b(v)| \, dv,

    and the sum over all pairs of groups is the strong pairwise demographic disparity (SPDD).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairtransport.report import CdfDisplay
    >>> display = CdfDisplay.from_predictions([0.1, 0.3, 0.5, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> round(display.distance_, 3)
    0.5
    """

    lines_: list[Any]
    area_: Any
    distance_: float

    def __init__(
        self, histograms: GroupHistograms, *, min_judged_rows: int = 30, pair: tuple[Any, Any] | None = None
    ) -> None:
        super().__init__(histograms, min_judged_rows=min_judged_rows)
        self.pair = pair

    def _draw(self, *, new_figure: bool) -> None:
        ax, histograms, grid = self.ax_, self.histograms, self.histograms.grid
        one, other = self._pair_indices(self.pair)
        self.distance_ = float(np.abs(histograms.cdf[one] - histograms.cdf[other])[:-1].sum() / grid.n_bins)
        if self.in_units:
            self.distance_ *= grid.high - grid.low
        # A subset of the nodes, at which the functions are exact.
        nodes = np.unique(np.linspace(0, grid.n_bins, min(grid.n_nodes, _MAX_POINTS + 1)).round().astype(np.int64))
        points, cdf = grid.nodes[nodes], histograms.cdf[:, nodes]
        self.area_ = ax.fill_between(points, cdf[one], cdf[other], color=THEME.target, linewidth=0, zorder=1)
        drawn = GroupLines(histograms.groups, histograms.group_rows, self.judged)
        for values in cdf:
            drawn.draw(ax, points, values)
        self.lines_ = drawn.lines
        ax.set(xlim=(grid.low, grid.high), ylim=(0, 1))
        set_tick_count(ax)
        percent_axis(ax)
        label_axes(ax, xlabel=self.score_title, ylabel="Share at or below")
        self._label_area(one, other)
        legend_above(ax, drawn.entries, [(self.area_, f"Distance {score_text(self.distance_)}")], grow=new_figure)

    def _label_area(self, one: int, other: int) -> None:
        """Name the two groups in the corner that distribution functions leave free."""
        names = self.histograms.groups.names
        if len(names) == 2:
            return
        max_chars = 20 if is_narrow(self.ax_) else 36
        self.ax_.text(
            0.985,
            0.03,
            "\n".join(["Area between", shorten(names[one], max_chars), shorten(names[other], max_chars)]),
            transform=self.ax_.transAxes,
            ha="right",
            va="bottom",
            fontsize=font_size(self.ax_) - 1,
            color=THEME.quiet,
            bbox={"facecolor": THEME.paper, "edgecolor": "none", "alpha": 0.75, "pad": 1.5},
            zorder=6,
            parse_math=False,
        )
