"""Our estimators with the groups taken from a column of X, so that scikit-learn's checks can call them.

The checks know nothing of ``sensitive_features``. A test class reads each row's group from the digits of its values,
as good as by chance, so that the groups have nothing to do with the labels; everything else is the estimator's own.
Where X is no matrix, rows take turns: then it is for the estimator to say what is wrong.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

import fairtransport as ft


def _numbers(X):
    """One number for each row, or None where X is nothing of the kind."""
    try:
        array = X.toarray() if sparse.issparse(X) else np.asarray(X)
        if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "fiuO":
            return None
        return np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0).sum(axis=1)
    except (TypeError, ValueError):
        return None


def _side(numbers, salt):
    return np.floor(np.minimum(np.abs(numbers), 1e9) * salt).astype(np.int64) % 2


class GroupedClassifier:
    """Fits and predicts without ``sensitive_features``."""

    def _find_groups(self, X, sample_weight):
        numbers = _numbers(X)
        self._salt = 1.0
        if numbers is None:
            return
        if sample_weight is not None and np.asarray(sample_weight).shape == numbers.shape:
            numbers = numbers[np.asarray(sample_weight) > 0]  # a row without weight is no row
        different = np.unique(numbers)
        for salt in (7.3, 11.9, 101.7, 1003.1, 0.7, 33.3, 57.1):
            if different.size and 0.3 < _side(different, salt).mean() < 0.7:
                self._salt = salt
                return

    def _rows_to_groups(self, X):
        numbers = _numbers(X)
        if numbers is not None:
            return _side(numbers, self._salt)
        return np.arange(np.shape(X)[0] if sparse.issparse(X) else len(np.asarray(X, dtype=object))) % 2

    def fit(self, X, y, sample_weight=None):
        self._find_groups(X, sample_weight)
        return super().fit(X, y, sensitive_features=self._rows_to_groups(X), sample_weight=sample_weight)

    def predict_proba(self, X, *, sensitive_features=None):
        return super().predict_proba(X, sensitive_features=self._given(X, sensitive_features))

    def predict(self, X, *, sensitive_features=None):
        return super().predict(X, sensitive_features=self._given(X, sensitive_features))

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sensitive_features=self._given(X, None), sample_weight=sample_weight)

    def _given(self, X, sensitive_features):
        if sensitive_features is None and hasattr(self, "_salt"):
            return self._rows_to_groups(X)
        return sensitive_features


class GroupedCOT(GroupedClassifier, ft.ContinuousTransportClassifier):
    """COT: groups in training."""

    def decision_function(self, X, *, sensitive_features=None):
        return super().decision_function(X, sensitive_features=self._given(X, sensitive_features))


class GroupedDOT(GroupedClassifier, ft.DiscreteTransportClassifier):
    """DOT: groups in training."""

    def decision_function(self, X, *, sensitive_features=None):
        return super().decision_function(X, sensitive_features=self._given(X, sensitive_features))


class GroupedRepairClassifier(GroupedClassifier, ft.QuantileRepairClassifier):
    """Repair around a classifier: groups at prediction, too."""
