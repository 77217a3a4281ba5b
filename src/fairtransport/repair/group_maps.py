"""The quantile map of each group and the target, for parity, equal opportunity and equalized odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._validation import check_flag, check_vector
from fairtransport.groups import NEW_GROUP_ROWS, Groups
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.repair._score_counts import ScoreCounts, tie_starts
from fairtransport.repair.group_checks import MapSources, with_dropped_labels
from fairtransport.repair.randomized_maps import RandomizedMaps
from fairtransport.transport.line import QuantileMap, Sample, move_by_code, quantile_map, wasserstein
from fairtransport.transport.targets import TARGET_SIZE, TARGET_WORDS, pooled, resolve_target

Members = tuple[int, ...]
MapAndRows = tuple[QuantileMap, Ints]

LEARNED = "learned"
UNIT = (0.0, 1.0)

# The rows of groups that maps are computed from: as they are, or counted.


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of positive weight; groups from ``n_kept`` on were dropped, and have no maps of their own."""

    scores: Floats
    groups: Groups
    n_kept: int
    weights: Floats | None = None
    labels: Ints | None = None

    @classmethod
    def of(
        cls, scores: Floats, groups: Groups, weights: Floats | None = None, labels: Ints | None = None
    ) -> ScoredRows:
        """Return rows, with the labels of dropped groups after the others."""
        return cls(scores, with_dropped_labels(groups), len(groups), weights, labels)

    def select(self, rows: NDArray[Any]) -> ScoredRows:
        """Return some of the rows."""
        weights, labels = (None if one is None else one[rows] for one in (self.weights, self.labels))
        return replace(self, scores=self.scores[rows], groups=self.groups.select(rows), weights=weights, labels=labels)

    @property
    def sizes(self) -> Ints:
        """Rows of each group; whole weights are counts of copies, and summed."""
        are_copies = self.weights is not None and np.array_equal(self.weights, np.rint(self.weights))
        counts = self.masses.astype(np.int64) if are_copies else self.groups.counts
        return np.where(np.arange(len(self.groups)) < self.n_kept, counts, 0)

    @property
    def masses(self) -> Floats:
        """Weight of each group."""
        weights = self.weights
        return np.array([rows.size if weights is None else weights[rows].sum() for rows in self.groups.rows], float)

    def positives(self) -> ScoredRows:
        """Return the rows with label 1."""
        return self.select(np.asarray(self.labels == 1))

    def rows_with(self, label: int) -> Ints:
        """Return the rows of each group with a label."""
        return self.select(np.asarray(self.labels == label)).sizes

    def sample_of(self, members: Members) -> Sample:
        """Return the distribution of some groups together."""
        rows: Any = slice(None)
        if len(members) < len(self.groups):
            rows = np.concatenate([self.groups.rows[group] for group in members])
        return Sample.from_values(self.scores[rows], None if self.weights is None else self.weights[rows])

    def rows_at(self, members: Members, values: Floats) -> Ints:
        """Return how many rows of some groups share each of their distinct scores; values are all of these, sorted."""
        del members
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        return np.diff(np.append(starts, values.size))

    def counts_of(self, members: Members, options: MapOptions) -> ScoreCounts:
        """Return the weights of some groups together by label and score."""
        rows = self.select(np.flatnonzero(np.isin(self.groups.codes, members)))
        assert rows.labels is not None
        return ScoreCounts.from_rows(
            rows.scores, rows.labels, rows.weights, n_labels=options.n_labels, probabilities=options.are_probabilities
        )


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows in histograms, with the same methods."""

    histograms: GroupHistograms

    @property
    def groups(self) -> Groups:
        """The groups."""
        return self.histograms.groups

    @property
    def sizes(self) -> Ints:
        """Rows of each group."""
        return self.histograms.rows

    @property
    def masses(self) -> Floats:
        """Weight of each group."""
        return np.asarray(self.histograms.weights, dtype=np.float64)

    def positives(self) -> CountedRows:
        """Return the rows with label 1."""
        return CountedRows(positives_of(self.histograms))

    def rows_with(self, label: int) -> Ints:
        """Return the rows of each group with a label."""
        return self.positives().sizes if label else rows_with_label(self.histograms, 0)

    def sample_of(self, members: Members) -> Sample:
        """Return the distribution of some groups together."""
        return self.histograms.pooled_sample(members)

    def rows_at(self, members: Members, values: Floats) -> Ints:
        """Return the rows at each value; with weights, the least number there can be: (sum w)^2 / sum w^2."""
        nodes = np.searchsorted(self.histograms.grid.nodes, values)
        mass = self.histograms.by_group[list(members)].sum(axis=0)[nodes]
        squares = self.histograms.squares_by_class[:, list(members)].sum(axis=(0, 1))[nodes]
        least = np.divide(mass**2, squares, out=np.ones_like(mass), where=squares > 0)
        return np.maximum(1, np.floor(least * (1 + 1e-9))).astype(np.int64)

    def counts_of(self, members: Members, options: MapOptions) -> ScoreCounts:
        """Return the weights of some groups together by label and score."""
        del options
        return ScoreCounts.from_histograms(self.histograms, members)


def map_sizes(rows: ScoredRows | CountedRows, options: MapOptions) -> Ints:
    """Return how many rows of each group a map can be computed from."""
    if options.criterion == "demographic_parity" or options.n_labels > 2:
        return rows.sizes
    positive = rows.rows_with(1)
    return positive if options.criterion == "equal_opportunity" else np.minimum(positive, rows.rows_with(0))


# Maps of groups to one target distribution.


class FoundMaps(NamedTuple):
    """The map of the rows of some groups together and the rows at its knots, and the target."""

    pairs: dict[Members, MapAndRows]
    target: Sample
    randomized: RandomizedMaps | None = None
    is_shared: bool = False  # one map of all rows, for all groups


def maps_to_target(rows: ScoredRows | CountedRows, sources: MapSources, options: MapOptions) -> FoundMaps:
    """Return the map of each group to the target."""
    known = {members: rows.sample_of(members) for members in {*sources.maps, *sources.target}}
    masses = rows.masses
    # A group that is the target need not be among those that a barycenter is made of.
    used = sources.target if _is_word(options.target) else [(group,) for group in np.flatnonzero(masses > 0).tolist()]
    if _is_word(options.target) and options.target == "pooled":
        target = rows.sample_of(tuple(range(len(rows.groups))))
    else:
        samples = {members: known.get(members) or rows.sample_of(members) for members in used}
        target = _resolve_target(options, rows.groups, samples, [masses[list(members)].sum() for members in used])
    pairs = {}
    for members in {*sources.maps}:
        carry = map_with_ties(known[members], target, probabilities=options.are_probabilities).prepare()
        pairs[members] = carry, rows.rows_at(members, known[members].values)
    return FoundMaps(pairs, target)


def _resolve_target(
    options: MapOptions, groups: Groups, samples: dict[Members, Sample], masses: Sequence[float]
) -> Sample:
    """Return the target of samples of groups, of which each is named by its first one."""
    return resolve_target(
        options.target,
        list(samples.values()),
        masses,
        labels=[groups.labels[members[0]] for members in samples],
        names=[groups.names[members[0]] for members in samples],
        score_range=options.score_range,
    )


def _is_word(target: Any) -> bool:
    return isinstance(target, str) and target in TARGET_WORDS


def map_with_ties(source: Sample, target: Sample, *, probabilities: bool = True) -> QuantileMap:
    """Map the source to the target, where scores that differ only by rounding share one image."""
    values = source.values
    starts = tie_starts(values, probabilities=probabilities)
    tie = np.cumsum(starts) - 1
    merged = quantile_map(Sample(values[starts][tie], source.levels), target)
    distinct = np.append(True, values[1:] != values[:-1])
    return QuantileMap(values[distinct], merged.images[tie[distinct]])


def extend_map(carry: QuantileMap, rows: Ints, low: float, high: float) -> MapAndRows:
    """Return the map with the ends of the range as further knots, and the rows at its knots; none are at the ends.

    Rows with another label than those that the map was computed from may lie beyond them; they keep their order.
    """
    before, after = int(carry.knots[0] > low), int(carry.knots[-1] < high)
    knots = np.concatenate(([low] * before, carry.knots, [high] * after))
    images = np.concatenate(([min(low, carry.images[0])] * before, carry.images, [max(high, carry.images[-1])] * after))
    return QuantileMap(knots, images).prepare(), np.pad(rows, (before, after))


# Increasing maps of the groups' scores that bring the distributions given each label closest to each other.

_MAX_SWEEPS = 3
_MANY_UNITS = 8  # beyond which each is merged with its neighbours only
_MAX_POINTS = 256  # at which the distances to other groups are integrated
_TIE_BREAK = 1e-3  # weight of the mean squared change against the distance


def separation(counts: Sequence[ScoreCounts], images: Sequence[Floats], label_weights: Floats) -> float:
    """Return the weighted sum over labels of the Wasserstein-1 distances between pairs of groups."""
    total = 0.0
    for label in np.flatnonzero(label_weights):
        samples = [
            one.moved(image, int(label)) for one, image in zip(counts, images, strict=True) if one.has_label[label]
        ]
        total += float(label_weights[label]) * sum(wasserstein(one, other) for one, other in combinations(samples, 2))
    return total


def best_partial_repair(
    counts: Sequence[ScoreCounts], repairs: Sequence[Sequence[QuantileMap]], label_weights: Floats
) -> list[Floats]:
    """Return the images under the partial repair with the smallest separation.

    Notes
    -----
    The quantile functions of a partial repair are linear in its amount, so the separation is convex in it.
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - pages of audits do not need it, and it takes a while

    best = [one.values for one in counts]
    least = separation(counts, best, label_weights)
    for maps in repairs:
        full = [carry(one.values) for carry, one in zip(maps, counts, strict=True)]

        def images(amount: float, full: list[Floats] = full) -> list[Floats]:
            return [(1.0 - amount) * one.values + amount * image for one, image in zip(counts, full, strict=True)]

        found = minimize_scalar(
            lambda amount: separation(counts, images(amount), label_weights),
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": 1e-5},
        )
        for amount in (float(found.x), 1.0):
            value = separation(counts, images(amount), label_weights)
            if value < least:
                best, least = images(amount), value
    return best


