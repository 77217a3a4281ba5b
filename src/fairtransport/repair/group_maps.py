"""The quantile map of each group and the target, for parity, equal opportunity and equalized odds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from fairtransport._sklearn import NEW_GROUP_ROWS
from fairtransport._validation import check_choice, check_vector
from fairtransport.criteria import CRITERIA, STRATUM_WEIGHTS
from fairtransport.groups import Groups
from fairtransport.histograms import Grid
from fairtransport.repair._score_counts import ScoreCounts, tie_starts
from fairtransport.repair.group_checks import MapSources, with_dropped_labels
from fairtransport.repair.randomized_maps import RandomizedMaps
from fairtransport.transport.line import QuantileMap, Sample, move_by_code, quantile_map, wasserstein
from fairtransport.transport.targets import TARGET_SIZE, TARGET_WORDS, pooled, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms

    Array = NDArray[np.float64]
    Members = tuple[int, ...]
    from numpy.typing import ArrayLike

# Maps of groups to one target distribution, from samples of their scores.


class FoundMaps(NamedTuple):
    """The map of each group, the rows at its knots, whether it is of that group alone, and the target."""

    maps: tuple[QuantileMap, ...]
    rows_at_knots: tuple[NDArray[np.int64], ...]
    own_map: NDArray[np.bool_]
    target: Sample
    randomized: RandomizedMaps | None = None

    def extended(self, low: float, high: float) -> FoundMaps:
        """Return the maps with the ends of the range of scores as further knots, which keep their place."""
        pairs = [extend_map(*pair, low, high) for pair in zip(self.maps, self.rows_at_knots, strict=True)]
        maps, rows = zip(*pairs, strict=True)
        return self._replace(maps=maps, rows_at_knots=rows)


@dataclass(frozen=True, eq=False)
class GroupSamples:
    """The distributions of groups, however their rows are stored.

    ``sample_of`` returns the distribution of the rows of some groups together, ``rows_at_knots`` how many of these
    rows share each knot; ``masses`` weigh the groups.
    """

    sample_of: Callable[[tuple[int, ...]], Sample]
    rows_at_knots: Callable[[tuple[int, ...], Sample], NDArray[np.int64]]
    masses: NDArray[np.float64]

    @classmethod
    def of_rows(cls, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None) -> GroupSamples:
        """Return the distributions of rows."""

        def sample_of(members: tuple[int, ...]) -> Sample:
            rows: Any = slice(None) if len(members) == len(groups) else groups.rows[members[0]]
            if 1 < len(members) < len(groups):
                rows = np.concatenate([groups.rows[group] for group in members])
            return Sample.from_values(scores[rows], None if weights is None else weights[rows])

        masses = [rows.size if weights is None else weights[rows].sum() for rows in groups.rows]
        return cls(sample_of, lambda _, sample: _count_ties(sample.values), np.asarray(masses, np.float64))

    @classmethod
    def of_histograms(cls, histograms: GroupHistograms) -> GroupSamples:
        """Return the distributions of counted rows."""
        return cls(
            histograms.pooled_sample,
            lambda members, sample: _count_at_knots(histograms, members, sample.values),
            np.asarray(histograms.weights, dtype=np.float64),
        )


def maps_to_target(
    samples: GroupSamples,
    sources: MapSources,
    target: Any,
    groups: Groups,
    *,
    score_range: tuple[float, float] | None = (0.0, 1.0),
) -> FoundMaps:
    """Return the map of each group to the target."""
    known = {members: samples.sample_of(members) for members in {*sources.maps, *sources.target}}
    resolved = _find_target(target, samples, known, sources.target, groups=groups, score_range=score_range)
    unit = score_range == (0.0, 1.0)
    maps = {
        members: map_with_ties(known[members], resolved, probabilities=unit).prepare() for members in {*sources.maps}
    }
    rows = {members: samples.rows_at_knots(members, known[members]) for members in maps}
    return FoundMaps(
        tuple(maps[members] for members in sources.maps),
        tuple(rows[members] for members in sources.maps),
        sources.own_map,
        resolved,
    )


def _find_target(
    target: Any,
    samples: GroupSamples,
    known: dict[tuple[int, ...], Sample],
    compared: tuple[tuple[int, ...], ...],
    *,
    groups: Groups,
    score_range: tuple[float, float] | None,
) -> Sample:
    everyone = tuple(range(len(groups)))
    if isinstance(target, str) and target in TARGET_WORDS:
        if target == "pooled":
            return samples.sample_of(everyone)
        masses = [samples.masses[list(members)].sum() for members in compared]
        return resolve_target(target, [known[members] for members in compared], masses)
    filled = [group for group in everyone if samples.masses[group] > 0]
    return resolve_target(
        target,
        [known.get((group,)) or samples.sample_of((group,)) for group in filled],
        samples.masses[filled],
        labels=[groups.labels[group] for group in filled],
        names=[groups.names[group] for group in filled],
        score_range=score_range,
    )


def _count_ties(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how often each distinct one of ascending values occurs."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return np.diff(np.append(starts, values.size))


def _count_at_knots(
    histograms: GroupHistograms, members: Sequence[int], knots: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the rows of some groups at each knot; with weights, the least number there can be: (sum w)^2 / sum w^2."""
    nodes = np.searchsorted(histograms.grid.nodes, knots)
    mass = histograms.by_group[list(members)].sum(axis=0)[nodes]
    squares = histograms.squares_by_class[:, list(members)].sum(axis=(0, 1))[nodes]
    least = np.divide(mass**2, squares, out=np.ones_like(mass), where=squares > 0)
    return np.maximum(1, np.floor(least * (1 + 1e-9))).astype(np.int64)


