"""Displays of errors by group: rates, reliability curves, distributions given the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairtransport.auditing.tables import RATE_NAMES
from fairtransport.histograms import display_points
from fairtransport.report._what_if import ERROR_RATES
from fairtransport.report.displays._base import THEME, AuditDisplay, Legend, error_bars, label_axes, percent_axis


@dataclass(eq=False, repr=False)
class ErrorRateDisplay(AuditDisplay):
    """Error rates of each group at a threshold, with their confidence intervals.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    threshold : float, default=None
        One of the thresholds of the audit; if None, the first.

    Attributes
    ----------
    points_ : list of matplotlib.container.ErrorbarContainer
        One for each group that has a style of its own.

    See Also
    --------
    ReliabilityDisplay : Reliability curves of the groups.
    fairtransport.Audit.plot : Draws this display with ``kind="errors"``.

    Examples
    --------
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.8, 0.3, 0.9], [0, 1, 1, 0], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group)
    >>> len(ft.report.ErrorRateDisplay.from_audit(audit).points_)
    2
    """

    threshold: float | None = field(default=None, kw_only=True)

    @property
    def _rates(self) -> Any:
        at = {rates.threshold: rates for rates in self.audit.error_rates}
        if not at:
            raise ValueError("The audit has no labels, so that there are no error rates; pass y_true to audit.")
        threshold = self.audit.error_rates[0].threshold if self.threshold is None else float(self.threshold)
        if threshold not in at:
            raise ValueError(f"threshold must be one of the audit's: {', '.join(f'{one:g}' for one in at)}.")
        return at[threshold]

    def _check_and_size(self) -> tuple[float, float]:
        n_shown = min(len(self._rates.groups), 12)
        return (5.8, 2.2 + 0.12 * len(ERROR_RATES) * n_shown)

    def _draw(self) -> Legend:
        ax, rates = self.ax_, self._rates
        drawn = self._group_lines()
        shown = [index for index, style in enumerate(drawn.styles) if style.named]
        offsets = np.linspace(-0.32, 0.32, len(shown)) if len(shown) > 1 else np.zeros(1)
        self.points_: list[Any] = []
        for index, group in enumerate(rates.groups):
            drawn.draw(ax, [], [])  # the entry in the legend
            if index not in shown:
                continue
            defined = {at: group.rates[name] for at, name in enumerate(ERROR_RATES) if group.rates[name] is not None}
            points = ax.errorbar(
                [one.value for one in defined.values()],
                [at + offsets[shown.index(index)] for at in defined],
                xerr=error_bars(list(defined.values())),
                fmt="o",
                color=drawn.styles[index].colour,
                alpha=1.0 if drawn.judged[index] else 0.45,
                markersize=4,
                linewidth=1.2,
            )
            self.points_.append(points)
        ax.set_yticks(
            range(len(ERROR_RATES)), [name.replace("Negative ", "Negative\n") for name, _, _ in RATE_NAMES.values()]
        )
        ax.set(xlim=(0, 1), ylim=(len(ERROR_RATES) - 0.5, -0.5))
        percent_axis(ax.xaxis)
        label_axes(ax, xlabel=f"Rate above {rates.threshold:g}", ylabel="")
        return drawn.entries, ()


class ReliabilityDisplay(AuditDisplay):
    """Reliability curves: the share of positive rows among those with about the same score, by group.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        One line for each group.

    See Also
    --------
    ErrorRateDisplay : Error rates of the groups at a threshold.
    fairtransport.Audit.plot : Draws this display with ``kind="reliability"``.

    Notes
    -----
    Scores on the diagonal are calibrated. Bars are the confidence intervals of the audit; groups with too few rows to
    be judged have none.

    Examples
    --------
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.3, 0.5, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group)
    >>> len(ft.report.ReliabilityDisplay.from_audit(audit).lines_)
    2
    """

    def _check_and_size(self) -> tuple[float, float]:
        if self.audit.calibration is None:
            raise ValueError("The audit has no labels, so that there are no reliability curves; pass y_true to audit.")
        return (5.0, 4.6)

    def _draw(self) -> Legend:
        ax, audit = self.ax_, self.audit
        low, high = audit.settings.range
        (diagonal,) = ax.plot([low, high], [0, 1], color=THEME.quiet, linewidth=1, linestyle=(0, (4, 3)), zorder=2)
        drawn = self._group_lines()
        groups = () if audit.calibration is None else audit.calibration.groups
        for group, style, judged in zip(groups, drawn.styles, drawn.judged, strict=False):
            scores, rates = [part.mean_score for part in group.bins], [part.rate for part in group.bins]
            values = [rate.value for rate in rates]
            drawn.draw(ax, scores, values)
            if style.named and judged:
                points = {"fmt": "o", "color": style.colour, "markersize": 3.5, "linewidth": 1}
                ax.errorbar(scores, values, yerr=error_bars(rates), **points)
        self.lines_ = drawn.lines
        ax.set(xlim=(low, high), ylim=(0, 1))
        label_axes(ax, xlabel="Mean score", ylabel="Share that is positive", few_ticks=True, percent=True)
        return drawn.entries, [(diagonal, "Calibrated")]


_N_POINTS = 513
_SEPARATION_TITLES = {0: "Negative outcome", 1: "Positive outcome"}
_PANEL_WIDTH, _GAP = 0.455, 0.09  # shares of the axes


class SeparationDisplay(AuditDisplay):
    r"""Cumulative distribution function of the scores of each group, among people with each outcome.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Attributes
    ----------
    axes_ : dict of int to matplotlib.axes.Axes
        The panel of label 0 and that of label 1.
    lines_ : dict of int to list of matplotlib.lines.Line2D
        For each label, one line for each group.

    See Also
    --------
    CdfDisplay : The same among all people.
    fairtransport.Audit.plot : Draws this display with ``kind="separation"``.

    Notes
    -----
    Equalized odds at every threshold mean that the lines agree in both panels, equal opportunity that they agree in the
    second. One minus the height of a line is the group's false positive rate at that threshold in the first panel, and
    its true positive rate in the second.

    Examples
    --------
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.8, 0.3, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group, criterion="equalized_odds")
    >>> len(ft.report.SeparationDisplay.from_audit(audit).lines_[1])
    2
    """

    def _check_and_size(self) -> tuple[float, float]:
        if not self.audit.histograms.has_labels:
            raise ValueError("The audit has no labels, so that outcomes are not known; pass y_true to audit.")
        return (7.6, 3.8)

    def _draw(self) -> Legend:
        outer, audit = self.ax_, self.audit
        outer.set_axis_off()
        points = display_points(audit.histograms, _N_POINTS)
        curves = audit.error_curves(points)
        self.axes_: dict[int, Any] = {}
        self.lines_: dict[int, list[Any]] = {}
        for label, rate in ((0, "false_positive_rate"), (1, "true_positive_rate")):
            panel = outer.inset_axes([label * (_PANEL_WIDTH + _GAP), 0, _PANEL_WIDTH, 1])
            drawn = self._group_lines()
            for values in curves[rate]:
                drawn.draw(panel, points, 1 - values)
            panel.set(xlim=(points[0], points[-1]), ylim=(0, 1))
            label_axes(panel, xlabel="Score", ylabel="" if label else "Share at or below", few_ticks=True, percent=True)
            corner = {"transform": panel.transAxes, "ha": "right", "va": "bottom"}  # which these functions leave free
            panel.text(0.97, 0.04, _SEPARATION_TITLES[label], color=THEME.quiet, **corner)
            self.axes_[label], self.lines_[label] = panel, drawn.lines
        return drawn.entries, ()
