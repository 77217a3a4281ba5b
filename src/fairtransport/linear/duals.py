"""Dual potentials of the regularized transport problem, as functions of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups
    from fairtransport.penalties import Comparisons, ContinuousPenalty
    from fairtransport.transport.fourier import FourierFeatures

__all__ = ["Duals", "duals_by_group"]


@dataclass(frozen=True, eq=False)
class Duals:
    """The dual potentials of every group, as functions on [0, 1].

    Attributes
    ----------
    features : FourierFeatures
        The basis.
    group_weights, target_weights : ndarray of shape (n_groups, n_fourier_features)
        Coefficients of the dual potentials of the group and of what it is compared with, summed over the pairs that
        the group is in.
    groups : Groups
        Names the rows of the two arrays.
    center, unit : float
        ``center`` is subtracted from scores, which are then divided by ``unit``, before they enter the features.
    """

    features: FourierFeatures
    group_weights: NDArray[np.float64]
    target_weights: NDArray[np.float64]
    groups: Groups
    center: float = 0.0
    unit: float = 1.0

    def __call__(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the dual potential of every group at these scores: shape (n_groups, n_points)."""
        return np.asarray(self._psi(points) @ self.group_weights.T).T

    def of_group(self, label: Any, points: ArrayLike) -> NDArray[np.float64]:
        """Return the dual potential of a group's scores: large where the group has too much mass."""
        return self._psi(points) @ self.group_weights[self.groups.index_of(label)]

    def of_target(self, label: Any, points: ArrayLike) -> NDArray[np.float64]:
        """Return the dual potential of what the group is compared with: the target, or the other groups."""
        return self._psi(points) @ self.target_weights[self.groups.index_of(label)]

    def _psi(self, points: ArrayLike) -> Any:
        return self.features((np.asarray(points, dtype=np.float64) - self.center) / self.unit)


def duals_by_group(penalty: ContinuousPenalty, comparisons: Comparisons, groups: Groups) -> Duals:
    """Return the dual potentials that a penalty found last, summed over the pairs of each group."""
    n_groups, width = len(groups), len(penalty.problem.features)
    group_weights, target_weights = np.zeros((n_groups, width)), np.zeros((n_groups, width))
    names = comparisons.names or tuple(range(n_groups))
    for (a, b), first, second in zip(penalty.pairs, *penalty.dual_coefficients(), strict=True):
        for cell, coefficients, others in ((a, first, second), (b, second, first)):
            group = names[cell] if cell < len(names) else None
            if group is not None:
                group_weights[group] += coefficients
                target_weights[group] += others
    return Duals(penalty.problem.features, group_weights, target_weights, groups, penalty.center, penalty.unit)
