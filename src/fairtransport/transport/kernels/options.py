"""Compiler options that the loops share, and read-only arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Sums may be reordered for vector instructions; infinities and NaN keep their meaning, because a logit may overflow.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}

#: A loop that allocates nothing needs no reference counts. Numba would count the references to every array of a tuple
#: at each call of an inlined function, which costs a third of an update of ten rows.
NO_ALLOCATION = {"_nrt": False}


# The one kind of array that the passes over sorted numbers are compiled for.


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous, read-only view, or copy, of an array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