def equalizing_images(
    counts: Sequence[ScoreCounts], start: Sequence[Floats], label_weights: Floats, *, width: float = 1.0
) -> list[tuple[Floats, Floats]]:
    """Return the increasing maps with the smallest separation that keep the distribution of all scores together."""
    n_slices = 256 if len(counts) <= 3 else 128 if len(counts) <= _MANY_UNITS else 64
    units = [_Unit.of(one, image, n_slices) for one, image in zip(counts, start, strict=True)]
    candidates = [list(zip((one.values for one in counts), start, strict=True))]
    for tie_break in (_TIE_BREAK, 0.0)[: 2 if len(counts) == 2 else 1]:
        moved = _merge_in_turn(units, label_weights, tie_break / width, tol=1e-6 * width)
        candidates.append([(unit.knots, images) for unit, images in zip(units, moved, strict=True)])
    values = []
    for maps in candidates:
        images = [np.interp(one.values, *pair) for one, pair in zip(counts, maps, strict=True)]
        values.append(separation(counts, images, label_weights))
    # The merge that changes scores less is preferred, unless it leaves noticeably more.
    best = 1 if values[1] <= min(values[0], values[-1] + _TIE_BREAK * values[0]) else int(np.argmin(values))
    return candidates[best]


@dataclass(frozen=True, eq=False)
class _Unit:
    """A group in slices of neighbouring scores.

    ``knots`` and ``start`` are the mean score and the mean image of each slice, ``masses`` the weight up to the end of
    each slice, and ``shares`` the share of each label up to it; the last two begin with 0. ``has_label`` says of which
    labels there are rows.
    """

    knots: Floats
    start: Floats
    masses: Floats
    shares: Floats
    has_label: Bools

    @classmethod
    def of(cls, counts: ScoreCounts, images: Floats, n_slices: int) -> _Unit:
        slices = counts.sliced(n_slices)
        mass = counts.masses.sum(axis=0)
        sums = np.bincount(slices, mass).astype(np.float64)
        knots, start = (np.bincount(slices, mass * values) / sums for values in (counts.values, images))
        if slices[-1] + 1 == counts.values.size:  # the means of single scores, without rounding
            knots, start = counts.values, images
        shares = np.array([np.bincount(slices, share) for share in counts.shares])
        cumulated = np.apply_along_axis(_cumulated, 1, shares)
        return cls(knots, np.maximum.accumulate(start), _cumulated(sums), cumulated, counts.has_label)


