"""The training rows of an objective: one pass counts their scores in cells, another looks up their derivatives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config

from fairtransport.transport.binned import CELLS
from fairtransport.transport.kernels.binned import (
    CellDerivatives,
    count_masses,
    count_shared,
    logit_derivatives,
    logit_derivatives_shared,
)
from fairtransport.transport.kernels.logistic import logistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["GroupedRows", "check_group_probabilities"]

_CHUNK = 1 << 17  # smallest number of rows for a thread


class GroupedRows:
    """Rows with their groups: one code each, or probabilities of all groups.

    Parameters
    ----------
    groups : Groups
    probabilities : ndarray of shape (n_rows, n_groups), optional
        Probability of each group for each row; by default 1 for the row's groups and 0 for the others.
    """

    def __init__(self, groups: Groups, probabilities: NDArray[Any] | None = None) -> None:
        self.n_rows, self.n_groups = groups.n_rows, len(groups)
        self.codes = groups.memberships[0]
        if probabilities is None and groups.overlapping:
            probabilities = np.zeros((self.n_rows, self.n_groups), dtype=np.float32)
            for codes in groups.memberships:
                probabilities[np.arange(self.n_rows), codes] = 1.0
        self.probabilities = None if probabilities is None else np.ascontiguousarray(probabilities, dtype=np.float32)

    def scores_and_masses(
        self, margins: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores of margins, and every group's mass on the edges of the cells."""
        scores = np.empty_like(margins)

        def count(part: slice) -> NDArray[np.float64]:
            logistic(margins[part], scores[part])
            if self.probabilities is None:
                masses = np.zeros((self.n_groups + 1, CELLS + 1))  # the last row is for rows in no group
                count_masses(scores[part], self.codes[part], weights[part], masses)
                return masses[:-1]
            masses = np.zeros((CELLS + 1, self.n_groups))
            count_shared(scores[part], self.probabilities[part], weights[part], masses)
            return np.ascontiguousarray(masses.T)

        return scores, np.sum(self._in_threads(count), axis=0)

    def derivatives(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float32],
        weights: NDArray[np.float64],
        slopes: NDArray[np.float64],
        bends: NDArray[np.float64],
        *,
        dtype: Any,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return gradient and curvature of log-loss plus penalty with respect to the margins.

        ``slopes`` and ``bends``, of shape (n_groups, n_cells), are the first and second derivative of the penalty with
        respect to a score in each cell.
        """
        gradient, curvature = np.empty((2, self.n_rows), dtype)
        if self.probabilities is None:  # the penalty does not act on rows in no group
            slopes, bends = (np.vstack((table, np.zeros(CELLS))) for table in (slopes, bends))
        else:
            slopes, bends = (np.ascontiguousarray(table.T) for table in (slopes, bends))

        def write(part: slice) -> None:
            outputs = weights[part], CellDerivatives(slopes, bends), gradient[part], curvature[part]
            if self.probabilities is None:
                logit_derivatives(scores[part], labels[part], self.codes[part], *outputs)
            else:
                logit_derivatives_shared(scores[part], labels[part], self.probabilities[part], *outputs)

        self._in_threads(write)
        return gradient, curvature

    def _in_threads(self, task: Callable[[slice], Any]) -> list[Any]:
        n_threads = max(1, min(config.NUMBA_NUM_THREADS, self.n_rows // _CHUNK))
        parts = [slice(*pair) for pair in pairwise(np.linspace(0, self.n_rows, n_threads + 1).astype(int).tolist())]
        if n_threads == 1:
            return [task(parts[0])]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(task, parts))


def check_group_probabilities(probabilities: ArrayLike, groups: Groups) -> NDArray[np.float32]:
    """Return the probabilities of the groups as an array; raise ValueError if they are invalid."""
    array = np.asarray(probabilities, dtype=np.float32)
    if array.shape != (groups.n_rows, len(groups)):
        raise ValueError(
            f"group_probabilities must have shape ({groups.n_rows}, {len(groups)}), rows and groups; it has shape "
            f"{array.shape}."
        )
    if not (np.isfinite(array).all() and array.min() >= 0.0 and array.max() <= 1.0 + 1e-6):
        raise ValueError("group_probabilities must be numbers from 0 to 1, one for each row and group.")
    if not array.sum(axis=0).all():
        raise ValueError("group_probabilities has a group with probability 0 in all rows; each group needs rows.")
    return array
