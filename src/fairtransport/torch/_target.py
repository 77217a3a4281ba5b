"""The fixed or moving distribution that all groups are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairtransport._arrays import Floats
from fairtransport.criteria.criterion import EACH_OTHER
from fairtransport.torch._rows import ScoreScale, to_numpy
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS, pointwise_mean, pointwise_median, resolve_target

_MAX_POINTS = 512  # of a target given as an array


class Target(nn.Module):
    """Target scores of each stratum, in ascending order."""

    points: Tensor
    known: Tensor
    updates: Tensor

    def __init__(
        self,
        target: Any,
        labels: Sequence[Any],
        n_strata: int,
        n_points: int,
        update_interval: int | None,
        *,
        scale: ScoreScale,
    ) -> None:
        super().__init__()
        self.labels, self.n_strata, self.update_interval = tuple(labels), n_strata, update_interval
        self.word = target if isinstance(target, str) and target in TARGET_WORDS else None
        self.group = None if self.word else _group_position(target, self.labels)
        self.is_array = self.word is None and self.group is None
        points = _ascending_scores(target, n_strata, scale) if self.is_array else np.zeros((n_strata, n_points))
        # Kept on the host as well, because reading ``known`` from a device would block.
        self.ready = self.is_array or update_interval is not None
        self.register_buffer("points", torch.tensor(points, dtype=torch.get_default_dtype()))
        self.register_buffer("known", torch.full((n_strata,), self.is_array))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    def resolve(self, stratum: int, samples: Sequence[Sample]) -> Sample:
        """Return the target of a stratum whose groups have these scores."""
        if self.is_array:
            return Sample.from_sorted(self.points[stratum].double().cpu().numpy())
        if self.group is not None:
            return samples[self.group]
        return resolve_target(self.word, samples, [len(sample) for sample in samples])

    def fix(self, samples: Sequence[Sequence[Sample]]) -> None:
        """Compute the target from the scores of every group of every stratum, and keep it, as in the paper."""
        if self.is_array:
            raise ValueError("target is an array of scores; it is fixed already.")
        resolved = [self.resolve(*stratum).equal_mass(self.points.shape[1]) for stratum in enumerate(samples)]
        self.points.copy_(torch.from_numpy(np.array(resolved)))
        self.known.fill_(True)
        self.ready = True

    def update(self, quantiles: Tensor, mass: Tensor) -> None:
        """Recompute the target from the quantiles and rows of the cells, in every ``update_interval``-th batch."""
        if self.update_interval is None or self.is_array:
            return
        by_stratum = mass.reshape(self.n_strata, 1, -1)
        available = by_stratum.sum(-1) if self.group is None else by_stratum[..., self.group]
        due = (available > 0) & (~self.known[:, None] | (self.updates % self.update_interval == 0))
        new = self._from_quantiles(quantiles.reshape(self.n_strata, len(self.labels), -1).mT, by_stratum)
        self.points.copy_(torch.where(due, new, self.points))
        self.known.logical_or_(due[:, 0])
        self.updates += 1

    def _from_quantiles(self, quantiles: Tensor, shares: Tensor) -> Tensor:
        """Return the target of quantiles (n_strata, n, n_groups) of groups with shares (n_strata, 1, n_groups)."""
        if self.group is not None:
            return quantiles[..., self.group]
        total = shares.sum(-1, keepdim=True).clamp(min=torch.finfo(shares.dtype).tiny)
        if self.word == "barycenter_w2":
            return pointwise_mean(quantiles, shares / total)
        if self.word == "barycenter":
            present = (shares > 0).to(quantiles.dtype)
            return pointwise_median(quantiles, present / present.sum(-1, keepdim=True).clamp(min=1.0))
        values, order = quantiles.flatten(1).sort(dim=-1)
        mass = (shares / total).expand_as(quantiles).flatten(1).gather(-1, order).cumsum(-1)
        n = quantiles.shape[1]
        levels = (torch.arange(n, device=mass.device, dtype=mass.dtype) + 0.5) / n
        index = torch.searchsorted(mass, (levels * mass[:, -1:]).contiguous())
        return values.gather(-1, index.clamp(max=values.shape[-1] - 1))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self.ready = self.update_interval is not None or bool(self.known.all())


def _group_position(target: Any, labels: tuple[Any, ...]) -> int | None:
    """Return the position of the group whose label ``target`` is; None for an array of scores."""
    if isinstance(target, (list, tuple, np.ndarray, torch.Tensor)) and not (
        isinstance(target, tuple) and target in labels
    ):
        return None
    if target in labels:
        return labels.index(target)
    words = ", ".join(repr(word) for word in (EACH_OTHER, *TARGET_WORDS))
    raise ValueError(
        f"target must be one of {words}, the label of one of the {len(labels)} groups or an array of scores; the "
        f"{type(target).__name__} given is none of them."
    )


def _ascending_scores(target: Any, n_strata: int, scale: ScoreScale) -> Floats:
    """Return the scores of a target given as an array, ascending, one row for each stratum."""
    nested = isinstance(target, (list, tuple)) and len(target) > 0 and np.ndim(target[0]) == 1
    parts = list(target) if nested else [target]
    if len(parts) != n_strata:
        raise ValueError(
            f"target has scores for {len(parts)} strata, but there are {n_strata}; pass one array for each."
        )
    scores = [np.sort(scale.of_array(to_numpy(part), name="target")) for part in parts]
    sizes = {len(values) for values in scores}
    if len(sizes) == 1 and max(sizes) <= _MAX_POINTS:
        return np.array(scores)
    return np.array([Sample.from_sorted(values).equal_mass(_MAX_POINTS) for values in scores])
