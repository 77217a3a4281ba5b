"""Training of boosters: rows that are held out, early stopping, and the weight of the penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from fairtransport._arrays import Floats, Ints
from fairtransport._sklearn import few_threads, group_cells
from fairtransport.boosting import _constants as const
from fairtransport.boosting._settings import RoundSchedule
from fairtransport.boosting._training_data import TrainingData, deal
from fairtransport.criteria.criterion import ComparedStrata, weigh_by_reliability
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.strata import make_strata
from fairtransport.training.evaluation import GroupComparisons, ScoreEvaluator, ScoreMetrics, metrics_before_and_after
from fairtransport.training.outcome import HeldOutChange, held_out_change
from fairtransport.training.weight_path import UNDONE, AutomaticWeight, WeightPath

if TYPE_CHECKING:
    from fairtransport.boosting._libraries import BoosterRun, Library
    from fairtransport.boosting._settings import BoostedClasses, BoostedNumbers, GroupModels, PenaltySettings

# Early stopping on the objective: the loss plus the penalty at its full weight, on held-out rows.


class BestRound:
    """Finds the round with the lowest value of an objective, and says when to stop looking."""

    def __init__(self, *, first_round: int, patience: int | None) -> None:
        self.first_round, self.patience = first_round, patience
        self.number, self.n_recorded, self._lowest = 0, 0, np.inf

    def record(self, value: float) -> bool:
        """Record the objective after another round; return whether this is the best round so far."""
        self.n_recorded += 1
        if self.patience is None or (self.n_recorded >= self.first_round and value < self._lowest):
            self.number, self._lowest = self.n_recorded, value
            return True
        return False

    @property
    def has_passed(self) -> bool:
        """True if the objective has not improved for too long."""
        return self.patience is not None and bool(self.number) and self.n_recorded - self.number >= self.patience


@dataclass(frozen=True, eq=False)
class FairRounds:
    """The rounds of a training with the penalty."""

    schedule: RoundSchedule
    n_rounds: int
    history: dict[str, Floats]


@dataclass(frozen=True, eq=False)
class Choice:
    """Rounds without and with the penalty, and its weight; of a search also scores, path, and the reason.

    ``plain_margins`` are those of all rows by plain models that were trained on most of them, and ``unit`` is the
    factor of the penalty by these.
    """

    plain_rounds: int
    parity_weight: float
    rounds: FairRounds
    plain_margins: Floats | None = None
    unit: float = 0.0
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    path: WeightPath | None = None
    has_differences: bool = True
    reason: str = ""
    reached: bool = True
    change: HeldOutChange | None = None


def make_evaluator(
    response: BoostedClasses | BoostedNumbers, penalty: PenaltySettings, rows: TrainingData, plain: Floats
) -> ScoreEvaluator:
    """Return what evaluates scores of these rows against those of a plain model."""
    resolved = rows.compare(penalty.criterion).resolved
    criterion = resolved.comparisons()
    pairwise = weigh_by_reliability(criterion, plain)
    n_rows = rows.groups.n_rows
    shares = np.full(n_rows, 1.0 / n_rows) if rows.weights is None else rows.weights / rows.weights.sum()
    comparisons = GroupComparisons(resolved, criterion, pairwise, pairwise)
    return ScoreEvaluator(response, rows.labels.astype(np.float64), shares, comparisons, plain)


@dataclass(frozen=True, eq=False)
class PartsEvaluator(ScoreEvaluator):
    """Evaluates scores by the models of several parts: each one's errors differ, and cancel where rows are pooled."""

    within_parts: ScoreEvaluator

    def evaluate(self, scores: Floats) -> ScoreMetrics:
        """Return the metrics of all rows, but how far one model's disparity exceeds chance, if that is farther."""
        metrics = super().evaluate(scores)
        return replace(metrics, excess=max(metrics.excess, self.within_parts.evaluate(scores).excess))


