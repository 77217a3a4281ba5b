"""Displays of transport: maps of scores, dual potentials, and the adjustment of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._sklearn import last_step
from fairtransport._validation import check_choice, check_length, check_real, check_scores, check_vector
from fairtransport.auditing import Audit
from fairtransport.groups import Groups, make_groups
from fairtransport.report._what_if import reduce_histograms, shown_histograms
from fairtransport.report.displays._base import THEME, Display, GroupLines, Legend, is_narrow, label_axes
from fairtransport.transport.dual import DualSolution

Curve = tuple[Floats, Floats]

_N_POINTS = 256
_MIN_BIN_ROWS = 5
_MAX_BINS = 40


@dataclass(eq=False, repr=False)
class TransportMapDisplay(Display):
    """Score after repair as a function of the score before, for each group.

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
    >>> import fairtransport as ft
    >>> from fairtransport.report import TransportMapDisplay
    >>> scores, sex = [0.1, 0.3, 0.5, 0.7], ["F", "F", "M", "M"]
    >>> repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)).fit(scores, sensitive_features=sex)
    >>> display = TransportMapDisplay.from_estimator(repair)
    >>> before, after = display.lines_[0].get_data()
    >>> before[[0, -1]], after[[0, -1]]
    (array([0.1, 0.3]), array([0.3, 0.5]))
    """

    curves: Sequence[Curve]
    groups: Groups
    _: KW_ONLY
    bands: Sequence[Curve] = ()
    counts: ArrayLike | None = None
    judged: ArrayLike | None = None
    score_range: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the maps of a fitted repair, at its ``amount``.

        Parameters
        ----------
        estimator : QuantileRepair or QuantileRepairClassifier
            Fitted, or a pipeline that ends in one. Each map extends from the lowest to the highest training score of
            its group.
        ax
            As in `plot`.
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
        return cls(curves, repair.groups_, score_range=repair.range_).plot(ax)

    @classmethod
    def from_predictions(
        cls, before: ArrayLike, after: ArrayLike, *, sensitive_features: Any, min_size: int = 30, ax: Any = None
    ) -> Self:
        """Draw scores after against scores before of the same rows: medians and central 80% of up to 40 bins.

        Parameters
        ----------
        before, after : array-like of shape (n_samples,)
            Scores within [0, 1] of the same rows: before and after repair, or of two models.
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        min_size : int, default=30
            Groups with fewer rows are marked: they have too few to be judged.
        ax
            As in `plot`.
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
            judged=groups.counts >= min_size,
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
        amount, ax
            Amount of repair, from 0 to 1; axes as in `plot`.
        """
        share = check_real(amount, name="amount", most=1.0)
        min_size, shown = audit.settings.small_groups.min_size, shown_histograms(audit.histograms)
        grid = shown.grid
        reduced = reduce_histograms(shown, repair_target=target, min_size=min_size)
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

    def _draw(self) -> Legend:
        ax, (low, high) = self.ax_, self.score_range
        drawn = GroupLines(self.groups, self.counts, self.judged)
        (unchanged,) = ax.plot([low, high], [low, high], color=THEME.quiet, linewidth=0.8, dashes=(3, 2), zorder=2)
        self.bands_: list[Any] = []
        for index, (before, after) in enumerate(self.curves):
            style = drawn.styles[index]
            if self.bands and style.named and drawn.judged[index]:
                band = ax.fill_between(before, *self.bands[index], color=style.colour, alpha=0.12, linewidth=0)
                self.bands_.append(band)
            drawn.draw(ax, before, after)
        self.lines_ = drawn.lines
        ax.set(xlim=(low, high), ylim=(low, high))
        label_axes(ax, xlabel="Score before", ylabel="Score after", few_ticks=True)
        return drawn.entries, [(unchanged, "Unchanged")]


def _binned_quantiles(before: Floats, after: Floats) -> tuple[Floats, ...]:
    """Return the median of the scores before, and the 10%, 50% and 90% quantiles of those after, in bins of rows."""
    order = np.argsort(before, kind="stable")
    bins = np.array_split(order, max(1, min(_MAX_BINS, before.size // _MIN_BIN_ROWS)))
    x = np.array([np.median(before[rows]) for rows in bins])
    low, median, high = np.array([np.quantile(after[rows], (0.1, 0.5, 0.9)) for rows in bins]).T
    return x, low, median, high


_POINTS = np.linspace(0.0, 1.0, 201)


@dataclass(eq=False, repr=False)
class DualDisplay(Display):
    """Dual variables of continuous optimal transport (COT), as functions of the score.

    Parameters
    ----------
    points : array of shape (n_points,)
        Scores at which the functions are drawn.
    duals : array of shape (n_lines, n_points)
        Values of the functions.
    groups : Groups
        Names of the functions.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        One line for each group.

    See Also
    --------
    fairtransport.TransportClassifier : Classifier that learns dual variables.
    fairtransport.transport.solve_dual : Solve the dual problem of two distributions.

    Notes
    -----
    Where the dual variable of a group is high, the group has more mass than the other distribution; training moves
    its scores down the slope of the function.

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section 4.2.

    Examples
    --------
    >>> import fairtransport as ft
    >>> from fairtransport.report import DualDisplay
    >>> rng = np.random.default_rng(0)
    >>> solution = ft.transport.solve_dual(rng.beta(2, 5, 500), rng.beta(5, 2, 500), n_updates=500, random_state=0)
    >>> len(DualDisplay.from_solution(solution, names=("low", "high")).lines_)
    2
    """

    points: ArrayLike
    duals: ArrayLike
    groups: Groups

    @classmethod
    def from_estimator(cls, estimator: Any, *, points: ArrayLike | None = None, ax: Any = None) -> Self:
        """Draw the dual variable of each group of a fitted model.

        Parameters
        ----------
        estimator : TransportClassifier
            Fitted, or a pipeline that ends in one.
        points, ax
            Scores at which the functions are drawn, by default 201 from 0 to 1; axes as in `plot`.
        """
        model = last_step(estimator)[1]
        if not hasattr(model, "duals_"):
            raise TypeError(
                f"{type(model).__name__} has no dual variables: only a fitted transport model with the "
                "continuous distance has; discrete transport and quantile repair need none."
            )
        scores = _check_points(points)
        duals = [model.duals_.of_group(label, scores) for label in model.duals_.groups.labels]
        return cls(scores, np.array(duals), model.duals_.groups).plot(ax)

    @classmethod
    def from_solution(
        cls,
        solution: DualSolution,
        *,
        names: Sequence[str] = ("x", "y"),
        points: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the two dual variables of a solution of the dual problem.

        Parameters
        ----------
        solution : DualSolution
            Result of `fairtransport.transport.solve_dual`.
        names : pair of str, default=("x", "y")
            Names of the two distributions.
        points, ax
            As in `from_estimator`.
        """
        labels = [str(name) for name in names]
        if len(set(labels)) != 2:
            raise ValueError("names must be two different texts, one for each distribution.")
        scores = _check_points(points)
        groups = make_groups(labels)
        duals = dict(zip(labels, (solution.x_dual(scores), solution.y_dual(scores)), strict=True))
        return cls(scores, np.array([duals[name] for name in groups.names]), groups).plot(ax)

    def _draw(self) -> Legend:
        ax, points = self.ax_, np.asarray(self.points)
        drawn = GroupLines(self.groups)
        ax.axhline(0.0, color=THEME.quiet, linewidth=0.8, zorder=2)
        for values in np.asarray(self.duals):
            drawn.draw(ax, points, values)
        self.lines_ = drawn.lines
        ax.set_xlim(float(points.min()), float(points.max()))
        label_axes(ax, xlabel="Score", ylabel="Dual variable", few_ticks=True)
        return drawn.entries, ()


