"""Display of the distances between all pairs of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport.groups import make_groups
from fairtransport.metrics import pairwise_distances
from fairtransport.report.displays._axes import THEME, font_size, is_narrow, label_axes
from fairtransport.report.displays._histogram_display import ScoreDisplay
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing import Audit

__all__ = ["PairwiseDisparityDisplay"]

_DARK, _LIGHT = "#0b5cad", "#ffffff"
_NUMBER_WIDTH = 0.34  # inches of a cell that has room for a number of 9 points


class PairwiseDisparityDisplay(ScoreDisplay):
    """Heat map of the Wasserstein-1 distances between all pairs of groups, in percentage points.

    Use `from_audit`, `from_predictions` or `from_estimator` to create a display.

    Parameters
    ----------
    distances : array of shape (n_groups, n_groups)
        Distances, as shares of the range of scores.
    names : sequence of str
        Names of the groups.
    counts : array-like of shape (n_groups,)
        Rows of each group.
    judged : array-like of bool of shape (n_groups,)
        Groups with too few rows to judge; marked with a question mark.
    most : int or None, default=12
        With more groups than this only the largest are shown; None shows all.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    image_ : matplotlib.image.AxesImage
        The heat map.
    indices_ : ndarray of int
        Indices of the groups that are shown.
    texts_ : list of matplotlib.text.Text
        Numbers in the cells, if there is room for them.

    See Also
    --------
    CdfDisplay : The distance of two groups as an area.
    fairtransport.metrics.strong_pairwise_disparity : Sum of the distances.
    fairtransport.Audit.plot : Draws this display with ``kind="pairs"``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairtransport.report import PairwiseDisparityDisplay
    >>> display = PairwiseDisparityDisplay.from_predictions([0.1, 0.3, 0.7], sensitive_features=["a", "b", "c"])
    >>> display.image_.get_array().round(1).tolist()
    [[0.0, 20.0, 60.0], [20.0, 0.0, 40.0], [60.0, 40.0, 0.0]]
    """

    title: str = "Distance, percentage points"
    image_: Any
    indices_: NDArray[np.int64]
    texts_: list[Any]

    def __init__(
        self,
        distances: ArrayLike,
        names: Sequence[str],
        *,
        counts: ArrayLike,
        judged: ArrayLike,
        most: int | None = MOST_NAMED,
    ) -> None:
        self.distances = distances
        self.names = names
        self.counts = counts
        self.judged = judged
        self.most = most

    @classmethod
    def from_audit(cls, audit: Audit, *, most: int | None = MOST_NAMED, ax: Any = None) -> Self:
        """Draw the distances of an audit; those between ranks, where scores have no known bounds.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        most : int or None, default=12
            With more groups than this only the largest are shown; None shows all.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
        """
        names = [group.name for group in audit.groups]
        judged = [group.judged for group in audit.groups]
        distances = audit.distances if audit.rank_distances is None else audit.rank_distances
        display = cls(distances, names, counts=audit.histograms.group_rows, judged=judged, most=most)
        if audit.rank_distances is not None:
            display.title = "Distance between ranks, percentage points"
        return display.plot(ax)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        min_judged_rows: int = 30,
        most: int | None = MOST_NAMED,
        ax: Any = None,
    ) -> Self:
        """Measure the distances of scores within [0, 1] and draw them.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores of the rows, within [0, 1].
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        min_judged_rows : int, default=30
            Groups with fewer rows are marked: they have too few to be judged.
        most : int or None, default=12
            With more groups than this only the largest are shown; None shows all.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
        """
        groups = make_groups(sensitive_features, at_least=2)
        distances = pairwise_distances(scores, sensitive_features=groups, sample_weight=sample_weight)
        judged = groups.counts >= min_judged_rows
        return cls(distances, groups.names, counts=groups.counts, judged=judged, most=most).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        counts = np.asarray(self.counts)
        most = counts.size if self.most is None else self.most
        self.indices_ = np.sort(np.argsort(-counts, kind="stable")[:most])
        return (min(9.0, 3.2 + 0.42 * self.indices_.size), min(7.6, 1.5 + 0.42 * self.indices_.size))

    def _draw(self, *, new_figure: bool) -> None:  # noqa: ARG002 - there is no legend to grow with
        ax, size = self.ax_, font_size(self.ax_)
        points = 100 * np.asarray(self.distances, dtype=np.float64)[np.ix_(self.indices_, self.indices_)]
        colours = load_extra("matplotlib.colors").LinearSegmentedColormap.from_list("distance", [_LIGHT, _DARK])
        self.image_ = ax.imshow(points, cmap=colours, vmin=0.0, vmax=max(float(points.max()), 1e-9), aspect="equal")
        self._label_groups()
        self.figure_.draw_without_rendering()  # settles how large a cell is
        cell_width = ax.get_window_extent().width / self.figure_.dpi / self.indices_.size
        self.texts_ = self._write_numbers(points) if cell_width >= _NUMBER_WIDTH * size / 9.0 else []
        if not self.texts_:
            bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
            bar.set_label(self.title, fontsize=size)
            bar.ax.tick_params(labelsize=size - 0.5)
            bar.outline.set_visible(False)

    def _label_groups(self) -> None:
        """Write names with numbers on the left, and the numbers below."""
        ax, n_shown = self.ax_, self.indices_.size
        left_out = np.asarray(self.counts).size - n_shown
        xlabel = f"{left_out:,} smaller groups left out" if left_out else self.title
        label_axes(ax, xlabel=xlabel, ylabel="", grid=False)
        judged = np.asarray(self.judged)
        max_chars = 14 if is_narrow(ax) else 26
        rows = list(range(0, n_shown, max(1, round(n_shown / 24))))  # as many names as can be read
        names = [
            f"{shorten(self.names[index], max_chars)}{'' if judged[index] else ' ?'}  {row + 1}"
            for row, index in zip(rows, self.indices_[rows], strict=True)
        ]
        ax.set_yticks(rows, names, fontsize=font_size(ax) - 0.5, parse_math=False)
        ax.set_xticks(rows, [str(row + 1) for row in rows], fontsize=font_size(ax) - 0.5)
        ax.tick_params(length=0, labelcolor=THEME.ink)
        ax.spines[:].set_visible(False)

    def _write_numbers(self, points: NDArray[np.float64]) -> list[Any]:
        texts = []
        for (row, column), value in np.ndenumerate(points):
            if row != column:
                colour = _LIGHT if value > 0.55 * points.max() else THEME.ink
                options = {"ha": "center", "va": "center", "fontsize": font_size(self.ax_) - 1, "color": colour}
                texts.append(self.ax_.text(column, row, f"{value:.1f}", **options))
        return texts
