"""Fourth stage of ``fit``: the stochastic solver, which moves each group, label and stratum to a fixed target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from fairtransport.groups import Groups
from fairtransport.linear.online._initial_memory import memory_from_rows, parity_without_disparity
from fairtransport.linear.solvers._sgd import Objective, Trainer
from fairtransport.linear.solvers._step_sizes import automatic_steps, plain_steps
from fairtransport.linear.solvers.sgd_problem import TrainingProblem
from fairtransport.linear.training._initial_model import InitialModel, check_scores_vary, prepare_initial_model
from fairtransport.linear.training._result import FitResult, group_predictors
from fairtransport.linear.training.comparisons import GroupComparisons, compare_groups, stored_target, stratum_targets
from fairtransport.linear.training.evaluation import ScoreEvaluator, metrics_before_and_after
from fairtransport.linear.training.outcome import Notice, describe_criterion, notices_of_losses, within_chance
from fairtransport.linear.training.spread_map import spread_points
from fairtransport.linear.training.weight_path import empty_path
from fairtransport.penalties import DiscretePenalty
from fairtransport.strata import Strata

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.solvers.settings import SgdSettings
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._options import TrainingOptions

__all__ = ["PreparedTrainer", "prepare_trainer", "train_sgd"]


@dataclass(frozen=True, eq=False)
class PreparedTrainer:
    """A trainer before its first update, with the initial model and the comparisons that it was made from."""

    trainer: Trainer
    initial: InitialModel
    initial_scores: NDArray[np.float64]
    comparisons: GroupComparisons
    target: NDArray[np.float64]
    targets: NDArray[np.float64]


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
    targets = stratum_targets(options, scores, data, strata)
    problem = TrainingProblem.build(
        data.X, data.outcomes, data.groups, targets, data.weights, strata=strata, loss=response.loss
    )
    dual = options.distance.dual_problem(settings, rng)
    dual_step = settings.dual_step if settings.dual_step is not None else dual.default_step if dual else 0.0
    without_loss = np.isinf(options.sgd_weight)  # as in the paper
    objective = Objective(
        parity=1.0 if without_loss else options.sgd_weight * _unit(data, scores, comparisons),
        anchor=0.0 if without_loss else 1.0,
        ridge=initial.ridge,
        dual=dual,
        dual_step=float(dual_step),
    )
    batch_size = settings.batch_size or options.distance.batch_size
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
    return PreparedTrainer(trainer, initial, scores, comparisons, target, targets)


def train_sgd(data: TrainingData, options: TrainingOptions, settings: SgdSettings) -> FitResult:
    """Run all updates and return what an estimator stores."""
    prepared = prepare_trainer(data, options, settings)
    trainer, initial_scores, weight = prepared.trainer, prepared.initial_scores, options.sgd_weight
    run = trainer.run(
        trainer.budget,
        average=settings.average,
        verbose=options.verbose,
        title=f"{options.distance.name} training",
    )
    common = run.theta.mean(axis=0)
    response = data.response
    scores = response.loss.scores(group_predictors(data.X, run.theta, common, data.groups))
    evaluator = ScoreEvaluator(response, data.outcomes, data.shares, prepared.comparisons, initial_scores)
    metrics, figures = evaluator.evaluate(scores), metrics_before_and_after(evaluator, scores)
    losses = notices_of_losses(metrics.information_kept, figures, metrics.excess, response)
    outcome = f"{run.outcome}; {losses.text}" if losses.text else run.outcome
    parity = trainer.objective.parity
    if parity == 0.0 < weight:
        outcome = within_chance(run.outcome)
        parity = parity_without_disparity(weight, evaluator.information, options, len(data.groups))
    groups = Groups.from_spec(data.groups.to_spec())
    return FitResult(
        response=response,
        initial=prepared.initial,
        groups=groups,
        group_sizes=data.groups.counts,
        strata=None if data.strata is None else Strata.from_spec(data.strata.to_spec()),
        theta=run.theta,
        common=common,
        parity_weight=weight,
        target=prepared.target,
        n_iter=run.n_updates,
        information_kept=metrics.information_kept,
        before_after=figures,
        history=run.history,
        spread=spread_points(scores, initial_scores, data.groups.rows, data.weights, response.loss.bounds),
        path=empty_path(response),
        duals=options.distance.sgd_duals(run, groups),
        memory=memory_from_rows(
            data, run.theta,
            compared=prepared.comparisons.strata,
            targets=prepared.targets,
            parity=parity,
            anchor=trainer.objective.anchor,
            has_intercept=prepared.initial.has_intercept,
            options=options,
        ),
        outcome=describe_criterion(
            Notice(outcome, losses.warnings), options.criterion, prepared.comparisons.strata
        ),
    )  # fmt: skip


def _unit(data: TrainingData, scores: NDArray[np.float64], comparisons: GroupComparisons) -> float:
    """Return the factor of the sum of distances to the target at weight 1."""
    weighted = comparisons.penalised
    information = ScoreEvaluator(data.response, data.outcomes, data.shares, comparisons, scores).information
    plain = comparisons.strata.comparisons(weighted.targets)
    terms = DiscretePenalty(huber_width=0.0, scale="score").value_and_gradient(scores, plain)
    reliable = float(weighted.weights @ terms.distances)
    return information * reliable / terms.value**2 if terms.value > 0.0 else 0.0
