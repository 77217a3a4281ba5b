"""Scores sorted by cell (stratum x group), as tensors.

The cell number ``n_cells`` means "in no cell": such rows have no part in any result. There is no loop over cells, and
nothing reads a value back from the device, because on a fast device each operation costs the time of its launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SPACING", "SortedRows", "arrival_ranks", "cell_offsets", "odd_numbers"]

#: Distance between the offsets of two cells, larger than that of any two scores.
SPACING = 16.0


def arrival_ranks(cells: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each row the number of earlier rows of its cell, and for each of the cells ``numbers`` its rows."""
    running = (cells[:, None] == numbers).cumsum(0)
    counts = running[-1] if len(cells) else torch.zeros_like(numbers)
    return running.gather(1, cells[:, None])[:, 0] - 1, counts


def odd_numbers(n: int) -> Tensor:
    """Return 1, 3, 5, ...: the levels (i + 1/2) / n times 2n."""
    return 2 * torch.arange(n) + 1


def cell_offsets(n_cells: int) -> Tensor:
    """Return 0, 16, ...: offsets that map the scores of the cells to disjoint intervals.

    The last two are the offset of rows in no cell, and the end.
    """
    return SPACING * (torch.arange(n_cells + 2, dtype=torch.float64) - 0.5)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Scores and their cells, with the order of the rows by cell and score.

    Attributes
    ----------
    scores, cells : Tensor of shape (n_rows,)
        In the original order.
    counts, starts : Tensor of shape (n_cells + 1,)
        Number of rows of each cell, "in no cell" last, and number of rows of all earlier cells.
    order : Tensor of shape (n_rows,)
        Positions of the rows by cell and, within it, by score.
    """

    scores: Tensor
    cells: Tensor
    counts: Tensor
    starts: Tensor
    order: Tensor

    @classmethod
    def from_scores(cls, scores: Tensor, cells: Tensor, offsets: Tensor) -> SortedRows:
        """Sort rows with scores that differ by less than half of `SPACING`; ``offsets`` are those of `cell_offsets`."""
        # With disjoint intervals for the cells, one sort orders all of them.
        ascending, order = torch.sort(offsets[cells] + 0.5 * SPACING + scores, stable=True)
        starts = torch.searchsorted(ascending, offsets)
        return cls(scores, cells, starts.diff(), starts[:-1], order)

    def ranks(self) -> Tensor:
        """Return the rank of each row among the scores of its cell, from 0."""
        numbers = torch.arange(len(self.order), device=self.order.device)
        return torch.empty_like(self.order).scatter(0, self.order, numbers) - self.starts[self.cells]

    def quantiles(self, odd: Tensor) -> Tensor:
        """Return each cell's quantiles at the levels ``odd / (2 * len(odd))``, (n_cells, n_levels).

        They are arbitrary scores where a cell has no rows.
        """
        if len(self.scores) == 0:
            return self.scores.new_zeros(len(self.counts) - 1, len(odd))
        # The quantile is the first value whose cumulative share reaches the level; integers make that exact.
        rank = torch.div(odd * self.counts[:-1, None] - 1, 2 * len(odd), rounding_mode="floor")
        return self.scores[self.order[self.starts[:-1, None] + rank]]  # rank -1, of an empty cell, is a valid index
