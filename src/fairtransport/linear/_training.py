"""Training of a linear model: one weight, a path of weights, an automatic weight, or the stochastic solver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._progress import progress
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.distance import ContinuousDistance
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty, Duals, duals_by_group
from fairtransport.groups import Groups
from fairtransport.linear._constants import (
    CONTINUOUS_BATCH,
    CURVED_DECREASE,
    DISCRETE_BATCH,
    FINAL_FITS,
    FINAL_GAIN,
    HEAVY,
    LEAST_DECREASE,
    N_FOLDS,
    PATH_DECREASE,
    PATH_KNOTS,
    RIVAL_ITERATIONS,
)
from fairtransport.linear._lbfgs_solver import LbfgsResult
from fairtransport.linear._problem import (
    InitialModel,
    ParityProblem,
    build_problem,
    check_scores_vary,
    compare_groups,
    minimise_loss,
    prepare_initial_model,
    stored_target,
    stratum_targets,
)
from fairtransport.linear.online import Batch, group_predictors, make_memory, parity_without_disparity, row_masses
from fairtransport.linear.settings import SgdSettings
from fairtransport.linear.sgd_solver import Objective, Trainer, TrainingProblem, automatic_steps, plain_steps
from fairtransport.strata import Strata
from fairtransport.training.evaluation import GroupComparisons, ScoreEvaluator, metrics_before_and_after, spread_points
from fairtransport.training.outcome import (
    TRAINED_ON,
    HeldOutChange,
    Notice,
    describe_change,
    describe_criterion,
    describe_weight,
    evaluated_change,
    groups_differ,
    notices_of_losses,
    within_chance,
)
from fairtransport.training.responses import Response
from fairtransport.training.weight_path import PATH_WEIGHTS, UNDONE, AutomaticWeight, PathPoint, WeightPath, empty_path

if TYPE_CHECKING:
    from fairtransport.linear._lbfgs_solver import LbfgsSolver
    from fairtransport.linear._training_data import TrainingData, TrainingOptions

    Report = Callable[[int, float, float, float | None], None]

# Scores of rows by models that were not trained on them, for metrics of flexible models.


class _Fold:
    """A model trained without some rows."""

    def __init__(self, problem: ParityProblem, is_held_out: Bools) -> None:
        kept = np.flatnonzero(~is_held_out)
        picked, shares = problem.subsample(kept)
        loss = problem.loss_of(picked, shares, kept.size)
        theta = minimise_loss(problem.shared_loss_of(loss, picked), problem.start[:1])
        center = None if problem.loss.center is None else theta[0]
        if center is not None:
            loss = replace(loss, center=center)
        self._start = np.tile(theta, (problem.loss.shape[0], 1))
        self._held_out_scores = problem.scores_of(is_held_out, center)
        comparisons = problem.comparisons.penalised.restricted(picked, shares * picked.size)
        self._solver = problem.solver((loss, comparisons, self._start))
        self._parameters: dict[float, Floats] = {}

    def initial_scores(self) -> Floats:
        """Return scores of the held-out rows by the initial model."""
        return self._held_out_scores(self._start)

    def scores(self, weight: float, start: Floats | None = None) -> Floats:
        """Return scores of the held-out rows."""
        if weight not in self._parameters:
            smaller = [known for known in self._parameters if known <= weight]
            if start is None:
                start = self._parameters[max(smaller)] if smaller else self._start
            self._parameters[weight] = self._solver.run(weight, start).parameters
        return self._held_out_scores(self._parameters[weight])


class _CrossFit:
    """Models trained without each fold in turn."""

    def __init__(self, problem: ParityProblem) -> None:
        known = problem.fold_of_row
        self.fold_of_row = (_fold_positions(problem.rows) % N_FOLDS if known is None else known).astype(np.int8)
        self._folds = [_Fold(problem, self.fold_of_row == fold) for fold in range(N_FOLDS)]
        self.evaluator = replace(problem.evaluator, initial_scores=self._held_out(_Fold.initial_scores))

    def scores(self, weight: float, start: Floats | None = None) -> Floats:
        """Return the score of each row by the model that was trained without it."""
        return self._held_out(lambda fold: fold.scores(weight, start))

    def _held_out(self, scores_of: Callable[[_Fold], Floats]) -> Floats:
        scores = np.empty(len(self.fold_of_row))
        for number, fold in enumerate(self._folds):
            scores[self.fold_of_row == number] = scores_of(fold)
        return scores


def _fold_positions(rows: TrainingData) -> Ints:
    """Return the position of each row within its group, label and stratum, whose remainders make stratified folds."""
    columns = [
        *rows.groups.memberships,
        *(rows.response.fold_columns(rows.outcomes)),
        *(() if rows.strata is None else (rows.strata.codes,)),
    ]
    strata = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(strata, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(strata))))[:-1]
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order)) - starts[strata[order]]
    return positions


# Last stage of ``fit``: everything that a fitted estimator stores.


@dataclass(frozen=True, eq=False)
class FitResult:
    """The fitted attributes of an estimator, those that are made when they are first asked for, and the outcome."""

    attributes: dict[str, Any]
    deferred: dict[str, Callable[[], Any]]
    outcome: Notice


def start_attributes(
    response: Response, initial: InitialModel, groups: Groups, strata: Strata | None
) -> dict[str, Any]:
    """Return the fitted attributes that are known before training; none of them contains a row."""
    return {
        **response.attributes,
        "initial_estimator_": initial.model,
        "groups_": Groups.from_spec(groups.to_spec()),
        "group_sizes_": groups.counts,
        "strata_": None if strata is None else Strata.from_spec(strata.to_spec()),
    }


def weight_attributes(theta: Floats, common: Floats) -> dict[str, Any]:
    """Return weights, in units of y, as fitted attributes."""
    return {
        "coef_": theta[:, :-1].copy(),
        "intercept_": theta[:, -1].copy(),
        "common_coef_": common[:-1].copy(),
        "common_intercept_": float(common[-1]),
    }


def _converted(convert: Callable[[Any], Any], make: Callable[..., Any], *arguments: Any) -> Any:
    return convert(make(*arguments))


def _memory(target: Callable[[], Floats], data: TrainingData, *rows: Any, **options: Any) -> Any:
    codes = None if data.strata is None else data.strata.codes
    batch = Batch(data.X, data.groups, row_masses(data.weights, len(data.y)), data.outcomes, codes)
    return make_memory(batch, *rows, target=target(), weights=data.weights, strata=data.strata, **options)


def _make_result(
    data: TrainingData,
    options: TrainingOptions,
    initial: InitialModel,
    *,
    target: Callable[[], Floats],
    theta: Floats,
    common: Floats,
    scores: Floats,
    initial_scores: Floats,
    factors: tuple[float, float],
    duals: Callable[[], Duals] | None,
    outcome: Notice,
    path: Callable[[], dict[str, Floats]],
    **attributes: Any,
) -> FitResult:
    """Return what an estimator stores; ``data``, of which the rest is made later, belongs to it alone."""
    response, weights = data.response, data.weights
    rows, bounds = data.groups.rows, response.loss.bounds
    deferred: dict[str, Callable[[], Any]] = {
        "path_": path,
        "target_": partial(_converted, response.scores_as_given, target),
        "spread_": partial(
            _converted, response.scores_as_given, spread_points, scores, initial_scores, rows, weights, bounds
        ),
    }
    if duals is not None:
        deferred["duals_"] = partial(_converted, response.duals_as_given, duals)
    if data.X is not None:  # of a table that stays where it is, the first batch of a stream makes the memory
        deferred["adjusting_"] = partial(
            _memory, target, data, theta, initial_scores, group_sizes=data.groups.counts, factors=factors,
            has_intercept=initial.has_intercept, options=options, response=response,
        )  # fmt: skip
    return FitResult(
        {
            **start_attributes(response, initial, data.groups, data.strata),
            **weight_attributes(response.to_given(theta), response.to_given(common)),
            **attributes,
        },
        deferred,
        outcome,
    )


def train_lbfgs(data: TrainingData, options: TrainingOptions) -> FitResult:
    """Train with the weight of the options, or with one that is chosen on a path."""
    problem = build_problem(data, options)
    result = train_problem(problem)
    problem.scaling.restore(problem.rows.X)  # of which the rest is made later
    return result


def train_problem(problem: ParityProblem) -> FitResult:
    """Train on the rows of a problem."""
    options = problem.options
    n_fits, began = 0, 0.0
    with progress(f"{options.distance.name} training", None, show=options.verbose) as bar:

        def report(iteration: int, disparity: float, loss: float, left: float | None) -> None:
            nonlocal n_fits, began
            now = time.monotonic()
            if iteration == 1:
                n_fits, began = n_fits + 1, now
            note = f"fit {n_fits}, iteration {iteration}, disparity {disparity:.4f}, loss {loss:.4f}"
            if left is not None:
                note += f", about {left * (now - began) / (iteration - 1):.0f} s left in this fit"
            bar.advance(iteration, note)

        run = _PathRun(problem, report if options.verbose else None)
        if options.parity_weight is None:
            trained = run.checked(run.fit_automatic(AutomaticWeight(options.max_disparity)))
        else:
            trained = run.checked(run.fit(options.parity_weight))
    return _result(trained, problem)


def train_lbfgs_path(data: TrainingData, options: TrainingOptions, weights: Sequence[float]) -> list[FitResult]:
    """Train with each of several ascending weights, each fit started from the one before."""
    problem, results = build_problem(data, options), []
    for trained in _PathRun(problem).fit_path(weights):
        fixed = replace(options, parity_weight=trained.point.weight, max_disparity=None)
        results.append(_result(trained, replace(problem, options=fixed)))
    problem.scaling.restore(problem.rows.X)
    return results


@dataclass(frozen=True, eq=False)
class _Trained:
    """A point of the path, why it was chosen (empty where it was not), and whether its goal was reached."""

    point: PathPoint
    path: WeightPath
    reason: str = ""
    reached: bool = True
    change: HeldOutChange | None = None


class _PathRun:
    """Runs of one problem with several weights."""

    def __init__(self, problem: ParityProblem, report: Report | None = None) -> None:
        self._problem, self._report = problem, report
        self._solver = problem.solver()
        self._is_compared = False
        self._rival: Floats | None = None

    @cached_property
    def cross_fit(self) -> _CrossFit:
        """Models trained without each fold in turn."""
        return _CrossFit(self._problem)

    @cached_property
    def _coarse_solver(self) -> LbfgsSolver:
        return self._problem.coarse_solver(self._solver.factors)

    def fit(self, weight: float) -> _Trained:
        """Train with one weight, started from coarse fits of smaller ones.

        The penalty is not convex. Fits that come from small weights end near the same local minimum, so that more
        weight means less disparity.
        """
        start = self._problem.start
        for smaller in PATH_WEIGHTS:
            if smaller < 0.5 * weight:
                start = self._coarse_run(smaller, start).parameters
        path = WeightPath(self._coarse_fit, self._problem.evaluator)
        return _Trained(self._final_fit(path, weight, start), path)

    def fit_path(self, weights: Sequence[float]) -> list[_Trained]:
        """Train with each of several ascending weights."""
        path, start, points = WeightPath(self._coarse_fit, self._problem.evaluator), self._problem.start, []
        for weight in weights:
            final = LEAST_DECREASE if weight == weights[-1] else PATH_DECREASE
            self._solver.least_decrease = CURVED_DECREASE if self._solver.is_curved else final
            points.append(self._final_fit(path, weight, start))
            start = points[-1].result.parameters
        return [_Trained(point, path) for point in points]

    def fit_automatic(self, rule: AutomaticWeight) -> _Trained:
        """Train with the weight that a rule chooses on a path of coarse fits."""
        problem = self._problem
        path = self._cross_fitted_path() if problem.is_flexible else WeightPath(self._coarse_fit, problem.evaluator)
        # Weights of their own set groups apart, whether they differ at the common weights or not.
        differs = problem.options.group_specific or groups_differ(
            path.evaluator.initial_scores, path.evaluator.comparisons.criterion
        )
        chosen, reason, reached = rule.choose(path, differs=differs)
        final = chosen
        for point in path.points[path.points.index(chosen) :][: FINAL_FITS if chosen.weight > 0.0 else 0]:
            result = self._solver.run(point.weight, point.result.parameters)
            fine, coarse = (
                problem.evaluator.evaluate(problem.loss.scores(one.parameters)) for one in (result, point.result)
            )
            # Near a limit, the last iterations may cross it; the coarse fit is kept then.
            if not rule.accepts(fine, coarse) or (final is not chosen and fine.excess >= final.metrics.excess):
                break
            final = PathPoint(point.weight, result, point.metrics if problem.is_flexible else fine)
            if problem.is_flexible or not rule.is_worse(fine, coarse):
                break  # or the next weight is tried: the rows of the coarse fit promised too much
        if final is not chosen and not reached and rule.is_reached(final):
            reason, reached = rule.goal, True
            final = final if problem.is_flexible else self._smallest_reaching(rule, path, final)
        path.put(final)
        return _Trained(final, path, reason, reached)

    def _smallest_reaching(self, rule: AutomaticWeight, path: WeightPath, final: PathPoint) -> PathPoint:
        """Return the final fit of about the smallest weight that reaches the goal, as coarse fits did not."""

        def fit(weight: float, below: LbfgsResult | None) -> tuple[LbfgsResult, Floats]:
            starts = [point.result for point in path.points if point.weight == weight]
            result = self._solver.run(weight, (starts[0] if starts else below or final.result).parameters)
            return result, self._problem.loss.scores(result.parameters)

        fine = WeightPath(fit, self._problem.evaluator)
        lower = [point for point in path.points if point.weight <= final.weight]
        coarse = rule.distance(lower[-1])
        gain = rule.distance(final) / coarse
        for point in lower[-2:0:-1]:
            if gain * rule.distance(point) > FINAL_GAIN:
                middle = float(np.sqrt(rule.distance(point) * coarse))
                return rule.bisect(fine, point, final) if gain * middle <= FINAL_GAIN else final
            reached = fine.at(point.weight)
            if not rule.is_reached(reached):
                return rule.bisect(fine, reached, final)
            final, coarse = reached, rule.distance(point)
        return final

    def checked(self, trained: _Trained) -> _Trained:
        """Compare a model with the plain one on rows that neither has seen, where training rows are too few.

        An automatic weight that would do harm is not used: the plain model is the answer.
        """
        problem, point, options = self._problem, trained.point, self._problem.options
        is_free = options.parity_weight is options.max_disparity is None
        evaluator, scores = problem.evaluator, problem.loss.scores(point.result.parameters)
        rest: dict[str, Any] = {"is_full": is_free, "min_size": options.groups.min_size}
        is_moved = not np.array_equal(scores, evaluator.initial_scores)
        if is_moved and problem.is_memorised:
            evaluator, scores = self.cross_fit.evaluator, self.cross_fit.scores(point.weight, point.result.parameters)
            rest["parts"] = self.cross_fit.fold_of_row
        else:
            rest["rows"] = TRAINED_ON
        change = evaluated_change(evaluator, scores, **rest)
        if is_moved and is_free and not change.helps:
            change = change.undone()
            point = PathPoint(
                0.0, LbfgsResult(problem.start, True, 0, []), evaluator.evaluate(evaluator.initial_scores)
            )
            trained = replace(trained, reason=UNDONE)
        point = replace(point, metrics=replace(point.metrics, information_kept=change.information_kept))
        trained.path.put(point)
        return replace(trained, point=point, change=change)

    def _cross_fitted_path(self) -> WeightPath:
        """Return a path on which models are evaluated on rows that they were not trained on."""

        def fit(weight: float, previous: LbfgsResult | None) -> tuple[LbfgsResult, Floats]:
            return self._coarse_fit(weight, previous)[0], self.cross_fit.scores(weight)

        return WeightPath(fit, self.cross_fit.evaluator)

    def _final_fit(self, path: WeightPath, weight: float, start: Floats) -> PathPoint:
        if weight >= HEAVY and not self._is_compared:
            start = self._coarse_run(weight, start).parameters
        result = self._solver.run(weight, start, self._report)
        point = PathPoint(
            weight, result, self._problem.evaluator.evaluate(self._problem.loss.scores(result.parameters))
        )
        path.points.append(point)
        return point

    def _coarse_run(self, weight: float, start: Floats) -> LbfgsResult:
        """Train with few iterations, also from a model of equal means at the first weight that asks for much parity.

        Where groups must become alike, the minimum that continues those of smaller weights may not be the lowest.
        """
        solver = self._coarse_solver
        if self._rival is not None and weight < HEAVY:
            start = min((start, self._rival), key=lambda one: solver.value_and_gradient(one, weight)[0])
        result = solver.run(weight, start, self._report)
        if weight < HEAVY or self._is_compared:
            return result
        self._is_compared, other = True, solver.equal_means(self._problem.start)
        if other is not None:
            rival = solver.run(weight, other, self._report, max_iter=max(RIVAL_ITERATIONS, result.n_iter))
            if rival.value < result.value:
                self._rival = rival.parameters
                return rival
        return result

    def _coarse_fit(self, weight: float, previous: LbfgsResult | None) -> tuple[LbfgsResult, Floats]:
        start = self._problem.start if previous is None else previous.parameters
        if weight == 0.0:
            result = LbfgsResult(self._problem.without_penalty, True, 0, [])
        else:
            result = self._coarse_run(weight, start)
        return result, self._problem.loss.scores(result.parameters)


def _result(trained: _Trained, problem: ParityProblem) -> FitResult:
    """Return what an estimator stores of a training by L-BFGS."""
    options, data, point, run = problem.options, problem.rows, trained.point, trained.point.result
    final_scores, initial_scores = problem.loss.scores(run.parameters), problem.evaluator.initial_scores
    theta, common = problem.weights(run.parameters)
    figures = metrics_before_and_after(problem.evaluator, final_scores)
    models = np.array([np.vstack(problem.weights(one.result.parameters)) for one in trained.path.points])
    scores = [problem.loss.scores(one.result.parameters) for one in trained.path.points] if data.X is None else None
    records = np.array(run.records, dtype=np.float64).reshape(-1, 2)
    return _make_result(
        data, options, problem.initial,
        target=partial(stored_target, options, initial_scores, data.groups, data.weights, response=data.response),
        theta=theta,
        common=common,
        scores=final_scores,
        initial_scores=initial_scores,
        factors=(_stream_parity(trained, problem), 1.0),
        duals=partial(_duals_at, final_scores, problem.penalty, problem.comparisons.penalised, data.groups)
        if isinstance(problem.penalty, ContinuousPenalty) else None,
        outcome=describe_criterion(_outcome(trained, problem, figures), options.criterion, problem.comparisons.strata),
        path=partial(_path_table, trained.path.table(), models, initial_scores, data, scores),
        parity_weight_=point.weight,
        # Evaluating the initial model, where it is the answer, counts as one iteration: scikit-learn requires it.
        n_iter_=max(1, run.n_iter),
        information_kept_=point.metrics.information_kept,
        before_after_=figures,
        history_={"update": np.arange(1.0, len(records) + 1.0), "disparity": records[:, 0], "loss": records[:, 1]},
    )  # fmt: skip


def _duals_at(scores: Floats, penalty: ContinuousPenalty, comparisons: Comparisons, groups: Groups) -> Duals:
    """Return the dual potentials of the groups at some scores."""
    penalty = deepcopy(penalty)  # which models of one path share
    penalty.value_and_gradient(scores, comparisons)
    return duals_by_group(penalty, comparisons, Groups.from_spec(groups.to_spec()))


def _stream_parity(trained: _Trained, problem: ParityProblem) -> float:
    """Return the factor of the penalty for ``partial_fit``, also where training saw no disparity."""
    options, weight = problem.options, trained.point.weight
    if problem.unit == 0.0 < weight or (weight == 0.0 and options.parity_weight is None):
        information = trained.path.evaluator.information
        return parity_without_disparity(weight or None, information, options, len(problem.rows.groups))
    return weight * problem.unit


def _path_table(
    table: dict[str, Floats], models: Floats, initial_scores: Floats, data: TrainingData, known: list[Floats] | None
) -> dict[str, Floats]:
    """Return a path's weights and metrics with the model and spread map of each point, in units of y."""
    response, levels, spreads = data.response, np.linspace(0.0, 1.0, PATH_KNOTS), []
    for number, model in enumerate(models):
        if known is not None:
            scores = known[number]
        else:
            scores = response.loss.scores(group_predictors(data.X, model[:-1], model[-1], data.groups))
        points = spread_points(scores, initial_scores, data.groups.rows, data.weights, response.loss.bounds)
        knots = np.interp(levels, np.linspace(0.0, 1.0, points.shape[1]), points[0])
        spreads.append(np.vstack((knots, np.interp(knots, *points))))
    maps = {"theta": response.to_given(models), "spread": response.scores_as_given(np.array(spreads))}
    return {**table, **maps}


