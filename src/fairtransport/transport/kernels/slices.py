"""Slice means and their derivatives over rows in a sorted order; the plain twins are in `transport.slices`."""

from __future__ import annotations

import numpy as np

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels._options import FAST_MATH

__all__ = ["INDEX_BITS", "add_row_slopes", "radix_order", "write_slice_means"]

#: An array that `radix_order` sorts has less than 2 to the power of this many values.
INDEX_BITS = 30

_INDEX_BITS, _INDEX_MASK = INDEX_BITS, (1 << INDEX_BITS) - 1
_RADIX_BITS = 11
_RADIX = 1 << _RADIX_BITS


@cached_njit(nogil=True)
def radix_order(values, low, scale):
    """Return the positions in ascending order of the keys (value - low) * scale of 33 bits: three stable passes."""
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


@cached_njit(nogil=True, fastmath=FAST_MATH)
def write_slice_means(scores, order, weights, means):
    """Write the slice means of ``scores[order]``, which ascend, into ``means``; with empty weights masses are equal."""
    n, m = order.shape[0], means.shape[0]
    total = 0.0
    if weights.shape[0] == 0:
        total = float(n)
    else:
        for i in range(n):
            total += weights[order[i]]
    size = total / m
    slot, space, area = 0, size, 0.0
    for i in range(n):
        value = scores[order[i]]
        left = 1.0 if weights.shape[0] == 0 else weights[order[i]]
        while left > space and slot < m - 1:
            means[slot] = (area + space * value) / size
            left -= space
            slot, space, area = slot + 1, size, 0.0
        area += left * value
        space -= left
    # Mass that rounding leaves over gets the largest score.
    means[slot] = (area + max(space, 0.0) * scores[order[n - 1]]) / size
    for rest in range(slot + 1, m):
        means[rest] = scores[order[n - 1]]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def add_row_slopes(slopes, order, weights, factor, gradient):
    """Add ``factor`` times the derivative of each row to ``gradient``, from the slopes of the slices."""
    n, m = order.shape[0], slopes.shape[0]
    total = 0.0
    if weights.shape[0] == 0:
        total = float(n)
    else:
        for i in range(n):
            total += weights[order[i]]
    size = total / m
    slot, space = 0, size
    for i in range(n):
        left = 1.0 if weights.shape[0] == 0 else weights[order[i]]
        area = 0.0
        while left > space and slot < m - 1:
            area += space * slopes[slot]
            left -= space
            slot, space = slot + 1, size
        area += left * slopes[slot]
        space -= left
        gradient[order[i]] += factor * area / total
