"""The training rows as the objective reads them: counted in cells in one pass, pushed in another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config

from fairtransport.transport.binned import CELLS, count_masses, count_shared, pushes, pushes_shared
from fairtransport.transport.kernels import logistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["Rows", "check_shares"]

_CHUNK = 1 << 17  # fewest rows that a thread takes
_NONE = np.zeros(0)


class Rows:
    """Who belongs to which group: by one code, or by shares of all groups.

    Parameters
    ----------
    groups : Groups
    shares : ndarray of shape (n_rows, n_groups), optional
        How much of each row belongs to each group; by default all of it to its own. Needed for groups that overlap,
        and made from them where it is not given.
    """

    def __init__(self, groups: Groups, shares: NDArray[Any] | None = None) -> None:
        self.n_rows, self.n_groups = groups.n_rows, len(groups)
        self.codes = groups.memberships[0]
        if shares is None and groups.overlapping:
            shares = np.zeros((self.n_rows, self.n_groups), dtype=np.float32)
            for codes in groups.memberships:
                shares[np.arange(self.n_rows), codes] = 1.0
        self.shares = None if shares is None else np.ascontiguousarray(shares, dtype=np.float32)

    def count(
        self, margins: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores, and every group's mass on the edges of the cells."""
        scores = np.empty_like(margins)

        def count(part: slice) -> NDArray[np.float64]:
            logistic(margins[part], scores[part])
            own = weights[part]
            if self.shares is None:
                masses = np.zeros((self.n_groups + 1, CELLS + 1))  # the last row is for those in no group
                count_masses(scores[part], self.codes[part], own, masses)
                return masses[:-1]
            masses = np.zeros((CELLS + 1, self.n_groups))
            count_shared(scores[part], self.shares[part], own, masses)
            return np.ascontiguousarray(masses.T)

        return scores, np.sum(self._in_threads(count), axis=0)

    def push(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float32],
        weights: NDArray[np.float64],
        slopes: NDArray[np.float64],
        bends: NDArray[np.float64],
        *,
        dtype: Any,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return gradient and curvature of log-loss plus penalty with respect to the margins."""
        gradient, curvature = np.empty((2, self.n_rows), dtype)
        if self.shares is None:  # those in no group are not pushed
            slopes, bends = (np.vstack((table, np.zeros(CELLS))) for table in (slopes, bends))
        else:
            slopes, bends = (np.ascontiguousarray(table.T) for table in (slopes, bends))

        def push(part: slice) -> None:
            own = (weights[part], slopes, bends, gradient[part], curvature[part])
            if self.shares is None:
                pushes(scores[part], labels[part], self.codes[part], *own)
            else:
                pushes_shared(scores[part], labels[part], self.shares[part], *own)

        self._in_threads(push)
        return gradient, curvature

    def _in_threads(self, task: Callable[[slice], Any]) -> list[Any]:
        n_threads = max(1, min(config.NUMBA_NUM_THREADS, self.n_rows // _CHUNK))
        parts = [slice(*pair) for pair in pairwise(np.linspace(0, self.n_rows, n_threads + 1).astype(int).tolist())]
        if n_threads == 1:
            return [task(parts[0])]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(task, parts))


def check_shares(shares: ArrayLike, groups: Groups) -> NDArray[np.float32]:
    """Return the shares as numbers; raise where they cannot be such."""
    array = np.asarray(shares, dtype=np.float32)
    if array.shape != (groups.n_rows, len(groups)):
        raise ValueError(
            f"shares must have shape ({groups.n_rows}, {len(groups)}), rows and groups; it has shape {array.shape}."
        )
    if not (np.isfinite(array).all() and array.min() >= 0.0 and array.max() <= 1.0 + 1e-6):
        raise ValueError("shares must be numbers from 0 to 1: how much of a row belongs to each group.")
    if not array.sum(axis=0).all():
        raise ValueError("shares has a group that no row belongs to; each needs some.")
    return array
