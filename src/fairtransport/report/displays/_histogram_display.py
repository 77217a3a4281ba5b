"""Base classes of the displays of scores by group: constructors from an audit, from scores or from a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from fairtransport._sklearn.group_awareness import score_with_groups
from fairtransport._validation import check_vector
from fairtransport.histograms import GroupHistograms, count_scores
from fairtransport.report._shown_scores import score_title, shown_histograms
from fairtransport.report.displays._base import Display

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing import Audit

__all__ = ["HistogramDisplay", "ScoreDisplay"]


class ScoreDisplay(Display):
    """Base class of the displays that can be drawn from the scores of a classifier; each has `from_predictions`."""

    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, sensitive_features: Any, ax: Any = None, **options: Any) -> Self:
        """Draw the scores that a classifier predicts.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba`` of two classes. It receives the groups if its prediction needs them.
        X : table or matrix with n_samples rows
            Input of the classifier.
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.
        **options
            Further parameters of `from_predictions`.

        Returns
        -------
        Display
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"estimator must have predict_proba; {type(estimator).__name__} has none.")
        scores = score_with_groups(estimator, X, sensitive_features)
        return cls.from_predictions(scores, sensitive_features=sensitive_features, ax=ax, **options)


class HistogramDisplay(ScoreDisplay):
    """Base class of the displays of score histograms.

    Parameters
    ----------
    histograms : GroupHistograms
        Histogram of the scores of each group; no group is empty.
    min_judged_rows : int, default=30
        Groups with fewer rows are marked: they have too few to be judged.
    """

    score_title: str = "Score"
    in_units: bool = False  # whether distances are in units of the score, rather than shares of its range

    def __init__(self, histograms: GroupHistograms, *, min_judged_rows: int = 30) -> None:
        self.histograms = histograms
        self.min_judged_rows = min_judged_rows

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Groups with at least ``min_judged_rows`` effective rows."""
        return self.histograms.effective_sizes >= self.min_judged_rows

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None, **options: Any) -> Self:
        """Draw the scores of an audit.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.
        **options
            Further parameters of the display.

        Returns
        -------
        Display
        """
        shown = shown_histograms(audit.histograms)
        display = cls(shown, min_judged_rows=audit.settings.min_judged_rows, **options)
        display.score_title = score_title(audit)
        display.in_units = not audit.settings.bounded
        return display.plot(ax)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores of the rows: probabilities, or any other real numbers.
        sensitive_features : column, table or Groups
            Sensitive features of the rows; several columns are crossed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        range : pair of float, default=None
            Lowest and highest possible score; if None, 0 and 1, or those of the scores if they lie outside.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.
        **options
            Further parameters of the display.

        Returns
        -------
        Display
        """
        values = check_vector(scores, name="scores")
        in_units = range is None and bool(values.min() < 0 or values.max() > 1)
        shown_range = (float(values.min()), float(values.max())) if in_units else range
        if in_units and shown_range is not None and shown_range[0] == shown_range[1]:
            shown_range = (shown_range[0] - 1.0, shown_range[1])
        histograms = count_scores(
            values, sensitive_features=sensitive_features, sample_weight=sample_weight, range=shown_range
        )
        display = cls(histograms.filled(), **options)
        display.in_units = in_units
        return display.plot(ax)

    def _pair_indices(self, pair: tuple[Any, Any] | None) -> tuple[int, int]:
        """Return the indices of two groups; by default of the two farthest apart among those that are judged."""
        if pair is not None:
            one, other = pair
            return self.histograms.groups.index_of(one), self.histograms.groups.index_of(other)
        judged = np.flatnonzero(self.judged)
        if judged.size < 2:
            judged = np.arange(len(self.histograms.groups))
        distances = self.histograms.distances()[np.ix_(judged, judged)]
        one, other = np.unravel_index(int(np.argmax(distances)), distances.shape)
        if one == other:  # all distances are 0
            one, other = 0, 1
        return int(judged[one]), int(judged[other])
