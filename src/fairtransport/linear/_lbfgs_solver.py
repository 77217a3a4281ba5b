"""The default solver, L-BFGS on all rows, of loss + ridge + weight * penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import minimize

from fairtransport._arrays import Floats, Ints
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.penalty import ChanceTerm, TransportPenalty
from fairtransport.linear._constants import (
    CORRECTIONS,
    CURVED_ROWS,
    HESSIAN_ROWS,
    LEAST_CURVATURE,
    LINE_SEARCHES,
    MAX_CURVED,
    MAX_WHITENED,
    MIN_CURVED,
    MOST_PRIOR_ROWS,
    PRIOR_ROWS,
    SATURATED,
    SHIFT_ROWS,
    SPARSE_HESSIAN_ROWS,
)
from fairtransport.training.responses import Loss
from fairtransport.transport.kernels.rows import add_outer_products, score_sparse, sum_sparse
from fairtransport.transport.line import FEW_SCORES

# The loss of a linear model on all rows, in a canonical order and in whitened coordinates.

_BLOCK = 8192
_SLOWEST = -0.02  # change of the logarithm of a decrease in an iteration


def canonical_order(X: Any, outcomes: NDArray[Any], weights: Floats | None) -> Ints:
    """Return an order of the rows that depends on their content only.

    Rows are sorted by one fixed random projection of their columns, then by outcome and weight.
    """
    key = np.asarray(X @ np.random.default_rng(0).normal(size=X.shape[1]).astype(X.dtype), dtype=np.float64)
    keys = (outcomes, key) if weights is None else (weights, outcomes, key)
    return np.lexsort(keys)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    r"""Mean loss of a linear model, with weights that are shared or specific to each group.

    Notes
    -----
    Parameters are an array of shape (n_models, n_columns + 1), the intercept last. Group-specific weights have a
    Gaussian prior whose mean is the initial model's weights, with the precision

    .. math:: r I + \frac{k}{n} P^\top C P + \frac{30}{n} C,

    with C the mean curvature of the loss at the initial model and P the projection, in the metric of C, onto
    the complement of the intercept and the direction of the initial weights. A shift or stretch of a group's
    predictors, which is what repair does, has the prior of 30 observations; any other change that of k observations:
    100 per column, and fewer where there are more than 30 rows per column. Rows of no group have the initial weights.
    """

    parts: tuple[Any, ...]
    loss: Loss
    outcomes: Floats
    shares: Floats
    ridge: Floats
    has_intercept: bool
    n_groups: int = 0
    center: Floats | None = None
    n_rows: int | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.parts[0].shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters."""
        return max(1, self.n_groups), self.n_columns + 1

    def common(self, parameters: Floats) -> Floats:
        """Return the weights of rows that are in no group."""
        return np.asarray(parameters[0] if self.center is None else self.center)

    def predictors(self, parameters: Floats) -> Floats:
        """Return the linear predictor of each row."""
        predictors, done = np.empty(len(self.outcomes)), 0
        for number, part in enumerate(self.parts):
            theta = parameters[number] if number < len(parameters) else self.common(parameters)
            rows = slice(done, done + part.shape[0])
            done = rows.stop
            if _is_compiled(part):
                score_sparse(part.data, part.indices, part.indptr, theta, predictors[rows])
                continue
            predictors[rows] = _times(part, theta[:-1])
            predictors[rows] += theta[-1]
        return predictors

    def scores(self, parameters: Floats) -> Floats:
        """Return the score of each row."""
        return self.loss.scores(self.predictors(parameters))

    def gradient(self, slopes: Floats) -> Floats:
        """Return the gradient with respect to the parameters from the one with respect to the predictors."""
        gradient, done = np.zeros(self.shape), 0
        for number, part in enumerate(self.parts):
            part_slopes = slopes[done : done + part.shape[0]]
            done += part.shape[0]
            if number >= len(gradient):  # the weights of rows of no group are fixed
                continue
            if _is_compiled(part):
                sum_sparse(part.data, part.indices, part.indptr, part_slopes, gradient[number])
            else:
                weights = _times(self._transposed[number], part_slopes, by_column=True)
                gradient[number] = np.append(weights, part_slopes.sum())
        if not self.has_intercept:
            gradient[:, -1] = 0.0
        return gradient

    @cached_property
    def _transposed(self) -> tuple[Any, ...]:
        return tuple(part.T for part in self.parts)  # views

    def terms(
        self,
        parameters: Floats,
        *,
        compared: bool,  # noqa: ARG002 - subclasses need scores only where they are compared
    ) -> tuple[float, Floats, Callable[[Floats | None], Floats]]:
        """Return the mean loss, the scores, and the gradient of the loss plus that of a function of the scores."""
        loss, scores, slopes = self.loss.terms(
            self.predictors(parameters), self.outcomes, self.shares, equal_shares=self.has_equal_shares
        )

        def gradient(score_gradient: Floats | None) -> Floats:
            if score_gradient is not None:
                score_gradient *= self.loss.score_slopes(scores)  # in place, as tables may be large
                np.add(slopes, score_gradient, out=slopes)
            return self.gradient(slopes)

        return loss, scores, gradient

    def ridge_terms(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the ridge term and its gradient."""
        centered = parameters if self.center is None else parameters - self.center
        gradient = centered @ self._precision if self._precision.ndim == 2 else centered * self._precision
        return 0.5 * float((gradient * centered).sum()), gradient

    @cached_property
    def _precision(self) -> Floats:
        """Precision of the prior of one model's parameters: a matrix, or its diagonal."""
        ridge = np.append(self.ridge, 0.0)
        if self.center is None:
            return ridge
        moments = np.asarray(sum(self._center_moments))
        per_column = (self.n_rows or len(self.outcomes)) / self.n_columns
        rows = min(MOST_PRIOR_ROWS, PRIOR_ROWS / per_column) / per_column
        shift = SHIFT_ROWS / (self.n_rows or len(self.outcomes))
        if moments.ndim == 1:
            return ridge + rows * np.append(moments[:-1], 0.0) + shift * moments
        free = np.column_stack((np.append(np.zeros(self.n_columns), 1.0), self.center))
        inner = np.linalg.pinv(free.T @ moments @ free, hermitian=True)
        project = np.eye(self.n_columns + 1) - free @ inner @ free.T @ moments
        projected = project.T @ moments @ project
        return np.asarray(np.diag(ridge) + 0.5 * rows * (projected + projected.T) + shift * moments)

    @cached_property
    def _center_moments(self) -> Any:
        return self._model_moments(np.tile(np.asarray(self.center), (self.shape[0], 1)))

    def _model_moments(self, parameters: Floats) -> Any:
        """Return the curvature, or its diagonal, of the loss of the rows of each model, and of those of no group."""
        ends = np.cumsum([part.shape[0] for part in self.parts])[:-1]
        curvatures = np.split(self._curvature(parameters), ends)
        return [self._moments(part, curvature) for part, curvature in zip(self.parts, curvatures, strict=True)]

    def score_sum_derivatives(self, parameters: Floats, rows: Ints, weights: Floats, sums: Ints, n_sums: int) -> Floats:
        """Return the derivatives of weighted sums of scores: of which sum each of some rows is part."""
        ends = np.cumsum([part.shape[0] for part in self.parts])
        derivatives, owners = np.zeros((n_sums, *self.shape)), np.searchsorted(ends, rows, side="right")
        for model in np.unique(owners):
            mine, part, theta = np.flatnonzero(owners == model), self.parts[model], parameters[model]
            features = part[rows[mine] - (ends[model] - part.shape[0])]
            scores = self.loss.scores(_times(features, theta[:-1]) + theta[-1])
            slopes = weights[mine] * self.loss.score_slopes(scores)
            matrix = sparse.csr_matrix((slopes, (sums[mine], np.arange(mine.size))), (n_sums, mine.size))
            product = matrix @ features
            derivatives[:, model, :-1] = product.toarray() if sparse.issparse(product) else product
            derivatives[:, model, -1] = np.bincount(sums[mine], slopes, n_sums)
        return derivatives

    def feature_sums(self, comparisons: Comparisons) -> Floats:
        """Return the weighted sums of the features of each cell, and its weight; of shared weights."""
        mass = np.ones(len(self.outcomes)) if comparisons.row_weights is None else comparisons.row_weights
        part, cells = self.parts[0], comparisons.cells
        return np.array([np.append(_times(part[c].T, mass[c], by_column=True), mass[c].sum()) for c in cells])

    @cached_property
    def has_equal_shares(self) -> bool:
        """True if all rows count the same."""
        return bool((self.shares == self.shares[0]).all())

    def whitening(self, parameters: Floats) -> list[Floats]:
        r"""Return for each row of the parameters a matrix M (or a vector, its diagonal) with M M' the inverse Hessian.

        In coordinates u, with parameters = M u, the loss at these parameters has unit curvature in every direction, so
        that collinear or badly scaled columns do not slow a solver down.
        """
        is_center = self.center is not None and bool((parameters == self.center).all())
        moments = self._center_moments if is_center else self._model_moments(parameters)
        return [self._factor(each) for each in moments[: self.shape[0]]]

    def _curvature(self, parameters: Floats) -> Floats:
        return np.asarray(self.shares * np.maximum(self.loss.curvature(self.scores(parameters)), SATURATED))

    def _moments(self, part: Any, curvature: Floats) -> Floats:
        """Return the sum of curvature times the outer products of the rows, from a sample of them; or its diagonal."""
        is_sparse = sparse.issparse(part)
        limit = max(SPARSE_HESSIAN_ROWS if is_sparse else HESSIAN_ROWS, 10 * self.n_columns)
        sampled = np.arange(0, part.shape[0], max(1, part.shape[0] // limit))
        mass = curvature.sum() * curvature[sampled] / max(float(curvature[sampled].sum()), 1e-300)
        if self.n_columns >= MAX_WHITENED:
            square = part[sampled].power(2) if is_sparse else part[sampled] ** 2
            return np.append(np.asarray(square.T @ mass, dtype=np.float64), mass.sum())
        moments = np.zeros((self.n_columns + 1, self.n_columns + 1))
        if _is_compiled(part):
            add_outer_products(part.data, part.indices, part.indptr, sampled, mass, moments)
            return np.tril(moments) + np.tril(moments, -1).T
        for start in range(0, sampled.size, _BLOCK):
            rows = sampled[start : start + _BLOCK]
            dense = part[rows].toarray() if is_sparse else part[rows]
            dense = np.column_stack((np.asarray(dense, dtype=np.float64), np.ones(rows.size)))
            moments += dense.T @ (mass[start : start + _BLOCK, None] * dense)
        return moments

    def _factor(self, moments: Floats) -> Floats:
        """Return M with M M' the inverse of moments plus the precision of the prior."""
        if moments.ndim == 1:
            diagonal = moments + self._precision
            factor = 1.0 / np.sqrt(np.maximum(diagonal, LEAST_CURVATURE * diagonal.max()))
        else:
            hessian = moments + (self._precision if self._precision.ndim == 2 else np.diag(self._precision))
            if not self.has_intercept:
                hessian[-1, :], hessian[:, -1] = 0.0, 0.0
            values, vectors = _eigh(hessian)
            factor = vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE * max(float(values[-1]), 1e-12)))
        if not self.has_intercept:
            factor[-1] = 0.0
        return np.asarray(factor)


def _eigh(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors, also of the few matrices for which LAPACK's quicker method fails."""
    try:
        values, vectors = linalg.eigh(matrix)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(matrix, driver="evd")
    return values, vectors


def _is_compiled(part: Any) -> bool:
    """Return whether products with these rows use the compiled loops."""
    return sparse.issparse(part) and part.shape[0] > FEW_SCORES


def _times(matrix: Any, vector: Floats, *, by_column: bool = False) -> Floats:
    """Return the product in double precision; single-precision rows are converted block by block."""
    if sparse.issparse(matrix) or matrix.dtype == np.float64:
        return np.asarray(matrix @ vector, dtype=np.float64)
    starts = range(0, matrix.shape[1] if by_column else matrix.shape[0], _BLOCK)
    if by_column:
        blocks = (slice(s, s + _BLOCK) for s in starts)
        return np.asarray(sum(matrix[:, block].astype(np.float64) @ vector[block] for block in blocks))
    return np.concatenate([matrix[s : s + _BLOCK].astype(np.float64) @ vector for s in starts])


def unwhiten(factors: Sequence[Floats], coordinates: Floats) -> Floats:
    """Return the parameters at whitened coordinates."""
    return np.array([m @ u if m.ndim == 2 else m * u for m, u in zip(factors, coordinates, strict=True)])


def whiten_gradient(factors: Sequence[Floats], gradient: Floats) -> Floats:
    """Return the gradient with respect to whitened coordinates from the one with respect to parameters."""
    return np.array([m.T @ g if m.ndim == 2 else m * g for m, g in zip(factors, gradient, strict=True)])


@dataclass(frozen=True, eq=False)
class LbfgsResult:
    """Result of one run of the solver."""

    parameters: Floats
    converged: bool
    n_iter: int
    records: list[tuple[float, float]]
    value: float = np.nan


class LbfgsSolver:
    r"""Minimises loss + ridge + :math:`w u \sum_k w_k\, d_k(s)` over the parameters of a linear model."""

    def __init__(
        self,
        problem: LinearProblem,
        penalty: TransportPenalty,
        comparisons: Comparisons,
        *,
        chance: ChanceTerm | None = None,
        initial: Floats,
        unit: float,
        tol: float,
        max_iter: int,
        least_decrease: float = 1e-4,
        factors: list[Floats] | None = None,
    ) -> None:
        self.problem, self.penalty, self.comparisons, self.unit = problem, penalty, comparisons, unit
        self.chance, self.tol, self.max_iter, self.least_decrease = chance, tol, max_iter, least_decrease
        self.factors = problem.whitening(initial) if factors is None else factors
        self._last, self._value = (0.0, 0.0), 0.0

    def run(
        self,
        weight: float,
        start: Floats,
        on_iteration: Callable[[int, float, float, float | None], None] | None = None,
        *,
        max_iter: int | None = None,
    ) -> LbfgsResult:
        """Return the minimum for one weight of the penalty, from a starting point."""
        max_iter = self.max_iter if max_iter is None else max_iter
        records: list[tuple[float, float]] = []
        values: list[float] = []
        metric, least = self._metric(start, weight), self.least_decrease * self.tol

        def evaluated(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = self.value_and_gradient(parameters, weight)
            return value, metric(whiten_gradient(self.factors, gradient).ravel())

        at_start, unit = evaluated(start), 1.0
        if weight == 0.0 or len(start) > 1:  # scipy's first step has length 1 where Newton's has that of the gradient
            unit = float(np.linalg.norm(at_start[1])) or 1.0

        def moved(coordinates: Floats) -> Floats:
            return start + unwhiten(self.factors, metric(unit * coordinates).reshape(self.problem.shape))

        def objective(coordinates: Floats) -> tuple[float, Floats]:
            value, gradient = evaluated(moved(coordinates)) if coordinates.any() else at_start
            return value, unit * gradient

        def after(_: Any) -> None:
            records.append(self._last)
            if on_iteration is not None:
                values.append(self._value)
                on_iteration(len(records), *self._last, iterations_left(values, least))

        solution = minimize(
            objective,
            np.zeros(int(np.prod(self.problem.shape))),
            jac=True,
            method="L-BFGS-B",
            callback=after,
            options={
                "maxiter": max_iter, "maxfun": 2 * max_iter + 10, "maxcor": CORRECTIONS,
                "gtol": unit * self.tol, "ftol": least, "maxls": LINE_SEARCHES,
            },
        )  # fmt: skip
        parameters = moved(solution.x)
        # A line search that ends at rounding errors (status 2) has converged where the gradient is small.
        converged = solution.status == 0 or (
            solution.status == 2 and float(np.abs(solution.jac).max()) <= 100.0 * unit * self.tol
        )
        return LbfgsResult(parameters, converged, int(solution.nit), records, float(solution.fun))

    @property
    def is_curved(self) -> bool:
        """Whether there are so many columns and rows that the penalty's curvature is worth computing."""
        problem = self.problem
        n_rows = problem.n_rows or len(problem.outcomes)
        return problem.n_columns >= MIN_CURVED and int(np.prod(problem.shape)) <= MAX_CURVED and n_rows >= CURVED_ROWS

    def equal_means(self, parameters: Floats) -> Floats | None:
        """Return the nearest shared weights, in the metric of the loss, that give each pair of cells equal means."""
        comparisons, problem = self.comparisons, self.problem
        pairs = comparisons.pairs[comparisons.active]
        is_shared = len(parameters) == 1 and self.factors[0].ndim == 2
        if not (self.is_curved and is_shared) or pairs.max(initial=0) >= len(comparisons.cells):
            return None
        sums = problem.feature_sums(comparisons)
        means = sums / np.maximum(sums[:, -1:], 1e-300)
        gaps = means[pairs[:, 0]] - means[pairs[:, 1]]
        step = np.linalg.lstsq(gaps @ self.factors[0], gaps @ parameters[0], rcond=1e-8)[0]
        return parameters - self.factors[0] @ step

    def _metric(self, parameters: Floats, weight: float) -> Callable[[Floats], Floats]:
        """Return the product with R = R', where R R is about the inverse curvature in whitened coordinates."""
        problem, size = self.problem, int(np.prod(self.problem.shape))
        factor = weight * self.unit
        if factor == 0.0 or not self.is_curved or not self.comparisons.active.size:
            return lambda coordinates: coordinates
        scores = problem.scores(parameters)

        def jacobian(*sums: Any) -> Floats:
            derivatives = problem.score_sum_derivatives(parameters, *sums)
            for model, whitened in enumerate(self.factors):
                whiten = derivatives[:, model]
                derivatives[:, model] = whiten @ whitened if whitened.ndim == 2 else whiten * whitened
            return derivatives.reshape(len(derivatives), -1)

        rows = self.penalty.curvature(scores, self.comparisons, jacobian)
        is_wide = len(rows) < size
        values, vectors = _eigh(rows @ rows.T if is_wide else rows.T @ rows)
        kept = values > 1e-10 * values[-1]
        values, vectors = values[kept], vectors[:, kept]
        if is_wide:
            vectors = (rows.T @ vectors) / np.sqrt(values)
        shrunk = 1.0 - 1.0 / np.sqrt(1.0 + factor * values)
        return lambda coordinates: coordinates - vectors @ (shrunk * (coordinates @ vectors))

    def value_and_gradient(self, parameters: Floats, weight: float) -> tuple[float, Floats]:
        """Return the objective and its gradient with respect to the parameters."""
        problem, compared = self.problem, weight > 0.0 and self.unit > 0.0
        loss, scores, gradient_with = problem.terms(parameters, compared=compared)
        ridge, gradient = problem.ridge_terms(parameters)
        penalty: float = 0.0
        score_gradient: Floats | None = None
        if compared:
            penalty, score_gradient = penalty_net_of_chance(self.penalty, self.comparisons, self.chance, scores)
            score_gradient *= weight * self.unit
        self._last, self._value = (penalty, loss), loss + ridge + weight * self.unit * penalty
        return self._value, gradient + gradient_with(score_gradient)


def iterations_left(values: Sequence[float], least: float) -> float | None:
    """Return about how many iterations remain, if the decreases of the objective go on to fall as in the last twelve.

    None of the first seven values, which tell too little.
    """
    recent = np.array(values[-13:])
    if recent.size < 8:
        return None
    decreases = (recent[:-1] - recent[1:]) / np.maximum(np.abs(recent[:-1]), 1.0)
    logs = np.log(np.maximum(decreases, 1e-16))
    slope = float(np.polyfit(np.arange(logs.size), logs, 1)[0])
    return max(0.0, (float(np.log(least)) - float(logs[-3:].mean())) / min(slope, _SLOWEST))


def penalty_net_of_chance(
    penalty: TransportPenalty, comparisons: Comparisons, chance: ChanceTerm | None, scores: Floats
) -> tuple[float, Floats]:
    """Return the penalty without what chance adds to it, and its derivative with respect to each score."""
    terms = penalty.value_and_gradient(scores, comparisons)
    if chance is None:
        return terms.value, terms.gradient
    return chance.subtracted(terms.value, terms.gradient, scores)
