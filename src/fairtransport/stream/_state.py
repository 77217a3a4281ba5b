"""Everything that decides what a stream does next, what one batch does to it, and its place in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.stream._alarm import DriftAlarm
from fairtransport.stream._history import History
from fairtransport.stream._monitor import MONITOR_BINS, Monitor
from fairtransport.stream._options import Options
from fairtransport.stream._report import AdjustmentReport, GroupReading

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.storage import Container
    from fairtransport.stream.scorers import Scorer

__all__ = ["StreamState", "Version", "now"]


@dataclass(frozen=True)
class Version:
    """A state that is kept and can be gone back to.

    Attributes
    ----------
    version : int
    batch, rows : int
        Seen when it was written.
    disparity, noise_floor : float
        Of the scores given out, then.
    moved : float
        Distance to the model that was accepted then.
    frozen : bool
    """

    version: int
    batch: int
    rows: int
    disparity: float
    noise_floor: float
    moved: float
    frozen: bool


@dataclass
class StreamState:
    """The state of a stream.

    Attributes
    ----------
    options : Options
    keep : int
        Versions that are kept.
    title : str
    current, original, accepted : Scorer
        The model as it is, as it was given, and as the operator last accepted it.
    monitor : Monitor
    alarm : DriftAlarm
    history : History
    batches, rows, alarms, updates, adjusted : int
        Seen and spent so far; ``adjusted`` counts batches that were worth updates.
    busy : int
        Batches left of those after an alarm.
    moved : float
        Distance to the accepted model.
    frozen : bool
    extra : dict
        What the caller wants to find again.
    """

    options: Options
    keep: int
    title: str
    current: Scorer
    original: Scorer
    accepted: Scorer
    monitor: Monitor
    alarm: DriftAlarm
    history: History
    batches: int = 0
    rows: int = 0
    alarms: int = 0
    updates: int = 0
    adjusted: int = 0
    busy: int = 0
    moved: float = 0.0
    frozen: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begin(cls, scorer: Scorer, options: Options, keep: int, title: str) -> StreamState:
        """Return the state before the first batch."""
        original, n_groups = scorer.frozen(), len(scorer.groups)
        return cls(
            options,
            keep,
            title or type(scorer.model).__name__,
            scorer,
            original,
            original,
            Monitor.new(n_groups, float(options.half_life)),
            DriftAlarm.new(n_groups, float(options.alarm_rate)),
            History(),
        )

    # ---------------------------------------------------------------- one batch

    def take(self, X: Any, sensitive_features: Any) -> AdjustmentReport:
        """Score a batch, watch, adjust. A batch that cannot be scored raises, and changes nothing."""
        groups = self.current.encode(sensitive_features)
        if groups.n_rows == 0:
            raise ValueError("The batch has no rows.")
        learned = self._adopt(X, groups)
        scores, unit = self.current.score(X, groups), self.current.grid.to_unit
        before = unit(self.original.score(X, groups))
        monitor = self.monitor.after(unit(scores), before, groups)
        alarm, rings = self.alarm.after(before, groups)
        busy = self.options.alarm_batches if rings else max(0, self.busy - 1)
        updates = self.options.updates(busy=busy, frozen=self.frozen)
        if rings:
            monitor = monitor.shortened()
            if not self.frozen:
                self.current.hurry()
        if not learned:
            self.current.learn(X, groups, updates)
        held = not self.frozen and self.current.hold(self.accepted, self.options.trust)
        self.monitor, self.alarm, self.busy = monitor, alarm, busy
        self.batches, self.rows, self.alarms = self.batches + 1, self.rows + groups.n_rows, self.alarms + rings
        self.updates, self.adjusted = self.updates + updates, self.adjusted + bool(updates)
        self.moved = self.current.distance(self.accepted)
        report = self._report(scores, groups, rings=rings, updates=updates, held=held)
        self._remember(report)
        return report

    def _adopt(self, X: Any, groups: Groups) -> bool:
        """Take up groups that are new; return whether the batch was learned by that."""
        n_groups = len(groups)
        if n_groups == len(self.current.groups):
            return False
        self.current.take_up(X, groups)
        for still in (self.original, self.accepted):
            still.widen(self.current.groups)
        self.monitor, self.alarm = self.monitor.widened(n_groups), self.alarm.widened(n_groups)
        return True

    def _report(
        self, scores: NDArray[np.float64], groups: Groups, *, rings: bool, updates: int, held: bool
    ) -> AdjustmentReport:
        target = self.target()
        before, after = (self.monitor.distances(target, untouched=which) for which in (True, False))
        sizes, counts = self.monitor.sizes, groups.counts
        readings = tuple(
            GroupReading(name, int(counts[a]), float(sizes[a]), _number(before[a]), _number(after[a]))
            for a, name in enumerate(groups.names)
        )
        return AdjustmentReport(
            batch=self.batches,
            rows=self.rows,
            scores=scores,
            disparity_before=float(np.nansum(before)),
            disparity_after=float(np.nansum(after)),
            noise_floor=self.monitor.noise_floor(target),
            groups=readings,
            alarm=rings,
            evidence=1.0 if rings else self.alarm.evidence,
            updates=updates,
            moved=self.moved,
            at_border=held,
            mean_change=self.monitor.mean_change,
            agreement=self.monitor.mean_agreement,
            frozen=self.frozen,
        )

    def _remember(self, report: AdjustmentReport) -> None:
        self.history.add(
            time=now(),
            batch=report.batch,
            rows=report.rows,
            disparity=report.disparity_after,
            noise_floor=report.noise_floor,
            alarm=report.alarm,
            updates=report.updates,
            moved=report.moved,
            agreement=report.agreement,
        )

    def target(self) -> NDArray[np.float64] | None:
        """Distribution function of the fixed target at the monitor's edges; None where there is none."""
        points = self.original.target()
        if points is None:
            return None
        edges = np.linspace(0.0, 1.0, MONITOR_BINS + 1)
        return np.searchsorted(np.sort(points), edges, side="right") / len(points)

    # ---------------------------------------------------------------- in a checkpoint

    def version(self, number: int) -> Version:
        """Sum up what a version is."""
        target = self.target()
        disparity = float(np.nansum(self.monitor.distances(target)))
        floor = self.monitor.noise_floor(target)
        return Version(number, self.batches, self.rows, disparity, floor, self.moved, self.frozen)

    def schema(self, number: int) -> dict[str, Any]:
        """Return what a checkpoint says in JSON. No time: equal streams give equal checkpoints."""
        counters = {name: getattr(self, name) for name in _COUNTERS}
        return {
            **vars(self.version(number)),
            **counters,
            "options": self.options.to_dict(),
            "keep": self.keep,
            "title": self.title,
            "history": [self.history.stride, self.history.waiting],
            "extra": self.extra,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what it says in arrays."""
        arrays: dict[str, NDArray[Any]] = {
            "model": np.frombuffer(self.current.pack(), dtype=np.uint8),
            "history": self.history.array(),
        }
        if self.accepted is not self.original:
            arrays["accepted"] = np.frombuffer(self.accepted.pack(), dtype=np.uint8)
        arrays |= {f"monitor.{name}": held for name, held in self.monitor.arrays().items()}
        arrays |= {f"alarm.{name}": held for name, held in self.alarm.arrays().items()}
        return arrays

    @classmethod
    def restored(cls, held: Container, start: Scorer) -> StreamState:
        """Return the state of a checkpoint; ``start`` is the model that the stream began with."""
        schema, arrays = held.schema, held.arrays
        made = cls.begin(start, Options.from_dict(schema["options"]), int(schema["keep"]), str(schema["title"]))
        made.current = type(start).unpack(arrays["model"].tobytes())
        if "accepted" in arrays:
            made.accepted = type(start).unpack(arrays["accepted"].tobytes())
        for still in (made.original, made.accepted):
            still.widen(made.current.groups)
        made.current.settle(made.accepted, made.options.trust)
        made.monitor = Monitor(float(made.options.half_life), **_under(arrays, "monitor."))
        made.alarm = DriftAlarm(float(made.options.alarm_rate), **_under(arrays, "alarm."))
        made.history = History(arrays["history"], *schema["history"])
        for name in _COUNTERS:
            setattr(made, name, int(schema[name]))
        made.moved, made.frozen, made.extra = float(schema["moved"]), bool(schema["frozen"]), dict(schema["extra"])
        return made


_COUNTERS = ("batches", "rows", "alarms", "updates", "adjusted", "busy")


def now() -> str:
    """Return the time, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _under(arrays: dict[str, NDArray[Any]], start: str) -> dict[str, Any]:
    return {name[len(start) :]: held for name, held in arrays.items() if name.startswith(start)}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