class RoundSearch:
    """Boosters of all parts of a table, trained side by side and evaluated on the rows that they do not see.

    Each part is binned once. Boosters with different weights have the same seeds and see the same parts. Where the
    number of rounds is open, their learning rate is larger than the final one, and a round stands for several.
    """

    def __init__(
        self,
        library: Library,
        penalty: PenaltySettings,
        held_out: HeldOutRows,
        response: BoostedClasses | BoostedNumbers,
        group_models: GroupModels,
        *,
        is_weight_open: bool,
    ) -> None:
        self._final = library
        self._library: Library
        self._times: float
        self._tables: list[Callable[..., BoosterRun]]
        self._n_rows, self._group_models = len(held_out.part_of_rows), group_models
        self._penalty, self._held_out, self._response = penalty, held_out, response
        for is_long in (True, False) if is_weight_open and self._n_rows <= const.LARGE_TABLE else (False,):
            self._library, self._times = library.coarse(is_long=is_long)  # one round stands for so many final ones
            self._tables = [self._library.open_table(training, validation.X) for training, validation in held_out.parts]
            self._train_plain()
            if self._times == 1.0 or self.plain_rounds >= const.FEWEST_OF_LONG:
                break

    def _train_plain(self) -> None:
        library, rows = self._library, self._held_out.rows
        runs, objective = [start() for start in self._tables], library.loss.objective
        best = BestRound(first_round=1, patience=library.patience)
        training: list[Floats] = []
        for number in range(1, library.n_rounds + 1):
            for run in runs:
                run.update(objective)
            if library.patience is None and number < library.n_rounds:
                best.record(0.0)
                continue
            margins = _margins(runs)
            losses = library.loss.values(margins, rows.labels)
            if best.record(float(np.average(losses, weights=rows.weights))):
                self.plain_margins = margins
                training = [run.training_margins() for run in runs]
            if best.has_passed:
                break
        self.plain_rounds = best.number
        self._training_margins = training
        self._references = [
            self._penalty.refer_to(library, rows, margins)
            for (rows, _), margins in zip(self._held_out.parts, training, strict=True)
        ]

    def _margins_of_all_rows(self) -> Floats:
        """Return the mean margins by plain models that were trained with a row, or else by one without it."""
        total, times = np.zeros((2, self._n_rows))
        for part, margins in enumerate(self._training_margins):
            seen = self._held_out.part_of_rows != part
            total[seen] += margins
            times[seen] += 1.0
        unseen = times == 0.0  # of a single part
        if unseen.any():
            total[unseen], times[unseen] = self.plain_margins, 1.0
        return total / times

    @cached_property
    def _part(self) -> Ints | None:
        """The part of each held-out row; None where there is one, or where rows have strata."""
        if len(self._tables) == 1 or self._held_out.rows.strata is not None:
            return None
        return np.repeat(np.arange(len(self._tables)), [rows.groups.n_rows for _, rows in self._held_out.parts])

    @cached_property
    def evaluator(self) -> ScoreEvaluator:
        """Evaluates scores of the held-out rows against those of the plain models."""
        rows, plain = self._held_out.rows, self._library.loss.predictions(self.plain_margins)
        pooled = make_evaluator(self._response, self._penalty, rows, plain)
        if self._part is None:
            return pooled
        rows = replace(rows, strata=make_strata(self._part.astype(str), n_groups=len(rows.groups)))
        return PartsEvaluator(**vars(pooled), within_parts=make_evaluator(self._response, self._penalty, rows, plain))

    def _change(self, scores: Floats, min_size: int) -> HeldOutChange | None:
        """Return what became of the held-out rows; None where they were trained on."""
        if not self._held_out.is_new:
            return None
        evaluator = self.evaluator
        return held_out_change(
            evaluator.initial_scores, scores, evaluator.outcomes, evaluator.comparisons.criterion,
            classifies=not self._library.is_regression, min_size=min_size, parts=self._part,
        )  # fmt: skip

    @property
    def has_differences(self) -> bool:
        """True if groups of a plain model differ by more than chance."""
        return any(reference.factor > 0.0 for reference in self._references)

    @cached_property
    def _probabilities(self) -> list[NDArray[np.float32] | None]:
        part_of_rows = self._held_out.part_of_rows
        return [
            self._group_models.probabilities(rows, np.flatnonzero(part_of_rows != part), part)
            for part, (rows, _) in enumerate(self._held_out.parts)
        ]

    @cached_property
    def _measure(self) -> tuple[Callable[[Floats], tuple[float, float]], float]:
        """The sum of distances and the loss of held-out rows at margins, and the factor of the former at weight 1."""
        loss, rows = self._library.loss, self._held_out.rows
        divisor = float(np.mean([reference.divisor for reference in self._references]))
        pairs = rows.compare(self._penalty.criterion).comparisons(self._references[0].targets)
        weighed = weigh_by_reliability(pairs, loss.predictions(self.plain_margins) / divisor)
        exact = DiscretePenalty(huber_width=0.0, n_slices=const.HELD_OUT_SLICES, scale=self._penalty.scale)

        def measure(margins: Floats) -> tuple[float, float]:
            distances = 0.0
            if weighed.active.size:
                distances = exact.value(loss.predictions(margins) / divisor, weighed)
            return distances, float(np.average(loss.values(margins, rows.labels), weights=weighed.row_weights))

        # Distances are exact here and may be regularized in training: in both, the plain model's count like its gain.
        value = measure(self.plain_margins)[0]
        information = loss.information(self.plain_margins, rows.labels, rows.weights)
        return measure, information / value if value > 0.0 else 0.0

    def schedule(self) -> RoundSchedule:
        """Return the rounds of a training with the penalty: those of the plain model, if these are not very few."""
        library = self._library
        if library.patience is None:
            return RoundSchedule.of(library.n_rounds, self._n_rows)
        fewest = min(self._final.n_rounds, np.ceil(const.FEWEST_STEPS / self._final.learning_rate)) / self._times
        return RoundSchedule.of(max(self.plain_rounds, int(np.ceil(fewest))), self._n_rows)

    @cached_property
    def _margins_before_penalty(self) -> list[tuple[Floats, Floats]]:
        """The margins of training and held-out rows after the rounds of the loss alone, which all weights share."""
        runs = [start() for start in self._tables]
        for run in runs * self.schedule().warmup:
            run.update(self._library.loss.objective)
        return [(run.training_margins(), run.held_out_margins()) for run in runs]

    def _train(self, weight: float) -> tuple[FairRounds, Floats]:
        """Train with a weight; return the rounds, and the scores of the held-out rows."""
        library, schedule = self._library, self.schedule()
        if weight == 0.0:
            return self._rounds(schedule, self.plain_rounds, []), library.loss.predictions(self.plain_margins)
        runs = [start(margins) for start, margins in zip(self._tables, self._margins_before_penalty, strict=True)]
        objectives: list[Callable[..., Any]] = [
            self._penalty.objective(
                library, rows, reference,
                parity_weight=weight, schedule=schedule._replace(warmup=0), group_probabilities=probabilities,
            )
            for (rows, _), reference, probabilities in zip(
                self._held_out.parts, self._references, self._probabilities, strict=True
            )
        ]  # fmt: skip
        measure, factor = self._measure
        best, records = BestRound(first_round=schedule.full_weight, patience=library.patience), []
        chosen = self.plain_margins
        last = schedule.n_rounds if library.patience is None else round(const.BEYOND_SCHEDULE * schedule.n_rounds)
        for number in range(1, last + 1):
            if number > schedule.warmup:
                for run, objective in zip(runs, objectives, strict=True):
                    run.update(objective)
            if number < schedule.full_weight:
                best.record(np.inf)
                continue
            margins = _margins(runs)
            records.append((float(round(self._times * number)), *measure(margins)))
            if best.record(records[-1][2] + weight * factor * records[-1][1]):
                chosen = margins
            if best.has_passed:
                break
        return self._rounds(schedule, best.number, records), library.loss.predictions(chosen)

    def _rounds(self, schedule: RoundSchedule, number: int, records: list[tuple[float, float, float]]) -> FairRounds:
        """Return the rounds of a final training."""
        history = dict(zip(("round", "disparity", "loss"), np.reshape(records, (-1, 3)).T, strict=True))
        final = RoundSchedule.of(round(self._times * schedule.n_rounds), self._n_rows)
        return FairRounds(final, round(self._times * number), history)

    def choose(self, parity_weight: float | None, max_disparity: float | None, min_size: int) -> Choice:
        """Train with a given weight, or with the one that a rule chooses on a path of weights, if it helps.

        Groups with fewer than ``min_size`` rows are not judged.
        """
        scores: dict[float, Floats] = {}

        def fit(weight: float, _: Any) -> tuple[FairRounds, Floats]:
            rounds, scores[weight] = self._train(weight)
            return rounds, scores[weight]

        path = WeightPath(fit, self.evaluator)
        if parity_weight is not None:
            obeyed = self.has_differences or self._library.patience is None
            point, reason, reached = path.at(parity_weight if obeyed else 0.0), "", True
        elif not self.has_differences:
            point, reason, reached = path.at(0.0), "", True
        else:
            point, reason, reached = self._rule(path, max_disparity).choose(path)
        change = self._change(scores[point.weight], min_size)
        is_open = parity_weight is max_disparity is None and point.weight > 0.0
        if change is not None and is_open and not change.helps:
            point, change = path.at(0.0), change.undone()
            reason, reached = UNDONE, False
        decides = parity_weight is None or self._library.patience is not None  # else it is a check, and changes nothing
        is_reference = decides and self._n_rows > const.LARGE_TABLE
        return Choice(
            round(self._times * self.plain_rounds), point.weight, point.result,
            self._margins_of_all_rows() if is_reference else None,
            float(np.mean([reference.factor for reference in self._references])),
            scores[point.weight], path, self.has_differences, reason, reached, change,
        )  # fmt: skip

    def _rule(self, path: WeightPath, max_disparity: float | None) -> AutomaticWeight:
        """Return the rule, without small weights where the plain models' groups are far apart."""
        is_large = self._n_rows > const.LARGE_TABLE
        weights, limits = const.WEIGHTS_OF_LARGE if is_large else const.WEIGHTS
        rule = AutomaticWeight(max_disparity, weights)
        if max_disparity is not None:
            return rule
        far = sum(path.at(0.0).metrics.excess > limit for limit in limits)
        if far and rule.is_reached(path.at(weights[far])):
            far -= 1
        return replace(rule, weights=weights[far:], least_step=None if is_large else const.LEAST_STEP)


