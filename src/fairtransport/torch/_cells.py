"""Rows of cells (stratum x group) as tensors: counts, ranks, quantiles. No loop over cells, no look at a value.

The cell number n_cells means "in none": such rows count nowhere. Nothing here waits for a device, and there are few
steps: on a fast device a step costs the time to ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Rows", "arrival_ranks", "odd_numbers", "shelf_numbers"]


def arrival_ranks(cells: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many earlier rows of a row's cell there are, and the rows of each cell; ``numbers`` are the cells."""
    running = (cells[:, None] == numbers).cumsum(0)
    counts = running[-1] if len(cells) else torch.zeros_like(numbers)
    return running.gather(1, cells[:, None])[:, 0] - 1, counts


def odd_numbers(n: int) -> Tensor:
    """1, 3, 5, ...: twice n times the levels (i + 1/2) / n."""
    return 2 * torch.arange(n) + 1


def shelf_numbers(n_cells: int) -> Tensor:
    """0, 2, 4, ...: where cells' scores, within [0, 1], begin on one line; then those of "in none", and the end."""
    return 2.0 * torch.arange(n_cells + 2, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores and their cells, sorted once.

    Attributes
    ----------
    scores, cells : Tensor of shape (n_rows,)
        As given.
    counts, starts : Tensor of shape (n_cells + 1,)
        Rows of each cell, "in none" last, and how many rows of earlier cells there are.
    order : Tensor of shape (n_rows,)
        The rows by cell and, within it, by score.
    """

    scores: Tensor
    cells: Tensor
    counts: Tensor
    starts: Tensor
    order: Tensor

    @classmethod
    def of(cls, scores: Tensor, cells: Tensor, shelves: Tensor) -> Rows:
        """Sort the rows, whose scores are within [0, 1]; ``shelves`` are 0, 2, ..., 2 * n_cells + 2."""
        # Each cell has a stretch of the line of its own, so one sort puts them in order.
        ascending, order = torch.sort(shelves[cells] + scores, stable=True)
        starts = torch.searchsorted(ascending, shelves)
        return cls(scores, cells, starts.diff(), starts[:-1], order)

    def ranks(self) -> Tensor:
        """Return the rank of each row among its cell's scores, from 0."""
        numbers = torch.arange(len(self.order), device=self.order.device)
        return torch.empty_like(self.order).scatter(0, self.order, numbers) - self.starts[self.cells]

    def pictures(self, odd: Tensor) -> Tensor:
        """Return each cell's quantiles at the levels ``odd / (2 * len(odd))``, (n_cells, n_points).

        They are arbitrary scores where a cell has no rows.
        """
        if len(self.scores) == 0:
            return self.scores.new_zeros(len(self.counts) - 1, len(odd))
        # Whole numbers: exact. A level is held by the first value whose share up to it reaches the level.
        within = torch.div(odd * self.counts[:-1, None] - 1, 2 * len(odd), rounding_mode="floor")
        return self.scores[self.order[self.starts[:-1, None] + within]]  # -1, of an empty cell, is a place, too
