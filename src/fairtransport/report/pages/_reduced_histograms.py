"""Histograms on as many nodes as a page needs, and where repair would carry each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.histograms import Grid
from fairtransport.repair import QuantileRepair
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms

__all__ = ["MOST_BINS", "Filled", "Reduced", "reduce_histograms"]

MOST_BINS = 1 << 14
_MOST_NUMBERS = 1 << 17  # groups times labels times bins: some megabytes at the very most
_FEWEST_BINS = 64
_IMAGE_DIGITS = 7


@dataclass(frozen=True, eq=False)
class Filled:
    """The nodes at which a group has rows.

    Parameters
    ----------
    at : array of int of shape (n,)
        Which nodes, ascending.
    masses : array of shape (n_classes, n)
        Weight there, by label.
    images : array of shape (n,), or None
        Where full repair carries them, on [0, 1]; None where groups cannot be repaired.
    """

    at: NDArray[np.int64]
    masses: NDArray[np.float64]
    images: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Reduced:
    """What a page holds of an audit's histograms.

    Parameters
    ----------
    n_bins, full_bins : int
        Of the page, and of the histograms. Node k of the page is node ``k * full_bins // n_bins`` there, so
        distribution functions are exact at the nodes that are left.
    groups : tuple of Filled
    everyone : Filled
        All rows; one that is in several groups counts once. Without images.
    """

    n_bins: int
    full_bins: int
    groups: tuple[Filled, ...]
    everyone: Filled

    @property
    def nodes(self) -> NDArray[np.float64]:
        """Where the nodes lie on [0, 1]."""
        return _places(self.full_bins, self.n_bins) / self.full_bins

    @property
    def has_labels(self) -> bool:
        """Whether rows of the two labels are apart."""
        return self.everyone.masses.shape[0] == 2

    @property
    def can_repair(self) -> bool:
        """Whether it is known where repair carries the scores."""
        return self.groups[0].images is not None


def reduce_histograms(
    histograms: GroupHistograms, *, repair_target: Any = "barycenter_w2", min_group_size: int = MIN_GROUP_SIZE
) -> Reduced:
    """Merge neighbouring bins until the page is small, and find where repair carries the nodes.

    Parameters
    ----------
    histograms : GroupHistograms
        With rows in each group.
    repair_target : str, label, array or None, default "barycenter_w2"
        As in `fairtransport.QuantileRepair`; scores in units of the grid. None for no repair.
    min_group_size : int, default 30
        As in `fairtransport.QuantileRepair`: a group of fewer rows gets no map of its own.

    Returns
    -------
    Reduced
        Without images where groups overlap, all scores are one, or no repair is wanted.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> counted = count_scores([0.25, 0.5, 0.5, 1.0], sensitive_features=["a", "a", "b", "b"], n_bins=4)
    >>> reduced = reduce_histograms(counted, min_group_size=1)
    >>> reduced.groups[0].at.tolist(), reduced.groups[0].masses.tolist(), reduced.groups[0].images.tolist()
    ([1, 2], [[1.0, 1.0]], [0.375, 0.75])
    """
    held = histograms.by_class
    n_classes, n_groups, _ = held.shape
    full = histograms.grid.n_bins
    n_bins = choose_bins(full, n_classes * n_groups)
    starts = np.append(0, _places(full, n_bins)[:-1] + 1)  # node k takes the scores above node k - 1
    merged = np.add.reduceat(held, starts, axis=2)
    everyone = np.add.reduceat(histograms.masses.sum(axis=1), starts, axis=1)
    filled = [np.flatnonzero(one.sum(axis=0)) for one in merged.swapaxes(0, 1)]
    images = None
    if repair_target is not None and not histograms.groups.overlapping:
        repair = QuantileRepair(_named(repair_target, histograms), min_group_size=min_group_size)
        images = _repair(histograms, starts, filled, repair)
    at_all = np.flatnonzero(everyone.sum(axis=0))
    return Reduced(
        n_bins,
        full,
        tuple(
            Filled(at, merged[:, place, at], None if images is None else images[place])
            for place, at in enumerate(filled)
        ),
        Filled(at_all, everyone[:, at_all]),
    )


def choose_bins(full: int, n_curves: int) -> int:
    """Return how many bins the page has: a divisor of ``full`` where that costs less than half of them.

    Examples
    --------
    >>> choose_bins(16384, 8), choose_bins(16384, 120), choose_bins(16381, 120)
    (16384, 1024, 1092)
    """
    most = min(full, MOST_BINS, max(_FEWEST_BINS, _MOST_NUMBERS // n_curves))
    divisors = (number for number in range(most, most // 2, -1) if full % number == 0)
    return next(divisors, most)


def _places(full: int, n_bins: int) -> NDArray[np.int64]:
    """Nodes that are left."""
    return np.arange(n_bins + 1, dtype=np.int64) * full // n_bins


def _named(target: Any, histograms: GroupHistograms) -> Any:
    """Return a group that is the target by its label, and scores on [0, 1]."""
    if isinstance(target, str) and target in TARGET_WORDS:
        return target
    if isinstance(target, tuple) or np.ndim(target) == 0:
        return histograms.groups.labels[histograms.groups.index_of(target)]
    return histograms.unit_target(np.asarray(target, dtype=np.float64))


def _repair(
    histograms: GroupHistograms, starts: NDArray[np.int64], filled: list[NDArray[np.int64]], repair: QuantileRepair
) -> list[NDArray[np.float64]] | None:
    """Fit the repair to all bins, and take the mean image of the rows in each of the page's bins."""
    if np.count_nonzero(histograms.everyone) < 2:
        return None
    unit = replace(histograms, grid=Grid(n_bins=histograms.grid.n_bins))
    maps = repair.follow_counts(unit).maps_
    images = []
    for carry, masses, at in zip(maps, histograms.by_group, filled, strict=True):
        moved = np.add.reduceat(masses * carry(unit.grid.nodes), starts)[at]
        images.append((moved / np.add.reduceat(masses, starts)[at]).clip(0.0, 1.0).round(_IMAGE_DIGITS))
    return images
