"""The data of an audit: histograms, for figures at their resolution, or rows, for exact figures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport.auditing.proportions import Tally
from fairtransport.auditing.records import Decisions
from fairtransport.groups import Groups
from fairtransport.histograms import Grid, GroupHistograms, count_entries, resample_masses, shuffle_cells
from fairtransport.histograms.resampling import MOST_SHUFFLED
from fairtransport.metrics import kolmogorov_smirnov_disparity
from fairtransport.metrics.ranks import SortedScores, sort_scores
from fairtransport.strata import Strata
from fairtransport.transport.line import Sample

#: The group index of all rows.
EVERYONE = -1


def with_label(histograms: GroupHistograms, label: int) -> GroupHistograms:
    """Return the histograms of the rows with one label; numbers of weighted rows are in proportion to weights."""
    masses = histograms.masses[label]
    totals = histograms.masses.sum(axis=(0, 2))
    shares = np.divide(masses.sum(axis=1), totals, out=np.zeros_like(totals), where=totals > 0)
    return replace(
        histograms,
        masses=masses[None],
        squares=None if histograms.squares is None else histograms.squares[label][None],
        rows=np.rint(histograms.rows * shares).astype(np.int64),
    )


def groups_to_compare(sizes: Floats, least: float) -> tuple[NDArray[np.intp], bool]:
    """Return the groups with enough effective rows and True, or all with rows and False where fewer than two have."""
    enough = np.flatnonzero(sizes >= least)
    return (enough, True) if enough.size >= 2 else (np.flatnonzero(sizes > 0), False)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data of an audit as histograms, from which figures are exact for scores and thresholds on nodes.

    Groups are given by index, all rows by `EVERYONE`; scores are rescaled to [0, 1].
    """

    histograms: GroupHistograms
    rank_scale: RankScale | None = None
    exact: ClassVar[bool] = False

    def ranked(self) -> Evidence:
        """Return the same rows with ranks instead of scores."""
        return Evidence(self._scale.of_histograms(self.histograms))

    @property
    def _scale(self) -> RankScale:
        return self.rank_scale or RankScale.of(self.histograms)

    def only(self, groups: NDArray[np.intp]) -> Evidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        return Evidence(self.histograms.only(groups), self.rank_scale)

    def masses(self, group: int) -> tuple[Floats, Floats]:
        """Return the sums of weights and of squared weights of a group, by label and node."""
        histograms = self.histograms
        if group != EVERYONE:
            return histograms.by_class[:, group], histograms.squares_by_class[:, group]
        masses = histograms.masses.sum(axis=1)
        return masses, masses if histograms.squares is None else histograms.squares.sum(axis=1)

    @cached_property
    def class_sizes(self) -> Floats:
        """Effective sample sizes (Kish) by label and group."""
        weights, squares = (sums.sum(axis=2) for sums in (self.histograms.by_class, self.histograms.squares_by_class))
        return np.divide(weights**2, squares, out=np.zeros_like(weights), where=squares > 0)

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a threshold (Kolmogorov-Smirnov)."""
        cdf = self.histograms.cdf
        return float(np.max(cdf.max(axis=0) - cdf.min(axis=0)))

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        return self.histograms.disparities(target)

    def labelled(self, label: int) -> Evidence:
        """Return the evidence of the rows with one label."""
        return Evidence(with_label(self.histograms, label), self.rank_scale)

    @cached_property
    def distances(self) -> Floats:
        """The matrix of distances between groups."""
        return self.histograms.distances()

    @cached_property
    def _samples(self) -> dict[int, Sample]:
        filled = np.flatnonzero(self.histograms.weights > 0)  # figures of the others are withheld
        samples = dict(zip(filled.tolist(), self.histograms.only(filled).samples(unit=True), strict=True))
        return {**samples, EVERYONE: self.histograms.sample_of_everyone(unit=True)}

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        return self._samples[group]

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        return self.histograms.class_sample(label, None if group == EVERYONE else group, unit=True)

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are strictly above a threshold."""
        grid = self.histograms.grid
        if grid.positions:
            at = int(np.searchsorted(grid.unit_nodes, threshold, side="right"))
        else:
            at = int(np.floor(threshold * grid.n_bins + 1e-9)) + 1
        weights, squares = (
            np.stack([sums[:, :at].sum(axis=1), sums[:, at:].sum(axis=1)], axis=1) for sums in self.masses(group)
        )
        return Decisions(weights, squares)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows strictly above a threshold, and of the others."""
        return self.decisions(threshold, group).tally("selection_rate")

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows that a threshold misclassifies, and of the others."""
        return self.decisions(threshold, group).tally("error_rate")


