"""The optimization problem of L-BFGS: initial model, scaled rows in canonical order, and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._sklearn import canonical_rows, row_block
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import (
    ComparedStrata,
    ComparedStratum,
    needs_labels,
    net_of_chance,
    resolve_group_target,
    weigh_by_reliability,
)
from fairtransport.criteria.penalty import ChanceTerm, DiscretePenalty, TransportPenalty
from fairtransport.groups import Groups
from fairtransport.linear._constants import (
    CHECKED_ROWS,
    COARSE_CELLS,
    COARSE_DECREASE,
    COARSE_ROWS,
    COARSE_TOLERANCE,
    FILLED_SHARE,
    FLEXIBLE_ROWS,
    LEAST_DECREASE,
    MIN_CELL_ROWS,
    NEAR_ITERATIONS,
)
from fairtransport.linear._lbfgs_solver import LbfgsSolver, LinearProblem, canonical_order, penalty_net_of_chance
from fairtransport.training.evaluation import GroupComparisons, ScoreEvaluator
from fairtransport.training.responses import Loss, Response
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from fairtransport.linear._training_data import TrainingData, TrainingOptions

# Units of the columns, so that features need no scaling.

_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Scaling:
    """An origin and a unit for each column.

    A column that is mostly non-zero has its mean as origin and its standard deviation as unit. One that is
    mostly zero keeps zero and has its largest absolute value as unit, so that an indicator stays an indicator
    whatever its two values were; so has a constant one. How the matrix is stored makes no difference.
    """

    origin: Floats
    unit: Floats

    @classmethod
    def of(cls, X: Any, weights: Floats | None = None, *, centred: bool = True) -> Scaling:
        """Return the units of a dense or CSR matrix; columns are not centred for a model without intercept."""
        n_rows, is_sparse = X.shape[0], sparse.issparse(X)
        X = canonical_rows(X)
        share = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()
        mean, peak, spread = np.asarray(X.T @ share).ravel(), np.zeros(X.shape[1]), np.zeros(X.shape[1])
        parts = [slice(start, start + _AT_ONCE) for start in range(0, n_rows, _AT_ONCE)]
        if is_sparse:

            def sums(of_values: Callable[[Any], NDArray[Any]]) -> Floats:
                total = np.zeros(X.shape[1])
                for part in parts:
                    rows = row_block(X, part.start, min(part.stop, n_rows))
                    values = np.asarray(of_values(rows), dtype=np.float64)
                    total += sparse.csr_matrix((values, rows.indices, rows.indptr), rows.shape).T @ share[part]
                return total

            counts = np.zeros(len(peak), dtype=np.int64)
            for start in range(0, X.nnz, _AT_ONCE):
                columns = X.indices[start : start + _AT_ONCE]
                np.maximum.at(peak, columns, np.abs(X.data[start : start + _AT_ONCE]))
                counts += np.bincount(columns, minlength=len(peak))
            filled = sums(lambda rows: rows.data != 0.0)
        else:
            filled = np.sum([share[part] @ (X[part] != 0) for part in parts], axis=0)
            peak = np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
        full = np.round(filled, 12) > FILLED_SHARE
        # Deviations as shares of the largest value, whose squares neither overflow nor vanish.
        if is_sparse and full.any():
            unit = np.where(peak > 0.0, peak, 1.0)
            squares = sums(lambda rows: np.square((rows.data - mean[rows.indices]) / unit[rows.indices]))
            stored = sums(lambda rows: np.ones(rows.nnz))
            zeros = np.where(counts < n_rows, np.maximum(1.0 - stored, 0.0), 0.0)
            spread = np.where(full, peak * np.sqrt(squares + zeros * (mean / unit) ** 2), 0.0)
        elif not is_sparse:
            for j in np.flatnonzero(full):
                spread[j] = peak[j] * np.sqrt(share @ ((X[:, j] - mean[j]) / peak[j]) ** 2)
        # A constant column has a spread of rounding errors only.
        spread[spread <= 1e-7 * peak] = 0.0
        unit = np.where(full & (spread > 0.0), spread, peak)
        unit[unit == 0.0] = 1.0
        return cls(np.where(full & bool(centred), mean, 0.0), unit)

    def apply(self, X: Any, *, overwrite: bool = False) -> Any:
        """Return the matrix in these units, of the same storage and number type; the one given may be overwritten."""
        starts = range(0, X.nnz if sparse.issparse(X) else len(X), _AT_ONCE)
        if not sparse.issparse(X):
            scaled = X if overwrite else np.array(X)
            for start in starts:  # in double precision, without a second copy
                part = scaled[start : start + _AT_ONCE]
                part[:] = (part - self.origin) / self.unit
            return scaled
        if overwrite and not self.origin.any() and X.has_canonical_format:
            for part in (slice(start, start + _AT_ONCE) for start in starts):
                X.data[part] /= self.unit[X.indices[part]]
            return X
        X = canonical_rows(X)
        values = X.data / self.unit[X.indices]
        # Centred columns are mostly non-zero, so little is lost by storing them in full.
        if self.origin.any():
            shift = self.origin / self.unit
            # Scipy would not store what becomes zero, which `restore` needs.
            is_mean = (values == shift[X.indices]) & (values != 0.0)
            values[is_mean] = np.nextafter(values[is_mean], np.inf)
        scaled = sparse.csr_matrix((values, X.indices, X.indptr), X.shape)
        if self.origin.any():
            scaled = scaled - sparse.csr_matrix(np.ones((X.shape[0], 1))) @ sparse.csr_matrix(shift[None])
            scaled.sum_duplicates()  # columns in ascending order
        return sparse.csr_matrix(scaled, dtype=X.dtype)

    def restore(self, X: Any) -> None:
        """Overwrite a matrix in these units by that in the units as given, up to rounding: the inverse of `apply`."""
        for start in range(0, X.nnz if sparse.issparse(X) else len(X), _AT_ONCE):
            if sparse.issparse(X):
                part, columns = X.data[start : start + _AT_ONCE], X.indices[start : start + _AT_ONCE]
                part[:] = part * self.unit[columns] + self.origin[columns]
            else:
                part = X[start : start + _AT_ONCE]
                part[:] = part * self.unit + self.origin

    def to_scaled(self, theta: Floats) -> Floats:
        """Return parameters, the intercept last, that give scaled columns the scores that ``theta`` gives raw ones."""
        out = np.array(theta, dtype=np.float64)
        out[..., :-1] = theta[..., :-1] * self.unit
        out[..., -1] = theta[..., -1] + theta[..., :-1] @ self.origin
        return out

    def to_raw(self, theta: Floats) -> Floats:
        """Return the parameters for raw columns: the inverse of `to_scaled`."""
        out = np.array(theta, dtype=np.float64)
        out[..., :-1] = theta[..., :-1] / self.unit
        out[..., -1] = theta[..., -1] - out[..., :-1] @ self.origin
        return out


# Second stage of ``fit``: the linear model that training starts from.


@dataclass(frozen=True, eq=False)
class InitialModel:
    """The initial model."""

    model: Any
    loss: Loss
    theta: Floats
    ridge: float
    has_intercept: bool

    def scores(self, X: Any) -> Floats:
        """Return the scores of rows."""
        return self.loss.scores(np.asarray(X @ self.theta[:-1], dtype=np.float64) + self.theta[-1])


def prepare_initial_model(
    estimator: Any,
    X: Any,
    y: NDArray[Any] | None,
    sample_weight: Floats | None,
    *,
    response: Response,
    feature_names: NDArray[Any] | None = None,
) -> InitialModel:
    """Return a fitted model as it is, or a fitted clone of an unfitted one."""
    response.check_estimator(estimator)
    if estimator is None:
        estimator = response.default_estimator()
    try:
        check_is_fitted(estimator)
        model = estimator
    except NotFittedError:
        model = clone(estimator)
        if sample_weight is None:
            model.fit(X, y)
        elif has_fit_parameter(model, "sample_weight"):
            model.fit(X, y, sample_weight=sample_weight)
        else:
            raise ValueError(f"{type(model).__name__} cannot be fitted with sample_weight.") from None
        if feature_names is not None:  # it was fitted on an array
            model.feature_names_in_ = feature_names
    theta = response.to_standard(_validated_theta(model, X, response, feature_names))
    total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    intercept = bool(getattr(model, "fit_intercept", True))
    return InitialModel(model, response.loss, theta, response.ridge_of(model, total), intercept)


def fit_default_model(rows: TrainingData, scaling: Scaling) -> InitialModel:
    """Fit logistic or ridge regression with the ridge of scikit-learn's default, on standardized columns."""
    n_columns, response = rows.X.shape[1], rows.response
    total = float(len(rows.shares)) if rows.weights is None else float(rows.weights.sum())
    ridge = np.full(n_columns, 1.0 / total)
    problem = LinearProblem((rows.X,), response.loss, rows.outcomes, rows.shares, ridge, has_intercept=True)
    theta = scaling.to_raw(
        minimise_from_constant(problem, response.loss.best_constant(rows.outcomes, rows.shares)[0])[0]
    )
    model = response.estimator_with(response.to_given(theta))
    if rows.feature_names is not None:
        model.feature_names_in_ = rows.feature_names
    return InitialModel(model, response.loss, theta, 1.0 / total, has_intercept=True)