def map_with_ties(source: Sample, target: Sample, *, probabilities: bool = True) -> QuantileMap:
    """Map the source to the target, where scores that differ only by rounding share one image."""
    values = source.values
    starts = tie_starts(values, probabilities=probabilities)
    tie = np.cumsum(starts) - 1
    merged = quantile_map(Sample(values[starts][tie], source.levels), target)
    distinct = np.append(True, values[1:] != values[:-1])
    return QuantileMap(values[distinct], merged.images[tie[distinct]])


def extend_map(
    carry: QuantileMap, rows: NDArray[np.int64], low: float, high: float
) -> tuple[QuantileMap, NDArray[np.int64]]:
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


def separation(counts: Sequence[ScoreCounts], images: Sequence[Array], label_weights: Array) -> float:
    """Return the weighted sum over labels of the Wasserstein-1 distances between pairs of groups."""
    total = 0.0
    for label in np.flatnonzero(label_weights):
        samples = [
            one.moved(image, int(label)) for one, image in zip(counts, images, strict=True) if one.has_label[label]
        ]
        total += float(label_weights[label]) * sum(wasserstein(one, other) for one, other in combinations(samples, 2))
    return total


def best_partial_repair(
    counts: Sequence[ScoreCounts], repairs: Sequence[Sequence[QuantileMap]], label_weights: Array
) -> list[Array]:
    """Return the images under the partial repair with the smallest separation.

    Notes
    -----
    The quantile functions of a partial repair are linear in its amount, so the separation is convex in it.
    """
    best = [one.values for one in counts]
    least = separation(counts, best, label_weights)
    for maps in repairs:
        full = [carry(one.values) for carry, one in zip(maps, counts, strict=True)]

        def images(amount: float, full: list[Array] = full) -> list[Array]:
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
    counts: Sequence[ScoreCounts], start: Sequence[Array], label_weights: Array, *, width: float = 1.0
) -> list[tuple[Array, Array]]:
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

    knots: Array
    start: Array
    masses: Array
    shares: Array
    has_label: NDArray[np.bool_]

    @classmethod
    def of(cls, counts: ScoreCounts, images: Array, n_slices: int) -> _Unit:
        slices = counts.sliced(n_slices)
        mass = counts.masses.sum(axis=0)
        sums = np.bincount(slices, mass).astype(np.float64)
        knots, start = (np.bincount(slices, mass * values) / sums for values in (counts.values, images))
        if slices[-1] + 1 == counts.values.size:  # the means of single scores, without rounding
            knots, start = counts.values, images
        shares = np.array([np.bincount(slices, share) for share in counts.shares])
        cumulated = np.apply_along_axis(_cumulated, 1, shares)
        return cls(knots, np.maximum.accumulate(start), _cumulated(sums), cumulated, counts.has_label)


