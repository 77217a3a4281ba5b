"""Compiled passes over sorted numbers: areas between distribution functions, quantiles and monotone maps.

Each function here has a plain NumPy twin in ``tests/transport/test_sweeps.py`` that says what it computes.
All release the interpreter lock, and none needs memory for groups times scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "area_between",
    "areas_between_groups",
    "count_buckets",
    "fill_guide",
    "fixed",
    "group_areas",
    "image_of_masses",
    "join_buckets",
    "lowest_positive",
    "map_points",
    "pack_keys",
    "places_of_levels",
    "split_buckets",
    "unpack_keys",
]

_ZERO, _ONE, _SIGN = np.uint64(0), np.uint64(1), np.uint64(1 << 63)
_BLOCK = 256  # gaps summed on their own before they join the total, so that rounding does not grow with n
_LOOKS = 4  # knots that `map_points` compares with every point; as many lie at infinity beyond the last one


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous, read-only view: the one kind of input that the passes below are compiled for."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


# --------------------------------------------------------------------------- a score and its group in one number
#
# The bits of a float in [0, 1], read as a whole number, ascend with the float. Counted from the lowest positive
# score they leave the upper bits free; moved up, they leave the lower ones free, for the group. One sort of
# such keys, as fast as one sort of the scores, carries the groups along.


@njit(cache=True, nogil=True, error_model="numpy")
def lowest_positive(values: NDArray[np.float64]) -> float:
    """Return the lowest of the values above 0; infinity where there is none."""
    lowest = np.inf
    for value in values:
        if 0.0 < value < lowest:
            lowest = value
    return lowest


@njit(cache=True, nogil=True, error_model="numpy")
def pack_keys(
    bits: NDArray[np.uint64], codes: NDArray[Any], lowest: np.uint64, shift: np.uint64, keys: NDArray[np.uint64]
) -> None:
    """Put the rank of each score among all floats from ``lowest``, and below it the code, into ``keys``.

    ``bits`` are the scores' and ``lowest`` those of the lowest positive one, whose rank is 1. 0 and -0 have rank 0.
    """
    for i in range(bits.shape[0]):
        rank = bits[i] - lowest + _ONE if _ZERO < bits[i] < _SIGN else _ZERO
        keys[i] = (rank << shift) | np.uint64(codes[i])


@njit(cache=True, nogil=True, error_model="numpy")
def unpack_keys(keys: NDArray[np.uint64], codes: NDArray[Any], lowest: np.uint64, shift: np.uint64) -> None:
    """Undo `pack_keys`: the keys become the bits of scores, in place, and their codes go into ``codes``."""
    mask = (_ONE << shift) - _ONE
    for i in range(keys.shape[0]):
        rank = keys[i] >> shift
        codes[i] = keys[i] & mask
        keys[i] = rank - _ONE + lowest if rank > _ZERO else _ZERO


# --------------------------------------------------------------------------------------- areas between functions


@njit(cache=True, nogil=True, error_model="numpy")
def group_areas(
    values: NDArray[np.float64],
    codes: NDArray[Any],
    masses: NDArray[np.float64] | None,
    totals: NDArray[np.float64],
    separate: bool,
) -> tuple[NDArray[np.float64], float]:
    r"""Areas between the groups' distribution functions and everyone's, in one pass over sorted scores.

    Parameters
    ----------
    values : array of shape (n,)
        Scores of all groups, ascending.
    codes : array of shape (n,)
        The group of each; G, the number of groups, for an entry of no group.
    masses : array of shape (n,), or None
        Their weights; None where all are 1.
    totals : array of shape (G + 1,)
        Each group's mass, and everyone's.
    separate : bool
        Whether everyone is the entries of code G only, and not all entries.

    Returns
    -------
    ranked : array of shape (G,)
        With :math:`F_{(k)}(v)` the k-th lowest of the groups' distribution functions at v, and F everyone's,
        :math:`\int F_{(k)} - F`.
    apart : float
        :math:`\sum_k \int |F_{(k)} - F|`, which is also the sum over groups.

    Notes
    -----
    A score lifts the function of one group. The order of the functions is kept by moving that one up, past
    those that it overtakes.
    """
    n_groups = totals.shape[0] - 1
    mass, held = np.zeros(n_groups), 0.0
    level = np.zeros(n_groups + 1)  # ascending
    level[n_groups] = np.inf
    place, owner = np.arange(n_groups), np.arange(n_groups)
    ranked, part = np.zeros(n_groups), np.zeros(n_groups)
    apart = 0.0
    for start in range(0, values.shape[0] - 1, _BLOCK):
        part[:] = 0.0
        part_apart = 0.0
        for i in range(start, min(start + _BLOCK, values.shape[0] - 1)):
            group, weight = codes[i], 1.0 if masses is None else masses[i]
            if group == n_groups:
                held += weight
            else:
                if not separate:
                    held += weight
                mass[group] += weight
                reached = mass[group] / totals[group]
                k = place[group]
                if level[k + 1] < reached:
                    while level[k + 1] < reached:
                        level[k], owner[k] = level[k + 1], owner[k + 1]
                        place[owner[k]] = k
                        k += 1
                    owner[k], place[group] = group, k
                level[k] = reached
            gap = values[i + 1] - values[i]
            if gap > 0.0:
                middle, distance = held / totals[n_groups], 0.0
                for j in range(n_groups):
                    above = level[j] - middle
                    part[j] += gap * above
                    distance += abs(above)
                part_apart += gap * distance
        ranked += part
        apart += part_apart
    return ranked, apart


@njit(cache=True, nogil=True, error_model="numpy")
def areas_between_groups(
    values: NDArray[np.float64], codes: NDArray[Any], masses: NDArray[np.float64] | None, totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Area between the distribution functions of any two groups; the parameters are those of `group_areas`.

    A score lifts the function of one group, so only that group's areas are brought up to date: the work is
    that of groups times scores, not pairs times scores.
    """
    n_groups = totals.shape[0] - 1
    mass, level = np.zeros(n_groups), np.zeros(n_groups)
    moved = np.full(n_groups, values[0])  # where each function was lifted last
    areas = np.zeros((n_groups, n_groups))
    for i in range(values.shape[0]):
        group = codes[i]
        if group == n_groups:
            continue
        for other in range(n_groups):
            gap = values[i] - max(moved[group], moved[other])
            areas[group, other] += gap * abs(level[group] - level[other])
        mass[group] += 1.0 if masses is None else masses[i]
        level[group] = mass[group] / totals[group]
        moved[group] = values[i]
    for one in range(n_groups):
        for other in range(one):
            gap = values[-1] - max(moved[one], moved[other])
            area = areas[one, other] + areas[other, one] + gap * abs(level[one] - level[other])
            areas[one, other] = areas[other, one] = area
    return areas