def _margins(runs: list[BoosterRun]) -> Floats:
    return np.concatenate([run.held_out_margins() for run in runs])


# Which rows are held out, so that rounds and weights are chosen on rows that no model was trained on.


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Parts of a table, rows to train and to evaluate on, and all rows that are held out, in the order of the parts."""

    parts: tuple[tuple[TrainingData, TrainingData], ...]
    rows: TrainingData
    part_of_rows: Ints  # that holds a row out, or -1
    name: str = "held-out rows"

    @property
    def is_new(self) -> bool:
        """True if no model of a part was trained on the rows that it is evaluated on."""
        return all(training is not held_out for training, held_out in self.parts)

    @classmethod
    def of(cls, rows: TrainingData, share: float | None) -> HeldOutRows:
        """Split rows in canonical order, stratified by group and label, or group and whether y is above its mean."""
        n_rows = rows.groups.n_rows
        usual = const.N_PARTS_OF_LARGE if n_rows > const.LARGE_TABLE else const.N_FOLDS
        n_folds = usual if share is None else max(2, round(1 / share))
        once = share is not None or n_rows > const.LARGE_TABLE
        folds = _folds(rows, n_folds)
        numbers = (0,) if once else range(n_folds)
        splits = [(np.flatnonzero(folds != number), np.flatnonzero(folds == number)) for number in numbers]
        enough = all(
            _has_all(rows, training, len(rows.groups)) and _has_all(rows, held_out, 2) for training, held_out in splits
        )
        if n_rows < const.FEWEST_ROWS or not enough:
            return cls(((rows, rows),), rows, np.full(n_rows, -1), "training rows")
        parts = tuple((rows.select(training), rows.select(held_out)) for training, held_out in splits)
        return cls(
            parts,
            rows.select(np.concatenate([held_out for _, held_out in splits])),
            np.where(folds < len(splits), folds, -1),
        )

    @classmethod
    def given(cls, rows: TrainingData, held_out: TrainingData) -> HeldOutRows:
        """Return one part, with validation rows of the user."""
        return cls(((rows, held_out),), held_out, np.full(rows.groups.n_rows, -1))


def _folds(rows: TrainingData, n_folds: int) -> Ints:
    """Return the fold of each row; -1 for rows of groups that are too small to be split."""
    folds = deal(2 * group_cells(rows.groups) + (rows.labels > np.mean(rows.labels)), n_folds)
    for members in rows.groups.rows:
        if members.size < n_folds:
            folds[members] = -1
    return folds


def _has_all(rows: TrainingData, part: Ints, n_groups: int) -> bool:
    """Return whether rows with weight are of this many groups, and have y on both sides of its mean."""
    if rows.weights is not None:
        part = part[rows.weights[part] > 0.0]
    high = rows.labels[part] > np.mean(rows.labels)
    n_present = np.count_nonzero(rows.groups.select(part).counts)
    return bool(high.any() and not high.all() and n_present >= n_groups)


# The final training on all rows: a plain model, and one with the penalty.


class PlainModel:
    """The plain model of all rows, which is trained when it is first asked for."""

    def __init__(self, library: Library, rows: TrainingData, n_rounds: int) -> None:
        self._library, self._rows, self._n_rounds = library, rows, n_rounds

    @cached_property
    def _fitted(self) -> tuple[Any, Floats]:
        with few_threads(self._rows.X), config_context(enable_metadata_routing=False):
            return self._library.fit_plain(self._rows, self._n_rounds)

    @property
    def is_fitted(self) -> bool:
        """True if it has been trained."""
        return "_fitted" in vars(self)

    def model(self) -> Any:
        """Return the model."""
        return self._fitted[0]

    def margins(self) -> Floats:
        """Return its margins of the rows."""
        return self._fitted[1]


@dataclass(frozen=True, eq=False)
class Training:
    """The fitted attributes of an estimator, and what its predictions and its outcome are made from."""

    attributes: dict[str, Any]
    choice: Choice
    plain: PlainModel
    margins: Floats
    is_within_chance: bool
    metrics: ScoreMetrics
    compared: ComparedStrata


def train(
    library: Library,
    penalty: PenaltySettings,
    rows: TrainingData,
    choice: Choice | None,
    group_models: GroupModels,
    *,
    parity_weight: float | None,
    response: BoostedClasses | BoostedNumbers,
) -> Training:
    """Train on all rows."""
    if choice is None:
        schedule = RoundSchedule.of(library.n_rounds, rows.groups.n_rows)
        rounds = FairRounds(schedule, schedule.n_rounds, {})
        choice = Choice(library.n_rounds, parity_weight or 0.0, rounds)
    plain = PlainModel(library, rows, choice.plain_rounds)
    plain_margins = plain.margins() if choice.plain_margins is None else choice.plain_margins
    reference = penalty.refer_to(library, rows, plain_margins)
    if choice.plain_margins is not None and reference.factor > 0.0:
        reference = replace(reference, factor=choice.unit)
    weight = choice.parity_weight if reference.factor > 0.0 else 0.0
    if weight > 0.0:
        n_rounds = choice.rounds.n_rounds
        objective = penalty.objective(
            library, rows, reference,
            parity_weight=weight,
            schedule=choice.rounds.schedule,
            group_probabilities=group_models.probabilities(rows, np.arange(rows.groups.n_rows)),
        )  # fmt: skip
        model, margins = library.fit_objective(rows, n_rounds, objective)
    else:
        model, margins, n_rounds = plain.model(), plain.margins(), choice.plain_rounds
    predict = library.loss.predictions
    if choice.path is None:
        evaluator = make_evaluator(response, penalty, rows, predict(plain_margins))
        scores, path = predict(margins), WeightPath(lambda _, __: (None, predict(margins)), evaluator)
        path.at(weight)
    else:
        evaluator, path = choice.path.evaluator, choice.path
        scores = choice.scores if weight > 0.0 else evaluator.initial_scores
    metrics = evaluator.evaluate(scores)
    return Training(
        attributes={
            "estimator_": model,
            "n_iter_": n_rounds,
            "parity_weight_": weight,
            "unit_": reference.factor,
            "information_kept_": metrics.information_kept,
            "before_after_": metrics_before_and_after(evaluator, scores),
            "history_": choice.rounds.history,
            "path_": path.table(),
        },
        choice=choice,
        plain=plain,
        margins=margins,
        is_within_chance=reference.factor == 0.0 or not choice.has_differences,
        metrics=metrics,
        compared=reference.compared.resolved,
    )
