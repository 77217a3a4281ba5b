"""Checks of a batch: types and shapes on the host, values on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from fairtransport.criteria.criterion import needs_labels

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._layers import Layers


_POLL_INTERVAL = 8  # calls: each transfer of the counts costs time on the host


class CheckedRows(NamedTuple):
    """The rows of a batch, checked."""

    original: Tensor
    scores: Tensor
    cells: Tensor
    invalid: Tensor


def check_rows(
    scores: Any,
    codes: Any,
    strata: Any,
    labels: Any,
    *,
    layers: Layers,
    device: torch.device,
    dtype: torch.dtype,
    is_real: bool = False,
) -> CheckedRows:
    """Check types, shapes and devices of a batch, and count rows with invalid values."""
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
        if tensor.device != device:
            raise ValueError(
                f"{name} is on {tensor.device}, but the penalty is on {device}: call penalty.to({str(s.device)!r}) "
                "once, and pass all inputs on that device."
            )
    known = g == g.clamp(0, layers.n_groups - 1)
    if "strata" in columns:
        known = known & (columns["strata"] == columns["strata"].clamp(0, layers.n_strata - 1))
    if "labels" in columns:
        known = known & ((columns["labels"] == 0) | (columns["labels"] == 1))
        columns["labels"] = columns["labels"].long()
    layer = layers.of_rows(columns.get("labels"), columns.get("strata"))
    inside = torch.isfinite(s) if is_real else s == s.clamp(0.0, 1.0)  # False for NaN
    valid = known & inside
    cells = torch.where(valid & (layer < layers.n_layers), layer * layers.n_groups + g, layers.n_cells)
    invalid = (~torch.stack([known, inside, s == s])).sum(1)  # noqa: PLR0124 - NaN differs from itself
    return CheckedRows(s, torch.where(valid, s.detach(), 0.0).to(dtype), cells, invalid)


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


class _Transfer(NamedTuple):
    """An asynchronous copy of counts from the device to the host."""

    counts: Tensor
    finished: Any


class InvalidRows(nn.Module):
    """Counts of invalid rows: codes out of range, scores outside [0, 1], NaN.

    On a CPU an invalid row raises at once. Reading the counts from a CUDA device would block the host, so they are
    copied asynchronously and raise within a few calls. Until then, and in compiled code, invalid rows are left out of
    all results. `raise_if_any` blocks.
    """

    counts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(3, dtype=torch.int64), persistent=False)
        self._transfer: _Transfer | None = None
        self._calls = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_transfer": None}  # copies must not share a transfer

    def add(self, invalid: Tensor, layers: Layers) -> None:
        """Add the counts of one batch, and raise for those that the host knows."""
        self.counts += invalid
        if torch.compiler.is_compiling():
            return
        if invalid.device.type != "cuda":
            self.raise_if_any(layers)
        elif not torch.cuda.is_current_stream_capturing():
            self._poll(layers)

    def _poll(self, layers: Layers) -> None:
        """Read the last transfer if it has finished and the interval is over, and start the next one."""
        self._calls += 1
        if self._transfer is None:
            host = torch.zeros(self.counts.shape, dtype=self.counts.dtype, pin_memory=True)
            self._transfer = _Transfer(host, torch.cuda.Event())
        elif self._calls % _POLL_INTERVAL or not self._transfer.finished.query():
            return
        else:
            self._raise_for(self._transfer.counts, layers)
        self._transfer.counts.copy_(self.counts, non_blocking=True)
        self._transfer.finished.record()

    def raise_if_any(self, layers: Layers) -> None:
        """Raise ValueError if there was an invalid row since the last error."""
        self._raise_for(self.counts, layers)

    def _raise_for(self, counts: Tensor, layers: Layers) -> None:
        out_of_range, outside, missing = counts.tolist()
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
