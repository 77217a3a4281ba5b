"""Display of transport maps: scores after repair against scores before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._sklearn.estimator_calls import last_step
from fairtransport._validation import check_length, check_real, check_scores
from fairtransport.groups import Groups, make_groups
from fairtransport.report._reduced_histograms import reduce_histograms
from fairtransport.report._shown_scores import shown_histograms
from fairtransport.report.displays._axes import THEME, label_axes, legend_above, set_tick_count
from fairtransport.report.displays._base import Display
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing import Audit

    Curve = tuple[NDArray[np.float64], NDArray[np.float64]]

__all__ = ["TransportMapDisplay"]

_N_POINTS = 256
_MIN_BIN_ROWS = 5
_MAX_BINS = 40


class TransportMapDisplay(Display):
    """Score after repair as a function of the score before, for each group.

    Use `from_estimator`, `from_predictions` or `from_audit` to create a display.

    Parameters
    ----------
    curves : sequence of (before, after)
        Arrays of scores before, ascending, and after; one pair for each group.
    groups : Groups
        Names of the curves.
    bands : sequence of (low, high), default=()
        Central 80% of the scores after, where equal scores before became different ones.
    counts : array-like of shape (n_groups,), default=None
        Rows of each group.
    judged : array-like of bool of shape (n_groups,), default=None
        Groups with too few rows to judge.
    score_range : pair of float, default=(0, 1)
        Lowest and highest possible score.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    lines_ : list of matplotlib.lines.Line2D
        One line for each group.
    bands_ : list of matplotlib.collections.PolyCollection
        The bands, if any.

    See Also
    --------
    fairtransport.QuantileRepair : Repair whose maps are drawn.
    GroupDistributionDisplay : Distributions of the scores.
    fairtransport.Audit.plot : Draws this display with ``kind="map"``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import fairtransport as ft
    >>> from fairtransport.report import TransportMapDisplay
    >>> scores, sex = [0.1, 0.3, 0.5, 0.7], ["F", "F", "M", "M"]
    >>> repair = ft.QuantileRepair(min_group_size=1).fit(scores, sensitive_features=sex)
    >>> display = TransportMapDisplay.from_estimator(repair)
    >>> before, after = display.lines_[0].get_data()
    >>> before[[0, -1]], after[[0, -1]]
    (array([0.1, 0.3]), array([0.3, 0.5]))
    """

    lines_: list[Any]
    bands_: list[Any]

    def __init__(
        self,
        curves: Sequence[Curve],
        groups: Groups,
        *,
        bands: Sequence[Curve] = (),
        counts: ArrayLike | None = None,
        judged: ArrayLike | None = None,
        score_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.curves = curves
        self.groups = groups
        self.bands = bands
        self.counts = counts
        self.judged = judged
        self.score_range = score_range

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the maps of a fitted repair, at its ``amount``.

        Parameters
        ----------
        estimator : QuantileRepair or QuantileRepairClassifier
            Fitted, or a pipeline that ends in one.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
            Each map extends from the lowest to the highest training score of its group.
        """
        model = last_step(estimator)[1]
        repair = getattr(model, "repair_", model)
        if not hasattr(repair, "maps_"):
            raise TypeError(
                f"{type(model).__name__} has no maps of scores: only a fitted QuantileRepair or "
                "QuantileRepairClassifier has. For other models, pass their scores to from_predictions."
            )
        amount = check_real(getattr(model, "amount", repair.amount), name="amount", most=1.0)
        curves = []
        for transport_map in repair.maps_:
            before = np.linspace(transport_map.knots[0], transport_map.knots[-1], _N_POINTS)
            curves.append((before, (1 - amount) * before + amount * transport_map(before)))
        score_range = repair.range_
        return cls(curves, repair.groups_, score_range=score_range).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        before: ArrayLike,
        after: ArrayLike,
        *,
        sensitive_features: Any,
        min_judged_rows: int = 30,
        ax: Any = None,
    ) -> Self:
        """Draw scores after against scores before of the same rows.

        Parameters
        ----------
        before, after : array-like of shape (n_samples,)
            Scores within [0, 1] of the same rows: before and after repair, or of two models.
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        min_judged_rows : int, default=30
            Groups with fewer rows are marked: they have too few to be judged.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
            Medians in up to 40 bins with equal numbers of rows, and the central 80% as bands.
        """
        scores_before, scores_after = check_scores(before, name="before"), check_scores(after, name="after")
        groups = make_groups(sensitive_features, at_least=2)
        check_length(scores_after, size=scores_before.size, name="after")
        check_length(range(groups.n_rows), size=scores_before.size, name="sensitive_features")
        quantiles = [_binned_quantiles(scores_before[rows], scores_after[rows]) for rows in groups.rows]
        return cls(
            [(x, median) for x, _, median, _ in quantiles],
            groups,
            bands=[(low, high) for _, low, _, high in quantiles],
            counts=groups.counts,
            judged=groups.counts >= min_judged_rows,
        ).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, target: Any = "barycenter_w2", amount: float = 1.0, ax: Any = None) -> Self:
        """Draw the maps by which repair would change the scores of an audit.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        target : str, label or array-like, default="barycenter_w2"
            Target distribution, as in `fairtransport.QuantileRepair`.
        amount : float, default=1
            Amount of repair, from 0 to 1.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
        """
        share = check_real(amount, name="amount", most=1.0)
        min_group_size, shown = audit.settings.small_groups.min_group_size, shown_histograms(audit.histograms)
        grid = shown.grid
        reduced = reduce_histograms(shown, repair_target=target, min_group_size=min_group_size)
        curves = []
        for group in reduced.groups:
            if group.images is None:
                raise ValueError("Overlapping groups, and scores that are all equal, cannot be repaired.")
            before = reduced.nodes[group.indices]
            curves.append((grid.from_unit(before), grid.from_unit((1 - share) * before + share * group.images)))
        return cls(
            curves,
            audit.histograms.groups,
            counts=audit.histograms.group_rows,
            judged=[group.judged for group in audit.groups],
            score_range=(grid.low, grid.high),
        ).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        return (4.8, 4.8)

    def _draw(self, *, new_figure: bool) -> None:
        ax, (low, high) = self.ax_, self.score_range
        drawn = GroupLines(self.groups, self.counts, self.judged)
        (unchanged,) = ax.plot([low, high], [low, high], color=THEME.quiet, linewidth=0.8, dashes=(3, 2), zorder=2)
        self.bands_ = []
        for index, (before, after) in enumerate(self.curves):
            style = drawn.styles[index]
            if self.bands and style.named and drawn.judged[index]:
                band = ax.fill_between(before, *self.bands[index], color=style.colour, alpha=0.12, linewidth=0)
                self.bands_.append(band)
            drawn.draw(ax, before, after)
        self.lines_ = drawn.lines
        ax.set(xlim=(low, high), ylim=(low, high))
        set_tick_count(ax)
        label_axes(ax, xlabel="Score before", ylabel="Score after")
        legend_above(ax, drawn.entries, [(unchanged, "Unchanged")], grow=new_figure)


def _binned_quantiles(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return the median of the scores before, and the 10%, 50% and 90% quantiles of those after, in bins of rows."""
    order = np.argsort(before, kind="stable")
    bins = np.array_split(order, max(1, min(_MAX_BINS, before.size // _MIN_BIN_ROWS)))
    x = np.array([np.median(before[rows]) for rows in bins])
    low, median, high = np.array([np.quantile(after[rows], (0.1, 0.5, 0.9)) for rows in bins]).T
    return x, low, median, high
