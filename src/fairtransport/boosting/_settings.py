"""The penalty and the response as an estimator's parameters describe them, for any part of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairtransport.boosting._constants import LARGE_TABLE, LARGE_TABLE_SHARES, SMALL_TABLE_SHARES
from fairtransport.boosting._group_probabilities import estimate_group_probabilities
from fairtransport.boosting._objective import (
    Loss,
    TransportObjective,
    learner_distance,
    make_loss,
    make_penalty,
    measure_unit,
    prediction_divisor,
)
from fairtransport.criteria.criterion import needs_labels
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.training.responses import ScoredResponse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._library import Library
    from fairtransport.boosting._training_data import ComparedRows, Targets, TrainingData
    from fairtransport.criteria import Criterion
    from fairtransport.criteria.comparisons import Comparisons
    from fairtransport.criteria.distance import Distance


@dataclass(frozen=True, eq=False)
class Settings:
    """The library, the unfitted estimator and the loss of a fit."""

    library: Library
    estimator: Any
    loss_name: str
    power: float
    patience: int | None

    @property
    def loss(self) -> Loss:
        """The loss."""
        return make_loss(self.loss_name, self.power)

    @property
    def n_rounds(self) -> int:
        """The number of rounds, or the largest."""
        return self.library.n_rounds(self.estimator)


@dataclass(frozen=True)
class RoundSchedule:
    """The number of rounds with the penalty, how many of them come before it, and over how many it increases."""

    n_rounds: int
    n_rows: int

    @property
    def _shares(self) -> tuple[float, float]:
        return LARGE_TABLE_SHARES if self.n_rows > LARGE_TABLE else SMALL_TABLE_SHARES

    @property
    def warmup(self) -> int:
        """Rounds that minimise the loss alone."""
        return round(self._shares[0] * self.n_rounds)

    @property
    def ramp(self) -> int:
        """Rounds over which the weight of the penalty increases."""
        return max(1, round(self._shares[1] * self.n_rounds))

    @property
    def full_weight(self) -> int:
        """Round from which on the penalty has its full weight."""
        return min(self.warmup + self.ramp, self.n_rounds)


@dataclass(frozen=True, eq=False)
class PlainReference:
    """What a plain model says about the penalty: factor, divisor, weighed pairs, compared rows, any fixed targets."""

    factor: float
    divisor: float
    comparisons: Comparisons
    compared: ComparedRows
    targets: Targets | None


@dataclass(frozen=True, eq=False)
class PenaltySettings:
    """The parameters of the penalty."""

    criterion: Criterion
    target: Any
    distance: str | Distance
    scale: str
    smooth_groups: bool

    def _distance(self, rows: TrainingData, loss: Loss) -> Distance:
        within = rows.strata is not None or needs_labels(self.criterion)
        return learner_distance(self.distance, within=within, is_logistic=loss.is_logistic)

    def refer_to(self, settings: Settings, rows: TrainingData, margins: NDArray[np.float64]) -> PlainReference:
        """Return the unit of the penalty and the targets, by the margins of a plain model."""
        loss, compared = settings.loss, rows.compare(self.criterion)
        predictions = loss.predictions(margins)
        divisor = prediction_divisor(loss, predictions, rows.weights)
        targets = compared.fixed_targets(self.target, predictions, divisor)
        penalty = make_penalty(self._distance(rows, loss), self.scale)
        pairs = compared.comparisons(targets)
        factor, weighed = measure_unit(penalty, loss, rows.labels, margins, pairs, divisor=divisor)
        return PlainReference(factor, divisor, weighed, compared, targets)

    def group_probabilities(
        self, settings: Settings, rows: TrainingData, reference: PlainReference, seed: int
    ) -> NDArray[np.float32] | None:
        """Return the probabilities of the groups given the features, or None where rows count for their group."""
        if not self.smooth_groups:
            return None
        return estimate_group_probabilities(settings.library, settings.estimator, rows, reference.compared, seed)

    def objective(
        self,
        settings: Settings,
        rows: TrainingData,
        reference: PlainReference,
        *,
        parity_weight: float,
        schedule: RoundSchedule,
        group_probabilities: NDArray[np.float32] | None,
    ) -> TransportObjective:
        """Return the objective of a training with the penalty."""
        return TransportObjective(
            rows.groups,
            criterion=self.criterion,
            strata=rows.strata,
            parity_weight=parity_weight,
            loss=settings.loss_name,
            tweedie_variance_power=settings.power,
            distance=self._distance(rows, settings.loss),
            scale=self.scale,
            warmup=schedule.warmup,
            ramp=schedule.ramp,
            group_probabilities=group_probabilities,
            unit=reference.factor,
            divisor=reference.divisor,
            comparisons=reference.comparisons,
        )


# What boosted trees predict, for the evaluation of their scores and the words about their training.


@dataclass(frozen=True, eq=False)
class BoostedResponse(ScoredResponse):
    """The response of boosted trees, whose scores are predictions in the units of the loss."""

    aware_option: ClassVar[str] = "repair=QuantileRepair()"
    shrinkage_remedies: ClassVar[str] = "scale='standardized' or a repair with the group at hand (repair=)"
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
    """Numbers; scores are predictions of y less its mean, divided by its standard deviation."""

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
