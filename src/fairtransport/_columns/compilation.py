"""Loops that numba compiles when they are first called, and the options that they share.

Numba takes a third of a second to import, and neither an audit of a few rows nor a command's help needs it.
"""

from __future__ import annotations

from functools import update_wrapper
from threading import RLock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

#: Sums may be reordered for vector instructions; infinities and NaN keep their meaning, because a logit may overflow.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}
#: A loop that allocates nothing needs no reference counts. Numba would count the references to every array of a tuple
#: at each call of an inlined function, which costs a third of an update of ten rows.
NO_ALLOCATION = {"_nrt": False}
#: Rows up to which NumPy or Python is preferred to a loop that would first have to be compiled, for half a second.
FEW_ROWS = 1 << 17

_lock = RLock()


class _Loop:
    """A function that becomes one of numba's when it is called or asked for an attribute."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._options, self._made, self._compiled = options, cast("Any", None), cast("Any", None)

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compiled())(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.compiled(), name)

    def compiled(self) -> Any:
        """Return the function of numba; it takes this one's place, and those of the loops that it calls, in its module.

        Numba looks names up when it compiles, and knows no other functions than its own: no thread may call one of
        them before all are in place.
        """
        with _lock:
            if self._made is None:
                from fairtransport._columns import code_cache  # noqa: PLC0415 - imports numba

                names = self.__wrapped__.__globals__
                self._made = code_cache.compiled(self.__wrapped__, **self._options)
                loops = {name: value for name, value in names.items() if isinstance(value, _Loop)}
                names.update({name: loop.compiled() for name, loop in loops.items()})
                self._compiled = self._made
            return self._made


def cached_njit(**options: Any) -> Any:
    """Return a decorator: `numba.njit` with these options at the first call, with a cache on disk if possible."""
    return lambda function: _Loop(function, options)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous, read-only view, or copy: the one kind of array that passes over numbers are compiled for."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
