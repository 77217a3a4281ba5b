"""``PairwiseDisparityDisplay``: the distance between every two groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport.groups import make_groups
from fairtransport.metrics import pairwise_distances
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, letter_size
from fairtransport.report.displays._scored_histograms import scores_of
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing import Audit

__all__ = ["PairwiseDisparityDisplay"]

_DARK, _LIGHT = "#0b5cad", "#ffffff"
_ROOM = 0.34  # inches of a cell that a number fits into, at letters of 9 points


class PairwiseDisparityDisplay:
    """The Wasserstein-1 distance between every two groups, in percentage points, as a square of shaded cells.

    Use `from_audit`, `from_predictions` or `from_estimator` to make one.

    Parameters
    ----------
    distances : array of shape (n_groups, n_groups)
        As shares of the range of scores.
    names : sequence of str
    counts : array-like of shape (n_groups,)
        Rows of each group.
    unsure : array-like of bool
        Groups with too few rows to say much; marked with a question mark.
    most : int or None, default 12
        With more groups only the largest are shown; None for all.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    image_ : matplotlib.image.AxesImage
    places_ : ndarray of int
        The groups that are shown.
    texts_ : list of matplotlib.text.Text
        Numbers in the cells, where there is room.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairtransport.report import PairwiseDisparityDisplay
    >>> display = PairwiseDisparityDisplay.from_predictions([0.1, 0.3, 0.7], sensitive_features=["a", "b", "c"])
    >>> display.image_.get_array().round(1).tolist()
    [[0.0, 20.0, 60.0], [20.0, 0.0, 40.0], [60.0, 40.0, 0.0]]
    """

    ax_: Any
    figure_: Any
    image_: Any
    places_: NDArray[np.int64]
    texts_: list[Any]

    def __init__(
        self,
        distances: ArrayLike,
        names: Sequence[str],
        *,
        counts: ArrayLike,
        unsure: ArrayLike,
        most: int | None = MOST_NAMED,
    ) -> None:
        self.distances = distances
        self.names = names
        self.counts = counts
        self.unsure = unsure
        self.most = most

    @classmethod
    def from_audit(cls, audit: Audit, *, most: int | None = MOST_NAMED, ax: Any = None) -> Self:
        """Draw the distances of an audit.

        Parameters
        ----------
        audit : Audit
        most : int or None, default 12
            With more groups only the largest are shown; None for all.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        PairwiseDisparityDisplay
        """
        names = [group.name for group in audit.groups]
        unsure = [group.unsure for group in audit.groups]
        return cls(audit.distances, names, counts=audit.histograms.group_rows, unsure=unsure, most=most).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        unsure_below: int = 30,
        most: int | None = MOST_NAMED,
        ax: Any = None,
    ) -> Self:
        """Measure the distances of scores within [0, 1] and draw them.

        Parameters
        ----------
        scores : array-like of shape (n,)
        sensitive_features : column, table or Groups
            Several columns are crossed.
        sample_weight : array-like of shape (n,), optional
        unsure_below : int, default 30
            Groups with fewer rows are marked unsure.
        most : int or None, default 12
            With more groups only the largest are shown; None for all.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        PairwiseDisparityDisplay
        """
        groups = make_groups(sensitive_features, at_least=2)
        distances = pairwise_distances(scores, sensitive_features=groups, sample_weight=sample_weight)
        return cls(distances, groups.names, counts=groups.counts, unsure=groups.counts < unsure_below, most=most).plot(
            ax
        )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, sensitive_features: Any, **options: Any) -> Self:
        """Measure the distances of a classifier's scores and draw them.

        Parameters
        ----------
        estimator : classifier
            Fitted; with ``predict_proba`` of two classes. It is handed the groups where it takes them.
        X : table or matrix with n rows
        sensitive_features : column, table or Groups
        **options
            As in `from_predictions`.

        Returns
        -------
        PairwiseDisparityDisplay
        """
        scores = scores_of(estimator, X, sensitive_features=sensitive_features)
        return cls.from_predictions(scores, sensitive_features=sensitive_features, **options)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        PairwiseDisparityDisplay
            Itself.
        """
        counts = np.asarray(self.counts)
        most = counts.size if self.most is None else self.most
        self.places_ = np.sort(np.argsort(-counts, kind="stable")[:most])
        n_shown = self.places_.size
        ax = get_axes(ax, (min(9.0, 3.2 + 0.42 * n_shown), min(7.6, 1.5 + 0.42 * n_shown)))
        self.ax_, self.figure_ = ax, ax.figure
        points = 100 * np.asarray(self.distances, dtype=np.float64)[np.ix_(self.places_, self.places_)]
        colours = load_extra("matplotlib.colors").LinearSegmentedColormap.from_list("distance", [_LIGHT, _DARK])
        self.image_ = ax.imshow(points, cmap=colours, vmin=0.0, vmax=max(float(points.max()), 1e-9), aspect="equal")
        self._label(n_shown)
        self.figure_.draw_without_rendering()  # settles how large a cell is
        cell = ax.get_window_extent().width / self.figure_.dpi / n_shown
        self.texts_ = self._write(points) if cell >= _ROOM * letter_size(ax) / 9.0 else []
        if not self.texts_:
            bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
            bar.set_label("Distance, percentage points", fontsize=letter_size(ax))
            bar.ax.tick_params(labelsize=letter_size(ax) - 0.5)
            bar.outline.set_visible(False)
        return self

    def _label(self, n_shown: int) -> None:
        """Names on the left with a number each, the numbers below."""
        ax, letters = self.ax_, letter_size(self.ax_)
        left_out = np.asarray(self.counts).size - n_shown
        told = "Distance, percentage points" if not left_out else f"{left_out:,} smaller groups left out"
        dress(ax, xlabel=told, ylabel="", grid=False)
        unsure = np.asarray(self.unsure)
        longest = 14 if is_narrow(ax) else 26
        step = max(1, round(n_shown / 24))  # as many names as can be read
        shown = list(range(0, n_shown, step))
        names = [
            f"{shorten(self.names[self.places_[row]], longest)}{' ?' if unsure[self.places_[row]] else ''}  {row + 1}"
            for row in shown
        ]
        ax.set_yticks(shown, names, fontsize=letters - 0.5, parse_math=False)
        ax.set_xticks(shown, [str(row + 1) for row in shown], fontsize=letters - 0.5)
        ax.tick_params(length=0, labelcolor=THEME.ink)
        ax.spines[:].set_visible(False)

    def _write(self, points: NDArray[np.float64]) -> list[Any]:
        texts = []
        for (row, column), value in np.ndenumerate(points):
            if row != column:
                colour = _LIGHT if value > 0.55 * points.max() else THEME.ink
                options = {"ha": "center", "va": "center", "fontsize": letter_size(self.ax_) - 1, "color": colour}
                texts.append(self.ax_.text(column, row, f"{value:.1f}", **options))
        return texts
