"""Rows of all ranks of a distributed run, gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import distributed

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["gather_rows", "world_size"]


def world_size() -> int:
    """Return the number of processes of a distributed run; 1 outside of one."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


@torch.compiler.disable
def gather_rows(scores: Tensor, cells: Tensor, no_cell: int) -> tuple[Tensor, Tensor, slice]:
    """Return scores and cells of all ranks in the order of ranks, and the slice of this rank.

    Batches may differ in size: shorter ones are padded with rows in no cell, ``no_cell``. The exchange of the sizes is
    the only operation that waits for the device.
    """
    sizes = torch.cat(_all_gather(torch.tensor([len(scores)], device=scores.device))).tolist()
    rows = torch.stack([scores.double(), cells.double()])  # cell numbers are small integers: exact
    padding = rows.new_tensor([[0.0], [float(no_cell)]]).expand(2, max(sizes) - len(scores))
    gathered = torch.cat(_all_gather(torch.cat([rows, padding], dim=1)), dim=1)
    start = distributed.get_rank() * max(sizes)
    this_rank = slice(start, start + len(scores))
    return gathered[0].to(scores.dtype), gathered[1].to(cells.dtype), this_rank


def _all_gather(tensor: Tensor) -> list[Tensor]:
    parts = [torch.empty_like(tensor) for _ in range(world_size())]
    distributed.all_gather(parts, tensor.contiguous())
    return parts
