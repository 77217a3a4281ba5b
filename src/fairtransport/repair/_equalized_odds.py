r"""Increasing maps of the groups' scores that bring the distributions given each label closest to each other.

Equalized odds are two conditions or more, one for each label, on one increasing map for each group, so they can rarely
be met. (The labels of a regression are ranges of y.)
What can be chosen is how the rankings of the groups are merged into one: which score of one group counts as much as
which score of another. A merge of two rankings is a monotone path on a grid, and the sum of Wasserstein-1 distances is
a sum over the edges of the path, so that the best merge is a shortest path.

The distribution of all repaired scores together stays as it is at the start. Without that condition, a constant would
be the best map of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from fairtransport.transport.line import QuantileMap, wasserstein

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.repair._score_counts import ScoreCounts

    Array = NDArray[np.float64]

__all__ = ["best_partial_repair", "equalizing_images", "separation"]

_MAX_SWEEPS = 3
_MANY_UNITS = 8  # beyond which each is merged with its neighbours only
_MAX_POINTS = 256  # at which the distances to other groups are integrated
_TIE_BREAK = 1e-3  # weight of the mean squared change against the distance


def separation(counts: Sequence[ScoreCounts], images: Sequence[Array], label_weights: Array) -> float:
    """Return the weighted sum over labels of the Wasserstein-1 distances between pairs of groups.

    Parameters
    ----------
    counts : sequence of ScoreCounts
    images : sequence of ndarray
        The repaired score of each distinct score of each group, non-decreasing.
    label_weights : ndarray of shape (n_labels,)

    Returns
    -------
    float
    """
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

    Parameters
    ----------
    counts : sequence of ScoreCounts
    repairs : sequence of sequences of QuantileMap
        The full repairs to choose from; each has a map for each group.
    label_weights : ndarray of shape (n_labels,)

    Returns
    -------
    list of ndarray

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
    """Return the increasing maps with the smallest separation that keep the distribution of all scores together.

    Parameters
    ----------
    counts : sequence of ScoreCounts
        Of at least two groups. Labels without rows in a group are not compared there.
    start : sequence of ndarray
        The repaired scores to begin with; their distribution over all groups together is kept.
    label_weights : ndarray of shape (n_labels,)
    width : float, default 1
        Of the range of the scores: mean squared changes are compared with distances relative to it.

    Returns
    -------
    list of (knots, images)
        For each group; between knots the map is linear. For two groups with few distinct scores the separation is the
        smallest that there is; otherwise scores are moved in slices. It is never larger than at the start.
    """
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
    """Return the points of the cheapest path through a grid of (n + 1) x (m + 1) points.

    Parameters
    ----------
    down : ndarray of shape (n, m + 1)
        Cost of a step from (i, j) to (i + 1, j).
    right : ndarray of shape (n + 1, m)
        Cost of a step from (i, j) to (i, j + 1).
    both : ndarray of shape (n, m)
        Cost of a step from (i, j) to (i + 1, j + 1).

    Returns
    -------
    ndarray of int of shape (n_points, 2)
    """
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
