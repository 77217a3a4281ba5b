"""Losses of boosted trees: values, derivatives with respect to the margins, and the link to the predictions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.kernels.logistic import logistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["LOSSES", "LogLoss", "Loss", "make_loss", "plain_objective"]

LOSSES = ("log_loss", "squared_error", "absolute_error", "poisson", "tweedie")

_SMALLEST_RESIDUAL = 0.05  # of the absolute loss, in standard deviations of y: closer rows have the curvature of these
_CURVATURE_FACTOR = math.exp(0.7)  # of losses with a logarithmic link, as in both libraries


class Loss(ABC):
    """The loss of a row with margin z, prediction p(z) and label or number y.

    Attributes
    ----------
    is_logistic : bool
        Whether predictions are probabilities of class 1.
    link : {"identity", "log"}
        What maps predictions to margins, for losses of real numbers.
    """

    is_logistic = False
    link = "identity"

    def predictions(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the predictions at these margins."""
        return margins

    def prediction_slopes(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative of each prediction with respect to its margin."""
        return np.ones_like(predictions)

    @abstractmethod
    def values(self, margins: NDArray[np.float64], y: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the loss of each row, zero or more."""

    @abstractmethod
    def derivatives(
        self, margins: NDArray[np.float64], y: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the first derivative of each row's loss with respect to its margin, and a positive curvature."""

    def constant(self, y: NDArray[np.floating], weights: NDArray[np.float64] | None) -> float:
        """Return the margin of the best constant prediction."""
        return float(np.average(y, weights=weights))

    def information(
        self, margins: NDArray[np.float64], y: NDArray[np.floating], weights: NDArray[np.float64] | None
    ) -> float:
        """Return the mean loss of the best constant minus that of the margins, at least 1 % of the former."""
        best = np.full(len(y), self.constant(y, weights))
        constant, own = (float(np.average(self.values(z, y), weights=weights)) for z in (best, margins))
        return max(constant - own, 0.01 * constant)


class LogLoss(Loss):
    """Log-loss of labels 0 and 1."""

    is_logistic = True

    def predictions(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of class 1."""
        scores = np.empty_like(margins)
        logistic(margins, scores)
        return scores

    def prediction_slopes(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return p (1 - p)."""
        return predictions * (1.0 - predictions)

    def values(self, margins: NDArray[np.float64], y: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return log(1 + exp(z)) - y z."""
        return np.asarray(np.logaddexp(0.0, margins) - y * margins)

    def derivatives(
        self, margins: NDArray[np.float64], y: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return p - y and p (1 - p)."""
        scores = self.predictions(margins)
        return scores - y, self.prediction_slopes(scores)

    def constant(self, y: NDArray[np.floating], weights: NDArray[np.float64] | None) -> float:
        """Return the logit of the share of class 1."""
        rate = float(np.average(y, weights=weights))
        return math.log(rate / (1.0 - rate))


class SquaredError(Loss):
    """Half of the squared error."""

    def values(self, margins: NDArray[np.float64], y: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return (z - y)^2 / 2."""
        return np.asarray(0.5 * (margins - y) ** 2)

    def derivatives(
        self, margins: NDArray[np.float64], y: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return z - y and 1."""
        return margins - y, np.ones_like(margins)


class AbsoluteError(Loss):
    r"""Absolute error.

    Notes
    -----
    With the residual r, :math:`|r'| \le r'^2 / 2|r| + |r| / 2` for any new residual, so :math:`1/|r|` is a curvature
    that bounds the loss from above. The step of a leaf then goes towards the median of its rows.
    """

    def values(self, margins: NDArray[np.float64], y: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return abs(z - y)."""
        return np.abs(margins - y)

    def derivatives(
        self, margins: NDArray[np.float64], y: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sign of the residual, and 1 over its size."""
        residuals = margins - y
        return np.sign(residuals), 1.0 / np.maximum(np.abs(residuals), _SMALLEST_RESIDUAL)

    def constant(self, y: NDArray[np.floating], weights: NDArray[np.float64] | None) -> float:
        """Return the median."""
        order = np.argsort(y)
        masses = np.cumsum(np.ones(len(y)) if weights is None else weights[order])
        return float(y[order][np.searchsorted(masses, 0.5 * masses[-1])])


class _LogLink(Loss):
    """A loss of positive predictions exp(z)."""

    link = "log"

    def predictions(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return exp(z)."""
        return np.exp(margins)

    def prediction_slopes(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the predictions."""
        return predictions

    def constant(self, y: NDArray[np.floating], weights: NDArray[np.float64] | None) -> float:
        """Return the logarithm of the mean."""
        return math.log(float(np.average(y, weights=weights)))


class PoissonLoss(_LogLink):
    """Half of the Poisson deviance."""

    def values(self, margins: NDArray[np.float64], y: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return exp(z) - y z - y + y log(y)."""
        return np.asarray(np.exp(margins) - y * margins - y + y * np.log(np.where(y > 0, y, 1.0)))

    def derivatives(
        self, margins: NDArray[np.float64], y: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return exp(z) - y and exp(z + 0.7)."""
        predictions = np.exp(margins)
        return predictions - y, _CURVATURE_FACTOR * predictions


class TweedieLoss(_LogLink):
    """Half of the Tweedie deviance.

    Parameters
    ----------
    power : float
        Variance is proportional to this power of the mean, between 1 and 2.
    """

    def __init__(self, power: float) -> None:
        self.power = power

    def values(self, margins: NDArray[np.float64], y: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the half deviance."""
        power = self.power
        own = np.exp((2.0 - power) * margins) / (2.0 - power) - y * np.exp((1.0 - power) * margins) / (1.0 - power)
        return np.asarray(own + y ** (2.0 - power) / ((1.0 - power) * (2.0 - power)))

    def derivatives(
        self, margins: NDArray[np.float64], y: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the derivatives; both terms of the second one are positive."""
        power = self.power
        rising, falling = np.exp((2.0 - power) * margins), y * np.exp((1.0 - power) * margins)
        return rising - falling, (2.0 - power) * rising + (power - 1.0) * falling


def make_loss(name: str, tweedie_variance_power: float = 1.5) -> Loss:
    """Return the loss of a name among `LOSSES`."""
    if name == "tweedie":
        return TweedieLoss(tweedie_variance_power)
    losses: dict[str, Callable[[], Loss]] = {
        "log_loss": LogLoss,
        "squared_error": SquaredError,
        "absolute_error": AbsoluteError,
        "poisson": PoissonLoss,
    }
    return losses[name]()


def plain_objective(loss: Loss) -> Callable[..., tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Return a loss as a custom objective of labels, margins and weights."""

    def objective(
        labels: NDArray[np.floating], margins: NDArray[np.floating], weights: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        gradient, curvature = loss.derivatives(np.asarray(margins, dtype=np.float64), labels)
        if weights is not None:
            gradient, curvature = weights * gradient, weights * curvature
        return gradient.astype(np.float32), np.maximum(curvature, 1e-16).astype(np.float32)

    return objective
