"""State of a stream: what decides its future, how a batch changes it, and how a checkpoint stores it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats
from fairtransport._columns import short_type
from fairtransport._sklearn import n_rows, take_rows
from fairtransport._validation import check_choice, check_count, check_real
from fairtransport.groups import UNKNOWN_GROUPS, Groups
from fairtransport.storage import Container
from fairtransport.stream._monitor import MONITOR_BINS, DriftAlarm, Monitor, weighted_mean
from fairtransport.stream._scorers import Scorer

# History of a stream in at most 2,000 points.

MAX_POINTS = 2000
_NAMES = ("batch", "rows", "disparity", "noise_floor", "alarm", "updates", "moved", "agreement")


class History:
    """History of a stream of any length in at most 2,000 points.

    Beyond that, neighbouring points are merged; an alarm of either is kept.
    """

    def __init__(self) -> None:
        self._points: list[dict[str, float]] = []
        self.stride, self.waiting = 1, 0
        self.times: dict[int, str] = {}

    @classmethod
    def from_array(cls, array: Floats, stride: int, waiting: int) -> History:
        """Return the history of a checkpoint, from what `array` returned and its attributes."""
        if array.shape[1:] != (len(_NAMES),) or len(array) > 2 * MAX_POINTS:
            raise ValueError(f"A history has at most {2 * MAX_POINTS} points of {len(_NAMES)} numbers.")
        history = cls()
        history._points = [dict(zip(_NAMES, row, strict=True)) for row in array.astype(np.float64).tolist()]
        history.stride = check_count(stride, name="stride")
        history.waiting = check_count(waiting, name="waiting", least=0)
        return history

    def __len__(self) -> int:
        return len(self._points)

    def add(self, *, time: str | None = None, **values: Any) -> None:
        """Add a batch, from values of which some have the names of a point."""
        point = {name: float(values[name]) for name in _NAMES}
        self._points.append(_merged(self._points.pop(), point) if self.waiting else point)
        self.waiting = (self.waiting + 1) % self.stride
        if time is not None:
            self.times[int(point["batch"])] = time
        if len(self._points) > MAX_POINTS and not self.waiting:
            pairs = zip(self._points[0::2], self._points[1::2], strict=False)
            last = self._points[-1:] if len(self._points) % 2 else []
            self._points = [*(_merged(*pair) for pair in pairs), *last]
            self.waiting = self.stride if last else 0
            self.stride *= 2
        if len(self.times) > 2 * MAX_POINTS:
            self.times = self.known_times()

    def known_times(self) -> dict[int, str]:
        """Return the times of the points, by batch."""
        batches = (int(point["batch"]) for point in self._points)
        return {batch: self.times[batch] for batch in batches if batch in self.times}

    def array(self) -> Floats:
        """Return all points as an array of shape (n_points, 8)."""
        return np.array([[*point.values()] for point in self._points]).reshape(-1, len(_NAMES))

    def points(self) -> list[dict[str, Any]]:
        """Return all points as dicts; ``time`` is None where it is unknown."""
        points = []
        for point in self._points:
            counts = {name: int(point[name]) for name in ("batch", "rows", "updates")}
            time = self.times.get(counts["batch"])
            points.append({**point, **counts, "alarm": bool(point["alarm"]), "time": time})
        return points


def _merged(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    alarm, updates = max(first["alarm"], second["alarm"]), first["updates"] + second["updates"]
    return {**second, "alarm": alarm, "updates": updates}


# Report on one batch of a stream.


@dataclass(frozen=True)
class GroupReading:
    """Disparity of one group, as the monitor sees it.

    Attributes
    ----------
    name, rows
        Name of the group, and its rows in this batch.
    size : float
        Effective sample size of the group's histogram.
    before, after : float or None
        Wasserstein-1 distance to the target, of the original model's scores and of the returned scores; None as long as
        no row of the group was seen.
    """

    name: str
    rows: int
    size: float
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False)
class AdjustmentReport:
    """Result of `ContinualAdjuster.adjust` for one batch.

    Attributes
    ----------
    batch, rows, rows_without_group : int
        Number of the batch, from 1, rows so far, and those of them that belong to no group that the model knows.
    scores : ndarray of shape (n_rows,)
        Scores of this batch, by the model before it was adjusted to the batch.
    disparity_before, disparity_after : float
        Mean over pairs of groups of the Wasserstein-1 distance between their scores, of the original model's scores and
        of the returned scores. Both are estimated from the monitor's histograms, not from this batch alone.
    noise_floor : float
        Expected disparity of groups of these sizes that all have the same distribution.
    groups : tuple of GroupReading
        The distance of each group to the target.
    alarm : bool
        Whether the drift alarm was raised by this batch.
    evidence : float
        Evidence for drift, as a share of what raises the alarm.
    updates, skipped_updates : int
        Updates of the model for this batch, and those so far for which no step brought the groups closer.
    stalled : bool
        Whether there was no such step for any update of this batch: the model did not follow it.
    moved : float
        Distance to the last accepted model, in the unit of ``trust_radius`` of `ContinualAdjuster`.
    at_border, frozen : bool
        Whether the trust region limited the update, and whether adjusting is suspended.
    mean_change, agreement : float
        Mean absolute difference between the returned scores and the original model's, and share of rows for which both
        lie on the same side of the middle of the range.
    """

    batch: int
    rows: int
    rows_without_group: int
    scores: Floats = field(repr=False)  # a repr may end up in a log
    disparity_before: float
    disparity_after: float
    noise_floor: float
    groups: tuple[GroupReading, ...] = field(repr=False)
    alarm: bool
    evidence: float
    updates: int
    skipped_updates: int
    stalled: bool
    moved: float
    at_border: bool
    mean_change: float
    agreement: float
    frozen: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the scores and the names of groups, as JSON can represent it."""
        names = [one.name for one in fields(self) if one.name not in {"scores", "groups"}]
        sizes = [round(group.size, 1) for group in self.groups]
        return {**{name: getattr(self, name) for name in names}, "sizes": sizes}


