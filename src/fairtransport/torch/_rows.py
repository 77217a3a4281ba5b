"""The rows of a batch or of a whole table: their checks, their cells (label and stratum x group), their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_count, check_real, check_scores, check_vector
from fairtransport.criteria import Criterion
from fairtransport.criteria.criterion import needs_labels
from fairtransport.criteria.penalty import UNIT_DEVIATION
from fairtransport.groups import Groups
from fairtransport.transport.line import Sample

_POLL_INTERVAL = 8  # calls: each transfer of the counts costs time on the host


@dataclass(frozen=True)
class Layers:
    """The layers of a criterion: layer = index of the label * n_strata + stratum."""

    rule: Criterion
    n_strata: int
    n_groups: int
    is_real: bool  # whether scores are real numbers, not probabilities

    @property
    def criterion(self) -> str:
        """Name of the criterion."""
        return self.rule.name

    @property
    def n_labels(self) -> int:
        """Number of labels whose rows are compared; 1 where labels do not matter."""
        return 2 if self.criterion == "equalized_odds" else 1

    @property
    def n_layers(self) -> int:
        """Number of labels times strata."""
        return self.n_labels * self.n_strata

    @property
    def n_cells(self) -> int:
        """Number of layers times groups."""
        return self.n_layers * self.n_groups

    def check_given(self, labels: Any, strata: Any) -> None:
        """Raise ValueError where labels or strata lack, or are not used."""
        if strata is None and self.n_strata > 1:
            raise ValueError(f"this penalty was made for {self.n_strata} strata; strata= is needed.")
        if needs_labels(self.criterion) and labels is None:
            raise ValueError(
                f"criterion={self.criterion!r} compares people with the same label, so every batch needs labels=. "
                "Leave the penalty out of the loss of batches without labels."
            )
        if labels is not None and not needs_labels(self.criterion):
            raise ValueError(
                f"criterion={self.criterion!r} does not use labels; leave labels= out, or use 'equalized_odds'."
            )

    def of_rows(self, labels: Any, strata: Any) -> Any:
        """Return the layers of rows, tensors or arrays: 0 for all in one, ``n_layers`` for rows not compared."""
        layer = 0 if strata is None else strata
        if self.criterion == "equalized_odds":
            return layer + labels * self.n_strata
        if self.criterion == "equal_opportunity":
            return layer * labels + self.n_layers * (1 - labels)
        return layer

    def weights(self, mass: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the weights of layers from the rows of cells: sum 1, and 0 where fewer than two groups have rows."""
        by_group = mass.reshape(self.n_layers, self.n_groups)
        compared = (by_group > 0).sum(-1) >= min(2, self.n_groups)
        weights = by_group.sum(-1).to(dtype) * compared
        if self.rule.stratum_weight == "equal":
            weights = compared.to(dtype)
        elif self.rule.stratum_weight is None and self.n_labels > 1:  # labels count the same; their strata by share
            by_label = weights.reshape(self.n_labels, -1)
            weights = (by_label / by_label.sum(-1, keepdim=True).clamp(min=1.0)).flatten()
        return weights / weights.sum().clamp(min=torch.finfo(dtype).tiny)


# Batches: types and shapes are checked on the host, values on the device.


