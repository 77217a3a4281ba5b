"""Step sizes for people who name none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ParameterSteps", "automatic_steps", "plain_steps", "whitened_steps"]

# A column's step is divided by its mean square plus this share of its largest square, so that a column
# that is almost always zero does not leap when a rare row shows it.
_RARE = 0.01
# Of the stable bound. On Adult the objective reached differs by 1% over fractions from 0.1 to 2.
_FRACTION = 0.5
_FALL = 0.95
_ROWS_OF_A_GROUP = 5_000  # enough for the largest eigenvalue
_ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class ParameterSteps:
    """How far an update goes.

    Attributes
    ----------
    size : float
        Common factor.
    scale : ndarray of shape (n_columns + 1,)
        A factor for each column, the intercept last.
    decay : float
        What the size loses per update.
    matrix : ndarray of shape (n_models, n_columns + 1, n_columns + 1), or empty
        Takes the place of ``scale`` where there is one.
    noise : float
        Variance that drawing a batch adds, relative to that of the whole sample.
    """

    size: float
    scale: NDArray[np.float64]
    decay: float = 0.0
    matrix: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 0)))
    noise: float = 0.0

    def without_intercept(self) -> ParameterSteps:
        """Leave the intercept where it is."""
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
    """Choose step sizes from the features' scale, the batch size and the weight of the objective.

    Parameters
    ----------
    X : ndarray or csr_matrix
        Features.
    group_rows : sequence of ndarray
        Rows of each group: an update draws as many of each, so a small group's columns count in full.
    batch_size, n_updates : int
        Of the run.
    weight : float
        Weight of the whole objective: anchor plus parity.
    ridge : float or ndarray of shape (n_columns,)
        The anchor's ridge; its curvature does not shrink with a column.
    rng : numpy.random.Generator
        Chooses rows to look at.

    Returns
    -------
    ParameterSteps

    Notes
    -----
    In units where every column has mean square near 1 (in the group where it is largest), gradient descent on
    a loss of curvature c is stable for steps below 2 / (c * L), L the largest eigenvalue of the columns'
    second moments, groups weighing equally; drawing batches of N rows adds trace / N to L. The step is a fixed
    fraction of that bound, so multiplying a column by a constant leaves the path of the scores as it was. It
    falls linearly to a twentieth by the end, so that the noise of small batches does not push theta past the
    optimum.
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
    return ParameterSteps(_FRACTION / (weight * bound), scale, _FALL / n_updates)


def whitened_steps(
    X: Any,
    group_rows: Sequence[NDArray[np.int64]],
    *,
    batch_size: int,
    weight: float,
    ridge: NDArray[np.float64],
    rng: np.random.Generator,
) -> ParameterSteps:
    """Choose steps that also undo the correlation of the columns, which must be in units of their own.

    Parameters
    ----------
    X, group_rows, batch_size, weight, rng
        As in `automatic_steps`.
    ridge : ndarray of shape (n_columns,)
        The anchor's ridge for each column.

    Returns
    -------
    ParameterSteps
        With a matrix: the inverse of the columns' second moments (groups weighing equally), plus a
        hundredth, so that a rare column does not leap. In these units every direction has curvature at most that
        of the objective's weight, and drawing batches of N rows adds trace / N to it. A change of units of the
        features, or any linear change, leaves the path of the scores nearly as it was.
    """
    each = (_second_moments(X, rows, rng) for rows in group_rows)
    # One at a time where the mean is enough: sixty groups of 800 columns would fill 300 MB.
    moments = (sum(each, start=np.zeros(())) / len(group_rows))[None]
    damping = np.diag(_RARE + np.append(ridge, 0.0) / weight)
    matrix = np.asarray(np.linalg.inv(moments + damping), dtype=np.float64)
    noise = float(np.einsum("mij,mji->m", matrix, moments).max()) / batch_size
    return ParameterSteps(_FRACTION / (weight * (1.0 + noise)), np.ones(X.shape[1] + 1), 0.0, matrix, noise)


def _second_moments(X: Any, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Of the columns and a one."""
    few = rows if len(rows) <= _ROWS_OF_A_GROUP else np.sort(rng.choice(rows, _ROWS_OF_A_GROUP, replace=False))
    part = X[few].astype(np.float64)
    square = part.T @ part
    total = np.asarray(part.sum(axis=0)).ravel()
    moments = np.empty((len(total) + 1, len(total) + 1))
    moments[:-1, :-1] = square.toarray() if sparse.issparse(square) else square
    moments[-1, :-1] = moments[:-1, -1] = total
    moments[-1, -1] = len(few)
    return moments / len(few)


def _squares(X: Any, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and largest square of each column over some rows."""
    total, peak = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = X[rows[first : first + _ROWS_AT_ONCE]]
        square = part.multiply(part).tocsc() if sparse.issparse(part) else np.square(part, dtype=np.float64)
        total += np.asarray(square.sum(axis=0)).ravel()
        most = square.max(axis=0)
        peak = np.maximum(peak, np.asarray(most.todense() if sparse.issparse(most) else most).ravel())
    return total / len(rows), peak


def _largest_eigenvalue(
    X: Any, group_rows: Sequence[NDArray[np.int64]], scale: NDArray[np.float64], rng: np.random.Generator
) -> float:
    """Of the scaled second moments, groups weighing equally, by power iteration."""
    chosen = [
        rows if len(rows) <= _ROWS_OF_A_GROUP else np.sort(rng.choice(rows, _ROWS_OF_A_GROUP, replace=False))
        for rows in group_rows
    ]
    share = np.concatenate([np.full(len(rows), 1.0 / (len(rows) * len(chosen))) for rows in chosen])
    looked_at = X[np.concatenate(chosen)].astype(np.float64)
    root = np.sqrt(scale)
    direction, largest = rng.normal(size=len(scale)), 0.0
    for _ in range(12):
        scaled = root * direction / np.linalg.norm(direction)
        logits = share * (looked_at @ scaled[:-1] + scaled[-1])
        direction = root * np.append(looked_at.T @ logits, logits.sum())
        largest = float(np.linalg.norm(direction))
    return largest
