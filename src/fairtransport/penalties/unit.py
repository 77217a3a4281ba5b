"""The unit of a parity weight: the information of an initial model, in log-loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["information_of_features"]


def information_of_features(
    labels: NDArray[Any], scores: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> float:
    """Return the log-loss of the best constant minus that of the scores, at least 1 % of the former.

    Examples
    --------
    >>> import numpy as np
    >>> round(information_of_features(np.array([0, 1]), np.array([0.0, 1.0])), 3)  # all of log 2
    0.693
    """
    labels = labels.astype(np.float64)
    inside = np.clip(scores, 1e-12, 1.0 - 1e-12)
    losses = -np.where(labels > 0, np.log(inside), np.log1p(-inside))
    rate = float(np.average(labels, weights=weights))
    constant = -(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate))
    return float(max(constant - float(np.average(losses, weights=weights)), 0.01 * constant))