def check_rows(
    scores: Any, codes: Any, strata: Any, labels: Any, *, layers: Layers, like: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the scores of a batch, as given and as ``like``, its cells, and counts of invalid rows."""
    s = _vector(scores, "scores", integer=False)
    g = _vector(codes, "group_codes", integer=True)
    columns = {"scores": s, "group_codes": g}
    layers.check_given(labels, strata)
    if strata is not None:
        columns["strata"] = _vector(strata, "strata", integer=True)
    if labels is not None:
        columns["labels"] = _vector(labels, "labels", integer=None)
    for name, tensor in columns.items():
        if len(tensor) != len(s):
            raise ValueError(f"{name} has {len(tensor)} rows, but there are {len(s)} scores.")
        if tensor.device != like.device:
            raise ValueError(
                f"{name} is on {tensor.device}, but the penalty is on {like.device}: call "
                f"penalty.to({str(s.device)!r}) once, and pass all inputs on that device."
            )
    known = g == g.clamp(0, layers.n_groups - 1)
    if "strata" in columns:
        known = known & (columns["strata"] == columns["strata"].clamp(0, layers.n_strata - 1))
    if "labels" in columns:
        known = known & ((columns["labels"] == 0) | (columns["labels"] == 1))
        columns["labels"] = columns["labels"].long()
    layer = layers.of_rows(columns.get("labels"), columns.get("strata"))
    inside = torch.isfinite(s) if layers.is_real else s == s.clamp(0.0, 1.0)  # False for NaN
    valid = known & inside
    cells = torch.where(valid & (layer < layers.n_layers), layer * layers.n_groups + g, layers.n_cells)
    invalid = (~torch.stack([known, inside, s == s])).sum(1)  # noqa: PLR0124 - NaN differs from itself
    return s, torch.where(valid, s.detach(), 0.0).to(like.dtype), cells, invalid


def _vector(values: Any, name: str, *, integer: bool | None) -> Tensor:
    """Return a tensor of shape (n,) or (n, 1) as one of shape (n,); ``integer=None`` allows both types."""
    expected = {True: "whole numbers", False: "floats", None: "numbers"}[integer]
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of {expected}; got {type(values).__name__}. Use torch.as_tensor.")
    if values.is_floating_point() is integer or values.is_complex():
        raise TypeError(f"{name} must hold {expected}; it holds {values.dtype}.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        hint = " Of two columns of probabilities, pass the second." if values.ndim == 2 and not integer else ""
        raise ValueError(f"{name} must have one dimension; it has shape {tuple(values.shape)}.{hint}")
    return values.long() if integer else values


class InvalidRows(nn.Module):
    """Counts of invalid rows: codes out of range, scores outside [0, 1], NaN.

    On a CPU an invalid row raises at once. Reading the counts from a CUDA device would block the host, so they are
    copied asynchronously and raise within a few calls. Until then, and in compiled code, invalid rows are left out of
    all results. `raise_if_any` blocks.
    """

    counts: Tensor

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        self.layers = layers
        self.register_buffer("counts", torch.zeros(3, dtype=torch.int64), persistent=False)
        self._transfer: tuple[Tensor, Any] | None = None  # to the host, and an event when it has finished
        self._calls = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_transfer": None}  # copies must not share a transfer

    def add(self, invalid: Tensor) -> None:
        """Add the counts of one batch, and raise for those that the host knows."""
        self.counts += invalid
        if torch.compiler.is_compiling():
            return
        if invalid.device.type != "cuda":
            self.raise_if_any()
        elif not torch.cuda.is_current_stream_capturing():
            self._poll()

    def _poll(self) -> None:
        """Read the last transfer if it has finished and the interval is over, and start the next one."""
        self._calls += 1
        if self._transfer is None:
            host = torch.zeros(self.counts.shape, dtype=self.counts.dtype, pin_memory=True)
            self._transfer = host, torch.cuda.Event()
        elif self._calls % _POLL_INTERVAL or not self._transfer[1].query():
            return
        else:
            self.raise_if_any(self._transfer[0])
        counts, finished = self._transfer
        counts.copy_(self.counts, non_blocking=True)
        finished.record()

    def raise_if_any(self, counts: Tensor | None = None) -> None:
        """Raise ValueError if there was an invalid row since the last error; blocks without counts on the host."""
        layers = self.layers
        out_of_range, outside, missing = (self.counts if counts is None else counts).tolist()
        if not out_of_range + outside:
            return
        self.counts.zero_()  # each row raises once
        self._transfer = None
        if out_of_range:
            strata = "" if layers.n_strata == 1 else f", strata from 0 to {layers.n_strata - 1}"
            labels = ", labels are 0 or 1" if needs_labels(layers.criterion) else ""
            raise ValueError(
                f"{out_of_range} rows have group codes, strata or labels out of range; groups are numbered from 0 to "
                f"{layers.n_groups - 1}{strata}{labels}."
            )
        if missing:
            raise ValueError(
                f"scores has {missing} NaN values, which the network returned. Look for a loss that diverged, a "
                "learning rate that is too large, or missing values among the features."
            )
        raise ValueError(
            f"scores has {outside} values outside [0, 1] or infinite; probabilities are needed. If these are logits, "
            "apply torch.sigmoid first; for the outputs of a regression pass scale=."
        )


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


def check_table(scores: Floats, codes: Any, strata: Any, labels: Any, layers: Layers) -> Ints:
    """Return the checked cells of the rows of a whole table, ``n_cells`` for rows that are not compared."""
    g = to_numpy(codes).ravel()
    layers.check_given(labels, strata)
    columns = {"group_codes": (g, layers.n_groups)}
    if strata is not None:
        columns["strata"] = (to_numpy(strata).ravel(), layers.n_strata)
    if labels is not None:
        whole = to_numpy(labels).ravel()
        columns["labels"] = (whole.astype(np.int64) if np.isin(whole, (0, 1)).all() else whole - 0.5, 2)
    for name, (column, limit) in columns.items():
        if len(column) != len(scores):
            raise ValueError(f"{name} has {len(column)} rows, but there are {len(scores)} scores.")
        if column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= limit:
            raise ValueError(f"{name} must be whole numbers from 0 to {limit - 1}, one for each row.")
    layer = layers.of_rows(*(columns[name][0] if name in columns else None for name in ("labels", "strata")))
    return np.where(layer < layers.n_layers, layer * layers.n_groups + g.astype(np.int64), layers.n_cells)


def group_samples(scores: Floats, cells: Ints, layers: Layers) -> list[list[Sample]]:
    """Return the scores of every group of every layer; raise if one has no rows."""
    n, samples = layers.n_groups, []
    for first in range(0, layers.n_cells, n):
        by_group = [scores[cells == cell] for cell in range(first, first + n)]
        empty = sum(len(values) == 0 for values in by_group)
        if empty:
            where = "" if layers.n_layers == 1 else " of a label or stratum"
            raise ValueError(f"{empty} of {n} groups{where} have no rows; rows of each are needed here.")
        samples.append([Sample.from_values(values) for values in by_group])
    return samples


def to_numpy(values: Any) -> Any:
    """Return an array-like, or a tensor of any type and device, as a NumPy array."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    host = values.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()


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

    def of_array(self, outputs: Any, name: str = "scores") -> Floats:
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
