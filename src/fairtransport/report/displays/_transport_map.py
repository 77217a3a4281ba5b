"""``TransportMapDisplay``: the score before against the score after, by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._sklearn.estimator_calls import last_step
from fairtransport._validation import check_length, check_real, check_scores
from fairtransport.groups import Groups, make_groups
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, legend_above
from fairtransport.report.displays._group_lines import GroupLines
from fairtransport.report.pages._reduced_histograms import reduce_histograms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing import Audit

    Curve = tuple[NDArray[np.float64], NDArray[np.float64]]

__all__ = ["TransportMapDisplay"]

_POINTS = 256
_FEWEST = 5  # rows of a bin
_BINS = 40


class TransportMapDisplay:
    """What a person's score becomes, by group.

    Use `from_estimator`, `from_predictions` or `from_audit` to make one.

    Parameters
    ----------
    curves : sequence of (before, after)
        Arrays of scores before, ascending, and after; one pair for each group.
    groups : Groups
        Names the curves.
    bands : sequence of (low, high), optional
        The middle 80% of the scores after, where equal scores before have become different ones.
    counts : array-like of shape (n_groups,), optional
        Rows of each group.
    unsure : array-like of bool, optional
        Groups with too few rows to say much.
    score_range : pair of float, default (0, 1)
        Of the scores.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    lines_ : list of matplotlib.lines.Line2D
        One for each group.
    bands_ : list
        The bands, where there are any.

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

    ax_: Any
    figure_: Any
    lines_: list[Any]
    bands_: list[Any]

    def __init__(
        self,
        curves: Sequence[Curve],
        groups: Groups,
        *,
        bands: Sequence[Curve] = (),
        counts: ArrayLike | None = None,
        unsure: ArrayLike | None = None,
        score_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.curves = curves
        self.groups = groups
        self.bands = bands
        self.counts = counts
        self.unsure = unsure
        self.score_range = score_range

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the maps of a fitted repair, at its amount.

        Parameters
        ----------
        estimator : QuantileRepair or QuantileRepairClassifier
            Fitted, or a pipeline that ends in one.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        TransportMapDisplay
            Each map from the group's lowest to its highest training score.
        """
        model = last_step(estimator)[1]
        repair = getattr(model, "repair_", model)
        if not hasattr(repair, "maps_"):
            raise TypeError(
                f"{type(model).__name__} has no maps of scores: only a fitted QuantileRepair or "
                "QuantileRepairClassifier has. For other models give scores to from_predictions, before and after."
            )
        amount = check_real(getattr(model, "amount", repair.amount), name="amount", most=1.0)
        curves = []
        for one in repair.maps_:
            before = np.linspace(one.knots[0], one.knots[-1], _POINTS)
            curves.append((before, (1 - amount) * before + amount * one(before)))
        score_range = (0.0, 1.0) if repair.grid_ is None else (repair.grid_.low, repair.grid_.high)
        return cls(curves, repair.groups_, score_range=score_range).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        before: ArrayLike,
        after: ArrayLike,
        *,
        sensitive_features: Any,
        unsure_below: int = 30,
        ax: Any = None,
    ) -> Self:
        """Draw what the scores of the same rows have become.

        Parameters
        ----------
        before, after : array-like of shape (n,)
            Scores within [0, 1], row by row: of a model before and after, or of two models.
        sensitive_features : column, table or Groups
            Several columns are crossed.
        unsure_below : int, default 30
            Groups with fewer rows are marked unsure.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        TransportMapDisplay
            Medians over up to 40 bins of equally many rows, and the middle 80% of them as bands.
        """
        one, other = check_scores(before, name="before"), check_scores(after, name="after")
        groups = make_groups(sensitive_features, at_least=2)
        check_length(other, size=one.size, name="after")
        check_length(range(groups.n_rows), size=one.size, name="sensitive_features")
        found = [_binned(one[rows], other[rows]) for rows in groups.rows]
        return cls(
            [(x, middle) for x, middle, _, _ in found],
            groups,
            bands=[(low, high) for _, _, low, high in found],
            counts=groups.counts,
            unsure=groups.counts < unsure_below,
        ).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, target: Any = "barycenter_w2", amount: float = 1.0, ax: Any = None) -> Self:
        """Draw what repair would make of the scores of an audit.

        Parameters
        ----------
        audit : Audit
        target : str, label or array-like, default "barycenter_w2"
            As in `fairtransport.QuantileRepair`.
        amount : float, default 1
            Of repair.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        TransportMapDisplay
        """
        part = check_real(amount, name="amount", most=1.0)
        least, grid = audit.settings.small_groups.min_group_size, audit.histograms.grid
        reduced = reduce_histograms(audit.histograms, repair_target=target, min_group_size=least)
        curves = []
        for group in reduced.groups:
            if group.images is None:
                raise ValueError("Groups that overlap, and scores that are all one, cannot be repaired.")
            before = reduced.nodes[group.at]
            curves.append((grid.from_unit(before), grid.from_unit((1 - part) * before + part * group.images)))
        return cls(
            curves,
            audit.histograms.groups,
            counts=audit.histograms.group_rows,
            unsure=[group.unsure for group in audit.groups],
            score_range=(grid.low, grid.high),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        TransportMapDisplay
            Itself.
        """
        grow, ax = ax is None, get_axes(ax, (4.8, 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        drawn = GroupLines(self.groups, self.counts, self.unsure)
        low, high = self.score_range
        (same,) = ax.plot([low, high], [low, high], color=THEME.quiet, linewidth=0.8, dashes=(3, 2), zorder=2)
        self.bands_ = []
        for place, (before, after) in enumerate(self.curves):
            if self.bands and drawn.styles[place].named and not drawn.unsure[place]:
                colour = drawn.styles[place].colour
                self.bands_.append(ax.fill_between(before, *self.bands[place], color=colour, alpha=0.12, linewidth=0))
            drawn.draw(ax, place, before, after)
        self.lines_ = drawn.lines
        ax.set(xlim=(low, high), ylim=(low, high))
        ax.locator_params(nbins=4 if is_narrow(ax) else 6)
        dress(ax, xlabel="Score before", ylabel="Score after")
        legend_above(ax, drawn.entries, [(same, "Unchanged")], grow=grow)
        return self


def _binned(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return the middle of the scores before, and median and middle 80% of those after, in bins of equal size."""
    order = np.argsort(before, kind="stable")
    parts = np.array_split(order, max(1, min(_BINS, before.size // _FEWEST)))
    x = np.array([np.median(before[part]) for part in parts])
    low, middle, high = np.array([np.quantile(after[part], (0.1, 0.5, 0.9)) for part in parts]).T
    return x, middle, low, high
