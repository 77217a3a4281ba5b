"""Exact transport between sorted scores: the discrete penalty's part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from fairtransport.transport.coupled import area_below, coupled_distance, coupled_pull, place_of, running_area

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._pairs import Scene

__all__ = ["Coupling"]


class Coupling(nn.Module):
    """Optimal couplings of rows with what their cells are compared with. It has nothing to learn."""

    def forward(self, scene: Scene, *, learn: bool) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return, for each row, the slope of its cell's part of the penalty, and its share in the value."""
        rows, kind, size = scene.rows, scene.rows.scores.dtype, scene.other.shape[-1]
        count, rank = rows.counts[scene.inside].clamp(min=1).to(kind)[:, None], rows.ranks().to(kind)[:, None]
        low, high = rank / count, (rank + 1.0) / count
        points, partner = rows.scores[:, None], scene.pairing.partner[scene.inside]
        below, upto = _shares_below(scene.other, points, partner)
        levels = torch.stack(torch.broadcast_tensors(low, high, torch.clip(upto, low, high)))
        at = place_of(levels, size)
        where = partner * size + at
        values, running = scene.other.flatten()[where], running_area(scene.other).flatten()[where]
        areas = area_below(levels, at, size, values=values, running=running)
        pull, distance = coupled_pull(low, high, below, upto), coupled_distance(points, low, high, upto, areas)
        return scene.total(pull * count, distance * count)


def _shares_below(ascending: Tensor, points: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """Shares of ``ascending[which]`` below each point, and at or below it."""
    n, size = ascending.shape
    # One search in all of them: each has a stretch of the line of its own, far from the next.
    shelf = 2.0 * torch.arange(n, device=ascending.device, dtype=torch.float64)
    everything = ascending.double().flatten() + shelf.repeat_interleave(size)
    wanted, earlier = points.double() + shelf[which], which * size
    found = (torch.searchsorted(everything, wanted, right=right) - earlier for right in (False, True))
    below, upto = (places.to(points.dtype) / size for places in found)
    return below, upto
