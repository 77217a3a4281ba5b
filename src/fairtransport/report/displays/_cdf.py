"""``CdfDisplay``: distribution functions, with the disparity of two groups as an area."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, legend_above, letter_size
from fairtransport.report.displays._group_lines import GroupLines
from fairtransport.report.displays._scored_histograms import ScoredDisplay

if TYPE_CHECKING:
    from fairtransport.histograms import GroupHistograms

__all__ = ["CdfDisplay"]

_MOST_POINTS = 1024


class CdfDisplay(ScoredDisplay):
    r"""Share of each group at or below every score, with the area that is the disparity of two groups.

    Use `from_audit`, `from_predictions` or `from_estimator` to make one.

    Parameters
    ----------
    histograms : GroupHistograms
        With rows in each group.
    unsure_below : int, default 30
        Groups with fewer effective rows are drawn faintly and marked unsure.
    pair : pair of labels or names, optional
        The groups whose area is shaded; by default the two farthest apart of those that are sure.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    lines_ : list of matplotlib.lines.Line2D
        One for each group.
    area_ : object
        The shaded area.
    distance_ : float
        What it measures: the Wasserstein-1 distance of the pair, as a share of the range of scores.

    Notes
    -----
    The area between two distribution functions is the distance of the two groups,

    .. math:: W_1 = \int |F_a(v) - F_b(v)| \, dv,

    and the sum over all pairs of groups is the strong pairwise disparity.

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
        self, histograms: GroupHistograms, *, unsure_below: int = 30, pair: tuple[Any, Any] | None = None
    ) -> None:
        super().__init__(histograms, unsure_below=unsure_below)
        self.pair = pair

    def plot(self, ax: Any = None) -> Self:
        """Draw the functions.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        CdfDisplay
            Itself.
        """
        grow, ax = ax is None, get_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        histograms, grid = self.histograms, self.histograms.grid
        one, other = self._pair(self.pair)
        self.distance_ = float(np.abs(histograms.cdf[one] - histograms.cdf[other])[:-1].sum() / grid.n_bins)
        # Exact at the nodes that are drawn.
        at = np.unique(np.linspace(0, grid.n_bins, min(grid.n_nodes, _MOST_POINTS + 1)).round().astype(np.int64))
        nodes, cdf = grid.nodes[at], histograms.cdf[:, at]
        self.area_ = ax.fill_between(nodes, cdf[one], cdf[other], color=THEME.target, linewidth=0, zorder=1)
        drawn = GroupLines(histograms.groups, histograms.group_rows, self.unsure)
        for place, values in enumerate(cdf):
            drawn.draw(ax, place, nodes, values)
        self.lines_ = drawn.lines
        ax.set(xlim=(grid.low, grid.high), ylim=(0, 1))
        ax.locator_params(nbins=4 if is_narrow(ax) else 6)
        ax.yaxis.set_major_formatter(load_extra("matplotlib.ticker").PercentFormatter(1.0, decimals=0))
        dress(ax, xlabel="Score", ylabel="Share at or below")
        self._tell(one, other)
        legend_above(ax, drawn.entries, [(self.area_, f"Distance {self.distance_:.3f}")], grow=grow)
        return self

    def _tell(self, one: int, other: int) -> None:
        """Name the two groups of the area, in the corner that distribution functions leave free."""
        names = self.histograms.groups.names
        if len(names) == 2:
            return
        longest = 20 if is_narrow(self.ax_) else 36
        told = "\n".join(["Area between", shorten(names[one], longest), shorten(names[other], longest)])
        place = {"transform": self.ax_.transAxes, "ha": "right", "va": "bottom", "zorder": 6, "parse_math": False}
        box = {"facecolor": THEME.paper, "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
        self.ax_.text(0.985, 0.03, told, fontsize=letter_size(self.ax_) - 1, color=THEME.quiet, bbox=box, **place)
