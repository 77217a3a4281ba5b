"""The picture of a trade-off: error against disparity, with what chance alone would read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport._validation import check_choice
from fairtransport.groups import make_groups
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, legend_above, letter_size
from fairtransport.report.displays._point_labels import label_points
from fairtransport.report.style.colors import group_styles
from fairtransport.selection import Frontier, frontier
from fairtransport.selection.frontier_result import CURVE_METRICS, DISPARITIES

__all__ = ["FrontierDisplay"]

_WORDS = {
    "error_rate": "Error rate",
    "log_loss": "Log-loss",
    "information_kept": "Share of the information kept",
    "auc": "AUC",
    "wasserstein_disparity": "Disparity to the target (Wass1)",
    "strong_demographic_disparity": "Disparity to everyone (SDD)",
    "strong_pairwise_disparity": "Pairwise disparity (SPDD)",
    "rank_disparity": "Rank disparity",
}
_STYLES: dict[str, Any] = {"aware": "solid", "blind": (0, (4.0, 1.6))}
_SIGNS = "osD^vPX*"


class FrontierDisplay:
    """Trade-off curves in one picture.

    Use `from_frontier` or `from_estimator` to make one; ``plot`` draws it again, on other axes.

    Parameters
    ----------
    frontiers : dict of str to Frontier
        The curves and their names in the legend.
    x, y : str
        Metrics of the two axes: ``"error_rate"``, ``"log_loss"``, ``"auc"``, ``"wasserstein_disparity"``,
        ``"strong_demographic_disparity"`` or ``"strong_pairwise_disparity"``.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    lines_ : list of matplotlib.lines.Line2D
        One for each frontier.
    bands_ : list
        The bands of one standard error of ``y`` on either side.
    floor_ : object or None
        The shaded part of the pairwise disparities that chance alone would read.
    labels_ : list of matplotlib.text.Annotation
        Parameter values beside their points: the two ends first, and as many others as there is room for.

    See Also
    --------
    fairtransport.frontier : Makes the curves.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from fairtransport.report import FrontierDisplay
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=300)
    >>> X = rng.normal(size=(300, 2)) + group[:, None]
    >>> y = (X.sum(axis=1) + rng.logistic(size=300) > 1).astype(int)
    >>> repair = ft.QuantileRepairClassifier(LogisticRegression())
    >>> curve = ft.frontier(repair, X, y, sensitive_features=group, amounts=[0, 0.5, 1], random_state=0)
    >>> display = FrontierDisplay.from_frontier({"DPP": curve})
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('Pairwise disparity (SPDD)', 1)
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    bands_: list[Any]
    floor_: Any
    labels_: list[Any]

    def __init__(
        self, frontiers: Mapping[str, Frontier], *, x: str = "strong_pairwise_disparity", y: str = "error_rate"
    ) -> None:
        self.frontiers = frontiers
        self.x = x
        self.y = y

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier | Mapping[str, Frontier],
        *,
        x: str = "strong_pairwise_disparity",
        y: str = "error_rate",
        ax: Any = None,
    ) -> Self:
        """Draw one frontier, or several by name.

        Parameters
        ----------
        frontier : Frontier or dict of str to Frontier
        x, y : str
            Metrics of the two axes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        FrontierDisplay
        """
        named = {_name(frontier): frontier} if isinstance(frontier, Frontier) else frontier
        if not isinstance(named, Mapping) or not all(isinstance(one, Frontier) for one in named.values()):
            raise TypeError("frontier must be what fairtransport.frontier returns, or a dict of such by name.")
        if not named:
            raise ValueError("There is no frontier to draw: the dict is empty.")
        return cls(dict(named), x=x, y=y).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        x_metric: str = "strong_pairwise_disparity",
        y_metric: str = "error_rate",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Measure the trade-off of an estimator and draw it.

        Parameters
        ----------
        estimator, X, y, sensitive_features, **options
            As for `fairtransport.frontier`.
        x_metric, y_metric : str
            Metrics of the two axes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        FrontierDisplay
            With the curve in ``frontiers``.
        """
        load_extra("matplotlib")  # told before anything is trained
        for metric, side in ((x_metric, "x_metric"), (y_metric, "y_metric")):
            check_choice(metric, CURVE_METRICS, name=side)
        curve = frontier(estimator, X, y, sensitive_features=sensitive_features, **options)
        return cls.from_frontier(curve, x=x_metric, y=y_metric, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        FrontierDisplay
            Itself.
        """
        check_choice(self.x, CURVE_METRICS, name="x")
        check_choice(self.y, CURVE_METRICS, name="y")
        ax = get_axes(ax, (5.6, 4.0))
        self.ax_, self.figure_ = ax, ax.figure
        letters = letter_size(ax)
        self.lines_, self.bands_ = [], []
        for place, curve in enumerate(self.frontiers.values()):
            self._draw(curve, _colours(len(self.frontiers))[place], _SIGNS[place % len(_SIGNS)])
        self.floor_ = self._draw_floor()
        self._dress(letters)
        legend_above(ax, self._entries)
        points = [(*point, value) for curve in self.frontiers.values() for point, value in self._points(curve)]
        self.labels_ = label_points(
            ax, points, colours=[line.get_color() for line in self.lines_ for _ in line.get_xdata()],
            size=letters - 1.0, lines=[np.column_stack(line.get_data()) for line in self.lines_],
        )  # fmt: skip
        return self

    # ---------------------------------------------------------------- parts of the picture

    def _points(self, curve: Frontier) -> list[tuple[tuple[float, float], str]]:
        """Return each point with its parameter value, the ends first and then from the most parity to the least."""
        order = [0, curve.values.size - 1, *range(curve.values.size - 2, 0, -1)][: curve.values.size]
        x, y = curve.mean(self.x), curve.mean(self.y)
        return [((float(x[k]), float(y[k])), f"{curve.values[k]:g}".replace("inf", "∞")) for k in order]

    def _draw(self, curve: Frontier, colour: str, sign: str) -> None:
        x, y = curve.mean(self.x), curve.mean(self.y)
        spread = np.nan_to_num(curve.standard_error(self.y))
        band = self.ax_.fill_between(x, y - spread, y + spread, color=colour, alpha=0.16, linewidth=0, zorder=2)
        small = is_narrow(self.ax_)
        (line,) = self.ax_.plot(
            x,
            y,
            color=colour,
            linestyle=_STYLES[curve.situation],
            linewidth=1.2 if small else 1.7,
            marker=sign,
            markersize=2.6 if small else 4.2,
            zorder=4,
        )
        self.lines_.append(line)
        self.bands_.append(band)

    def _draw_floor(self) -> Any:
        """Shade what chance alone would read; where curves differ in it, up to the lowest."""
        if self.x != "strong_pairwise_disparity":
            return None
        floor = min(float(curve.mean("noise_floor")[-1]) for curve in self.frontiers.values())
        left = min(0.0, self.ax_.get_xlim()[0])
        return self.ax_.axvspan(left, floor, color=THEME.target, alpha=0.7, linewidth=0, zorder=1)

    def _dress(self, letters: float) -> None:
        ax = self.ax_
        dress(ax, xlabel=_WORDS[self.x], ylabel=_WORDS[self.y])
        ax.locator_params(nbins=4 if letters < 8 else 6)
        ax.margins(y=0.12)
        if self.x in DISPARITIES:
            ax.set_xlim(left=0.0)

    def _entries(self, longest: int) -> list[tuple[Any, str]]:
        """Return what the legend says, each text of at most that many signs."""
        named = zip(self.lines_, self.frontiers.items(), strict=True)
        entries = [(line, f"{shorten(name, longest - 7)}, {curve.situation}") for line, (name, curve) in named]
        if self.floor_ is not None:
            entries.append((self.floor_, "Noise floor: chance alone"))
        parameters = sorted({curve.parameter.rpartition("__")[2] for curve in self.frontiers.values()})
        nothing = load_extra("matplotlib.lines").Line2D([], [], linestyle="none")
        return [*entries, (nothing, shorten(f"Numbers: {', '.join(parameters)}", longest))]


def _name(curve: Frontier) -> str:
    """Name a curve after its estimator, without the word that all share."""
    model = curve.estimator
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return type(model).__name__.removesuffix("Classifier")


def _colours(count: int) -> list[str]:
    """Return the colours that groups have in other pictures; numbers stand for groups here."""
    return [style.colour for style in group_styles(make_groups(list(range(max(count, 1)))))]
