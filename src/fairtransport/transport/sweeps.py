"""Compiled passes over sorted scores: areas between distribution functions, and monotone maps.

Each function here has a plain NumPy twin in ``tests/transport/test_sweeps.py`` that says what it computes.
All release the interpreter lock, and none needs memory that grows with the number of groups times that of scores.
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
    "group_areas",
    "map_points",
    "mark_rows",
    "pack_keys",
    "positive_span",
    "unpack_keys",
]

_ONE, _ZERO = np.uint64(1), np.uint64(0)
_BLOCK = 256  # gaps summed on their own before they join the total, so that rounding does not grow with n


# --------------------------------------------------------------------------- a score and its group in one number
#
# The bits of a float in [0, 1], read as a whole number, ascend with the float. Counted from the lowest positive
# score they leave the upper bits free; moved up, they leave the lower ones free, for the group. One sort of
# such keys, as fast as one sort of the scores, carries the groups along.


@njit(cache=True, nogil=True)
def positive_span(bits: NDArray[np.uint64]) -> tuple[int, int]:
    """Lowest and highest of the numbers above 0; (0, 0) where there are none."""
    lowest, highest = ~_ZERO, _ZERO
    for one in bits:
        lowest = min(lowest, one - _ONE)  # 0 becomes the greatest of all
        highest = max(highest, one)
    return (lowest + _ONE, highest) if highest > _ZERO else (_ZERO, _ZERO)


@njit(cache=True, nogil=True)
def pack_keys(keys: NDArray[np.uint64], codes: NDArray[np.int32], lowest: np.uint64, shift: np.uint64) -> None:
    """Turn the bits of scores, in place, into their rank among all floats from ``lowest``, with the code below.

    0 has rank 0 and ``lowest`` has rank 1.
    """
    for i in range(keys.shape[0]):
        rank = keys[i] - lowest + _ONE if keys[i] > _ZERO else _ZERO
        keys[i] = (rank << shift) | np.uint64(codes[i])


@njit(cache=True, nogil=True)
def unpack_keys(keys: NDArray[np.uint64], codes: NDArray[np.int32], lowest: np.uint64, shift: np.uint64) -> None:
    """Undo `pack_keys`: the keys become bits of scores again, in place, and their codes go into ``codes``."""
    mask = (_ONE << shift) - _ONE
    for i in range(keys.shape[0]):
        rank = keys[i] >> shift
        codes[i] = np.int32(keys[i] & mask)
        keys[i] = rank - _ONE + lowest if rank > _ZERO else _ZERO


@njit(cache=True, nogil=True)
def mark_rows(codes: NDArray[np.int32], rows: NDArray[np.int64], code: int) -> None:
    """Write ``code`` at each of the rows."""
    for row in rows:
        codes[row] = code


# --------------------------------------------------------------------------------------- areas between functions


@njit(cache=True, nogil=True)
def group_areas(
    values: NDArray[np.float64], codes: NDArray[np.int32], masses: NDArray[np.float64], totals: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    r"""Areas between the groups' distribution functions and everyone's, in one pass over sorted scores.

    Parameters
    ----------
    values : array of shape (n,)
        Scores of all groups, ascending.
    codes : array of shape (n,)
        The group of each; G, the number of groups, for one of no group.
    masses : array of shape (n,) or (0,)
        Their weights; empty where all are 1.
    totals : array of shape (G + 1,)
        Each group's mass, and everyone's. A negative last entry says that only entries of code G are everyone's.

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
    weighted, separate = masses.shape[0] > 0, totals[n_groups] < 0.0
    everyone = abs(totals[n_groups])
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
            group, weight = codes[i], masses[i] if weighted else 1.0
            if group == n_groups or not separate:
                held += weight
            if group < n_groups:
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
                middle, distance = held / everyone, 0.0
                for j in range(n_groups):
                    above = level[j] - middle
                    part[j] += gap * above
                    distance += abs(above)
                part_apart += gap * distance
        ranked += part
        apart += part_apart
    return ranked, apart


@njit(cache=True, nogil=True)
def areas_between_groups(
    values: NDArray[np.float64], codes: NDArray[np.int32], masses: NDArray[np.float64], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Area between the distribution functions of any two groups; the parameters are those of `group_areas`.

    A score lifts the function of one group, so only that group's areas are brought up to date: the work is
    that of groups times scores, not pairs times scores.
    """
    n_groups = totals.shape[0] - 1
    weighted = masses.shape[0] > 0
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
        mass[group] += masses[i] if weighted else 1.0
        level[group] = mass[group] / totals[group]
        moved[group] = values[i]
    for one in range(n_groups):
        for other in range(one):
            gap = values[-1] - max(moved[one], moved[other])
            area = areas[one, other] + areas[other, one] + gap * abs(level[one] - level[other])
            areas[one, other] = areas[other, one] = area
    return areas


@njit(cache=True, nogil=True)
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
