"""Step sizes of the stochastic solver and of online updates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ParameterSteps", "automatic_steps", "plain_steps", "whitened_steps"]

# A column's step is divided by its mean square plus this share of its largest square, so that the weight of a column
# that is almost always zero does not jump at a rare row.
_RARE = 0.01
_FRACTION = 0.5  # of the largest stable step
_DECAY = 0.95  # of the first step, over a run
_ROWS_PER_GROUP = 5_000  # enough for the largest eigenvalue
_BLOCK = 50_000  # rows


@dataclass(frozen=True, eq=False)
class ParameterSteps:
    """Step sizes of the parameters.

    Attributes
    ----------
    size : float
        Common factor.
    scale : ndarray of shape (n_columns + 1,)
        A factor for each column, the intercept last.
    decay : float
        What the size loses in each update, as a share of the first.
    matrix : ndarray of shape (n_models, n_columns + 1, n_columns + 1), or empty
        Preconditioner, which replaces ``scale`` where there is one.
    noise : float
        Variance that sampling a batch adds, relative to that of all rows.
    """

    size: float
    scale: NDArray[np.float64]
    decay: float = 0.0
    matrix: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 0)))
    noise: float = 0.0

    def without_intercept(self) -> ParameterSteps:
        """Return steps that do not move the intercept."""
        scale, matrix = self.scale.copy(), self.matrix.copy()
        scale[-1:], matrix[:, -1:, :], matrix[:, :, -1:] = 0.0, 0.0, 0.0
        return replace(self, scale=scale, matrix=matrix)


def plain_steps(size: float, n_columns: int) -> ParameterSteps:
    """Return the paper's step: the same for every parameter."""
    return ParameterSteps(size, np.ones(n_columns + 1))


def automatic_steps(
    X: Any,
    group_rows: Sequence[NDArray[np.int64]],
    *,
    batch_size: int,
    n_updates: int,
    weight: float,
    ridge: float | NDArray[np.float64],
    rng: np.random.Generator,
) -> ParameterSteps:
    """Return step sizes that follow from the scale of the features, the batch size and the weight of the objective.

    Parameters
    ----------
    X : ndarray or csr_matrix
        Features.
    group_rows : sequence of ndarray
        Rows of each group. An update draws as many of each, so the columns of a small group count in full.
    batch_size, n_updates : int
        Those of the run.
    weight : float
        Weight of the whole objective: anchor plus parity.
    ridge : float or ndarray of shape (n_columns,)
        Ridge of the loss, whose curvature does not decrease with the scale of a column.
    rng : numpy.random.Generator
        Draws the rows that the largest eigenvalue is estimated from.

    Returns
    -------
    ParameterSteps

    Notes
    -----
    In units where every column has mean square near 1 (in the group where it is largest), gradient descent on
    a loss of curvature c is stable for steps below 2 / (c * L), L the largest eigenvalue of the columns'
    second moments, groups weighing equally; drawing batches of N rows adds trace / N to L. The step is a fixed
    fraction of that bound, so that the trajectory of the scores does not depend on the scale of a column. It
    decreases linearly to a twentieth, which averages out the noise of small batches.
    """
    moments = [_squares(X, rows) for rows in group_rows]
    largest_mean = np.append(np.max([mean for mean, _ in moments], axis=0), 1.0)
    mean = np.append(np.mean([mean for mean, _ in moments], axis=0), 1.0)
    peak = np.append(np.max([peak for _, peak in moments], axis=0), 1.0)
    present = largest_mean > 0
    scale = np.zeros(len(mean))
    damping = _RARE * peak + np.append(np.broadcast_to(ridge, X.shape[1]), np.min(ridge)) / weight
    scale[present] = 1.0 / (largest_mean[present] + damping[present])
    bound = _largest_eigenvalue(X, group_rows, scale, rng) + float(scale @ mean) / batch_size
    return ParameterSteps(_FRACTION / (weight * bound), scale, _DECAY / n_updates)


def whitened_steps(
    X: Any,
    group_rows: Sequence[NDArray[np.int64]],
    *,
    batch_size: int,
    weight: float,
    ridge: NDArray[np.float64],
    rng: np.random.Generator,
) -> ParameterSteps:
    """Return steps that also undo the correlation of the columns, which must be standardized.

    Parameters
    ----------
    X, group_rows, batch_size, weight, rng
        As in `automatic_steps`.
    ridge : ndarray of shape (n_columns,)
        Ridge of the loss for each column.

    Returns
    -------
    ParameterSteps
        With a matrix: the inverse of the columns' second moments (groups weighing equally) plus a hundredth, so that
        the weight of a rare column does not jump. In these coordinates no direction has a larger curvature than the
        objective's weight, and drawing batches of N rows adds trace / N to it. The trajectory of the scores is nearly
        invariant to linear maps of the features.
    """
    each = (_second_moments(X, rows, rng) for rows in group_rows)
    # Summed one at a time: sixty groups of 800 columns would fill 300 MB.
    moments = (sum(each, start=np.zeros(())) / len(group_rows))[None]
    damping = np.diag(_RARE + np.append(ridge, 0.0) / weight)
    matrix = np.asarray(np.linalg.inv(moments + damping), dtype=np.float64)
    noise = float(np.einsum("mij,mji->m", matrix, moments).max()) / batch_size
    return ParameterSteps(_FRACTION / (weight * (1.0 + noise)), np.ones(X.shape[1] + 1), 0.0, matrix, noise)


def _draw(rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= _ROWS_PER_GROUP else np.sort(rng.choice(rows, _ROWS_PER_GROUP, replace=False))


def _second_moments(X: Any, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the second moments of the columns and a one, estimated from some of the rows."""
    drawn = _draw(rows, rng)
    part = X[drawn].astype(np.float64)
    square = part.T @ part
    total = np.asarray(part.sum(axis=0)).ravel()
    moments = np.empty((len(total) + 1, len(total) + 1))
    moments[:-1, :-1] = square.toarray() if sparse.issparse(square) else square
    moments[-1, :-1] = moments[:-1, -1] = total
    moments[-1, -1] = len(drawn)
    return moments / len(drawn)


def _squares(X: Any, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the largest square of each column over some rows."""
    total, peak = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for first in range(0, len(rows), _BLOCK):
        part = X[rows[first : first + _BLOCK]]
        square = part.multiply(part).tocsc() if sparse.issparse(part) else np.square(part, dtype=np.float64)
        total += np.asarray(square.sum(axis=0)).ravel()
        most = square.max(axis=0)
        peak = np.maximum(peak, np.asarray(most.todense() if sparse.issparse(most) else most).ravel())
    return total / len(rows), peak


def _largest_eigenvalue(
    X: Any, group_rows: Sequence[NDArray[np.int64]], scale: NDArray[np.float64], rng: np.random.Generator
) -> float:
    """Return the largest eigenvalue of the scaled second moments, groups weighing equally, by power iteration."""
    drawn = [_draw(rows, rng) for rows in group_rows]
    share = np.concatenate([np.full(len(rows), 1.0 / (len(rows) * len(drawn))) for rows in drawn])
    part = X[np.concatenate(drawn)].astype(np.float64)
    root = np.sqrt(scale)
    direction, largest = rng.normal(size=len(scale)), 0.0
    for _ in range(12):
        scaled = root * direction / np.linalg.norm(direction)
        logits = share * (part @ scaled[:-1] + scaled[-1])
        direction = root * np.append(part.T @ logits, logits.sum())
        largest = float(np.linalg.norm(direction))
    return largest
