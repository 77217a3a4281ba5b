"""Display of the error rates of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport.report._what_if import ERROR_RATES
from fairtransport.report.displays._axes import label_axes, legend_above
from fairtransport.report.displays._base import Display
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["ErrorRateDisplay"]

_TITLES = {
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
    "false_negative_rate": "False negative rate",
    "positive_predictive_value": "Predictive value",
    "negative_predictive_value": "Negative\npredictive value",
    "accuracy": "Accuracy",
}


class ErrorRateDisplay(Display):
    """Error rates of each group at a threshold, with their confidence intervals.

    Use `from_audit` to create a display.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    threshold : float, default=None
        One of the thresholds of the audit; if None, the first.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    points_ : list of matplotlib.container.ErrorbarContainer
        One for each group that has a style of its own.

    See Also
    --------
    ReliabilityDisplay : Reliability curves of the groups.
    fairtransport.Audit.plot : Draws this display with ``kind="errors"``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.8, 0.3, 0.9], [0, 1, 1, 0], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group, n_bootstrap=99)
    >>> len(ft.report.ErrorRateDisplay.from_audit(audit).points_)
    2
    """

    points_: list[Any]

    def __init__(self, audit: Audit, *, threshold: float | None = None) -> None:
        self.audit = audit
        self.threshold = threshold

    @classmethod
    def from_audit(cls, audit: Audit, *, threshold: float | None = None, ax: Any = None) -> Self:
        """Draw the error rates of an audit with labels.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        threshold : float, default=None
            One of the thresholds of the audit; if None, the first.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        ErrorRateDisplay
        """
        return cls(audit, threshold=threshold).plot(ax)

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

    def _draw(self, *, new_figure: bool) -> None:
        ax, rates = self.ax_, self._rates
        judged = [group.judged for group in self.audit.groups]
        drawn = GroupLines(self.audit.histograms.groups, self.audit.histograms.group_rows, judged)
        shown = [index for index, style in enumerate(drawn.styles) if style.named]
        offsets = np.linspace(-0.32, 0.32, len(shown)) if len(shown) > 1 else np.zeros(1)
        self.points_ = []
        for index in range(len(rates.groups)):
            drawn.draw(ax, [], [])  # the entry in the legend
            if index not in shown:
                continue
            found = [(at, rates.groups[index].rates[name]) for at, name in enumerate(ERROR_RATES)]
            defined = [(at, one) for at, one in found if one is not None]
            values = np.array([one.value for _, one in defined])
            ends = [[one.value - one.low for _, one in defined], [one.high - one.value for _, one in defined]]
            self.points_.append(
                ax.errorbar(
                    values,
                    [at + offsets[shown.index(index)] for at, _ in defined],
                    xerr=np.maximum(ends, 0.0),
                    fmt="o",
                    color=drawn.styles[index].colour,
                    alpha=1.0 if judged[index] else 0.45,
                    markersize=4,
                    linewidth=1.2,
                )
            )
        ax.set_yticks(range(len(ERROR_RATES)), [_TITLES[name] for name in ERROR_RATES])
        ax.set(xlim=(0, 1), ylim=(len(ERROR_RATES) - 0.5, -0.5))
        ax.xaxis.set_major_formatter(load_extra("matplotlib.ticker").PercentFormatter(1.0, decimals=0))
        label_axes(ax, xlabel=f"Rate above {rates.threshold:g}", ylabel="")
        legend_above(ax, drawn.entries, grow=new_figure)