def _cumulated(values: Array) -> Array:
    return np.append(0.0, np.cumsum(values))


def _merge_in_turn(units: Sequence[_Unit], label_weights: Array, tie_break: float, *, tol: float) -> list[Array]:
    """Merge one pair of groups after the other, until nothing improves; return the images of the slices."""
    images = [unit.start for unit in units]
    n_units = len(units)
    pairs = list(combinations(range(n_units), 2))
    if n_units > _MANY_UNITS:
        pairs = [(index, (index + 1) % n_units) for index in range(n_units)]
    for _ in range(1 if n_units == 2 else _MAX_SWEEPS):
        before = images
        for first, second in pairs:
            others = [(units[index], images[index]) for index in range(n_units) if index not in (first, second)]
            merged = _merge_pair(
                units[first],
                units[second],
                (images[first], images[second]),
                others,
                label_weights=label_weights,
                tie_break=tie_break,
            )
            images = list(images)
            images[first], images[second] = merged
        if max(float(np.abs(one - other).max()) for one, other in zip(images, before, strict=True)) < tol:
            break
    return images


def _merge_pair(
    first: _Unit,
    second: _Unit,
    images: tuple[Array, Array],
    others: Sequence[tuple[_Unit, Array]],
    *,
    label_weights: Array,
    tie_break: float,
) -> tuple[Array, Array]:
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
    compared = np.where(first.has_label & second.has_label, label_weights, 0.0)
    distance = np.einsum("y,yij->ij", compared, np.abs(first.shares[:, :, None] - second.shares[:, None, :]))
    level = first.masses[:, None] + second.masses[None, :]
    area = _quantile_integral(first, second, images)(level)
    scale = tie_break / float(level[-1, -1])

    def image(start: tuple[slice, slice], end: tuple[slice, slice]) -> Array:
        return (area[end] - area[start]) / (level[end] - level[start])

    def cost(start: tuple[slice, slice], end: tuple[slice, slice]) -> Array:
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
    at = (area[tuple(end.T)] - area[tuple(start.T)]) / (level[tuple(end.T)] - level[tuple(start.T)])
    at = np.maximum.accumulate(at)
    moved = end > start
    return at[moved[:, 0]], at[moved[:, 1]]


class _quantile_integral:  # noqa: N801 - a function with state
    """The integral of the joint quantile function of two groups from 0 to a level of mass."""

    def __init__(self, first: _Unit, second: _Unit, images: tuple[Array, Array]) -> None:
        values = np.concatenate(images)
        order = np.argsort(values, kind="stable")
        mass = np.concatenate((np.diff(first.masses), np.diff(second.masses)))[order]
        self._levels = _cumulated(mass)
        self._areas = _cumulated(mass * values[order])

    def __call__(self, level: Array) -> Array:
        return np.interp(level, self._levels, self._areas)


class _distance_to:  # noqa: N801 - a function with state
    """The part of a step's cost that is due to the distances of a group to all groups that stay where they are."""

    def __init__(self, unit: _Unit, others: Sequence[tuple[_Unit, Array]], label_weights: Array) -> None:
        self._points: Array | None = None
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

    def __call__(self, at: Array, *, axis: int) -> Array | float:
        if self._points is None:
            return 0.0
        index = np.clip(np.searchsorted(self._points, at, side="right") - 1, 0, self._points.size - 2)
        low = self._points[index]
        share = (np.clip(at, self._points[0], self._points[-1]) - low) / (self._points[index + 1] - low)
        outside = np.minimum(at - self._points[0], 0.0), np.maximum(at - self._points[-1], 0.0)
        slices = np.arange(self._areas.shape[0] - 1)
        slices = slices[:, None] if axis == 0 else slices[None, :]

        def area(number: NDArray[np.int64]) -> Array:
            start, end = self._areas[number, index], self._areas[number, index + 1]
            inside = start + share * (end - start)
            result: Array = inside + outside[0] * self._below[number] + outside[1] * self._above[number]
            return result

        return area(slices) - area(slices + 1)


