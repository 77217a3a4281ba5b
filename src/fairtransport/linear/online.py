"""The state of a linear model in a stream, which a batch turns into the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fairtransport._arrays import Floats, Ints
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import MAX_PAIRED_GROUPS, needs_labels, pairs_of_groups, resolve_criterion
from fairtransport.criteria.distance import Distance
from fairtransport.criteria.penalty import ContinuousPenalty, Duals, TransportPenalty, duals_by_group
from fairtransport.groups import Groups
from fairtransport.linear._constants import (
    DEFAULT_WEIGHT,
    MAX_SHIFT,
    MAX_TRIALS,
    MOST_UNITS,
    PEOPLE_OF_A_POINT,
    STABLE_FRACTION,
    TYPICAL_DISPARITY,
    WHITENED_IN_STREAMS,
)
from fairtransport.linear._problem import Scaling, stratum_targets
from fairtransport.linear.sgd_solver import ParameterSteps, automatic_steps, plain_steps, whitened_steps
from fairtransport.linear.sketches import POINTS, Sketches
from fairtransport.strata import Strata
from fairtransport.training.responses import LOSSES, Loss, Response

if TYPE_CHECKING:
    from fairtransport.linear._training_data import TrainingOptions

# The steps of one batch: the sketches take it up, labels move the centre, theta follows the penalty's gradient.

_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class UpdateRule:
    """The parameters of the estimator by which a state is updated."""

    distance: Distance
    scale: str
    each_other: bool
    half_life: float
    n_updates: int

    def penalty(self) -> TransportPenalty:
        """Return a penalty on the points of sketches."""
        return self.distance.penalty(self.scale, n_slices=POINTS)

    def comparisons(self, memory: OnlineMemory) -> Comparisons:
        """Return the pairs of groups, or the pairs of each group and the target or everyone, in each block.

        Each sketch is one cell, which stands for its rows. Everyone is a cell of the points of all groups of a block,
        so there the points are rows.
        """
        n_groups, n_cells = memory.n_groups, len(memory.sketches)
        blocks = range(len(memory.blocks))
        names: list[int | None] = [group for _ in blocks for group in range(n_groups)]
        as_rows = self.each_other and n_groups > MAX_PAIRED_GROUPS
        points = np.arange(n_cells * POINTS if as_rows else n_cells)
        cells = list(points.reshape(n_cells, -1))
        pairs: list[tuple[int, int]] = []
        for block in blocks:
            first = block * n_groups
            if self.each_other and not as_rows:
                pairs += [(first + one, first + other) for one, other in pairs_of_groups(n_groups)]
            else:
                pairs += [(first + group, n_cells + block) for group in range(n_groups)]
        masses = None
        if as_rows:
            cells += list(points.reshape(len(memory.blocks), -1))
            names += [None] * len(memory.blocks)
            masses = np.repeat(memory.sketches.weights / memory.sketches.weights.sum(), POINTS)
        return Comparisons.of_cells(
            points.size,
            cells,
            pairs,
            weights=np.repeat(memory.blocks[:, 2], len(pairs) // len(memory.blocks)),
            targets=() if self.each_other else list(memory.target),
            row_weights=masses,
            names=names,
        )


def _descend(
    memory: OnlineMemory, theta: Floats, rule: UpdateRule, penalty: TransportPenalty
) -> tuple[OnlineMemory, Floats]:
    """Move theta down the penalty's gradient and back to the centre, in a few updates; the sketches follow."""
    comparisons = rule.comparisons(memory)
    n_groups = memory.n_groups
    pairs_of_a_group = n_groups - 1 if rule.each_other and n_groups <= MAX_PAIRED_GROUPS else 1
    size = memory.size or STABLE_FRACTION / max(memory.anchor + memory.parity * pairs_of_a_group, 1e-300)
    value, gradients = _penalty_at(memory, theta, comparisons, penalty)
    skipped = memory.n_skipped + rule.n_updates
    for _ in range(rule.n_updates):
        for _ in range(MAX_TRIALS):
            change, used = _bounded_change(memory, theta, gradients, size)
            if not np.isfinite(change).all():  # columns beyond the range of floating-point numbers
                break
            moved = memory.moved(change)
            new_value, new_gradients = _penalty_at(moved, theta + change, comparisons, penalty)
            shrink = 1.0 if memory.size else _shrinkage(memory, gradients, change, used, new_value - value)
            if shrink == 1.0:
                memory, theta, value, gradients = moved, theta + change, new_value, new_gradients
                skipped -= 1
                break
            size = used * shrink
    return replace(memory, n_skipped=skipped), theta


