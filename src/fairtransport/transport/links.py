"""Maps of a linear predictor to the score that transport compares; compiled twins in `transport.kernels.links`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AFFINE", "AFFINE_SLOPE", "LOGISTIC", "affine_score", "score_and_slope"]

#: Codes of the maps for the compiled loop.
LOGISTIC, AFFINE = 0, 1

#: Slope of the affine map of real-valued predictions: three units to both sides of 0 have the scores [0, 1].
AFFINE_SLOPE = 1.0 / 6.0


def affine_score(predictors: NDArray[Any]) -> NDArray[Any]:
    """Return the scores of real-valued predictions.

    Examples
    --------
    >>> affine_score(np.array([-3.0, 0.0, 3.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 + AFFINE_SLOPE * predictors


def score_and_slope(link: int, predictors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return scores within [0, 1], where dual potentials are defined, and what their gradients are multiplied with.

    Predictions beyond the range count as if they were at its end, but the gradient reaches them.

    Examples
    --------
    >>> scores, slopes = score_and_slope(AFFINE, np.array([0.0, 30.0]))
    >>> scores.tolist(), slopes.round(3).tolist()
    ([0.5, 1.0], [0.167, 0.167])
    """
    if link == AFFINE:
        return np.clip(affine_score(predictors), 0.0, 1.0), np.full_like(predictors, AFFINE_SLOPE)
    scores = sigmoid(predictors)
    return scores, scores * (1.0 - scores)