def _outcome(trained: _Trained, problem: ParityProblem, figures: dict[str, tuple[float, float]]) -> Notice:
    """Describe a run of L-BFGS."""
    options, point, response = problem.options, trained.point, problem.rows.response
    n_iter = point.result.n_iter
    ending = Notice(f"converged after {n_iter} iteration{'s' * (n_iter != 1)}")
    if not point.result.converged:
        text = f"stopped after max_iter={options.max_iter} iterations, before convergence"
        message = f"The solver {text}. Raise max_iter or tol; the model so far is kept."
        ending = Notice(text, ((message, ConvergenceWarning),))
    losses, change = Notice(), trained.change
    if point.weight > 0.0:
        set_already = {f"scale={options.scale!r}", f"group_specific={options.group_specific}"}
        set_already |= {"parity_weight='auto'"} if options.parity_weight is None else set()
        kept, excess = point.metrics.information_kept, point.metrics.excess
        losses = notices_of_losses(kept, figures, excess, response, set_already)
    remedy = f"Repair ({response.repair})"
    if not options.group_specific:
        remedy = f"Own weights for each group (group_specific=True) or repair ({response.repair})"
    if not problem.comparisons.penalised.active.size and not options.group_specific and options.parity_weight != 0.0:
        outcome = Notice(within_chance())
    else:
        outcome = describe_weight(
            ending, losses,
            parity_weight=point.weight, metrics=point.metrics, reason=trained.reason, reached=trained.reached,
            max_disparity=options.max_disparity, remedy=remedy, change=change,
        )  # fmt: skip
    if change is None:
        return outcome
    advice = f"{remedy} with the group at hand goes further."
    if not change.helps and options.group_specific:
        advice = f"Shared weights or repair ({response.repair}) may do better."
    return describe_change(outcome, change, "Training for parity", advice)


