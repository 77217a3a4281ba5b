"""What boosted trees predict, for the evaluation of their scores and the words about their training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fairtransport.linear.responses.base import ScoredResponse
from fairtransport.metrics.ranks import pooled_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._losses import Loss

__all__ = ["BoostedClasses", "BoostedNumbers", "BoostedResponse"]


@dataclass(frozen=True, eq=False)
class BoostedResponse(ScoredResponse):
    """The response of boosted trees, whose scores are predictions in the units of the loss."""

    aware_option: ClassVar[str] = "repair_amount"
    shrinkage_remedies: ClassVar[str] = "scale='standardized' or a repair with the group at hand (repair_amount)"
    bounds: ClassVar[tuple[float, float] | None] = None

    loss: Loss

    def _margins(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores

    def mean_loss(
        self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> float:
        """Return the mean loss of predictions."""
        return float(shares @ self.loss.values(self._margins(scores), outcomes))

    def constant_loss(self, outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the mean loss of the best constant."""
        margin = np.full(len(outcomes), self.loss.constant(outcomes, shares))
        return float(shares @ self.loss.values(margin, outcomes))


@dataclass(frozen=True, eq=False)
class BoostedClasses(BoostedResponse):
    """Labels 0 and 1; scores are probabilities."""

    loss_name: ClassVar[str] = "log_loss"
    quality_name: ClassVar[str] = "auc"
    quality_text: ClassVar[str] = "AUC"
    repair: ClassVar[str] = "QuantileRepairClassifier"
    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def _margins(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.clip(scores, 1e-15, 1.0 - 1e-15)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def quality(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the area under the ROC curve, from the mean rank of the positive rows."""
        rate = float(shares @ outcomes)
        mean = float((shares * outcomes) @ pooled_ranks(scores, shares)) / rate
        return (mean - 0.5 * rate) / (1.0 - rate)


@dataclass(frozen=True, eq=False)
class BoostedNumbers(BoostedResponse):
    """Numbers; scores are predictions of y less its mean, divided by its standard deviation.

    Attributes
    ----------
    y_scale, deviation : float
        By which y was divided, and its standard deviation.
    """

    loss_name: ClassVar[str] = "loss"
    quality_name: ClassVar[str] = "r2"
    quality_text: ClassVar[str] = "R2"
    repair: ClassVar[str] = "QuantileRepairRegressor"

    y_scale: float
    deviation: float

    @property
    def score_unit(self) -> float:
        """A prediction of 1, in units of y."""
        return self.y_scale

    def _margins(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores if self.loss.link == "identity" else np.log(np.maximum(scores, 1e-300))

    def quality(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the coefficient of determination."""
        mean = float(shares @ outcomes)
        return 1.0 - float(shares @ (outcomes - scores) ** 2) / float(shares @ (outcomes - mean) ** 2)

    def further_disparities(self, pair: tuple[float, float]) -> dict[str, tuple[float, float]]:
        """Return a pair of disparities in standard deviations of y."""
        return {"standardized_disparity": (pair[0] / self.deviation, pair[1] / self.deviation)}
