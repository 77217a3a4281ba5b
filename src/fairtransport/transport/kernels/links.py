"""Maps of linear predictors to scores; the plain twin is `fairtransport.transport.links.score_and_slope`."""

from __future__ import annotations

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels.logistic import logistic
from fairtransport.transport.links import AFFINE, AFFINE_SLOPE

__all__ = ["write_score_slopes", "write_scores"]

_AFFINE, _SLOPE = AFFINE, AFFINE_SLOPE


@cached_njit(nogil=True)
def write_scores(link, predictors, scores):
    """Write the scores, within [0, 1], of the predictors."""
    if link != _AFFINE:
        logistic(predictors, scores)
        return
    real = scores.dtype.type
    zero, half, one, slope = real(0), real(0.5), real(1), real(_SLOPE)
    for i in range(scores.shape[0]):
        scores[i] = max(min(half + slope * predictors[i], one), zero)


@cached_njit(nogil=True)
def write_score_slopes(link, scores, slopes):
    """Write what the gradient with respect to each score is multiplied with."""
    real = scores.dtype.type
    one, slope = real(1), real(_SLOPE)
    if link == _AFFINE:
        for i in range(scores.shape[0]):
            slopes[i] = slope
    else:
        for i in range(scores.shape[0]):
            slopes[i] = scores[i] * (one - scores[i])