# Fourth stage of ``fit``: the stochastic solver, which moves each group, label and stratum to a fixed target.


@dataclass(frozen=True, eq=False)
class PreparedTrainer:
    """A trainer before its first update, with the initial model and the comparisons that it was made from."""

    trainer: Trainer
    initial: InitialModel
    initial_scores: Floats
    comparisons: GroupComparisons
    target: Floats


def prepare_trainer(data: TrainingData, options: TrainingOptions, settings: SgdSettings) -> PreparedTrainer:
    """Fit the initial model, fix the target, and choose step sizes."""
    rng = np.random.default_rng(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))
    response = data.response
    initial = prepare_initial_model(
        options.estimator, data.X, data.y, data.weights, response=response, feature_names=data.feature_names
    )
    scores = initial.scores(data.X)
    check_scores_vary(scores)
    target = stored_target(options, scores, data.groups, data.weights, response=response)
    comparisons = compare_groups(data, scores, options)
    strata = comparisons.strata
    targets = stratum_targets(options, scores, data.groups, data.weights, strata, response=response)
    problem = TrainingProblem.build(
        data.X, data.outcomes, data.groups, targets, data.weights, strata=strata, loss=response.loss
    )
    distance = options.distance
    dual = distance.dual_problem(settings.pairs, rng) if isinstance(distance, ContinuousDistance) else None
    dual_step = settings.dual_step if settings.dual_step is not None else dual.default_step if dual else 0.0
    without_loss = np.isinf(options.sgd_weight)  # as in the paper
    objective = Objective(
        parity=1.0 if without_loss else options.sgd_weight * _unit(data, scores, comparisons),
        anchor=0.0 if without_loss else 1.0,
        ridge=initial.ridge,
        dual=dual,
        dual_step=float(dual_step),
    )
    batch_size = settings.batch_size or (DISCRETE_BATCH if dual is None else CONTINUOUS_BATCH)
    if settings.parameter_step is not None:
        steps = plain_steps(float(settings.parameter_step), problem.n_columns)
    else:
        steps = automatic_steps(
            problem.X,
            problem.groups.rows,
            batch_size=batch_size,
            n_updates=settings.n_updates,
            weight=objective.anchor + objective.parity,
            ridge=objective.anchor * objective.ridge,
            rng=rng,
        )
    trainer = Trainer(
        problem,
        objective,
        steps if initial.has_intercept else steps.without_intercept(),
        theta=np.tile(initial.theta, (len(data.groups) if options.group_specific else 1, 1)),
        batch_size=batch_size,
        seed=int(rng.integers(2**62)),
        budget=settings.n_updates,
    )
    return PreparedTrainer(trainer, initial, scores, comparisons, target)


