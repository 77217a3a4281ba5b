"""Scores that differ only by rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["tie_starts"]


def tie_starts(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which of ascending scores differ from the one before by more than rounding.

    Equal rows can get scores that differ in the last bits: libraries add in another order in a batch of another
    size, or on another thread. Taken as different, two such scores would split the mass of a tie between them,
    and their images could lie far apart. The tolerance follows the rounding error of a logistic function.
    """
    tolerance = 1e-12 * values * (1.0 - values) + 16 * np.finfo(np.float64).eps * values
    return np.append(True, np.diff(values) > tolerance[1:])
