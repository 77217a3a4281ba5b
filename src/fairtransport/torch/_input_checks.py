"""Checks of a batch: types and shapes on the host, values on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CheckedRows", "InvalidRows", "check_rows"]

_POLL_INTERVAL = 8  # calls: each transfer of the counts costs time on the host


class CheckedRows(NamedTuple):
    """The rows of a batch, checked.

    Attributes
    ----------
    original, scores : Tensor of shape (n,)
        The scores with their gradient, and without it and with 0 for invalid rows.
    cells : Tensor of shape (n,)
        Cells of the rows; invalid rows are in no cell.
    invalid : Tensor of shape (3,)
        Numbers of rows with codes out of range, with scores outside [0, 1] or NaN, and with NaN.
    """

    original: Tensor
    scores: Tensor
    cells: Tensor
    invalid: Tensor


def check_rows(
    scores: Any, codes: Any, strata: Any, *, n_groups: int, n_strata: int, device: torch.device, dtype: torch.dtype
) -> CheckedRows:
    """Check types, shapes and devices of a batch, and count rows with invalid values."""
    s = _vector(scores, "scores", integer=False)
    g = _vector(codes, "group_codes", integer=True)
    columns = {"scores": s, "group_codes": g}
    if strata is not None:
        columns["strata"] = _vector(strata, "strata", integer=True)
    elif n_strata > 1:
        raise ValueError(f"this penalty was made for {n_strata} strata; strata= is needed.")
    for name, tensor in columns.items():
        if len(tensor) != len(s):
            raise ValueError(f"{name} has {len(tensor)} rows, but there are {len(s)} scores.")
        if tensor.device != device:
            raise ValueError(
                f"{name} is on {tensor.device}, but the penalty is on {device}: call penalty.to({str(s.device)!r}) "
                "once, and pass all inputs on that device."
            )
    known, cells = g == g.clamp(0, n_groups - 1), g
    if "strata" in columns:
        layer = columns["strata"]
        known, cells = known & (layer == layer.clamp(0, n_strata - 1)), layer * n_groups + g
    inside = s == s.clamp(0.0, 1.0)  # False for NaN
    valid = known & inside
    cells = torch.where(valid, cells, n_groups * n_strata)
    invalid = (~torch.stack([known, inside, s == s])).sum(1)  # noqa: PLR0124 - NaN differs from itself
    return CheckedRows(s, torch.where(valid, s.detach(), 0.0).to(dtype), cells, invalid)


def _vector(values: Any, name: str, *, integer: bool) -> Tensor:
    """Return a tensor of shape (n,) or (n, 1) as one of shape (n,)."""
    expected = "whole numbers" if integer else "floats"
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of {expected}; got {type(values).__name__}. Use torch.as_tensor.")
    if values.is_floating_point() == integer or values.is_complex():
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

    def add(self, invalid: Tensor, n_groups: int, n_strata: int) -> None:
        """Add the counts of one batch, and raise for those that the host knows."""
        self.counts += invalid
        if torch.compiler.is_compiling():
            return
        if invalid.device.type != "cuda":
            self.raise_if_any(n_groups, n_strata)
        elif not torch.cuda.is_current_stream_capturing():
            self._poll(n_groups, n_strata)

    def _poll(self, n_groups: int, n_strata: int) -> None:
        """Read the last transfer if it has finished and the interval is over, and start the next one."""
        self._calls += 1
        if self._transfer is None:
            host = torch.zeros(self.counts.shape, dtype=self.counts.dtype, pin_memory=True)
            self._transfer = _Transfer(host, torch.cuda.Event())
        elif self._calls % _POLL_INTERVAL or not self._transfer.finished.query():
            return
        else:
            self._raise_for(self._transfer.counts, n_groups, n_strata)
        self._transfer.counts.copy_(self.counts, non_blocking=True)
        self._transfer.finished.record()

    def raise_if_any(self, n_groups: int, n_strata: int) -> None:
        """Raise ValueError if there was an invalid row since the last error."""
        self._raise_for(self.counts, n_groups, n_strata)

    def _raise_for(self, counts: Tensor, n_groups: int, n_strata: int) -> None:
        out_of_range, outside, missing = counts.tolist()
        if not out_of_range + outside:
            return
        self.counts.zero_()  # each row raises once
        self._transfer = None
        if out_of_range:
            strata = "" if n_strata == 1 else f", strata from 0 to {n_strata - 1}"
            raise ValueError(
                f"{out_of_range} rows have group codes or strata out of range; groups are numbered from 0 to "
                f"{n_groups - 1}{strata}."
            )
        if missing:
            raise ValueError(
                f"scores has {missing} NaN values, which the network returned. Look for a loss that diverged, a "
                "learning rate that is too large, or missing values among the features."
            )
        raise ValueError(
            f"scores has {outside} values outside [0, 1]; probabilities are needed. If these are logits, apply "
            "torch.sigmoid first."
        )
