"""One definition of a formula for NumPy arrays and torch tensors.

A formula takes its functions from the namespace of its arguments, ``xp = namespace(x)``. Only those are used that have
the same name and meaning in both libraries. Nothing here imports torch: a caller that passes a tensor has done so.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def namespace(*arrays: Any) -> Any:
    """Return torch when a tensor is among the arrays, NumPy otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(array, torch.Tensor) for array in arrays):
        return torch
    return np


def take_along(values: Any, index: Any) -> Any:
    """Return ``values[..., index]`` along the last axis, row by row."""
    xp = namespace(values)
    if xp is np:
        return np.take_along_axis(values, index, axis=-1)
    return xp.take_along_dim(values, index, dim=-1)
