"""What recent batches said about each cell's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from fairtransport.torch._cells import arrival_ranks

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Memory"]


class Memory(nn.Module):
    """The newest scores of each cell, in rings, and how many there were.

    A small batch has a handful of rows of a small group, too few to say how its scores are distributed. The newest of
    earlier batches join them. They are plain numbers without a gradient, and a little behind the network: the fewer,
    the less so.

    Attributes
    ----------
    scores : Tensor of shape (n_cells + 1, size)
        The rings; the last row takes what belongs to no cell and is never read.
    seen : Tensor of shape (n_cells + 1,)
        How many rows of each cell there were; the last entry, of what belongs to no cell, stays 1.
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

    def join(self, scores: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return a batch's rows and, behind them, what fills each cell up to ``size``; then take the batch in."""
        rank, counts = arrival_ranks(cells, self.numbers)
        age = (self.seen[:-1, None] - self.slots) % self.size  # 0 is the newest; slots never filled are older than seen
        used = age < torch.minimum(self.seen, self.size - counts)[:-1, None]
        old = torch.where(used, self.numbers[:-1, None], self.numbers[-1])
        joined = torch.cat([scores, self.scores[:-1].flatten()]), torch.cat([cells, old.flatten()])
        self._take_in(scores, cells, rank, counts)
        return joined

    def _take_in(self, scores: Tensor, cells: Tensor, rank: Tensor, counts: Tensor) -> None:
        """Keep a batch; of a cell with more rows than fit, the last ones."""
        place, home = (self.seen[cells] + rank) % self.size, cells
        if len(cells) > self.size:
            home = torch.where(rank >= counts[cells] - self.size, cells, self.numbers[-1])
        self.scores[home, place] = scores
        if len(cells) > self.size:
            self.scores[-1] = 0.0  # which of the others were written last is left to chance
        self.seen[:-1] += counts[:-1]

    def forget(self) -> None:
        """Forget all rows."""
        self.scores.zero_()
        self.seen[:-1] = 0
