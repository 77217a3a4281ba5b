"""Exact transport between sorted scores: the distance of ``kind="discrete"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from fairtransport.torch._cells import SPACING
from fairtransport.transport.coupled import area_below, coupled_distance, coupled_gradient, level_index, running_area

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._pairs import Batch

__all__ = ["Coupling"]


class Coupling(nn.Module):
    """Optimal couplings of the cells' scores with the distributions they are compared with; it has no state."""

    def forward(self, batch: Batch, *, update: bool) -> tuple[Tensor, Tensor]:  # noqa: ARG002 - shared with `Duals`
        """Return, for each row, the slope of the penalty at its score, and its contribution to the value."""
        rows, dtype, size = batch.rows, batch.rows.scores.dtype, batch.compared.shape[-1]
        count, rank = rows.counts[batch.cells].clamp(min=1).to(dtype)[:, None], rows.ranks().to(dtype)[:, None]
        low, high = rank / count, (rank + 1.0) / count
        points, partner = rows.scores[:, None], batch.pairing.partner[batch.cells]
        below, upto = _cumulative_shares(batch.compared, points, partner)
        levels = torch.stack(torch.broadcast_tensors(low, high, torch.clip(upto, low, high)))
        index = level_index(levels, size)
        flat_index = partner * size + index
        values, running = batch.compared.flatten()[flat_index], running_area(batch.compared).flatten()[flat_index]
        areas = area_below(levels, index, size, values=values, running=running)
        slope, distance = coupled_gradient(low, high, below, upto), coupled_distance(points, low, high, upto, areas)
        return batch.sum_over_partners(slope * count, distance * count)


def _cumulative_shares(ascending: Tensor, points: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """Return the shares of ``ascending[which]`` strictly below each point, and at or below it."""
    n, size = ascending.shape
    # Offsets map the distributions to disjoint intervals, so that one search serves all of them.
    offset = SPACING * torch.arange(n, device=ascending.device, dtype=torch.float64)
    shifted = ascending.double().flatten() + offset.repeat_interleave(size)
    queries, start = points.double() + offset[which], which * size
    ranks = (torch.searchsorted(shifted, queries, right=right) - start for right in (False, True))
    below, upto = (rank.to(points.dtype) / size for rank in ranks)
    return below, upto
