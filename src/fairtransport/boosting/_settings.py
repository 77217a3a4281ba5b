"""The penalty, with probabilities of groups, and the response, as parameters describe them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._labels import real_targets, two_classes
from fairtransport._sklearn import group_cells
from fairtransport._validation import check_weights
from fairtransport.boosting import _constants as const
from fairtransport.boosting._objective import (
    Loss,
    TransportObjective,
    learner_distance,
    make_penalty,
    measure_unit,
    moments,
    prediction_divisor,
)
from fairtransport.boosting._training_data import ComparedRows, Targets, TrainingData, deal, hard_probabilities
from fairtransport.criteria import Criterion
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import needs_labels
from fairtransport.criteria.distance import Distance
from fairtransport.training.responses import ScoredClasses, ScoredNumbers, ScoredResponse

if TYPE_CHECKING:
    from fairtransport.boosting._libraries import Library


class RoundSchedule(NamedTuple):
    """The rounds of a training, how many of them come before the penalty, and over how many its weight increases."""

    n_rounds: int
    warmup: int
    ramp: int

    @classmethod
    def of(cls, n_rounds: int, n_rows: int) -> RoundSchedule:
        """Return the schedule of a table with so many rows."""
        before, rising = const.LARGE_TABLE_SHARES if n_rows > const.LARGE_TABLE else const.SMALL_TABLE_SHARES
        return cls(n_rounds, round(before * n_rounds), max(1, round(rising * n_rounds)))

    @property
    def full_weight(self) -> int:
        """Round from which on the penalty has its full weight."""
        return min(self.warmup + self.ramp, self.n_rounds)


@dataclass(frozen=True, eq=False)
class PlainReference:
    """The scale of the penalty by a plain model: factor, divisor, weighed pairs, compared rows, any fixed targets."""

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

    def refer_to(self, library: Library, rows: TrainingData, margins: Floats) -> PlainReference:
        """Return the unit of the penalty and the targets, by the margins of a plain model."""
        loss, compared = library.loss, rows.compare(self.criterion)
        predictions = loss.predictions(margins)
        divisor = prediction_divisor(loss, predictions, rows.weights)
        targets = compared.fixed_targets(self.target, predictions, divisor)
        penalty = make_penalty(
            self._distance(rows, loss), self.scale, n_groups=len(rows.groups), is_logistic=loss.is_logistic
        )
        pairs = compared.comparisons(targets)
        factor, weighed = measure_unit(penalty, loss, rows.labels, margins, pairs, divisor=divisor)
        return PlainReference(factor, divisor, weighed, compared, targets)

    def objective(
        self,
        library: Library,
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
            loss=library.loss_name,
            tweedie_variance_power=library.power,
            distance=self._distance(rows, library.loss),
            scale=self.scale,
            warmup=schedule.warmup,
            ramp=schedule.ramp,
            group_probabilities=group_probabilities,
            unit=reference.factor,
            divisor=reference.divisor,
            comparisons=reference.comparisons,
        )


# Probabilities of the groups given the features (and label and stratum, where groups are compared within these), by
# cross-fitting: no model predicts rows that it was trained on.


class GroupModels:
    """Models of the groups, trained once for all parts of a table, where ``held_out`` is a row's part or -1.

    A row's probabilities are by models that have seen neither its block nor the rows that its part holds out. Each of
    several parts is a block with a model of its own; else the rows that no part holds out are dealt into blocks, and a
    model is trained on all of these but one.
    """

    def __init__(self, library: Library, rows: TrainingData, penalty: PenaltySettings, held_out: Ints) -> None:
        self._library, self._rows, self._penalty, self._held_out = library, rows, penalty, held_out

    def probabilities(self, rows: TrainingData, positions: Ints, part: int = -1) -> NDArray[np.float32] | None:
        """Return those of rows at these positions that train in a part; None where rows count for their group.

        They also do where features of a large table tell the group.
        """
        if not self._penalty.smooth_groups:
            return None
        groups, compared = rows.groups, rows.compare(self._penalty.criterion)
        total = np.zeros((self._rows.groups.n_rows, len(groups) + 1), dtype=np.float32)  # the last is "in no group"
        for blocks, others, known, shares in self._predictions:
            if part not in blocks:
                total[np.ix_(others, known)] += shares
        probabilities = total[positions]
        n_models = np.rint(probabilities.sum(axis=1, keepdims=True) / len(groups.memberships))
        probabilities = probabilities[:, :-1] / np.maximum(n_models, 1.0)
        own, unknown = hard_probabilities(groups), ~probabilities.any(axis=0)
        probabilities = np.where(unknown | (n_models == 0.0), own, probabilities)
        if len(self._held_out) > const.LARGE_TABLE and (own * probabilities).sum() >= const.KNOWN_SHARE * own.sum():
            return None
        if any(part.label is not None or part.stratum is not None for part in compared.resolved.compared):
            _match_totals(probabilities, rows, compared)
        return probabilities

    @cached_property
    def _predictions(self) -> list[tuple[Ints, Ints, Ints, NDArray[np.float32]]]:
        """Of each model: the blocks that it was trained on, other rows, the groups that it knows, and their shares."""
        rows, blocks, result = self._rows, self._held_out.copy(), []
        n_parts, everywhere = int(blocks.max()) + 1, np.arange(len(blocks))
        cells, rest = 2 * group_cells(rows.groups) + (rows.labels > np.mean(rows.labels)), np.flatnonzero(blocks < 0)
        n_blocks = const.GROUP_FOLDS_OF_LARGE if len(blocks) > const.LARGE_TABLE else const.GROUP_FOLDS
        numbers = np.arange(n_parts) if n_parts > 1 else 1 + np.arange(n_blocks)
        blocks[rest] = numbers[deal(cells[rest], len(numbers))]
        compared = rows.compare(self._penalty.criterion).resolved.compared
        labels = sorted({part.label for part in compared if part.label is not None})
        for inside in [np.flatnonzero(rows.labels == label) for label in labels] or [everywhere]:
            chosen = rows.select(inside) if labels else rows
            if chosen.groups.counts.max() < const.GROUP_FOLDS:
                continue
            for codes in chosen.groups.memberships:
                predict = self._library.open_groups(chosen.X, codes, chosen.weights)
                for number in numbers:
                    seen = numbers[(numbers == number) == (n_parts > 1)]
                    is_seen = np.isin(blocks[inside], seen)
                    training, others = np.flatnonzero(is_seen), np.flatnonzero(~is_seen)
                    known = np.unique(codes[training])
                    shares = np.ones((len(others), len(known)))
                    if len(known) > 1:
                        known, shares = predict(training, others)
                    result.append((seen, inside[others], known, shares.astype(np.float32)))
        return result


def _match_totals(probabilities: NDArray[np.float32], rows: TrainingData, compared: ComparedRows) -> None:
    """Scale the probabilities of each group in each stratum, such that they sum to the group's rows there.

    The probabilities of a row sum to 1 for each sensitive column. Alternately scaling columns and rows is iterative
    proportional fitting.
    """
    groups = rows.groups
    weights = np.ones(groups.n_rows) if rows.weights is None else rows.weights
    of_columns = [set(np.unique(codes).tolist()) - {len(groups)} for codes in groups.memberships]
    for number, part in enumerate(compared.resolved.compared):
        inside = np.flatnonzero((compared.stratum == number) & (weights > 0.0))
        old, mass = probabilities[inside].astype(np.float64), weights[inside, None]
        probabilities[inside] = 0.0
        for of_column in of_columns:
            present = np.array([group for group in part.groups if group in of_column], dtype=np.int64)
            totals = [float(weights[part.rows[part.groups.index(group)]].sum()) for group in present.tolist()]
            in_no_group = float(mass.sum()) - sum(totals)
            table = np.column_stack((old[:, present], 1.0 - old[:, list(of_column)].sum(axis=1)))
            table = np.maximum(table, const.LEAST_PROBABILITY) * np.append(np.ones(len(present)), in_no_group > 0.0)
            for _ in range(const.N_SCALINGS):
                table *= np.append(totals, in_no_group) / np.maximum((mass * table).sum(axis=0), 1e-300)
                table /= table.sum(axis=1, keepdims=True)
            probabilities[np.ix_(inside, present)] = table[:, :-1]


# What boosted trees predict: how y is read, and what the evaluation and the words about a training need.


@dataclass(frozen=True, eq=False)
class BoostedResponse(ScoredResponse):
    """The response of boosted trees, whose scores are predictions in the units of the loss."""

    own_weights: ClassVar[str] = "repair of the trees' own scores (repair=QuantileRepair())"
    bounds: ClassVar[tuple[float, float] | None] = None

    loss: Loss

    def mean_loss(self, scores: Floats, outcomes: Floats, shares: Floats) -> float:
        """Return the mean loss of predictions."""
        return float(shares @ self.loss.values(self.loss.margins(scores), outcomes))

    def constant_loss(self, outcomes: Floats, shares: Floats) -> float:
        """Return the mean loss of the best constant."""
        margin = np.full(len(outcomes), self.loss.constant(outcomes, shares))
        return float(shares @ self.loss.values(margin, outcomes))


@dataclass(frozen=True, eq=False)
class BoostedClasses(ScoredClasses, BoostedResponse):
    """Two classes, the larger of which is class 1; scores are probabilities."""

    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    classes: NDArray[Any]

    @classmethod
    def of(cls, y: Any, weights: Any, library: Library, owner: str) -> BoostedClasses:  # noqa: ARG003
        """Return the classes of y."""
        return cls(library.loss, two_classes(y, owner)[1])

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes that predictions need."""
        return {"classes_": self.classes}

    def read(self, y: Any, owner: str) -> Ints:
        """Return 0 and 1 for the rows of y."""
        labels, classes = two_classes(y, owner)
        if not np.array_equal(classes, self.classes):
            raise ValueError(f"{owner} has other class labels than y.")
        return (labels == self.classes[1]).astype(np.int64)

    def row_weights(self, library: Library, rows: TrainingData) -> Floats | None:
        """Return the weights of the rows, with those of their classes."""
        if rows.weights is not None and not all(rows.weights[rows.labels == label].any() for label in (0, 1)):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
        return library.absorb_class_weights(self.classes, rows.labels, rows.weights)


