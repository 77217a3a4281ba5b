"""The logistic function and the logistic loss, as formulas; the compiled twins are in `transport.kernels.logistic`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["logistic_loss", "mixed_logits", "sigmoid"]


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute the logistic function without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def logistic_loss(
    logits: NDArray[np.float64], labels: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the weighted sum of the losses log(1 + exp(z)) - y z, and the scores.

    Examples
    --------
    >>> loss, scores = logistic_loss(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> round(loss, 4), scores.round(3).tolist()
    (0.5032, [0.5, 0.731])
    """
    losses = np.logaddexp(0.0, logits) - labels * logits
    return float(shares @ losses), sigmoid(logits)


def mixed_logits(initial: NDArray[np.float64], trained: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
    """Return the logit of the mean of two probabilities, exact also where both are near 0 or 1."""
    with np.errstate(divide="ignore"):  # log of 0: the other one has all the weight
        less, more = np.log1p(-amount), np.log(amount)
    yes = np.logaddexp(less - np.logaddexp(0.0, -initial), more - np.logaddexp(0.0, -trained))
    no = np.logaddexp(less - np.logaddexp(0.0, initial), more - np.logaddexp(0.0, trained))
    return np.asarray(yes - no)