@njit(cache=True, nogil=True, error_model="numpy")
def area_between(
    values: NDArray[np.float64],
    levels: NDArray[np.float64],
    other_values: NDArray[np.float64],
    other_levels: NDArray[np.float64],
) -> float:
    """Area between two distribution functions, given by ascending values and the levels reached there."""
    i = j = 0
    level = other_level = area = 0.0
    at = min(values[0], other_values[0])
    while i < values.shape[0] or j < other_values.shape[0]:
        first = j == other_values.shape[0] or (i < values.shape[0] and values[i] <= other_values[j])
        point = values[i] if first else other_values[j]
        area += (point - at) * abs(level - other_level)
        at = point
        if first:
            level = levels[i]
            i += 1
        else:
            other_level = other_levels[j]
            j += 1
    return area


# ------------------------------------------------------------------------------------------------- quantiles, maps


@njit(cache=True, nogil=True, error_model="numpy")
def places_of_levels(levels: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """Do what ``np.searchsorted(levels, wanted, side="left")`` does, in one pass where ``wanted`` ascends."""
    places = np.empty(wanted.shape[0], np.int64)
    at, n_levels = 0, levels.shape[0]
    for i in range(wanted.shape[0]):
        low, high, step = at, at, 1
        if at > 0 and levels[at - 1] >= wanted[i]:
            low, high = 0, at - 1
        else:
            while high < n_levels and levels[high] < wanted[i]:
                low, high, step = high + 1, high + step, 2 * step
            high = min(high, n_levels)
        while low < high:
            middle = (low + high) >> 1
            if levels[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        places[i] = at = low
    return places


@njit(cache=True, nogil=True, error_model="numpy")
def image_of_masses(
    tops: NDArray[np.float64], levels: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean of a quantile function between neighbours of 0 and ``tops``: ascending levels, the last exactly 1.

    The quantile function is ``values[j]`` on the levels above ``levels[j - 1]``, up to ``levels[j]``.
    """
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
        # The mean is taken above the lowest value, so that a mass with one image gets it to the last bit.
        images[i] = min(lowest + rise / mass, values[j])
        if levels[j] == tops[i]:
            j += 1
    return images


# A guide says where to begin to look for a point among the knots of a map. Few knots share a cell of the guide, so a
# fixed number of comparisons, which no processor can guess wrong, finds nearly all points.


@njit(cache=True, nogil=True, error_model="numpy")
def fill_guide(knots: NDArray[np.float64], scale: float, guide: NDArray[np.int32]) -> None:
    """Write for each cell the last knot of the cells before it, or the first knot of all.

    The cell of a point is ``int((point - knots[0]) * scale)``, or the last one.
    """
    last_cell = guide.shape[0] - 1
    cell = 0
    for i in range(knots.shape[0]):
        end = min(int((knots[i] - knots[0]) * scale), last_cell) if scale > 0.0 else 0
        while cell <= end:
            guide[cell] = max(i - 1, 0)
            cell += 1
    guide[cell:] = knots.shape[0] - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _last_below(knots: NDArray[np.float64], low: np.uint64, point: float) -> np.uint64:
    # The last knot at or below the point, from one that is: steps that double, then halve.
    size, step = np.uint64(knots.shape[0]), _ONE
    while low + step < size and knots[low + step] <= point:
        low += step
        step <<= _ONE
    while step > _ZERO:
        if low + step < size and knots[low + step] <= point:
            low += step
        step >>= _ONE
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def map_points(  # noqa: PLR0917 - compiled functions take their arguments by position
    points: NDArray[np.float64],
    knots: NDArray[np.float64],
    images: NDArray[np.float64],
    guide: NDArray[np.int32],
    scale: float,
    amount: float,
) -> None:
    """Move points towards their images under a map, in place: (1 - amount) * point + amount * image.

    The map is linear between its knots and constant beyond them. Four knots at infinity follow the last one, with
    its image; the guide comes from `fill_guide`.
    """
    # Indices are unsigned, because numba looks whether a signed one counts from the end, and that takes time.
    lowest, last_cell = knots[0], np.uint64(guide.shape[0] - 1)
    for i in range(points.shape[0]):
        point = max(points[i], lowest)
        place = (point - lowest) * scale if scale > 0.0 else 0.0
        k = np.uint64(guide[np.uint64(place) if place < last_cell else last_cell])
        begin = k
        for look in range(1, _LOOKS + 1):
            k += np.uint64(knots[begin + np.uint64(look)] <= point)
        if knots[k + _ONE] <= point:
            k = _last_below(knots, k, point)
        share = (point - knots[k]) / (knots[k + _ONE] - knots[k])
        image, next_image = images[k], images[k + _ONE]
        # Rounding may not overshoot the next knot, and each of the operations on the points keeps their order and
        # their range: the order is kept to the last bit.
        mapped = min(image + share * (next_image - image), next_image)
        points[i] = (1.0 - amount) * points[i] + amount * mapped


# ------------------------------------------------------------------------------------------------- values in buckets
#
# A bucket holds the values of one code within a range. Values of a code are cut into cells of equal width, by that
# code's ``lows`` and ``scales``, from its place in ``firsts`` on; ``buckets`` says to which bucket a cell belongs.


@njit(inline="always", error_model="numpy")
def _bucket_of(  # noqa: PLR0917 - likewise
    value: float,
    code: int,
    lows: NDArray[np.float64],
    scales: NDArray[np.float64],
    firsts: NDArray[np.int64],
    buckets: NDArray[np.uint16],
) -> np.uint64:
    at = np.uint64(code)
    place, last = (value - lows[at]) * scales[at], firsts[at + _ONE] - firsts[at] - 1
    place = place if place > 0.0 else 0.0  # noqa: FURB136 - not a number, from a range without bound, is 0, too
    return np.uint64(buckets[np.uint64(firsts[at]) + (np.uint64(place) if place < last else np.uint64(last))])


@njit(cache=True, nogil=True, error_model="numpy")
def count_buckets(  # noqa: PLR0917 - likewise
    values: NDArray[np.float64],
    codes: NDArray[Any],
    lows: NDArray[np.float64],
    scales: NDArray[np.float64],
    firsts: NDArray[np.int64],
    buckets: NDArray[np.uint16],
    counts: NDArray[np.int64],
) -> None:
    """Count the values of each bucket."""
    for i in range(values.shape[0]):
        counts[_bucket_of(values[i], codes[i], lows, scales, firsts, buckets)] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def split_buckets(  # noqa: PLR0917 - likewise
    values: NDArray[np.float64],
    codes: NDArray[Any],
    lows: NDArray[np.float64],
    scales: NDArray[np.float64],
    firsts: NDArray[np.int64],
    buckets: NDArray[np.uint16],
    starts: NDArray[np.int64],
    parts: NDArray[np.float64],
    owners: NDArray[np.uint16],
) -> None:
    """Put the values of each bucket side by side into ``parts``, from its start on; ``owners`` says whose each is."""
    at = starts.copy()
    for i in range(values.shape[0]):
        bucket = _bucket_of(values[i], codes[i], lows, scales, firsts, buckets)
        owners[i] = bucket
        place = np.uint64(at[bucket])
        parts[place] = values[i]
        at[bucket] = place + _ONE


@njit(cache=True, nogil=True, error_model="numpy")
def join_buckets(
    parts: NDArray[np.float64], owners: NDArray[np.uint16], starts: NDArray[np.int64], values: NDArray[np.float64]
) -> None:
    """Undo `split_buckets`."""
    at = starts.copy()
    for i in range(values.shape[0]):
        bucket = np.uint64(owners[i])
        place = np.uint64(at[bucket])
        values[i] = parts[place]
        at[bucket] = place + _ONE
