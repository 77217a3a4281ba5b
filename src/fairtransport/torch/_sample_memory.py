"""A memory of each cell's scores in recent batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from fairtransport.torch._cells import arrival_ranks

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SampleMemory"]


class SampleMemory(nn.Module):
    """Ring buffers of the newest scores of each cell, and the number of rows seen.

    A small batch has few rows of a small group, too few to estimate the distribution of its scores; the newest scores
    of earlier batches are added, as constants without a gradient. They lag behind the network the more, the larger the
    memory is.

    Attributes
    ----------
    scores : Tensor of shape (n_cells + 1, size)
        The ring buffers; the last one takes rows in no cell and is never read.
    seen : Tensor of shape (n_cells + 1,)
        Number of rows seen of each cell; the last entry, of rows in no cell, stays 1.
    """

    scores: Tensor
    seen: Tensor
    numbers: Tensor
    slots: Tensor

    def __init__(self, n_cells: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("scores", torch.zeros(n_cells + 1, size))
        self.register_buffer("seen", torch.zeros(n_cells + 1, dtype=torch.int64))
        self.seen[-1] = 1
        self.register_buffer("numbers", torch.arange(n_cells + 1), persistent=False)
        self.register_buffer("slots", torch.arange(1, size + 1), persistent=False)

    def extend(self, scores: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of a batch, followed by stored ones that fill each cell up to ``size``; store the batch."""
        rank, counts = arrival_ranks(cells, self.numbers)
        age = (self.seen[:-1, None] - self.slots) % self.size  # 0 is the newest; slots never filled are older than seen
        used = age < torch.minimum(self.seen, self.size - counts)[:-1, None]
        stored_cells = torch.where(used, self.numbers[:-1, None], self.numbers[-1])
        extended = torch.cat([scores, self.scores[:-1].flatten()]), torch.cat([cells, stored_cells.flatten()])
        self._store(scores, cells, rank, counts)
        return extended

    def _store(self, scores: Tensor, cells: Tensor, rank: Tensor, counts: Tensor) -> None:
        """Store the rows of a batch; of a cell with more rows than ``size``, the last ones."""
        slot, ring = (self.seen[cells] + rank) % self.size, cells
        if len(cells) > self.size:
            ring = torch.where(rank >= counts[cells] - self.size, cells, self.numbers[-1])
        self.scores[ring, slot] = scores
        if len(cells) > self.size:
            self.scores[-1] = 0.0  # repeated indices are written in no fixed order
        self.seen[:-1] += counts[:-1]

    def clear(self) -> None:
        """Remove all rows."""
        self.scores.zero_()
        self.seen[:-1] = 0
