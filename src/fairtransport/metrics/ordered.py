"""Scores of several groups, sorted once; all distances between the groups come from that one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_scores, check_weights
from fairtransport.groups import make_groups
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["OrderedScores", "order_scores"]

_CELLS = 1 << 17  # groups times distinct scores at a time: their distribution functions stay in the cache


@dataclass(frozen=True, eq=False, repr=False)
class OrderedScores:
    """The groups' scores along one common order.

    Parameters
    ----------
    groups : Groups
    points : array
        The distinct scores, ascending.
    places : tuple of arrays
        For each group, and last for everyone, the place of each row's score among ``points``, ascending.
    masses : tuple of arrays, or None
        The rows' weights, in the order of ``places``; None where all weigh the same.
    """

    groups: Groups
    points: NDArray[np.float64]
    places: tuple[NDArray[np.int64], ...]
    masses: tuple[NDArray[np.float64], ...] | None

    def __repr__(self) -> str:
        return f"OrderedScores({self.places[-1].size} rows in {len(self.groups)} groups)"

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Each group's number of rows, or their total weight."""
        return self._totals()[:-1]

    def samples(self) -> list[Sample]:
        """Return the distribution of each group's scores."""
        return [self._sample(place) for place in range(len(self.places) - 1)]

    def everyone(self) -> Sample:
        """Return the distribution of all rows, each counted once even where groups overlap."""
        return self._sample(-1)

    def distances(self) -> NDArray[np.float64]:
        r"""Return W1 between any two of the groups and, in the last row and column, everyone.

        Notes
        -----
        The distance is the area between two distribution functions, which are constant between neighbouring
        points v:

        .. math:: W_1(S_a, S_b) = \sum_i |F_a(v_i) - F_b(v_i)| \, (v_{i+1} - v_i).
        """
        gaps = np.diff(self.points)
        totals = self._totals()
        reached = np.zeros(len(self.places))
        areas = np.zeros((len(self.places), len(self.places)))
        step = max(1, _CELLS // len(self.places))
        for start in range(0, gaps.size, step):
            stop = min(start + step, gaps.size)
            mass = self._running_mass(start, stop, reached)
            reached = mass[:, -1].copy()
            cdf = np.divide(mass, totals[:, None], out=mass)
            for one in range(len(cdf) - 1):
                areas[one, one + 1 :] += np.abs(cdf[one + 1 :] - cdf[one]) @ gaps[start:stop]
        return areas + areas.T

    def _running_mass(self, start: int, stop: int, reached: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each group's mass at or below the points from start to stop, given the mass below them."""
        mass = np.empty((len(self.places), stop - start))
        for group, places in enumerate(self.places):
            low, high = np.searchsorted(places, (start, stop))
            weights = None if self.masses is None else self.masses[group][low:high]
            jumps = np.bincount(places[low:high] - start, weights=weights, minlength=stop - start)
            np.cumsum(jumps, out=mass[group])
        mass += reached[:, None]
        return mass

    def _totals(self) -> NDArray[np.float64]:
        if self.masses is None:
            return np.array([places.size for places in self.places], dtype=np.float64)
        return np.array([masses.sum() for masses in self.masses])

    def _sample(self, group: int) -> Sample:
        weights = None if self.masses is None else self.masses[group]
        return Sample.from_sorted(self.points[self.places[group]], weights)


def order_scores(
    scores: ArrayLike,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    *,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> OrderedScores:
    """Check scores, groups and weights, and sort the scores once for all groups.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups.
    sample_weight : array-like of shape (n,), optional
        Weights; equal when omitted.
    grouping, missing, min_size
        As `fairtransport.make_groups` has them.

    Returns
    -------
    OrderedScores

    Examples
    --------
    >>> ordered = order_scores([0.75, 0.25, 0.25], ["a", "b", "a"])
    >>> ordered.points
    array([0.25, 0.75])
    >>> float(ordered.distances()[0, 1])  # half of group a lies 0.5 above group b
    0.25
    """
    values = check_scores(scores)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    if values.size != groups.n_rows:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {groups.n_rows}.")
    weights = check_weights(sample_weight, size=values.size)

    order = np.argsort(values, kind="stable")
    ascending = values[order]
    is_new = np.append(True, ascending[1:] != ascending[:-1])
    place = np.cumsum(is_new) - 1
    picks = [*(_positions(rows, order) for rows in groups.rows), np.arange(order.size)]
    masses = None
    if weights is not None:
        masses = tuple(weights[order[pick]] for pick in picks)
        without = sum(not mass.sum() > 0 for mass in masses)
        if without:
            raise ValueError(f"sample_weight is zero in all rows of {without} of {len(groups)} groups.")
    return OrderedScores(groups, ascending[is_new], tuple(place[pick] for pick in picks), masses)


def _positions(rows: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the rows of a group stand in the common order, ascending: no second sort."""
    member = np.zeros(order.size, dtype=bool)
    member[rows] = True
    return np.flatnonzero(member[order])
