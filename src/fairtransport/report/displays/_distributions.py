"""Displays of score distributions: histograms or densities, and distribution functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d

from fairtransport._arrays import Bools, Floats
from fairtransport._sklearn import score_with_groups
from fairtransport._text import score_text, shorten
from fairtransport._validation import check_choice, check_count, check_vector
from fairtransport.auditing import Audit
from fairtransport.histograms import GroupHistograms, count_scores
from fairtransport.report._what_if import score_title, shown_histograms
from fairtransport.report.displays._base import THEME, Display, GroupLines, Legend, font_size, is_narrow, label_axes
from fairtransport.transport.targets import resolve_target

# Kernel density estimates of scores.

N_CELLS = 240
_MIN_BANDWIDTH, _MAX_BANDWIDTH = 0.012, 0.08  # as shares of the range of scores


def kernel_density(scores: Floats, masses: Floats, size: float) -> tuple[Floats, Floats]:
    """Estimate the density of weighted scores with a Gaussian kernel (Silverman's), reflected at 0 and 1."""
    shares = masses / masses.sum()
    cells = np.clip(np.ceil(scores * N_CELLS - 1e-9).astype(np.int64) - 1, 0, N_CELLS - 1)
    histogram = np.bincount(cells, weights=shares, minlength=N_CELLS)
    deviation = float(np.sqrt(max(0.0, shares @ scores**2 - (shares @ scores) ** 2)))
    width = N_CELLS * min(_MAX_BANDWIDTH, max(_MIN_BANDWIDTH, 0.9 * deviation * max(size, 2.0) ** -0.2))
    density = gaussian_filter1d(histogram, width, mode="reflect", radius=int(np.ceil(3 * width)))
    return (np.arange(N_CELLS) + 0.5) / N_CELLS, density * N_CELLS


# Base classes of the displays of scores by group: constructors from an audit, from scores or from a classifier.


class ScoreDisplay(Display):
    """Base class of the displays that can be drawn from the scores of a classifier; each has `from_predictions`."""

    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, sensitive_features: Any, ax: Any = None, **options: Any) -> Self:
        """Draw the scores that a classifier predicts.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``.
        X : table of shape (n_samples, n_features)
            Rows to score.
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        ax, **options
            Axes to draw on, by default of a new figure, and parameters of the display.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"estimator must have predict_proba; {type(estimator).__name__} has none.")
        scores = score_with_groups(estimator, X, sensitive_features)
        return cls.from_predictions(scores, sensitive_features=sensitive_features, ax=ax, **options)


@dataclass(eq=False, repr=False)
class HistogramDisplay(ScoreDisplay):
    """Base class of the displays of score histograms."""

    histograms: GroupHistograms
    _: KW_ONLY
    min_size: int = 30
    score_title: str = field(default="Score", init=False)
    # Whether distances are in units of the score, rather than shares of its range.
    in_units: bool = field(default=False, init=False)

    @property
    def judged(self) -> Bools:
        """Groups with at least ``min_size`` effective rows."""
        return self.histograms.effective_sizes >= self.min_size

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None, **options: Any) -> Self:
        """Draw the scores of an audit.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        ax, **options
            Axes to draw on, by default of a new figure, and parameters of the display.
        """
        shown = shown_histograms(audit.histograms)
        display = cls(shown, min_size=audit.settings.small_groups.min_size, **options)
        display.score_title = score_title(audit)
        display.in_units = not audit.settings.bounded
        return display.plot(ax)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores of the rows.
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        range : pair of float, default=None
            Lowest and highest possible score; if None, 0 and 1, or those of scores outside.
        ax, **options
            Axes to draw on, by default of a new figure, and parameters of the display.
        """
        values = check_vector(scores, name="scores")
        in_units = range is None and bool(values.min() < 0 or values.max() > 1)
        low, high = float(values.min()), float(values.max())
        shown_range = (low if low < high else low - 1.0, high) if in_units else range
        histograms = count_scores(
            values, sensitive_features=sensitive_features, sample_weight=sample_weight, range=shown_range
        )
        display = cls(histograms.filled(), **options)
        display.in_units = in_units
        return display.plot(ax)

    def _pair_indices(self, pair: tuple[Any, Any] | None) -> tuple[int, int]:
        """Return the indices of two groups; by default of the two farthest apart among those that are judged."""
        if pair is not None:
            one, other = pair
            return self.histograms.groups.index_of(one), self.histograms.groups.index_of(other)
        judged = np.flatnonzero(self.judged)
        if judged.size < 2:
            judged = np.arange(len(self.histograms.groups))
        distances = self.histograms.distances()[np.ix_(judged, judged)]
        one, other = np.unravel_index(int(np.argmax(distances)), distances.shape)
        if one == other:  # all distances are 0
            one, other = 0, 1
        return int(judged[one]), int(judged[other])


