"""The interval of predictions whose cells are counted, and where predictions lie in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._losses import Loss

__all__ = ["PredictionGrid"]

_REACH = 16.0  # standard deviations from the mean beyond which real-valued predictions count as if they were there


@dataclass(frozen=True, eq=False)
class PredictionGrid:
    """Equal cells between the lowest and the highest prediction, or of [0, 1] for probabilities.

    Attributes
    ----------
    loss : Loss
    scale : float
        Divisor of the predictions.
    low, high : float
        Ends of the interval, after that division.
    """

    loss: Loss
    scale: float
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(
        cls, loss: Loss, margins: NDArray[np.float64], scale: float, weights: NDArray[np.float64] | None
    ) -> PredictionGrid:
        """Return the grid of the predictions at these margins."""
        if loss.is_logistic:
            return cls(loss, scale)
        predictions = loss.predictions(margins) / scale
        if weights is not None:
            predictions, weights = predictions[weights > 0], weights[weights > 0]
        center = float(np.average(predictions, weights=weights))
        reach = _REACH * float(np.sqrt(np.average((predictions - center) ** 2, weights=weights)))
        low, high = max(float(predictions.min()), center - reach), min(float(predictions.max()), center + reach)
        return cls(loss, scale, low, high if high > low else low + 1.0)

    def position(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where the predictions lie between the ends, from 0 to 1."""
        predictions = self.loss.predictions(margins)
        if self.loss.is_logistic:
            return predictions
        return np.clip((predictions / self.scale - self.low) / (self.high - self.low), 0.0, 1.0)
