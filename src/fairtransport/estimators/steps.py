"""Step sizes for people who name none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ParameterSteps", "automatic_steps", "plain_steps"]

# A column's step is divided by its mean square plus this share of its largest square, so that a column
# that is almost always zero does not leap when a rare row shows it.
_RARE = 0.01
# Of the stable bound. On Adult the objective reached differs by 1% over fractions from 0.1 to 2.
_FRACTION = 0.5
_FALL = 0.95
_ROWS_LOOKED_AT = 20_000


@dataclass(frozen=True, eq=False)
class ParameterSteps:
    """One step size, a factor for each column (the intercept last), and what the size loses per update."""

    size: float
    scale: NDArray[np.float64]
    decay: float = 0.0


def plain_steps(size: float, n_columns: int) -> ParameterSteps:
    """Return the paper's step: the same for every parameter."""
    return ParameterSteps(size, np.ones(n_columns + 1))


def automatic_steps(
    X: Any, *, batch_size: int, n_updates: int, weight: float, rng: np.random.Generator
) -> ParameterSteps:
    """Choose step sizes from the features' scale, the batch size and the weight of the objective.

    Notes
    -----
    In units where every column has mean square near 1, gradient descent on a loss of curvature c is
    stable for steps below 2 / (c * L) with L the largest eigenvalue of the columns' second-moment
    matrix; drawing batches of N rows adds trace / N to L. The step is a fixed fraction of that bound, so
    multiplying a column by a constant leaves the path of the scores as it was. It falls linearly to a
    twentieth by the end, so that the noise of small batches does not push theta past the optimum.
    """
    if X.shape[0] > _ROWS_LOOKED_AT:
        X = X[np.sort(rng.choice(X.shape[0], _ROWS_LOOKED_AT, replace=False))]
    X = sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    square = X.multiply(X) if sparse.issparse(X) else X * X
    mean = np.asarray(square.mean(axis=0)).ravel()
    peak = np.asarray(square.max(axis=0).todense() if sparse.issparse(X) else square.max(axis=0)).ravel()
    present = mean > 0
    scale = np.zeros(X.shape[1])
    scale[present] = 1.0 / (mean[present] + _RARE * peak[present])
    scale = np.append(scale, 1.0 / (1.0 + _RARE))

    def times(direction: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = np.sqrt(scale) * direction
        logits = X @ scaled[:-1] + scaled[-1]
        back = np.append(X.T @ logits, logits.sum()) / X.shape[0]
        return np.sqrt(scale) * back

    direction, largest = rng.normal(size=len(scale)), 0.0
    for _ in range(12):
        direction = times(direction / np.linalg.norm(direction))
        largest = float(np.linalg.norm(direction))
    trace = float(scale[:-1] @ mean + scale[-1])
    return ParameterSteps(_FRACTION / (weight * (largest + trace / batch_size)), scale, _FALL / n_updates)
