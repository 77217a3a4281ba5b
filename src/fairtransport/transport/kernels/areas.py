"""Areas between distribution functions, in one pass over sorted scores.

On the line the area between two distribution functions is their Wasserstein-1 distance. No function needs memory for
groups times scores. The plain twins are in ``tests/transport/kernels/test_areas.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["area_between", "areas_between_groups", "group_areas"]

_BLOCK = 256  # gaps that are summed before they are added to the total, so that rounding does not grow with n


@cached_njit(nogil=True, error_model="numpy")
def group_areas(
    values: NDArray[np.float64],
    codes: NDArray[Any],
    masses: NDArray[np.float64] | None,
    totals: NDArray[np.float64],
    separate: bool,
) -> tuple[NDArray[np.float64], float]:
    r"""Return the areas between the groups' distribution functions and everyone's, in one pass over sorted scores.

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
    total : float
        :math:`\sum_k \int |F_{(k)} - F|`, which is also the sum over groups.

    Notes
    -----
    Each score raises the distribution function of one group, so the order of the functions is kept by moving that one
    up, past those that it overtakes.
    """
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


@cached_njit(nogil=True, error_model="numpy")
def areas_between_groups(
    values: NDArray[np.float64], codes: NDArray[Any], masses: NDArray[np.float64] | None, totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the area between the distribution functions of any two groups; the parameters are those of `group_areas`.

    Each score raises the function of one group, so only that group's areas are updated: the work is proportional to
    groups times scores, not to pairs times scores.
    """
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


@cached_njit(nogil=True, error_model="numpy")
def area_between(
    values: NDArray[np.float64],
    levels: NDArray[np.float64],
    other_values: NDArray[np.float64],
    other_levels: NDArray[np.float64],
) -> float:
    """Return the area between two distribution functions, given by ascending values and the levels reached there."""
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
