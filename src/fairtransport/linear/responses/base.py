"""What a linear model predicts, one of two classes or a real number, and the units in which it is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.duals import Duals
    from fairtransport.linear.losses import Loss
    from fairtransport.strata import Strata

__all__ = ["Response", "ScoredResponse"]


class ScoredResponse(ABC):
    """What the evaluation of scores and the words about a training need to know of a response.

    Attributes
    ----------
    loss_name, quality_name, quality_text : str
        Names of the loss and of a measure of quality, as fitted attributes and texts show them.
    repair : str
        Name of the estimator that repairs models of this kind.
    aware_option : str
        The parameter with which such a model uses the group at prediction.
    shrinkage_remedies : str
        What helps where scores shrink instead of becoming alike.
    score_unit, loss_unit : float
        A score of 1 and a loss of 1, in units of y.
    """

    loss_name: ClassVar[str]
    quality_name: ClassVar[str]
    quality_text: ClassVar[str]
    repair: ClassVar[str]
    aware_option: ClassVar[str] = "group_specific=True"
    shrinkage_remedies: ClassVar[str] = (
        "scale='standardized', own weights for each group (group_specific=True) or repair with the group at hand"
    )

    @property
    def score_unit(self) -> float:
        """A score of 1, in units of y."""
        return 1.0

    @property
    def loss_unit(self) -> float:
        """A loss of 1, in (squared) units of y."""
        return 1.0

    @abstractmethod
    def mean_loss(
        self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> float:
        """Return the mean loss of scores."""

    @abstractmethod
    def constant_loss(self, outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the mean loss of the best constant."""

    @abstractmethod
    def quality(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the measure of quality."""

    def further_disparities(self, pair: tuple[float, float]) -> dict[str, tuple[float, float]]:  # noqa: ARG002
        """Return a pair of disparities in other units, by name."""
        return {}


class Response(ScoredResponse):
    """The response of a linear model: its loss, and the map between y as given and the outcomes that training sees.

    Attributes
    ----------
    loss : Loss
    summary_metrics : tuple of str
        Metrics that the summary of a fitted model shows.
    needed_attributes, needed_estimator : tuple of str, str
        What an initial model has beside ``coef_`` and ``intercept_``, and what it is, in words.
    """

    loss: ClassVar[Loss]
    summary_metrics: ClassVar[tuple[str, ...]]
    needed_attributes: ClassVar[tuple[str, ...]]
    needed_estimator: ClassVar[str]

    def mean_loss(
        self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> float:
        """Return the mean loss of scores."""
        return self.loss.mean(scores, outcomes, shares)

    def constant_loss(self, outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the mean loss of the best constant."""
        return self.loss.best_constant(outcomes, shares)[1]

    @abstractmethod
    def outcomes(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return what the loss compares linear predictors with."""

    @abstractmethod
    def to_given(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights, the intercept last, for predictions in units of y."""

    @abstractmethod
    def to_standard(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights for standardised predictions: the inverse of `to_given`."""

    @abstractmethod
    def scores_as_given(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores in units of y."""

    @abstractmethod
    def scores_of_given(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of predictions in units of y: the inverse of `scores_as_given`."""

    def duals_as_given(self, duals: Duals) -> Duals:
        """Return dual potentials as functions of predictions in units of y."""
        low = float(self.scores_as_given(np.zeros(1))[0])
        return replace(duals, center=low + self.score_unit * duals.center, unit=self.score_unit * duals.unit)

    def duals_of_given(self, duals: Duals) -> Duals:
        """Return dual potentials as functions of scores: the inverse of `duals_as_given`."""
        low = float(self.scores_as_given(np.zeros(1))[0])
        return replace(duals, center=(duals.center - low) / self.score_unit, unit=duals.unit / self.score_unit)

    @abstractmethod
    def fold_columns(self, outcomes: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
        """Return columns within whose values folds are balanced."""

    def criterion_within_strata(self, criterion: str) -> str:
        """Return the criterion that remains to be met within the strata of `compared_strata`."""
        return criterion

    def compared_strata(self, y: NDArray[Any], strata: Strata | None, criterion: str, n_groups: int) -> Strata | None:  # noqa: ARG002
        """Return the strata within which groups are compared: those of the user and, where y is cut, its ranges."""
        return strata

    def n_y_columns(self, strata: Strata) -> int:  # noqa: ARG002
        """Return how many columns of the strata of a fitted model are ranges of y."""
        return 0

    def stratum_columns(self, y: NDArray[Any] | None, strata: Any, known: Strata) -> Any:  # noqa: ARG002
        """Return the columns of new rows from which the strata of a fitted model are read."""
        return strata

    # ---------------------------------------------------------------- initial models

    @abstractmethod
    def default_estimator(self) -> Any:
        """Return an unfitted linear model."""

    @abstractmethod
    def estimator_with(self, theta: NDArray[np.float64]) -> Any:
        """Return a fitted linear model with these weights, in units of y."""

    @abstractmethod
    def check_estimator(self, estimator: Any) -> None:
        """Raise TypeError for a model of the other kind, with the name of the class that takes it."""

    @abstractmethod
    def check_shape(self, model: Any, coef: NDArray[np.float64], n_features: int) -> None:
        """Raise ValueError unless a fitted model has these columns and, if any, the classes of y."""

    @abstractmethod
    def check_predictions(self, model: Any, X: Any, predictors: NDArray[np.float64]) -> None:
        """Raise TypeError unless a model predicts what its weights say."""

    @abstractmethod
    def ridge_of(self, model: Any, total: float) -> float:
        """Return the ridge with which a model was fitted, for the mean loss of rows of this total weight."""
