"""The memory that a stream starts with: from the rows of ``fit``, or from those of a first batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.criteria import needs_labels, resolve_criterion
from fairtransport.linear.online.memory import Batch, OnlineMemory
from fairtransport.linear.online.sketches import POINTS, Sketches
from fairtransport.linear.solvers._step_sizes import ParameterSteps, automatic_steps, plain_steps, whitened_steps
from fairtransport.linear.training._scaling import Scaling
from fairtransport.linear.training.comparisons import stored_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.criteria import ComparedStrata
    from fairtransport.groups import Groups
    from fairtransport.linear.losses import Loss
    from fairtransport.linear.responses import Response
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._options import TrainingOptions
    from fairtransport.strata import Strata

__all__ = ["default_parity_weight", "memory_from_batch", "memory_from_rows", "parity_without_disparity", "row_masses"]

_ROWS_OF_A_GROUP = 1000
_MAX_WHITENED = 800  # columns, as in training
_PEOPLE = 10  # whose scores a point of the target is the mean of, where the groups have so many
_TYPICAL_DISPARITY = 0.1  # a distance that matters, where training saw none
_DEFAULT_WEIGHT = 3.0  # of parity, where no path has chosen one


def default_parity_weight(options: TrainingOptions) -> float:
    """Return the weight of parity where no training has chosen one."""
    if options.parity_weight is not None:
        return options.parity_weight
    return _DEFAULT_WEIGHT if options.sgd is None else np.inf


def parity_without_disparity(
    weight: float | None, information: float, options: TrainingOptions, n_groups: int
) -> float:
    """Return the factor of the penalty where training saw no disparity: as if each distance had been a typical one."""
    return (weight or _DEFAULT_WEIGHT) * information / (_TYPICAL_DISPARITY * options.n_pairs(n_groups))


def row_masses(weights: NDArray[np.float64] | None, n_rows: int) -> NDArray[np.float64]:
    """Return the weight of each row, 1 where there are none."""
    return np.ones(n_rows) if weights is None else weights


def memory_from_batch(
    batch: Batch,
    theta: NDArray[np.float64],
    initial_scores: NDArray[np.float64],
    *,
    target: NDArray[np.float64],
    group_sizes: NDArray[np.int64],
    has_intercept: bool,
    options: TrainingOptions,
    response: Response,
    strata: Strata | None = None,
) -> OnlineMemory:
    """Return the memory of a model without one, from the rows of a batch and their scores by the initial model."""
    compared, targets = None, target[None]
    criterion = response.criterion_within_strata(options.criterion)
    if strata is not None or needs_labels(criterion):
        compared = resolve_criterion(
            criterion,
            batch.groups,
            labels=batch.labels,
            strata=strata,
            row_weights=batch.mass,
            stratum_weight=options.stratum_weight,
        )
        targets = np.array(
            [
                stored_target(options, initial_scores, batch.groups, batch.mass, response=response, stratum=part)
                for part in compared.compared
            ]
        )
    weight = default_parity_weight(options)
    information, constant = response.loss.expected_gain(initial_scores, batch.mass / batch.mass.sum())
    unit = max(information, 0.01 * constant) / (_TYPICAL_DISPARITY * options.n_pairs(len(group_sizes)))
    return _memory(
        batch, theta,
        targets=targets,
        compared=compared,
        smallest_group=int(np.min(group_sizes)),
        parity=1.0 if np.isinf(weight) else weight * unit,
        anchor=0.0 if np.isinf(weight) else 1.0,
        has_intercept=has_intercept,
        options=options,
        loss=response.loss,
    )  # fmt: skip


def memory_from_rows(
    data: TrainingData,
    theta: NDArray[np.float64],
    *,
    compared: ComparedStrata,
    targets: NDArray[np.float64],
    parity: float,
    anchor: float,
    has_intercept: bool,
    options: TrainingOptions,
) -> OnlineMemory:
    """Return the memory after a ``fit``, from its rows and its weights of parity and anchor."""
    codes = None if data.strata is None else data.strata.codes
    return _memory(
        Batch(data.X, data.groups, row_masses(data.weights, data.X.shape[0]), data.outcomes, codes), theta,
        targets=targets,
        compared=compared,
        smallest_group=int(np.min(data.groups.counts)),
        parity=parity,
        anchor=anchor,
        has_intercept=has_intercept,
        options=options,
        loss=data.response.loss,
    )  # fmt: skip


def _memory(
    batch: Batch,
    theta: NDArray[np.float64],
    *,
    targets: NDArray[np.float64],
    compared: ComparedStrata | None,
    smallest_group: int,
    parity: float,
    anchor: float,
    has_intercept: bool,
    options: TrainingOptions,
    loss: Loss,
) -> OnlineMemory:
    blocks, smallest = np.array([[-1.0, -1.0, 1.0]]), [smallest_group]
    if compared is not None and not compared.is_everywhere:
        blocks = np.array(
            [
                [-1 if part.label is None else part.label, -1 if part.stratum is None else part.stratum, part.weight]
                for part in compared.compared
            ]
        )
        smallest = [min(rows.size for rows in part.rows) for part in compared.compared]
    parameter_step = None if options.sgd is None else options.sgd.parameter_step
    scaling, steps, trace = _units_and_steps(batch.X, batch.groups, parameter_step, has_intercept=has_intercept)
    predictors = batch.predictors(theta)
    points = np.array([_condensed(target, n_rows) for target, n_rows in zip(targets, smallest, strict=True)])
    cells = batch.cells(blocks)
    sketches = Sketches.empty(len(cells), batch.X.shape[1])
    sketches = sketches.seen(batch.X, predictors, cells, batch.mass, np.inf, loss=loss).shortened(options.half_life)
    parts = zip(sketches.split(len(blocks)), points, strict=True)
    return OnlineMemory(
        loss_name=loss.name,
        parity=parity,
        anchor=anchor,
        curvature=float(np.average(loss.curvature(loss.scores(predictors)), weights=batch.mass)),
        size=steps.size if parameter_step is not None else 0.0,
        trace=trace,
        origin=scaling.origin,
        unit=scaling.unit,
        scale=steps.scale,
        matrix=steps.matrix[0] if len(steps.matrix) else np.zeros((0, 0)),
        centre=theta,
        blocks=blocks,
        target=points,
        sketches=Sketches.joined([part.filled(loss.predictors(like)) for part, like in parts]),
    )


def _units_and_steps(
    X: Any, groups: Groups, parameter_step: float | None, *, has_intercept: bool
) -> tuple[Scaling, ParameterSteps, float]:
    """Return units of the columns, factors of the gradients, and what drawing one row adds to the curvature."""
    n_columns = X.shape[1]
    if parameter_step is not None:
        steps = plain_steps(float(parameter_step), n_columns)
        return Scaling.none(n_columns), steps if has_intercept else steps.without_intercept(), 0.0
    scaling = Scaling.of(X, centred=has_intercept)
    # A few evenly spaced rows of each group are enough.
    picked = [rows[:: max(1, len(rows) // _ROWS_OF_A_GROUP)] for rows in groups.rows if len(rows)]
    ends = np.cumsum([len(rows) for rows in picked])
    group_rows = [np.arange(end - len(rows), end) for rows, end in zip(picked, ends, strict=True)]
    scaled = scaling.apply(X[np.concatenate(picked)])
    if n_columns <= _MAX_WHITENED:
        # Shrink as if one row for each column showed no correlation: few rows may not show that there is one.
        ridge = np.full(n_columns, n_columns / X.shape[0])
        rng = np.random.default_rng(0)
        steps = whitened_steps(scaled, group_rows, ridge=ridge, rng=rng, batch_size=1, weight=1.0)
        trace = steps.noise
    else:
        all_rows, one_row = (
            automatic_steps(
                scaled, group_rows, batch_size=batch_size, n_updates=1, weight=1.0, ridge=0.0,
                rng=np.random.default_rng(0),
            )
            for batch_size in (2**62, 1)
        )  # fmt: skip
        # Sizes are a constant over L and over L + trace; with L in the scale both are as for whitened columns.
        steps = ParameterSteps(0.0, all_rows.scale * 2.0 * all_rows.size)
        trace = all_rows.size / one_row.size - 1.0
    return scaling, steps if has_intercept else steps.without_intercept(), trace


def _condensed(target: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Return means of equal parts of the target, few enough for several people to be behind each."""
    n_points = POINTS
    while n_points > 1 and n_points * _PEOPLE > n_rows:
        n_points //= 2
    parts = np.sort(target).reshape(n_points, -1).mean(axis=1)
    if n_points == 1:
        return np.repeat(parts, POINTS)
    # Interpolated between the means: the same spread as far as they show it.
    return np.interp((np.arange(POINTS) + 0.5) / POINTS, (np.arange(n_points) + 0.5) / n_points, parts)