@dataclass(frozen=True, eq=False)
class Rows:
    """The validated rows of an audit, with ranks where scores have no known bounds."""

    scores: Floats
    positive: Bools | None
    labels: Floats | None
    weights: Floats | None
    groups: Groups
    strata: Strata | None
    ranks: Floats | None = None

    def select(self, rows: Ints) -> Rows:
        """Return some of the rows."""
        chosen: dict[str, Any] = {
            name: part[rows] if isinstance(part, np.ndarray) else part.select(rows)
            for name, part in vars(self).items()
            if part is not None
        }
        return replace(self, **chosen)

    def only(self, groups: NDArray[np.intp]) -> Rows:
        """Return the rows of some groups."""
        settled = self.groups.settle("drop", 1, np.isin(np.arange(len(self.groups)), groups))
        inside = np.any([codes < len(settled) for codes in settled.memberships], axis=0)
        return replace(self, groups=settled).select(np.flatnonzero(inside))

    def count(self, grid: Grid) -> GroupHistograms:
        """Return the histograms of the rows."""
        return count_entries(
            grid,
            self.groups,
            nodes=grid.place_checked(self.scores),
            masses=np.ones(self.scores.size) if self.weights is None else self.weights,
            squares=None if self.weights is None else self.weights**2,
            rows=None if self.weights is None else np.ones(self.scores.size),
            labels=self.positive,
        )


@dataclass(frozen=True, eq=False)
class RowEvidence(Evidence):
    """The data of an audit as rows, from which all figures are exact, with their histograms for resampling."""

    rows: Rows = field(kw_only=True)
    exact: ClassVar[bool] = True

    def ranked(self) -> RowEvidence:
        """Return the same rows with ranks instead of scores."""
        ranks = replace(self.rows, scores=np.asarray(self.rows.ranks))
        return RowEvidence(self._scale.of_histograms(self.histograms), rows=ranks)

    def only(self, groups: NDArray[np.intp]) -> RowEvidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        return RowEvidence(self.histograms.only(groups), self.rank_scale, rows=self.rows.only(groups))

    def labelled(self, label: int) -> RowEvidence:
        """Return the evidence of the rows with one label."""
        rows = self.rows.select(np.flatnonzero(np.asarray(self.rows.positive) == bool(label)))
        return RowEvidence(with_label(self.histograms, label), self.rank_scale, rows=rows)

    @cached_property
    def _scores(self) -> Floats:
        return self.histograms.grid.to_unit(self.rows.scores)

    @cached_property
    def _sorted(self) -> SortedScores:
        return sort_scores(self._scores, self.rows.groups, self.rows.weights)

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a threshold (Kolmogorov-Smirnov)."""
        rows = self.rows
        return kolmogorov_smirnov_disparity(self._scores, sensitive_features=rows.groups, sample_weight=rows.weights)

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        return self._sorted.disparities(self.histograms.unit_target(target), (0.0, 1.0))

    @cached_property
    def distances(self) -> Floats:
        """The matrix of distances between groups."""
        return self._sorted.distances()

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        return self._everyone if group == EVERYONE else self._sample(self._rows_of(group))

    @cached_property
    def _everyone(self) -> Sample:
        return self._sample(slice(None))

    def _sample(self, rows: Any) -> Sample:
        weights = self.rows.weights
        return Sample.from_values(self._scores[rows], None if weights is None else weights[rows])

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        positive, weights, known = self.rows.positive, self.rows.weights, self._class_samples
        if positive is None:
            raise ValueError("The audit has no labels.")
        if (label, group) not in known:
            members = np.arange(self._scores.size)[self._rows_of(group)]
            rows = members[positive[members] == bool(label)]
            empty = not rows.size if weights is None else not weights[rows].sum() > 0
            known[label, group] = None if empty else self._sample(rows)
        return known[label, group]

    @cached_property
    def _class_samples(self) -> dict[tuple[int, int], Sample | None]:
        return {}

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are strictly above a threshold."""
        rows, positive, weights = self._rows_of(group), self.rows.positive, self.rows.weights
        codes = (self._scores[rows] > threshold).astype(np.int8)
        shape = (1, 2)
        if positive is not None:
            shape, codes = (2, 2), codes + 2 * positive[rows]
        masses = (None, None) if weights is None else (weights[rows], weights[rows] ** 2)
        sums, squares = (np.bincount(codes, mass, 2 * shape[0]).astype(np.float64).reshape(shape) for mass in masses)
        return Decisions(sums, squares)

    def _rows_of(self, group: int) -> Any:
        return slice(None) if group == EVERYONE else self.rows.groups.rows[group]


