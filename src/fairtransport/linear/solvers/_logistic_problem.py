"""The rows of a linear logistic model, in a canonical order and in whitened coordinates.

A solver that sees all rows at once is deterministic, but sums of floating-point numbers depend on the order of their
terms. Rows and groups are therefore put into an order that depends on what they hold, not on where they stood or what
they are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, sparse

from fairtransport.transport.kernels.logistic import logistic_loss
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["LogisticProblem", "canonical_order", "move", "move_back"]

_MOST_WHITENED = 1000  # columns; beyond that a matrix costs more than it saves
_HESSIAN_ROWS = 5_000  # or ten for each column: enough for a preconditioner
_ROWS_AT_ONCE = 8192
# Rows for each column that say of own weights that the initial ones are right: as many as this, and fewer where there
# are many rows for each column (docs/tradeoff.md has the figures).
_MOST_PRIOR_ROWS, _PRIOR_ROWS = 100.0, 3000.0
_SHIFT_ROWS = 30.0  # that say so of shift and stretch, too, for groups of a handful of rows
_LEAST_CURVATURE = 1e-4  # of the largest: what directions without information count as


def canonical_order(X: Any, labels: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """Return an order of the rows that depends on their content only.

    Rows are sorted by one fixed random projection of their columns, then by label and weight.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [0.5, 0.1], [3.0, -1.0]])
    >>> order = canonical_order(X, np.zeros(3), None)
    >>> swapped = canonical_order(X[[2, 0, 1]], np.zeros(3), None)
    >>> bool((X[order] == X[[2, 0, 1]][swapped]).all())
    True
    """
    key = np.asarray(X @ np.random.default_rng(0).normal(size=X.shape[1]).astype(X.dtype), dtype=np.float64)
    keys = (labels, key) if weights is None else (weights, labels, key)
    return np.lexsort(keys)


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    r"""Mean logistic loss of a linear model, with shared weights or weights for each group.

    Attributes
    ----------
    parts : tuple of ndarray or csr_matrix
        Features in units of their own. With shared weights one matrix of all rows; otherwise one for each group, in the
        order of their rows, and perhaps a last one of rows that are in no group.
    labels : ndarray
        0 or 1, of all rows.
    shares : ndarray
        Weights of the rows, which sum to 1.
    ridge : ndarray of shape (n_columns,)
        The loss is plus half of ridge times the squares of the weights.
    has_intercept : bool
    n_groups : int
        Groups with weights of their own; 0: shared weights.
    center : ndarray of shape (n_columns + 1,), optional
        With own weights: those of the initial model, which the prior is around.
    n_rows : int, optional
        How many rows these stand for, where they are a part of them.

    Notes
    -----
    Parameters are an array of shape (n_models, n_columns + 1), the intercept last. Own weights have a Gaussian prior
    around those of the initial model, with the precision

    .. math:: r I + \frac{k}{n} P^\top C P + \frac{30}{n} C,

    C the mean curvature of the logistic loss at the initial model and P the projection, in the metric of C, that takes
    away the intercept and the direction of the initial weights. A group may shift and stretch its logits, which is what
    repair does, as if 30 rows spoke against it; any other change costs as if k rows said that the
    initial weights are right: 100 for each column, and fewer where there are more than 30 rows for each. Rows of no
    group have the initial weights.
    """

    parts: tuple[Any, ...]
    labels: NDArray[np.float64]
    shares: NDArray[np.float64]
    ridge: NDArray[np.float64]
    has_intercept: bool
    n_groups: int = 0
    center: NDArray[np.float64] | None = None
    n_rows: int | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.parts[0].shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters."""
        return max(1, self.n_groups), self.n_columns + 1

    def common(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of rows that are in no group."""
        return np.asarray(parameters[0] if self.center is None else self.center)

    def logits(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logit of each row."""
        found, done = np.empty(len(self.labels)), 0
        for number, part in enumerate(self.parts):
            theta = parameters[number] if number < len(parameters) else self.common(parameters)
            rows = slice(done, done + part.shape[0])
            found[rows] = _times(part, theta[:-1])
            found[rows] += theta[-1]
            done = rows.stop
        return found

    def gradient(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient with respect to the parameters, given the one with respect to the logits."""
        gradient, done = np.zeros(self.shape), 0
        for number, part in enumerate(self.parts):
            own = slopes[done : done + part.shape[0]]
            done += part.shape[0]
            if number < len(gradient):  # the weights of rows of no group do not move
                gradient[number] = np.append(_times(self._transposed[number], own, by_column=True), own.sum())
        if not self.has_intercept:
            gradient[:, -1] = 0.0
        return gradient

    @cached_property
    def _transposed(self) -> tuple[Any, ...]:
        return tuple(part.T for part in self.parts)  # views, made once

    def ridge_terms(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the ridge term and its gradient."""
        moved = parameters if self.center is None else parameters - self.center
        gradient = moved @ self._precision if self._precision.ndim == 2 else moved * self._precision
        return 0.5 * float((gradient * moved).sum()), gradient

    @cached_property
    def _precision(self) -> NDArray[np.float64]:
        """Precision of the prior of one model's parameters: a matrix, or its diagonal."""
        ridge = np.append(self.ridge, 0.0)
        if self.center is None:
            return ridge
        curvature = self._curvature(np.tile(self.center, (self.shape[0], 1)))
        moments, done = np.zeros(0), 0
        for part in self.parts:
            own = self._moments(part, curvature[done : done + part.shape[0]])
            moments, done = own if done == 0 else moments + own, done + part.shape[0]
        per_column = (self.n_rows or len(self.labels)) / self.n_columns
        rows = min(_MOST_PRIOR_ROWS, _PRIOR_ROWS / per_column) / per_column
        few = _SHIFT_ROWS / (self.n_rows or len(self.labels))
        if moments.ndim == 1:
            return ridge + rows * np.append(moments[:-1], 0.0) + few * moments
        free = np.column_stack((np.append(np.zeros(self.n_columns), 1.0), self.center))
        inner = np.linalg.pinv(free.T @ moments @ free, hermitian=True)
        project = np.eye(self.n_columns + 1) - free @ inner @ free.T @ moments
        held = project.T @ moments @ project
        return np.asarray(np.diag(ridge) + 0.5 * rows * (held + held.T) + few * moments)

    def loss_terms(self, logits: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean loss, the scores, and the derivative with respect to the logits."""
        scores, slopes = np.empty_like(logits), np.empty_like(logits)
        return logistic_loss(logits, self.labels, self.shares, self._equal, scores, slopes), scores, slopes

    @cached_property
    def _equal(self) -> bool:
        return bool((self.shares == self.shares[0]).all())

    def whitening(self, parameters: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        r"""Return for each row of the parameters a matrix M (or a vector, its diagonal) with M M' the inverse Hessian.

        In coordinates u, with parameters = M u, the loss at the given parameters has unit curvature in every
        direction, so collinear columns and columns in other units do not slow a solver down.
        """
        curvature, factors, done = self._curvature(parameters), [], 0
        for part in self.parts[: self.shape[0]]:
            factors.append(self._factor(self._moments(part, curvature[done : done + part.shape[0]])))
            done += part.shape[0]
        return factors

    def _curvature(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = sigmoid(self.logits(parameters))
        # Saturated scores have no curvature where they stand, but have it as soon as they move.
        return np.asarray(self.shares * np.maximum(scores * (1.0 - scores), 0.01))

    def _moments(self, part: Any, curvature: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of curvature times the outer products of the rows, estimated from some; or its diagonal."""
        picked = np.arange(0, part.shape[0], max(1, part.shape[0] // max(_HESSIAN_ROWS, 10 * self.n_columns)))
        mass = curvature.sum() * curvature[picked] / max(float(curvature[picked].sum()), 1e-300)
        if self.n_columns >= _MOST_WHITENED:
            square = part[picked].power(2) if sparse.issparse(part) else part[picked] ** 2
            return np.append(np.asarray(square.T @ mass, dtype=np.float64), mass.sum())
        moments = np.zeros((self.n_columns + 1, self.n_columns + 1))
        for start in range(0, picked.size, _ROWS_AT_ONCE):
            rows = picked[start : start + _ROWS_AT_ONCE]
            dense = part[rows].toarray() if sparse.issparse(part) else part[rows]
            dense = np.column_stack((np.asarray(dense, dtype=np.float64), np.ones(rows.size)))
            moments += dense.T @ (mass[start : start + _ROWS_AT_ONCE, None] * dense)
        return moments

    def _factor(self, moments: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return M with M M' the inverse of moments plus the precision of the prior."""
        if moments.ndim == 1:
            diagonal = moments + self._precision
            factor = 1.0 / np.sqrt(np.maximum(diagonal, _LEAST_CURVATURE * diagonal.max()))
        else:
            hessian = moments + (self._precision if self._precision.ndim == 2 else np.diag(self._precision))
            if not self.has_intercept:
                hessian[-1, :], hessian[:, -1] = 0.0, 0.0
            values, vectors = linalg.eigh(hessian)
            factor = vectors / np.sqrt(np.maximum(values, _LEAST_CURVATURE * max(float(values[-1]), 1e-12)))
        if not self.has_intercept:
            factor[-1] = 0.0
        return np.asarray(factor)


def _times(matrix: Any, vector: NDArray[np.float64], *, by_column: bool = False) -> NDArray[np.float64]:
    """Multiply in double precision; single-precision rows are converted a few at a time, not copied."""
    if sparse.issparse(matrix) or matrix.dtype == np.float64:
        return np.asarray(matrix @ vector, dtype=np.float64)
    starts = range(0, matrix.shape[1] if by_column else matrix.shape[0], _ROWS_AT_ONCE)
    if by_column:
        blocks = (slice(s, s + _ROWS_AT_ONCE) for s in starts)
        return np.asarray(sum(matrix[:, block].astype(np.float64) @ vector[block] for block in blocks))
    return np.concatenate([matrix[s : s + _ROWS_AT_ONCE].astype(np.float64) @ vector for s in starts])


def move(factors: Sequence[NDArray[np.float64]], coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn whitened coordinates into parameters."""
    return np.array([m @ u if m.ndim == 2 else m * u for m, u in zip(factors, coordinates, strict=True)])


def move_back(factors: Sequence[NDArray[np.float64]], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn a gradient with respect to parameters into one with respect to whitened coordinates."""
    return np.array([m.T @ g if m.ndim == 2 else m * g for m, g in zip(factors, gradient, strict=True)])
