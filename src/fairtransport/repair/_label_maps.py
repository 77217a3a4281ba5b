"""Maps for equalized odds: which groups have maps of their own, and how these are computed from counts by label."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.repair._equalized_odds import best_partial_repair, equalizing_images
from fairtransport.repair._target_maps import FoundMaps, map_with_ties
from fairtransport.repair.randomized_maps import RandomizedMaps
from fairtransport.transport.line import QuantileMap, Sample
from fairtransport.transport.targets import TARGET_SIZE, pooled, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.repair._score_counts import ScoreCounts
    from fairtransport.repair._small_groups import MapSources

    Members = tuple[int, ...]

__all__ = ["equalized_odds_maps"]


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
    """Return the maps of groups for equalized odds.

    Parameters
    ----------
    counts_of : callable
        Returns the counts of some groups together.
    sources : MapSources
        Which groups each map is computed from.
    groups : Groups
    target : str, label, array-like or Sample
        The distribution that partial repairs, from which the maps begin, lead to; of randomised scores, their
        distribution.
    stratum_weight : {"equal", "share"} or None
        Weight of the labels.
    randomize : bool
    score_range : pair of float or None, default (0, 1)
        Lowest and highest possible score; None for any scores.

    Returns
    -------
    FoundMaps
        Randomised, the maps are those of the expected scores.
    """
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
