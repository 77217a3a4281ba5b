"""Points sorted into buckets, so that each part of a large map is used while it is in the processor's cache.

A bucket holds the points of one code within a range. The plain twin is a stable `numpy.argsort` of the buckets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Cells", "count_buckets", "join_buckets", "split_buckets"]

_ONE = np.uint64(1)


class Cells(NamedTuple):
    """Which bucket a value of a code belongs to.

    Attributes
    ----------
    lows, scales : ndarray of shape (n_codes,)
        The values of a code are cut into cells of equal width: its lowest value, and cells per unit.
    firsts : ndarray of shape (n_codes + 1,)
        The first cell of each code.
    buckets : ndarray of uint16
        The bucket of each cell.
    """

    lows: NDArray[np.float64]
    scales: NDArray[np.float64]
    firsts: NDArray[np.int64]
    buckets: NDArray[np.uint16]


@njit(inline="always", error_model="numpy")
def _bucket_of(value: float, code: int, cells: Cells) -> np.uint64:
    at = np.uint64(code)
    cell, last = (value - cells.lows[at]) * cells.scales[at], cells.firsts[at + _ONE] - cells.firsts[at] - 1
    cell = cell if cell > 0.0 else 0.0  # noqa: FURB136 - NaN, from an unbounded range, becomes 0, too
    return np.uint64(cells.buckets[np.uint64(cells.firsts[at]) + (np.uint64(cell) if cell < last else np.uint64(last))])


@cached_njit(nogil=True, error_model="numpy")
def count_buckets(values: NDArray[np.float64], codes: NDArray[Any], cells: Cells, counts: NDArray[np.int64]) -> None:
    """Add the number of values in each bucket to ``counts``."""
    for i in range(values.shape[0]):
        counts[_bucket_of(values[i], codes[i], cells)] += 1


@cached_njit(nogil=True, error_model="numpy")
def split_buckets(
    values: NDArray[np.float64],
    codes: NDArray[Any],
    cells: Cells,
    starts: NDArray[np.int64],
    parts: NDArray[np.float64],
    owners: NDArray[np.uint16],
) -> None:
    """Write the values of each bucket side by side into ``parts``, and the bucket of each value into ``owners``."""
    at = starts.copy()
    for i in range(values.shape[0]):
        bucket = _bucket_of(values[i], codes[i], cells)
        owners[i] = bucket
        position = np.uint64(at[bucket])
        parts[position] = values[i]
        at[bucket] = position + _ONE


@cached_njit(nogil=True, error_model="numpy")
def join_buckets(
    parts: NDArray[np.float64], owners: NDArray[np.uint16], starts: NDArray[np.int64], values: NDArray[np.float64]
) -> None:
    """Undo `split_buckets`."""
    at = starts.copy()
    for i in range(values.shape[0]):
        bucket = np.uint64(owners[i])
        position = np.uint64(at[bucket])
        values[i] = parts[position]
        at[bucket] = position + _ONE
