"""Validation of the y of regressors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import column_or_1d

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["real_outcomes"]


def real_outcomes(y: Any, owner: str) -> NDArray[np.float64]:
    """Return the y of a regressor as a vector of finite numbers.

    Parameters
    ----------
    y : array-like
    owner : str
        Name of the estimator, for errors.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        When y is missing, not a column, or has values that are no finite numbers.

    Examples
    --------
    >>> real_outcomes([1, 2, 3], "Regressor")
    array([1., 2., 3.])
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    values = column_or_1d(y, warn=True)
    if values.dtype.kind not in "iufbO":
        raise ValueError(f"{owner} needs numbers as y, not values of type {values.dtype}; use a classifier for classes.")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{owner} needs numbers as y, but some values are none; use a classifier for classes.") from None
    missing, infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    if missing or infinite:
        raise ValueError(
            f"Input y contains NaN or infinity: {missing} values of y are missing and {infinite} are infinite. Remove "
            "those rows first."
        )
    return np.asarray(numbers)