# Options of a `ContinualAdjuster`, checked.


@dataclass(frozen=True)
class AdjusterOptions:
    """Settings by which a stream is monitored and the model adjusted; see `ContinualAdjuster` for the fields."""

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
        for name in ("quiet_updates", "alarm_updates", "alarm_batches"):
            check_count(getattr(self, name), name=name, least=0)
        check_real(self.trust_radius, name="trust_radius", strict=True, finite=False)
        check_real(self.monitor_half_life, name="monitor_half_life", strict=True)
        if self.checkpoint_every is not None:
            check_count(self.checkpoint_every, name="checkpoint_every")
        check_count(self.keep_checkpoints, name="keep_checkpoints")
        check_choice(self.unknown_group, UNKNOWN_GROUPS, name="unknown_group")

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON can represent them: an infinite radius becomes None."""
        return {**asdict(self), "trust_radius": None if self.trust_radius == float("inf") else self.trust_radius}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> AdjusterOptions:
        radius = stored["trust_radius"]
        return cls(**{**stored, "trust_radius": float("inf") if radius is None else radius})


@dataclass(frozen=True)
class Version:
    """Summary of a checkpoint, to which `ContinualAdjuster.roll_back` can return.

    Attributes
    ----------
    version, batch, rows : int
        Number of the checkpoint; batches and rows seen before it.
    disparity, noise_floor, moved : float
        Disparity of the returned scores and its noise floor; distance to the last accepted model.
    frozen : bool
        Whether adjusting was suspended.
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
    """State of a stream between two batches."""

    options: AdjusterOptions
    title: str
    current: Scorer
    original: Scorer
    accepted: Scorer
    monitor: Monitor
    alarm: DriftAlarm
    history: History
    batches: int = 0
    rows: int = 0
    rows_without_group: int = 0
    alarms: int = 0
    updates: int = 0
    skipped_updates: int = 0
    adjusted_batches: int = 0
    alarm_batches_left: int = 0
    moved: float = 0.0
    frozen: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(cls, scorer: Scorer, options: AdjusterOptions, title: str) -> StreamState:
        """Return the state before the first batch."""
        original, n_groups = scorer.frozen(), len(scorer.groups)
        return cls(
            options,
            title or type(scorer.model).__name__,
            current=scorer,
            original=original,
            accepted=original,
            monitor=Monitor.new(n_groups, float(options.monitor_half_life)),
            alarm=DriftAlarm.new(n_groups, float(options.alarm_rate)),
            history=History(),
        )

    def process(self, X: Any, sensitive_features: Any, *, dry: bool = False) -> AdjustmentReport:
        """Score a batch, monitor the scores, and adjust the model; a dry run, or one that fails, changes nothing."""
        attributes = dict(vars(self))  # arrays are never changed in place
        restore = [scorer.save_point() for scorer in (self.current, self.original, self.accepted)]
        done = False
        try:
            with np.errstate(all="ignore"):  # large numbers; what becomes of them is checked
                report = self._process(X, sensitive_features)
            done = not dry
        finally:
            if not done:
                vars(self).update(attributes)
                for undo in restore:
                    undo()
        if done:
            self.history.add(time=utc_now(), **(vars(report) | {"disparity": report.disparity_after}))
        return report

    def _process(self, X: Any, sensitive_features: Any) -> AdjustmentReport:
        if sensitive_features is None and not self.current.needs_groups:
            groups = self.current.groups  # of which each row is in none
            nowhere = np.full(n_rows(X), len(groups), dtype=short_type(len(groups)))
            groups = replace(groups, memberships=(nowhere,) * len(groups.memberships))
        else:
            groups = self.current.encode(sensitive_features, self.options.unknown_group)
        if groups.n_rows == 0:
            raise ValueError("The batch has no rows.")
        learned = self._adopt_groups(X, groups)
        scores, to_unit = self.current.score(X, groups), self.current.grid.to_unit
        original_scores = to_unit(self.original.score(X, groups) if self.current.learns else scores)
        monitor = self.monitor.after(to_unit(scores), original_scores, groups)
        alarm, raised = self.alarm.after(original_scores, groups)
        alarm_batches_left = self.options.alarm_batches if raised else max(0, self.alarm_batches_left - 1)
        known, updates = groups.has_group, 0
        if self.current.learns and not self.frozen and known.any():
            updates = self.options.alarm_updates if alarm_batches_left > 0 else self.options.quiet_updates
        if raised:
            monitor = monitor.shortened()
            if not self.frozen:
                self.current.discount_past()
        before = self.current.n_skipped
        if not learned and known.any():
            self.current.learn(*_with_group(X, groups), updates)
        skipped = self.current.n_skipped - before
        at_border = not self.frozen and self.current.project(self.accepted, self.options.trust_radius)
        self.monitor, self.alarm, self.alarm_batches_left = monitor, alarm, alarm_batches_left
        self.batches, self.rows, self.alarms = self.batches + 1, self.rows + groups.n_rows, self.alarms + raised
        self.rows_without_group += int(np.count_nonzero(~known)) if len(groups) else 0
        updates -= skipped
        self.updates, self.adjusted_batches = self.updates + updates, self.adjusted_batches + bool(updates)
        self.skipped_updates += skipped
        self.moved = self.current.distance(self.accepted)
        stalled = skipped > 0 and updates == 0
        return self._report(scores, groups, raised=raised, updates=updates, stalled=stalled, at_border=at_border)

    def _adopt_groups(self, X: Any, groups: Groups) -> bool:
        """Adopt groups that are new in this batch; return whether the model has learned the batch by that."""
        n_groups = len(groups)
        if n_groups == len(self.current.groups):
            return False
        self.current.learn_new_groups(*_with_group(X, groups))
        for scorer in (self.original, self.accepted):
            scorer.add_groups(self.current.groups)
        self.monitor, self.alarm = self.monitor.widened(n_groups), self.alarm.widened(n_groups)
        return True

    def _report(
        self, scores: Floats, groups: Groups, *, raised: bool, updates: int, stalled: bool, at_border: bool
    ) -> AdjustmentReport:
        monitor, target = self.monitor, self.target_cdf()
        distances = (monitor.distances(target, original=True), monitor.distances(target))
        before, after = ([None if np.isnan(one) else float(one) for one in each] for each in distances)
        counts, sizes = groups.counts.tolist(), monitor.sizes.tolist()
        return AdjustmentReport(
            batch=self.batches,
            rows=self.rows,
            rows_without_group=self.rows_without_group,
            scores=scores,
            disparity_before=monitor.disparity(original=True),
            disparity_after=monitor.disparity(),
            noise_floor=monitor.noise_floor(),
            groups=tuple(map(GroupReading, groups.names, counts, sizes, before, after)),
            alarm=raised,
            evidence=1.0 if raised else self.alarm.evidence,
            updates=updates,
            skipped_updates=self.skipped_updates,
            stalled=stalled,
            moved=self.moved,
            at_border=at_border,
            mean_change=weighted_mean(monitor.change),
            agreement=weighted_mean(monitor.agreement),
            frozen=self.frozen,
        )

    def target_cdf(self) -> Floats | None:
        """Return the distribution function of the fixed target at the monitor's bin edges; None without a target."""
        points = self.original.target()
        if points is None:
            return None
        edges = np.linspace(0.0, 1.0, MONITOR_BINS + 1)
        return np.searchsorted(np.sort(points), edges, side="right") / len(points)

    def accept(self, scorer: Scorer) -> None:
        """Make a model the center of the trust region, and project the current one into it."""
        self.accepted = scorer
        self.current.project(scorer, self.options.trust_radius)
        self.moved = self.current.distance(scorer)

    def version(self, number: int) -> Version:
        """Return the summary of the state as a checkpoint of this number."""
        disparity, noise_floor = self.monitor.disparity(), self.monitor.noise_floor()
        return Version(number, self.batches, self.rows, disparity, noise_floor, self.moved, self.frozen)

    def schema(self, number: int) -> dict[str, Any]:
        """Return the JSON part of a checkpoint; it has no time, so that equal streams give equal checkpoints."""
        return {
            **asdict(self.version(number)),
            **{name: getattr(self, name) for name in _COUNTERS},
            "options": self.options.to_dict(),
            "title": self.title,
            "history": [self.history.stride, self.history.waiting],
            "extra": self.extra,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        models = {"model": self.current} | ({} if self.accepted is self.original else {"accepted": self.accepted})
        return {
            **{name: np.frombuffer(scorer.pack(), dtype=np.uint8) for name, scorer in models.items()},
            "history": self.history.array(),
            **{f"monitor.{name}": array for name, array in self.monitor.arrays().items()},
            **{f"alarm.{name}": array for name, array in self.alarm.arrays().items()},
        }

    @classmethod
    def from_checkpoint(cls, checkpoint: Container, start: Scorer) -> StreamState:
        """Return the state that a checkpoint stores; ``start`` is the model at the start of the stream."""
        schema, arrays = checkpoint.schema, checkpoint.arrays
        state = cls.start(start, AdjusterOptions.from_dict(schema["options"]), str(schema["title"]))
        state.current = type(start).unpack(arrays["model"].tobytes())
        if "accepted" in arrays:
            state.accepted = type(start).unpack(arrays["accepted"].tobytes())
        for scorer in (state.original, state.accepted):
            scorer.add_groups(state.current.groups)
        if not state.current.stores_projection:
            state.current.project(state.accepted, state.options.trust_radius)
        for name in ("monitor", "alarm"):
            empty = getattr(state, name).widened(len(state.current.groups))
            setattr(state, name, replace(empty, **_like(empty.arrays(), arrays, f"{name}.")))
        state.history = History.from_array(arrays["history"], *schema["history"])
        for name in _COUNTERS:
            setattr(state, name, int(schema[name]))
        state.moved, state.frozen, state.extra = float(schema["moved"]), bool(schema["frozen"]), dict(schema["extra"])
        return state


def _with_group(X: Any, groups: Groups) -> tuple[Any, Groups]:
    known = groups.has_group
    if known.all():
        return X, groups
    rows = np.flatnonzero(known)
    return take_rows(X, rows), groups.select(rows)


_COUNTERS = (
    *("batches", "rows", "rows_without_group", "alarms", "updates", "skipped_updates", "adjusted_batches"),
    "alarm_batches_left",
)


def utc_now() -> str:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _like(expected: dict[str, NDArray[Any]], arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
    """Return the arrays of a checkpoint with a prefix; raise unless they have the expected names, types and shapes."""
    stored = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    kinds = {name: (array.shape, array.dtype) for name, array in expected.items()}
    if {name: (array.shape, array.dtype) for name, array in stored.items()} != kinds:
        raise ValueError("The arrays of the checkpoint do not fit its groups.")
    for name, array in stored.items():
        if np.isnan(array).any() or (name != "capitals" and array.min(initial=0) < 0):
            raise ValueError("The arrays of the checkpoint are not counts, sums and capitals.")
    return stored
