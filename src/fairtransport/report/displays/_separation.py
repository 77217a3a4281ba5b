"""Display of the distribution functions of groups among people with the same outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from fairtransport.histograms import display_points
from fairtransport.report.displays._axes import THEME, label_axes, legend_above, percent_axis, set_tick_count
from fairtransport.report.displays._base import Display
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["SeparationDisplay"]

_N_POINTS = 513
_TITLES = {0: "Negative outcome", 1: "Positive outcome"}
_PANEL_WIDTH, _GAP = 0.455, 0.09  # shares of the axes


class SeparationDisplay(Display):
    r"""Cumulative distribution function of the scores of each group, among people with each outcome.

    Use `from_audit` to create a display.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    axes_ : dict of int to matplotlib.axes.Axes
        The panel of label 0 and that of label 1.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
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
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.8, 0.3, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group, criterion="equalized_odds", n_bootstrap=99)
    >>> len(ft.report.SeparationDisplay.from_audit(audit).lines_[1])
    2
    """

    axes_: dict[int, Any]
    lines_: dict[int, list[Any]]

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None) -> Self:
        """Draw the distribution functions of an audit with labels.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        SeparationDisplay
        """
        return cls(audit).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        if not self.audit.histograms.has_labels:
            raise ValueError("The audit has no labels, so that outcomes are not known; pass y_true to audit.")
        return (7.6, 3.8)

    def _draw(self, *, new_figure: bool) -> None:
        outer, audit = self.ax_, self.audit
        outer.set_axis_off()
        points = display_points(audit.histograms, _N_POINTS)
        curves = audit.error_curves(points)
        judged = [group.judged for group in audit.groups]
        self.axes_, self.lines_ = {}, {}
        for label, rate in ((0, "false_positive_rate"), (1, "true_positive_rate")):
            panel = outer.inset_axes([label * (_PANEL_WIDTH + _GAP), 0, _PANEL_WIDTH, 1])
            drawn = GroupLines(audit.histograms.groups, audit.histograms.group_rows, judged)
            for values in curves[rate]:
                drawn.draw(panel, points, 1 - values)
            panel.set(xlim=(points[0], points[-1]), ylim=(0, 1))
            set_tick_count(panel)
            percent_axis(panel)
            label_axes(panel, xlabel="Score", ylabel="" if label else "Share at or below")
            # Distribution functions leave this corner free.
            panel.text(
                0.97, 0.04, _TITLES[label], transform=panel.transAxes, ha="right", va="bottom", color=THEME.quiet
            )
            self.axes_[label], self.lines_[label] = panel, drawn.lines
        legend_above(outer, drawn.entries, grow=new_figure)
