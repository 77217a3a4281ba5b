"""Scores by group, counted: what several displays are drawn from. They come from an audit, arrays or a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._sklearn.estimator_calls import model_scores, takes_groups
from fairtransport.histograms import GroupHistograms, count_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing import Audit

__all__ = ["ScoredDisplay", "scores_of"]


class ScoredDisplay:
    """Base of the displays of histograms; subclasses say how they are drawn.

    Parameters
    ----------
    histograms : GroupHistograms
        With rows in each group.
    unsure_below : int, default 30
        Groups with fewer effective rows are drawn faintly and marked unsure.
    """

    ax_: Any
    figure_: Any

    def __init__(self, histograms: GroupHistograms, *, unsure_below: int = 30) -> None:
        self.histograms = histograms
        self.unsure_below = unsure_below

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Which groups have too few rows to say much."""
        return self.histograms.effective_sizes < self.unsure_below

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None, **options: Any) -> Self:
        """Draw the scores of an audit.

        Parameters
        ----------
        audit : Audit
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display
        """
        return cls(audit.histograms, unsure_below=audit.settings.unsure_below, **options).plot(ax)

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
        scores : array-like of shape (n,)
            Within [0, 1], or within ``range``.
        sensitive_features : column, table or Groups
            Several columns are crossed.
        sample_weight : array-like of shape (n,), optional
        range : pair of float, optional
            Lowest and highest score that there may be; [0, 1] when omitted.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display
        """
        counted = count_scores(scores, sensitive_features=sensitive_features, sample_weight=sample_weight, range=range)
        return cls(counted.filled(), **options).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, sensitive_features: Any, ax: Any = None, **options: Any) -> Self:
        """Draw the scores that a classifier gives to rows.

        Parameters
        ----------
        estimator : classifier
            Fitted; with ``predict_proba`` of two classes. It is handed the groups where it takes them.
        X : table or matrix with n rows
        sensitive_features : column, table or Groups
            Several columns are crossed.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            As in `from_predictions`.

        Returns
        -------
        display
        """
        scores = scores_of(estimator, X, sensitive_features=sensitive_features)
        return cls.from_predictions(scores, sensitive_features=sensitive_features, ax=ax, **options)

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        display
            Itself, with ``ax_`` and ``figure_``.
        """
        raise NotImplementedError

    def _pair(self, pair: tuple[Any, Any] | None) -> tuple[int, int]:
        """Return the places of two groups; by default the two farthest apart of those that are sure."""
        if pair is not None:
            one, other = pair
            return self.histograms.groups.index_of(one), self.histograms.groups.index_of(other)
        judged = np.flatnonzero(~self.unsure)
        if judged.size < 2:
            judged = np.arange(len(self.histograms.groups))
        distances = self.histograms.distances()[np.ix_(judged, judged)]
        one, other = np.unravel_index(int(np.argmax(distances)), distances.shape)
        if one == other:  # all alike
            one, other = 0, 1
        return int(judged[one]), int(judged[other])


def scores_of(estimator: Any, X: Any, *, sensitive_features: Any) -> NDArray[np.float64]:
    """Return the probability of class 1 of each row."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"estimator must have predict_proba; {type(estimator).__name__} has none.")
    return model_scores(estimator, X, sensitive_features=sensitive_features if takes_groups(estimator) else None)
