"""The number of rounds and the weight of the penalty, chosen on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.boosting._early_stopping import BestRound, HeldOutObjective
from fairtransport.boosting._library import TrainingRun
from fairtransport.boosting._losses import plain_objective
from fairtransport.boosting._penalty_settings import RoundSchedule
from fairtransport.criteria import weigh_by_reliability
from fairtransport.linear.training.comparisons import GroupComparisons
from fairtransport.linear.training.evaluation import ScoreEvaluator
from fairtransport.linear.training.weight_path import AutomaticWeight, WeightPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.boosting._held_out_rows import HeldOutRows
    from fairtransport.boosting._library import BoosterRun
    from fairtransport.boosting._penalty_settings import PenaltySettings, Settings
    from fairtransport.boosting._responses import BoostedResponse
    from fairtransport.boosting._training_data import TrainingData

__all__ = ["Choice", "FairRounds", "RoundSearch", "make_evaluator", "training_run"]

#: Weights that are tried in turn.
WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0)

_FEWEST_STEPS = 6.0  # learning rate times rounds with the penalty, at least: fewer cannot move groups far
_BEYOND = 1.25  # times the rounds of the schedule, as far as early stopping looks


@dataclass(frozen=True, eq=False)
class FairRounds:
    """The rounds of a training with the penalty.

    Attributes
    ----------
    schedule : RoundSchedule
    n_rounds : int
        The best round.
    history : dict of ndarray
        ``round``, ``disparity`` and ``loss`` on held-out rows, from the full weight of the penalty on.
    """

    schedule: RoundSchedule
    n_rounds: int
    history: dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Choice:
    """What a search chose: rounds without and with the penalty, its weight, and why.

    Attributes
    ----------
    plain_rounds : int
    parity_weight : float
    rounds : FairRounds
    scores : ndarray of shape (n_held_out,)
        Of the held-out rows.
    path : WeightPath
    has_differences : bool
        Whether groups of the plain models differ by more than chance.
    reason : str
        Empty where the weight was given.
    reached : bool
        Whether its goal was reached.
    """

    plain_rounds: int
    parity_weight: float
    rounds: FairRounds
    scores: NDArray[np.float64]
    path: WeightPath
    has_differences: bool
    reason: str = ""
    reached: bool = True


def training_run(settings: Settings, rows: TrainingData) -> TrainingRun:
    """Return the rows as a library takes them, with the margin of the best constant."""
    constant = settings.loss.constant(rows.labels, rows.weights)
    return TrainingRun(rows.X, rows.labels, rows.weights, constant)


def make_evaluator(
    response: BoostedResponse, penalty: PenaltySettings, rows: TrainingData, plain: NDArray[np.float64]
) -> ScoreEvaluator:
    """Return what evaluates scores of these rows against those of a plain model."""
    resolved = penalty.compare(rows).resolved
    criterion = resolved.comparisons()
    pairwise = weigh_by_reliability(criterion, plain)
    n_rows = rows.groups.n_rows
    shares = np.full(n_rows, 1.0 / n_rows) if rows.weights is None else rows.weights / rows.weights.sum()
    comparisons = GroupComparisons(resolved, criterion, pairwise, pairwise)
    return ScoreEvaluator(response, rows.labels.astype(np.float64), shares, comparisons, plain)


class RoundSearch:
    """Boosters of all parts of a table, trained side by side and evaluated on the rows that they do not see.

    Each part is binned once. Boosters with different weights have the same seeds and see the same parts.

    Parameters
    ----------
    settings : Settings
    penalty : PenaltySettings
    held_out : HeldOutRows
    response : BoostedResponse
    seed : int
        Of the models of the groups.
    """

    def __init__(
        self,
        settings: Settings,
        penalty: PenaltySettings,
        held_out: HeldOutRows,
        response: BoostedResponse,
        seed: int,
    ) -> None:
        self._settings, self._penalty, self._held_out = settings, penalty, held_out
        self._response, self._seed = response, seed
        self._n_rows = held_out.n_rows
        self._tables = [
            settings.library.open_table(settings.estimator, training_run(settings, part.training), part.held_out.X)
            for part in held_out.parts
        ]
        self._train_plain()

    # ---------------------------------------------------------------- without the penalty

    def _train_plain(self) -> None:
        settings, rows = self._settings, self._held_out.rows
        runs, objective = [table.start() for table in self._tables], plain_objective(settings.loss)
        best = BestRound(first_round=1, patience=settings.patience)
        training: list[NDArray[np.float64]] = []
        for number in range(1, settings.n_rounds + 1):
            for run in runs:
                run.update(objective)
            if settings.patience is None and number < settings.n_rounds:
                best.record(0.0)
                continue
            margins = _margins(runs)
            losses = settings.loss.values(margins, rows.labels)
            if best.record(float(np.average(losses, weights=rows.weights))):
                self.plain_margins = margins
                training = [run.training_margins() for run in runs]
            if best.has_passed:
                break
        self.plain_rounds = best.number
        self._references = [
            self._penalty.refer_to(settings, part.training, margins)
            for part, margins in zip(self._held_out.parts, training, strict=True)
        ]

    @cached_property
    def evaluator(self) -> ScoreEvaluator:
        """Evaluates scores of the held-out rows against those of the plain models."""
        plain = self._settings.loss.predictions(self.plain_margins)
        return make_evaluator(self._response, self._penalty, self._held_out.rows, plain)

    @property
    def has_differences(self) -> bool:
        """Whether groups of a plain model differ by more than chance."""
        return any(reference.unit.factor > 0.0 for reference in self._references)

    # ---------------------------------------------------------------- with the penalty

    @cached_property
    def _probabilities(self) -> list[NDArray[np.float32] | None]:
        parts = zip(self._held_out.parts, self._references, strict=True)
        return [
            self._penalty.group_probabilities(self._settings, part.training, reference, self._seed)
            for part, reference in parts
        ]

    @cached_property
    def _objective(self) -> tuple[HeldOutObjective, float]:
        """Loss and distances of the held-out rows, and the factor of the distances at weight 1."""
        loss, rows = self._settings.loss, self._held_out.rows
        units = [reference.unit for reference in self._references]
        divisor = float(np.mean([unit.divisor for unit in units]))
        pairs = self._penalty.held_out_comparisons(rows, self._references[0].targets)
        weighed = weigh_by_reliability(pairs, loss.predictions(self.plain_margins) / divisor)
        objective = HeldOutObjective(loss, rows.labels, weighed, divisor=divisor, scale=self._penalty.scale)
        # Distances are exact here and may be regularized in training: in both, the plain model's count like its gain.
        value = objective.disparity(self.plain_margins)
        information = loss.information(self.plain_margins, rows.labels, rows.weights)
        return objective, information / value if value > 0.0 else 0.0

    def schedule(self) -> RoundSchedule:
        """Return the rounds of a training with the penalty: those of the plain model, if these are not very few."""
        settings = self._settings
        if settings.patience is None:
            return RoundSchedule(settings.n_rounds, self._n_rows)
        rate = settings.library.learning_rate(settings.estimator)
        fewest = min(settings.n_rounds, int(np.ceil(_FEWEST_STEPS / rate)))
        return RoundSchedule(max(self.plain_rounds, fewest), self._n_rows)

    def _train(self, weight: float, _: Any) -> tuple[FairRounds, NDArray[np.float64]]:
        """Train with a weight; return the rounds, and the scores of the held-out rows."""
        settings, schedule = self._settings, self.schedule()
        if weight == 0.0:
            rounds = FairRounds(schedule, self.plain_rounds, {})
            return rounds, settings.loss.predictions(self.plain_margins)
        runs = [table.start() for table in self._tables]
        objectives: list[Callable[..., Any]] = [
            self._penalty.objective(
                settings, part.training, reference,
                parity_weight=weight, schedule=schedule, group_probabilities=probabilities,
            )
            for part, reference, probabilities in zip(
                self._held_out.parts, self._references, self._probabilities, strict=True
            )
        ]  # fmt: skip
        held_out, factor = self._objective
        best, records = BestRound(first_round=schedule.full_weight, patience=settings.patience), []
        chosen = self.plain_margins
        last = schedule.n_rounds if settings.patience is None else round(_BEYOND * schedule.n_rounds)
        for number in range(1, last + 1):
            for run, objective in zip(runs, objectives, strict=True):
                run.update(objective)
            if number < schedule.full_weight:
                best.record(np.inf)
                continue
            margins = _margins(runs)
            records.append((float(number), held_out.disparity(margins), held_out.mean_loss(margins)))
            if best.record(records[-1][2] + weight * factor * records[-1][1]):
                chosen = margins
            if best.has_passed:
                break
        return FairRounds(schedule, best.number, _history(records)), settings.loss.predictions(chosen)

    def choose(self, parity_weight: float | None, max_disparity: float | None) -> Choice:
        """Train with a given weight, or with the one that a rule chooses on a path of weights."""
        scores: dict[float, NDArray[np.float64]] = {}

        def fit(weight: float, previous: Any) -> tuple[FairRounds, NDArray[np.float64]]:
            rounds, scores[weight] = self._train(weight, previous)
            return rounds, scores[weight]

        path = WeightPath(fit, self.evaluator)
        if parity_weight is not None:
            point, reason, reached = path.at(parity_weight if self.has_differences else 0.0), "", True
        elif not self.has_differences:
            point, reason, reached = path.at(0.0), "", True
        else:
            point, reason, reached = AutomaticWeight(max_disparity, WEIGHTS).choose(path)
        return Choice(
            self.plain_rounds, point.weight, point.result, scores[point.weight], path, self.has_differences, reason,
            reached,
        )  # fmt: skip


def _margins(runs: list[BoosterRun]) -> NDArray[np.float64]:
    return np.concatenate([run.held_out_margins() for run in runs])


def _history(records: list[tuple[float, float, float]]) -> dict[str, NDArray[np.float64]]:
    columns = np.array(records, dtype=np.float64).reshape(-1, 3).T
    return dict(zip(("round", "disparity", "loss"), columns, strict=True))