def minimise_loss(problem: LinearProblem, start: Floats, tol: float = 1e-6, max_iter: int = 500) -> Floats:
    """Return the parameters that minimise loss and ridge, without a penalty."""
    no_pairs = Comparisons.of_cells(len(problem.outcomes), [], [])
    solver = LbfgsSolver(problem, DiscretePenalty(), no_pairs, initial=start, unit=0.0, tol=tol, max_iter=max_iter)
    return solver.run(0.0, start).parameters


def minimise_from_constant(problem: LinearProblem, constant: float) -> Floats:
    """Return the same for shared weights, from a constant model."""
    start = np.zeros(problem.shape)
    start[0, -1] = constant
    near = minimise_loss(problem, start, max_iter=NEAR_ITERATIONS)
    return minimise_loss(problem, near)  # with the curvature there


def check_scores_vary(scores: Floats) -> None:
    """Raise where the initial model gives every row the same score."""
    if np.ptp(scores) == 0.0:
        raise ValueError(
            "The initial model gives every row the same score, so there is nothing to transport: "
            "check that the features vary and that the model was able to learn."
        )


def _validated_theta(model: Any, X: Any, response: Response, names: NDArray[Any] | None) -> Floats:
    """Return the weights of a fitted model, once it is known to be linear on these columns."""
    for needed in ("coef_", "intercept_", *response.needed_attributes):
        if not hasattr(model, needed):
            raise TypeError(f"estimator must be {response.needed_estimator}; {type(model).__name__} has no {needed}.")
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    response.check_shape(model, coef, X.shape[1])
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and not np.array_equal(known, names):
        raise ValueError(
            "estimator was fitted on columns of other names, or in another order, than those of X; "
            f"give X the columns {', '.join(map(repr, known[:5]))}{', ...' if len(known) > 5 else ''}."
        )
    theta = np.append(coef.ravel(), np.asarray(model.intercept_, dtype=np.float64).ravel()[:1])
    few = X[: min(32, X.shape[0])]
    nameless = copy(model)
    if known is not None:  # or scikit-learn would warn that these rows have no feature names
        del nameless.feature_names_in_
    response.check_predictions(nameless, few, np.asarray(few @ theta[:-1], dtype=np.float64) + theta[-1])
    return theta


