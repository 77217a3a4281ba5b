"""Rows that cannot be right: counted where they are, told where someone reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._penalty import TransportPenalty

__all__ = ["Checked", "Faults", "check_rows"]

_EVERY = 8  # calls: each message costs the host time


class Checked(NamedTuple):
    """Rows of a batch.

    Attributes
    ----------
    given, scores : Tensor of shape (n,)
        The scores as they came, and without a gradient and 0 where bad.
    cells : Tensor of shape (n,)
        Their cells; bad rows are in none.
    bad : Tensor of shape (3,)
        How many rows have codes out of range, scores outside [0, 1] or NaN, and NaN.
    """

    given: Tensor
    scores: Tensor
    cells: Tensor
    bad: Tensor


def check_rows(penalty: TransportPenalty, scores: Any, codes: Any, strata: Any) -> Checked:
    """Check what can be seen without looking at values, and count what needs a look."""
    s = _vector(scores, "scores", whole=False)
    g = _vector(codes, "group_codes", whole=True)
    given = {"scores": s, "group_codes": g}
    if strata is not None:
        given["strata"] = _vector(strata, "strata", whole=True)
    elif penalty.n_strata > 1:
        raise ValueError(f"this penalty was made for {penalty.n_strata} strata; strata= is needed.")
    for name, tensor in given.items():
        if len(tensor) != len(s):
            raise ValueError(f"{name} has {len(tensor)} rows, but there are {len(s)} scores.")
        if tensor.device != penalty.counted.device:
            raise ValueError(
                f"{name} is on {tensor.device}, but the penalty is on {penalty.counted.device}: call "
                f"penalty.to({str(s.device)!r}) once, and keep all that is handed in on that device."
            )
    known, cells = g == g.clamp(0, penalty.n_groups - 1), g
    if "strata" in given:
        layer = given["strata"]
        known, cells = known & (layer == layer.clamp(0, penalty.n_strata - 1)), layer * penalty.n_groups + g
    inside = s == s.clamp(0.0, 1.0)  # NaN is not
    good = known & inside
    cells = torch.where(good, cells, penalty.n_groups * penalty.n_strata)
    bad = (~torch.stack([known, inside, s == s])).sum(1)  # noqa: PLR0124 - NaN differs from itself
    return Checked(s, torch.where(good, s.detach(), 0.0).to(penalty.counted.dtype), cells, bad)


def _vector(values: Any, name: str, *, whole: bool) -> Tensor:
    """Return a tensor's rows as one axis."""
    wanted = "whole numbers" if whole else "floats"
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of {wanted}; got {type(values).__name__}. Use torch.as_tensor.")
    if values.is_floating_point() == whole or values.is_complex():
        raise TypeError(f"{name} must hold {wanted}; it holds {values.dtype}.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        hint = " Of two columns of probabilities, give the second." if values.ndim == 2 and not whole else ""
        raise ValueError(f"{name} must have one dimension; it has shape {tuple(values.shape)}.{hint}")
    return values.long() if whole else values


class _Message(NamedTuple):
    """Counts on their way from the device."""

    counts: Tensor
    arrived: Any


class Faults(nn.Module):
    """Counts of bad rows: codes out of range, scores outside [0, 1], NaN.

    On a CPU they are told at once. On a CUDA device a look at them would make the host wait, so they travel while the
    device works on, and are told within a few calls. Until then, and in compiled code, bad rows have no part in
    anything. `tell` waits.
    """

    counts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(3, dtype=torch.int64), persistent=False)
        self._message: _Message | None = None
        self._calls = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_message": None}  # a copy has its own mail

    def watch(self, bad: Tensor, n_groups: int, n_strata: int) -> None:
        """Add the counts of one batch, and tell what is known."""
        self.counts += bad
        if torch.compiler.is_compiling():
            return
        if bad.device.type != "cuda":
            self.tell(n_groups, n_strata)
        elif not torch.cuda.is_current_stream_capturing():
            self._exchange(n_groups, n_strata)

    def _exchange(self, n_groups: int, n_strata: int) -> None:
        """Now and then, read the last message if it has arrived, and send the next."""
        self._calls += 1
        if self._message is None:
            host = torch.zeros(self.counts.shape, dtype=self.counts.dtype, pin_memory=True)
            self._message = _Message(host, torch.cuda.Event())
        elif self._calls % _EVERY or not self._message.arrived.query():
            return
        else:
            self._tell(self._message.counts, n_groups, n_strata)
        self._message.counts.copy_(self.counts, non_blocking=True)
        self._message.arrived.record()

    def tell(self, n_groups: int, n_strata: int) -> None:
        """Raise when there was a bad row."""
        self._tell(self.counts, n_groups, n_strata)

    def _tell(self, counts: Tensor, n_groups: int, n_strata: int) -> None:
        astray, outside, missing = counts.tolist()
        if not astray + outside:
            return
        self.counts.zero_()  # told once
        self._message = None
        if astray:
            strata = "" if n_strata == 1 else f", strata from 0 to {n_strata - 1}"
            raise ValueError(
                f"{astray} rows have group codes or strata out of range; groups are numbered from 0 to "
                f"{n_groups - 1}{strata}."
            )
        if missing:
            raise ValueError(
                f"scores has {missing} NaN values, which the network gave. Look for a loss that diverged, a learning "
                "rate that is too large, or missing values among the features."
            )
        raise ValueError(
            f"scores has {outside} values outside [0, 1]; probabilities are needed. If these are logits, apply "
            "torch.sigmoid first."
        )
