"""The logistic function and the logistic loss; the plain twins are in `fairtransport.transport.logistic`."""

from __future__ import annotations

import numpy as np

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels._options import FAST_MATH
from fairtransport.transport.kernels.exponential import exp, exponential

__all__ = ["logistic", "logistic_loss"]

_FACTORS = 512  # of at most 2 each, so that their product is within double precision


@cached_njit(nogil=True, fastmath={"contract"}, error_model="numpy")
def logistic(logits, scores):
    """Write the logistic function of the logits into ``scores``."""
    real = scores.dtype.type
    one, limit = real(1), real(87 if scores.itemsize == 4 else 700)
    for i in range(scores.shape[0]):
        scores[i] = one / (one + exp(max(min(-logits[i], limit), -limit)))


@cached_njit(nogil=True, fastmath=FAST_MATH)
def logistic_loss(logits, labels, shares, equal, scores, slopes):
    """Return the loss; write the scores, and the derivative with respect to each logit.

    ``equal`` says that all shares are equal: then logarithms of products take the place of sums of logarithms.
    """
    n = logits.shape[0]
    for i in range(n):
        slopes[i] = max(-abs(logits[i]), -700.0)
    exponential(slopes)
    total, logarithms, product = 0.0, 0.0, 1.0
    for i in range(n):
        z, small = logits[i], slopes[i]
        if equal:
            product *= 1.0 + small
            if i % _FACTORS == 0:
                logarithms += np.log(product)
                product = 1.0
        else:
            logarithms += shares[i] * np.log1p(small)
        total += shares[i] * (max(z, 0.0) - labels[i] * z)
        score = 1.0 / (1.0 + small)
        if z < 0.0:
            score *= small
        scores[i] = score
        slopes[i] = shares[i] * (score - labels[i])
    if equal:
        logarithms = (logarithms + np.log(product)) * shares[0]
    return total + logarithms