# Third stage of ``fit``: the fixed targets, if there are any, and the pairs of cells that the criterion compares.


def compare_groups(
    data: TrainingData, scores: Floats, options: TrainingOptions, without_penalty: Floats | None = None
) -> GroupComparisons:
    """Return the comparisons of groups, weighted and with targets fixed by the initial model's scores.

    Pairs that agree at the initial model and would part ``without_penalty`` count as those that differ at both.
    """
    strata = data.resolve(options)
    criterion = replace(strata.comparisons(), represented=data.represented)

    def weighed(comparisons: Comparisons) -> Comparisons:
        weights = [weigh_by_reliability(comparisons, s).weights for s in (scores, without_penalty) if s is not None]
        return comparisons.reweighted(np.max(weights, axis=0))

    pairwise = weighed(criterion)
    if options.each_other:
        return GroupComparisons(strata, criterion, pairwise, pairwise)
    targets = stratum_targets(options, scores, data.groups, data.weights, strata, response=data.response)
    to_target = replace(strata.comparisons(tuple(targets)), represented=data.represented)
    return GroupComparisons(strata, criterion, pairwise, weighed(to_target))


def stored_target(
    options: TrainingOptions,
    scores: Floats,
    groups: Groups,
    weights: Floats | None,
    *,
    response: Response,
    stratum: ComparedStratum | None = None,
) -> Floats:
    """Return the target as scores of equal mass."""
    sample = resolve_group_target(
        "barycenter_w2" if options.each_other else options.target,  # the former is shown beside them
        response.scores_as_given(scores),
        groups,
        weights,
        stratum,
        score_range=response.loss.bounds,
    )
    return response.scores_of_given(sample.equal_mass(TARGET_SIZE))