def _cumulated(values: Floats) -> Floats:
    return np.append(0.0, np.cumsum(values))


def _merge_in_turn(units: Sequence[_Unit], label_weights: Floats, tie_break: float, *, tol: float) -> list[Floats]:
    """Merge one pair of groups after the other, until nothing improves; return the images of the slices."""
    images = [unit.start for unit in units]
    n_units = len(units)
    pairs = list(combinations(range(n_units), 2))
    if n_units > _MANY_UNITS:
        pairs = [(index, (index + 1) % n_units) for index in range(n_units)]
    for _ in range(1 if n_units == 2 else _MAX_SWEEPS):
        before = list(images)
        for pair in pairs:
            others = [(units[index], images[index]) for index in range(n_units) if index not in pair]
            both = [(units[index], images[index]) for index in pair]
            images[pair[0]], images[pair[1]] = _merge_pair(both, others, label_weights, tie_break)
        if max(float(np.abs(one - other).max()) for one, other in zip(images, before, strict=True)) < tol:
            break
    return images


def _merge_pair(
    both: Sequence[tuple[_Unit, Floats]],
    others: Sequence[tuple[_Unit, Floats]],
    label_weights: Floats,
    tie_break: float,
) -> tuple[Floats, Floats]:
    r"""Return the images of the slices of two groups under the best merge of their rankings.

    Notes
    -----
    At the point (i, j) of the grid, i slices of the first group and j of the second lie below. A step to (i + 1, j)
    takes a slice of the first, a step to (i, j + 1) one of the second, a diagonal step both, with one image. With t
    the image of a step, the mean of the joint quantile function over the levels that the step fills, and c(i, j) the
    weighted distance between the shares of the two groups,

    .. math:: \int |F(t) - G(t)| dt = \sum_{\text{steps}} t \, (c(\text{start}) - c(\text{end})).

    Distances to the other groups, which stay where they are, are sums of the same kind.
    """
    (first, second), images = zip(*both, strict=True)
    compared = np.where(first.has_label & second.has_label, label_weights, 0.0)
    distance = np.einsum("y,yij->ij", compared, np.abs(first.shares[:, :, None] - second.shares[:, None, :]))
    level = first.masses[:, None] + second.masses[None, :]
    area = _quantile_integral(first, second, images, level)
    scale = tie_break / float(level[-1, -1])

    def image(start: Any, end: Any) -> Floats:
        return np.asarray((area[end] - area[start]) / (level[end] - level[start]))

    def cost(start: Any, end: Any) -> Floats:
        at = image(start, end)
        total = at * (distance[start] - distance[end])
        if start[0] != end[0]:
            total += (
                to_others[0](at, axis=0) + scale * np.diff(first.masses)[:, None] * (at - first.knots[:, None]) ** 2
            )
        if start[1] != end[1]:
            total += to_others[1](at, axis=1) + scale * np.diff(second.masses) * (at - second.knots) ** 2
        return total

    to_others = [_distance_to(unit, others, label_weights) for unit in (first, second)]
    every, low, high = slice(None), slice(None, -1), slice(1, None)
    steps = _shortest_path(
        cost((low, every), (high, every)), cost((every, low), (every, high)), cost((low, low), (high, high))
    )
    start, end = steps[:-1], steps[1:]
    at = np.maximum.accumulate(image(tuple(start.T), tuple(end.T)))
    moved = end > start
    return at[moved[:, 0]], at[moved[:, 1]]


