"""Validation of y: the labels of binary classifiers, and the numbers of regressors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["real_targets", "two_classes"]


def two_classes(y: Any, owner: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the labels as a vector, and the two classes in ascending order; the second is positive.

    Parameters
    ----------
    y : array-like
        Numbers or text.
    owner : str
        Name of the estimator, for errors.

    Returns
    -------
    labels : ndarray of shape (n,)
    classes : ndarray of shape (2,)

    Raises
    ------
    ValueError
        When labels are missing, of several types, continuous, or not of exactly two classes.

    See Also
    --------
    fairtransport._labels.positive_label : The same rule for labels of which only one may occur.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"y has {np.count_nonzero(np.isinf(labels))} infinite labels; use two labels.")
    try:
        classes = np.unique(labels)
    except TypeError:  # not sortable
        raise ValueError("y has labels of several types, or missing ones; use two labels of one type.") from None
    n_missing = np.count_nonzero(labels != labels)  # noqa: PLR0124 - NaN differs from itself
    if n_missing:
        raise ValueError(f"y has {n_missing} missing labels; remove those rows first.")
    check_classification_targets(labels)
    if classes.size != 2:
        raise ValueError(
            f"Only binary classification is supported. {owner} needs labels of exactly two classes; y has "
            f"{classes.size} class{'' if classes.size == 1 else 'es'}."
        )
    return labels, classes


def real_targets(y: Any, owner: str, *, constant: bool = False) -> NDArray[np.float64]:
    """Return the values that a regressor is to predict.

    Parameters
    ----------
    y : array-like
        Finite numbers, of at least two values.
    owner : str
        Name of the estimator, for errors.
    constant : bool, default=False
        Whether one value is enough, as in a batch of a stream.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        When values are missing, infinite, text, or all the same.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    values = column_or_1d(y, warn=True)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be real numbers.")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y has values that are not numbers; {owner} predicts numbers. For two classes, use a classifier."
        ) from None
    for reason, count in (("missing", np.isnan(numbers).sum()), ("infinite", np.isinf(numbers).sum())):
        if count:
            raise ValueError(f"y has {count} {reason} values (NaN or infinity); remove those rows first.")
    if not constant and numbers.size and np.ptp(numbers) == 0.0:
        raise ValueError("y has the same value in every row, so there is nothing to predict.")
    return np.asarray(numbers)
