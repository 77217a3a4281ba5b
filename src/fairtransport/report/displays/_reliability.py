"""Display of the reliability curves of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport.report.displays._axes import THEME, label_axes, legend_above, percent_axis, set_tick_count
from fairtransport.report.displays._base import Display
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["ReliabilityDisplay"]


class ReliabilityDisplay(Display):
    """Reliability curves: the share of positive rows among those with about the same score, by group.

    Use `from_audit` to create a display.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
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
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.3, 0.5, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group, n_bootstrap=99)
    >>> len(ft.report.ReliabilityDisplay.from_audit(audit).lines_)
    2
    """

    lines_: list[Any]

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None) -> Self:
        """Draw the reliability curves of an audit with labels.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        ReliabilityDisplay
        """
        return cls(audit).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        if self.audit.calibration is None:
            raise ValueError("The audit has no labels, so that there are no reliability curves; pass y_true to audit.")
        return (5.0, 4.6)

    def _draw(self, *, new_figure: bool) -> None:
        ax, audit = self.ax_, self.audit
        low, high = audit.settings.range
        (diagonal,) = ax.plot([low, high], [0, 1], color=THEME.quiet, linewidth=1, linestyle=(0, (4, 3)), zorder=2)
        judged = np.array([group.judged for group in audit.groups])
        drawn = GroupLines(audit.histograms.groups, audit.histograms.group_rows, judged)
        groups = () if audit.calibration is None else audit.calibration.groups
        for index, group in enumerate(groups):
            scores = [part.mean_score for part in group.bins]
            rates = [part.rate.value for part in group.bins]
            drawn.draw(ax, scores, rates)
            style = drawn.styles[index]
            if style.named and judged[index]:
                ends = [[part.rate.value - part.rate.low for part in group.bins]]
                ends.append([part.rate.high - part.rate.value for part in group.bins])
                ax.errorbar(
                    scores, rates, yerr=np.maximum(ends, 0.0), fmt="o", color=style.colour, markersize=3.5, linewidth=1
                )
        self.lines_ = drawn.lines
        ax.set(xlim=(low, high), ylim=(0, 1))
        set_tick_count(ax)
        percent_axis(ax)
        label_axes(ax, xlabel="Mean score", ylabel="Share that is positive")
        legend_above(ax, drawn.entries, [(diagonal, "Calibrated")], grow=new_figure)
