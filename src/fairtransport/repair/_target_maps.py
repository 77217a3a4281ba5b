"""Maps of groups to one target distribution, from samples of their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.repair._ties import tie_starts
from fairtransport.transport.line import QuantileMap, Sample, quantile_map
from fairtransport.transport.targets import TARGET_WORDS, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms
    from fairtransport.repair._small_groups import MapSources
    from fairtransport.repair.randomized_maps import RandomizedMaps

__all__ = ["FoundMaps", "GroupSamples", "extend_map", "map_with_ties", "maps_to_target"]


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
    """Return the map of each group to the target.

    Parameters
    ----------
    samples : GroupSamples
    sources : MapSources
        Which groups each map and the target are computed from.
    target : str, label, array-like or Sample
    groups : Groups
    score_range : pair of float or None, default (0, 1)
        Lowest and highest possible score; None for any scores.

    Returns
    -------
    FoundMaps
    """
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
