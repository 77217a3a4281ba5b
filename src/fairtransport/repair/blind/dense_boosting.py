"""Histogram gradient boosting of scikit-learn that takes sparse matrices, too, such as encoders return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DenseBoostingClassifier", "DenseBoostingRegressor"]


class DenseBoostingClassifier(HistGradientBoostingClassifier):
    """Histogram gradient boosting of classes, of dense and sparse features."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; see scikit-learn."""
        return super().fit(_dense(X), y, sample_weight=sample_weight)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the classes."""
        return np.asarray(super().predict_proba(_dense(X)))


class DenseBoostingRegressor(HistGradientBoostingRegressor):
    """Histogram gradient boosting of numbers, of dense and sparse features."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; see scikit-learn."""
        return super().fit(_dense(X), y, sample_weight=sample_weight)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions."""
        return np.asarray(super().predict(_dense(X)))


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X
