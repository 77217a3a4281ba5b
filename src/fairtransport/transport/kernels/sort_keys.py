"""A score and its group in one sortable integer.

The bits of a float in [0, 1], read as an integer, ascend with the float. Counted from the lowest positive score they
leave the upper bits free; shifted up, they leave the lower ones free, for the group. One sort of such keys is as fast
as one sort of the scores and carries the groups along. The plain twin is `numpy.argsort`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["lowest_positive", "pack_keys", "unpack_keys"]

_ZERO, _ONE, _SIGN = np.uint64(0), np.uint64(1), np.uint64(1 << 63)


@cached_njit(nogil=True, error_model="numpy")
def lowest_positive(values: NDArray[np.float64]) -> float:
    """Return the lowest of the values above 0; infinity where there is none."""
    lowest = np.inf
    for value in values:
        if 0.0 < value < lowest:
            lowest = value
    return lowest


@cached_njit(nogil=True, error_model="numpy")
def pack_keys(
    bits: NDArray[np.uint64], codes: NDArray[Any], lowest: np.uint64, shift: np.uint64, keys: NDArray[np.uint64]
) -> None:
    """Write the rank of each score among all floats from ``lowest`` on, with its code in the bits below, into ``keys``.

    ``bits`` are those of the scores, and ``lowest`` those of the lowest positive score, whose rank is 1. 0 and -0 have
    rank 0.
    """
    for i in range(bits.shape[0]):
        rank = bits[i] - lowest + _ONE if _ZERO < bits[i] < _SIGN else _ZERO
        keys[i] = (rank << shift) | np.uint64(codes[i])


@cached_njit(nogil=True, error_model="numpy")
def unpack_keys(keys: NDArray[np.uint64], codes: NDArray[Any], lowest: np.uint64, shift: np.uint64) -> None:
    """Undo `pack_keys`: the keys become the bits of scores, in place, and their codes go into ``codes``."""
    mask = (_ONE << shift) - _ONE
    for i in range(keys.shape[0]):
        rank = keys[i] >> shift
        codes[i] = keys[i] & mask
        keys[i] = rank - _ONE + lowest if rank > _ZERO else _ZERO