def _quantile_integral(first: _Unit, second: _Unit, images: tuple[Floats, Floats], level: Floats) -> Floats:
    """Return the integral of the joint quantile function of two groups from 0 to a level of mass."""
    values = np.concatenate(images)
    order = np.argsort(values, kind="stable")
    mass = np.concatenate((np.diff(first.masses), np.diff(second.masses)))[order]
    return np.interp(level, _cumulated(mass), _cumulated(mass * values[order]))


class _distance_to:  # noqa: N801 - a function with state
    """The part of a step's cost that is due to the distances of a group to all groups that stay where they are."""

    def __init__(self, unit: _Unit, others: Sequence[tuple[_Unit, Floats]], label_weights: Floats) -> None:
        self._points: Floats | None = None
        if not others:
            return
        points = np.unique(np.concatenate([images for _, images in others]))
        if points.size > _MAX_POINTS:
            points = points[np.linspace(0, points.size - 1, _MAX_POINTS).astype(np.int64)]
        self._points = points
        widths = np.diff(self._points)
        self._areas = np.zeros((unit.masses.size, self._points.size))
        total = np.zeros_like(label_weights)
        for other, images in others:
            compared = np.where(unit.has_label & other.has_label, label_weights, 0.0)
            total += compared
            below = other.shares[:, np.searchsorted(images, self._points[:-1], side="right")]
            gaps = np.abs(unit.shares[:, :, None] - below[:, None, :])
            self._areas[:, 1:] += np.cumsum(np.einsum("y,yip->ip", compared, gaps) * widths, axis=1)
        # Below the first point the others have no rows, above the last all of theirs.
        self._below = total @ unit.shares
        self._above = total @ (1.0 - unit.shares)

    def __call__(self, at: Floats, *, axis: int) -> Floats | float:
        if self._points is None:
            return 0.0
        index = np.clip(np.searchsorted(self._points, at, side="right") - 1, 0, self._points.size - 2)
        low = self._points[index]
        share = (np.clip(at, self._points[0], self._points[-1]) - low) / (self._points[index + 1] - low)
        outside = np.minimum(at - self._points[0], 0.0), np.maximum(at - self._points[-1], 0.0)
        slices = np.arange(self._areas.shape[0] - 1)
        slices = slices[:, None] if axis == 0 else slices[None, :]

        def area(number: Ints) -> Floats:
            start, end = self._areas[number, index], self._areas[number, index + 1]
            inside = start + share * (end - start)
            result: Floats = inside + outside[0] * self._below[number] + outside[1] * self._above[number]
            return result

        return area(slices) - area(slices + 1)