def _penalty_at(
    memory: OnlineMemory, theta: Floats, comparisons: Comparisons, penalty: TransportPenalty
) -> tuple[float, Floats]:
    """Return the weighted penalty of the sketches, and its gradient with respect to theta."""
    predictors = memory.sketches.points()
    scores = memory.loss.scores(predictors)
    if comparisons.n_rows == scores.size:
        rows = penalty.value_and_gradient(scores.ravel(), comparisons)
        value, slopes = rows.value, rows.gradient.reshape(scores.shape) * scores.shape[1]
    else:
        terms = penalty.slice_terms(scores, memory.sketches.weights, comparisons)
        value, slopes = terms.value, np.array(terms.slopes)
    gradients = memory.sketches.mean_gradients(predictors, memory.parity * slopes * memory.loss.score_slopes(scores))
    if len(theta) == 1:
        return memory.parity * value, gradients.sum(axis=0, keepdims=True)
    return memory.parity * value, gradients.reshape(len(memory.blocks), *theta.shape).sum(axis=0)


def _bounded_change(memory: OnlineMemory, theta: Floats, gradients: Floats, size: float) -> tuple[Floats, float]:
    """Return a change of theta and its step size: the given one, or the largest that moves no group too far."""
    with np.errstate(all="ignore"):
        change = -size * memory.step_for(gradients)
        change -= min(1.0, size * memory.anchor * memory.curvature) * (theta - memory.centre)
        shift = float(np.abs(memory.sketches.mean_moves(memory.by_cell(change))).max())
    if not shift > MAX_SHIFT:
        return change, size
    return change * (MAX_SHIFT / shift), size * (MAX_SHIFT / shift)


def _shrinkage(memory: OnlineMemory, gradients: Floats, change: Floats, size: float, difference: float) -> float:
    """Return 1 where the penalty lies below the parabola that the step minimises, and else a factor of the size.

    Without this test theta would oscillate around parity: the curvature of the penalty depends on the distance, its
    scale, and how far apart the groups are. The parabola is that of proximal gradient steps (Beck and Teboulle, 2009),
    with its norm bounded from below by the Cauchy-Schwarz inequality.
    """
    predicted = float((gradients * change).sum())
    steepness = float((gradients * memory.step_for(gradients)).sum())
    if steepness <= 0.0:
        return 1.0
    allowed, curved = predicted**2 / (2.0 * size * steepness), difference - predicted
    if curved <= allowed + _ROUNDING * abs(predicted):
        return 1.0
    return min(0.5, max(0.1, 0.9 * allowed / curved))


def _learn_labels(memory: OnlineMemory, theta: Floats, batch: Batch) -> tuple[OnlineMemory, Floats]:
    """Let labels move the centre by a step of online regression; theta and the sketches go along."""
    if batch.labels is None or batch.size <= 0.0:
        return memory, theta
    residuals = memory.loss.residuals(batch.predictors(memory.centre), batch.labels)
    residuals *= batch.mass / batch.size
    if len(theta) == 1:
        gradients = np.append(np.asarray(batch.X.T @ residuals, dtype=np.float64), residuals.sum())[None]
    else:
        gradients = np.array([np.append(batch.X[r].T @ residuals[r], residuals[r].sum()) for r in batch.groups.rows])
    # As if the centre had been learned from so many rows, however many there were, so that it can still change.
    prior_rows = max(memory.sketches.memory, 10.0 * memory.trace)
    change = -(batch.size / (batch.size + prior_rows) / memory.loss.max_curvature) * memory.step_for(gradients)
    if not np.isfinite(change).all():
        return memory, theta
    return replace(memory.moved(change), centre=memory.centre + change), theta + change


# What ``partial_fit`` remembers between two batches: a sketch of each group, and step sizes.

_MIN_DISTANCE = 1e-9


