"""Compiler options that the loops share."""

from __future__ import annotations

__all__ = ["FAST_MATH"]

#: Sums may be reordered for vector instructions; infinities and NaN keep their meaning, because a logit may overflow.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}
