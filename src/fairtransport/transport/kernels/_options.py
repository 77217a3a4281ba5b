"""Compiler options that the loops share."""

from __future__ import annotations

__all__ = ["FAST_MATH", "NO_ALLOCATION"]

#: Sums may be reordered for vector instructions; infinities and NaN keep their meaning, because a logit may overflow.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}

#: A loop that allocates nothing needs no reference counts. Numba would count the references to every array of a tuple
#: at each call of an inlined function, which costs a third of an update of ten rows.
NO_ALLOCATION = {"_nrt": False}
