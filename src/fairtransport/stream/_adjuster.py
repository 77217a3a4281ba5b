"""Keep a model fair while the world changes, without labels: `ContinualAdjuster`."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fairtransport._validation import check_count
from fairtransport.persistence import unpack_model
from fairtransport.storage import ModelFileError
from fairtransport.stream._options import Options
from fairtransport.stream._snapshot import snapshot_of
from fairtransport.stream._state import StreamState, Version
from fairtransport.stream._store import Store, StoreError
from fairtransport.stream.scorers import scorer_for

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from fairtransport.stream._report import AdjustmentReport
    from fairtransport.stream.scorers import Scorer

__all__ = ["ContinualAdjuster"]

_CLOCK_EVERY = 10.0  # seconds between two notes of the times


class ContinualAdjuster:
    r"""Score a stream with a model, watch it, and adjust the model where that is needed.

    Parameters
    ----------
    model : COT, DOT, QuantileRepair or QuantileRepairClassifier
        Fitted. The adjuster works on a copy.
    store : path, optional
        A folder, made if it does not exist, for checkpoints and a journal. Without one nothing is written, and versions
        are kept in memory.
    alarm_rate : float, default=0.001
        At most so many false alarms a batch are expected, whatever the scores are like; see `stream.alarm`.
    quiet_updates, alarm_updates : int, default 1 and 10
        Updates that a batch is worth while all is quiet, and after an alarm. A repair follows its counts, so any number
        above 0 means the same to it; an alarm makes it forget.
    alarm_batches : int, default=60
        For how many batches an alarm lasts.
    trust : float, optional
        Radius of the trust region around the last accepted model, which is never left; ``inf`` for none. COT and DOT:
        length of the change of the weights, as a share of the weights' length, .5 by default. Repairs: mean change of
        the repaired scores as a share of their range, in the group where it is largest, .2 by default. See `accept`.
    half_life : float, default=1000
        Of the monitor: after so many rows of its group a row counts half.
    every : int or None, default=50
        Batches between two checkpoints; None: only when `checkpoint` is called.
    keep : int, default=5
        Versions that are kept.
    title : str, optional
        For the page.

    Attributes
    ----------
    batches, rows : int
        Seen so far: after `resume`, what the checkpoint knows of. Go on with the next batch after these.
    frozen : bool
    extra : dict
        Whatever the caller wants in the next checkpoint, as JSON can hold it.

    Notes
    -----
    The alarm watches the scores of the model as it was given, which does not change, so that adjusting cannot ring it.
    It says that a group's scores are distributed differently than before; that the share of a group changes does not
    ring it.

    No chance is involved, and a checkpoint holds everything that decides what comes: a run that was killed and resumed
    gives the scores, the journal and the model of one that was not, bit by bit, on the same machine.

    Examples
    --------
    >>> import numpy as np, fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> def world(n, gap):
    ...     group = rng.integers(2, size=n)
    ...     return rng.beta(2 + gap * group, 3), group
    >>> repair = ft.QuantileRepair()
    >>> scores, group = world(5000, gap=1.0)
    >>> adjuster = ft.stream.ContinualAdjuster(repair.fit(scores, sensitive_features=group))
    >>> reports = []
    >>> for batch in range(80):
    ...     scores, group = world(100, gap=1.0 if batch < 20 else 4.0)
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
        trust: float | None = None,
        half_life: float = 1000.0,
        every: int | None = 50,
        keep: int = 5,
        title: str = "",
    ) -> None:
        scorer = scorer_for(model)
        radius = scorer.radius if trust is None else trust
        options = Options(alarm_rate, quiet_updates, alarm_updates, alarm_batches, radius, half_life, every)
        check_count(keep, name="keep")
        if store is None:
            self._open(None, StreamState.begin(scorer.copy(), options, keep, title))
            self.checkpoint()
            return
        content, opened = scorer.pack(), Store(store, keep=keep)
        try:
            opened.begin(content)
            self._open(opened, StreamState.begin(type(scorer).unpack(content), options, keep, title))
            self.checkpoint()
        except BaseException:
            opened.close()
            raise

    def _open(self, store: Store | None, state: StreamState, version: int = -1) -> None:
        self._store, self._state, self._version = store, state, version
        self._mutex = threading.RLock()
        self._kept: dict[int, tuple[Version, Scorer]] = {}  # without a store
        self._written = True  # whether all that happened is in a checkpoint
        self._seconds, self._noted = 0.0, time.monotonic()

    # ---------------------------------------------------------------- one batch

    def adjust(self, X: Any, *, sensitive_features: Any, note: dict[str, Any] | None = None) -> AdjustmentReport:
        """Score a batch with the current model, watch, adjust.

        Parameters
        ----------
        X : array-like or table of n rows
            Features as the model takes them; for a `QuantileRepair`, the scores before repair.
        sensitive_features : column, table or Groups
            The columns of ``fit``. A group that the model does not know raises, or is adopted, as its ``new_groups``
            says. A batch that brings a new group is learned first and scored afterwards.
        note : dict, optional
            What else the journal's line should say.

        Returns
        -------
        AdjustmentReport

        Raises
        ------
        ValueError
            For a batch that cannot be scored; nothing is changed by it.
        OSError
            When the journal or a checkpoint cannot be written. What was written before is whole; make room and resume.
        """
        with self._mutex:
            self._check_open()
            began = time.perf_counter()
            report = self._state.take(X, sensitive_features)
            self._write_down({**report.to_dict(), **(note or {})})
            self._seconds += time.perf_counter() - began
            every = self._state.options.every
            if every is not None and self._state.batches % every == 0:
                self.checkpoint()
            return report

    def note(self, **entry: Any) -> None:
        """Add a line to the journal that is about no batch of its own."""
        with self._mutex:
            self._check_open()
            self._write_down({"batch": self.batches, **entry})

    def _write_down(self, entry: dict[str, Any]) -> None:
        self._written = False
        if self._store is None:
            return
        try:
            self._store.note(entry)
        except OSError:  # the journal may end in half a line: only a resumed run can go on
            self._store.close()
            raise

    def _check_open(self) -> None:
        if self._store is not None and not self._store.is_open:
            raise StoreError("The adjuster is closed. Go on with ContinualAdjuster.resume(store).")

    # ---------------------------------------------------------------- what an operator does

    @property
    def batches(self) -> int:
        """Batches seen so far."""
        return self._state.batches

    @property
    def rows(self) -> int:
        """Rows seen so far."""
        return self._state.rows

    @property
    def alarms(self) -> int:
        """Alarms so far."""
        return self._state.alarms

    @property
    def frozen(self) -> bool:
        """Whether the model is left as it is."""
        return self._state.frozen

    @property
    def extra(self) -> dict[str, Any]:
        """What the caller wants in the next checkpoint."""
        return self._state.extra

    @extra.setter
    def extra(self, held: dict[str, Any]) -> None:
        self._state.extra = held

    @property
    def model(self) -> Any:
        """A copy of the current model."""
        with self._mutex:
            return self._state.current.copy().model

    def freeze(self) -> None:
        """Stop adjusting; scoring and watching go on."""
        self._decide("freeze", frozen=True)

    def thaw(self) -> None:
        """Go on adjusting."""
        self._decide("thaw", frozen=False)

    def accept(self) -> None:
        """Make the current model the one that the trust region lies around."""
        with self._mutex:
            self._accept(self._state.current)
            self._decide("accept", frozen=self.frozen)

    def roll_back(self, version: int, *, freeze: bool = True) -> None:
        """Go back to the model of a version that is kept, which counts as accepted.

        Parameters
        ----------
        version : int
            One of `versions`.
        freeze : bool, default=True
            Freeze the model there. Otherwise it is adjusted from there on, and will go where it came from if the stream
            is the same.
        """
        with self._mutex:
            model = self._model_of(check_count(version, name="version", least=0))
            model.widen(self._state.current.groups)
            self._state.current = model
            self._accept(model)
            self._decide(f"roll back to {version}", frozen=freeze)

    def _accept(self, model: Scorer) -> None:
        accepted = model.frozen()
        self._state.accepted = accepted if self._store is None else type(accepted).unpack(accepted.pack())
        model.hold(self._state.accepted, self._state.options.trust)
        self._state.moved = model.distance(self._state.accepted)

    def _decide(self, what: str, *, frozen: bool) -> None:
        with self._mutex:
            self._check_open()
            self._state.frozen = frozen
            self._write_down({"batch": self.batches, "operator": what})
            self.checkpoint()

    def versions(self) -> list[Version]:
        """Return what can be rolled back to, oldest first."""
        with self._mutex:
            if self._store is None:
                return [version for version, _ in self._kept.values()]
            found = []
            for number in self._store.versions():
                try:
                    schema = self._store.read(number).schema
                except (ModelFileError, OSError):
                    continue  # damaged; `resume` warns
                found.append(Version(**{name: schema[name] for name in Version.__dataclass_fields__}))
            return found

    def _model_of(self, version: int) -> Scorer:
        if self._store is not None:
            made: Scorer = type(self._state.current).unpack(self._store.read(version).arrays["model"].tobytes())
            return made
        if version not in self._kept:
            raise StoreError(f"Version {version} is not kept; these are: {', '.join(map(str, self._kept))}.")
        again: Scorer = self._kept[version][1].copy()
        return again

    # ---------------------------------------------------------------- checkpoints

    def checkpoint(self) -> int:
        """Write a checkpoint now and return its version."""
        with self._mutex:
            self._check_open()
            version = self._version + 1
            if self._store is None:
                self._kept[version] = self._state.version(version), self._state.current.copy()
                for old in list(self._kept)[: -self._state.keep]:
                    del self._kept[old]
            else:
                self._store.write(version, self._state.schema(version), self._state.arrays())
            self._version, self._written = version, True
            if time.monotonic() - self._noted > _CLOCK_EVERY:
                self._note_times()
            return version

    @staticmethod
    def is_store(store: str | os.PathLike[str]) -> bool:
        """Say whether a folder has a checkpoint that can be resumed; False for an empty one, or none."""
        folder = Path(store)
        return (folder / "model.ft").exists() and any(folder.glob("checkpoint-*"))

    @classmethod
    def resume(cls, store: str | os.PathLike[str], *, model: Any = None) -> Self:
        """Go on exactly where the newest checkpoint of a store is.

        Parameters
        ----------
        store : path
        model : estimator, optional
            The model that the stream was started with, to make sure that the store is its own.

        Returns
        -------
        ContinualAdjuster

        Raises
        ------
        StoreError
            A ValueError: in use by another process, no store, of another model, or damaged altogether.

        Warns
        -----
        StoreWarning
            When the newest checkpoint is damaged and the one before is used.
        """
        folder = Path(store)
        if not folder.is_file() and not (folder / "model.ft").exists():  # a stranger's folder is left as it is
            raise StoreError("That is no store: there is no model.ft in it. Check the path.")
        opened = Store(store)
        try:
            content = opened.model()
            if model is not None:
                opened.check_model(scorer_for(model).pack())
            held = opened.newest()
            start = type(scorer_for(unpack_model(content))).unpack(content)
            try:
                state = StreamState.restored(held, start)
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    f"The checkpoint is whole, but not one that this version can go on from ({type(error).__name__})."
                ) from None
            opened.keep = state.keep
            opened.prune()
            made = cls.__new__(cls)
            made._open(opened, state, int(held.schema["version"]))  # noqa: SLF001 - its own class
            made._read_times()  # noqa: SLF001
        except BaseException:
            opened.close()
            raise
        return made

    @property
    def lost(self) -> list[dict[str, Any]]:
        """What the journal said beyond the checkpoint when the store was resumed, and is going to say again."""
        return [] if self._store is None else self._store.lost

    def _note_times(self) -> None:
        if self._store is not None:
            self._noted = time.monotonic()
            times = self._state.history.known_times()
            self._store.write_clock({"seconds": self._seconds, "times": times})

    def _read_times(self) -> None:
        if self._store is not None:
            clock = self._store.read_clock()
            self._seconds, self._state.history.times = clock["seconds"], clock["times"]

    # ---------------------------------------------------------------- looking and leaving

    def snapshot(self) -> dict[str, Any]:
        """Return all that the live page shows, as a dict that JSON can hold; safe to call from another thread."""
        with self._mutex:
            return snapshot_of(self._state, version=self._version, seconds=self._seconds)

    def close(self) -> None:
        """Write a checkpoint, if something has happened since the last, and let go of the store."""
        with self._mutex:
            if self._store is None or not self._store.is_open:
                return
            try:
                if not self._written:
                    self.checkpoint()
                self._note_times()
            finally:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._store is not None:  # go on from the last checkpoint
            self._store.close()
            return
        self.close()
