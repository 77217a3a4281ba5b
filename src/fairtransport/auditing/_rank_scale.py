"""Ranks among all rows of an audit: the scale on which scores without known bounds are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.histograms import Grid

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.histograms import GroupHistograms

__all__ = ["RankScale"]


@dataclass(frozen=True, eq=False)
class RankScale:
    r"""The mid-rank of each score among all rows, as a share of the rows.

    Parameters
    ----------
    scores : array of shape (n_scores,)
        The nodes at which there are rows, ascending.
    places : array of int of shape (n_nodes,)
        Index of the node of the ranks for each node of the scores.
    grid : Grid
        Nodes 0, the ranks, and 1.

    Notes
    -----
    With F the distribution function of all rows, a score s has the rank :math:`(F(s^-) + F(s)) / 2`, as in
    `fairtransport.metrics.pooled_ranks`. The Wasserstein-1 distance between two groups' ranks is the difference
    between their selection rates, averaged over all shares of rows that are selected. It does not change under
    increasing maps of the scores.
    """

    scores: NDArray[np.float64]
    places: NDArray[np.intp]
    grid: Grid

    @classmethod
    def of(cls, histograms: GroupHistograms) -> Self:
        """Return the ranks of the scores of all rows of histograms."""
        everyone = histograms.everyone
        shares = everyone / everyone.sum()
        ranks = np.cumsum(shares) - shares / 2
        occupied = np.flatnonzero(shares)
        distinct, places = np.unique(ranks[occupied], return_inverse=True)  # tiny weights may not change the sum
        first = np.append(True, np.diff(places) > 0)
        all_places = np.zeros(everyone.size, dtype=np.intp)
        all_places[occupied] = places + 1
        inside = np.clip(distinct, np.finfo(float).tiny, 1 - np.finfo(float).eps)
        return cls(histograms.grid.nodes[occupied[first]], all_places, Grid.at([0.0, *inside.tolist(), 1.0]))

    def of_histograms(self, histograms: GroupHistograms) -> GroupHistograms:
        """Return the histograms of the ranks of some of the rows."""

        def move(masses: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = np.zeros((*masses.shape[:2], self.grid.n_nodes))
            at = np.flatnonzero(self.places)
            places = self.places[at]
            starts = np.flatnonzero(np.append(True, np.diff(places) > 0))
            moved[:, :, places[starts]] = np.add.reduceat(masses[:, :, at], starts, axis=2)
            return moved

        squares = None if histograms.squares is None else move(histograms.squares)
        return replace(histograms, grid=self.grid, masses=move(histograms.masses), squares=squares)

    def to_scores(self, ranks: ArrayLike) -> NDArray[np.float64]:
        """Return the scores with these ranks: 0 is the lowest and 1 the highest."""
        places = np.searchsorted(self.grid.nodes, np.asarray(ranks, dtype=np.float64))
        return self.scores[np.clip(places - 1, 0, self.scores.size - 1)]
