"""Checked training and validation rows: features, labels 0 and 1 or numbers, groups and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from fairtransport._sklearn.estimator_calls import n_rows, take_rows
from fairtransport._validation import check_length, check_weights
from fairtransport.boosting._compared_rows import compare_rows
from fairtransport.groups import make_groups
from fairtransport.repair.group_checks import groups_to_repair
from fairtransport.strata import make_strata

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.boosting._compared_rows import ComparedRows
    from fairtransport.groups import Groups
    from fairtransport.strata import Strata

__all__ = ["TrainingData", "as_selectable", "check_eval_set", "check_shape", "check_training_data"]


@dataclass(eq=False)
class TrainingData:
    """Rows to train or validate on.

    Attributes
    ----------
    X : table or matrix
        As passed to ``fit``.
    labels : ndarray
        0 and 1, or the numbers of a regression as its loss takes them.
    groups : Groups
    weights : ndarray or None
    strata : Strata or None
    """

    X: Any
    labels: NDArray[Any]
    groups: Groups
    weights: NDArray[np.float64] | None = None
    strata: Strata | None = None

    def select(self, rows: NDArray[np.int64]) -> TrainingData:
        """Return the rows at these positions."""
        weights = None if self.weights is None else self.weights[rows]
        strata = None if self.strata is None else self.strata.select(rows)
        return TrainingData(take_rows(self.X, rows), self.labels[rows], self.groups.select(rows), weights, strata)

    def compare(self, criterion: str, stratum_weight: str | None) -> ComparedRows:
        """Return where a criterion compares the groups of these rows."""
        return compare_rows(
            criterion,
            self.groups,
            labels=self.labels,
            strata=self.strata,
            row_weights=self.weights,
            stratum_weight=stratum_weight,
        )


def check_shape(X: Any, n_features: int | None = None, *, owner: str) -> None:
    """Raise ValueError, in scikit-learn's words, for an array that is no table of the expected number of columns.

    XGBoost's own messages are those of failed checks of its C++ code.
    """
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        return
    if len(shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(shape)}D array instead. Reshape your data: one row per sample.")
    if shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required by {owner}.")
    if n_features is not None and shape[1] != n_features:
        raise ValueError(f"X has {shape[1]} features, but {owner} is expecting {n_features} features as input.")


def as_selectable(X: Any) -> Any:
    """Return features from which rows can be selected: tables as they are, sparse matrices as CSR, others as arrays."""
    if issparse(X):
        return X.tocsr()
    return X if hasattr(X, "columns") else np.asarray(X)


def check_training_data(
    X: Any,
    labels: NDArray[Any],
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
    *,
    owner: str,
    strata: Any,
    repair: bool,
    small_groups: str,
    min_group_size: int,
    **group_options: Any,
) -> TrainingData:
    """Return the checked rows; ``labels`` are 0 and 1, or numbers."""
    if sensitive_features is None:
        raise ValueError(f"{owner} needs sensitive_features: the column or columns that define groups.")
    check_shape(X, owner=owner)
    size = n_rows(X)
    check_length(labels, size=size, name="y")
    weights = check_weights(sample_weight, size=size)
    if repair:
        groups = groups_to_repair(sensitive_features, n_rows=size, weights=weights, **group_options)
    else:
        groups = make_groups(sensitive_features, **group_options)
        check_length(range(groups.n_rows), size=size, name="sensitive_features")
    groups = groups.settle(small_groups, min_group_size)
    groups.require(min_size=1, at_least=2)
    if weights is not None and not all(weights[rows].any() for rows in groups.rows):
        raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
    found = None if strata is None else make_strata(strata, n_groups=len(groups))
    if found is not None:
        check_length(range(found.n_rows), size=size, name="strata")
    return TrainingData(X, labels, groups, weights, found)


def check_eval_set(
    eval_set: Any, rows: TrainingData, read_labels: Callable[[Any, str], NDArray[Any]]
) -> TrainingData | None:
    """Return the checked validation rows, with the groups and strata of the training rows.

    ``read_labels`` takes the labels of the rows and the name of the argument.
    """
    if eval_set is None:
        return None
    parts = ("X", "y", "sensitive_features") if rows.strata is None else ("X", "y", "sensitive_features", "strata")
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) != len(parts):
        raise ValueError(f"eval_set must be a tuple: {', '.join(parts[:-1])} and {parts[-1]}.")
    X, y, sensitive_features = eval_set[:3]
    labels = read_labels(y, "eval_set")
    groups = rows.groups.encode(sensitive_features)
    strata = None if rows.strata is None else rows.strata.encode(eval_set[3])
    check_length(labels, size=n_rows(X), name="y of eval_set")
    check_length(range(groups.n_rows), size=n_rows(X), name="sensitive_features of eval_set")
    if strata is not None:
        check_length(range(strata.n_rows), size=n_rows(X), name="strata of eval_set")
    groups.require(min_size=1, at_least=2)
    return TrainingData(X, labels, groups, strata=strata)
