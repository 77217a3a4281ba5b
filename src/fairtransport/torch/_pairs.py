"""Which distributions are compared: every group with every other one, or every group with a target."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._cells import Rows

__all__ = ["Pairing", "Scene"]


class Pairing(nn.Module):
    """The transport problems of all cells, and how cells take part in them; cell = stratum * n_groups + group.

    Attributes
    ----------
    each_other : bool
        Whether the second side of a problem is a cell; otherwise it is the target of the first one's stratum.
    first, second : Tensor of shape (n_problems,)
        The cells, or the cell and the stratum, of each problem.
    partner, problem, is_second : Tensor of shape (n_cells, n_partners)
        For each cell and each of its problems: the other side, the problem's number, and the cell's own side.
    ends : Tensor of shape (2, n_problems)
        Both of them.
    """

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
        own: list[list[tuple[int, int, bool]]] = [[] for _ in range(n_cells)]
        for number, (first, second) in enumerate(pairs):
            own[first].append((second, number, False))
            if each_other:
                own[second].append((first, number, True))
        table, ends = torch.tensor(own), torch.tensor(pairs)
        layout = {"first": ends[:, 0], "second": ends[:, 1], "ends": ends.T}
        layout |= {"partner": table[..., 0], "problem": table[..., 1], "is_second": table[..., 2].bool()}
        for name, value in layout.items():
            self.register_buffer(name, value.contiguous(), persistent=False)

    def ready(self, seen: Tensor) -> Tensor:
        """Whether both sides of a problem have rows, (n_problems,); ``seen`` says so of cells."""
        return seen[self.ends].all(0) if self.each_other else seen


@dataclass(frozen=True, eq=False)
class Scene:
    """All that is looked at in one batch.

    Attributes
    ----------
    pairing : Pairing
    rows : Rows
        Those of the batch and, behind them, those remembered.
    pictures : Tensor of shape (n_cells, n_points)
        Quantiles of each cell's rows.
    other : Tensor of shape (n_cells or n_strata, n)
        What they are compared with: the pictures themselves, or the targets.
    seen : Tensor of shape (n_cells,)
        Whether a cell has rows.
    ready : Tensor of shape (n_problems,)
        Whether both sides of a problem have rows.
    inside : Tensor of shape (n_rows,)
        The cells of the rows; rows in none have any.
    """

    pairing: Pairing
    rows: Rows
    pictures: Tensor
    other: Tensor
    seen: Tensor
    ready: Tensor
    inside: Tensor

    def total(self, slopes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Sum what rows have to do with each partner, (n_rows, n_partners), over those that have rows."""
        weight = self.ready[self.pairing.problem].to(slopes.dtype)[self.inside]
        return (slopes * weight).sum(-1), (values * weight).sum(-1)
