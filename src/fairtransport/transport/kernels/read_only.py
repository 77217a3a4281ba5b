"""The one kind of array that the passes over sorted numbers are compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_only"]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous, read-only view, or copy, of an array.

    Examples
    --------
    >>> read_only(np.arange(4)[::2]).flags.writeable
    False
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
