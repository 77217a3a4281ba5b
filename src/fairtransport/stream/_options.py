"""How many updates a batch is worth: many after an alarm, few while all is quiet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairtransport._validation import check_count, check_real

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """How a stream is watched and adjusted; see `ContinualAdjuster`."""

    alarm_rate: float
    quiet_updates: int
    alarm_updates: int
    alarm_batches: int
    trust: float
    half_life: float
    every: int | None

    def __post_init__(self) -> None:
        check_real(self.alarm_rate, name="alarm_rate", strict=True, most=1.0)
        check_count(self.quiet_updates, name="quiet_updates", least=0)
        check_count(self.alarm_updates, name="alarm_updates", least=0)
        check_count(self.alarm_batches, name="alarm_batches", least=0)
        check_real(self.trust, name="trust", strict=True, finite=False)
        check_real(self.half_life, name="half_life", strict=True)
        if self.every is not None:
            check_count(self.every, name="every")

    def updates(self, *, busy: int, frozen: bool) -> int:
        """Return the updates that a batch is worth; ``busy``: batches left of those after an alarm."""
        if frozen:
            return 0
        return self.alarm_updates if busy else self.quiet_updates

    def to_dict(self) -> dict[str, Any]:
        """Return what a checkpoint holds; JSON knows no infinity."""
        held = asdict(self)
        return {**held, "trust": None if self.trust == float("inf") else self.trust}

    @classmethod
    def from_dict(cls, held: dict[str, Any]) -> Options:
        """Undo `to_dict`."""
        return cls(**{**held, "trust": float("inf") if held["trust"] is None else held["trust"]})
