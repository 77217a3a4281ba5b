"""Compiled loops of transport on the line: areas between distribution functions, maps, quantiles, slices, sorting.

On the line the area between two distribution functions is their Wasserstein-1 distance. No function needs memory for
groups times scores. The plain twins are in ``tests/transport/kernels/test_line.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._columns.compilation import FAST_MATH, cached_njit

_U = np.uint64
_BLOCK = 256  # gaps that are summed before they are added to the total, so that rounding does not grow with n


@cached_njit(nogil=True, error_model="numpy")
def group_areas(values, codes, masses, totals, separate):
    """Return the areas between the groups' distribution functions and everyone's, in one pass over sorted scores."""
    # Each score raises the function of one group, which moves up past those that it overtakes.
    n_groups = totals.shape[0] - 1
    mass, pooled_mass = np.zeros(n_groups), 0.0
    level = np.zeros(n_groups + 1)  # ascending
    level[n_groups] = np.inf
    rank, owner = np.arange(n_groups), np.arange(n_groups)
    ranked, block = np.zeros(n_groups), np.zeros(n_groups)
    total = 0.0
    for start in range(0, values.shape[0] - 1, _BLOCK):
        block[:] = 0.0
        block_total = 0.0
        for i in range(start, min(start + _BLOCK, values.shape[0] - 1)):
            group, weight = codes[i], 1.0 if masses is None else masses[i]
            if group == n_groups:
                pooled_mass += weight
            else:
                if not separate:
                    pooled_mass += weight
                mass[group] += weight
                reached = mass[group] / totals[group]
                k = rank[group]
                if level[k + 1] < reached:
                    while level[k + 1] < reached:
                        level[k], owner[k] = level[k + 1], owner[k + 1]
                        rank[owner[k]] = k
                        k += 1
                    owner[k], rank[group] = group, k
                level[k] = reached
            gap = values[i + 1] - values[i]
            if gap > 0.0:
                middle, distance = pooled_mass / totals[n_groups], 0.0
                for j in range(n_groups):
                    above = level[j] - middle
                    block[j] += gap * above
                    distance += abs(above)
                block_total += gap * distance
        ranked += block
        total += block_total
    return ranked, total


@cached_njit(nogil=True)
def pack_keys(bits, codes, shift, keys):
    """Write the bits of scores, without their sign, and codes in the last ``shift`` bits."""
    for i in range(keys.shape[0]):
        keys[i] = ((bits[i] & 0x7FFFFFFFFFFFFFFF) << shift) | codes[i]


@cached_njit(nogil=True, error_model="numpy")
def rank_area(keys, size):
    """Return the area between the distribution functions of the ranks of two groups.

    Ascending ``keys`` are scores and, in their last bit, whether a row is in the second group, of ``size`` rows.
    """
    n_rows = keys.shape[0]
    total, before, second, i = 0.0, 0.0, 0, 0
    while i < n_rows:
        block, last = 0.0, min(i + _BLOCK, n_rows)
        while i < last:
            start, key = i, keys[_U(i)]
            second += key & 1
            i += 1
            while i < n_rows and (keys[_U(i)] ^ key) >> 1 == 0:  # ties have one rank
                second += keys[_U(i)] & 1
                i += 1
            after = float(abs(second * n_rows - i * size))  # whole numbers, so that equal shares are equal
            block += (i - start) * (before + after)
            before = after
        total += block
    return total / (2.0 * n_rows) / (float(size) * float(n_rows - size))


@cached_njit(nogil=True, error_model="numpy")
def areas_between_groups(values, codes, masses, totals):
    """Return the area between the functions of any two groups, updating those of one group at each score."""
    n_groups = totals.shape[0] - 1
    mass, level = np.zeros(n_groups), np.zeros(n_groups)
    last = np.full(n_groups, values[0])  # where each function was raised last
    areas = np.zeros((n_groups, n_groups))
    for i in range(values.shape[0]):
        group = codes[i]
        if group == n_groups:
            continue
        for other in range(n_groups):
            gap = values[i] - max(last[group], last[other])
            areas[group, other] += gap * abs(level[group] - level[other])
        mass[group] += 1.0 if masses is None else masses[i]
        level[group] = mass[group] / totals[group]
        last[group] = values[i]
    for one in range(n_groups):
        for other in range(one):
            gap = values[-1] - max(last[one], last[other])
            area = areas[one, other] + areas[other, one] + gap * abs(level[one] - level[other])
            areas[one, other] = areas[other, one] = area
    return areas


# Monotone maps of the line, at many points.

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LOOKS = 4  # knots that every point is compared with; as many lie at infinity beyond the last one


class MapIndex(NamedTuple):
    """A map that is linear between its knots and constant beyond them, with a guide to the knots."""

    knots: Floats
    images: Floats
    guide: NDArray[np.int32]
    scale: float


@cached_njit(nogil=True, error_model="numpy")
def _last_below(knots, low, point):
    # The last knot at or below the point, searched from one that is: steps double, then halve.
    size, step = np.uint64(knots.shape[0]), _ONE
    while low + step < size and knots[low + step] <= point:
        low += step
        step <<= _ONE
    while step > _ZERO:
        if low + step < size and knots[low + step] <= point:
            low += step
        step >>= _ONE
    return low


@cached_njit(nogil=True, error_model="numpy")
def map_points(points, index, amount):
    """Move points towards their images under a map, in place: (1 - amount) * point + amount * image."""
    knots, images, guide, scale = index
    # Indices are unsigned, because numba checks whether a signed one counts from the end.
    lowest, last_cell = knots[0], np.uint64(guide.shape[0] - 1)
    for i in range(points.shape[0]):
        point = max(points[i], lowest)
        cell = (point - lowest) * scale if scale > 0.0 else 0.0
        k = np.uint64(guide[np.uint64(cell) if cell < last_cell else last_cell])
        begin = k
        for look in range(1, _LOOKS + 1):
            k += np.uint64(knots[begin + np.uint64(look)] <= point)
        if knots[k + _ONE] <= point:
            k = _last_below(knots, k, point)
        share = (point - knots[k]) / (knots[k + _ONE] - knots[k])
        image, next_image = images[k], images[k + _ONE]
        # Rounding may not overshoot the next image. Every operation keeps the order and the range of the points, so
        # the map is monotone to the last bit.
        mapped = min(image + share * (next_image - image), next_image)
        points[i] = (1.0 - amount) * points[i] + amount * mapped


# Quantile functions of sorted samples, in one pass.


@cached_njit(nogil=True, error_model="numpy")
def level_positions(levels, queries):
    """Return ``np.searchsorted(levels, queries, side="left")``, in one pass where the queries ascend."""
    positions = np.empty(queries.shape[0], np.int64)
    at, n_levels = 0, levels.shape[0]
    for i in range(queries.shape[0]):
        low, high, step = at, at, 1
        if at > 0 and levels[at - 1] >= queries[i]:
            low, high = 0, at - 1
        else:
            while high < n_levels and levels[high] < queries[i]:
                low, high, step = high + 1, high + step, 2 * step
            high = min(high, n_levels)
        while low < high:
            middle = (low + high) >> 1
            if levels[middle] < queries[i]:
                low = middle + 1
            else:
                high = middle
        positions[i] = at = low
    return positions


@cached_njit(nogil=True, error_model="numpy")
def mean_quantiles(tops, levels, values):
    """Return means, between neighbours of 0 and ``tops``, of a quantile function: ``values[j]`` up to ``levels[j]``."""
    images = np.empty(tops.shape[0])
    at, j = 0.0, 0
    for i in range(tops.shape[0]):
        lowest, mass, rise = values[j], 0.0, 0.0
        while True:
            edge = min(levels[j], tops[i])
            mass += edge - at
            rise += (edge - at) * (values[j] - lowest)
            at = edge
            if levels[j] >= tops[i]:
                break
            j += 1
        # The mean is taken above the lowest value, so that equal values give themselves to the last bit.
        images[i] = min(lowest + rise / mass, values[j])
        if levels[j] == tops[i]:
            j += 1
    return images


# Slice means, whose plain twin is in `transport.line`, and their derivatives over rows in a sorted order.

#: An array that `radix_order` sorts has less than 2 to the power of this many values.
INDEX_BITS = 30

_INDEX_MASK = (1 << INDEX_BITS) - 1
_RADIX_BITS = 11
_RADIX = 1 << _RADIX_BITS


@cached_njit(nogil=True)
def radix_order(values, low, scale):
    """Return the positions in ascending order of the keys (value - low) * scale of 33 bits: three stable passes."""
    n = values.shape[0]
    keys, other = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for i in range(n):
        keys[i] = (np.uint64((values[i] - low) * scale) << np.uint64(INDEX_BITS)) | np.uint64(i)
    starts = np.empty(_RADIX, np.int64)
    for digit in range(3):
        shift = np.uint64(INDEX_BITS + _RADIX_BITS * digit)
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


# Points sorted into buckets, so that each part of a large map is used while it is in the processor's cache.


class Cells(NamedTuple):
    """Return the bucket of a value of a code."""

    lows: Floats
    scales: Floats
    firsts: Ints
    buckets: NDArray[np.uint16]


@cached_njit(inline="always", error_model="numpy")
def _bucket_of(value, code, cells):
    at = np.uint64(code)
    cell, last = (value - cells.lows[at]) * cells.scales[at], cells.firsts[at + _ONE] - cells.firsts[at] - 1
    cell = cell if cell > 0.0 else 0.0  # noqa: FURB136 - NaN, from an unbounded range, becomes 0, too
    return np.uint64(cells.buckets[np.uint64(cells.firsts[at]) + (np.uint64(cell) if cell < last else np.uint64(last))])


@cached_njit(nogil=True, error_model="numpy")
def count_buckets(values, codes, cells, counts):
    """Add the number of values in each bucket to ``counts``."""
    for i in range(values.shape[0]):
        counts[_bucket_of(values[i], codes[i], cells)] += 1


@cached_njit(nogil=True, error_model="numpy")
def split_buckets(values, codes, cells, starts, parts, owners):
    """Write the values of each bucket side by side into ``parts``, and the bucket of each value into ``owners``."""
    at = starts.copy()
    for i in range(values.shape[0]):
        bucket = _bucket_of(values[i], codes[i], cells)
        owners[i] = bucket
        position = np.uint64(at[bucket])
        parts[position] = values[i]
        at[bucket] = position + _ONE


@cached_njit(nogil=True, error_model="numpy")
def join_buckets(parts, owners, starts, values):
    """Undo `split_buckets`."""
    at = starts.copy()
    for i in range(values.shape[0]):
        bucket = np.uint64(owners[i])
        position = np.uint64(at[bucket])
        values[i] = parts[position]
        at[bucket] = position + _ONE