# Ranks among all rows of an audit: the scale on which scores without known bounds are compared.


@dataclass(frozen=True, eq=False)
class RankScale:
    """The mid-rank of each score among all rows: with F their distribution function, :math:`(F(s^-) + F(s)) / 2`."""

    scores: Floats
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

        def move(masses: Floats) -> Floats:
            moved = np.zeros((*masses.shape[:2], self.grid.n_nodes))
            at = np.flatnonzero(self.places)
            places = self.places[at]
            starts = np.flatnonzero(np.append(True, np.diff(places) > 0))
            moved[:, :, places[starts]] = np.add.reduceat(masses[:, :, at], starts, axis=2)
            return moved

        squares = None if histograms.squares is None else move(histograms.squares)
        return replace(histograms, grid=self.grid, masses=move(histograms.masses), squares=squares)

    def to_scores(self, ranks: ArrayLike) -> Floats:
        """Return the scores with these ranks: 0 is the lowest and 1 the highest."""
        places = np.searchsorted(self.grid.nodes, np.asarray(ranks, dtype=np.float64))
        return self.scores[np.clip(places - 1, 0, self.scores.size - 1)]


# Histograms with few bins, small enough to be resampled a thousand times.

MAX_NODES = 128
_DEGREES = 3.0  # of freedom of a variance, times its relative variance; by simulation
_MIN_DEGREES = 4.0
_MAX_LEVERAGE = 0.5  # of a row, for groups of one or two rows
_MANY_DEGREES = 2000  # of freedom: no need for Student's t


