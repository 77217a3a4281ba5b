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


def find_leaking_columns(plans: Sequence[ColumnPlan], X: Any, labels: NDArray[Any]) -> list[str]:
    """Return the names of the raw columns that predict the label by themselves, almost without error.

    For two classes, a numeric column is judged by the area under the ROC curve, a column of categories by the error of
    the more frequent label among the *other* rows of the same category, so that many rare categories are no evidence.
    For numbers, they are judged by the correlation of ranks, and by the squared error of the mean of the other rows.

    Parameters
    ----------
    plans : sequence of ColumnPlan
        The encoding of each raw column.
    X : csr_matrix of shape (n_rows, n_columns)
        The encoded rows.
    labels : array of shape (n_rows,)
        Integers: 1 for the positive label, 0 otherwise. Floating-point numbers: the values to predict.

    Returns
    -------
    list of str
    """
    judge = _ClassJudge(labels) if labels.dtype.kind in "iub" else _NumberJudge(labels)
    if judge.n_rows < _MIN_ROWS:
        return []
    columns, names, start = X.tocsc(), [], 0
    for plan in plans:
        block, start = columns[:, start : start + plan.width], start + plan.width
        if plan.kind == "words":
            leaks = judge.told_by_category(block)
        else:
            leaks = any(judge.told_by_number(block[:, [part]].toarray()[:, 0]) for part in range(block.shape[1]))
        if leaks:
            names.append(plan.name)
    return names


class _ClassJudge:
    """Judges columns against labels 0 and 1."""

    def __init__(self, positive: NDArray[np.int64]) -> None:
        self._positive = positive
        n_positive = int(positive.sum())
        self.n_rows = min(n_positive, positive.size - n_positive)  # of the rarer label

    def told_by_number(self, values: NDArray[np.float64]) -> bool:
        return _separates(values, self._positive)

    def told_by_category(self, block: Any) -> bool:
        return _category_errors(block, self._positive) <= _MAX_ERROR * self.n_rows


class _NumberJudge:
    """Judges columns against numbers."""

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self._numbers = numbers - numbers.mean()
        self._ranks = rankdata(numbers) - (numbers.size + 1) / 2
        self.n_rows = numbers.size

    def told_by_number(self, values: NDArray[np.float64]) -> bool:
        ranks = rankdata(values) - (values.size + 1) / 2
        scale = float(np.sqrt((ranks @ ranks) * (self._ranks @ self._ranks)))
        return bool(scale > 0 and abs(ranks @ self._ranks) >= (1 - _MAX_ERROR / 2) * scale)

    def told_by_category(self, block: Any) -> bool:
        sizes, sums = np.asarray(block.sum(axis=0)).ravel(), np.asarray(block.T @ self._numbers).ravel()
        squares = np.asarray(block.T @ self._numbers**2).ravel()
        several = sizes > 1  # the only row of a category is predicted by nobody
        means = sums[several] / sizes[several]
        within = squares[several] - sizes[several] * means**2
        errors = (within * (sizes[several] / (sizes[several] - 1)) ** 2).sum()
        outside = self._numbers @ self._numbers - squares[several].sum()
        return bool(errors + outside <= _MAX_ERROR * (self._numbers @ self._numbers))


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
