"""Display of trade-off curves: error against disparity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport._validation import check_choice
from fairtransport.groups import make_groups
from fairtransport.report.displays import _base as base
from fairtransport.report.style.figures import group_styles
from fairtransport.selection import Frontier, frontier
from fairtransport.selection.frontier_result import CURVE_METRICS, DISPARITIES, REGRESSION_METRICS

# Labels beside points, none of which covers another label, a point or a line.

_CLEARLY_FARTHER = 1.4  # ratio of distances
_DIRECTIONS = ((1, 1), (-1, -1), (1, 0), (0, 1), (-1, 0), (0, -1), (-1, 1), (1, -1))


def label_points(
    ax: Any,
    points: Sequence[tuple[float, float, str]],
    *,
    colours: Sequence[str],
    size: float,
    lines: Sequence[Floats] = (),
) -> list[Any]:
    """Label the points that have room for a label."""
    figure = ax.figure
    for _ in range(2):  # a layout that makes room for a legend settles in the second pass
        figure.draw_without_rendering()
    transforms, path = load_extra("matplotlib.transforms"), load_extra("matplotlib.path").Path
    scale = figure.dpi / 72.0
    centres = [ax.transData.transform((x, y)) for x, y, _ in points]
    taken = [transforms.Bbox([centre - 2.5 * scale, centre + 2.5 * scale]) for centre in centres]
    drawn = [path(ax.transData.transform(line)) for line in lines]
    window = ax.get_window_extent()
    labels = []
    for (x, y, label), centre, colour in zip(points, centres, colours, strict=True):
        text = ax.annotate(
            label, (x, y), xytext=(0, 0), textcoords="offset points", ha="center", va="center", fontsize=size,
            color=colour, zorder=6,
        )  # fmt: skip
        half = text.get_window_extent().size / 2.0
        for across, up in _DIRECTIONS:
            shift = np.array([across, up]) * (half + 3.0 * scale / (math.sqrt(2.0) if across and up else 1.0))
            box = transforms.Bbox([centre + shift - half, centre + shift + half])
            inside = window.contains(*box.p0) and window.contains(*box.p1)
            free = not box.count_overlaps(taken) and not any(line.intersects_bbox(box, filled=False) for line in drawn)
            if inside and free and _is_nearest(box, centre, centres):
                text.set_position(tuple(shift / scale))
                labels.append(text)
                taken.append(box)
                break
        else:
            text.remove()
    return labels


def _is_nearest(box: Any, centre: Floats, centres: Sequence[Floats]) -> bool:
    """Return whether all points at other positions are clearly farther from the box than its own point."""

    def gap(point: Floats) -> float:
        return float(np.hypot(*np.maximum(0.0, np.maximum(box.p0 - point, point - box.p1))))

    near = sum(gap(other) < _CLEARLY_FARTHER * gap(centre) for other in centres)
    return near <= sum(np.array_equal(other, centre) for other in centres)


_LABELS = {
    "error_rate": "Error rate",
    "log_loss": "Log-loss",
    "information_kept": "Share of the information kept",
    "auc": "AUC",
    "rmse": "Root mean squared error, in units of y",
    "mae": "Mean absolute error, in units of y",
    "r2": "R2",
    "wasserstein_disparity": "Disparity to the target (Wass1)",
    "strong_demographic_disparity": "Disparity to everyone (SDD)",
    "pairwise_disparity": "Disparity, mean over pairs",
    "rank_disparity": "Rank disparity",
    "criterion_disparity": "Disparity of the criterion",
}
_LINE_STYLES: dict[str, Any] = {"aware": "solid", "blind": (0, (4.0, 1.6))}
_MARKERS = "osD^vPX*"
_METRICS = tuple(dict.fromkeys((*CURVE_METRICS, *REGRESSION_METRICS)))


class FrontierDisplay(base.Display):
    """Trade-off curves of one or several estimators.

    Parameters
    ----------
    frontiers : dict of str to Frontier
        The curves, by their names in the legend.
    x, y : str, default="pairwise_disparity" and None
        Metrics on the two axes: ``"error_rate"``, ``"log_loss"``, ``"auc"`` (of regressors ``"rmse"``, ``"mae"``,
        ``"r2"``), ``"information_kept"``, ``"wasserstein_disparity"``, ``"strong_demographic_disparity"``,
        ``"pairwise_disparity"`` or ``"rank_disparity"``.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        One line for each frontier.
    bands_ : list of matplotlib.collections.PolyCollection
        Bands of one standard error of ``y`` on either side.
    floor_ : matplotlib.patches.Rectangle or None
        Shaded area below the noise floor of the pairwise disparity.
    labels_ : list of matplotlib.text.Annotation
        Values of the parameter beside their points: the two ends first, then as many others as there is room for.

    See Also
    --------
    fairtransport.frontier : Measure a trade-off curve.
    fairtransport.Frontier.plot : Draw this display.

    Examples
    --------
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
    >>> display = FrontierDisplay.from_frontier({"Quantile repair": curve})
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('Disparity, mean over pairs', 1)
    """

    def __init__(
        self, frontiers: Mapping[str, Frontier], *, x: str = "pairwise_disparity", y: str | None = None
    ) -> None:
        self.frontiers = frontiers
        self.x = x
        self.y = y if y is not None else next(iter(frontiers.values())).error_metric if frontiers else "error_rate"

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier | Mapping[str, Frontier],
        *,
        x: str = "pairwise_disparity",
        y: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw one frontier, or several by name.

        Parameters
        ----------
        frontier : Frontier or dict of str to Frontier
            Result of `fairtransport.frontier`, or several by their names in the legend.
        x, y, ax
            As for the class, and in `plot`.
        """
        named = {_estimator_name(frontier): frontier} if isinstance(frontier, Frontier) else frontier
        if not isinstance(named, Mapping) or not all(isinstance(curve, Frontier) for curve in named.values()):
            raise TypeError("frontier must be a result of fairtransport.frontier, or a dict of such results by name.")
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
        x_metric: str = "pairwise_disparity",
        y_metric: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Measure the trade-off curve of an estimator and draw it.

        Parameters
        ----------
        estimator, X, y, sensitive_features, **options
            As in `fairtransport.frontier`.
        x_metric, y_metric, ax
            As ``x``, ``y`` and ``ax`` of `from_frontier`.
        """
        load_extra("matplotlib")  # an error comes before training
        for metric, name in ((x_metric, "x_metric"), (y_metric, "y_metric")):
            if metric is not None:
                check_choice(metric, _METRICS, name=name)
        curve = frontier(estimator, X, y, sensitive_features=sensitive_features, **options)
        return cls.from_frontier(curve, x=x_metric, y=y_metric, ax=ax)

    def _check_and_size(self) -> tuple[float, float]:
        check_choice(self.x, _METRICS, name="x")
        check_choice(self.y, _METRICS, name="y")
        return (5.6, 4.0)

    def _draw(self) -> None:
        ax, curves = self.ax_, list(self.frontiers.values())
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        # The colours that groups have elsewhere; here they distinguish curves.
        for index, style in enumerate(group_styles(make_groups(list(range(len(curves)))))):
            self._draw_curve(curves[index], style.colour, _MARKERS[index % len(_MARKERS)])
        self.floor_ = self._draw_floor()
        base.label_axes(ax, xlabel=_LABELS[self.x], ylabel=_LABELS[self.y], few_ticks=True)
        ax.margins(y=0.12)
        if self.x in DISPARITIES:
            ax.set_xlim(left=0.0)
        base.legend_above(ax, self._entries)  # before the labels, which need to know where the axes are
        self.labels_ = label_points(
            ax,
            [(*point, value) for curve in curves for point, value in self._points(curve)],
            colours=[line.get_color() for line in self.lines_ for _ in line.get_xdata()],
            size=base.font_size(ax) - 1.0,
            lines=[np.column_stack(line.get_data()) for line in self.lines_],
        )

    def _points(self, curve: Frontier) -> list[tuple[tuple[float, float], str]]:
        """Return each point with its parameter value: the two ends, then from the most parity to the least."""
        order = [0, curve.values.size - 1, *range(curve.values.size - 2, 0, -1)][: curve.values.size]
        x, y = curve.mean(self.x), curve.mean(self.y)
        return [((float(x[k]), float(y[k])), f"{curve.values[k]:g}".replace("inf", "∞")) for k in order]

    def _draw_curve(self, curve: Frontier, colour: str, marker: str) -> None:
        x, y = curve.mean(self.x), curve.mean(self.y)
        error = np.nan_to_num(curve.standard_error(self.y))
        band = self.ax_.fill_between(x, y - error, y + error, color=colour, alpha=0.16, linewidth=0, zorder=2)
        narrow = base.is_narrow(self.ax_)
        (line,) = self.ax_.plot(
            x,
            y,
            color=colour,
            linestyle=_LINE_STYLES[curve.situation],
            linewidth=1.2 if narrow else 1.7,
            marker=marker,
            markersize=2.6 if narrow else 4.2,
            zorder=4,
        )
        self.lines_.append(line)
        self.bands_.append(band)

    def _draw_floor(self) -> Any:
        """Shade disparities below the noise floor; of several curves, the lowest floor."""
        if self.x != "pairwise_disparity":
            return None
        floor = min(float(curve.mean("noise_floor")[-1]) for curve in self.frontiers.values())
        left = min(0.0, self.ax_.get_xlim()[0])
        return self.ax_.axvspan(left, floor, color=base.THEME.target, alpha=0.7, linewidth=0, zorder=1)

    def _entries(self, max_chars: int) -> list[tuple[Any, str]]:
        """Return the entries of the legend, each label of at most so many characters."""
        named = zip(self.lines_, self.frontiers.items(), strict=True)
        entries = [
            (line, f"{shorten(name, max_chars - 7, self.frontiers)}, {curve.situation}")
            for line, (name, curve) in named
        ]
        if self.floor_ is not None:
            entries.append((self.floor_, "Noise floor: chance alone"))
        parameters = sorted({curve.parameter.rpartition("__")[2] for curve in self.frontiers.values()})
        return [*entries, (base.empty_handle(), shorten(f"Numbers: {', '.join(parameters)}", max_chars))]


def _estimator_name(curve: Frontier) -> str:
    """Name a curve after its estimator, without the word that all share."""
    model = curve.estimator
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return type(model).__name__.removesuffix("Classifier")
