"""One definition of a formula for NumPy arrays and torch tensors.

A formula takes its functions from the namespace of its arguments, ``xp = namespace(x)``, and otherwise uses operators,
methods and indexing that both libraries share. NumPy and torch have nearly all functions of the array API standard
under the same names, so no compatibility package is needed; the exceptions are below. Nothing here imports torch: a
caller that passes a tensor has done so.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def namespace(*arrays: Any) -> Any:
    """Return torch when a tensor is among the arrays, NumPy otherwise.

    Only functions that have the same name and meaning in both are used: ``abs``, ``argsort``, ``clip`` (both bounds by
    position), ``cos``, ``cumsum`` (with ``axis``), ``exp``, ``floor``, ``sign``, ``sin``.
    """
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(array, torch.Tensor) for array in arrays):
        return torch
    return np


def as_array(values: Any) -> Any:
    """Return tensors as they are and anything else as a NumPy array."""
    return np.asarray(values) if namespace(values) is np else values


def take_along(values: Any, index: Any) -> Any:
    """Return ``values[..., index]`` along the last axis, row by row."""
    xp = namespace(values)
    if xp is np:
        return np.take_along_axis(values, index, axis=-1)
    return xp.take_along_dim(values, index, dim=-1)


def as_index(values: Any) -> Any:
    """Return integral floats as 64-bit integers."""
    return values.astype(np.int64) if namespace(values) is np else values.long()