def _shortest_path(down: Floats, right: Floats, both: Floats) -> Ints:
    """Return the points of the cheapest path through a grid of (n + 1) x (m + 1) points."""
    n, m = both.shape
    columns = np.arange(m + 1)
    entered = np.empty((n + 1, m + 1), dtype=np.int64)  # the column where the path of a point enters its row
    diagonal = np.zeros((n + 1, m + 1), dtype=bool)  # whether it enters there by a diagonal step
    enter = np.full(m + 1, np.inf)
    enter[0] = 0.0
    for row in range(n + 1):
        along = _cumulated(right[row])
        ahead = enter - along
        least = np.minimum.accumulate(ahead)
        entered[row] = np.maximum.accumulate(np.where(ahead == least, columns, 0))
        if row == n:
            break
        cost = least + along
        enter = cost + down[row]
        across = cost[:-1] + both[row]
        diagonal[row + 1, 1:] = across < enter[1:]
        enter[1:] = np.minimum(enter[1:], across)
    points = [(n, m)]
    row, column = n, m
    while (row, column) != (0, 0):
        if column > entered[row, column]:
            column -= 1
        elif diagonal[row, column]:
            row, column = row - 1, column - 1
        else:
            row -= 1
        points.append((row, column))
    return np.array(points[::-1])


# Maps for equalized odds: which groups have maps of their own, and how these are computed from counts by label.


