"""Errors of models on held-out rows: of classifiers, or of regressors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from fairtransport.linear.responses import RealResponse
from fairtransport.metrics import error_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.strata import Strata

__all__ = ["ClassificationErrors", "HeldOutErrors", "RegressionErrors"]


class HeldOutErrors(ABC):
    """How models are judged on held-out rows.

    Attributes
    ----------
    y : ndarray of shape (n_rows,)
        As the estimator is given it.
    metrics : tuple of str
        Names of the errors.
    scale : str
        Unit of distances between scores, as in `fairtransport.metrics`.
    """

    y: NDArray[Any]
    metrics: ClassVar[tuple[str, ...]]
    scale: ClassVar[str]

    @property
    @abstractmethod
    def halves(self) -> NDArray[np.bool_]:
        """A binary column by which folds are stratified."""

    @abstractmethod
    def measure(
        self, scores: NDArray[np.float64], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> dict[str, float]:
        """Return the errors of scores of some rows."""

    @abstractmethod
    def information_kept(
        self, records: dict[str, list[float]], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> list[float]:
        """Return the gain in loss over a constant of each model, relative to that of the first."""

    @abstractmethod
    def compared_within(
        self, criterion: str, strata: Strata | None, n_groups: int
    ) -> tuple[str, NDArray[np.int64] | None, Strata | None]:
        """Return a criterion, labels and strata of all rows, with which it is resolved."""


@dataclass(frozen=True, eq=False)
class ClassificationErrors(HeldOutErrors):
    """Errors of probabilities: error rate at a threshold, log-loss and AUC."""

    metrics = ("error_rate", "log_loss", "auc")
    scale = "probability"

    y: NDArray[Any]
    positive: NDArray[np.bool_]
    threshold: float

    @property
    def halves(self) -> NDArray[np.bool_]:
        """Whether the label is positive."""
        return self.positive

    def measure(
        self, scores: NDArray[np.float64], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> dict[str, float]:
        """Return error rate, log-loss and AUC."""
        positive = self.positive[rows]
        return {
            "error_rate": error_rate(positive, scores, self.threshold, sample_weight=weights),
            "log_loss": float(log_loss(positive, scores, labels=[False, True], sample_weight=weights)),
            "auc": float(roc_auc_score(positive, scores, sample_weight=weights)),
        }

    def information_kept(
        self, records: dict[str, list[float]], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> list[float]:
        """Return shares of the gain in log-loss."""
        rate = float(np.average(self.positive[rows], weights=weights))
        return _shares_of_gain(-(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate)), records["log_loss"])

    def compared_within(
        self,
        criterion: str,
        strata: Strata | None,
        n_groups: int,  # noqa: ARG002
    ) -> tuple[str, NDArray[np.int64] | None, Strata | None]:
        """Return the criterion with the labels."""
        return criterion, self.positive.astype(np.int64), strata


@dataclass(frozen=True, eq=False)
class RegressionErrors(HeldOutErrors):
    """Errors of real-valued predictions, in units of y: root mean squared and mean absolute error, and R2."""

    metrics = ("rmse", "mae", "r2")
    scale = "score"

    y: NDArray[np.float64]

    @property
    def halves(self) -> NDArray[np.bool_]:
        """Whether y is above its median."""
        return np.asarray(self.y > np.median(self.y))

    def measure(
        self, scores: NDArray[np.float64], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> dict[str, float]:
        """Return root mean squared error, mean absolute error and R2."""
        residuals = self.y[rows] - scores
        squared = float(np.average(residuals**2, weights=weights))
        return {
            "rmse": float(np.sqrt(squared)),
            "mae": float(np.average(np.abs(residuals), weights=weights)),
            "r2": 1.0 - squared / self._variance(rows, weights),
        }

    def information_kept(
        self, records: dict[str, list[float]], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> list[float]:
        """Return shares of the gain in squared error."""
        return _shares_of_gain(self._variance(rows, weights), [error**2 for error in records["rmse"]])

    def compared_within(
        self, criterion: str, strata: Strata | None, n_groups: int
    ) -> tuple[str, NDArray[np.int64] | None, Strata | None]:
        """Return demographic parity within strata, to which ranges of y belong where the criterion compares those."""
        response = RealResponse.of(self.y, np.full(self.y.size, 1.0 / self.y.size))
        within = response.compared_strata(self.y, strata, criterion, n_groups)
        return response.criterion_within_strata(criterion), None, within

    def _variance(self, rows: NDArray[np.int64], weights: NDArray[np.float64] | None) -> float:
        y = self.y[rows]
        variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
        if not variance > 0.0:
            raise ValueError("y is constant among the held-out rows of a fold; use fewer folds.")
        return variance


def _shares_of_gain(constant: float, losses: list[float]) -> list[float]:
    gain = max(constant - losses[0], 0.01 * constant)
    return [float((constant - loss) / gain) for loss in losses]
