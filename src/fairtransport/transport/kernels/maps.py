"""Monotone maps of the line, at many points.

A guide says where to begin to search for a point among the knots of a map. Few knots share a cell of the guide, so a
fixed number of comparisons, which need no branch prediction, suffices for nearly all points. The plain twin is
`numpy.interp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MapIndex", "fill_guide", "map_points"]

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LOOKS = 4  # knots that every point is compared with; as many lie at infinity beyond the last one


class MapIndex(NamedTuple):
    """A map that is linear between its knots and constant beyond them, with a guide to the knots.

    Attributes
    ----------
    knots, images : ndarray of shape (n_knots + 4,)
        Four knots at infinity, with the last image, follow the last knot.
    guide : ndarray of int32
        For each cell of equal width the last knot of the cells before it; from `fill_guide`.
    scale : float
        Cells per unit; 0 where there is one cell.
    """

    knots: NDArray[np.float64]
    images: NDArray[np.float64]
    guide: NDArray[np.int32]
    scale: float


@cached_njit(nogil=True, error_model="numpy")
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


@cached_njit(nogil=True, error_model="numpy")
def _last_below(knots: NDArray[np.float64], low: np.uint64, point: float) -> np.uint64:
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
def map_points(points: NDArray[np.float64], index: MapIndex, amount: float) -> None:
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
