"""Units of the columns, so that features need no scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Scaling"]

# A column with more non-zeros than this share is centred; below it, zero is the origin.
_FILLED = 0.5
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Scaling:
    """An origin and a unit for each column.

    A column that is mostly non-zero has its mean as origin and its standard deviation as unit. One that is
    mostly zero keeps zero and has its largest absolute value as unit, so that an indicator stays an indicator
    whatever its two values were; so has a constant one. How the matrix is stored makes no difference.

    Attributes
    ----------
    origin, unit : ndarray of shape (n_features,)
    """

    origin: NDArray[np.float64]
    unit: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, weights: NDArray[np.float64] | None = None, *, centred: bool = True) -> Scaling:
        """Return the units of a dense or CSR matrix; columns are not centred for a model without intercept."""
        n_rows = X.shape[0]
        share = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()
        filled, mean = np.asarray(share @ (X != 0)).ravel(), np.asarray(share @ X).ravel()
        peak = abs(X).max(axis=0)
        peak = np.asarray(peak.todense() if sparse.issparse(X) else peak, dtype=np.float64).ravel()
        full = filled > _FILLED
        spread = np.zeros(X.shape[1])
        columns = X.tocsc() if sparse.issparse(X) else X
        for j in np.flatnonzero(full):
            column = columns[:, [j]].toarray()[:, 0] if sparse.issparse(X) else columns[:, j]
            # As shares of the largest value, whose squares neither overflow nor vanish.
            spread[j] = peak[j] * np.sqrt(share @ ((column - mean[j]) / peak[j]) ** 2)
        # A constant column has a spread of rounding errors only.
        spread[spread <= 1e-7 * peak] = 0.0
        unit = np.where(full & (spread > 0.0), spread, peak)
        unit[unit == 0.0] = 1.0
        return cls(np.where(full & bool(centred), mean, 0.0), unit)

    @classmethod
    def none(cls, n_columns: int) -> Scaling:
        """Return a scaling that leaves columns as they are."""
        return cls(np.zeros(n_columns), np.ones(n_columns))

    def apply(self, X: Any, *, overwrite: bool = False) -> Any:
        """Return the matrix in these units, of the same storage and number type; a dense one may be overwritten."""
        if not sparse.issparse(X):
            scaled = X if overwrite else np.array(X)
            for start in range(0, len(scaled), _ROWS_AT_ONCE):  # in double precision, without a second copy
                part = scaled[start : start + _ROWS_AT_ONCE]
                part[:] = (part - self.origin) / self.unit
            return scaled
        # Centred columns are mostly non-zero, so little is lost by storing them in full.
        centred = np.flatnonzero(self.origin != 0.0)
        scaled = sparse.csc_matrix(X @ sparse.diags_array(1.0 / self.unit))
        parts, done = [], 0
        for column in centred:
            parts.append(scaled[:, done:column])
            full = scaled[:, [column]].toarray() - self.origin[column] / self.unit[column]
            parts.append(sparse.csc_matrix(full))
            done = int(column) + 1
        parts.append(scaled[:, done:])
        return sparse.csr_matrix(sparse.hstack(parts, format="csr"), dtype=X.dtype)

    def to_scaled(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return parameters, the intercept last, that give scaled columns the scores that ``theta`` gives raw ones."""
        out = np.array(theta, dtype=np.float64)
        out[..., :-1] = theta[..., :-1] * self.unit
        out[..., -1] = theta[..., -1] + theta[..., :-1] @ self.origin
        return out

    def to_raw(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the parameters for raw columns: the inverse of `to_scaled`."""
        out = np.array(theta, dtype=np.float64)
        out[..., :-1] = theta[..., :-1] / self.unit
        out[..., -1] = theta[..., -1] - out[..., :-1] @ self.origin
        return out
