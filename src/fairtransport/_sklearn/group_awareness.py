"""Group awareness: whether a model needs the group of a row at prediction, or knows it from the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from fairtransport._columns import say_columns
from fairtransport._sklearn.estimator_calls import last_step, model_scores, takes_groups, takes_strata
from fairtransport._sklearn.folds import group_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["GROUPS_NEEDED", "GROUPS_UNUSED", "describe_group_features", "needs_groups", "score_with_groups"]

#: Why a model is aware or blind, for people.
GROUPS_NEEDED = "the group is needed at prediction"
GROUPS_UNUSED = "groups are used in training only"


def needs_groups(model: Any, X: Any = None, *, sensitive_features: Any = None) -> bool:
    """Return whether a fitted model needs the group of a row to score it.

    Parameters
    ----------
    model : classifier or regressor
        Fitted; a pipeline is as its last step.
    X, sensitive_features : optional
        Rows and their groups. A model of another library that takes ``sensitive_features`` at prediction is scored
        with and without them.

    Returns
    -------
    bool
        For a model of another library that takes groups, True when no rows are given.

    Notes
    -----
    The estimators of this package need groups where they end in a quantile repair (``repair_``) or have weights for
    each group (``coef_`` with several rows).
    """
    last = last_step(model)[1]
    if not takes_groups(last):
        return False
    if hasattr(last, "repair_"):
        return last.repair_ is not None
    if hasattr(last, "groups_") and hasattr(last, "coef_"):
        return len(last.coef_) > 1
    if X is None:
        return True
    scores = model_scores(model, X, sensitive_features=sensitive_features)
    try:
        return not np.array_equal(scores, model_scores(model, X))
    except (TypeError, ValueError):  # it can score the rows with groups, so it is the groups that it lacks
        return True


def score_with_groups(model: Any, X: Any, sensitive_features: Any, strata: Any = None) -> NDArray[np.float64]:
    """Return the scores of a model, with groups and strata where it takes them at prediction; see `model_scores`."""
    return model_scores(
        model,
        X,
        sensitive_features=sensitive_features if takes_groups(model) else None,
        strata=strata if strata is not None and takes_strata(model) else None,
    )


def describe_group_features(X: Any, groups: Groups) -> str | None:
    """Return how the features identify groups, in words; None where they seem not to.

    Parameters
    ----------
    X : table or matrix
    groups : Groups

    Returns
    -------
    str or None

    Notes
    -----
    A column identifies groups when it has the name of a sensitive column, or when one threshold on its values separates
    some groups exactly from the others: an indicator of a group does, and so does age where groups are ages below and
    above 30. Columns that identify groups only together, or only approximately, are not found.
    """
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        named = [name for name in groups.columns if name in frame.columns]
        if named:
            return f"the features include sensitive {say_columns(named)}"
    cells = group_cells(groups)
    rows = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    for lowest, highest in _ranges(X, rows):
        if _has_threshold(lowest, highest).any():
            return "a feature column separates groups exactly"
    return None


def _has_threshold(lowest: NDArray[np.float64], highest: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether a threshold separates the groups' ranges, by column; both arrays are (n_groups, n_columns)."""
    order = np.argsort(lowest, axis=0, kind="stable")
    ends = np.maximum.accumulate(np.take_along_axis(highest, order, axis=0), axis=0)
    starts = np.take_along_axis(lowest, order, axis=0)
    return np.asarray((ends[:-1] < starts[1:]).any(axis=0))


def _ranges(X: Any, rows: list[NDArray[np.int64]]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the lowest and highest value of each group, for one or more columns at a time."""
    if sparse.issparse(X):
        table = X.tocsr()
        ends = [min_max_axis(table[group_rows], axis=0) for group_rows in rows]
        yield np.array([low for low, _ in ends], dtype=float), np.array([high for _, high in ends], dtype=float)
        return
    for block in _blocks(X):
        lowest = np.array([block[group_rows].min(axis=0) for group_rows in rows])
        yield lowest, np.array([block[group_rows].max(axis=0) for group_rows in rows])


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
    """Return numbers, with missing ones as the lowest; values that are not numbers are replaced by codes."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.float64)
    return np.where(np.isnan(numbers), -np.inf, numbers)
