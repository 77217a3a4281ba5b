"""Display of the score distributions of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_choice, check_count
from fairtransport.report.displays._axes import THEME, label_axes, legend_above, percent_axis, set_tick_count
from fairtransport.report.displays._density import kernel_density
from fairtransport.report.displays._group_lines import GroupLines
from fairtransport.report.displays._histogram_display import HistogramDisplay
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from fairtransport.histograms import GroupHistograms

__all__ = ["GroupDistributionDisplay"]


class GroupDistributionDisplay(HistogramDisplay):
    """Distribution of the scores of each group, with the target distribution shaded.

    Use `from_audit`, `from_predictions` or `from_estimator` to create a display.

    Parameters
    ----------
    histograms : GroupHistograms
        Histogram of the scores of each group; no group is empty.
    min_judged_rows : int, default=30
        Groups with fewer rows are marked: they have too few to be judged.
    kind : {"density", "histogram"}, default="density"
        Kernel density estimates, or shares of the group in bins of equal width.
    target : str, label, array-like or None, default="barycenter"
        Distribution that is shaded, as in `fairtransport.metrics.wasserstein_disparity`; None shades nothing.
    n_bins : int, default=20
        Number of bins of a histogram.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    lines_ : list of matplotlib.lines.Line2D
        One line for each group.
    target_ : matplotlib.collections.PolyCollection or None
        The shaded area of the target.

    See Also
    --------
    CdfDisplay : Cumulative distribution functions of the same scores.
    fairtransport.Audit.plot : Draws this display with ``kind="distribution"``.

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
        min_judged_rows: int = 30,
        kind: str = "density",
        target: Any = "barycenter",
        n_bins: int = 20,
    ) -> None:
        super().__init__(histograms, min_judged_rows=min_judged_rows)
        self.kind = kind
        self.target = target
        self.n_bins = n_bins

    def _check_and_size(self) -> tuple[float, float]:
        check_choice(self.kind, ("density", "histogram"), name="kind")
        check_count(self.n_bins, name="n_bins")
        return super()._check_and_size()

    def _draw(self, *, new_figure: bool) -> None:
        ax, histograms = self.ax_, self.histograms
        drawn = GroupLines(histograms.groups, histograms.group_rows, self.judged)
        self.target_ = self._draw_target()
        for sample, size in zip(histograms.samples(unit=True), histograms.effective_sizes, strict=True):
            drawn.draw(ax, *self._curve(sample.values, sample.weights, float(size)))
        self.lines_ = drawn.lines
        self._set_limits()
        set_tick_count(ax)
        if self.in_units and self.kind == "density":
            ax.set_yticks([])  # shares per unit: a factor of ten would overlap the legend, and says nothing
        width = (histograms.grid.high - histograms.grid.low) / self.n_bins
        label_axes(ax, xlabel=self.score_title, ylabel="Density" if self.kind == "density" else f"Share in {width:.3g}")
        target = [] if self.target_ is None else [(self.target_, "Target")]
        legend_above(ax, drawn.entries, target, grow=new_figure)

    def _curve(self, scores: Any, masses: Any, size: float) -> tuple[Any, Any]:
        grid = self.histograms.grid
        if self.kind == "density":
            points, density = kernel_density(scores, masses, size)
            return grid.from_unit(points), density / (grid.high - grid.low)
        edges = np.linspace(0, 1, self.n_bins + 1)
        # A node stands for the scores between it and the node below: just above an edge it may hold those on the edge.
        within = (scores - grid.resolution) * self.n_bins - 1e-9
        cells = np.clip(np.ceil(within).astype(np.int64) - 1, 0, self.n_bins - 1)
        shares = np.bincount(cells, weights=masses, minlength=self.n_bins) / np.sum(masses)
        return np.repeat(grid.from_unit(edges), 2)[1:-1], np.repeat(shares, 2)

    def _draw_target(self) -> Any:
        if self.target is None:
            return None
        histograms = self.histograms
        target = resolve_target(
            histograms.unit_target(self.target),
            histograms.samples(unit=True),
            histograms.weights,
            labels=histograms.groups.labels,
            names=histograms.groups.names,
            everyone=histograms.sample_of_everyone(unit=True),
        )
        x, y = self._curve(target.values, target.weights, float(histograms.effective_sizes.sum()))
        return self.ax_.fill_between(x, y, color=THEME.target, linewidth=0, zorder=1)

    def _set_limits(self) -> None:
        """Set the height by the target and by the groups that are judged."""
        ax, grid = self.ax_, self.histograms.grid
        ax.set_xlim(grid.low, grid.high)
        judged = [line for line, judged in zip(self.lines_, self.judged, strict=True) if judged] or self.lines_
        heights = [float(np.max(line.get_ydata())) for line in judged]
        if self.target_ is not None:
            heights.append(float(self.target_.get_datalim(ax.transData).y1))
        ax.set_ylim(0, 1.05 * max(heights))
        if self.kind == "histogram":
            percent_axis(ax)
