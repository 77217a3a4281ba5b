r"""Losses of linear models: logistic for classifiers, squared for regressors.

A linear model gives each row a linear predictor :math:`\eta = \theta \cdot (x, 1)`. A loss says what it is compared
with (0 or 1; a standardised y) and which increasing map turns it into the score that penalties compare.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairtransport.transport.kernels.logistic import logistic_loss
from fairtransport.transport.links import AFFINE, AFFINE_SLOPE, LOGISTIC, affine_score
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LOSSES", "LogisticLoss", "Loss", "SquaredLoss"]

_SATURATED = 0.01  # least curvature that the solvers assume: saturated scores have none here, but nearby


class Loss(ABC):
    """A loss, and the map of the linear predictor to the score.

    Attributes
    ----------
    name : str
        As model files store it.
    link : int
        Code of the map for the compiled loop; see `fairtransport.transport.links`.
    max_curvature : float
        Largest second derivative with respect to the linear predictor.
    bounds : (float, float) or None
        Lowest and highest score; None where there is none.
    """

    name: ClassVar[str]
    link: ClassVar[int]
    max_curvature: ClassVar[float]
    bounds: ClassVar[tuple[float, float] | None]

    @abstractmethod
    def terms(
        self,
        predictors: NDArray[np.float64],
        outcomes: NDArray[np.float64],
        shares: NDArray[np.float64],
        *,
        equal_shares: bool,
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean loss, the scores, and the derivative of the former with respect to each predictor."""

    @abstractmethod
    def losses(self, predictors: NDArray[np.float64], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of each row."""

    @abstractmethod
    def residuals(self, predictors: NDArray[np.float64], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative of each row's loss with respect to its predictor."""

    @abstractmethod
    def scores(self, predictors: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores."""

    @abstractmethod
    def predictors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the linear predictors of scores; of scores at a bound, that of a score next to it."""

    @abstractmethod
    def score_slopes(self, scores: NDArray[np.float64]) -> Any:
        """Return the derivative of each score with respect to its predictor."""

    @abstractmethod
    def curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivative of each row's loss with respect to its predictor."""

    @abstractmethod
    def mean(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the mean loss of scores."""

    @abstractmethod
    def best_constant(self, outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
        """Return the linear predictor of the best constant model, and its mean loss."""

    @abstractmethod
    def expected_gain(self, scores: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
        """Return the gain over a constant that calibrated scores expect to have, and the loss of the constant."""

    def solver_curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curvature, bounded from below."""
        return np.maximum(self.curvature(scores), _SATURATED)


class LogisticLoss(Loss):
    """Log-loss of labels 0 and 1; the score is a probability."""

    name = "logistic"
    link = LOGISTIC
    max_curvature = 0.25
    bounds = (0.0, 1.0)

    def terms(
        self,
        predictors: NDArray[np.float64],
        outcomes: NDArray[np.float64],
        shares: NDArray[np.float64],
        *,
        equal_shares: bool,
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """See `Loss.terms`."""
        scores, slopes = np.empty_like(predictors), np.empty_like(predictors)
        return logistic_loss(predictors, outcomes, shares, equal_shares, scores, slopes), scores, slopes

    def losses(self, predictors: NDArray[np.float64], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-loss of each row."""
        return np.asarray(np.logaddexp(0.0, predictors) - outcomes * predictors)

    def residuals(self, predictors: NDArray[np.float64], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probability less label."""
        return np.asarray(sigmoid(predictors) - outcomes)

    def scores(self, predictors: NDArray[Any]) -> NDArray[np.float64]:
        """Return probabilities."""
        return np.asarray(sigmoid(predictors))

    def predictors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return logits."""
        inside = np.clip(scores, 1e-6, 1.0 - 1e-6)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def score_slopes(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return s (1 - s)."""
        return scores * (1.0 - scores)

    def curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return s (1 - s)."""
        return scores * (1.0 - scores)

    def mean(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the mean log-loss."""
        inside = np.clip(scores, 1e-15, 1.0 - 1e-15)
        return float(-shares @ np.where(outcomes > 0.0, np.log(inside), np.log1p(-inside)))

    def best_constant(self, outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
        """Return the logit of the share of positive labels, and its entropy."""
        rate = float(shares @ outcomes)
        return float(np.log(rate / (1.0 - rate))), float(_entropy(rate))

    def expected_gain(self, scores: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
        """Return the entropy of the mean score less the mean entropy of the scores, and the former."""
        rate = np.clip(shares @ scores, 1e-12, 1.0 - 1e-12)
        constant = float(_entropy(rate))
        return constant - float(shares @ _entropy(np.clip(scores, 1e-12, 1.0 - 1e-12))), constant


class SquaredLoss(Loss):
    r"""Half of the squared error of a standardised y.

    Scores are the linear predictor in units in which three standard deviations of y to both sides of its mean are
    [0, 1], so that a strength, a kernel variance and a Huber width mean what they mean for probabilities.
    """

    name = "squared"
    link = AFFINE
    max_curvature = 1.0
    bounds = None

    def terms(
        self,
        predictors: NDArray[np.float64],
        outcomes: NDArray[np.float64],
        shares: NDArray[np.float64],
        *,
        equal_shares: bool,  # noqa: ARG002
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """See `Loss.terms`."""
        residuals = predictors - outcomes
        slopes = shares * residuals
        return 0.5 * float(slopes @ residuals), affine_score(predictors), slopes

    def losses(self, predictors: NDArray[np.float64], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return half of the squared error of each row."""
        return np.asarray(0.5 * (predictors - outcomes) ** 2)

    def residuals(self, predictors: NDArray[np.float64], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return prediction less outcome."""
        return np.asarray(predictors - outcomes)

    def scores(self, predictors: NDArray[Any]) -> NDArray[np.float64]:
        """Return the predictors in units of scores."""
        return np.asarray(affine_score(predictors))

    def predictors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the predictors."""
        return np.asarray((scores - 0.5) / AFFINE_SLOPE)

    def score_slopes(self, scores: NDArray[np.float64]) -> float:  # noqa: ARG002
        """Return the constant slope."""
        return AFFINE_SLOPE

    def curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ones."""
        return np.ones_like(scores)

    def mean(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return half of the mean squared error."""
        return float(shares @ self.losses(self.predictors(scores), outcomes))

    def best_constant(self, outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
        """Return the mean, and half of the variance."""
        mean = float(shares @ outcomes)
        return mean, 0.5 * float(shares @ (outcomes - mean) ** 2)

    def expected_gain(self, scores: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
        """Return half of the variance of the predictions, twice: nothing is known of the noise around them."""
        gain = self.best_constant(self.predictors(scores), shares)[1]
        return gain, gain


def _entropy(p: Any) -> Any:
    return -(p * np.log(p) + (1.0 - p) * np.log1p(-p))


#: Losses by name.
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (LogisticLoss(), SquaredLoss())}
