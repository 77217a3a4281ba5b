"""The logistic loss of all rows at once, compiled; `logistic_loss_plain` says what it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from fairtransport.transport.kernels import exponential

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["logistic_loss", "logistic_loss_plain", "sigmoid"]

_MATH = {"reassoc", "contract", "nsz", "arcp"}
_FACTORS = 512  # of at most 2 each: their product is within double precision


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute the logistic function without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def logistic_loss_plain(
    logits: NDArray[np.float64], labels: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the weighted sum of the losses log(1 + exp(z)) - y z, and the scores.

    Examples
    --------
    >>> loss, scores = logistic_loss_plain(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> round(loss, 4), scores.round(3).tolist()
    (0.5032, [0.5, 0.731])
    """
    losses = np.logaddexp(0.0, logits) - labels * logits
    return float(shares @ losses), sigmoid(logits)


@njit(cache=True, nogil=True, fastmath=_MATH)
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
