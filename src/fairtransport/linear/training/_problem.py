"""The optimization problem of L-BFGS: rows in canonical order, loss, penalty and comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.criteria import net_of_chance
from fairtransport.linear.solvers._lbfgs import LbfgsSolver, penalty_net_of_chance
from fairtransport.linear.solvers._linear_problem import LinearProblem, canonical_order
from fairtransport.linear.training._initial_model import (
    InitialModel,
    check_scores_vary,
    fit_default_model,
    prepare_initial_model,
)
from fairtransport.linear.training._scaling import Scaling
from fairtransport.linear.training.comparisons import GroupComparisons, compare_groups
from fairtransport.linear.training.evaluation import ScoreEvaluator
from fairtransport.penalties import ChanceTerm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._options import TrainingOptions
    from fairtransport.penalties import Comparisons, TransportPenalty

__all__ = ["ParityProblem", "build_problem"]

_COARSE_TOLERANCE = 20.0  # times that of the final fit
_COARSE_ROWS = 200  # of a group for each column, and for 20 columns at least: enough to choose a weight
_MIN_CELL_ROWS = 200  # of a group with the same label and stratum
_FLEXIBLE = 20  # rows for each column below which metrics of the training rows are too good


@dataclass(frozen=True, eq=False)
class ParityProblem:
    """Loss + ridge + weight x penalty of a linear model, on all rows.

    Attributes
    ----------
    options : TrainingOptions
    rows : TrainingData
        In canonical order, the columns scaled.
    order : ndarray of shape (n_rows,)
        Index of each of these rows in the data as given.
    scaling : Scaling
        Units of the columns.
    initial : InitialModel
        For the columns as given.
    loss : LinearProblem
    models : tuple of int
        Groups with their own weights, in the order of their rows; empty with shared weights.
    start : ndarray
        Parameters of the initial model.
    comparisons : GroupComparisons
    evaluator : ScoreEvaluator
        Of the training rows.
    penalty : TransportPenalty
        Of the final fit.
    net_of_chance : (ndarray of shape (n_pairs,), float) or None
        Which part of what chance adds to distances is subtracted; see `fairtransport.criteria.net_of_chance`.
    unit : float
        Factor of the penalty at weight 1: the information of the initial model divided by its penalty.
    """

    options: TrainingOptions
    rows: TrainingData
    order: NDArray[np.int64]
    scaling: Scaling
    initial: InitialModel
    loss: LinearProblem
    models: tuple[int, ...]
    start: NDArray[np.float64]
    comparisons: GroupComparisons
    evaluator: ScoreEvaluator
    penalty: TransportPenalty
    net_of_chance: tuple[NDArray[np.float64], float] | None
    unit: float

    @property
    def is_flexible(self) -> bool:
        """Whether metrics of the training rows are too good, so that the disparity is estimated out of fold."""
        return self.options.group_specific or self.loss.n_columns * _FLEXIBLE > len(self.loss.outcomes)

    def scores(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of the rows in canonical order."""
        return self.loss.scores(parameters)

    def in_given_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the rows in the order of the data as given."""
        restored = np.empty_like(values)
        restored[self.order] = values
        return restored

    def weights(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights, of each group in the groups' order, and the common ones, for the columns as given."""
        common = self.scaling.to_raw(self.loss.common(parameters))
        raw = self.scaling.to_raw(parameters)
        if not self.options.group_specific:
            return raw, common
        theta = np.tile(common, (len(self.rows.groups), 1))
        theta[list(self.models)] = raw
        return theta, common

    def solver(self) -> LbfgsSolver:
        """Return the solver of the final fit."""
        return LbfgsSolver(
            self.loss,
            self.penalty,
            self.comparisons.penalised,
            chance=self._chance_term(self.comparisons.penalised, self.evaluator.initial_scores),
            initial=self.start,
            unit=self.unit,
            tol=self.options.tol,
            max_iter=self.options.max_iter,
        )

    def coarse_solver(
        self,
        loss: LinearProblem,
        comparisons: Comparisons,
        start: NDArray[np.float64],
        factors: list[NDArray[np.float64]] | None = None,
    ) -> LbfgsSolver:
        """Return a solver with a larger tolerance and a new penalty, for fits that others start from."""
        return LbfgsSolver(
            loss,
            self.options.distance.penalty(self.options.scale),
            comparisons,
            chance=self._chance_term(comparisons, loss.scores(start)),
            initial=start,
            unit=self.unit,
            tol=_COARSE_TOLERANCE * self.options.tol,
            max_iter=self.options.max_iter,
            factors=factors,
        )

    def _chance_term(self, comparisons: Comparisons, scores: NDArray[np.float64]) -> ChanceTerm | None:
        """Return what is subtracted from the penalty of these comparisons: those of all rows, or of some."""
        return _chance_term(self.net_of_chance, comparisons, scores, self.options.scale)

    def subsample(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return evenly spaced rows of large groups, and shares with which groups, labels and strata keep theirs."""
        shares, groups = self.loss.shares[rows], self.rows.groups
        if groups.overlapping:
            return rows, shares / shares.sum()
        codes, cells, kept, masses = groups.codes[rows], self._cells()[rows], [], []
        limit = _COARSE_ROWS * max(20, self.loss.n_columns)
        for code in range(len(groups) + 1):  # the last code marks rows of no group
            members = np.flatnonzero(codes == code)
            step = max(1, -(-members.size // limit))
            for cell in np.unique(cells[members]):
                inside = members[cells[members] == cell]
                some = inside[:: min(step, max(1, inside.size // _MIN_CELL_ROWS))]
                kept.append(some)
                masses.append(shares[some] * (shares[inside].sum() / max(float(shares[some].sum()), 1e-300)))
        chosen = np.concatenate(kept)
        order = np.argsort(chosen)
        weights = np.concatenate(masses)[order]
        return rows[chosen[order]], weights / weights.sum()

    def _cells(self) -> NDArray[np.int64]:
        """Return the number of each row's label and stratum, as far as the criterion knows them."""
        numbers = np.zeros(len(self.loss.outcomes), dtype=np.int64)
        for number, stratum in enumerate(self.comparisons.strata.compared):
            for members in stratum.rows:
                numbers[members] = number + 1
        return numbers

    def loss_of(self, rows: NDArray[np.int64], shares: NDArray[np.float64], n_rows: int | None = None) -> LinearProblem:
        """Return the loss of some rows, which represent ``n_rows``."""
        parts = _parts(self.rows.X[rows], self.rows.groups.select(rows), self.models)
        represented = len(self.loss.outcomes) if n_rows is None else n_rows
        return replace(self.loss, parts=parts, outcomes=self.loss.outcomes[rows], shares=shares, n_rows=represented)


def build_problem(data: TrainingData, options: TrainingOptions) -> ParityProblem:
    """Return the problem of a table: initial model, comparisons of groups, loss and penalty."""
    order = _row_order(data, group_specific=options.group_specific)
    rows, estimator = data.select(order), options.estimator
    scaling = Scaling.of(rows.X, rows.weights, centred=bool(getattr(estimator, "fit_intercept", True)))
    if estimator is not None:  # it is fitted on the columns as given
        initial = prepare_initial_model(
            estimator, rows.X, rows.y, rows.weights, response=rows.response, feature_names=rows.feature_names
        )
    rows = replace(rows, X=scaling.apply(rows.X, overwrite=True))
    if estimator is None:
        initial = fit_default_model(rows, scaling)
    ridge = np.full(rows.X.shape[1], initial.ridge)
    if estimator is not None:  # its ridge is that of the columns as given
        ridge /= scaling.unit**2
    models, theta = _groups_in_order(rows.groups) if options.group_specific else (), scaling.to_scaled(initial.theta)
    loss = LinearProblem(
        _parts(rows.X, rows.groups, models),
        rows.response.loss,
        rows.outcomes,
        rows.shares,
        ridge,
        initial.has_intercept,
        len(models),
        theta if options.group_specific else None,
    )
    start = np.tile(theta, (loss.shape[0], 1))
    scores = loss.scores(start)
    check_scores_vary(scores)
    comparisons = compare_groups(rows, scores, options)
    evaluator = ScoreEvaluator(rows.response, rows.outcomes, rows.shares, comparisons, scores)
    penalty, penalised = options.distance.penalty(options.scale), comparisons.penalised
    parts, value = None, 0.0
    if penalised.active.size:
        parts = net_of_chance(penalised, scores, penalty)
        chance = _chance_term(parts, penalised, scores, options.scale)
        value, _ = penalty_net_of_chance(penalty, penalised, chance, scores)
    return ParityProblem(
        options=options,
        rows=rows,
        order=order,
        scaling=scaling,
        initial=initial,
        loss=loss,
        models=models,
        start=start,
        comparisons=comparisons,
        evaluator=evaluator,
        penalty=penalty,
        net_of_chance=parts,
        unit=evaluator.information / value if value > 0.0 else 0.0,
    )


def _chance_term(
    net: tuple[NDArray[np.float64], float] | None, comparisons: Comparisons, scores: NDArray[np.float64], scale: str
) -> ChanceTerm | None:
    if net is None:
        return None
    parts, remaining = net
    term = ChanceTerm.of(comparisons, parts * comparisons.sampling_errors(), scale)
    return replace(term, noise=remaining * term.value_and_gradient(scores)[0])


def _row_order(data: TrainingData, *, group_specific: bool) -> NDArray[np.int64]:
    """Return the canonical order of the rows; with weights for each group, the rows of a group are contiguous."""
    order = canonical_order(data.X, data.outcomes, data.weights)
    if not group_specific:
        return order
    codes = data.groups.codes[order]
    counts, first = np.bincount(codes, minlength=len(data.groups) + 1), np.full(len(data.groups) + 1, len(order))
    present, index = np.unique(codes, return_index=True)
    first[present] = index
    position = np.empty(len(counts), np.int64)
    counts[-1] = len(order) + 1  # rows of no group come last
    position[np.lexsort((first, counts))] = np.arange(len(counts))  # independent of the groups' names
    return np.asarray(order[np.argsort(position[codes], kind="stable")])


def _groups_in_order(groups: Groups) -> tuple[int, ...]:
    """Return the groups in the order of their rows, which are contiguous."""
    present = [group for group, rows in enumerate(groups.rows) if rows.size]
    return tuple(sorted(present, key=lambda group: int(groups.rows[group][0])))


def _parts(X: Any, groups: Groups, models: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the rows of each group with its own weights, then those of no group; all rows with shared weights."""
    if not models:
        return (X,)
    sizes = groups.counts
    ends = np.concatenate(([0], np.cumsum([sizes[group] for group in models])))
    parts = [X[start:stop] for start, stop in pairwise(ends.tolist())]
    return (*parts, X[ends[-1] :]) if ends[-1] < X.shape[0] else tuple(parts)
