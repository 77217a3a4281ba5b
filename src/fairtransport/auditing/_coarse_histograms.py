"""Histograms with few bins, small enough to be resampled a thousand times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairtransport.histograms import resample_masses, shuffle_cells
from fairtransport.histograms.resampling import MOST_SHUFFLED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms
    from fairtransport.transport.line import Sample

__all__ = ["MAX_NODES", "CoarseHistograms", "VariancePrecision", "coarsen", "variance_precision"]

MAX_NODES = 128
_DEGREES = 3.0  # of freedom of a variance, times its relative variance; by simulation
_MIN_DEGREES = 4.0
_MAX_LEVERAGE = 0.5  # of a row, for groups of one or two rows
_MANY_DEGREES = 2000  # of freedom: no need for Student's t


@dataclass(frozen=True, eq=False)
class CoarseHistograms:
    r"""Histograms of cells with a few bins of [0, 1], each of which ends at a node.

    Parameters
    ----------
    nodes : array of shape (n_nodes,)
        Upper ends of the bins, ascending, as shares of the range (times its length, if any). The first bin consists of
        its node alone.
    centres : array of shape (n_nodes,)
        Mean score of all rows in each bin; the node itself where the bin is empty.
    masses : array of shape (n_cells, n_nodes)
        Sum of weights.
    squares : array of shape (n_cells, n_nodes), or None
        Sum of squared weights; None where every weight is 1.
    members : array of bool of shape (n_groups, n_cells), or None
        Which cells belong to each group; None where every group is one cell.
    precision : VariancePrecision
        Of the variance of each group's mean score.

    Notes
    -----
    A curve is a distribution function averaged over each bin. With m the share of a group's rows in a bin of width d
    that ends at t, and c the mean score of these rows, the average is :math:`F(t) - m (c - (t - d)) / d`. Areas between
    curves therefore equal those between the distribution functions, except in bins where these cross. The mean score
    of all rows in the bin approximates that of the group.
    """

    nodes: NDArray[np.float64]
    centres: NDArray[np.float64]
    masses: NDArray[np.float64]
    squares: NDArray[np.float64] | None
    members: NDArray[np.bool_] | None
    precision: VariancePrecision

    @property
    def group_shares(self) -> NDArray[np.float64]:
        """Weight of each group as a share of the sum of the groups' weights."""
        totals = self._by_group(self.masses[None])[:-1].sum(axis=(1, 2))
        return totals / totals.sum()

    @property
    def effective_sizes(self) -> NDArray[np.float64]:
        """Effective sample size of each group (Kish)."""
        totals, squares = (
            self._by_group(sums[None])[:-1].sum(axis=(1, 2))
            for sums in (self.masses, self.masses if self.squares is None else self.squares)
        )
        return np.divide(totals**2, squares, out=np.zeros_like(totals), where=squares > 0)

    @property
    def can_permute(self) -> bool:
        """Whether a permutation test is possible: rows of equal weight, and not too many of them."""
        return self.squares is None and self.masses.sum() < MOST_SHUFFLED

    def curves(self, masses: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the averaged distribution functions of the groups and of all rows.

        Parameters
        ----------
        masses : array of shape (n_replicates, n_cells, n_nodes), optional
            Replicates; by default the histograms themselves, as one replicate.

        Returns
        -------
        array of shape (n_groups + 1, n_replicates, n_nodes)
        """
        by_group = self._by_group(self.masses[None] if masses is None else masses)
        cumulative = np.cumsum(by_group, axis=-1)
        totals = cumulative[..., -1:].copy()
        cumulative -= by_group * self._relative_centres
        return np.divide(cumulative, totals, out=np.zeros_like(cumulative), where=totals > 0)

    @property
    def widths(self) -> NDArray[np.float64]:
        """Width of each bin."""
        return np.diff(self.nodes, prepend=self.nodes[0])

    @property
    def _relative_centres(self) -> NDArray[np.float64]:
        """Position of the mean score within each bin: 1 where all rows are at its node."""
        widths = self.widths
        return np.divide(self.centres - (self.nodes - widths), widths, out=np.ones_like(widths), where=widths > 0)

    def average_cdf(self, sample: Sample) -> NDArray[np.float64]:
        """Return another distribution function averaged over each bin."""
        partial_means = np.append(0.0, np.cumsum(sample.weights * sample.values))
        ends = np.append(self.nodes[0], self.nodes)
        levels = sample.cdf(ends)
        areas = ends * levels - partial_means[np.searchsorted(sample.values, ends, side="right")]
        widths = self.widths
        return np.divide(np.diff(areas), widths, out=np.zeros_like(widths), where=widths > 0)

    def _by_group(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        groups = masses.swapaxes(0, 1) if self.members is None else np.einsum("gc,bcn->gbn", self.members, masses)
        return np.concatenate([groups, masses.sum(axis=1)[None]])

    def bootstrap(self, rng: np.random.Generator, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Return curves of bootstrap replicates, and the curves of the distributions that they were drawn from.

        Notes
        -----
        Each group is resampled from its rows and one pseudo-row distributed as the scores of all rows. Without it the
        replicates of a group of one row would not vary at all; with a hundred rows its effect is negligible.
        """
        n_cells = len(self.masses)
        totals = self.masses.sum(axis=1)
        squares = self.masses if self.squares is None else self.squares
        row_weight = np.divide(squares.sum(axis=1), totals, out=np.zeros(n_cells), where=totals > 0)
        added = row_weight if self.members is None else row_weight * self._share_of_smallest_group(totals)
        pool = self.masses.sum(axis=0) / self.masses.sum()
        source = self.masses + added[:, None] * pool
        shrink = np.divide(totals, totals + added, out=np.zeros(n_cells), where=totals > 0)[:, None]
        source *= shrink
        smoothed = None if self.squares is None else (self.squares + (added * row_weight)[:, None] * pool) * shrink
        drawn = resample_masses(source, smoothed, rng, size, fixed_sizes=self.members is None)
        empty = drawn.sum(axis=-1) == 0  # a Poisson draw may leave a tiny cell without rows
        if empty.any():
            drawn += empty[..., None] * source
        curves = self.curves(source[None])
        return self._studentise(self.curves(drawn), curves, rng), curves

    def _share_of_smallest_group(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each cell in its smallest group, so that a group of several cells gets one pseudo-row."""
        members = np.ones((1, totals.size), dtype=np.bool_) if self.members is None else self.members
        sizes = np.where(members, (members @ totals)[:, None], np.inf)
        smallest = np.minimum(sizes.min(axis=0), totals.sum())
        return np.divide(totals, smallest, out=np.zeros_like(totals), where=smallest > 0)

    def noise(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return the deviations of bootstrap replicates from their source."""
        drawn, source = self.bootstrap(rng, size)
        drawn -= source
        return drawn

    def _studentise(
        self, drawn: NDArray[np.float64], source: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Scale the deviations of each group's replicates for the errors of small samples.

        The variance of rows around the truth is larger than that around their mean, by a factor. It is itself
        estimated, with d degrees of freedom: divided by the root of a chi-square variable over d, normal noise has
        Student's t distribution.
        """
        factors, degrees = self.precision
        known = degrees > _MANY_DEGREES
        draws = rng.chisquare(np.where(known, 1.0, degrees), size=(drawn.shape[1], degrees.size)).T / degrees[:, None]
        scales = np.sqrt(factors)[:, None] / np.sqrt(np.where(known[:, None], 1.0, draws))
        drawn[:-1] = source[:-1] + scales[:, :, None] * (drawn[:-1] - source[:-1])
        return drawn

    def null_curves(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return curves under the null hypothesis of no difference between groups.

        Group membership is permuted. With weights, or 10**9 rows and more, each group instead has the distribution of
        all rows plus its own noise, which accounts for weights that depend on the score.
        """
        if self.can_permute:
            return self.curves(shuffle_cells(self.masses, rng, size))
        return self.noise(rng, size) + self.curves()[-1:]


def coarsen(histograms: GroupHistograms, max_nodes: int = MAX_NODES, *, scale: float = 1.0) -> CoarseHistograms:
    """Merge the bins of histograms into at most ``max_nodes`` bins.

    Parameters
    ----------
    histograms : GroupHistograms
    max_nodes : int
        Half of the bins end at quantiles of all scores and half are equally spaced, so that neither peaks nor tails are
        lost. Where no more nodes than this are occupied, each becomes a bin. The ends of the range are bins as well.
    scale : float, default 1
        Length of the range, in which distances are measured.

    Returns
    -------
    CoarseHistograms

    Notes
    -----
    The bins depend on the scores of all rows, not on group membership, so a permutation test on them is exact.
    """
    everyone = histograms.everyone
    occupied = np.flatnonzero(everyone)
    if occupied.size > max_nodes:
        cumulative = np.cumsum(everyone[occupied])
        half = max_nodes // 2
        by_mass = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, half + 1) / half * (1 - 1e-12))
        by_distance = np.searchsorted(occupied, np.linspace(occupied[0], occupied[-1], max_nodes - half))
        occupied = occupied[np.union1d(by_mass, by_distance)]
    ends = np.union1d(occupied, [0, everyone.size - 1])  # the whole range: a target may lie beyond the scores
    starts = np.append(0, ends[:-1] + 1)

    def merge(array: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(array, starts, axis=-1)

    masses = merge(everyone)
    nodes = scale * histograms.grid.unit_nodes
    centres = np.divide(merge(nodes * everyone), masses, out=nodes[ends], where=masses > 0)
    return CoarseHistograms(
        nodes=nodes[ends],
        centres=centres,
        masses=merge(histograms.masses.sum(axis=0)),
        squares=None if histograms.squares is None else merge(histograms.squares.sum(axis=0)),
        members=histograms.members,
        precision=variance_precision(histograms),
    )


class VariancePrecision(NamedTuple):
    """How precisely the variance of each group's mean score is known.

    Parameters
    ----------
    factors : array of shape (n_groups,)
        Factors of the variances that remove their downward bias.
    degrees_of_freedom : array of shape (n_groups,)
        Few where rows are few, or where a few rows with large weights or extreme scores have most of the variance.
    """

    factors: NDArray[np.float64]
    degrees_of_freedom: NDArray[np.float64]


def variance_precision(histograms: GroupHistograms) -> VariancePrecision:
    r"""Return how precisely the variance of each group's mean score is known.

    Parameters
    ----------
    histograms : GroupHistograms

    Returns
    -------
    VariancePrecision

    Notes
    -----
    With weights w of sum W, scores s, their mean m and :math:`a_i = w_i^2 (s_i - m)^2 / W^2`, the variance is the sum
    of the :math:`a_i`. A row with a large weight pulls the mean towards itself; the jackknife therefore divides its
    :math:`a_i` by :math:`(1 - w_i / W)^2`. Over n rows the relative variance of the sum is
    :math:`v = \sum a_i^2 / (\sum a_i)^2 - 1 / n`, that of a chi-square variable with 2 / v degrees of freedom
    (Satterthwaite). Here they are 3 / v, at most the effective size, with which tests are exact in simulations. Rows of
    one bin are taken to have equal weights.
    """
    masses, squares = histograms.by_group, histograms.squares_by_class.sum(axis=0)
    nodes = histograms.grid.unit_nodes
    totals = np.maximum(masses.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    row_weights = np.divide(squares, masses, out=np.zeros_like(masses), where=masses > 0)
    deviations = (nodes - masses @ nodes[:, None] / totals) ** 2
    parts = squares * deviations
    sums, sums_of_squares = parts.sum(axis=1), (parts * row_weights**2 * deviations).sum(axis=1)
    corrected = (parts / (1 - np.minimum(row_weights / totals, _MAX_LEVERAGE)) ** 2).sum(axis=1)
    unknown = np.full_like(sums, 1 / (1 - _MAX_LEVERAGE) ** 2)
    factors = np.divide(corrected, sums, out=unknown, where=sums > 0)
    excess = np.divide(sums_of_squares, sums**2, out=np.zeros_like(sums), where=sums > 0)
    excess -= 1 / np.maximum(histograms.group_rows, 1)
    sizes = histograms.effective_sizes
    degrees = np.minimum(sizes, np.divide(_DEGREES, excess, out=np.full_like(sizes, np.inf), where=excess > 0))
    return VariancePrecision(factors, np.maximum(degrees, _MIN_DEGREES))
