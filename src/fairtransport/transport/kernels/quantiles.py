"""Quantile functions of sorted samples, in one pass.

The plain twins are `numpy.searchsorted` and the integral in `fairtransport.transport.line.quantile_map`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["level_positions", "mean_quantiles"]


@cached_njit(nogil=True, error_model="numpy")
def level_positions(levels: NDArray[np.float64], queries: NDArray[np.float64]) -> NDArray[np.int64]:
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
def mean_quantiles(
    tops: NDArray[np.float64], levels: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the means of a quantile function between neighbours of 0 and ``tops``: ascending, the last exactly 1.

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
        # The mean is taken above the lowest value, so that equal values give themselves to the last bit.
        images[i] = min(lowest + rise / mass, values[j])
        if levels[j] == tops[i]:
            j += 1
    return images