@dataclass(frozen=True, eq=False)
class OnlineMemory:
    """Memory of ``partial_fit``; its size does not depend on the number of batches."""

    loss_name: str
    parity: float
    anchor: float
    curvature: float
    size: float
    trace: float
    origin: Floats
    unit: Floats
    reach: Floats
    scale: Floats
    matrix: Floats
    centre: Floats
    blocks: Floats
    target: Floats
    sketches: Sketches
    n_batches: int = 0
    n_rows: int = 0
    n_skipped: int = 0  # updates for which no step reduced the penalty

    @property
    def loss(self) -> Loss:
        """The loss of the model."""
        return LOSSES[self.loss_name]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.sketches) // len(self.blocks)

    def widened(self, n_groups: int, *, each_other: bool) -> OnlineMemory:
        """Return the memory of more groups. A new one starts like the target, or like the mean of the others."""
        if n_groups == self.n_groups:
            return self
        parity, parts = self.parity, []
        for sketches, target in zip(self.sketches.split(len(self.blocks)), self.target, strict=True):
            scores = self.loss.scores(sketches.points())
            like = self.loss.predictors(np.mean(scores, axis=0) if each_other else target)
            parts.append(sketches.widened(n_groups, like))
            if each_other and len(scores) <= MAX_PAIRED_GROUPS < n_groups:
                parity += self.parity * (_pairs_per_group(scores) - 1.0) / len(self.blocks)
        centre = widened_weights(self.centre, n_groups)
        return replace(self, parity=parity, centre=centre, sketches=Sketches.joined(parts))

    def moved(self, change: Floats) -> OnlineMemory:
        """Return the memory after a change of theta, which the sketches follow."""
        return replace(self, sketches=self.sketches.moved(self.by_cell(change)))

    def by_cell(self, change: Floats) -> Floats:
        """Return a change of theta for each sketch, or the one of all."""
        return change if len(change) == 1 else np.tile(change, (len(self.blocks), 1))

    def bounded(self, batch: Batch) -> Batch:
        """Return the batch in which no cell is farther from the origin of its column than one may count."""
        low, high = self.origin - self.reach, self.origin + self.reach
        X = batch.X
        if not sparse.issparse(X):
            return replace(batch, X=np.clip(X, low, high))
        X, zero = X.copy(), np.clip(0.0, low, high)  # of cells that are not stored
        X.data = np.clip(X.data, low[X.indices], high[X.indices]) - zero[X.indices]
        if zero.any():
            X = X + sparse.csr_matrix(np.ones((X.shape[0], 1))) @ sparse.csr_matrix(zero[None])
        return replace(batch, X=X)

    def step_for(self, gradients: Floats) -> Floats:
        """Return steps of theta for gradients; both for the columns as given, the intercept last."""
        steps = gradients.copy()
        steps[:, :-1] = (gradients[:, :-1] - self.origin * gradients[:, -1:]) / self.unit
        steps = steps @ self.matrix if len(self.matrix) else steps * self.scale
        steps[:, :-1] /= self.unit
        steps[:, -1] -= steps[:, :-1] @ self.origin
        return steps

    def to_scaled(self, theta: Floats) -> Floats:
        """Return weights for scaled columns: each in the unit of its column, the intercept at the origin."""
        return Scaling(self.origin, self.unit).to_scaled(theta)