def _shortest_path(down: Array, right: Array, both: Array) -> NDArray[np.int64]:
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


def equalized_odds_maps(
    counts_of: Callable[[Members], ScoreCounts],
    sources: MapSources,
    groups: Groups,
    *,
    target: Any,
    stratum_weight: str | None,
    randomize: bool,
    score_range: tuple[float, float] | None = (0.0, 1.0),
) -> FoundMaps:
    """Return the maps of groups for equalized odds."""
    unit = score_range == (0.0, 1.0)
    resolve = partial(_resolve, target, groups=groups, score_range=score_range)
    everyone = tuple(range(len(groups)))
    units = [members for members in dict.fromkeys(sources.maps) if members != everyone]
    pooled_counts = counts_of(everyone)
    counts = {members: counts_of(members) for members in units}
    if len(units) < 2:  # nothing to compare: all scores of the rows are mapped as they would be for parity
        resolved = resolve(counts or {everyone: pooled_counts})
        units, counts = [everyone], {everyone: pooled_counts}
        carry = map_with_ties(pooled_counts.sample(), resolved, probabilities=unit)
        found = {everyone: _with_rows(carry, pooled_counts)}
        if not randomize:
            return _found(found, sources, resolved, shared=everyone)
    if randomize:
        shared = [everyone] if everyone in sources.maps and everyone not in units else []
        used = {**counts, **dict.fromkeys(shared, pooled_counts)}
        return _randomized(used, sources, resolve(used))
    weights = _label_weights(pooled_counts, stratum_weight)
    parity = resolve(counts)
    repairs = [[map_with_ties(one.sample(), parity, probabilities=unit) for one in counts.values()]]
    if weights.size == 2:
        opportunity = resolve(counts, label=1)
        repairs += [[map_with_ties(one.sample(1), opportunity, probabilities=unit) for one in counts.values()]]
    start = best_partial_repair(list(counts.values()), repairs, weights)
    low, high = score_range or (pooled_counts.values[0], pooled_counts.values[-1])
    images = equalizing_images(list(counts.values()), start, weights, width=float(high - low))
    maps = [QuantileMap(*pair).prepare() for pair in images]
    repaired = pooled(
        [
            Sample.from_sorted(carry(one.values), one.masses.sum(axis=0))
            for carry, one in zip(maps, counts.values(), strict=True)
        ],
        [one.mass for one in counts.values()],
    )
    found = {members: _with_rows(carry, one) for carry, (members, one) in zip(maps, counts.items(), strict=True)}
    if everyone in sources.maps:
        carry = map_with_ties(pooled_counts.sample(), repaired, probabilities=unit)
        found[everyone] = _with_rows(carry, pooled_counts)
    return _found(found, sources, repaired)


def _found(
    found: dict[Members, tuple[QuantileMap, NDArray[np.int64]]],
    sources: MapSources,
    target: Sample,
    shared: Members | None = None,
) -> FoundMaps:
    maps, rows = zip(*(found[shared or members] for members in sources.maps), strict=True)
    return FoundMaps(maps, rows, sources.own_map if shared is None else np.zeros_like(sources.own_map), target)


def _with_rows(carry: QuantileMap, counts: ScoreCounts) -> tuple[QuantileMap, NDArray[np.int64]]:
    """Return a map and the rows nearest to each of its knots."""
    nearest = np.searchsorted((carry.knots[1:] + carry.knots[:-1]) / 2, counts.values)
    return carry, np.bincount(nearest, counts.rows, carry.knots.size).astype(np.int64)


