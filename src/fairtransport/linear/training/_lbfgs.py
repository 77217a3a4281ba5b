"""Fourth stage of ``fit``: L-BFGS with one weight, along a path of weights, or with an automatic weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._progress import progress
from fairtransport.groups import Groups
from fairtransport.linear.online._initial_memory import memory_from_rows, parity_without_disparity
from fairtransport.linear.solvers._lbfgs import LbfgsResult
from fairtransport.linear.training._cross_fitting import CrossFit
from fairtransport.linear.training._problem import ParityProblem, build_problem
from fairtransport.linear.training._result import FitResult, group_predictors
from fairtransport.linear.training.comparisons import stored_target, stratum_targets
from fairtransport.linear.training.evaluation import metrics_before_and_after
from fairtransport.linear.training.outcome import Notice, describe_criterion, describe_lbfgs, within_chance
from fairtransport.linear.training.spread_map import spread_points
from fairtransport.linear.training.weight_path import PATH_WEIGHTS, AutomaticWeight, PathPoint, WeightPath
from fairtransport.strata import Strata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.linear.solvers._lbfgs import LbfgsSolver
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._options import TrainingOptions

    Report = Callable[[int, float, float], None]

__all__ = ["train_lbfgs", "train_lbfgs_path"]

_PATH_KNOTS = 129  # of the spread maps that a path stores, one array for all


def train_lbfgs(data: TrainingData, options: TrainingOptions) -> FitResult:
    """Train with the weight of the options, or with one that is chosen on a path."""
    problem = build_problem(data, options)
    n_steps = options.max_iter if options.parity_weight is not None else 0
    with progress(f"{options.distance.name} training", n_steps, show=options.verbose) as bar:

        def report(iteration: int, penalty: float, loss: float) -> None:
            bar.advance(iteration, f"penalty {penalty:.4f}, loss {loss:.4f}")

        run = _PathRun(problem, report)
        if options.parity_weight is None:
            trained = run.fit_automatic(AutomaticWeight(options.max_disparity))
        else:
            trained = run.fit(options.parity_weight)
    return _result(trained, problem, data)


def train_lbfgs_path(data: TrainingData, options: TrainingOptions, weights: Sequence[float]) -> list[FitResult]:
    """Train with each of several ascending weights, each fit started from the one before."""
    problem = build_problem(data, options)
    results = []
    for trained in _PathRun(problem).fit_path(weights):
        fixed = replace(options, parity_weight=trained.point.weight, max_disparity=None)
        results.append(_result(trained, replace(problem, options=fixed), data))
    return results


@dataclass(frozen=True, eq=False)
class _Trained:
    """A point of the path, why it was chosen (empty where it was not), and whether its goal was reached."""

    point: PathPoint
    path: WeightPath
    reason: str = ""
    reached: bool = True


class _PathRun:
    """Runs of one problem with several weights."""

    def __init__(self, problem: ParityProblem, report: Report | None = None) -> None:
        self._problem, self._report = problem, report
        self._solver = problem.solver()

    @cached_property
    def _coarse_solver(self) -> LbfgsSolver:
        """A solver that stops early and uses some rows of large groups, for fits that others start from."""
        problem = self._problem
        n_rows = len(problem.loss.outcomes)
        picked, shares = problem.subsample(np.arange(n_rows))
        loss, comparisons = problem.loss, problem.comparisons.penalised
        if picked.size < n_rows:
            loss, comparisons = problem.loss_of(picked, shares), comparisons.restricted(picked, shares * picked.size)
        return problem.coarse_solver(loss, comparisons, problem.start, self._solver.factors)

    def fit(self, weight: float) -> _Trained:
        """Train with one weight, started from coarse fits of smaller ones.

        The penalty is not convex. Fits that come from small weights end near the same local minimum, so that more
        weight means less disparity.
        """
        start = self._problem.start
        for smaller in PATH_WEIGHTS:
            if smaller < 0.5 * weight:
                start = self._coarse_solver.run(smaller, start).parameters
        path = WeightPath(self._coarse_fit, self._problem.evaluator)
        return _Trained(self._final_fit(path, weight, start), path)

    def fit_path(self, weights: Sequence[float]) -> list[_Trained]:
        """Train with each of several ascending weights."""
        path, start, points = WeightPath(self._coarse_fit, self._problem.evaluator), self._problem.start, []
        for weight in weights:
            points.append(self._final_fit(path, weight, start))
            start = points[-1].result.parameters
        return [_Trained(point, path) for point in points]

    def fit_automatic(self, rule: AutomaticWeight) -> _Trained:
        """Train with the weight that a rule chooses on a path of coarse fits."""
        problem = self._problem
        path = self._cross_fitted_path() if problem.is_flexible else WeightPath(self._coarse_fit, problem.evaluator)
        chosen, reason, reached = rule.choose(path)
        final = chosen
        if chosen.weight > 0.0:
            result = self._solver.run(chosen.weight, chosen.result.parameters)
            fine, coarse = (
                problem.evaluator.evaluate(problem.scores(one.parameters)) for one in (result, chosen.result)
            )
            # Near a limit, the last iterations may cross it; the coarse fit is kept then.
            if rule.accepts(fine, coarse):
                final = PathPoint(chosen.weight, result, chosen.metrics if problem.is_flexible else fine)
                if not reached and rule.is_reached(final):
                    reason, reached = rule.goal, True
        return _Trained(final, path, reason, reached)

    def _cross_fitted_path(self) -> WeightPath:
        """Return a path on which models are evaluated on rows that they were not trained on."""
        folds = CrossFit(self._problem)

        def fit(weight: float, previous: LbfgsResult | None) -> tuple[LbfgsResult, NDArray[np.float64]]:
            return self._coarse_fit(weight, previous)[0], folds.scores(weight)

        return WeightPath(fit, replace(self._problem.evaluator, initial_scores=folds.initial_scores))

    def _final_fit(self, path: WeightPath, weight: float, start: NDArray[np.float64]) -> PathPoint:
        result = self._solver.run(weight, start, self._report)
        point = PathPoint(weight, result, self._problem.evaluator.evaluate(self._problem.scores(result.parameters)))
        path.points.append(point)
        return point

    def _coarse_fit(self, weight: float, previous: LbfgsResult | None) -> tuple[LbfgsResult, NDArray[np.float64]]:
        start = self._problem.start if previous is None else previous.parameters
        if weight == 0.0 and not self._problem.options.group_specific:
            result = LbfgsResult(start, True, "the initial model", 0, [])
        else:
            result = self._coarse_solver.run(weight, start, self._report)
        return result, self._problem.scores(result.parameters)


def _result(trained: _Trained, problem: ParityProblem, data: TrainingData) -> FitResult:
    """Return what an estimator stores of a training."""
    options, point, comparisons = problem.options, trained.point, problem.comparisons.penalised
    run, weight = point.result, point.weight
    ordered_scores = problem.scores(run.parameters)
    initial_scores = problem.in_given_order(problem.evaluator.initial_scores)
    theta, common = problem.weights(run.parameters)
    figures = metrics_before_and_after(problem.evaluator, ordered_scores)
    target = stored_target(options, initial_scores, data.groups, data.weights, response=data.response)
    compared = data.resolve(options)
    targets = target[None] if compared.is_everywhere else stratum_targets(options, initial_scores, data, compared)
    groups = Groups.from_spec(data.groups.to_spec())
    problem.penalty.value_and_gradient(ordered_scores, comparisons)  # whose duals are read below
    records = np.array(run.records, dtype=np.float64).reshape(-1, 2)
    return FitResult(
        response=data.response,
        initial=problem.initial,
        groups=groups,
        group_sizes=data.groups.counts,
        strata=None if data.strata is None else Strata.from_spec(data.strata.to_spec()),
        theta=theta,
        common=common,
        parity_weight=weight,
        target=target,
        # Evaluating the initial model, where it is the answer, counts as one iteration: scikit-learn requires it.
        n_iter=max(1, run.n_iter),
        information_kept=point.metrics.information_kept,
        before_after=figures,
        history={
            "update": np.arange(1.0, len(records) + 1.0), "disparity": records[:, 0], "loss": records[:, 1],
        },
        spread=spread_points(
            problem.in_given_order(ordered_scores), initial_scores, data.groups.rows, data.weights,
            data.response.loss.bounds,
        ),
        path=_path_table(trained.path, problem, initial_scores, data),
        duals=options.distance.duals(problem.penalty, comparisons, groups),
        memory=memory_from_rows(
            data, theta,
            compared=compared,
            targets=targets,
            parity=_stream_parity(trained, problem),
            anchor=1.0,
            has_intercept=problem.initial.has_intercept,
            options=options,
        ),
        outcome=describe_criterion(_outcome(trained, problem, figures), options.criterion, problem.comparisons.strata),
    )  # fmt: skip


def _stream_parity(trained: _Trained, problem: ParityProblem) -> float:
    """Return the factor of the penalty for ``partial_fit``, also where training saw no disparity."""
    options, weight = problem.options, trained.point.weight
    if problem.unit == 0.0 < weight or (weight == 0.0 and options.parity_weight is None):
        information = trained.path.evaluator.information
        return parity_without_disparity(weight or None, information, options, len(problem.rows.groups))
    return weight * problem.unit


def _path_table(
    path: WeightPath, problem: ParityProblem, initial_scores: NDArray[np.float64], data: TrainingData
) -> dict[str, NDArray[np.float64]]:
    """Return the path as columns: weights, metrics, and the model and spread map of each point."""
    table, thetas, spreads = path.table(), [], []
    for point in path.points:
        theta, common = problem.weights(point.result.parameters)
        scores = data.response.loss.scores(group_predictors(data.X, theta, common, data.groups))
        points = spread_points(scores, initial_scores, data.groups.rows, data.weights, data.response.loss.bounds)
        levels = np.linspace(0.0, 1.0, _PATH_KNOTS)
        knots = np.interp(levels, np.linspace(0.0, 1.0, points.shape[1]), points[0])
        thetas.append(np.vstack((theta, common)))
        spreads.append(np.vstack((knots, np.interp(knots, *points))))
    return {**table, "theta": np.array(thetas), "spread": np.array(spreads)}


def _outcome(trained: _Trained, problem: ParityProblem, figures: dict[str, tuple[float, float]]) -> Notice:
    options, point = problem.options, trained.point
    if not problem.comparisons.penalised.active.size and options.parity_weight != 0.0:
        return Notice(within_chance())
    return describe_lbfgs(
        n_iter=point.result.n_iter,
        converged=point.result.converged,
        max_iter=options.max_iter,
        parity_weight=point.weight,
        metrics=point.metrics,
        figures=figures,
        reason=trained.reason,
        reached=trained.reached,
        max_disparity=options.max_disparity,
        group_specific=options.group_specific,
        response=problem.rows.response,
    )
