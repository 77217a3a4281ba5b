"""``GroupDistributionDisplay``: each group's scores over the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._validation import check_choice, check_count
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, legend_above
from fairtransport.report.displays._densities import smooth_density
from fairtransport.report.displays._group_lines import GroupLines
from fairtransport.report.displays._scored_histograms import ScoredDisplay
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from fairtransport.histograms import GroupHistograms

__all__ = ["GroupDistributionDisplay"]


class GroupDistributionDisplay(ScoredDisplay):
    """How the scores of each group are distributed, over the target.

    Use `from_audit`, `from_predictions` or `from_estimator` to make one.

    Parameters
    ----------
    histograms : GroupHistograms
        With rows in each group.
    unsure_below : int, default 30
        Groups with fewer effective rows are drawn faintly and marked unsure.
    kind : {"density", "histogram"}, default "density"
        Smooth curves, or shares of the group in bins of equal width.
    target : str, label, array-like or None, default "barycenter"
        The distribution that is shaded; see `fairtransport.metrics.wasserstein_disparity`. None for none.
    n_bins : int, default 20
        Of a histogram.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    lines_ : list of matplotlib.lines.Line2D
        One for each group.
    target_ : object or None
        The shaded area.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairtransport.report import GroupDistributionDisplay
    >>> rng = np.random.default_rng(0)
    >>> scores, sex = rng.beta(2, 5, size=300), np.repeat(["F", "M"], 150)
    >>> display = GroupDistributionDisplay.from_predictions(scores, sensitive_features=sex)
    >>> len(display.lines_), display.ax_.get_xlabel()
    (2, 'Score')
    """

    lines_: list[Any]
    target_: Any

    def __init__(
        self,
        histograms: GroupHistograms,
        *,
        unsure_below: int = 30,
        kind: str = "density",
        target: Any = "barycenter",
        n_bins: int = 20,
    ) -> None:
        super().__init__(histograms, unsure_below=unsure_below)
        self.kind = kind
        self.target = target
        self.n_bins = n_bins

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        GroupDistributionDisplay
            Itself.
        """
        check_choice(self.kind, ("density", "histogram"), name="kind")
        check_count(self.n_bins, name="n_bins")
        grow, ax = ax is None, get_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        groups, grid = self.histograms.groups, self.histograms.grid
        drawn = GroupLines(groups, self.histograms.group_rows, self.unsure)
        self.target_ = self._draw_target()
        sizes = self.histograms.effective_sizes
        for place, sample in enumerate(self.histograms.samples(unit=True)):
            drawn.draw(ax, place, *self._curve(sample.values, sample.weights, float(sizes[place])))
        self.lines_ = drawn.lines
        self._frame(ax)
        width = (grid.high - grid.low) / self.n_bins
        words = "Density" if self.kind == "density" else f"Share in {width:.3g}"
        dress(ax, xlabel="Score", ylabel=words)
        area = [] if self.target_ is None else [(self.target_, "Target")]
        legend_above(ax, drawn.entries, area, grow=grow)
        return self

    def _curve(self, scores: Any, masses: Any, size: float) -> tuple[Any, Any]:
        grid = self.histograms.grid
        if self.kind == "density":
            points, density = smooth_density(scores, masses, size)
            return grid.from_unit(points), density / (grid.high - grid.low)
        edges = np.linspace(0, 1, self.n_bins + 1)
        # A node stands for the scores below it down to the next: one just above an edge may hold those on the edge.
        within = (scores - self.histograms.grid.resolution) * self.n_bins - 1e-9
        cells = np.clip(np.ceil(within).astype(np.int64) - 1, 0, self.n_bins - 1)
        shares = np.bincount(cells, weights=masses, minlength=self.n_bins) / np.sum(masses)
        return np.repeat(grid.from_unit(edges), 2)[1:-1], np.repeat(shares, 2)

    def _draw_target(self) -> Any:
        if self.target is None:
            return None
        histograms = self.histograms
        aim = resolve_target(
            histograms.unit_target(self.target),
            histograms.samples(unit=True),
            histograms.weights,
            labels=histograms.groups.labels,
            names=histograms.groups.names,
            everyone=histograms.sample_of_everyone(unit=True),
        )
        x, y = self._curve(aim.values, aim.weights, float(histograms.effective_sizes.sum()))
        return self.ax_.fill_between(x, y, color=THEME.target, linewidth=0, zorder=1)

    def _frame(self, ax: Any) -> None:
        """Let the groups that say much set the height."""
        grid = self.histograms.grid
        ax.set_xlim(grid.low, grid.high)
        loud = [line for line, few in zip(self.lines_, self.unsure, strict=True) if not few] or self.lines_
        tops = [float(np.max(line.get_ydata())) for line in loud]
        if self.target_ is not None:
            tops.append(float(self.target_.get_datalim(ax.transData).y1))
        ax.set_ylim(0, 1.05 * max(tops))
        ax.locator_params(nbins=4 if is_narrow(ax) else 6)
        if self.kind == "histogram":
            ax.yaxis.set_major_formatter(load_extra("matplotlib.ticker").PercentFormatter(1.0, decimals=0))
