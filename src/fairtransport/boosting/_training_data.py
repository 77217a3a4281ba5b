"""What ``fit`` is given, checked: features as they are, labels 0 and 1, groups, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.estimator_calls import n_rows, take_rows
from fairtransport._sklearn.labels import two_classes
from fairtransport._validation import check_length, check_weights
from fairtransport.groups import make_groups
from fairtransport.repair.group_checks import groups_to_repair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["Given", "check_given", "check_held_back"]


@dataclass(eq=False)
class Given:
    """Checked rows: all that a training needs to know of them.

    Attributes
    ----------
    X : table or matrix
        As it was given.
    labels : ndarray of int
        0 and 1.
    groups : Groups
    weights : ndarray or None
    """

    X: Any
    labels: NDArray[np.int64]
    groups: Groups
    weights: NDArray[np.float64] | None = None

    @property
    def rate(self) -> float:
        """Share of class 1."""
        return float(np.average(self.labels, weights=self.weights))

    def select(self, rows: NDArray[np.int64]) -> Given:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Given(take_rows(self.X, rows), self.labels[rows], self.groups.select(rows), weights)


def check_given(
    X: Any,
    y: ArrayLike,
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
    *,
    repaired: bool,
    small_groups: str,
    min_group_size: int,
    **how: Any,
) -> tuple[Given, NDArray[Any]]:
    """Return the rows and the two class labels; raise what a training would stumble over."""
    if sensitive_features is None:
        raise ValueError(
            "TransportBoostingClassifier needs sensitive_features: the column or columns that define groups."
        )
    labels, classes = two_classes(y, "TransportBoostingClassifier")
    size = n_rows(X)
    check_length(labels, size=size, name="y")
    weights = check_weights(sample_weight, size=size)
    if repaired:
        groups = groups_to_repair(sensitive_features, n_rows=size, weights=weights, **how)
    else:
        groups = make_groups(sensitive_features, **how)
        check_length(range(groups.n_rows), size=size, name="sensitive_features")
    groups = groups.settle(small_groups, min_group_size)
    groups.require(min_size=1, at_least=2)
    if weights is not None:
        if not all(weights[rows].any() for rows in groups.rows):
            raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
        if not all(weights[labels == label].any() for label in classes):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
    return Given(X, (labels == classes[1]).astype(np.int64), groups, weights), classes


def check_held_back(eval_set: Any, groups: Groups, classes: NDArray[Any]) -> Given | None:
    """Return the rows to follow a training on, in the groups of the training rows."""
    if eval_set is None:
        return None
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 3:
        raise ValueError("eval_set must be a tuple of three: X, y and sensitive_features.")
    X, y, sensitive_features = eval_set
    labels, found = two_classes(y, "eval_set")
    if not np.array_equal(found, classes):
        raise ValueError("eval_set has other class labels than y.")
    own = groups.encode(sensitive_features)
    check_length(labels, size=n_rows(X), name="y of eval_set")
    check_length(range(own.n_rows), size=n_rows(X), name="sensitive_features of eval_set")
    own.require(min_size=1, at_least=2)
    return Given(X, (labels == classes[1]).astype(np.int64), own)
