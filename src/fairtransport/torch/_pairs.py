"""The transport problems of a penalty: pairs of groups, or each group and a target."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._cells import SortedRows
    from fairtransport.torch._layers import Layers

__all__ = ["Batch", "Pairing", "make_pairing"]

_MAX_PROBLEMS = 2_500


class Pairing(nn.Module):
    """The transport problems of all cells; cell = stratum * n_groups + group.

    Attributes
    ----------
    each_other : bool
        Whether the second side of a problem is a cell; otherwise it is the target of the first side's stratum.
    first, second : Tensor of shape (n_problems,)
        The two cells, or the cell and the stratum, of each problem.
    ends : Tensor of shape (2, n_problems)
        ``first`` and ``second``, stacked.
    partner, problem, is_second : Tensor of shape (n_cells, n_partners)
        For each cell and each of its problems: the other side, the number of the problem, and whether the cell is its
        second side.
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
    """One batch, as the transport problems see it.

    Attributes
    ----------
    pairing : Pairing
    rows : SortedRows
        The rows of the batch, followed by those from memory.
    quantiles : Tensor of shape (n_cells, n_levels)
        Quantiles of the scores of each cell.
    compared : Tensor of shape (n_cells or n_strata, n)
        What the cells are compared with: ``quantiles`` itself, or the targets.
    seen : Tensor of shape (n_cells,)
        Whether a cell has rows.
    ready : Tensor of shape (n_problems,)
        Whether both sides of a problem have rows.
    cells : Tensor of shape (n_rows,)
        Cells of the rows, as valid indices: rows in no cell have the last one.
    """

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
