"""The unit in which distances between scores are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport._validation import check_choice, check_real, check_vector, check_weights
from fairtransport.metrics.ranks import pooled_ranks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["SCALES", "ScaledScores", "scale_scores"]

#: What a distance between scores is measured in, unless it is a number.
SCALES = ("probability", "score", "standardized", "ranks")


class ScaledScores(NamedTuple):
    """Scores to compute distances from, the unit to divide these by, and the range of a target among such scores."""

    values: NDArray[np.float64]
    unit: float
    score_range: tuple[float, float] | None


def scale_scores(scores: ArrayLike, scale: Any, sample_weight: ArrayLike | None = None) -> ScaledScores:
    """Validate scores for a scale.

    Parameters
    ----------
    scores : array-like of shape (n,)
    scale : {"probability", "score", "standardized", "ranks"} or float
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    ScaledScores

    Examples
    --------
    >>> scale_scores([10, 30], "standardized").unit
    10.0
    """
    values = check_vector(scores, name="scores")
    if not isinstance(scale, str):
        return ScaledScores(values, check_real(scale, name="scale", strict=True), None)
    check_choice(scale, SCALES, name="scale")
    if scale == "score":
        return ScaledScores(values, 1.0, None)
    weights = check_weights(sample_weight, size=values.size)
    if scale == "ranks":
        return ScaledScores(pooled_ranks(values, weights), 1.0, (0.0, 1.0))
    if scale == "standardized":
        deviation = float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))
        return ScaledScores(values, deviation or 1.0, None)
    n_outside = int(np.count_nonzero((values < 0) | (values > 1)))
    if n_outside:
        raise ValueError(
            f"scores has {n_outside} of {values.size} values outside [0, 1]; probabilities are needed. For other "
            "scores say in which unit they are measured: scale='score', 'standardized', 'ranks' or a number."
        )
    return ScaledScores(values, 1.0, (0.0, 1.0))
