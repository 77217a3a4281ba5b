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
    "fill_guide",
    "fixed",
    "group_areas",
    "image_of_masses",
    "leaves_of",
    "lowest_positive",
    "map_points",
    "map_rows",
    "mark_rows",
    "pack_keys",
    "places_of_levels",
    "unpack_keys",
]

_ZERO, _ONE, _FOUR, _SIGN = np.uint64(0), np.uint64(1), np.uint64(4), np.uint64(1 << 63)
_BLOCK = 256  # gaps summed on their own before they join the total, so that rounding does not grow with n
_AHEAD = 64  # points whose memory is asked for before the first of them is mapped
_STEP = 3  # knots from the first of a leaf to the first of the next


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
def mark_rows(codes: NDArray[Any], rows: NDArray[np.int64], code: int) -> None:
    """Write ``code`` at each of the rows."""
    for row in rows:
        codes[row] = code


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


# A map's knots and images stand in leaves of one cache line: four neighbouring knots and their images, the last
# of them again the first of the next leaf, so that one leaf is all that a point needs. A guide says in which leaf
# to begin. The lookup is waiting for memory, so points are looked up together, in rounds: while the leaf of one
# is on its way, those of the others are asked for.


def leaves_of(knots: NDArray[np.float64], images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lay out a map in leaves ``(4 knots, 4 images)``; beyond the last knot lies infinity, with the last image."""
    n_leaves = (knots.size - 1) // _STEP + 1
    room = np.empty(8 * n_leaves + 8)
    first = -room.ctypes.data % 64 // 8  # where a cache line begins
    leaves = room[first : first + 8 * n_leaves].reshape(n_leaves, 8)
    missing = _STEP * n_leaves + 1 - knots.size
    for column, (array, beyond) in enumerate(((knots, np.inf), (images, images[-1]))):
        padded = np.append(array, np.full(missing, beyond))
        for k in range(4):
            leaves[:, 4 * column + k] = padded[k : k + _STEP * n_leaves : _STEP]
    return leaves


@njit(cache=True, nogil=True, error_model="numpy")
def fill_guide(knots: NDArray[np.float64], scale: float, guide: NDArray[np.int32]) -> None:
    """Say in which leaf to look first for a point of each cell; its cell is ``int((point - knots[0]) * scale)``.

    It is the leaf that begins an interval with the first knot in the cell, or else with the last one below it. A
    point is there, in the leaf before, or, where a cell has many knots, in a later one.
    """
    last_cell = guide.shape[0] - 1
    reached = -1
    for i in range(knots.shape[0]):
        cell = min(int((knots[i] - knots[0]) * scale), last_cell) if scale > 0.0 else 0
        if cell > reached:
            guide[reached + 1 : cell] = (i - 1) // _STEP
            guide[cell] = i // _STEP
            reached = cell
    guide[reached + 1 :] = (knots.shape[0] - 1) // _STEP


@njit(cache=True, nogil=True, error_model="numpy")
def _leaf_from(leaves: NDArray[np.float64], leaf: np.uint64, point: float) -> np.uint64:
    # The first leaf from the given one on that ends above the point. The last one ends at infinity.
    low = high = np.int64(leaf)
    last, step = leaves.shape[0] - 1, 1
    while high < last and leaves[high, 3] <= point:
        low, high, step = high + 1, min(high + step, last), 2 * step
    while low < high:
        middle = (low + high) >> 1
        if leaves[middle, 3] <= point:
            low = middle + 1
        else:
            high = middle
    return np.uint64(low)


@njit(cache=True, nogil=True, error_model="numpy")
def _map_few(  # noqa: PLR0917 - compiled functions take their arguments by position
    points: NDArray[np.float64],
    n_points: int,
    leaves: NDArray[np.float64],
    guide: NDArray[np.int32],
    scale: float,
    found: NDArray[np.uint64],
    images: NDArray[np.float64],
) -> None:
    # Indices are unsigned, because numba looks whether a signed one counts from the end, and that takes time.
    last_cell, lowest = guide.shape[0] - 1, leaves[0, 0]
    for t in range(n_points):
        points[t] = max(points[t], lowest)
        place = (points[t] - lowest) * scale if scale > 0.0 else 0.0
        found[t] = guide[np.uint64(place) if place < last_cell else np.uint64(last_cell)]
    for _ in range(2):
        for t in range(n_points):
            leaf = found[t]
            found[t] = leaf + np.uint64(leaves[leaf, 3] <= points[t]) - np.uint64(leaves[leaf, 0] > points[t])
    for t in range(n_points):
        point, leaf = points[t], found[t]
        if leaves[leaf, 3] <= point:
            leaf = _leaf_from(leaves, leaf, point)
        k = np.uint64(leaves[leaf, 1] <= point) + np.uint64(leaves[leaf, 2] <= point)
        share = (point - leaves[leaf, k]) / (leaves[leaf, k + _ONE] - leaves[leaf, k])
        image, next_image = leaves[leaf, k + _FOUR], leaves[leaf, k + _FOUR + _ONE]
        # Rounding may not overshoot the next knot: the order is kept to the last bit.
        images[t] = min(image + share * (next_image - image), next_image)


@njit(cache=True, nogil=True, error_model="numpy")
def map_points(
    points: NDArray[np.float64],
    leaves: NDArray[np.float64],
    guide: NDArray[np.int32],
    scale: float,
    images: NDArray[np.float64],
) -> None:
    """Map points linearly between the knots of a map, constantly beyond them, into ``images``.

    The map comes from `leaves_of` and `fill_guide`.
    """
    few, found, mapped = np.empty(_AHEAD), np.empty(_AHEAD, np.uint64), np.empty(_AHEAD)
    for start in range(0, points.shape[0], _AHEAD):
        n_few = min(_AHEAD, points.shape[0] - start)
        few[:n_few] = points[start : start + n_few]
        _map_few(few, n_few, leaves, guide, scale, found, mapped)
        images[start : start + n_few] = mapped[:n_few]


@njit(cache=True, nogil=True, error_model="numpy")
def map_rows(  # noqa: PLR0917 - likewise
    values: NDArray[np.float64],
    rows: NDArray[np.int64],
    leaves: NDArray[np.float64],
    guide: NDArray[np.int32],
    scale: float,
    amount: float,
    out: NDArray[np.float64],
) -> None:
    """Move the values of some rows towards their images: (1 - amount) * value + amount * image, into ``out``.

    The map is given as in `map_points`.
    """
    own, few = np.empty(_AHEAD), np.empty(_AHEAD)
    found, mapped = np.empty(_AHEAD, np.uint64), np.empty(_AHEAD)
    for start in range(0, rows.shape[0], _AHEAD):
        n_few = min(_AHEAD, rows.shape[0] - start)
        for t in range(n_few):
            own[t] = few[t] = values[rows[start + t]]
        _map_few(few, n_few, leaves, guide, scale, found, mapped)
        for t in range(n_few):
            # Each of the three operations keeps the order and the range of the values under rounding, too.
            out[rows[start + t]] = (1.0 - amount) * own[t] + amount * mapped[t]
