"""Histograms on few nodes, small enough to be drawn a thousand times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.histograms import redraw_null, resample_masses, shuffle_cells
from fairtransport.histograms.resampling import MOST_SHUFFLED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms
    from fairtransport.transport.line import Sample

__all__ = ["MOST_NODES", "Thinned", "thin"]

MOST_NODES = 128


@dataclass(frozen=True, eq=False)
class Thinned:
    r"""Histograms of cells in a few bins of [0, 1], each of which ends at a node.

    Parameters
    ----------
    nodes : array of shape (n_nodes,)
        Ascending shares of the range: the upper ends. The first bin is empty below its node.
    centres : array of shape (n_nodes,)
        Mean score of everyone's rows in each bin; the node itself where no other score was in the bin.
    masses : array of shape (n_cells, n_nodes)
    squares : array of shape (n_cells, n_nodes), or None
        Sum of squared weights; None where every weight is 1.
    members : array of bool of shape (n_groups, n_cells), or None
        Which cells make up a group; None where each is its own.

    Notes
    -----
    A curve is a distribution function averaged over each bin. With m the share of a group's rows in a bin of width d
    that ends at t, and c the mean score of these rows, the average is :math:`F(t) - m (c - (t - d)) / d`. So areas
    between curves are those between the distribution functions, but for bins in which these cross. Everyone's mean
    score is taken for the group's.
    """

    nodes: NDArray[np.float64]
    centres: NDArray[np.float64]
    masses: NDArray[np.float64]
    squares: NDArray[np.float64] | None
    members: NDArray[np.bool_] | None

    @property
    def group_shares(self) -> NDArray[np.float64]:
        """Each group's share of the sum of the groups' weights."""
        totals = self._by_group(self.masses[None])[:-1].sum(axis=(1, 2))
        return totals / totals.sum()

    @property
    def effective_sizes(self) -> NDArray[np.float64]:
        """Rows of equal weight that would tell as much, by group."""
        totals, squares = (
            self._by_group(held[None])[:-1].sum(axis=(1, 2))
            for held in (self.masses, self.masses if self.squares is None else self.squares)
        )
        return np.divide(totals**2, squares, out=np.zeros_like(totals), where=squares > 0)

    @property
    def can_shuffle(self) -> bool:
        """Whether rows can be shuffled among cells: equal weights, and not too many of them."""
        return self.squares is None and self.masses.sum() < MOST_SHUFFLED

    def curves(self, masses: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return distribution functions of groups and everyone.

        Parameters
        ----------
        masses : array of shape (n_replicates, n_cells, n_nodes), optional
            By default the histograms themselves, as one replicate.

        Returns
        -------
        array of shape (n_groups + 1, n_replicates, n_nodes)
        """
        held = self._by_group(self.masses[None] if masses is None else masses)
        totals = np.cumsum(held, axis=-1)
        last = totals[..., -1:].copy()
        totals -= held * self._passed
        return np.divide(totals, last, out=np.zeros_like(totals), where=last > 0)

    @property
    def widths(self) -> NDArray[np.float64]:
        """Width of each bin."""
        return np.diff(self.nodes, prepend=self.nodes[0])

    @property
    def _passed(self) -> NDArray[np.float64]:
        """How far into each bin its rows lie: 1 where all are at its node."""
        widths = self.widths
        return np.divide(self.centres - (self.nodes - widths), widths, out=np.ones_like(widths), where=widths > 0)

    def average_cdf(self, sample: Sample) -> NDArray[np.float64]:
        """Average another distribution function over each bin."""
        order = np.append(0.0, np.cumsum(sample.weights * sample.values))
        ends = np.append(self.nodes[0], self.nodes)
        levels = sample.cdf(ends)
        areas = ends * levels - order[np.searchsorted(sample.values, ends, side="right")]
        widths = self.widths
        return np.divide(np.diff(areas), widths, out=np.zeros_like(widths), where=widths > 0)

    def _by_group(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        groups = masses.swapaxes(0, 1) if self.members is None else np.einsum("gc,bcn->gbn", self.members, masses)
        return np.concatenate([groups, masses.sum(axis=1)[None]])

    def bootstrap(self, rng: np.random.Generator, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Draw curves as new rows would give them, and return them with the curves of what they were drawn from.

        Notes
        -----
        Each group is drawn from its own rows and one more that is spread as everyone's scores are. Without it a group
        of one row would never vary and pass for perfectly known; with a hundred rows it changes nothing to speak of.
        """
        n_cells = len(self.masses)
        totals = self.masses.sum(axis=1)
        squares = self.masses if self.squares is None else self.squares
        row = np.divide(squares.sum(axis=1), totals, out=np.zeros(n_cells), where=totals > 0)  # a typical row's weight
        added = row if self.members is None else row * self._smallest_share(totals)
        pool = self.masses.sum(axis=0) / self.masses.sum()
        source = self.masses + added[:, None] * pool
        shrink = np.divide(totals, totals + added, out=np.zeros(n_cells), where=totals > 0)[:, None]
        source *= shrink
        smoothed = None if self.squares is None else (self.squares + (added * row)[:, None] * pool) * shrink
        drawn = resample_masses(source, smoothed, rng, size, fixed_sizes=self.members is None)
        gone = drawn.sum(axis=-1) == 0  # a Poisson draw may leave a tiny cell without rows
        if gone.any():
            drawn += gone[..., None] * source
        return self.curves(drawn), self.curves(source[None])

    def _smallest_share(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of each cell in the smallest group that it belongs to: one row more for a group, not for a cell."""
        members = np.ones((1, totals.size), dtype=np.bool_) if self.members is None else self.members
        sizes = np.where(members, (members @ totals)[:, None], np.inf)
        smallest = np.minimum(sizes.min(axis=0), totals.sum())
        return np.divide(totals, smallest, out=np.zeros_like(totals), where=smallest > 0)

    def shuffle(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw curves under "no difference": membership shuffled, or, where that cannot be, groups drawn anew."""
        if self.can_shuffle:
            return self.curves(shuffle_cells(self.masses, rng, size))
        totals = self.masses.sum(axis=1)
        squares = totals if self.squares is None else self.squares.sum(axis=1)
        sizes = np.divide(totals**2, squares, out=np.zeros_like(totals), where=squares > 0)
        return self.curves(redraw_null(self.masses.sum(axis=0), sizes, rng, size) * totals[:, None])


def thin(histograms: GroupHistograms, most: int = MOST_NODES) -> Thinned:
    """Put the rows into at most ``most`` bins.

    Parameters
    ----------
    histograms : GroupHistograms
    most : int
        Half of them end at equal shares of everyone's rows, half at equal distances, so that neither a peak nor a thin
        tail is lost. Where no more nodes of the grid are occupied than this, each is a bin of its own. The ends of the
        range are bins as well.

    Returns
    -------
    Thinned

    Notes
    -----
    The bins depend on everyone's scores only, not on who belongs to which group, so a permutation test on them is as
    exact as on the rows.
    """
    everyone = histograms.everyone
    occupied = np.flatnonzero(everyone)
    if occupied.size > most:
        shares = np.cumsum(everyone[occupied])
        half = most // 2
        by_mass = np.searchsorted(shares, shares[-1] * np.arange(1, half + 1) / half * (1 - 1e-12))
        evenly = np.linspace(occupied[0], occupied[-1], most - half)
        by_distance = np.searchsorted(occupied, evenly)
        occupied = occupied[np.union1d(by_mass, by_distance)]
    ends = np.union1d(occupied, [0, everyone.size - 1])  # all of the range, for targets that lie beyond the scores
    starts = np.append(0, ends[:-1] + 1)

    def gather(array: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(array, starts, axis=-1)

    held = gather(everyone)
    centres = np.divide(gather(np.arange(everyone.size) * everyone), held, out=ends.astype(np.float64), where=held > 0)
    return Thinned(
        nodes=ends / histograms.grid.n_bins,
        centres=centres / histograms.grid.n_bins,
        masses=gather(histograms.masses.sum(axis=0)),
        squares=None if histograms.squares is None else gather(histograms.squares.sum(axis=0)),
        members=histograms.members,
    )