def _label_weights(counts: ScoreCounts, stratum_weight: str | None) -> NDArray[np.float64]:
    masses = counts.masses.sum(axis=1)
    return masses / masses.sum() if stratum_weight == "share" else np.full(masses.size, 1.0 / masses.size)


def _resolve(
    target: Any,
    counts: dict[Members, ScoreCounts],
    *,
    groups: Groups,
    score_range: tuple[float, float] | None,
    label: int | None = None,
) -> Sample:
    single = {members: one for members, one in counts.items() if len(members) == 1} or counts
    named = not isinstance(target, str) or target not in ("barycenter", "barycenter_w2", "pooled")
    used = single if named else counts
    samples = [one.sample(label) for one in used.values()]
    masses = [one.mass if label is None else float(one.masses[label].sum()) for one in used.values()]
    return resolve_target(
        target,
        samples,
        masses,
        labels=[groups.labels[members[0]] for members in used],
        names=[groups.names[members[0]] for members in used],
        score_range=score_range,
    )


def _randomized(counts: dict[Members, ScoreCounts], sources: MapSources, target: Sample) -> FoundMaps:
    members = list(counts)
    index = [members.index(one) if one in counts else 0 for one in sources.maps]
    randomized = RandomizedMaps.fit(list(counts.values()), target.equal_mass(TARGET_SIZE), index)
    pairs = [_with_rows(randomized.expected_map(number), one) for number, one in enumerate(counts.values())]
    maps, rows = zip(*(pairs[number] for number in index), strict=True)
    return FoundMaps(maps, rows, sources.own_map, target, randomized)


