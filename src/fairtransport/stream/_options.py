"""Options of a `ContinualAdjuster`, checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairtransport._validation import check_choice, check_count, check_real
from fairtransport.groups import UNKNOWN_GROUPS

__all__ = ["AdjusterOptions"]


@dataclass(frozen=True)
class AdjusterOptions:
    """How a stream is monitored and the model adjusted; see `ContinualAdjuster` for the fields."""

    alarm_rate: float
    quiet_updates: int
    alarm_updates: int
    alarm_batches: int
    trust_radius: float
    monitor_half_life: float
    checkpoint_every: int | None
    keep_checkpoints: int
    unknown_group: str = "error"

    def __post_init__(self) -> None:
        check_real(self.alarm_rate, name="alarm_rate", strict=True, most=1.0)
        check_count(self.quiet_updates, name="quiet_updates", least=0)
        check_count(self.alarm_updates, name="alarm_updates", least=0)
        check_count(self.alarm_batches, name="alarm_batches", least=0)
        check_real(self.trust_radius, name="trust_radius", strict=True, finite=False)
        check_real(self.monitor_half_life, name="monitor_half_life", strict=True)
        if self.checkpoint_every is not None:
            check_count(self.checkpoint_every, name="checkpoint_every")
        check_count(self.keep_checkpoints, name="keep_checkpoints")
        check_choice(self.unknown_group, UNKNOWN_GROUPS, name="unknown_group")

    def n_updates(self, *, after_alarm: bool, frozen: bool) -> int:
        """Return the number of updates for one batch."""
        if frozen:
            return 0
        return self.alarm_updates if after_alarm else self.quiet_updates

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON can represent them: an infinite radius becomes None."""
        return {**asdict(self), "trust_radius": None if self.trust_radius == float("inf") else self.trust_radius}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> AdjusterOptions:
        """Invert `to_dict`."""
        radius = stored["trust_radius"]
        return cls(**{**stored, "trust_radius": float("inf") if radius is None else radius})
