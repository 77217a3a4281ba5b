"""Slice means: a sample as the means of its m parts of equal mass, in order; all rows count.

The distance of two samples is a sum over pairs of slices, and its derivative with respect to a row is the one of the
slices that the row is part of. Each compiled function stands beside the plain one that says what it computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ascending_order",
    "histogram_slices",
    "histogram_slopes",
    "row_slopes",
    "row_slopes_plain",
    "slice_means",
    "slice_means_plain",
]

_MATH = {"reassoc", "contract", "nsz", "arcp"}
_RADIX_BITS, _INDEX_BITS, _FEW = 11, 30, 512
_RADIX, _INDEX_MASK = 1 << _RADIX_BITS, (1 << _INDEX_BITS) - 1


def slice_means_plain(values: NDArray[np.float64], mass: NDArray[np.float64], n_slices: int) -> NDArray[np.float64]:
    """Return the mean of each 1/n of an ascending sample, with parts of rows at the borders.

    Examples
    --------
    >>> slice_means_plain(np.array([0.0, 0.3, 0.6]), np.ones(3), 2).round(3).tolist()
    [0.1, 0.5]
    """
    cumulative = np.concatenate(([0.0], np.cumsum(mass)))
    area = np.concatenate(([0.0], np.cumsum(mass * values)))
    levels = np.linspace(0.0, cumulative[-1], n_slices + 1)
    return np.asarray(np.diff(np.interp(levels, cumulative, area)) * n_slices / cumulative[-1])


def row_slopes_plain(slopes: NDArray[np.float64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the slices' slopes over the levels that each row of an ascending sample holds.

    Times the row's share of the mass, it is the adjoint of `slice_means_plain`.
    """
    cumulative = np.concatenate(([0.0], np.cumsum(mass)))
    area = np.concatenate(([0.0], np.cumsum(slopes)))
    reached = np.interp(cumulative, np.linspace(0.0, cumulative[-1], len(slopes) + 1), area)
    return np.asarray(np.diff(reached) * cumulative[-1] / (len(slopes) * mass))


@njit(cache=True, nogil=True)
def _radix_order(values, low, scale):
    # Positions in ascending order of 33-bit keys: three passes, each stable, over 11 bits.
    n = values.shape[0]
    keys, other = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for i in range(n):
        keys[i] = (np.uint64((values[i] - low) * scale) << np.uint64(_INDEX_BITS)) | np.uint64(i)
    starts = np.empty(_RADIX, np.int64)
    for digit in range(3):
        shift = np.uint64(_INDEX_BITS + _RADIX_BITS * digit)
        starts[:] = 0
        for i in range(n):
            starts[(keys[i] >> shift) & np.uint64(_RADIX - 1)] += 1
        before = 0
        for bucket in range(_RADIX):
            size = starts[bucket]
            starts[bucket] = before
            before += size
        for i in range(n):
            bucket = (keys[i] >> shift) & np.uint64(_RADIX - 1)
            other[starts[bucket]] = keys[i]
            starts[bucket] += 1
        keys, other = other, keys
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = np.int64(keys[i] & np.uint64(_INDEX_MASK))
    return order


