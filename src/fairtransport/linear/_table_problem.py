"""The optimization problem of a table whose rows stay in parts: two passes over them for each value and gradient.

One pass counts and sums scores in bins for each cell of rows, which gives the mean scores of its slices; the penalty
and all metrics are those of rows in memory, of slices in place of rows. A second pass looks up the slope of each row's
bin.
Bins are narrower than 1/500 of the standard deviation of the scores, where there are no more than 128 cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.groups import Groups
from fairtransport.linear._constants import COARSE_ROWS, FLEXIBLE_ROWS, MIN_CELL_ROWS
from fairtransport.linear._lbfgs_solver import LbfgsSolver, LinearProblem
from fairtransport.linear._partitions import (
    Journal,
    JournaledPartitions,
    LossModel,
    Partitions,
    RawParts,
    cell_weights,
    class_sums,
    content_sums,
    curvature_sums,
    feature_sums,
    gradient_sums,
    moment_sums,
    score_derivatives,
    score_sums,
)
from fairtransport.linear._problem import (
    InitialModel,
    ParityProblem,
    Scaling,
    minimise_from_constant,
    minimise_loss,
    pose_problem,
    prepare_initial_model,
)
from fairtransport.linear._table_reading import Cells, RowEncoder, TableColumns, TableReading, read_cells
from fairtransport.linear._training_data import TrainingData, TrainingOptions
from fairtransport.training.evaluation import ScoreEvaluator
from fairtransport.training.responses import Response

N_BINS = 8192  # of scores, where there are few cells; at least 512
_MOST_ENTRIES = 1 << 20  # of bins of all cells together
_DEVIATIONS = 8.0  # from the mean, beyond which scores are counted in the last bin
_MOST_COARSE = 1 << 20  # rows of the sample for coarse fits
_BITS = 32  # of sums, far more than solvers need, and less than the order of rows changes


@dataclass(frozen=True, eq=False)
class TableLoss(LinearProblem):
    """The loss of rows in parts; ``outcomes`` and ``shares``, and the scores that it returns, are those of slices."""

    rows: Partitions = field(kw_only=True)
    cells: Cells = field(kw_only=True)
    cell_outcomes: Floats = field(kw_only=True)
    cell_factors: Floats = field(kw_only=True)
    cell_models: Ints = field(kw_only=True)
    stored: Scaling = field(kw_only=True)  # units of features as they are stored: of indicators, those of 0 and 1
    interval: tuple[float, float] = field(kw_only=True, default=(0.0, 1.0))
    n_bins: int = field(kw_only=True, default=N_BINS)
    known: dict[bytes, tuple[Floats, float]] = field(kw_only=True, default_factory=dict)
    sample: TableLoss | None = field(kw_only=True, default=None)  # from which the curvature is taken
    kept: Ints | None = field(kw_only=True, default=None)  # the cells whose rows count, where not all do

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return len(self.ridge)

    def model(self, parameters: Floats) -> LossModel:
        """Return what a pass over the rows needs."""
        fixed = () if self.center is None else (self.center,)  # of rows of no group
        return LossModel(
            self.loss, self.stored.to_raw(np.vstack((parameters, *fixed))), float(self._kept(self.cells.weights).sum()),
            self.cell_outcomes, self.cell_factors, self.cell_models, self.interval, self.n_bins,
        )  # fmt: skip

    def _kept(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the cells that count."""
        return values if self.kept is None else values[self.kept]

    def _of_all(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values for all cells, zero for those that do not count."""
        if self.kept is None:
            return values
        every = np.zeros((len(self.cells.keys), *values.shape[1:]), dtype=values.dtype)
        every[self.kept] = values
        return every

    def _scaled(self, sums: Floats) -> Floats:
        """Return sums over features as they are stored, and a last column of ones, for scaled features."""
        scaled = sums.copy()
        scaled[..., :-1] = (sums[..., :-1] - self.stored.origin * sums[..., -1:]) / self.stored.unit
        return scaled

    def scores(self, parameters: Floats) -> Floats:
        """Return the mean score of each slice."""
        key = parameters.tobytes()
        if key not in self.known:
            self._count(parameters)
        return self.known[key][0]

    def _count(self, parameters: Floats) -> tuple[float, Floats]:
        loss, masses, sums = self.rows.total(score_sums, self.model(parameters))
        loss, masses, sums = _rounded(loss), self._kept(masses), self._kept(sums)
        masses[masses.sum(axis=1) == 0.0, self.n_bins // 2] = 1.0  # a cell without weight counts nowhere
        # A bin's rows have their mean score; its sums up to a level, one cell after another, are linear in each bin.
        areas = np.cumsum(sums / masses.sum(axis=1, keepdims=True)).reshape(masses.shape)
        areas = np.column_stack((np.append(0.0, areas[:-1, -1]), areas))
        means = np.diff(np.interp(self._slice_levels, _levels(masses).ravel(), areas.ravel()))
        slices = means * np.repeat(counts := self._kept(self.cells.n_slices), counts)
        self.known[parameters.tobytes()] = slices, float(loss[0])
        while len(self.known) > 64:  # the first is the initial model
            del self.known[list(self.known)[1]]
        return float(loss[0]), masses

    def terms(self, parameters: Floats, *, compared: bool) -> tuple[float, Floats, Callable[[Floats | None], Floats]]:
        """Return the mean loss, the scores of slices, and the gradient with that of a function of these scores."""
        if not compared:
            loss, gradient = map(_rounded, self.rows.total(gradient_sums, self.model(parameters), None))
            return float(loss[0]), np.zeros(0), lambda _: self._shaped(gradient)
        mean_loss, masses = self._count(parameters)

        def gradient_with(score_gradient: Floats | None) -> Floats:
            slopes = None if score_gradient is None else self._bin_slopes(score_gradient, masses)
            return self._shaped(_rounded(self.rows.total(gradient_sums, self.model(parameters), slopes)[1]))

        return mean_loss, self.scores(parameters), gradient_with

    def _bin_slopes(self, score_gradient: Floats, masses: Floats) -> Floats:
        """Return the derivative with respect to the score of a row of weight 1, for each cell and bin."""
        sums = np.append(0.0, np.cumsum(score_gradient))
        inside = np.diff(np.interp(_levels(masses), self._slice_levels, sums), axis=1)
        return self._of_all(np.where(masses > 0.0, inside / np.where(masses > 0.0, masses, 1.0), 0.0))

    @cached_property
    def _slice_levels(self) -> Floats:
        """Shares of the rows below each slice: of the first cell from 0 to 1, of the second from 1 to 2."""
        counts = self._kept(self.cells.n_slices)
        index = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.append(np.repeat(np.arange(len(counts)), counts) + index / np.repeat(counts, counts), len(counts))

    def score_sum_derivatives(self, parameters: Floats, rows: Ints, weights: Floats, sums: Ints, n_sums: int) -> Floats:
        """Return the derivatives of weighted sums of the scores of slices."""
        masses, n_slices = self._count(parameters)[1], self._kept(self.cells.n_slices)[:, None]
        levels = _levels(masses)
        middle = 0.5 * (levels[:, 1:] + levels[:, :-1]).ravel()
        at = np.searchsorted(self._slice_levels[1:-1], middle, side="right").reshape(masses.shape)  # slices of bins
        number, weight = np.zeros(len(self.outcomes), dtype=np.int64), np.zeros(len(self.outcomes))
        number[rows], weight[rows] = sums, weights
        factors = weight[at] * n_slices / np.maximum(self._kept(self.cells.weights)[:, None], 1e-300)
        by_bin = self._of_all(number[at]), self._of_all(factors)
        derivatives = _rounded(self.rows.total(score_derivatives, self.model(parameters), *by_bin, n_sums)[0])
        return self._scaled(derivatives)[:, : self.shape[0]]

    def feature_sums(self, comparisons: Comparisons) -> Floats:
        """Return the weighted sums of the features of each cell that is compared, and its weight."""
        sums = _rounded(self.rows.total(feature_sums, self.model(np.zeros(self.shape)))[0])
        sums = self._kept(self._scaled(sums))
        owners = np.repeat(np.arange(len(sums)), self._kept(self.cells.n_slices))
        cells = [np.unique(owners[rows]) for rows in comparisons.cells]
        return np.array([sums[cell].sum(axis=0) for cell in cells])

    def class_terms(self, thetas: Floats, classes: Ints) -> tuple[float, Floats]:
        """Return the mean loss of a model with weights for each class of cells, and its gradient."""
        loss, gradient = map(_rounded, self.rows.total(class_sums, self.model(thetas), classes))
        return float(loss[0]), self._scaled(gradient)

    def _shaped(self, gradient: Floats) -> Floats:
        gradient = self._scaled(gradient)[: self.shape[0]]
        if not self.has_intercept:
            gradient[:, -1] = 0.0
        return gradient

    def _model_moments(self, parameters: Floats) -> Floats:
        """Return the curvature of the loss of the rows of each model, and last of those of no group."""
        rows = self if self.sample is None else self.sample
        moments = self._scaled(_rounded(rows.rows.total(curvature_sums, rows.model(parameters))[0])).swapaxes(1, 2)
        return self._scaled(moments)

    def of_groups(self, center: Floats, cell_models: Ints, n_groups: int) -> TableLoss:
        """Return the loss of weights for each group around those of the initial model."""
        sample = None if self.sample is None else self.sample.of_groups(center, cell_models, n_groups)
        return replace(self, sample=sample, center=center, cell_models=cell_models, n_groups=n_groups, known={})

    def thinned(self, groups: Groups) -> TableLoss:
        """Return the loss of some rows of large groups, whose cells keep their weight."""
        counts, limit = self.cells.counts, COARSE_ROWS * max(80, self.n_columns)
        limit = min(limit, _MOST_COARSE // max(1, len(groups)))
        steps = np.ones(len(counts))
        for members in groups.rows:
            steps[members] = np.maximum(steps[members], np.ceil(counts[members].sum() / limit))
        steps = np.minimum(steps, np.maximum(1.0, counts // MIN_CELL_ROWS))
        if (steps == 1.0).all():
            return self
        rows = self.rows.thinned(1.0 / steps)
        kept = rows.total(cell_weights, len(counts))[0]
        if (kept * steps < 0.5 * self.cells.weights).any():  # few rows are distinct, and the same are chosen together
            rows.close()
            return self
        factors = np.where(kept > 0.0, self.cells.weights / np.maximum(kept, 1e-300), 1.0)
        return replace(self, rows=rows, cell_factors=factors, known={})


def _levels(masses: Floats) -> Floats:
    """Return the shares of rows below each bin and all: of the first cell from 0 to 1, of the second from 1 to 2."""
    below = np.hstack((np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)))
    return np.minimum(below / below[:, -1:], 1.0) + np.arange(len(masses))[:, None]


def _rounded(sums: Floats) -> Floats:
    """Return sums that are the same in whichever order they were added: kinks of the penalty magnify any difference."""
    step = 2.0 ** (np.ceil(np.log2(max(1.0, np.abs(sums).max(initial=0.0)))) - _BITS)
    rounded: Floats = np.rint(sums / step) * step
    return rounded


@dataclass(frozen=True, eq=False)
class TableEvaluator(ScoreEvaluator):
    """Evaluates scores of slices, with the loss of rows as far as it is known: that of slices is a little less."""

    known: dict[bytes, tuple[Floats, float]] = field(kw_only=True)

    def loss(self, scores: Floats) -> float:
        """Return the mean loss."""
        exact = (loss for slices, loss in self.known.values() if slices is scores or np.array_equal(slices, scores))
        return next(exact, None) or super().loss(scores)


@dataclass(frozen=True, eq=False)
class TableProblem(ParityProblem):
    """Loss + ridge + weight x penalty of a table whose rows stay in parts."""

    coarse_loss: TableLoss
    fold_of_cell: Ints | None = None

    @property
    def fold_of_row(self) -> Ints | None:
        """Folds of slices; the rows of a fold are cells of their own."""
        return None if self.fold_of_cell is None else self.coarse_loss.cells.repeated(self.fold_of_cell)

    @property
    def is_flexible(self) -> bool:
        """True if metrics of the training rows are too good, so that the disparity is estimated out of fold."""
        n_rows = float(self.coarse_loss.cells.counts.sum())
        return self.options.group_specific or self.loss.n_columns * FLEXIBLE_ROWS > n_rows

    @property
    def is_memorised(self) -> bool:
        """True if training rows are too few to say what a trained model does to new ones."""
        return self.fold_of_cell is not None

    def coarse_solver(self, factors: list[Floats]) -> LbfgsSolver:
        """Return a solver that stops early and uses a sample of large groups."""
        return self.solver((self.coarse_loss, self.comparisons.penalised, self.start), factors)

    def subsample(self, rows: Ints) -> tuple[Ints, Floats]:
        """Return the slices, whose losses use a sample of rows."""
        shares = self.loss.shares[rows]
        return rows, shares / shares.sum()

    def loss_of(self, rows: Ints, shares: Floats, n_rows: int | None = None) -> TableLoss:
        """Return the loss of the slices of some cells; with ``n_rows``, of a sample of their rows."""
        loss = replace(self.coarse_loss, sample=None)
        if n_rows is None and isinstance(self.loss, TableLoss):
            loss = self.loss
        kept = np.unique(loss.cells.repeated(np.arange(len(loss.cells.keys)))[rows])
        counts = np.isin(np.arange(len(loss.cells.keys)), kept)
        return replace(
            loss, outcomes=loss.outcomes[rows], shares=shares / shares.sum(), kept=kept, known={},
            cell_factors=loss.cell_factors * counts, n_rows=int(loss.cells.counts[kept].sum()),
        )  # fmt: skip

    def scores_of(self, rows: Bools, center: Floats | None) -> Callable[[Floats], Floats]:
        """Return the scores of the slices of some cells as a function of the parameters."""
        loss = self.loss_of(np.flatnonzero(rows), self.loss.shares[rows])
        return (loss if center is None else replace(loss, center=center)).scores

    def shared_loss_of(self, loss: LinearProblem, rows: Ints) -> LinearProblem:  # noqa: ARG002 - those of the loss
        """Return the loss of some rows with one model for all groups."""
        shared: dict[str, Any] = {"cell_models": np.zeros_like(self.coarse_loss.cell_models), "known": {}}
        return replace(loss, n_groups=0, center=None, **shared)


def build_table_problem(
    source: RawParts,
    columns: TableColumns,
    options: TrainingOptions,
    response: type[Response],
    owner: str,
    *,
    journal: Journal | None = None,
) -> tuple[TableProblem, Partitions]:
    """Return the problem of a table, and its encoded rows, which the caller closes."""
    reading = read_cells(source, columns, options, response, owner)
    cells, data, total, scaling = reading.cells, reading.data, float(reading.cells.weights.sum()), reading.scaling
    loss = encode_loss(source, columns, reading, journal=journal)
    rows = loss.rows
    try:
        coarse = loss.thinned(data.groups.select(cells.first))
        loss = loss if coarse is loss else replace(loss, sample=coarse)
        if options.estimator is None:
            initial = _default_model(loss, coarse, scaling, data, total)
        else:
            initial = given_model(options.estimator, scaling, data, total)
            loss, coarse = (replace(one, ridge=initial.ridge / scaling.unit**2) for one in (loss, coarse))
        interval = _interval(loss, scaling.to_scaled(initial.theta)[None])
        rest: dict[str, Any] = {"has_intercept": initial.has_intercept, "interval": interval}
        loss, coarse = (replace(one, **rest, known={}) for one in (loss, coarse))
        n_groups, groups = len(data.groups), data.groups.select(cells.first)
        if options.group_specific:
            owners = np.full(len(cells.keys), n_groups)
            for number, members in enumerate(groups.rows):
                owners[members] = number
            center = scaling.to_scaled(initial.theta)
            coarse = coarse.of_groups(center, owners, n_groups)
            loss = replace(loss, sample=None if loss.sample is None else coarse).of_groups(center, owners, n_groups)
        folds = None if reading.keys.folds is None else np.array([key[0] for key in cells.keys])
        problem = pose_problem(
            TableProblem, data, options, scaling, initial=initial, loss=loss, fold_of_cell=folds,
            models=tuple(range(n_groups)) if options.group_specific else (),
            coarse_loss=coarse,
        )  # fmt: skip
        slices = problem.evaluator
        evaluator = TableEvaluator(
            slices.response, slices.outcomes, slices.shares, slices.comparisons, slices.initial_scores, known=loss.known
        )
        problem = replace(problem, evaluator=evaluator, unit=problem.unit * evaluator.information / slices.information)
    except BaseException:
        rows.close()
        raise
    return problem, rows


def encode_loss(
    source: RawParts, columns: TableColumns, reading: TableReading, *, journal: Journal | None = None
) -> TableLoss:
    """Return the loss of a linear model of a table, with its encoded rows, which the caller closes."""
    cells, data, scaling = reading.cells, reading.data, reading.scaling
    n_numbers = columns.n_features if columns.encoder is None else columns.encoder.n_numbers
    indicators = np.arange(columns.n_features) >= n_numbers
    numbers = {key: number for number, key in enumerate(cells.keys)}
    rows = source.encoded(RowEncoder(reading.keys, numbers, scaling, data.response), columns.names)
    if journal is not None:
        try:
            content = (scaling.origin.tolist(), scaling.unit.tolist(), rows.total(content_sums)[0].tolist())
            journal.start(repr((columns.features, cells.keys, *content)).encode())
        except BaseException:
            rows.close()
            raise
        rows = JournaledPartitions(rows, journal)
    return TableLoss(
        parts=(),
        loss=data.response.loss,
        outcomes=data.outcomes,
        shares=data.shares,
        ridge=np.full(columns.n_features, 1.0 / float(cells.weights.sum())),
        has_intercept=True,
        n_rows=int(cells.counts.sum()),
        rows=rows,
        cells=cells,
        cell_outcomes=data.outcomes[cells.first],
        cell_factors=np.ones(len(numbers)),
        cell_models=np.zeros(len(numbers), dtype=np.int64),
        stored=Scaling(np.where(indicators, scaling.origin, 0.0), np.where(indicators, scaling.unit, 1.0)),
        n_bins=int(np.clip(_MOST_ENTRIES // len(numbers), min(512, N_BINS), N_BINS)),
    )


def _interval(loss: TableLoss, initial: Floats) -> tuple[float, float]:
    """Return where scores are counted: within eight standard deviations of those of the initial model."""
    weight, total, squares = _rounded(loss.rows.total(moment_sums, loss.model(initial))[0])
    mean = float(total / weight)
    reach = _DEVIATIONS * float(np.sqrt(max(squares / weight - mean**2, 1e-24)))
    low, high = loss.loss.bounds or (-np.inf, np.inf)
    return max(low, mean - reach), min(high, mean + reach)


def _default_model(
    loss: TableLoss, coarse: TableLoss, scaling: Scaling, data: TrainingData, total: float
) -> InitialModel:
    """Fit logistic or ridge regression with the ridge of scikit-learn's default, first to a sample."""
    response = data.response
    initial = minimise_from_constant(coarse, response.loss.best_constant(data.outcomes, data.shares)[0])
    if loss.sample is not None:
        initial = minimise_loss(loss, initial)
    theta = scaling.to_raw(initial[0])
    model = response.estimator_with(response.to_given(theta))
    if data.feature_names is not None:
        model.feature_names_in_ = data.feature_names
    return InitialModel(model, response.loss, theta, 1.0 / total, has_intercept=True)


def given_model(estimator: Any, scaling: Scaling, data: TrainingData, total: float) -> InitialModel:
    """Return a fitted model, once it is known to be linear: by its predictions for made-up rows."""
    if not hasattr(estimator, "coef_"):
        raise ValueError("Of a table that is not in memory, estimator must be None or a fitted linear model.")
    n_columns = len(scaling.unit)
    X = scaling.origin + scaling.unit * np.random.default_rng(0).normal(size=(32, n_columns))
    initial = prepare_initial_model(estimator, X, None, None, response=data.response, feature_names=data.feature_names)
    return replace(initial, ridge=data.response.ridge_of(estimator, total))