@dataclass(frozen=True)
class MapOptions:
    """Options of the maps; see the parameters of the same names of `QuantileRepair`."""

    target: Any = "barycenter_w2"
    small: str = "keep"
    min_size: int = 30
    criterion: str = "demographic_parity"
    stratum_weight: str | None = None
    randomize: bool = False
    score_range: tuple[float, float] | None = (0.0, 1.0)  # None where it is learned
    n_labels: int = 2  # more for ranges of y
    own_maps: bool = False  # of groups of any size, as cells of strata have

    def check(self) -> None:
        """Raise for options that are not allowed; the target is checked with the groups."""
        check_choice(self.criterion, CRITERIA, name="criterion")
        if self.stratum_weight is not None:
            check_choice(self.stratum_weight, STRATUM_WEIGHTS, name="stratum_weight")
        if not isinstance(self.randomize, (bool, np.bool_)):
            raise TypeError(f"randomize must be True or False; got a {type(self.randomize).__name__}.")
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
    rows_at_knots: tuple[NDArray[np.int64], ...]
    own_map: NDArray[np.bool_]
    target: NDArray[np.float64]
    groups: Groups
    group_sizes: NDArray[np.int64]
    randomized: RandomizedMaps | None = None

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[np.float64],
        groups: Groups,
        weights: NDArray[np.float64] | None,
        options: MapOptions,
        labels: NDArray[np.int64] | None = None,
    ) -> GroupMaps:
        """Return the maps of rows, which have positive weights."""
        n_kept, groups = len(groups), with_dropped_labels(groups)

        def sizes_of(members: Groups) -> NDArray[np.int64]:
            return np.where(np.arange(len(groups)) < n_kept, members.counts, 0)

        sizes = sizes_of(groups)
        if options.criterion == "demographic_parity":
            found = maps_to_target(
                GroupSamples.of_rows(scores, groups, weights),
                options.sources(sizes),
                options.target,
                groups,
                score_range=options.score_range,
            )
            return cls._of(found, groups, sizes)
        if labels is None:
            raise ValueError(f"criterion={options.criterion!r} compares people with the same label: it needs labels.")
        positive = labels == 1
        n_positive = sizes_of(groups.select(positive))
        if options.criterion == "equal_opportunity":
            kept = GroupSamples.of_rows(
                scores[positive], groups.select(positive), None if weights is None else weights[positive]
            )
            found = maps_to_target(
                kept, options.sources(n_positive), options.target, groups, score_range=options.score_range
            )
            return cls._of(_extended(found, options.score_range), groups, sizes)

        def counts_of(members: tuple[int, ...]) -> ScoreCounts:
            rows = np.flatnonzero(np.isin(groups.codes, members))
            return ScoreCounts.from_rows(
                scores[rows],
                labels[rows],
                None if weights is None else weights[rows],
                n_labels=options.n_labels,
                probabilities=options.score_range == (0.0, 1.0),
            )

        rarer = np.minimum(n_positive, sizes - n_positive) if options.n_labels == 2 else sizes
        return cls._equalized(counts_of, rarer, sizes, groups, options=options)

    @classmethod
    def from_histograms(cls, histograms: GroupHistograms, options: MapOptions) -> GroupMaps:
        """Return the maps of counted rows."""
        sizes, groups = histograms.rows, histograms.groups
        options = options.on(histograms.grid)
        if options.criterion == "demographic_parity":
            found = maps_to_target(
                GroupSamples.of_histograms(histograms),
                options.sources(sizes),
                options.target,
                groups,
                score_range=options.score_range,
            )
            return cls._of(found, groups, sizes)
        if options.criterion == "equal_opportunity":
            kept = positives_of(histograms)
            found = maps_to_target(
                GroupSamples.of_histograms(kept),
                options.sources(kept.rows),
                options.target,
                groups,
                score_range=options.score_range,
            )
            return cls._of(_extended(found, options.score_range), groups, sizes)
        if not histograms.has_labels:
            raise ValueError(f"criterion={options.criterion!r} compares people with the same label: it needs labels.")
        by_label = np.min([rows_with_label(histograms, label) for label in (0, 1)], axis=0)
        return cls._equalized(
            lambda members: ScoreCounts.from_histograms(histograms, members),
            by_label,
            sizes,
            groups,
            options=options,
        )

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
        carry = map_with_ties(everyone, target, probabilities=options.score_range == (0.0, 1.0))
        if options.criterion == "equal_opportunity" and options.score_range is not None:
            carry = extend_map(carry, np.ones(carry.knots.size, dtype=np.int64), *options.score_range)[0]
        return carry.prepare()

    @classmethod
    def _equalized(
        cls,
        counts_of: Callable[[tuple[int, ...]], ScoreCounts],
        rarer: NDArray[np.int64],
        sizes: NDArray[np.int64],
        groups: Groups,
        *,
        options: MapOptions,
    ) -> GroupMaps:
        """Return the maps for equalized odds; ``rarer`` are the rows of each group that decide whether it is small."""
        found = equalized_odds_maps(
            counts_of,
            options.sources(rarer),
            groups,
            target=options.target,
            stratum_weight=options.stratum_weight,
            randomize=options.randomize,
            score_range=options.score_range,
        )
        return cls._of(found if options.randomize else _extended(found, options.score_range), groups, sizes)

    @classmethod
    def _of(cls, found: FoundMaps, groups: Groups, sizes: NDArray[np.int64]) -> GroupMaps:
        return cls(
            found.maps,
            found.rows_at_knots,
            found.own_map,
            found.target.equal_mass(TARGET_SIZE),
            Groups.from_spec(groups.to_spec()),
            sizes,
            found.randomized,
        )


def _extended(found: FoundMaps, score_range: tuple[float, float] | None) -> FoundMaps:
    """Return the maps up to the ends of a range; without one, scores beyond the last knots are extrapolated."""
    return found if score_range is None else found.extended(*score_range)


def rows_with_label(histograms: GroupHistograms, label: int) -> NDArray[np.int64]:
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
    scores: NDArray[np.float64],
    codes: NDArray[Any],
    maps: Sequence[QuantileMap],
    amount: float,
    *,
    extrapolate: bool,
    n_threads: int = 1,
) -> NDArray[np.float64]:
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

LEARNED = "learned"
UNIT = (0.0, 1.0)


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


def check_in_range(scores: ArrayLike, score_range: Any) -> NDArray[np.float64]:
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
