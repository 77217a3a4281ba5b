"""The validated rows of one ``fit``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["TrainingData"]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Features, labels, groups and weights of the rows that a model is trained on.

    Attributes
    ----------
    X : ndarray or csr_matrix
    y : ndarray
        Labels as given.
    classes : ndarray of shape (2,)
    groups : Groups
    weights : ndarray or None
    """

    X: Any
    y: NDArray[Any]
    classes: NDArray[Any]
    groups: Groups
    weights: NDArray[np.float64] | None = None

    @cached_property
    def positive(self) -> NDArray[np.float64]:
        """1 for rows of the second class, 0 for the others."""
        return (self.y == self.classes[1]).astype(np.float64)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Weights of the rows, which sum to 1."""
        n = self.X.shape[0]
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    def select(self, rows: NDArray[np.int64]) -> TrainingData:
        """Return some rows, in their order; rows may repeat."""
        weights = None if self.weights is None else self.weights[rows]
        return TrainingData(self.X[rows], self.y[rows], self.classes, self.groups.select(rows), weights)