@dataclass(frozen=True, eq=False)
class BoostedNumbers(ScoredNumbers, BoostedResponse):
    """Numbers; trees are trained on y less a center, divided by a scale."""

    loss_name: ClassVar[str] = "loss"

    name: str
    center: float
    scale: float
    deviation: float

    @classmethod
    def of(cls, y: Any, weights: Any, library: Library, owner: str) -> BoostedNumbers:
        """Return mean and standard deviation of y; with a logarithmic link 0 and the mean."""
        numbers = _checked_numbers(y, owner, library.loss)
        if weights is not None:
            weights = check_weights(weights, size=len(np.asarray(weights)))
            weights = weights if len(weights) == len(numbers) else None  # the rows are counted later
        mean, deviation = moments(numbers, weights)
        if library.loss.link == "log":
            return cls(library.loss, library.loss_name, 0.0, mean, deviation)
        if deviation == 0.0:
            raise ValueError("y has the same value in every row that has weight, so there is nothing to predict.")
        return cls(library.loss, library.loss_name, mean, deviation, deviation)

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes that predictions need."""
        return {"y_center_": self.center, "y_scale_": self.scale, "loss_": self.name}

    def read(self, y: Any, owner: str) -> Floats:
        """Return y in the units of the loss."""
        return np.asarray((_checked_numbers(y, owner, self.loss) - self.center) / self.scale)

    def row_weights(self, library: Library, rows: TrainingData) -> Floats | None:  # noqa: ARG002
        """Return the weights of the rows."""
        return rows.weights

    @property
    def score_unit(self) -> float:
        """A prediction of 1, in units of y."""
        return self.scale


def _checked_numbers(y: Any, owner: str, loss: Loss) -> Floats:
    if y is not None and np.asarray(y).size == 1:
        raise ValueError(f"{owner} needs at least 2 rows of y; got 1 sample.")
    numbers = real_targets(y, owner)
    n_negative = int(np.count_nonzero(numbers < 0)) if loss.link == "log" else 0
    if n_negative:
        raise ValueError(
            f"y has {n_negative} negative values; the Poisson and the Tweedie loss are for numbers of 0 and more. Use "
            "the squared or the absolute error."
        )
    return numbers
