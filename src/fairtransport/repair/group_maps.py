"""The quantile map of each group and the target distribution, computed from rows or from histograms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.streaming import NEW_GROUP_ROWS
from fairtransport._validation import check_choice
from fairtransport.criteria import CRITERIA, STRATUM_WEIGHTS
from fairtransport.groups import Groups
from fairtransport.repair._label_maps import equalized_odds_maps
from fairtransport.repair._score_counts import ScoreCounts
from fairtransport.repair._small_groups import MapSources, check_small_groups
from fairtransport.repair._target_maps import GroupSamples, extend_map, map_with_ties, maps_to_target
from fairtransport.repair.group_checks import with_dropped_labels
from fairtransport.transport.line import QuantileMap, Sample
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.histograms import Grid, GroupHistograms
    from fairtransport.repair._target_maps import FoundMaps
    from fairtransport.repair.randomized_maps import RandomizedMaps

__all__ = ["GroupMaps", "MapOptions", "positives_of", "rows_with_label"]


@dataclass(frozen=True)
class MapOptions:
    """Options of the maps; see the parameters of the same names of `QuantileRepair`."""

    target: Any = "barycenter_w2"
    small_groups: str = "keep"
    min_group_size: int = 30
    criterion: str = "demographic_parity"
    stratum_weight: str | None = None
    randomize: bool = False
    score_range: tuple[float, float] | None = (0.0, 1.0)  # None where it is learned
    n_labels: int = 2  # more for ranges of y
    own_maps: bool = False  # of groups of any size, as cells of strata have

    def check(self) -> None:
        """Raise for options that are not allowed; the target is checked with the groups."""
        check_small_groups(self.small_groups, self.min_group_size)
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
        chosen = MapSources.choose(sizes, self.small_groups, self.min_group_size, by_size=weigh_by_size)
        return chosen.with_own_maps(sizes) if self.own_maps else chosen


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
    randomized : RandomizedMaps, optional
        The randomised repair; the maps are then those of the expected scores.

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
        """Return the maps of rows, which have positive weights.

        Parameters
        ----------
        scores : ndarray of shape (n,)
        groups : Groups
            Of the same rows; labels that `Groups.settle` dropped get the common map.
        weights : ndarray of shape (n,) or None
        options : MapOptions
        labels : ndarray of shape (n,), optional
            0 or 1, or the numbers of ranges of y; needed for criteria that compare rows with the same label.

        Returns
        -------
        GroupMaps
        """
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
        """Return the maps of counted rows.

        Parameters
        ----------
        histograms : GroupHistograms
            Each group has a positive weight. Criteria that compare rows with the same label need histograms with
            labels; for equal opportunity those of positive rows alone suffice.
        options : MapOptions

        Returns
        -------
        GroupMaps
            The knots are nodes of the grid.
        """
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

    def pooled_map(self, options: MapOptions) -> QuantileMap:
        """Return the map of all rows together to the target, for criteria with one target.

        Parameters
        ----------
        options : MapOptions
            Those of these maps.

        Returns
        -------
        QuantileMap
        """
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