def _check_points(points: ArrayLike | None) -> Floats:
    return _POINTS if points is None else np.sort(check_vector(points, name="points"))


_LINE, _ALARM = "#0072b2", "#d55e00"  # distinguishable with the common kinds of colour blindness
_X_LABELS = {"batch": "Batch", "rows": "Rows"}
_Y_LABELS = {
    "disparity": "Disparity",
    "agreement": "Agreement with the original",
    "moved": "Distance travelled",
    "updates": "Updates spent",
}


@dataclass(eq=False, repr=False)
class AdjustmentDisplay(Display):
    """Disparity along a stream, with its noise floor and alarms.

    Parameters
    ----------
    history : list of dict
        One dict for each batch, in order, with ``batch`` and what is drawn: ``disparity``, ``noise_floor`` and
        ``alarm``, or ``agreement``, ``moved`` or ``updates``. A value that is missing, None or NaN leaves a gap.
    x : {"batch", "rows"}, default="batch"
        Quantity on the horizontal axis.
    y : {"disparity", "agreement", "moved", "updates"}, default="disparity"
        Quantity on the vertical axis.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The quantity along the stream.
    floor_ : matplotlib.collections.PolyCollection or None
        Shaded area below the noise floor of the disparity.
    alarms_ : matplotlib.lines.Line2D or None
        Triangles at the batches that raised an alarm.

    See Also
    --------
    fairtransport.stream.ContinualAdjuster : Adjusts a model along a stream.
    GroupDistributionDisplay : Distributions whose distance is the disparity.

    Examples
    --------
    >>> from fairtransport.report import AdjustmentDisplay
    >>> history = [
    ...     {"batch": k, "disparity": 0.2 / k, "noise_floor": 0.03, "alarm": k == 1} for k in range(1, 9)
    ... ]
    >>> display = AdjustmentDisplay.from_history(history)
    >>> display.ax_.get_ylabel(), display.alarms_.get_xdata().tolist()
    ('Disparity', [1.0])
    """

    history: Sequence[Mapping[str, Any]]
    _: KW_ONLY
    x: str = "batch"
    y: str = "disparity"

    @classmethod
    def from_history(
        cls, history: Sequence[Mapping[str, Any]], *, x: str = "batch", y: str = "disparity", ax: Any = None
    ) -> Self:
        """Draw measurements of batches.

        Parameters
        ----------
        history, x, y, ax
            As for the class, and in `plot`.
        """
        if isinstance(history, str | Mapping) or not isinstance(history, Sequence):
            raise TypeError(f"history must be a list of dicts, one for each batch; got {type(history).__name__}.")
        if not all(isinstance(batch, Mapping) for batch in history):
            raise TypeError("history must be a list of dicts, one for each batch; some entries are not dicts.")
        if not history:
            raise ValueError("There is nothing to draw: the history is empty. Adjust a batch first.")
        return cls(list(history), x=x, y=y).plot(ax)

    @classmethod
    def from_adjuster(cls, adjuster: Any, *, x: str = "batch", y: str = "disparity", ax: Any = None) -> Self:
        """Draw the history of a `fairtransport.stream.ContinualAdjuster`.

        Parameters
        ----------
        adjuster : object
            With a method ``snapshot`` that returns a ``history``.
        x, y, ax
            As in `from_history`.
        """
        if not hasattr(adjuster, "snapshot"):
            raise TypeError(
                f"{type(adjuster).__name__} has no history: pass a ContinualAdjuster, or a list to from_history."
            )
        return cls.from_history(list(adjuster.snapshot()["history"]), x=x, y=y, ax=ax)

    def _check_and_size(self) -> tuple[float, float]:
        check_choice(self.x, tuple(_X_LABELS), name="x")
        check_choice(self.y, tuple(_Y_LABELS), name="y")
        if not np.isfinite(self._column(self.x)).any() or not np.isfinite(self._column(self.y)).any():
            raise ValueError(f"No entry of the history has numbers for both {self.x!r} and {self.y!r}.")
        return super()._check_and_size()

    def _draw(self) -> Legend:
        x, y = self._column(self.x), self._column(self.y)
        width = 1.0 if is_narrow(self.ax_) else 1.5
        marker = "o" if np.count_nonzero(np.isfinite(y)) == 1 else ""
        (self.line_,) = self.ax_.plot(x, y, color=_LINE, linewidth=width, marker=marker, zorder=4)
        self.floor_ = self._draw_floor(x)
        self._set_limits(x, y)
        self.alarms_ = self._draw_alarms(x)
        return self._entries, ()

    def _column(self, key: str) -> Any:
        values = [batch.get(key) for batch in self.history]
        return np.array([np.nan if value is None else float(value) for value in values])

    def _draw_floor(self, x: Any) -> Any:
        floor = self._column("noise_floor")
        if self.y != "disparity" or not np.isfinite(floor).any():
            return None
        return self.ax_.fill_between(x, 0.0, floor, color=THEME.target, linewidth=0, zorder=1)

    def _draw_alarms(self, x: Any) -> Any:
        """Draw a triangle at the upper edge, where no line runs, and a thin line below it."""
        alarms = x[[bool(batch.get("alarm")) for batch in self.history]]
        alarms = alarms[np.isfinite(alarms)]
        if not alarms.size:
            return None
        line = {"color": _ALARM, "transform": self.ax_.get_xaxis_transform()}
        self.ax_.vlines(alarms, 0, 1, linewidth=0.7, linestyles=(0, (2.0, 2.0)), zorder=3, **line)
        marker = {"marker": "v", "markersize": 4.0 if is_narrow(self.ax_) else 6.0, "linestyle": "none"}
        height = np.full(alarms.size, 0.97)  # below the legend
        (markers,) = self.ax_.plot(alarms, height, clip_on=False, zorder=5, **marker, **line)
        return markers

    def _set_limits(self, x: Any, y: Any) -> None:
        ax = self.ax_
        label_axes(ax, xlabel=_X_LABELS[self.x], ylabel=_Y_LABELS[self.y])
        ax.locator_params(axis="x", nbins=4 if is_narrow(ax) else 7, integer=True)
        ax.locator_params(axis="y", nbins=5)
        first, last = np.nanmin(x), np.nanmax(x)
        if last > first:
            ax.set_xlim(first, last)
        ax.margins(y=0.08)
        if self.y == "agreement":
            ax.set_ylim(top=1.0 + 0.02 * (1.0 - min(1.0, float(np.nanmin(y)))))
            ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        elif np.nanmin(y) >= 0:
            ax.set_ylim(bottom=0.0)
        if self.x == "rows":
            ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")

    def _entries(self, max_chars: int) -> list[tuple[Any, str]]:
        """Return the entries of the legend."""
        long, short = "Noise floor: chance alone", "Noise floor"
        entries = [(self.line_, _Y_LABELS[self.y])]
        if self.floor_ is not None:
            entries.append((self.floor_, long if max_chars >= len(long) else short))
        if self.alarms_ is not None:
            entries.append((self.alarms_, "Alarm"))
        return entries
