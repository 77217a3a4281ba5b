"""Histograms on as many nodes as a page needs, and the scores that repair would give them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.histograms import Grid
from fairtransport.repair.group_maps import GroupMaps, MapOptions
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms

__all__ = ["MAX_BINS", "NodeMasses", "ReducedHistograms", "choose_bins", "reduce_histograms"]

MAX_BINS = 1 << 14
_MAX_NUMBERS = 1 << 17  # groups times labels times bins: a few megabytes at most
_MIN_BINS = 64
_IMAGE_DIGITS = 7


@dataclass(frozen=True, eq=False)
class NodeMasses:
    """Nodes at which a group has rows.

    Parameters
    ----------
    indices : array of int of shape (n,)
        Indices of the nodes, ascending.
    masses : array of shape (n_classes, n)
        Weight at each node, by label.
    images : array of shape (n,), or None
        Scores of the nodes after full repair, on [0, 1]; None if the groups cannot be repaired.
    """

    indices: NDArray[np.int64]
    masses: NDArray[np.float64]
    images: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class ReducedHistograms:
    """Histograms of an audit, reduced to the bins of a page.

    Parameters
    ----------
    n_bins, full_bins : int
        Number of bins of the page and of the full histograms. Node k of the page is node ``k * full_bins // n_bins``
        of the full histograms, so that distribution functions stay exact at the remaining nodes.
    groups : tuple of NodeMasses
        One for each group.
    everyone : NodeMasses
        All rows, without images; a row in several groups counts once.
    """

    n_bins: int
    full_bins: int
    groups: tuple[NodeMasses, ...]
    everyone: NodeMasses

    @property
    def nodes(self) -> NDArray[np.float64]:
        """Positions of the nodes on [0, 1]."""
        return _node_indices(self.full_bins, self.n_bins) / self.full_bins

    @property
    def has_labels(self) -> bool:
        """Whether the masses are separated by label."""
        return self.everyone.masses.shape[0] == 2

    @property
    def can_repair(self) -> bool:
        """Whether the scores after repair are known."""
        return self.groups[0].images is not None


def reduce_histograms(
    histograms: GroupHistograms, *, repair_target: Any = "barycenter_w2", min_group_size: int = MIN_GROUP_SIZE
) -> ReducedHistograms:
    """Merge neighbouring bins until the page is small, and compute the scores of the nodes after repair.

    Parameters
    ----------
    histograms : GroupHistograms
        Histogram of the scores of each group; no group is empty.
    repair_target : str, label, array or None, default="barycenter_w2"
        Target as in `fairtransport.QuantileRepair`, with scores in units of the grid; None for no repair.
    min_group_size : int, default=30
        As in `fairtransport.QuantileRepair`: groups with fewer rows have no map of their own.

    Returns
    -------
    ReducedHistograms
        Without images if groups overlap, all scores are equal, or ``repair_target`` is None.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> histograms = count_scores([0.25, 0.5, 0.5, 1.0], sensitive_features=["a", "a", "b", "b"], n_bins=4)
    >>> group = reduce_histograms(histograms, min_group_size=1).groups[0]
    >>> group.indices.tolist(), group.masses.tolist(), group.images.tolist()
    ([1, 2], [[1.0, 1.0]], [0.375, 0.75])
    """
    by_class = histograms.by_class
    n_classes, n_groups, _ = by_class.shape
    full_bins = histograms.grid.n_bins
    n_bins = choose_bins(full_bins, n_classes * n_groups)
    starts = np.append(0, _node_indices(full_bins, n_bins)[:-1] + 1)  # node k holds the scores above node k - 1
    merged = np.add.reduceat(by_class, starts, axis=2)
    everyone = np.add.reduceat(histograms.masses.sum(axis=1), starts, axis=1)
    occupied = [np.flatnonzero(masses.sum(axis=0)) for masses in merged.swapaxes(0, 1)]
    images = None
    if repair_target is not None and not histograms.groups.overlapping:
        options = MapOptions(_resolve_target(repair_target, histograms), min_group_size=min_group_size)
        images = _repaired_scores(histograms, starts, occupied, options)
    groups = tuple(
        NodeMasses(indices, merged[:, group, indices], None if images is None else images[group])
        for group, indices in enumerate(occupied)
    )
    indices = np.flatnonzero(everyone.sum(axis=0))
    return ReducedHistograms(n_bins, full_bins, groups, NodeMasses(indices, everyone[:, indices]))


def choose_bins(full_bins: int, n_curves: int) -> int:
    """Return the number of bins of a page: a divisor of ``full_bins`` if that costs less than half of them.

    Examples
    --------
    >>> choose_bins(16384, 8), choose_bins(16384, 120), choose_bins(16381, 120)
    (16384, 1024, 1092)
    """
    most = min(full_bins, MAX_BINS, max(_MIN_BINS, _MAX_NUMBERS // n_curves))
    divisors = (number for number in range(most, most // 2, -1) if full_bins % number == 0)
    return next(divisors, most)


def _node_indices(full_bins: int, n_bins: int) -> NDArray[np.int64]:
    """Return the nodes of the full histograms that remain."""
    return np.arange(n_bins + 1, dtype=np.int64) * full_bins // n_bins


def _resolve_target(target: Any, histograms: GroupHistograms) -> Any:
    """Return the target with a group as its label, and scores on [0, 1]."""
    if isinstance(target, str) and target in TARGET_WORDS:
        return target
    if isinstance(target, tuple) or np.ndim(target) == 0:
        return histograms.groups.labels[histograms.groups.index_of(target)]
    return histograms.unit_target(np.asarray(target, dtype=np.float64))


def _repaired_scores(
    histograms: GroupHistograms, starts: NDArray[np.int64], occupied: list[NDArray[np.int64]], options: MapOptions
) -> list[NDArray[np.float64]] | None:
    """Fit the maps to all bins; return the mean repaired score of the rows at each node of the page."""
    if np.count_nonzero(histograms.everyone) < 2:
        return None
    unit = replace(histograms, grid=Grid(n_bins=histograms.grid.n_bins))
    maps = GroupMaps.from_histograms(unit, options).maps
    images = []
    for transport_map, masses, indices in zip(maps, histograms.by_group, occupied, strict=True):
        total = np.add.reduceat(masses * transport_map(unit.grid.nodes), starts)[indices]
        images.append((total / np.add.reduceat(masses, starts)[indices]).clip(0.0, 1.0).round(_IMAGE_DIGITS))
    return images
