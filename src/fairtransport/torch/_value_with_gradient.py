"""A value whose gradient was computed beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ValueWithGradient"]


class ValueWithGradient(torch.autograd.Function):
    """A value with a precomputed gradient."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:  # noqa: ARG004
        """Return the value, and save the gradient."""
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        """Return the saved gradient times that of the value."""
        (gradient,) = ctx.saved_tensors
        return outer * gradient, None, None
