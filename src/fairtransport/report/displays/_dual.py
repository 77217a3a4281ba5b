"""Display of dual potentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._sklearn.estimator_calls import last_step
from fairtransport._validation import check_vector
from fairtransport.groups import Groups, make_groups
from fairtransport.report.displays._axes import THEME, label_axes, legend_above, set_tick_count
from fairtransport.report.displays._base import Display
from fairtransport.report.displays._group_lines import GroupLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.transport.dual import DualSolution

__all__ = ["DualDisplay"]

_POINTS = np.linspace(0.0, 1.0, 201)


class DualDisplay(Display):
    """Dual variables of continuous optimal transport (COT), as functions of the score.

    Use `from_estimator` or `from_solution` to create a display.

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
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    lines_ : list of matplotlib.lines.Line2D
        One line for each group.

    See Also
    --------
    fairtransport.ContinuousTransportClassifier : Classifier that learns dual variables.
    fairtransport.solve_dual : Solve the dual problem of two distributions.

    Notes
    -----
    Where the dual variable of a group is high, the group has more mass than the other distribution; training moves
    its scores down the slope of the function.

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section 4.2.

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
        points : array-like of shape (n_points,), default=None
            Scores at which the functions are drawn; if None, 201 points from 0 to 1.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
        """
        model = last_step(estimator)[1]
        if not hasattr(model, "duals_"):
            raise TypeError(
                f"{type(model).__name__} has no dual variables: only a fitted ContinuousTransportClassifier has; "
                "discrete transport and quantile repair need none."
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
            Result of `fairtransport.solve_dual`.
        names : pair of str, default=("x", "y")
            Names of the two distributions.
        points : array-like of shape (n_points,), default=None
            Scores at which the functions are drawn; if None, 201 points from 0 to 1.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
        """
        labels = [str(name) for name in names]
        if len(set(labels)) != 2:
            raise ValueError("names must be two different texts, one for each distribution.")
        scores = _check_points(points)
        groups = make_groups(labels)
        duals = dict(zip(labels, (solution.x_dual(scores), solution.y_dual(scores)), strict=True))
        return cls(scores, np.array([duals[name] for name in groups.names]), groups).plot(ax)

    def _draw(self, *, new_figure: bool) -> None:
        ax, points = self.ax_, np.asarray(self.points)
        drawn = GroupLines(self.groups)
        ax.axhline(0.0, color=THEME.quiet, linewidth=0.8, zorder=2)
        for values in np.asarray(self.duals):
            drawn.draw(ax, points, values)
        self.lines_ = drawn.lines
        ax.set_xlim(float(points.min()), float(points.max()))
        set_tick_count(ax)
        label_axes(ax, xlabel="Score", ylabel="Dual variable")
        legend_above(ax, drawn.entries, grow=new_figure)


def _check_points(points: ArrayLike | None) -> NDArray[np.float64]:
    return _POINTS if points is None else np.sort(check_vector(points, name="points"))