@dataclass(frozen=True, eq=False)
class CoarseHistograms:
    """Histograms of cells with a few bins of [0, 1], each of which ends at a node.

    A curve is a distribution function averaged over each bin: with m the share of a group's rows in a bin of width d
    that ends at t, and c the mean score of all rows there, :math:`F(t) - m (c - (t - d)) / d`.
    """

    nodes: Floats
    centres: Floats
    masses: Floats
    squares: Floats | None
    members: Bools | None
    precision: VariancePrecision

    @property
    def group_shares(self) -> Floats:
        """Weight of each group as a share of the sum of the groups' weights."""
        totals = self._by_group(self.masses[None])[:-1].sum(axis=(1, 2))
        return totals / totals.sum()

    @property
    def effective_sizes(self) -> Floats:
        """Effective sample size of each group (Kish)."""
        totals, squares = (
            self._by_group(sums[None])[:-1].sum(axis=(1, 2))
            for sums in (self.masses, self.masses if self.squares is None else self.squares)
        )
        return np.divide(totals**2, squares, out=np.zeros_like(totals), where=squares > 0)

    @property
    def can_permute(self) -> bool:
        """True if a permutation test is possible: rows of equal weight, and not too many of them."""
        return self.squares is None and self.masses.sum() < MOST_SHUFFLED

    def curves(self, masses: Floats | None = None) -> Floats:
        """Return the averaged distribution functions of the groups and of all rows."""
        by_group = self._by_group(self.masses[None] if masses is None else masses)
        cumulative = np.cumsum(by_group, axis=-1)
        totals = cumulative[..., -1:].copy()
        cumulative -= by_group * self._relative_centres
        return np.divide(cumulative, totals, out=np.zeros_like(cumulative), where=totals > 0)

    @property
    def widths(self) -> Floats:
        """Width of each bin."""
        return np.diff(self.nodes, prepend=self.nodes[0])

    @property
    def _relative_centres(self) -> Floats:
        """Position of the mean score within each bin: 1 where all rows are at its node."""
        widths = self.widths
        return np.divide(self.centres - (self.nodes - widths), widths, out=np.ones_like(widths), where=widths > 0)

    def average_cdf(self, sample: Sample) -> Floats:
        """Return another distribution function averaged over each bin."""
        partial_means = np.append(0.0, np.cumsum(sample.weights * sample.values))
        ends = np.append(self.nodes[0], self.nodes)
        levels = sample.cdf(ends)
        areas = ends * levels - partial_means[np.searchsorted(sample.values, ends, side="right")]
        widths = self.widths
        return np.divide(np.diff(areas), widths, out=np.zeros_like(widths), where=widths > 0)

    def _by_group(self, masses: Floats) -> Floats:
        groups = masses.swapaxes(0, 1) if self.members is None else np.einsum("gc,bcn->gbn", self.members, masses)
        return np.concatenate([groups, masses.sum(axis=1)[None]])

    def bootstrap(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Return curves of bootstrap replicates, and the curves of the distributions that they were drawn from.

        Each group has one more row, distributed as all rows, without which the replicates of a single row would not
        vary.
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

    def replicates(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Return `bootstrap` of this size, drawn once for all figures of these histograms."""
        if size not in self._replicates:
            self._replicates[size] = self.bootstrap(rng, size)
        return self._replicates[size]

    @cached_property
    def _replicates(self) -> dict[int, tuple[Floats, Floats]]:
        return {}

    def _share_of_smallest_group(self, totals: Floats) -> Floats:
        """Return the share of each cell in its smallest group, so that a group of several cells gets one pseudo-row."""
        members = np.asarray(self.members)
        sizes = np.where(members, (members @ totals)[:, None], np.inf)
        smallest = np.minimum(sizes.min(axis=0), totals.sum())
        return np.divide(totals, smallest, out=np.zeros_like(totals), where=smallest > 0)

    def _studentise(self, drawn: Floats, source: Floats, rng: np.random.Generator) -> Floats:
        """Scale the deviations of each group's replicates, so that normal noise has Student's t distribution."""
        factors, degrees = self.precision
        known = degrees > _MANY_DEGREES
        draws = rng.chisquare(np.where(known, 1.0, degrees), size=(drawn.shape[1], degrees.size)).T / degrees[:, None]
        scales = np.sqrt(factors)[:, None] / np.sqrt(np.where(known[:, None], 1.0, draws))
        drawn[:-1] = source[:-1] + scales[:, :, None] * (drawn[:-1] - source[:-1])
        return drawn

    def null_curves(self, rng: np.random.Generator, size: int) -> Floats:
        """Return curves without any difference: group membership is permuted.

        With weights, or 10**9 rows and more, each group instead has the distribution of all rows plus its own noise.
        """
        if self.can_permute:
            return self.curves(shuffle_cells(self.masses, rng, size))
        drawn, source = self.bootstrap(rng, size)
        return drawn - source + self.curves()[-1:]


def coarsen(
    histograms: GroupHistograms, max_nodes: int = MAX_NODES, *, scale: float = 1.0, everyone: Floats | None = None
) -> CoarseHistograms:
    """Merge bins into at most ``max_nodes``, chosen by the masses of all rows, or by those of ``everyone``."""
    pooled = histograms.everyone if everyone is None else everyone
    occupied = np.flatnonzero(pooled)
    if occupied.size > max_nodes:
        cumulative = np.cumsum(pooled[occupied])
        half = max_nodes // 2
        by_mass = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, half + 1) / half * (1 - 1e-12))
        by_distance = np.searchsorted(occupied, np.linspace(occupied[0], occupied[-1], max_nodes - half))
        occupied = occupied[np.union1d(by_mass, by_distance)]
    ends = np.union1d(occupied, [0, pooled.size - 1])  # the whole range: a target may lie beyond the scores
    starts = np.append(0, ends[:-1] + 1)

    def merge(array: Floats) -> Floats:
        return np.add.reduceat(array, starts, axis=-1)

    masses = merge(pooled)
    nodes = scale * histograms.grid.unit_nodes
    centres = np.divide(merge(nodes * pooled), masses, out=nodes[ends], where=masses > 0)
    return CoarseHistograms(
        nodes=nodes[ends],
        centres=centres,
        masses=merge(histograms.masses.sum(axis=0)),
        squares=None if histograms.squares is None else merge(histograms.squares.sum(axis=0)),
        members=histograms.members,
        precision=variance_precision(histograms),
    )


class VariancePrecision(NamedTuple):
    """The precision with which the variance of each group's mean score is known."""

    factors: Floats
    degrees_of_freedom: Floats


def variance_precision(histograms: GroupHistograms) -> VariancePrecision:
    r"""Return how precisely the variance of each group's mean score is known.

    With weights w of sum W, scores s of mean m and :math:`a_i = w_i^2 (s_i - m)^2 / W^2`, the variance is the sum of
    the :math:`a_i / (1 - w_i / W)^2` (jackknife). Its degrees of freedom are 3 / v, at most the effective size, with
    :math:`v = \sum a_i^2 / (\sum a_i)^2 - 1 / n` (Satterthwaite has 2 / v), with which tests are exact in simulations.
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