def equalized_odds_maps(rows: ScoredRows | CountedRows, sources: MapSources, options: MapOptions) -> FoundMaps:
    """Return the maps of groups for equalized odds."""
    resolve = partial(_resolve, options, rows.groups)
    with_ties = partial(map_with_ties, probabilities=options.are_probabilities)
    everyone = tuple(range(len(rows.groups)))
    units = [members for members in dict.fromkeys(sources.maps) if members != everyone]
    pooled_counts = rows.counts_of(everyone, options)
    counts = {members: rows.counts_of(members, options) for members in units}
    # Groups are moved one after another: in an order that their names do not decide.
    counts = dict(sorted(counts.items(), key=lambda item: (item[1].mass, item[1].sample().mean)))
    if len(units) < 2:  # nothing to compare: all scores of the rows are mapped as they would be for parity
        if not options.randomize:
            target = resolve(counts or {everyone: pooled_counts})
            pair = _with_rows(with_ties(pooled_counts.sample(), target), pooled_counts)
            return FoundMaps(dict.fromkeys(sources.maps, pair), target, is_shared=True)
        counts = {everyone: pooled_counts}
    elif everyone in sources.maps and options.randomize:
        counts[everyone] = pooled_counts
    if options.randomize:
        return _randomized(counts, sources, resolve(counts))
    weights = _label_weights(pooled_counts, options.stratum_weight)
    parity, samples = resolve(counts), list(counts.values())
    repairs = [[with_ties(one.sample(), parity) for one in samples]]
    if weights.size == 2:
        opportunity = resolve(counts, label=1)
        repairs += [[with_ties(one.sample(1), opportunity) for one in samples]]
    start = best_partial_repair(samples, repairs, weights)
    low, high = options.score_range or (pooled_counts.values[0], pooled_counts.values[-1])
    images = equalizing_images(samples, start, weights, width=float(high - low))
    maps = [QuantileMap(*pair).prepare() for pair in images]
    moved = [
        Sample.from_sorted(carry(one.values), one.masses.sum(axis=0)) for carry, one in zip(maps, samples, strict=True)
    ]
    repaired = pooled(moved, [one.mass for one in samples])
    pairs = {members: _with_rows(carry, one) for carry, (members, one) in zip(maps, counts.items(), strict=True)}
    if everyone in sources.maps:
        pairs[everyone] = _with_rows(with_ties(pooled_counts.sample(), repaired), pooled_counts)
    return FoundMaps(pairs, repaired)


def _with_rows(carry: QuantileMap, counts: ScoreCounts) -> MapAndRows:
    """Return a map and the rows nearest to each of its knots."""
    nearest = np.searchsorted((carry.knots[1:] + carry.knots[:-1]) / 2, counts.values)
    return carry, np.bincount(nearest, counts.rows, carry.knots.size).astype(np.int64)


def _label_weights(counts: ScoreCounts, stratum_weight: str | None) -> Floats:
    masses = counts.masses.sum(axis=1)
    return masses / masses.sum() if stratum_weight == "share" else np.full(masses.size, 1.0 / masses.size)


def _resolve(
    options: MapOptions, groups: Groups, counts: dict[Members, ScoreCounts], *, label: int | None = None
) -> Sample:
    single = {members: one for members, one in counts.items() if len(members) == 1} or counts
    used = counts if _is_word(options.target) else single
    masses = [one.mass if label is None else float(one.masses[label].sum()) for one in used.values()]
    return _resolve_target(options, groups, {members: one.sample(label) for members, one in used.items()}, masses)


def _randomized(counts: dict[Members, ScoreCounts], sources: MapSources, target: Sample) -> FoundMaps:
    members = list(counts)
    index = {one: members.index(one) if one in counts else 0 for one in sources.maps}
    randomized = RandomizedMaps.fit(
        list(counts.values()), target.equal_mass(TARGET_SIZE), [index[one] for one in sources.maps]
    )
    maps = [_with_rows(randomized.expected_map(number), one) for number, one in enumerate(counts.values())]
    return FoundMaps({one: maps[number] for one, number in index.items()}, target, randomized)