def ascending_order(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions of the values in ascending order, as `numpy.argsort` does, to within 2^-33 of their range.

    A radix sort: values are whole numbers of 33 bits, so the time is proportional to their number.

    Examples
    --------
    >>> ascending_order(np.array([0.3, 0.1, 0.2])).tolist()
    [1, 2, 0]
    """
    low, high = float(values.min()), float(values.max())
    # A range outside of these limits is no divisor.
    if values.size < _FEW or values.size >= 1 << _INDEX_BITS or not 1e-290 < high - low < np.inf:
        return np.argsort(values, kind="stable")
    return np.asarray(_radix_order(values, low, (2.0**33 - 1.0) / (high - low)))


@njit(cache=True, nogil=True, fastmath=_MATH)
def slice_means(scores, order, weights, means):
    """Write the slice means of ``scores[order]``, which ascend, into ``means``; empty ``weights``: equal masses."""
    n, m = order.shape[0], means.shape[0]
    total = 0.0
    if weights.shape[0] == 0:
        total = float(n)
    else:
        for i in range(n):
            total += weights[order[i]]
    size = total / m
    slot, room, area = 0, size, 0.0
    for i in range(n):
        value = scores[order[i]]
        left = 1.0 if weights.shape[0] == 0 else weights[order[i]]
        while left > room and slot < m - 1:
            means[slot] = (area + room * value) / size
            left -= room
            slot, room, area = slot + 1, size, 0.0
        area += left * value
        room -= left
    # What rounding leaves open is filled with the largest score.
    means[slot] = (area + max(room, 0.0) * scores[order[n - 1]]) / size
    for rest in range(slot + 1, m):
        means[rest] = scores[order[n - 1]]


@njit(cache=True, nogil=True, fastmath=_MATH)
def row_slopes(slopes, order, weights, factor, gradient):
    """Add ``factor`` times the derivative of each row to ``gradient``, given the slopes of the slices."""
    n, m = order.shape[0], slopes.shape[0]
    total = 0.0
    if weights.shape[0] == 0:
        total = float(n)
    else:
        for i in range(n):
            total += weights[order[i]]
    size = total / m
    slot, room = 0, size
    for i in range(n):
        left = 1.0 if weights.shape[0] == 0 else weights[order[i]]
        area = 0.0
        while left > room and slot < m - 1:
            area += room * slopes[slot]
            left -= room
            slot, room = slot + 1, size
        area += left * slopes[slot]
        room -= left
        gradient[order[i]] += factor * area / total


def histogram_slices(masses: NDArray[np.float64], edges: NDArray[np.float64], n_slices: int) -> NDArray[np.float64]:
    """Return the slice means of samples that were counted in cells, each cell's mass spread evenly over it.

    Parameters
    ----------
    masses : ndarray of shape (n_samples, n_cells)
    edges : ndarray of shape (n_cells + 1,)
    n_slices : int

    Examples
    --------
    >>> histogram_slices(np.array([[1.0, 0.0, 1.0]]), np.array([0.0, 0.2, 0.4, 0.6]), 2).tolist()
    [[0.1, 0.5]]
    """
    means = np.empty((len(masses), n_slices))
    for sample, own in enumerate(masses):
        kept = np.flatnonzero(own > 0.0)
        cumulative = np.concatenate(([0.0], np.cumsum(own[kept])))
        low, high = edges[kept], edges[kept + 1]
        area = np.concatenate(([0.0], np.cumsum(own[kept] * 0.5 * (low + high))))
        levels = np.linspace(0.0, cumulative[-1], n_slices + 1)
        cell = np.clip(np.searchsorted(cumulative, levels, side="right") - 1, 0, len(kept) - 1)
        inside = levels - cumulative[cell]
        rise = (high - low)[cell] / own[kept][cell]
        reached = area[cell] + inside * (low[cell] + 0.5 * inside * rise)
        means[sample] = np.diff(reached) * n_slices / cumulative[-1]
    return means


def histogram_slopes(slopes: NDArray[np.float64], masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean slope of each cell, given those of the slices; an empty cell has that of its level."""
    found = np.empty(masses.shape)
    n_slices = slopes.shape[1]
    for sample, (own, rise) in enumerate(zip(masses, slopes, strict=True)):
        levels = np.concatenate(([0.0], np.cumsum(own))) / own.sum() * n_slices
        area = np.interp(levels, np.arange(n_slices + 1.0), np.concatenate(([0.0], np.cumsum(rise))))
        width = np.diff(levels)
        at = rise[np.minimum(levels[:-1].astype(np.int64), n_slices - 1)]
        with np.errstate(invalid="ignore", divide="ignore"):
            found[sample] = np.where(width > 1e-9, np.diff(area) / width, at)
    return found
