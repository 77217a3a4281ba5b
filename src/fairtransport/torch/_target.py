"""The distribution that groups are moved to, where it is not each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from fairtransport._validation import check_scores
from fairtransport.torch._score_tables import to_numpy
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS, pointwise_mean, pointwise_median, resolve_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["EACH_OTHER", "Target"]

EACH_OTHER = "each_other"
_LONGEST = 512  # points of a target that is given


class Target(nn.Module):
    """Target scores of each stratum, in ascending order.

    Attributes
    ----------
    points : Tensor of shape (n_strata, n_points)
    known : Tensor of shape (n_strata,)
        Whether they were given, set or seen.
    updates : Tensor of shape ()
        Batches that it followed.
    """

    points: Tensor
    known: Tensor
    updates: Tensor

    def __init__(self, target: Any, labels: Sequence[Any], n_strata: int, n_points: int, refresh: int | None) -> None:
        super().__init__()
        self.labels, self.n_strata, self.refresh = tuple(labels), n_strata, refresh
        self.word = target if isinstance(target, str) and target in TARGET_WORDS else None
        self.group = None if self.word else _position(target, self.labels)
        points = np.zeros((n_strata, n_points))
        given = self.word is None and self.group is None
        if given:
            points = _given(target, n_strata)
        self.ready = given or refresh is not None  # known on the host, where asking a device would mean waiting
        self.register_buffer("points", torch.tensor(points, dtype=torch.get_default_dtype()))
        self.register_buffer("known", torch.full((n_strata,), given))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self.given = given

    def of_samples(self, stratum: int, samples: Sequence[Sample]) -> Sample:
        """Return the target of a stratum whose groups have these scores."""
        if self.given:
            return Sample.from_sorted(self.points[stratum].double().cpu().numpy())
        if self.group is not None:
            return samples[self.group]
        return resolve_target(self.word, samples, [len(own) for own in samples])

    def set(self, samples: Sequence[Sequence[Sample]]) -> None:
        """Take the target from the scores of every group of every stratum, and keep it: the paper's way."""
        if self.given:
            raise ValueError("target is an array of scores; it is fixed already.")
        found = [self.of_samples(*stratum).equal_mass(self.points.shape[1]) for stratum in enumerate(samples)]
        self.points.copy_(torch.from_numpy(np.array(found)))
        self.known.fill_(True)
        self.ready = True

    def follow(self, pictures: Tensor, mass: Tensor) -> None:
        """Take the target from the present pictures, (n_cells, n), in every ``refresh``-th batch.

        ``mass`` is in proportion to the cells' shares of the rows, and 0 where a cell has not been seen.
        """
        if self.refresh is None or self.given:
            return
        by_stratum = mass.reshape(self.n_strata, 1, -1)
        here = by_stratum.sum(-1) if self.group is None else by_stratum[..., self.group]
        due = (here > 0) & (~self.known[:, None] | (self.updates % self.refresh == 0))
        new = self._of(pictures.reshape(self.n_strata, len(self.labels), -1).mT, by_stratum)
        self.points.copy_(torch.where(due, new, self.points))
        self.known.logical_or_(due[:, 0])
        self.updates += 1

    def _of(self, quantiles: Tensor, shares: Tensor) -> Tensor:
        """Return the target of quantiles (n_strata, n, n_groups), given the groups' shares (n_strata, 1, n_groups)."""
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
        places = torch.searchsorted(mass, (levels * mass[:, -1:]).contiguous())
        return values.gather(-1, places.clamp(max=values.shape[-1] - 1))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self.ready = self.refresh is not None or bool(self.known.all())


def _position(target: Any, labels: tuple[Any, ...]) -> int | None:
    """Position of the group that ``target`` names; None for scores."""
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


def _given(target: Any, n_strata: int) -> NDArray[np.float64]:
    """Return given scores, ascending, one row for each stratum."""
    nested = isinstance(target, (list, tuple)) and len(target) > 0 and np.ndim(target[0]) == 1
    parts = list(target) if nested else [target]
    if len(parts) != n_strata:
        raise ValueError(
            f"target has scores for {len(parts)} strata, but there are {n_strata}; give one array for each."
        )
    scores = [np.sort(check_scores(to_numpy(part), name="target")) for part in parts]
    sizes = {len(own) for own in scores}
    if len(sizes) == 1 and max(sizes) <= _LONGEST:
        return np.array(scores)
    return np.array([Sample.from_sorted(own).equal_mass(_LONGEST) for own in scores])
