"""The fixed or moving distribution that all groups are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from fairtransport._validation import check_count, check_real, check_scores, check_vector
from fairtransport.criteria.criterion import EACH_OTHER
from fairtransport.criteria.penalty import UNIT_DEVIATION
from fairtransport.groups import Groups
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS, pointwise_mean, pointwise_median, resolve_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from fairtransport.torch._layers import Layers

# Scores of a whole table, from which a penalty computes its target or its unit.


def group_labels(groups: Any) -> tuple[Any, ...]:
    """Return the labels of groups given as their number, as labels or as `Groups`."""
    if isinstance(groups, Groups):
        if groups.overlapping:
            raise ValueError(
                "With crossed=False a row belongs to several groups and has no single code; cross the columns."
            )
        return groups.labels
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__len__"):
        return tuple(range(check_count(groups, name="groups")))
    labels = tuple(groups)
    if len(set(labels)) != len(labels) or not labels:
        raise ValueError(
            f"groups must hold at least one label, each once; of {len(labels)}, {len(set(labels))} differ."
        )
    return labels


def check_table(
    scores: NDArray[np.float64], codes: Any, strata: Any, labels: Any, layers: Layers
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the scores, and the checked group codes and layers of a whole table."""
    s, g = scores, to_numpy(codes).ravel()
    layers.check_given(labels, strata)
    columns = {"group_codes": (g, layers.n_groups)}
    if strata is not None:
        columns["strata"] = (to_numpy(strata).ravel(), layers.n_strata)
    if labels is not None:
        whole = to_numpy(labels).ravel()
        columns["labels"] = (whole.astype(np.int64) if np.isin(whole, (0, 1)).all() else whole - 0.5, 2)
    for name, (column, limit) in columns.items():
        if len(column) != len(s):
            raise ValueError(f"{name} has {len(column)} rows, but there are {len(s)} scores.")
        if column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= limit:
            raise ValueError(f"{name} must be whole numbers from 0 to {limit - 1}, one for each row.")
    of_rows = layers.of_rows(*(columns[name][0] if name in columns else None for name in ("labels", "strata")))
    return s, g.astype(np.int64), np.broadcast_to(of_rows, s.shape).astype(np.int64)


def group_samples(
    scores: NDArray[np.float64], codes: NDArray[np.int64], layer: NDArray[np.int64], layers: Layers
) -> list[list[Sample]]:
    """Return the scores of every group of every layer; raise if one has no rows."""
    samples = []
    for number in range(layers.n_layers):
        by_group = [scores[(codes == group) & (layer == number)] for group in range(layers.n_groups)]
        empty = sum(len(values) == 0 for values in by_group)
        if empty:
            where = "" if layers.n_layers == 1 else " of a label or stratum"
            raise ValueError(f"{empty} of {layers.n_groups} groups{where} have no rows; rows of each are needed here.")
        samples.append([Sample.from_values(values) for values in by_group])
    return samples


def to_numpy(values: Any) -> Any:
    """Return an array-like, or a tensor of any type and device, as a NumPy array."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    host = values.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()


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
        """Recompute the target from the current quantiles, (n_cells, n), in every ``update_interval``-th batch.

        ``mass`` is proportional to the cells' shares of the rows, and 0 for cells not seen yet.
        """
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


def _ascending_scores(target: Any, n_strata: int, scale: ScoreScale) -> NDArray[np.float64]:
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


# Outputs of a regression, mapped to scores that are spread as probabilities are.

_REACH = 16.0  # standard deviations from the mean beyond which outputs count as if they were there


@dataclass(frozen=True)
class ScoreScale:
    """The map of outputs to scores."""

    center: float = 0.0
    unit: float = 1.0
    is_real: bool = False

    @classmethod
    def of(cls, scale: Any) -> ScoreScale:
        """Return the map of a mean and a standard deviation; None is that of probabilities."""
        if scale is None:
            return cls()
        if not isinstance(scale, (tuple, list)) or len(scale) != 2:
            raise TypeError(f"scale must be a mean and a standard deviation of y; got {type(scale).__name__}.")
        center = check_real(scale[0], name="scale[0]", least=-np.inf)
        deviation = check_real(scale[1], name="scale[1]", strict=True)
        return cls(center, deviation / UNIT_DEVIATION, is_real=True)

    def of_array(self, outputs: Any, name: str = "scores") -> NDArray[np.float64]:
        """Return the scores of checked outputs."""
        if not self.is_real:
            return check_scores(outputs, name=name)
        reach = _REACH * UNIT_DEVIATION
        return np.clip((check_vector(outputs, name=name) - self.center) / self.unit, -reach, reach)

    def of_tensor(self, outputs: Tensor) -> Tensor:
        """Return the scores of outputs."""
        if not self.is_real:
            return outputs
        reach = _REACH * UNIT_DEVIATION
        return ((outputs - self.center) / self.unit).clamp(-reach, reach)