@dataclass(eq=False, repr=False)
class GroupDistributionDisplay(HistogramDisplay):
    """Distribution of the scores of each group, with the target distribution shaded.

    Parameters
    ----------
    histograms : GroupHistograms
        Histogram of the scores of each group; no group is empty.
    min_size : int, default=30
        Groups with fewer rows are marked: they have too few to be judged.
    kind : {"density", "histogram"}, default="density"
        Kernel density estimates, or shares of the group in bins of equal width.
    target : str, label, array-like or None, default="barycenter"
        Distribution that is shaded, as in `fairtransport.metrics.wasserstein_disparity`; None shades nothing.
    n_bins : int, default=20
        Number of bins of a histogram.

    Attributes
    ----------
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
    >>> from fairtransport.report import GroupDistributionDisplay
    >>> rng = np.random.default_rng(0)
    >>> scores, sex = rng.beta(2, 5, size=300), np.repeat(["F", "M"], 150)
    >>> display = GroupDistributionDisplay.from_predictions(scores, sensitive_features=sex)
    >>> len(display.lines_), display.ax_.get_xlabel()
    (2, 'Score')
    """

    _: KW_ONLY
    kind: str = "density"
    target: Any = "barycenter"
    n_bins: int = 20

    def _check_and_size(self) -> tuple[float, float]:
        check_choice(self.kind, ("density", "histogram"), name="kind")
        check_count(self.n_bins, name="n_bins")
        return super()._check_and_size()

    def _draw(self) -> Legend:
        ax, histograms = self.ax_, self.histograms
        drawn = GroupLines(histograms.groups, histograms.group_rows, self.judged)
        self.target_ = self._draw_target()
        for sample, size in zip(histograms.samples(unit=True), histograms.effective_sizes, strict=True):
            drawn.draw(ax, *self._curve(sample.values, sample.weights, float(size)))
        self.lines_ = drawn.lines
        self._set_limits()
        histogram, width = self.kind == "histogram", (histograms.grid.high - histograms.grid.low) / self.n_bins
        ylabel = f"Share in {width:.3g}" if histogram else "Density"
        label_axes(ax, xlabel=self.score_title, ylabel=ylabel, few_ticks=True, percent=histogram)
        if self.in_units and not histogram:
            ax.set_yticks([])  # shares per unit: a factor of ten would overlap the legend, and says nothing
        return drawn.entries, [] if self.target_ is None else [(self.target_, "Target")]

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


_MAX_POINTS = 1024


@dataclass(eq=False, repr=False)
class CdfDisplay(HistogramDisplay):
    r"""Cumulative distribution function of the scores of each group, with the distance of two groups as an area.

    Parameters
    ----------
    histograms : GroupHistograms
        Histogram of the scores of each group; no group is empty.
    min_size : int, default=30
        Groups with fewer rows are marked: they have too few to be judged.
    pair : pair of labels or names, default=None
        Groups whose distance is shaded; if None, the two farthest apart among those that are judged.

    Attributes
    ----------
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

    and the mean over all pairs of groups is the pairwise disparity.

    Examples
    --------
    >>> from fairtransport.report import CdfDisplay
    >>> display = CdfDisplay.from_predictions([0.1, 0.3, 0.5, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> round(display.distance_, 3)
    0.5
    """

    _: KW_ONLY
    pair: tuple[Any, Any] | None = None

    def _draw(self) -> Legend:
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
        label_axes(ax, xlabel=self.score_title, ylabel="Share at or below", few_ticks=True, percent=True)
        self._label_area(one, other)
        return drawn.entries, [(self.area_, f"Distance {score_text(self.distance_)}")]

    def _label_area(self, one: int, other: int) -> None:
        """Name the two groups in the corner that distribution functions leave free."""
        names, max_chars = self.histograms.groups.names, 20 if is_narrow(self.ax_) else 36
        if len(names) == 2:
            return
        text = "\n".join(["Area between", *(shorten(names[index], max_chars, names) for index in (one, other))])
        box = {"facecolor": THEME.paper, "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
        font = {"fontsize": font_size(self.ax_) - 1, "color": THEME.quiet, "parse_math": False}
        corner = {"transform": self.ax_.transAxes, "ha": "right", "va": "bottom"}
        self.ax_.text(0.985, 0.03, text, bbox=box, zorder=6, **font, **corner)
