"""Columns that give the label away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.tabular.column_plans import ColumnPlan

__all__ = ["find_leaking_columns"]

_MIN_ROWS = 20  # of the rarer label; a few rows are separated by chance
_MAX_ERROR = 0.005  # relative to the error of always predicting the more frequent label


def find_leaking_columns(plans: Sequence[ColumnPlan], X: Any, positive: NDArray[np.int64]) -> list[str]:
    """Return the names of the raw columns that predict the label by themselves, almost without error.

    A numeric column is judged by the area under the ROC curve, a column of categories by the error of the more frequent
    label among the *other* rows of the same category, so that many rare categories are no evidence.

    Parameters
    ----------
    plans : sequence of ColumnPlan
        The encoding of each raw column.
    X : csr_matrix of shape (n_rows, n_columns)
        The encoded rows.
    positive : array of int of shape (n_rows,)
        1 for the positive label, 0 otherwise.

    Returns
    -------
    list of str
    """
    n_positive = int(positive.sum())
    rarer = min(n_positive, positive.size - n_positive)
    if rarer < _MIN_ROWS:
        return []
    columns, names, start = X.tocsc(), [], 0
    for plan in plans:
        block, start = columns[:, start : start + plan.width], start + plan.width
        if plan.kind == "words":
            leaks = _category_errors(block, positive) <= _MAX_ERROR * rarer
        else:
            leaks = any(_separates(block[:, [part]].toarray()[:, 0], positive) for part in range(block.shape[1]))
        if leaks:
            names.append(plan.name)
    return names


def _separates(values: NDArray[np.float64], positive: NDArray[np.int64]) -> bool:
    """Return whether a threshold on the values tells the labels apart, in either direction."""
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    wins = rankdata(values) @ positive - n_positive * (n_positive + 1) / 2
    auc = float(wins / (n_positive * n_negative))
    return max(auc, 1 - auc) >= 1 - _MAX_ERROR / 2


def _category_errors(block: Any, positive: NDArray[np.int64]) -> int:
    """Return how many rows the other rows of their category mispredict; rows without a category are one category."""
    sizes, positives = np.asarray(block.sum(axis=0)).ravel(), np.asarray(block.T @ positive).ravel()
    sizes = np.append(sizes, positive.size - sizes.sum())
    positives = np.append(positives, positive.sum() - positives.sum())
    negatives = sizes - positives
    # Without the row itself, a tie or an empty category predicts nothing.
    wrong = np.where(positives - 1 <= negatives, positives, 0) + np.where(negatives - 1 <= positives, negatives, 0)
    return int(wrong.sum())
