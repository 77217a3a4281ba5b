"""The quantile map of each group and the target distribution, computed from rows or from histograms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.streaming import NEW_GROUP_ROWS
from fairtransport.groups import Groups
from fairtransport.repair._small_groups import MapSources, check_small_groups
from fairtransport.repair.group_checks import with_dropped_labels
from fairtransport.transport.line import QuantileMap, Sample, quantile_map
from fairtransport.transport.targets import TARGET_SIZE, TARGET_WORDS, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.histograms import Grid, GroupHistograms

__all__ = ["GroupMaps", "MapOptions"]


@dataclass(frozen=True)
class MapOptions:
    """Options of the maps; see the parameters of the same names of `QuantileRepair`."""

    target: Any = "barycenter_w2"
    small_groups: str = "keep"
    min_group_size: int = 30

    def check(self) -> None:
        """Raise for a treatment of small groups that is not allowed; the target is checked with the groups."""
        check_small_groups(self.small_groups, self.min_group_size)


@dataclass(frozen=True, eq=False)
class GroupMaps:
    """The full repair of each group.

    Parameters
    ----------
    maps : tuple of QuantileMap
        From the distribution of each group to the target.
    rows_at_knots : tuple of ndarray of int
        Training rows that share each knot of each map.
    own_map : ndarray of bool of shape (n_groups,)
        Whether the map of a group was computed from the rows of that group alone.
    target : ndarray of shape (4096,)
        Scores of equal mass that represent the target; the maps are computed from the exact target.
    groups : Groups
        Without rows.
    group_sizes : ndarray of int of shape (n_groups,)
        Training rows of each group.

    Examples
    --------
    >>> from fairtransport.groups import make_groups
    >>> groups = make_groups({"sex": ["F", "F", "M", "M"]})
    >>> maps = GroupMaps.from_scores(np.array([0.1, 0.3, 0.5, 0.7]), groups, None, MapOptions(min_group_size=1))
    >>> maps.maps[0].images
    array([0.3, 0.5])
    """

    maps: tuple[QuantileMap, ...]
    rows_at_knots: tuple[NDArray[np.int64], ...]
    own_map: NDArray[np.bool_]
    target: NDArray[np.float64]
    groups: Groups
    group_sizes: NDArray[np.int64]

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[np.float64],
        groups: Groups,
        weights: NDArray[np.float64] | None,
        options: MapOptions,
    ) -> GroupMaps:
        """Return the maps of rows, which have positive weights.

        Parameters
        ----------
        scores : ndarray of shape (n,)
        groups : Groups
            Of the same rows; labels that `Groups.settle` dropped get the common map.
        weights : ndarray of shape (n,) or None
        options : MapOptions

        Returns
        -------
        GroupMaps
        """
        n_kept, groups = len(groups), with_dropped_labels(groups)

        def sample_of(members: tuple[int, ...]) -> Sample:
            rows: Any = slice(None) if len(members) == len(groups) else groups.rows[members[0]]
            if 1 < len(members) < len(groups):
                rows = np.concatenate([groups.rows[group] for group in members])
            return Sample.from_values(scores[rows], None if weights is None else weights[rows])

        masses = [rows.size if weights is None else weights[rows].sum() for rows in groups.rows]
        sizes = np.where(np.arange(len(groups)) < n_kept, groups.counts, 0)
        samples = _Samples(sample_of, lambda _, sample: _count_ties(sample.values), np.asarray(masses, np.float64))
        return cls._fit(samples, sizes, groups, options)

    @classmethod
    def from_histograms(cls, histograms: GroupHistograms, options: MapOptions) -> GroupMaps:
        """Return the maps of counted rows.

        Parameters
        ----------
        histograms : GroupHistograms
            Each group has a positive weight.
        options : MapOptions

        Returns
        -------
        GroupMaps
            The knots are nodes of the grid.
        """
        samples = _Samples(
            histograms.pooled_sample,
            lambda members, sample: _count_at_knots(histograms, members, sample.values),
            np.asarray(histograms.weights, dtype=np.float64),
        )
        return cls._fit(samples, histograms.rows, histograms.groups, options)

    def with_identity_maps(self, groups: Groups, grid: Grid) -> GroupMaps:
        """Return the maps with those of new groups, whose scores are not changed.

        Parameters
        ----------
        groups : Groups
            The groups of these maps in their order, followed by the new ones.
        grid : Grid
            Range of the scores.

        Returns
        -------
        GroupMaps
        """
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

    @classmethod
    def _fit(cls, samples: _Samples, sizes: NDArray[np.int64], groups: Groups, options: MapOptions) -> GroupMaps:
        weigh_by_size = isinstance(options.target, str) and options.target == "barycenter_w2"
        sources = MapSources.choose(sizes, options.small_groups, options.min_group_size, by_size=weigh_by_size)
        known = {members: samples.sample_of(members) for members in {*sources.maps, *sources.target}}
        target = _find_target(options.target, samples, known, sources.target, groups)
        maps = {members: _map_with_ties(known[members], target).prepare() for members in {*sources.maps}}
        rows = {members: samples.rows_at_knots(members, known[members]) for members in maps}
        return cls(
            tuple(maps[members] for members in sources.maps),
            tuple(rows[members] for members in sources.maps),
            sources.own_map,
            target.equal_mass(TARGET_SIZE),
            Groups.from_spec(groups.to_spec()),
            sizes,
        )


@dataclass(frozen=True, eq=False)
class _Samples:
    """The distributions of groups, however their rows are stored.

    ``sample_of`` returns the distribution of the rows of some groups together, ``rows_at_knots`` how many of these
    rows share each knot; ``masses`` weigh the groups.
    """

    sample_of: Callable[[tuple[int, ...]], Sample]
    rows_at_knots: Callable[[tuple[int, ...], Sample], NDArray[np.int64]]
    masses: NDArray[np.float64]


def _find_target(
    target: Any,
    samples: _Samples,
    known: dict[tuple[int, ...], Sample],
    compared: tuple[tuple[int, ...], ...],
    groups: Groups,
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


def _map_with_ties(source: Sample, target: Sample) -> QuantileMap:
    """Map the source to the target, where scores that differ only by rounding share one image.

    Equal rows can get scores that differ in the last bits: libraries add in another order in a batch of another
    size, or on another thread. Taken as different, two such scores would split the mass of a tie between them,
    and their images could lie far apart. The tolerance follows the rounding error of a logistic function.
    """
    values = source.values
    tolerance = 1e-12 * values * (1.0 - values) + 16 * np.finfo(np.float64).eps * values
    starts = np.append(True, np.diff(values) > tolerance[1:])
    tie = np.cumsum(starts) - 1
    merged = quantile_map(Sample(values[starts][tie], source.levels), target)
    distinct = np.append(True, values[1:] != values[:-1])
    return QuantileMap(values[distinct], merged.images[tie[distinct]])