def _pairs_per_group(scores: Floats) -> float:
    """Return the sum of the distances of all pairs in units of that of each group to everyone.

    Where new groups make the comparison change from one to the other, the penalty keeps its weight.
    """
    between = sum(float(np.abs(scores[:a] - scores[a]).mean(axis=1).sum()) for a in range(1, len(scores)))
    to_everyone = float(np.abs(scores - scores.mean(axis=0)).mean(axis=1).sum())
    return between / to_everyone if to_everyone > _MIN_DISTANCE else 0.5 * len(scores)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a stream."""

    X: Any
    groups: Groups
    mass: Floats
    labels: Floats | None = None
    strata: Ints | None = None

    def cells(self, blocks: Floats) -> list[Ints]:
        """Return the rows of each group in each block."""
        cells: list[Ints] = []
        for label, stratum, _ in blocks:
            inside = np.ones(len(self.mass), dtype=bool)
            for column, value in ((self.labels, label), (self.strata, stratum)):
                if value >= 0:
                    inside &= False if column is None else column == value
            cells += list(self.groups.rows if inside.all() else (rows[inside[rows]] for rows in self.groups.rows))
        return cells

    @property
    def size(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.mass.sum())

    def predictors(self, theta: Floats) -> Floats:
        """Return the linear predictor of each row, by the weights of its group where each has its own."""
        return group_predictors(self.X, theta, np.zeros(theta.shape[1]), self.groups)


def group_predictors(X: Any, theta: Floats, common: Floats, groups: Groups) -> Floats:
    """Return the linear predictor of each row by the weights of its group, or by the common ones."""
    if len(theta) == 1:
        return np.asarray(X @ theta[0, :-1] + theta[0, -1], dtype=np.float64)
    predictors = np.asarray(X @ common[:-1] + common[-1], dtype=np.float64)
    for weights, rows in zip(theta, groups.rows, strict=True):
        predictors[rows] = X[rows] @ weights[:-1] + weights[-1]
    return predictors


def widened_weights(theta: Floats, n_groups: int) -> Floats:
    """Return weights of more groups: where each group has its own, new ones have the mean of the others."""
    if len(theta) == 1 or n_groups <= len(theta):
        return theta
    return np.concatenate((theta, np.tile(theta.mean(axis=0), (n_groups - len(theta), 1))))


@dataclass(frozen=True, eq=False)
class OnlineState:
    """A linear model and its memory between two batches of a stream."""

    rule: UpdateRule
    theta: Floats
    common: Floats
    groups: Groups
    memory: OnlineMemory | None
    duals: Duals | None = None

    def update(self, batch: Batch) -> OnlineState:
        """Return the state after a batch, whose groups are those of this state, followed by new ones."""
        state = self.widened(batch.groups)
        if state.memory is None:
            raise ValueError("A state without memory cannot be updated; start one with the rows of a batch.")
        rule, memory, theta, duals = self.rule, state.memory, state.theta, state.duals
        batch = memory.bounded(batch)
        cells, predictors = batch.cells(memory.blocks), batch.predictors(theta)
        memory = replace(
            memory,
            sketches=memory.sketches.seen(batch.X, predictors, cells, batch.mass, rule.half_life, loss=memory.loss),
            n_batches=memory.n_batches + 1,
            n_rows=memory.n_rows + batch.X.shape[0],
        )
        if rule.n_updates:
            if memory.anchor > 0.0:
                memory, theta = _learn_labels(memory, theta, batch)
            penalty = rule.penalty()
            memory, theta = _descend(memory, theta, rule, penalty)
            if isinstance(penalty, ContinuousPenalty):
                duals = duals_by_group(penalty, rule.comparisons(memory), state.groups)
        return replace(state, theta=theta, common=theta.mean(axis=0), memory=memory, duals=duals)

    def widened(self, groups: Groups) -> OnlineState:
        """Return the state of more groups; these are the known ones, followed by new ones."""
        if len(groups) == len(self.groups):
            return self
        theta = widened_weights(self.theta, len(groups))
        wider = replace(self, theta=theta, groups=Groups.from_spec(groups.to_spec()))
        if self.memory is None:
            return wider
        memory = self.memory.widened(len(groups), each_other=self.rule.each_other)
        return replace(wider, memory=memory, common=theta.mean(axis=0))

    def moved(self, change: Floats) -> OnlineState:
        """Return the state after a change of the weights, which the memory follows."""
        theta, memory = self.theta + change, self.memory
        if memory is not None:
            memory = memory.moved(change)
        return replace(self, theta=theta, common=theta.mean(axis=0), memory=memory)

    def without_memory(self) -> OnlineState:
        """Return a state that scores the same and cannot be updated."""
        return replace(self, memory=None)


# The memory that a stream starts with: from the rows of ``fit``, or from those of a first batch.

_ROWS_OF_A_GROUP = 1000
_EVERYWHERE = np.array([[-1.0, -1.0, 1.0]])  # the one block of demographic parity: no label, no stratum, weight 1


def default_parity_weight(options: TrainingOptions) -> float:
    """Return the weight of parity where no training has chosen one."""
    if options.parity_weight is not None:
        return options.parity_weight
    return DEFAULT_WEIGHT if options.sgd is None else np.inf


def parity_without_disparity(
    weight: float | None, information: float, options: TrainingOptions, n_groups: int
) -> float:
    """Return the factor of the penalty where training saw no disparity: as if each distance had been a typical one."""
    return (weight or DEFAULT_WEIGHT) * information / (TYPICAL_DISPARITY * options.n_pairs(n_groups))


def row_masses(weights: Floats | None, n_rows: int) -> Floats:
    """Return the weight of each row, 1 where there are none."""
    return np.ones(n_rows) if weights is None else weights


def make_memory(
    batch: Batch,
    theta: Floats,
    initial_scores: Floats,
    *,
    target: Floats,
    weights: Floats | None,
    strata: Strata | None,
    group_sizes: Ints,
    factors: tuple[float, float] | None,
    has_intercept: bool,
    options: TrainingOptions,
    response: Response,
) -> OnlineMemory:
    """Return the memory of a model, from rows and their scores by the initial model.

    ``factors`` are those of penalty and anchor; where no ``fit`` has found them, they are those of a typical disparity.
    """
    loss, blocks, targets, smallest = response.loss, _EVERYWHERE, target[None], [int(np.min(group_sizes))]
    criterion = response.criterion_within_strata(options.criterion)
    if strata is not None or needs_labels(criterion):
        compared = resolve_criterion(criterion, batch.groups, labels=batch.labels, strata=strata, row_weights=weights)
        targets = stratum_targets(options, initial_scores, batch.groups, weights, compared, response=response)
        blocks = np.array(
            [
                [-1 if part.label is None else part.label, -1 if part.stratum is None else part.stratum, part.weight]
                for part in compared.compared
            ]
        )
        smallest = [min(rows.size for rows in part.rows) for part in compared.compared]
    if factors is None:
        weight = default_parity_weight(options)
        information, constant = loss.expected_gain(initial_scores, batch.mass / batch.mass.sum())
        unit = max(information, 0.01 * constant) / (TYPICAL_DISPARITY * options.n_pairs(len(group_sizes)))
        factors = (1.0, 0.0) if np.isinf(weight) else (weight * unit, 1.0)
    parameter_step = None if options.sgd is None else options.sgd.parameter_step
    own_units = Scaling.of(batch.X, centred=has_intercept)
    scaling, steps, trace = _units_and_steps(
        batch.X, batch.groups, own_units, parameter_step, has_intercept=has_intercept
    )
    predictors, cells = batch.predictors(theta), batch.cells(blocks)
    points = np.array([_condensed(target, n_rows) for target, n_rows in zip(targets, smallest, strict=True)])
    sketches = Sketches.empty(len(cells), batch.X.shape[1])
    sketches = sketches.seen(batch.X, predictors, cells, batch.mass, np.inf, loss=loss).shortened(options.half_life)
    parts = zip(sketches.split(len(blocks)), points, strict=True)
    return OnlineMemory(
        loss_name=loss.name,
        parity=factors[0],
        anchor=factors[1],
        curvature=float(np.average(loss.curvature(loss.scores(predictors)), weights=batch.mass)),
        size=steps.size if parameter_step is not None else 0.0,
        trace=trace,
        origin=scaling.origin,
        unit=scaling.unit,
        reach=MOST_UNITS * own_units.unit + np.abs(own_units.origin - scaling.origin),
        scale=steps.scale,
        matrix=steps.matrix[0] if len(steps.matrix) else np.zeros((0, 0)),
        centre=theta,
        blocks=blocks,
        target=points,
        sketches=Sketches.joined([part.filled(loss.predictors(like)) for part, like in parts]),
    )


def _units_and_steps(
    X: Any, groups: Groups, scaling: Scaling, parameter_step: float | None, *, has_intercept: bool
) -> tuple[Scaling, ParameterSteps, float]:
    """Return units of the columns, factors of the gradients, and what drawing one row adds to the curvature."""
    n_columns = X.shape[1]
    if parameter_step is not None:
        steps = plain_steps(float(parameter_step), n_columns)
        return (
            Scaling(np.zeros(n_columns), np.ones(n_columns)),
            steps if has_intercept else steps.without_intercept(),
            0.0,
        )
    # A few evenly spaced rows of each group are enough.
    picked = [rows[:: max(1, len(rows) // _ROWS_OF_A_GROUP)] for rows in groups.rows if len(rows)]
    ends = np.cumsum([len(rows) for rows in picked])
    group_rows = [np.arange(end - len(rows), end) for rows, end in zip(picked, ends, strict=True)]
    scaled = scaling.apply(X[np.concatenate(picked)])
    if n_columns <= WHITENED_IN_STREAMS:
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


def _condensed(target: Floats, n_rows: int) -> Floats:
    """Return means of equal parts of the target, few enough for several people to be behind each."""
    n_points = POINTS
    while n_points > 1 and n_points * PEOPLE_OF_A_POINT > n_rows:
        n_points //= 2
    parts = np.sort(target).reshape(n_points, -1).mean(axis=1)
    if n_points == 1:
        return np.repeat(parts, POINTS)
    # Interpolated between the means: the same spread as far as they show it.
    return np.interp((np.arange(POINTS) + 0.5) / POINTS, (np.arange(n_points) + 0.5) / n_points, parts)
