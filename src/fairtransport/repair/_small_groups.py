"""The rows that each map and the target are computed from, where some groups are small."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_choice, check_count
from fairtransport.groups import SMALL_GROUP_POLICIES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["MapSources", "check_small_groups"]


@dataclass(frozen=True, eq=False)
class MapSources:
    """The groups whose rows each map and the target are computed from.

    Parameters
    ----------
    maps : tuple of tuples of int
        For each group, the indices of the groups whose rows its map is computed from.
    target : tuple of tuples of int
        The samples of which the target is a barycenter; each consists of the rows of some groups.
    own_map : array of bool of shape (n_groups,)
        Whether the map of a group is computed from the rows of that group alone.
    """

    maps: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]
    own_map: NDArray[np.bool_]

    @classmethod
    def choose(cls, sizes: ArrayLike, small_groups: str, min_group_size: int, *, by_size: bool) -> MapSources:
        """Choose the sources under a policy for small groups.

        Parameters
        ----------
        sizes : array-like of shape (n_groups,)
            Rows of each group.
        small_groups : {"keep", "pool", "drop"}
        min_group_size : int
            A group with fewer rows is small.
        by_size : bool
            Whether the target weighs groups by size, so that small ones cannot distort it.

        Returns
        -------
        MapSources

        Examples
        --------
        >>> MapSources.choose([90, 50, 20, 15], "keep", 30, by_size=False).maps
        ((0,), (1,), (2, 3), (2, 3))
        >>> MapSources.choose([90, 50, 20, 5], "keep", 30, by_size=False).maps  # too few rows even together
        ((0,), (1,), (0, 1, 2, 3), (0, 1, 2, 3))
        """
        counts = np.asarray(sizes)
        own = counts >= min_group_size
        large, small = (tuple(np.flatnonzero(which).tolist()) for which in (own, ~own))
        everyone = tuple(range(counts.size))
        enough = counts[list(small)].sum() >= min_group_size
        shared = small if enough and small_groups != "drop" else everyone
        maps = tuple((group,) if own[group] else shared for group in everyone)
        filled = tuple(np.flatnonzero(counts > 0).tolist())
        compared = filled if (small_groups == "keep" and by_size) or not large else large
        target: tuple[tuple[int, ...], ...] = tuple((group,) for group in compared)
        if small_groups == "pool" and small:
            target = (*((group,) for group in large), small)
        return cls(maps, target, own)

    def with_own_maps(self, sizes: ArrayLike) -> MapSources:
        """Return the sources where every group with rows has a map of its own; the target stays.

        Examples
        --------
        >>> MapSources.choose([90, 5, 0], "keep", 30, by_size=False).with_own_maps([90, 5, 0]).maps
        ((0,), (1,), (0, 1, 2))
        """
        own = np.asarray(sizes) > 0
        everyone = tuple(range(own.size))
        return replace(self, maps=tuple((group,) if own[group] else everyone for group in everyone), own_map=own)


def check_small_groups(small_groups: str, min_group_size: int) -> None:
    """Raise for an unknown policy for small groups, or a minimal size that is no positive integer."""
    check_choice(small_groups, SMALL_GROUP_POLICIES, name="small_groups")
    check_count(min_group_size, name="min_group_size")
