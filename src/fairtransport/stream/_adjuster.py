"""Continual adjustment of a model to a stream without labels."""

from __future__ import annotations

import os
import threading
import time
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._validation import check_count
from fairtransport.persistence import unpack_model
from fairtransport.storage import ModelFileError
from fairtransport.stream._line_file import StoreError
from fairtransport.stream._monitor import MONITOR_BINS
from fairtransport.stream._scorers import Scorer, scorer_for
from fairtransport.stream._state import AdjusterOptions, StreamState, Version, utc_now
from fairtransport.stream._store import Store

if TYPE_CHECKING:
    from fairtransport.stream._state import AdjustmentReport

PAGE_BINS = 50  # of the histograms on the live page
_EDGES = slice(None, None, MONITOR_BINS // PAGE_BINS)
_ROLL_BACK = "roll back to "
_CLOCK_INTERVAL = 10.0  # seconds between two writes of the times


def _of_state(name: str, text: str) -> Any:
    """Return a read-only property that is an attribute of the state, or of its options."""
    return property(attrgetter(f"_state.{name}"), doc=text)


class ContinualAdjuster:
    r"""Score a stream with a fitted model, monitor its disparity, and adjust the model when scores drift.

    Parameters
    ----------
    model : estimator
        Fitted linear model or quantile repair, of which the adjuster works on a copy; or any other model that has
        scores, such as a blind repair, boosted trees or a pipeline, which it scores and monitors without adjusting.
    store : path, optional
        Folder for checkpoints and the journal. Without one, nothing is written, and versions are kept in memory.
    alarm_rate : float, default=0.001
        Largest expected number of false alarms per batch, whatever the distribution of the scores.
    quiet_updates, alarm_updates : int, default=1 and 10
        Updates of the model per batch, in general and after an alarm. A repair is recomputed from its counts, so any
        number above 0 has the same effect; after an alarm it discounts earlier rows.
    alarm_batches : int, default=60
        Number of batches for which an alarm lasts.
    trust_radius : float, optional
        Radius of the trust region around the last accepted model; ``inf`` for none. See `accept`. For linear models it
        is the norm of the change of the weights, relative to that of the weights, 0.5 by default; for repairs the mean
        change of the scores, relative to their range, in the group where it is largest, 0.2 by default.
    monitor_half_life : float, default=1000
        Rows of its group after which a row counts half in the monitor; the model has its own ``online.half_life``.
    checkpoint_every : int or None, default=50
        Batches between two checkpoints; None to write them only when `checkpoint` is called.
    keep_checkpoints : int, default=5
        Number of checkpoints to keep.
    unknown_group : {"error", "pooled", "common"}, default="error"
        Whether rows without a group that the model knows raise an error, are scored as everyone pooled and neither
        monitored nor learned from, or belong to the largest group. A model that does not need the group scores them.
    title : str, optional
        Title of the live page.

    Attributes
    ----------
    batches, rows, rows_without_group, alarms : int
        Batches, rows, those of them without a known group, and alarms so far; after `resume`, up to the checkpoint.
    frozen : bool
        Whether adjusting is suspended.
    model : estimator
        A copy of the current model.
    extra : dict
        Content to store in the next checkpoint, as JSON can represent it.
    lost : list of dict
        After `resume`, journal entries after the checkpoint, whose batches have to be processed again.

    Notes
    -----
    The alarm monitors the scores of the original model, which does not change, so that adjusting cannot raise it. An
    alarm says that the distribution of a group's scores has changed. A change of the size of a group does not raise it.

    The adjuster is deterministic, and a checkpoint contains everything that determines its future: a run that was
    killed and resumed returns the same scores and writes the same journal and model as one that was not, to the last
    bit, on the same machine.

    Examples
    --------
    >>> import numpy as np, fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, gap):
    ...     group = rng.integers(2, size=n)
    ...     return rng.beta(2 + gap * group, 3), group
    >>> repair = ft.QuantileRepair()
    >>> scores, group = draw(5000, gap=1.0)
    >>> adjuster = ft.stream.ContinualAdjuster(repair.fit(scores, sensitive_features=group))
    >>> reports = []
    >>> for batch in range(80):
    ...     scores, group = draw(100, gap=1.0 if batch < 20 else 4.0)
    ...     reports.append(adjuster.adjust(scores, sensitive_features=group))
    >>> [report.batch for report in reports if report.alarm]
    [21]
    >>> reports[-1].disparity_after < reports[-1].disparity_before / 2
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        store: str | os.PathLike[str] | None = None,
        alarm_rate: float = 0.001,
        quiet_updates: int = 1,
        alarm_updates: int = 10,
        alarm_batches: int = 60,
        trust_radius: float | None = None,
        monitor_half_life: float = 1000.0,
        checkpoint_every: int | None = 50,
        keep_checkpoints: int = 5,
        unknown_group: str = "error",
        title: str = "",
    ) -> None:
        scorer = scorer_for(model)
        options = AdjusterOptions(
            alarm_rate=alarm_rate,
            quiet_updates=quiet_updates,
            alarm_updates=alarm_updates,
            alarm_batches=alarm_batches,
            trust_radius=scorer.default_radius if trust_radius is None else trust_radius,
            monitor_half_life=monitor_half_life,
            checkpoint_every=checkpoint_every,
            keep_checkpoints=keep_checkpoints,
            unknown_group=unknown_group,
        )
        if store is None:
            self._set_state(None, StreamState.start(scorer.copy(), options, title))
            self.checkpoint()
            return
        content, opened = scorer.pack(), Store(store, keep=keep_checkpoints)
        try:
            opened.start(content)
            self._set_state(opened, StreamState.start(type(scorer).unpack(content), options, title))
            self.checkpoint()
        except BaseException:
            opened.close()
            raise

    def _set_state(self, store: Store | None, state: StreamState, version: int = -1) -> None:
        self._store, self._state, self._version = store, state, version
        self._mutex = threading.RLock()
        self._in_memory: dict[int, tuple[Version, Scorer]] = {}  # versions, without a store
        self._saved = True  # whether the last checkpoint is up to date
        self._seconds, self._clock_written = 0.0, time.monotonic()

    def adjust(
        self, X: Any, *, sensitive_features: Any = None, note: dict[str, Any] | None = None, durable: bool = False
    ) -> AdjustmentReport:
        """Score a batch with the current model, then adjust the model to it.

        Parameters
        ----------
        X : array-like or table of n rows
            Features of the model; for a `QuantileRepair`, the scores to repair.
        sensitive_features : column, table or Groups
            The columns of ``fit``. By ``new`` of the model's ``groups``, an unknown group raises an error or is
            adopted. A batch with a new group is learned before it is scored. A blind repair needs none: rows without a
            known group are scored and not monitored.
        note : dict, optional
            Further entries for the journal.
        durable : bool, default=False
            Flush the journal to the disk before returning.

        Returns
        -------
        AdjustmentReport

        Raises
        ------
        ValueError
            If the batch cannot be scored; the adjuster is unchanged.
        OSError, StoreError
            If the store cannot be written, or another program has changed it. The adjuster is closed, and earlier
            checkpoints are intact: resume.
        """
        with self._mutex:
            self._check_open()
            start = time.perf_counter()
            report = self._state.process(X, sensitive_features)
            self._add_to_journal({**report.to_dict(), **(note or {})}, durable=durable)
            self._seconds += time.perf_counter() - start
            every = self._state.options.checkpoint_every
            if every is not None and self._state.batches % every == 0:
                self.checkpoint()
            return report

    def dry_run(self, X: Any, sensitive_features: Any) -> AdjustmentReport:
        """Return the report that `adjust` would return for a batch, or raise its error, without changing anything."""
        with self._mutex:
            return self._state.process(X, sensitive_features, dry=True)

    def note(self, *, durable: bool = False, **entry: Any) -> None:
        """Add an entry to the journal that does not belong to a batch."""
        with self._mutex:
            self._check_open()
            self._add_to_journal({"batch": self.batches, **entry}, durable=durable)

    def _add_to_journal(self, entry: dict[str, Any], *, durable: bool = False) -> None:
        self._saved = False
        if self._store is None:
            return
        try:
            self._store.note(entry, durable=durable)
        except (OSError, StoreError):  # the journal may end in an incomplete line, which only a resumed run repairs
            self._store.close()
            raise

    def _check_open(self) -> None:
        if self._store is not None and not self._store.is_open:
            raise StoreError("The adjuster is closed. Continue with ContinualAdjuster.resume(store).")

    batches = _of_state("batches", "Number of batches so far.")
    rows = _of_state("rows", "Number of rows so far.")
    rows_without_group = _of_state("rows_without_group", "Rows so far that belong to no group that the model knows.")
    alarms = _of_state("alarms", "Number of alarms so far.")
    frozen = _of_state("frozen", "Whether adjusting is suspended.")
    unknown_group = _of_state("options.unknown_group", "What happens to rows without a known group; see the parameter.")

    @property
    def extra(self) -> dict[str, Any]:
        """Content to store in the next checkpoint."""
        return self._state.extra

    @extra.setter
    def extra(self, content: dict[str, Any]) -> None:
        self._state.extra = content

    @property
    def model(self) -> Any:
        """A copy of the current model."""
        with self._mutex:
            return self._state.current.copy().model

    def freeze(self) -> None:
        """Suspend adjusting; scoring and monitoring continue."""
        self._record_action("freeze", frozen=True)

    def thaw(self) -> None:
        """Resume adjusting."""
        self._record_action("thaw", frozen=False)

    def accept(self) -> None:
        """Make the current model the center of the trust region."""
        with self._mutex:
            self._check_may_act()
            self._accept_current()
            self._record_action("accept", frozen=self.frozen)

    def roll_back(self, version: int, *, freeze: bool = True) -> None:
        """Return to the model of an earlier checkpoint, and make it the center of the trust region.

        Parameters
        ----------
        version : int
            Number of one of `versions`.
        freeze : bool, default=True
            Suspend adjusting. Otherwise the model is adjusted from there on, and moves in the same direction again if
            the stream does not change.
        """
        with self._mutex:
            self._check_may_act()
            scorer = self._load_version(check_count(version, name="version", least=0))
            scorer.add_groups(self._state.current.groups)
            self._state.current = scorer
            self._accept_current()
            self._record_action(f"{_ROLL_BACK}{version}", frozen=freeze)

    def _accept_current(self) -> None:
        accepted = self._state.current.frozen()
        # A file summarizes the maps of a repair; a resumed run, which reads it, must not differ from this one.
        self._state.accept(accepted if self._store is None else type(accepted).unpack(accepted.pack()))

    def _check_may_act(self) -> None:
        """Raise if batches have to be processed again first, as they were processed before."""
        self._check_open()
        if self._store is not None and "operator" not in (self.lost or [{}])[0]:
            self._store.journal.check_may_replace()

    def _record_action(self, action: str, *, frozen: bool) -> None:
        with self._mutex:
            self._check_may_act()
            self._state.frozen = frozen
            self._add_to_journal({"batch": self.batches, "operator": action, "frozen": frozen})
            self.checkpoint()

    def repeat_action(self, entry: dict[str, Any]) -> None:
        """Repeat an action of an operator that the journal has after the checkpoint."""
        action, frozen = str(entry["operator"]), bool(entry["frozen"])
        if action.startswith(_ROLL_BACK):
            self.roll_back(int(action.removeprefix(_ROLL_BACK)), freeze=frozen)
        else:
            {"freeze": self.freeze, "thaw": self.thaw, "accept": self.accept}[action]()

    def versions(self) -> list[Version]:
        """Return the versions that `roll_back` can return to, oldest first."""
        with self._mutex:
            if self._store is None:
                return [version for version, _ in self._in_memory.values()]
            versions = []
            for number in self._store.versions():
                try:
                    schema = self._store.read(number).schema
                except (ModelFileError, OSError):
                    continue  # damaged; `resume` warns
                versions.append(Version(**{name: schema[name] for name in Version.__dataclass_fields__}))
            return versions

    def _load_version(self, version: int) -> Scorer:
        if self._store is not None:
            content = self._store.read(version).arrays["model"].tobytes()
            return type(self._state.current).unpack(content)
        if version not in self._in_memory:
            raise StoreError(f"There is no version {version}. Available: {', '.join(map(str, self._in_memory))}.")
        return self._in_memory[version][1].copy()

    def checkpoint(self) -> int:
        """Write a checkpoint now and return its version."""
        with self._mutex:
            self._check_open()
            version = self._version + 1
            if self._store is None:
                self._in_memory[version] = self._state.version(version), self._state.current.copy()
                for old in list(self._in_memory)[: -self._state.options.keep_checkpoints]:
                    del self._in_memory[old]
            else:
                try:
                    self._store.write(version, self._state.schema(version), self._state.arrays())
                except OSError:  # after a failed flush, the next one may succeed without having written anything
                    self._store.close()
                    raise
            self._version, self._saved = version, True
            if time.monotonic() - self._clock_written > _CLOCK_INTERVAL:
                self._write_clock()
            return version

    @staticmethod
    def is_store(store: str | os.PathLike[str]) -> bool:
        """Return whether a folder has a checkpoint to resume from."""
        folder = Path(store)
        return (folder / "model.ft").exists() and any(folder.glob("checkpoint-*"))

    @classmethod
    def resume(cls, store: str | os.PathLike[str], *, model: Any = None) -> Self:
        """Continue from the last checkpoint of a store.

        Parameters
        ----------
        store : path
        model : estimator, optional
            The model that the stream was started with, to check that the store belongs to it.

        Raises
        ------
        StoreError
            If the folder is not a store, is used by another process, belongs to another model, or has no intact
            checkpoint. A damaged one is only warned of, by a `StoreWarning`, if an earlier one is intact.
        """
        folder = Path(store)
        if not folder.is_file() and not (folder / "model.ft").exists():  # do not create files in an unrelated folder
            raise StoreError("The folder is not a store: it has no model.ft. Check the path.")
        opened = Store(store)
        try:
            content = opened.model()
            if model is not None:
                opened.check_model(scorer_for(model).pack())
            checkpoint = opened.newest()
            start = type(scorer_for(unpack_model(content))).unpack(content)
            try:
                state = StreamState.from_checkpoint(checkpoint, start)
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    "The checkpoint is intact, but was written by a version of fairtransport that this one cannot "
                    f"continue from ({type(error).__name__})."
                ) from None
            opened.keep = state.options.keep_checkpoints
            opened.prune()
            adjuster = cls.__new__(cls)
            adjuster._set_state(opened, state, int(checkpoint.schema["version"]))  # noqa: SLF001 - the same class
            adjuster._seconds, state.history.times = opened.read_clock()  # noqa: SLF001
        except BaseException:
            opened.close()
            raise
        return adjuster

    @property
    def lost(self) -> list[dict[str, Any]]:
        """Journal entries after the checkpoint whose batches have to be processed again."""
        return [] if self._store is None else list(self._store.journal.pending)

    def _write_clock(self) -> None:
        if self._store is not None:
            self._clock_written = time.monotonic()
            self._store.write_clock(self._seconds, self._state.history.known_times())

    def snapshot(self) -> dict[str, Any]:
        """Return the content of the live page, as JSON can represent it; may be called from another thread."""
        with self._mutex:
            state, points = self._state, np.linspace(0.0, 1.0, PAGE_BINS + 1)
            names, shares = list(state.current.groups.names), state.monitor.shares(PAGE_BINS).tolist()
            target, duals = state.target_cdf(), state.current.duals(points)
            spent = {name: getattr(state, name) for name in ("updates", "skipped_updates")}
            return {
                "title": state.title,
                "updated": utc_now(),
                "rows": state.rows,
                "rows_without_group": state.rows_without_group,
                "batches": state.batches,
                "rejected": int(state.extra.get("rejected", 0)),
                "version": self._version,
                "frozen": state.frozen,
                "groups": names,
                "sizes": [round(float(size), 1) for size in state.monitor.sizes],
                "edges": state.current.grid.from_unit(points).tolist(),
                "histograms": dict(zip(names, shares, strict=True)),
                # An atom at 0 is in the first bin.
                "target": None if target is None else np.diff([0.0, *target[_EDGES][1:]]).tolist(),
                "history": state.history.points(),
                "duals": None if duals is None else {"grid": points.tolist(), "names": names, "values": duals.tolist()},
                "spent": {**spent, "batches_adjusted": state.adjusted_batches, "seconds": round(self._seconds, 3)},
                "alarm_rate": float(state.options.alarm_rate),
            }

    def close(self) -> None:
        """Write a checkpoint if anything has changed since the last one, and release the store."""
        with self._mutex:
            if self._store is None or not self._store.is_open:
                return
            try:
                if not self._saved:
                    self.checkpoint()
                self._write_clock()
            finally:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._store is not None:  # a resumed run continues from the last checkpoint
            self._store.close()
            return
        self.close()
