"""Rows of all ranks of a distributed run, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import distributed

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["join_ranks", "world_size"]


def world_size() -> int:
    """How many processes train together; 1 outside a distributed run."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


@torch.compiler.disable
def join_ranks(scores: Tensor, cells: Tensor, nowhere: int) -> tuple[Tensor, Tensor, slice, int]:
    """Return scores and cells of all ranks, in the order of ranks, where this rank's are, and how many rows there are.

    Batches may differ in size: shorter ones are filled up with rows of no cell, ``nowhere``. The sizes are the one
    thing that this waits for.
    """
    sizes = torch.cat(_gather(torch.tensor([len(scores)], device=scores.device))).tolist()
    rows = torch.stack([scores.double(), cells.double()])  # cells are small whole numbers: exact
    filling = rows.new_tensor([[0.0], [float(nowhere)]]).expand(2, max(sizes) - len(scores))
    joined = torch.cat(_gather(torch.cat([rows, filling], dim=1)), dim=1)
    start = distributed.get_rank() * max(sizes)
    own = slice(start, start + len(scores))
    return joined[0].to(scores.dtype), joined[1].to(cells.dtype), own, sum(sizes)


def _gather(own: Tensor) -> list[Tensor]:
    parts = [torch.empty_like(own) for _ in range(world_size())]
    distributed.all_gather(parts, own.contiguous())
    return parts