@dataclass(frozen=True)
class MapOptions:
    """Options of the maps; see the parameters of the same names of `QuantileRepair`."""

    target: Any = "barycenter_w2"
    small: str = "keep"
    min_size: int = 30
    criterion: str = "demographic_parity"
    stratum_weight: str | None = None
    randomize: bool = False
    score_range: tuple[float, float] | None = UNIT  # None where it is learned
    n_labels: int = 2  # more for ranges of y
    own_maps: bool = False  # of groups of any size, as cells of strata have

    @property
    def are_probabilities(self) -> bool:
        """True if scores lie within [0, 1]."""
        return self.score_range == UNIT

    def check(self) -> None:
        """Raise for options that are not allowed; the target is checked with the groups."""
        check_flag(self.randomize, name="randomize")
        if self.randomize and self.criterion != "equalized_odds":
            raise ValueError(
                f"randomize=True is for criterion='equalized_odds': with criterion={self.criterion!r}, maps without "
                "any randomness make the distributions equal."
            )
        if self.randomize and self.score_range is None:
            raise ValueError(
                "randomize=True needs a range of scores, because draws belong to scores that are rounded relative to "
                "it: give range=(low, high)."
            )

    def on(self, grid: Grid) -> MapOptions:
        """Return the options for scores that were counted on a grid, whose range they have, unless it was learned."""
        return self if self.score_range is None else replace(self, score_range=(grid.low, grid.high))

    def sources(self, sizes: ArrayLike) -> MapSources:
        """Return which groups each map and the target are computed from, for groups with so many rows."""
        weigh_by_size = isinstance(self.target, str) and self.target == "barycenter_w2"
        chosen = MapSources.choose(sizes, self.small, self.min_size, by_size=weigh_by_size)
        return chosen.with_own_maps(sizes) if self.own_maps else chosen


