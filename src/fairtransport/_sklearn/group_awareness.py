"""Whether the group is known at prediction ("aware") or not ("blind")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from fairtransport._columns import say_columns
from fairtransport._sklearn.estimator_calls import model_scores, takes_groups
from fairtransport._sklearn.folds import group_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["NEEDED", "UNKNOWN", "features_tell", "needs_groups"]

NEEDED = "the group is needed at prediction"
UNKNOWN = "groups are used in training only"


def needs_groups(model: Any, X: Any, *, sensitive_features: Any) -> bool:
    """Whether a fitted model's scores depend on the ``sensitive_features`` given at prediction."""
    if not takes_groups(model):
        return False
    given = model_scores(model, X, sensitive_features=sensitive_features)
    try:
        return not np.array_equal(given, model_scores(model, X))
    except (TypeError, ValueError):  # it works with them, so it is them that it misses
        return True


def features_tell(X: Any, groups: Groups) -> str | None:
    """Say how the features tell groups, or return None where they seem not to.

    Parameters
    ----------
    X : table or matrix
    groups : Groups

    Returns
    -------
    str or None

    Notes
    -----
    A column tells groups when it has a sensitive column's name, or when one cut through its values parts some groups
    exactly from the others: an indicator of a group does, and so does age where groups are ages below and above 30.
    Columns that tell groups only together, or only nearly, are not found.
    """
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        named = [name for name in groups.columns if name in frame.columns]
        if named:
            return f"the features include sensitive {say_columns(named)}"
    cells = group_cells(groups)
    rows = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    for lowest, highest in _ranges(X, rows):
        if _has_cut(lowest, highest).any():
            return "a feature column tells groups apart exactly"
    return None


def _has_cut(lowest: NDArray[np.float64], highest: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a value parts the groups' ranges; both arrays are of shape (n_groups, n_columns)."""
    order = np.argsort(lowest, axis=0, kind="stable")
    ends = np.maximum.accumulate(np.take_along_axis(highest, order, axis=0), axis=0)
    begins = np.take_along_axis(lowest, order, axis=0)
    return np.asarray((ends[:-1] < begins[1:]).any(axis=0))


def _ranges(X: Any, rows: list[NDArray[np.int64]]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the lowest and highest value of each group, for one or more columns at a time."""
    if sparse.issparse(X):
        table = X.tocsr()
        found = [min_max_axis(table[own], axis=0) for own in rows]
        yield np.array([low for low, _ in found], dtype=float), np.array([high for _, high in found], dtype=float)
        return
    for block in _blocks(X):
        yield np.array([block[own].min(axis=0) for own in rows]), np.array([block[own].max(axis=0) for own in rows])


def _blocks(X: Any) -> Iterator[NDArray[np.float64]]:
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for column in frame.iter_columns():
            yield _numbers(column.to_numpy())[:, None]
        return
    array = np.asarray(X)
    if array.ndim == 1:
        array = array[:, None]
    if array.dtype.kind in "biuf":
        yield _numbers(array)
        return
    for column in array.T:
        yield _numbers(column)[:, None]


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers as they are, missing ones as the lowest, and anything else as a number for each value."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.float64)
    return np.where(np.isnan(numbers), -np.inf, numbers)