def train_sgd(data: TrainingData, options: TrainingOptions, settings: SgdSettings) -> FitResult:
    """Run all updates and return what an estimator stores."""
    prepared, data = prepare_trainer(data, options, settings), data.copy()
    trainer, initial_scores, weight = prepared.trainer, prepared.initial_scores, options.sgd_weight
    run = trainer.run(
        trainer.budget, average=settings.average, verbose=options.verbose, title=f"{options.distance.name} training"
    )
    common = run.theta.mean(axis=0)
    response = data.response
    scores = response.loss.scores(group_predictors(data.X, run.theta, common, data.groups))
    evaluator = ScoreEvaluator(response, data.outcomes, data.shares, prepared.comparisons, initial_scores)
    metrics, figures = evaluator.evaluate(scores), metrics_before_and_after(evaluator, scores)
    losses = notices_of_losses(metrics.information_kept, figures, metrics.excess, response)
    outcome = Notice(f"{run.outcome}; {losses.text}" if losses.text else run.outcome, losses.warnings)
    parity, kept = trainer.objective.parity, metrics.information_kept
    if parity == 0.0 < weight:
        outcome = Notice(within_chance(run.outcome), losses.warnings)
        parity = parity_without_disparity(weight, evaluator.information, options, len(data.groups))
    else:
        change = evaluated_change(evaluator, scores, is_full=False, rows=TRAINED_ON, min_size=options.groups.min_size)
        outcome, kept = describe_change(outcome, change, "Training for parity", ""), change.information_kept
    groups, target = Groups.from_spec(data.groups.to_spec()), prepared.target
    return _make_result(
        data, options, prepared.initial,
        target=partial(np.asarray, target),
        theta=run.theta,
        common=common,
        scores=scores,
        initial_scores=initial_scores,
        factors=(parity, trainer.objective.anchor),
        duals=partial(Duals, run.features, run.duals, run.target_duals, groups) if trainer.objective.dual else None,
        outcome=describe_criterion(outcome, options.criterion, prepared.comparisons.strata),
        path=partial(empty_path, response),
        parity_weight_=weight,
        n_iter_=run.n_updates,
        information_kept_=kept,
        before_after_=figures,
        history_=run.history,
    )  # fmt: skip


def _unit(data: TrainingData, scores: Floats, comparisons: GroupComparisons) -> float:
    """Return the factor of the sum of distances to the target at weight 1."""
    weighted = comparisons.penalised
    information = ScoreEvaluator(data.response, data.outcomes, data.shares, comparisons, scores).information
    plain = comparisons.strata.comparisons(weighted.targets)
    terms = DiscretePenalty(huber_width=0.0, scale="score").value_and_gradient(scores, plain)
    reliable = float(weighted.weights @ terms.distances)
    return information * reliable / terms.value**2 if terms.value > 0.0 else 0.0
