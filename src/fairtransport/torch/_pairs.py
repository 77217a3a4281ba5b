"""The transport problems of a penalty: pairs of groups, or each group and a target."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._layers import Layers

_MAX_PROBLEMS = 2_500


class Pairing(nn.Module):
    """The transport problems of all cells; cell = stratum * n_groups + group."""

    first: Tensor
    second: Tensor
    partner: Tensor
    problem: Tensor
    is_second: Tensor
    ends: Tensor

    def __init__(self, n_groups: int, n_strata: int, *, each_other: bool) -> None:
        super().__init__()
        self.each_other = each_other
        n_cells = n_groups * n_strata
        pairs = [(cell, cell // n_groups) for cell in range(n_cells)]
        if each_other:
            starts = range(0, n_cells, n_groups)
            pairs = [(start + a, start + b) for start in starts for a, b in combinations(range(n_groups), 2)]
        problems: list[list[tuple[int, int, bool]]] = [[] for _ in range(n_cells)]
        for number, (first, second) in enumerate(pairs):
            problems[first].append((second, number, False))
            if each_other:
                problems[second].append((first, number, True))
        table, ends = torch.tensor(problems), torch.tensor(pairs)
        layout = {"first": ends[:, 0], "second": ends[:, 1], "ends": ends.T}
        layout |= {"partner": table[..., 0], "problem": table[..., 1], "is_second": table[..., 2].bool()}
        for name, value in layout.items():
            self.register_buffer(name, value.contiguous(), persistent=False)

    def ready(self, seen: Tensor) -> Tensor:
        """Return whether both sides of each problem have rows, (n_problems,); ``seen`` is True for cells with rows."""
        return seen[self.ends].all(0) if self.each_other else seen


def make_pairing(layers: Layers, *, each_other: bool) -> Pairing:
    """Return the transport problems of all cells; raise ValueError where there is nothing, or too much, to compare."""
    n_groups, n_layers = layers.n_groups, layers.n_layers
    if each_other and n_groups < 2:
        raise ValueError(f"Groups that are compared with each other must be at least 2; got {n_groups}.")
    n_problems = n_layers * n_groups * (n_groups - 1) // 2
    if each_other and n_problems > _MAX_PROBLEMS:
        raise ValueError(
            f"{n_groups} groups in {n_layers} strata make {n_problems} pairs, too many to compare; compare them with a "
            "fixed target instead, for instance target='pooled' and set_target."
        )
    return Pairing(n_groups, n_layers, each_other=each_other)


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch, as the transport problems see it."""

    pairing: Pairing
    rows: SortedRows
    quantiles: Tensor
    compared: Tensor
    seen: Tensor
    ready: Tensor
    cells: Tensor

    def sum_over_partners(self, slopes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Sum slopes and values of the rows, (n_rows, n_partners), over the problems whose two sides have rows."""
        weight = self.ready[self.pairing.problem].to(slopes.dtype)[self.cells]
        return (slopes * weight).sum(-1), (values * weight).sum(-1)


# Scores sorted by cell (stratum x group), as tensors.

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
    """Scores and their cells, with the order of the rows by cell and score."""

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