@dataclass(frozen=True, eq=False)
class GroupMaps:
    """The full repair of each group."""

    maps: tuple[QuantileMap, ...]
    rows_at_knots: tuple[Ints, ...]
    own_map: Bools
    target: Floats
    groups: Groups
    group_sizes: Ints
    randomized: RandomizedMaps | None = None

    @classmethod
    def from_rows(cls, rows: ScoredRows | CountedRows, options: MapOptions) -> GroupMaps:
        """Return the maps of rows, which have labels if the criterion compares people with the same label."""
        sources = options.sources(map_sizes(rows, options))
        if options.criterion == "equalized_odds":
            found = equalized_odds_maps(rows, sources, options)
        else:
            used = rows if options.criterion == "demographic_parity" else rows.positives()
            found = maps_to_target(used, sources, options)
        pairs, compares_labels = found.pairs, options.criterion != "demographic_parity"
        if compares_labels and not options.randomize and options.score_range is not None:
            pairs = {members: extend_map(*pair, *options.score_range) for members, pair in pairs.items()}
        maps, rows_at_knots = zip(*(pairs[members] for members in sources.maps), strict=True)
        return cls(
            maps,
            rows_at_knots,
            np.zeros_like(sources.own_map) if found.is_shared else sources.own_map,
            found.target.equal_mass(TARGET_SIZE),
            Groups.from_spec(rows.groups.to_spec()),
            rows.sizes,
            found.randomized,
        )

    @classmethod
    def from_histograms(cls, histograms: GroupHistograms, options: MapOptions) -> GroupMaps:
        """Return the maps of counted rows."""
        return cls.from_rows(CountedRows(histograms), options.on(histograms.grid))

    def identities(self, low: float, high: float) -> GroupMaps:
        """Return maps of the same groups that change no score within a range."""
        ends = np.array([low, high])
        rows = tuple(np.maximum(1, size // np.array([2, 2])) for size in self.group_sizes)
        maps = (QuantileMap(ends, ends).prepare(),) * len(rows)
        return replace(self, maps=maps, rows_at_knots=rows, randomized=None)

    def with_identity_maps(self, groups: Groups, grid: Grid) -> GroupMaps:
        """Return the maps with those of new groups, whose scores are not changed."""
        n_new = len(groups) - len(self.groups)
        ends = np.array([grid.low, grid.high])
        identity = QuantileMap(ends, ends).prepare()
        rows = np.full(2, int(NEW_GROUP_ROWS), dtype=np.int64)  # of no one; a model file requires some at each knot
        return replace(
            self,
            maps=self.maps + (identity,) * n_new,
            rows_at_knots=self.rows_at_knots + (rows,) * n_new,
            own_map=np.append(self.own_map, np.zeros(n_new, dtype=np.bool_)),
            groups=groups,
            group_sizes=np.append(self.group_sizes, np.zeros(n_new, dtype=np.int64)),
        )

    def pooled_map(self, options: MapOptions) -> QuantileMap:
        """Return the map of all rows together to the target, for criteria with one target."""
        own = np.flatnonzero(self.own_map).tolist()
        if not own:
            return self.maps[0]  # that of all groups
        knots = np.concatenate([self.maps[group].knots for group in own])
        rows = np.concatenate([self.rows_at_knots[group] for group in own])
        everyone = Sample.from_values(knots, rows.astype(np.float64))
        target = Sample.from_values(self.target)
        carry = map_with_ties(everyone, target, probabilities=options.are_probabilities)
        if options.criterion == "equal_opportunity" and options.score_range is not None:
            carry = extend_map(carry, np.ones(carry.knots.size, dtype=np.int64), *options.score_range)[0]
        return carry.prepare()


def rows_with_label(histograms: GroupHistograms, label: int) -> Ints:
    """Return the rows of each group with one label; with weights, the effective number of rows."""
    masses, squares = (array[label].sum(axis=1) for array in (histograms.by_class, histograms.squares_by_class))
    rows = np.divide(masses**2, squares, out=np.zeros_like(masses), where=squares > 0)
    return np.rint(rows).astype(np.int64)


def positives_of(histograms: GroupHistograms) -> GroupHistograms:
    """Return the histograms of rows with label 1; those without labels are of such rows already."""
    if not histograms.has_labels:
        return histograms
    squares = None if histograms.squares is None else histograms.squares[1:]
    return replace(histograms, masses=histograms.masses[1:], squares=squares, rows=rows_with_label(histograms, 1))


# Scores moved by quantile maps, also beyond the scores that the maps were computed from.


def move_scores(
    scores: Floats,
    codes: NDArray[Any],
    maps: Sequence[QuantileMap],
    amount: float,
    *,
    extrapolate: bool,
    n_threads: int = 1,
) -> Floats:
    """Return each score moved towards its image under the map of its code.

    Notes
    -----
    With the knot k nearest to a score s beyond it and the map T,

    .. math:: T(s) = T(k) + (s - k),

    which is continuous, keeps the order, and commutes with increasing affine maps of all scores.
    """
    if not extrapolate:
        return move_by_code(scores, codes, maps, amount, n_threads=n_threads)
    lowest, highest = (np.array([carry.knots[end] for carry in maps])[codes] for end in (0, -1))
    inside = np.clip(scores, lowest, highest)
    return move_by_code(inside, codes, maps, amount, n_threads=n_threads) + (scores - inside)


# The range of scores that a repair takes: given, or learned from the scores of fit.


def resolve_range(score_range: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest score, or None where the range is learned."""
    if isinstance(score_range, str):
        if score_range == LEARNED:
            return None
        raise ValueError("range must be 'learned' or two numbers, such as (0, 1).")
    if score_range is None:
        raise TypeError("range must be 'learned' or two numbers, such as (0, 1); got None.")
    grid = Grid.over(score_range, 1)
    return grid.low, grid.high


def check_in_range(scores: ArrayLike, score_range: Any) -> Floats:
    """Return scores as a finite vector; raise ValueError for those outside of a range that is given."""
    values, ends = check_vector(scores, name="scores"), resolve_range(score_range)
    low, high = (-np.inf, np.inf) if ends is None else ends
    n_outside = int(np.count_nonzero((values < low) | (values > high)))
    if n_outside:
        raise ValueError(
            f"scores has {n_outside} of {values.size} values outside [{low:g}, {high:g}]. Give the range of possible "
            "scores with range=(low, high), such as (1, 10) for deciles, or set range='learned' for scores without "
            "bounds, such as the predictions of a regression or logits."
        )
    return values
