"""Which samples of scores must look alike: cells of rows, pairs of cells, and a weight for each pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Comparisons"]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """What a criterion asks for, resolved for the rows of one table.

    Learners and penalties know nothing of criteria; they know this.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    cells : tuple of ndarray
        Row positions of each sample; a row may be in several cells, or in none.
    pairs : ndarray of shape (n_pairs, 2)
        The samples that must look alike: numbers of cells, and beyond them, from ``len(cells)`` on, of targets.
    weights : ndarray of shape (n_pairs,)
        How much each pair counts.
    targets : tuple of ndarray
        Fixed samples of scores that cells can be compared with, ascending.
    row_weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    names : tuple
        What each cell is, for whoever reads results: the number of its group, or None for everyone.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Comparisons.of_cells(5, [np.array([0, 1]), np.array([2, 3, 4])], [(0, 1)])
    >>> pairs.sizes.tolist(), pairs.weights.tolist()
    ([2.0, 3.0], [1.0])
    """

    n_rows: int
    cells: tuple[NDArray[np.int64], ...]
    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]
    targets: tuple[NDArray[np.float64], ...] = ()
    row_weights: NDArray[np.float64] | None = None
    names: tuple[int | None, ...] = ()

    @classmethod
    def of_cells(
        cls,
        n_rows: int,
        cells: Sequence[NDArray[np.int64]],
        pairs: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        targets: Sequence[NDArray[np.float64]] = (),
        row_weights: NDArray[np.float64] | None = None,
        names: Sequence[int | None] = (),
    ) -> Comparisons:
        """Check and freeze; pairs weigh 1 unless ``weights`` says otherwise."""
        ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        heavy = np.ones(len(ends)) if weights is None else np.asarray(weights, dtype=np.float64)
        n_samples = len(cells) + len(targets)
        if ends.size and not (ends.min() >= 0 and ends.max() < n_samples):
            raise ValueError(
                f"pairs must be numbers from 0 to {n_samples - 1}, of {len(cells)} cells and their targets."
            )
        if heavy.shape != (len(ends),) or not np.isfinite(heavy).all() or (heavy < 0).any():
            raise ValueError(f"weights must be {len(ends)} numbers, zero or more: one for each pair.")
        rows = tuple(np.asarray(own, dtype=np.int64) for own in cells)
        if any(own.size == 0 for own in rows):
            raise ValueError(f"{sum(own.size == 0 for own in rows)} of {len(rows)} cells have no rows to compare.")
        return cls(n_rows, rows, ends, heavy, tuple(np.sort(t) for t in targets), row_weights, tuple(names))

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Number of rows of each cell; with weights, (sum of weights)^2 / sum of squared weights.

        Weights that are whole numbers are copies of rows, and counted.
        """
        if self.row_weights is None:
            return np.array([own.size for own in self.cells], dtype=np.float64)
        own = [self.row_weights[rows] for rows in self.cells]
        if np.array_equal(self.row_weights, np.rint(self.row_weights)):
            return np.array([w.sum() for w in own])
        return np.array([w.sum() ** 2 / max(float((w**2).sum()), 1e-300) for w in own])

    @property
    def active(self) -> NDArray[np.int64]:
        """Numbers of the pairs that count."""
        return np.flatnonzero(self.weights > 0.0)

    def sampling_errors(self) -> NDArray[np.float64]:
        """Return sqrt(1/n + 1/m) of each pair: what the distance of two samples of one distribution is proportional to.

        A target is a distribution, not a sample.
        """
        inverse = np.concatenate((1.0 / np.maximum(self.sizes, 1e-300), np.zeros(len(self.targets))))
        return np.asarray(np.sqrt(inverse[self.pairs].sum(axis=1)))

    def restricted(self, rows: NDArray[np.int64], row_weights: NDArray[np.float64] | None) -> Comparisons:
        """Return the same comparisons for some of the rows, in ascending order, with weights of their own."""
        cells = []
        for own in self.cells:
            at = np.minimum(np.searchsorted(rows, own), len(rows) - 1)
            cells.append(at[rows[at] == own])
        # A cell may have no rows among these; there is nothing to compare with it then.
        empty = np.array([own.size == 0 for own in cells] + [False] * len(self.targets))
        weights = np.where(empty[self.pairs].any(axis=1), 0.0, self.weights)
        return replace(self, n_rows=len(rows), cells=tuple(cells), weights=weights, row_weights=row_weights)

    def reweighted(self, weights: NDArray[np.float64]) -> Comparisons:
        """Return the same pairs with other weights."""
        return replace(self, weights=np.asarray(weights, dtype=np.float64))
