"""``DualDisplay``: the dual variables, as functions of the score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._sklearn.estimator_calls import last_step
from fairtransport._validation import check_vector
from fairtransport.groups import Groups, make_groups
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, legend_above
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.transport.dual import DualSolution

__all__ = ["DualDisplay"]

_POINTS = np.linspace(0.0, 1.0, 201)


class DualDisplay:
    """The dual variables of a fitted `fairtransport.ContinuousTransportClassifier`, or of `fairtransport.solve_dual`.

    Use `from_estimator` or `from_solution` to make one.

    Parameters
    ----------
    points : array of shape (n_points,)
        Scores.
    duals : array of shape (n_lines, n_points)
        Values there.
    groups : Groups
        Names the lines.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    lines_ : list of matplotlib.lines.Line2D

    Notes
    -----
    Where a group's dual variable is high it has more mass than the other side, and scores are moved down its slope.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import fairtransport as ft
    >>> from fairtransport.report import DualDisplay
    >>> rng = np.random.default_rng(0)
    >>> solution = ft.solve_dual(rng.beta(2, 5, 500), rng.beta(5, 2, 500), n_updates=500, random_state=0)
    >>> len(DualDisplay.from_solution(solution, names=("low", "high")).lines_)
    2
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]

    def __init__(self, points: ArrayLike, duals: ArrayLike, groups: Groups) -> None:
        self.points = points
        self.duals = duals
        self.groups = groups

    @classmethod
    def from_estimator(cls, estimator: Any, *, points: ArrayLike | None = None, ax: Any = None) -> Self:
        """Draw the dual variable of each group of a fitted model.

        Parameters
        ----------
        estimator : ContinuousTransportClassifier
            Fitted, or a pipeline that ends in one.
        points : array-like of shape (n_points,), optional
            Scores to draw it at; 201 from 0 to 1 by default.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        DualDisplay
        """
        model = last_step(estimator)[1]
        if not hasattr(model, "duals_"):
            raise TypeError(
                f"{type(model).__name__} has no dual variables: only a fitted ContinuousTransportClassifier has; "
                "discrete transport and quantile repair need none."
            )
        at = _check_points(points)
        duals = [model.duals_.of_group(label, at) for label in model.duals_.groups.labels]
        return cls(at, np.array(duals), model.duals_.groups).plot(ax)

    @classmethod
    def from_solution(
        cls,
        solution: DualSolution,
        *,
        names: Sequence[str] = ("x", "y"),
        points: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the two dual variables that `fairtransport.solve_dual` found.

        Parameters
        ----------
        solution : DualSolution
        names : pair of str, default ("x", "y")
            Of the two distributions.
        points : array-like of shape (n_points,), optional
            Where to draw them; 201 points from 0 to 1 by default.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        DualDisplay
        """
        told = [str(name) for name in names]
        if len(set(told)) != 2:
            raise ValueError("names must be two different texts, one for each distribution.")
        at = _check_points(points)
        groups = make_groups(told)
        duals = dict(zip(told, (solution.x_dual(at), solution.y_dual(at)), strict=True))
        return cls(at, np.array([duals[name] for name in groups.names]), groups).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the functions.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        DualDisplay
            Itself.
        """
        grow, ax = ax is None, get_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        drawn = GroupLines(self.groups)
        ax.axhline(0.0, color=THEME.quiet, linewidth=0.8, zorder=2)
        points = np.asarray(self.points)
        for place, values in enumerate(np.asarray(self.duals)):
            drawn.draw(ax, place, points, values)
        self.lines_ = drawn.lines
        ax.set_xlim(float(points.min()), float(points.max()))
        ax.locator_params(nbins=4 if is_narrow(ax) else 6)
        dress(ax, xlabel="Score", ylabel="Dual variable")
        legend_above(ax, drawn.entries, grow=grow)
        return self


def _check_points(points: ArrayLike | None) -> NDArray[np.float64]:
    return _POINTS if points is None else np.sort(check_vector(points, name="points"))
