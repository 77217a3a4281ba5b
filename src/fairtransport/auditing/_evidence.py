"""The data of an audit: rows, for exact figures, or histograms, for figures at their resolution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from fairtransport.auditing.records import Decisions
from fairtransport.histograms import Grid, resample_masses, shuffle_cells
from fairtransport.histograms.resampling import MOST_SHUFFLED
from fairtransport.metrics import disparities, kolmogorov_smirnov_disparity, pairwise_distances
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing.proportions import Tally
    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms

#: The group index of all rows.
EVERYONE = -1


def with_label(histograms: GroupHistograms, label: int) -> GroupHistograms:
    """Return the histograms of the rows with one label.

    With weights the numbers of rows by label are not known; they are taken to be in proportion to the weights.
    """
    masses = histograms.masses[label]
    totals = histograms.masses.sum(axis=(0, 2))
    shares = np.divide(masses.sum(axis=1), totals, out=np.zeros_like(totals), where=totals > 0)
    return replace(
        histograms,
        masses=masses[None],
        squares=None if histograms.squares is None else histograms.squares[label][None],
        rows=np.rint(histograms.rows * shares).astype(np.int64),
    )


def _scale(evidence: Evidence) -> RankScale:
    if evidence.rank_scale is None:
        raise ValueError("The scores have known bounds.")
    return evidence.rank_scale


class Evidence(Protocol):
    """The data of an audit. Groups are given by index, all rows by `EVERYONE`; scores are rescaled to [0, 1]."""

    @property
    def histograms(self) -> GroupHistograms:
        """The binned scores, for resampling."""
        ...

    @property
    def rank_scale(self) -> RankScale | None:
        """The ranks of the scores among all rows of the audit; None where scores have known bounds."""
        ...

    @property
    def exact(self) -> bool:
        """Whether figures are computed from rows rather than bins."""
        ...

    def ranked(self) -> Evidence:
        """Return the same rows with ranks instead of scores; only where there is a rank scale."""
        ...

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a threshold (Kolmogorov-Smirnov)."""
        ...

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        ...

    def distances(self) -> NDArray[np.float64]:
        """Return the matrix of distances between groups."""
        ...

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        ...

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        ...

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows strictly above a threshold, and of the others."""
        ...

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows that a threshold misclassifies, and of the others."""
        ...

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are strictly above a threshold."""
        ...

    def only(self, groups: NDArray[np.intp]) -> Evidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        ...


@dataclass(frozen=True, eq=False)
class HistogramEvidence:
    """Evidence from histograms; exact for scores and thresholds on nodes."""

    histograms: GroupHistograms
    rank_scale: RankScale | None = None

    @property
    def exact(self) -> bool:
        """False, although figures are exact for scores that lie on nodes."""
        return False

    def ranked(self) -> HistogramEvidence:
        """Return the same rows with ranks instead of scores."""
        return HistogramEvidence(_scale(self).of_histograms(self.histograms))

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a node."""
        cdf = self.histograms.cdf
        return float(np.max(cdf.max(axis=0) - cdf.min(axis=0)))

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        return self.histograms.disparities(target)

    def distances(self) -> NDArray[np.float64]:
        """Return the matrix of distances between groups."""
        return self.histograms.distances()

    @cached_property
    def _samples(self) -> list[Sample]:
        return [*self.histograms.samples(unit=True), self.histograms.sample_of_everyone(unit=True)]

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        return self._samples[group]

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        return self.histograms.class_sample(label, None if group == EVERYONE else group, unit=True)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight above the threshold, rounded down to a node, and the weight at or below it."""
        return self.decisions(threshold, group).tally("selection_rate")

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of label 0 above and of label 1 at or below the threshold, and the rest."""
        return self.decisions(threshold, group).tally("error_rate")

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are above the threshold."""
        at = self._first_node_above(threshold)
        weights, squares = (
            np.stack([sums[:, :at].sum(axis=1), sums[:, at:].sum(axis=1)], axis=1) for sums in self._masses(group)
        )
        return Decisions(weights, squares)

    def only(self, groups: NDArray[np.intp]) -> HistogramEvidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        return HistogramEvidence(self.histograms.only(groups), self.rank_scale)

    def _masses(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums of weights and of squared weights of a group, by label and node."""
        histograms = self.histograms
        if group != EVERYONE:
            return histograms.by_class[:, group], histograms.squares_by_class[:, group]
        masses = histograms.masses.sum(axis=1)
        return masses, masses if histograms.squares is None else histograms.squares.sum(axis=1)

    def _first_node_above(self, threshold: float) -> int:
        grid = self.histograms.grid
        if grid.positions:
            return int(np.searchsorted(grid.unit_nodes, threshold, side="right"))
        return int(np.floor(threshold * grid.n_bins + 1e-9)) + 1


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Evidence from rows."""

    histograms: GroupHistograms
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    weights: NDArray[np.float64] | None
    groups: Groups
    rank_scale: RankScale | None = None
    ranks: NDArray[np.float64] | None = None

    @property
    def exact(self) -> bool:
        """True."""
        return True

    def ranked(self) -> RowEvidence:
        """Return the same rows with ranks instead of scores."""
        if self.ranks is None:
            raise ValueError("The scores have known bounds.")
        histograms = _scale(self).of_histograms(self.histograms)
        return RowEvidence(histograms, self.ranks, self.positive, self.weights, self.groups)

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a threshold."""
        return kolmogorov_smirnov_disparity(self.scores, sensitive_features=self.groups, sample_weight=self.weights)

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        unit = self.histograms.unit_target(target)
        return disparities(self.scores, sensitive_features=self.groups, target=unit, sample_weight=self.weights)

    def distances(self) -> NDArray[np.float64]:
        """Return the matrix of distances between groups."""
        return pairwise_distances(self.scores, sensitive_features=self.groups, sample_weight=self.weights)

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        return self._everyone if group == EVERYONE else self._sample(group)

    @cached_property
    def _everyone(self) -> Sample:
        return self._sample(EVERYONE)

    def _sample(self, group: int) -> Sample:
        rows = self._rows(group)
        return Sample.from_values(self.scores[rows], None if self.weights is None else self.weights[rows])

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        if (label, group) not in self._class_samples:
            self._class_samples[label, group] = self._class_sample(label, group)
        return self._class_samples[label, group]

    @cached_property
    def _class_samples(self) -> dict[tuple[int, int], Sample | None]:
        return {}

    def _class_sample(self, label: int, group: int) -> Sample | None:
        rows = self._rows(group)
        if self.positive is None:
            raise ValueError("The audit has no labels.")
        selected = self.positive[rows] == bool(label)
        weights = None if self.weights is None else self.weights[rows][selected]
        if not selected.any() or (weights is not None and not weights.sum() > 0):
            return None
        return Sample.from_values(self.scores[rows][selected], weights)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight strictly above the threshold, and at or below it."""
        return self.decisions(threshold, group).tally("selection_rate")

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of the rows that a threshold misclassifies, and of the others."""
        return self.decisions(threshold, group).tally("error_rate")

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are strictly above the threshold."""
        rows = self._rows(group)
        codes = (self.scores[rows] > threshold).astype(np.int8)
        n_classes = 1
        if self.positive is not None:
            n_classes = 2
            codes += 2 * self.positive[rows]
        shape = (n_classes, 2)
        if self.weights is None:
            counts = np.bincount(codes, minlength=2 * n_classes).astype(np.float64).reshape(shape)
            return Decisions(counts, counts)
        weights = self.weights[rows]
        sums, squares = (
            np.bincount(codes, mass, 2 * n_classes).astype(np.float64).reshape(shape) for mass in (weights, weights**2)
        )
        return Decisions(sums, squares)

    def only(self, groups: NDArray[np.intp]) -> RowEvidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        kept = np.isin(np.arange(len(self.groups)), groups)
        settled = self.groups.settle("drop", 1, kept)
        rows = np.flatnonzero(np.any([codes < len(settled) for codes in settled.memberships], axis=0))
        return RowEvidence(
            self.histograms.only(groups),
            self.scores[rows],
            None if self.positive is None else self.positive[rows],
            None if self.weights is None else self.weights[rows],
            settled.select(rows),
            self.rank_scale,
            None if self.ranks is None else self.ranks[rows],
        )

    def _rows(self, group: int) -> Any:
        return slice(None) if group == EVERYONE else self.groups.rows[group]


# Ranks among all rows of an audit: the scale on which scores without known bounds are compared.


@dataclass(frozen=True, eq=False)
class RankScale:
    """The mid-rank of each score among all rows, as a share of the rows.

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


# Histograms with few bins, small enough to be resampled a thousand times.

MAX_NODES = 128
_DEGREES = 3.0  # of freedom of a variance, times its relative variance; by simulation
_MIN_DEGREES = 4.0
_MAX_LEVERAGE = 0.5  # of a row, for groups of one or two rows
_MANY_DEGREES = 2000  # of freedom: no need for Student's t


@dataclass(frozen=True, eq=False)
class CoarseHistograms:
    """Histograms of cells with a few bins of [0, 1], each of which ends at a node.

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
        """Return the averaged distribution functions of the groups and of all rows."""
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
    """How precisely the variance of each group's mean score is known."""

    factors: NDArray[np.float64]
    degrees_of_freedom: NDArray[np.float64]


def variance_precision(histograms: GroupHistograms) -> VariancePrecision:
    r"""Return how precisely the variance of each group's mean score is known.

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
