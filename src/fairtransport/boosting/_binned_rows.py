"""The training rows of an objective: one pass counts their scores in cells, another looks up their derivatives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config

from fairtransport._columns import short_type
from fairtransport.transport.binned import CELLS
from fairtransport.transport.kernels.binned import (
    CellDerivatives,
    count_masses,
    count_shared,
    logit_derivatives,
    logit_derivatives_shared,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["GroupedRows", "hard_probabilities"]

_CHUNK = 1 << 17  # smallest number of rows for a thread


class GroupedRows:
    """Rows with their groups and strata: one code each, or probabilities of all groups of their stratum.

    Parameters
    ----------
    groups : Groups
    probabilities : ndarray of shape (n_rows, n_groups), optional
        Probability of each group for each row; by default 1 for the row's groups and 0 for the others.
    strata : ndarray of int, optional
        Stratum of each row, ``n_strata`` for rows that are not compared; by default all rows are in one.
    n_strata : int, default=1

    Attributes
    ----------
    n_cells_of_rows : int
        Groups times strata.
    """

    def __init__(
        self,
        groups: Groups,
        probabilities: NDArray[Any] | None = None,
        *,
        strata: NDArray[np.int64] | None = None,
        n_strata: int = 1,
    ) -> None:
        self.n_rows, self.n_groups, self.n_strata = groups.n_rows, len(groups), n_strata
        self.n_cells_of_rows = n_strata * self.n_groups
        self.strata = np.zeros(self.n_rows, np.uint8) if strata is None else strata.astype(short_type(n_strata))
        if probabilities is None and groups.overlapping:
            probabilities = hard_probabilities(groups)
        self.probabilities = None if probabilities is None else np.ascontiguousarray(probabilities, dtype=np.float32)
        self.codes = groups.memberships[0]
        if strata is not None:
            codes = self.n_groups * strata + self.codes
            outside = (self.codes == self.n_groups) | (strata == n_strata)
            self.codes = np.where(outside, self.n_cells_of_rows, codes).astype(short_type(self.n_cells_of_rows))

    def count(
        self,
        margins: NDArray[np.float64],
        weights: NDArray[np.float64],
        position: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the position of each margin in [0, 1], and the mass of each group of each stratum at the edges."""
        positions = np.empty_like(margins)

        def count(part: slice) -> NDArray[np.float64]:
            positions[part] = position(margins[part])
            if self.probabilities is None:
                masses = np.zeros((self.n_cells_of_rows + 1, CELLS + 1))  # the last row is for rows that are in no cell
                count_masses(positions[part], self.codes[part], weights[part], masses)
                return masses[:-1]
            masses = np.zeros((self.n_strata + 1, CELLS + 1, self.n_groups))
            count_shared(positions[part], self.probabilities[part], self.strata[part], weights[part], masses)
            return masses[:-1].transpose(0, 2, 1).reshape(self.n_cells_of_rows, CELLS + 1)

        return positions, np.sum(self._in_threads(count), axis=0)

    def logit_derivatives(
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

        ``slopes`` and ``bends``, of shape (n_strata * n_groups, n_cells), are the first and second derivative of the
        penalty with respect to a score in each cell. The penalty does not act on rows in no group or stratum.
        """
        gradient, curvature = np.empty((2, self.n_rows), dtype)
        in_cells = CellDerivatives(*map(self._with_zeros, (slopes, bends)))

        def write(part: slice) -> None:
            outputs = weights[part], in_cells, gradient[part], curvature[part]
            if self.probabilities is None:
                logit_derivatives(scores[part], labels[part], self.codes[part], *outputs)
            else:
                shares = self.probabilities[part], self.strata[part]
                logit_derivatives_shared(scores[part], labels[part], *shares, *outputs)

        self._in_threads(write)
        return gradient, curvature

    def look_up(self, positions: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of a table of shape (n_strata * n_groups, n_cells) for each row, 0 in no group or stratum.

        A row that counts for several groups has their mean, by its probabilities.
        """
        cells = np.minimum((positions * CELLS).astype(np.int64), CELLS - 1)
        padded = self._with_zeros(table)
        if self.probabilities is None:
            return np.asarray(padded[self.codes, cells])
        return np.einsum("ij,ij->i", self.probabilities, padded[self.strata, cells])

    def _with_zeros(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the table with zeros for rows that are not compared; groups last where rows count for several."""
        padded = np.vstack((table, np.zeros((self.n_groups, CELLS))))
        if self.probabilities is None:
            return padded
        return padded.reshape(-1, self.n_groups, CELLS).transpose(0, 2, 1).copy()

    def _in_threads(self, task: Callable[[slice], Any]) -> list[Any]:
        n_threads = max(1, min(config.NUMBA_NUM_THREADS, self.n_rows // _CHUNK))
        parts = [slice(*pair) for pair in pairwise(np.linspace(0, self.n_rows, n_threads + 1).astype(int).tolist())]
        if n_threads == 1:
            return [task(parts[0])]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(task, parts))


def hard_probabilities(groups: Groups) -> NDArray[np.float32]:
    """Return 1 for each row's groups and 0 for the others, of shape (n_rows, n_groups)."""
    table = np.zeros((groups.n_rows, len(groups) + 1), dtype=np.float32)  # the last column is "in no group"
    for codes in groups.memberships:
        table[np.arange(groups.n_rows), codes] = 1.0
    return table[:, :-1]
