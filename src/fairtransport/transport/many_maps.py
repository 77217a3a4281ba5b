"""Many points, each moved by one of several maps of the line, on all cores.

Random access to maps that are larger than a processor's cache is bound by memory latency. So points are first sorted
into buckets, by map and range, such that the part of a map that a bucket needs fits the cache; then they are moved
bucket by bucket and put back into their order. Each pass reads and writes memory sequentially. The image of a point
does not depend on its bucket.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.kernels.buckets import Cells, count_buckets, join_buckets, split_buckets
from fairtransport.transport.kernels.read_only import read_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.transport.line import QuantileMap

__all__ = ["move_by_code"]

_KNOTS = 1 << 14  # per bucket: 320 KiB of knots, images and guide
_POINTS = 1 << 11  # least per bucket, on average
_MOST_BUCKETS = 1 << 10  # more sequential streams than a processor prefetches well
_CELLS = 1 << 12  # of a map with several buckets
_CHUNK = 1 << 16  # least points of a thread


def move_by_code(
    points: NDArray[np.float64], codes: NDArray[Any], maps: Sequence[QuantileMap], amount: float, *, n_threads: int = 1
) -> NDArray[np.float64]:
    """Return each point moved towards its image under the map of its code.

    Parameters
    ----------
    points : array of shape (n,)
        Finite.
    codes : array of shape (n,)
        Unsigned integers below the number of maps.
    maps : sequence of QuantileMap
    amount : float
        0 returns the points, 1 their images.
    n_threads : int, default 1
        The result does not depend on it.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from fairtransport.transport.line import quantile_map
    >>> maps = [quantile_map([0.0, 1.0], [0.0, 0.5]), quantile_map([0.0, 1.0], [1.0, 1.0])]
    >>> move_by_code(np.array([0.5, 0.5, 1.0]), np.array([0, 1, 0], dtype=np.uint8), maps, 1.0)
    array([0.25, 1.  , 0.5 ])
    """
    if codes.size and int(codes.max()) >= len(maps):
        raise ValueError(f"codes must be below {len(maps)}, the number of maps.")
    points, codes = read_only(points), read_only(codes)
    buckets = _Buckets.of(maps, points.size)
    n_chunks = max(1, min(4 * n_threads, points.size // _CHUNK))
    edges = np.linspace(0, points.size, n_chunks + 1).astype(np.int64).tolist()
    chunks = [slice(*pair) for pair in pairwise(edges)]
    counts = np.zeros((n_chunks, len(buckets)), dtype=np.int64)
    parts, moved, owners = np.empty(points.size), np.empty(points.size), np.empty(points.size, dtype=np.uint16)

    def count(number: int) -> None:
        count_buckets(points[chunks[number]], codes[chunks[number]], buckets.cells, counts[number])

    def split(number: int) -> None:
        chunk = chunks[number]
        split_buckets(points[chunk], codes[chunk], buckets.cells, starts[number], parts, owners[chunk])

    def move(number: int) -> None:
        for bucket in filled[number::n_chunks]:
            maps[buckets.maps[bucket]].move(parts[ends[bucket] : ends[bucket + 1]], amount)

    def join(number: int) -> None:
        join_buckets(parts, owners[chunks[number]], starts[number], moved[chunks[number]])

    n_threads = min(n_threads, n_chunks)
    with ThreadPoolExecutor(n_threads) as pool:
        spread = pool.map if n_threads > 1 else map
        list(spread(count, range(n_chunks)))
        filled = np.flatnonzero(counts.any(axis=0)).tolist()
        # The points of a bucket are contiguous, those of the first chunk first.
        starts = np.cumsum(np.append(0, counts.T.ravel()))[:-1].reshape(counts.T.shape).T.copy()
        ends = [*starts[0].tolist(), points.size]
        for task in (split, move, join):
            list(spread(task, range(n_chunks)))
    return moved


@dataclass(frozen=True, eq=False)
class _Buckets:
    """The bucket that a point of a code belongs to, and the map of each bucket."""

    cells: Cells
    maps: list[int]

    def __len__(self) -> int:
        return len(self.maps)

    @classmethod
    def of(cls, maps: Sequence[QuantileMap], n_points: int) -> _Buckets:
        n_knots = sum(carry.knots.size for carry in maps)
        size = max(_KNOTS, n_knots // _MOST_BUCKETS, n_knots * _POINTS // max(n_points, 1))
        owners: list[int] = []
        lows, scales, cells = [], [], []
        for number, carry in enumerate(maps):
            knots = carry.knots
            with np.errstate(over="ignore", divide="ignore"):
                scale = float(_CELLS / (knots[-1] - knots[0]))
            if knots.size <= size or not 0 < scale < np.inf:
                bucket, scale = np.zeros(1, dtype=np.int64), 0.0
            else:
                # Consecutive cells form a bucket until they have ``size`` knots.
                bucket = np.searchsorted(knots, knots[0] + np.arange(_CELLS) / scale) // size
            lows.append(knots[0])
            scales.append(scale)
            cells.append(bucket + len(owners))
            owners += [number] * (int(bucket[-1]) + 1)
        firsts = np.cumsum([0, *map(len, cells)])
        return cls(Cells(np.array(lows), np.array(scales), firsts, np.concatenate(cells).astype(np.uint16)), owners)
