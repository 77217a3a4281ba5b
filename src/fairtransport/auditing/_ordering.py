"""Curves put in order node by node: a sorting network, because whole arrays are compared faster than short lists."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ascending"]

_MOST = 24  # arrays; beyond, NumPy's sort is faster


def ascending(arrays: NDArray[np.float64]) -> Sequence[NDArray[np.float64]]:
    """Return arrays of which the k-th holds the k-th lowest of the given ones, entry by entry.

    Examples
    --------
    >>> [row.tolist() for row in ascending(np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 0.0]]))]
    [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]
    """
    if len(arrays) > _MOST:
        return list(np.sort(arrays, axis=0))
    rows = list(arrays)
    for one, other in _network(len(rows)):
        rows[one], rows[other] = np.minimum(rows[one], rows[other]), np.maximum(rows[one], rows[other])
    return rows


@lru_cache(maxsize=_MOST)
def _network(size: int) -> tuple[tuple[int, int], ...]:
    """Batcher's merge exchange (Knuth, volume 3, 5.2.2 M): pairs to compare so that any list ends up in order."""
    pairs = []
    top = 1 << max(size - 1, 0).bit_length() >> 1
    step = top
    while step > 0:
        reach, offset, distance = top, 0, step
        while True:
            pairs += [(i, i + distance) for i in range(size - distance) if i & step == offset]
            if reach == step:
                break
            distance, reach, offset = reach - step, reach >> 1, step
        step >>= 1
    return tuple(pairs)