def stratum_targets(
    options: TrainingOptions,
    scores: Floats,
    groups: Groups,
    weights: Floats | None,
    strata: ComparedStrata,
    *,
    response: Response,
) -> Floats:
    """Return the target of each compared stratum, from the scores of its rows: shape (n_strata, 4096)."""
    parts = strata.compared
    try:
        return np.array(
            [stored_target(options, scores, groups, weights, response=response, stratum=part) for part in parts]
        )
    except ValueError:
        if len(parts) == 1:
            raise
        raise ValueError(
            f"target must name a distribution in each of the {len(parts)} strata that are compared, and the group that "
            "it names has no rows in some of them; use 'barycenter'."
        ) from None


@dataclass(frozen=True, eq=False)
class ParityProblem:
    """Loss + ridge + weight x penalty of a linear model, on all rows."""

    options: TrainingOptions
    rows: TrainingData
    scaling: Scaling
    initial: InitialModel
    loss: LinearProblem
    models: tuple[int, ...]
    start: Floats
    without_penalty: Floats
    comparisons: GroupComparisons
    evaluator: ScoreEvaluator
    penalty: TransportPenalty
    net_of_chance: tuple[Floats, float] | None
    unit: float

    @property
    def fold_of_row(self) -> Ints | None:
        """Folds of rows that are known before; None where rows can be put into any."""
        return None

    @property
    def is_flexible(self) -> bool:
        """True if metrics of the training rows are too good, so that the disparity is estimated out of fold."""
        return self.options.group_specific or self.loss.n_columns * FLEXIBLE_ROWS > len(self.loss.outcomes)

    @property
    def is_memorised(self) -> bool:
        """True if training rows are too few to say what a trained model does to new ones."""
        return self.is_flexible or self.loss.n_columns * CHECKED_ROWS > len(self.loss.outcomes)

    def weights(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the weights, of each group in the groups' order, and the common ones, for the columns as given."""
        common = self.scaling.to_raw(self.loss.common(parameters))
        raw = self.scaling.to_raw(parameters)
        if not self.options.group_specific:
            return raw, common
        theta = np.tile(common, (len(self.rows.groups), 1))
        theta[list(self.models)] = raw
        return theta, common

    def solver(
        self, coarse: tuple[LinearProblem, Comparisons, Floats] | None = None, factors: list[Floats] | None = None
    ) -> LbfgsSolver:
        """Return the solver of the final fit; or a coarse one of some rows, for fits that others start from."""
        options, tol, least_decrease = self.options, self.options.tol, LEAST_DECREASE
        loss, comparisons, start, penalty = self.loss, self.comparisons.penalised, self.start, self.penalty
        if coarse is not None:
            (loss, comparisons, start), penalty = coarse, options.distance.penalty(options.scale)
            tol, least_decrease = COARSE_TOLERANCE * tol, COARSE_DECREASE
        return LbfgsSolver(
            loss, penalty, comparisons,
            chance=_chance_term(self.net_of_chance, comparisons, loss.scores(start), options.scale),
            initial=start, unit=self.unit, tol=tol, max_iter=options.max_iter,
            least_decrease=least_decrease, factors=factors,
        )  # fmt: skip

    def coarse_solver(self, factors: list[Floats]) -> LbfgsSolver:
        """Return a solver that stops early and uses some rows of large groups, for fits that others start from."""
        n_rows, loss, comparisons = len(self.loss.outcomes), self.loss, self.comparisons.penalised
        picked, shares = self.subsample(np.arange(n_rows))
        if picked.size < n_rows:
            loss, comparisons = self.loss_of(picked, shares), comparisons.restricted(picked, shares * picked.size)
        return self.solver((loss, comparisons, self.start), factors)

    def subsample(self, rows: Ints) -> tuple[Ints, Floats]:
        """Return evenly spaced rows of large groups, and shares with which groups, labels and strata keep theirs."""
        shares, groups = self.loss.shares[rows], self.rows.groups
        if groups.overlapping:
            return rows, shares / shares.sum()
        codes, cells, kept, masses = groups.codes[rows], self._cells()[rows], [], []
        limit = COARSE_ROWS * max(80, self.loss.n_columns)
        if needs_labels(self.options.criterion):  # of which one may be rare
            limit *= COARSE_CELLS
        for code in range(len(groups) + 1):  # the last code marks rows of no group
            members = np.flatnonzero(codes == code)
            step = max(1, -(-members.size // limit))
            for cell in np.unique(cells[members]):
                inside = members[cells[members] == cell]
                some = inside[:: min(step, max(1, inside.size // MIN_CELL_ROWS))]
                kept.append(some)
                masses.append(shares[some] * (shares[inside].sum() / max(float(shares[some].sum()), 1e-300)))
        chosen = np.concatenate(kept)
        order = np.argsort(chosen)
        weights = np.concatenate(masses)[order]
        return rows[chosen[order]], weights / weights.sum()

    def _cells(self) -> Ints:
        """Return the number of each row's label and stratum, as far as the criterion knows them."""
        numbers = np.zeros(len(self.loss.outcomes), dtype=np.int64)
        for number, stratum in enumerate(self.comparisons.strata.compared):
            for members in stratum.rows:
                numbers[members] = number + 1
        return numbers

    def loss_of(self, rows: Ints, shares: Floats, n_rows: int | None = None) -> LinearProblem:
        """Return the loss of some rows, which represent ``n_rows``."""
        parts = _parts(self.rows.X[rows], self.rows.groups.select(rows), self.models)
        represented = len(self.loss.outcomes) if n_rows is None else n_rows
        return replace(self.loss, parts=parts, outcomes=self.loss.outcomes[rows], shares=shares, n_rows=represented)

    def shared_loss_of(self, loss: LinearProblem, rows: Ints) -> LinearProblem:
        """Return the loss of some rows with one model for all groups."""
        return replace(loss, parts=(self.rows.X[rows],), n_groups=0, center=None)

    def scores_of(self, rows: Bools, center: Floats | None) -> Callable[[Floats], Floats]:
        """Return the scores of some rows as a function of the parameters."""
        loss = self.loss if center is None else replace(self.loss, center=center)
        return lambda parameters: loss.loss.scores(loss.predictors(parameters)[rows])  # a copy of rows takes longer


P = TypeVar("P", bound=ParityProblem)


def build_problem(data: TrainingData, options: TrainingOptions) -> ParityProblem:
    """Return the problem of rows in memory: initial model, comparisons of groups, loss and penalty."""
    rows, estimator = data.select(_row_order(data, group_specific=options.group_specific)), options.estimator
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
    return pose_problem(ParityProblem, rows, options, scaling, initial=initial, loss=loss, models=models)


def pose_problem(
    kind: type[P],
    rows: TrainingData,
    options: TrainingOptions,
    scaling: Scaling,
    *,
    initial: InitialModel,
    loss: LinearProblem,
    **fields: Any,
) -> P:
    """Return the problem of a loss and an initial model: what is compared, and the unit of the weight."""
    theta = scaling.to_scaled(initial.theta)
    start = np.tile(theta, (loss.shape[0], 1))
    scores = loss.scores(start)
    check_scores_vary(scores)
    both, without_penalty = [scores], start
    if options.group_specific:
        without_penalty = minimise_loss(loss, start, COARSE_TOLERANCE * options.tol)
        both.append(loss.scores(without_penalty))
    comparisons = compare_groups(rows, scores, options, *both[1:])
    evaluator = ScoreEvaluator(rows.response, rows.outcomes, rows.shares, comparisons, scores)
    penalty, penalised = options.distance.penalty(options.scale), comparisons.penalised
    parts, value = None, 0.0
    if penalised.active.size:
        parts = net_of_chance(penalised, scores, penalty)
        chance = _chance_term(parts, penalised, scores, options.scale)
        value = max(penalty_net_of_chance(penalty, penalised, chance, each)[0] for each in both)
    return kind(
        options=options,
        rows=rows,
        scaling=scaling,
        initial=initial,
        loss=loss,
        start=start,
        without_penalty=without_penalty,
        comparisons=comparisons,
        evaluator=evaluator,
        penalty=penalty,
        net_of_chance=parts,
        unit=evaluator.information / value if value > 0.0 else 0.0,
        **fields,
    )


def _chance_term(
    net: tuple[Floats, float] | None, comparisons: Comparisons, scores: Floats, scale: str
) -> ChanceTerm | None:
    if net is None:
        return None
    parts, remaining = net
    term = ChanceTerm.of(comparisons, parts * comparisons.sampling_errors(), scale)
    return replace(term, noise=remaining * term.value_and_gradient(scores)[0])


def _row_order(data: TrainingData, *, group_specific: bool) -> Ints:
    """Return the canonical order of the rows; with weights for each group, the rows of a group are contiguous."""
    order = canonical_order(data.X, data.response.outcomes(data.y), data.weights)
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
    if ends[-1] < X.shape[0]:
        ends = np.append(ends, X.shape[0])
    return tuple(row_block(X, start, stop) for start, stop in pairwise(ends.tolist()))
