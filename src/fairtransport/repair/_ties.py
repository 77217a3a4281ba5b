"""Scores that differ only by rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["tie_starts"]

_ROUNDING = 16 * np.finfo(np.float64).eps


def tie_starts(values: NDArray[np.float64], *, probabilities: bool = True) -> NDArray[np.bool_]:
    """Return which of ascending scores differ from the one before by more than rounding.

    Equal rows can get scores that differ in the last bits: libraries add in another order in a batch of another
    size, or on another thread. Taken as different, two such scores would split the mass of a tie between them,
    and their images could lie far apart. The tolerance of probabilities follows the rounding error of a logistic
    function, that of other scores their interquartile range.
    """
    spread = values * (1.0 - values) if probabilities else values[(3 * values.size) // 4] - values[values.size // 4]
    tolerance = 1e-12 * spread + _ROUNDING * np.abs(values)
    return np.append(True, np.diff(values) > tolerance[1:])
