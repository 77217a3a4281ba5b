"""Scores for requests, by a model that is adjusted to the rows that it scores, as ``fairtransport stream`` does.

Rows of requests that wait at the same time are one batch, or several. They are processed in this order; a kill may come
at any point.

1. The batches are scored, and the model is adjusted to them; the journal gets an entry for each.
2. The answers to requests that have a key are added to the log of answers, and flushed to the disk.
3. A checkpoint is written.
4. The answers are sent.

A server that starts again goes on from the last checkpoint. What came after it was not answered: its rows do not count,
and the requests have to be sent again. A request whose answer was lost on the way is in the log: it is answered with
the same scores, and its rows do not count twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import warnings
import zlib
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.groups import Groups
from fairtransport.repair import QuantileRepair
from fairtransport.serving._answers import Answer
from fairtransport.serving._counters import ScoreCounts
from fairtransport.serving._models import ServedModel
from fairtransport.serving.bodies import RequestError, WantedColumns, read_rows
from fairtransport.storage import write_atomically
from fairtransport.stream import ContinualAdjuster, StoreError
from fairtransport.stream.input import BatchReader, input_schema_for
from fairtransport.stream.loop import MissingGroups
from fairtransport.tabular.rows import RowReason

if TYPE_CHECKING:
    from pathlib import Path

    from fairtransport.serving._counters import RequestCounts
    from fairtransport.serving.settings import ServerSettings
    from fairtransport.stream import AdjustmentReport
    from fairtransport.stream.input import InputBatch

# Answers that were given, by the keys of their requests, so that a request that is sent again gets the same answer.


class LoggedAnswer(NamedTuple):
    """One answer."""

    key: str
    check: int
    batch: int
    version: str
    scores: list[float | None]
    reasons: dict[str, str]


class AnswerLog:
    """File of the latest answers."""

    def __init__(self, path: Path, most: int, batches: int) -> None:
        self._path, self._most = path, most
        self._answers: OrderedDict[str, LoggedAnswer] = OrderedDict()
        for answer in _read(path):
            if answer.batch <= batches:
                self._answers[answer.key] = answer
        self._file: Any = None
        self._rewrite()

    def get(self, key: str) -> LoggedAnswer | None:
        """Return the answer to an earlier request."""
        return self._answers.get(key)

    def __len__(self) -> int:
        return len(self._answers)

    def write(self, answers: list[LoggedAnswer]) -> None:
        """Append answers to the file, and flush it to the disk; `get` does not return them yet."""
        if answers:
            self._file.write(b"".join(map(_line, answers)))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._lines += len(answers)

    def confirm(self, answers: list[LoggedAnswer]) -> None:
        """Note that the checkpoint of these answers was written; old ones are removed, if there are many."""
        for answer in answers:
            self._answers[answer.key] = answer
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)
        if self._lines > 2 * self._most:
            self._rewrite()

    def _rewrite(self) -> None:
        if self._file is not None:
            self._file.close()
        write_atomically(self._path, b"".join(map(_line, self._answers.values())))
        self._lines = len(self._answers)
        self._file = self._path.open("ab")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _line(answer: LoggedAnswer) -> bytes:
    text = json.dumps(answer._asdict(), allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _read(path: Path) -> list[LoggedAnswer]:
    """Return the answers up to the first line that is incomplete."""
    answers = []
    if path.exists():
        with path.open("rb") as lines:
            for line in lines:
                text = line[9:-1]
                if not line.endswith(b"\n") or line[:8] != b"%08x" % zlib.crc32(text):
                    break
                answers.append(LoggedAnswer(**json.loads(text)))
    return answers


_MAX_BATCHES = 20  # between two checkpoints
_LOG = logging.getLogger("fairtransport.serving")
_NO_STORE = "The store cannot be written, so nothing is scored. Free disk space or repair it, then restart the server."


@dataclass
class _Waiting:
    """A request that waits for its scores."""

    key: str | None
    check: int
    lines: list[bytes]
    rejected: dict[int, RowReason]
    answer: Future[Answer]


class AdjustedScoring:
    """Scoring by a model that is adjusted to the rows."""

    def __init__(self, settings: ServerSettings, requests: RequestCounts) -> None:
        if settings.store is None:
            raise ValueError("A model is adjusted with a store: pass store=.")
        self._settings, self._requests = settings, requests
        self.model = ServedModel.load(settings)
        estimator = self.model.scorer.estimator_
        schema = input_schema_for(
            estimator,
            score=settings.score if isinstance(estimator, QuantileRepair) else None,
            features=settings.features,
            unknown_group=settings.unknown_group,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._adjuster = _open_store(schema.scorer.model, settings)
        self._schema = replace(schema, unknown_group=self._adjuster.unknown_group)  # with which the store was begun
        optional = tuple(name for name in self._schema.columns if name not in self._schema.required)
        wanted = WantedColumns(tuple(self._schema.required), frozenset(self._schema.numeric), optional)
        self.model = replace(self.model, wanted=wanted)
        if settings.frozen != self._adjuster.frozen:
            (self._adjuster.freeze if settings.frozen else self._adjuster.thaw)()
        self._log = AnswerLog(settings.store / "answers.jsonl", settings.remembered, self._adjuster.batches)
        n_groups = len(self._schema.scorer.groups)
        self._scores = ScoreCounts(n_groups) if n_groups else None
        self._report: AdjustmentReport | None = None
        self._reader = BatchReader(_Lines(settings.max_bytes), self._schema, "score", "jsonl", ",")  # type: ignore[arg-type]
        self._reader.open()
        self._missing_groups = MissingGroups(self._schema, self._reader)
        self._in_flight: dict[str, _Waiting] = {}
        self._queue: deque[_Waiting] = deque()
        self._arrived = threading.Condition()
        self._closing, self._failed = False, False
        self._thread = threading.Thread(target=self._work_quietly, name="fairtransport-adjuster", daemon=True)
        self._thread.start()

    @property
    def problems(self) -> list[str]:
        """What an operator should know."""
        return [_NO_STORE] if self._failed else []

    @property
    def ready(self) -> bool:
        """Whether requests can be answered."""
        return not self._failed

    def reload(self) -> bool:
        """Return False: the store belongs to one model; another one needs a new store."""
        return False

    def snapshot(self) -> dict[str, Any]:
        """Return the content of the live page."""
        return self._adjuster.snapshot()

    def state(self) -> dict[str, Any]:
        """Return what `Metrics` shows."""
        return {
            "version": self.model.version,
            "loaded": True,
            "task": self.model.scorer.task,
            "groups": self._schema.scorer.groups.names,
            "scores": self._scores,
            "stream": self._report,
        }

    # ---------------------------------------------------------------- requests

    async def score(self, body: bytes, file_format: str, key: str | None) -> Answer:
        """Return the scores of the rows of a body, once they are stored."""
        check = zlib.crc32(body)
        if key is not None:
            earlier = self._earlier(key, check)
            if isinstance(earlier, Answer):
                return earlier
            if earlier is not None:
                return await asyncio.shield(asyncio.wrap_future(earlier.answer))
        lines, rejected = _lines_of(body, file_format, self.model.wanted, self._settings.max_rows)
        waiting = _Waiting(key, check, lines, rejected, Future())
        with self._arrived:
            if self._failed or self._closing:
                raise RequestError(503, _NO_STORE if self._failed else "The server is stopping; try again.")
            if key is not None:
                self._in_flight[key] = waiting
            self._queue.append(waiting)
            self._arrived.notify()
        # A client that gives up does not stop the batch, which has other clients' rows.
        return await asyncio.shield(asyncio.wrap_future(waiting.answer))

    def _earlier(self, key: str, check: int) -> Answer | _Waiting | None:
        with self._arrived:
            logged, waiting = self._log.get(key), self._in_flight.get(key)
        found = logged or waiting
        if found is not None and found.check != check:
            raise RequestError(422, "Another body was sent with this Idempotency-Key before; use a new key.")
        return _answer_of(logged) if logged is not None else waiting

    # ---------------------------------------------------------------- batches, in a thread of their own

    def _work_quietly(self) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")  # taken by name
            self._work()

    def _work(self) -> None:
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                chosen = self._choose()
            try:
                answers = self._commit(chosen)
            except BaseException as error:  # noqa: BLE001 - every request gets an answer
                self._fail(chosen)
                _LOG.error("the model is not adjusted any more: %s", type(error).__name__)  # without its values
                return
            with self._arrived:
                for waiting in chosen:
                    if waiting.key is not None:
                        self._in_flight.pop(waiting.key, None)
            for waiting, answer in zip(chosen, answers, strict=True):
                waiting.answer.set_result(answer)

    def _choose(self) -> list[_Waiting]:
        """Take the requests that wait, in their order, up to a number of rows."""
        chosen, rows = [self._queue.popleft()], 0
        most = _MAX_BATCHES * self._settings.batch
        while self._queue:
            rows += len(chosen[-1].lines)
            if rows + len(self._queue[0].lines) > most:
                break
            chosen.append(self._queue.popleft())
        return chosen

    def _fail(self, chosen: list[_Waiting]) -> None:
        """Answer that nothing was scored; nothing can be until a restart from the last checkpoint."""
        with self._arrived:
            self._failed = True
            chosen = [*chosen, *self._queue]
            self._queue.clear()
            self._in_flight.clear()
        for waiting in chosen:
            waiting.answer.set_exception(RequestError(503, _NO_STORE))

    def _commit(self, chosen: list[_Waiting]) -> list[Answer]:
        """Score and adjust, then store; return an answer for each request."""
        lines = [line for waiting in chosen for line in waiting.lines]
        scores, reasons = self._adjust(lines)
        version = f"{self.model.version}+{self._adjuster.batches}"
        answers, start = [], 0
        for waiting in chosen:
            stop = start + len(waiting.lines)
            own = {row - start: reason for row, reason in reasons.items() if start <= row < stop}
            answers.append(Answer(scores[start:stop], {**own, **waiting.rejected}, version))
            start = stop
        logged = [
            LoggedAnswer(
                waiting.key,
                waiting.check,
                self._adjuster.batches,
                version,
                answer.scores_or_none(),
                {str(row): reason for row, reason in answer.reasons.items()},
            )
            for waiting, answer in zip(chosen, answers, strict=True)
            if waiting.key is not None
        ]
        self._log.write(logged)
        self._adjuster.checkpoint()
        with self._arrived:
            self._log.confirm(logged)
        for waiting, answer in zip(chosen, answers, strict=True):
            self._requests.add_rows(len(waiting.lines), answer.reasons.values())
        return answers

    def _adjust(self, lines: list[bytes]) -> tuple[Any, dict[int, RowReason]]:
        """Return the scores of lines, and the reason of each that has none."""
        scores = np.full(len(lines), np.nan)
        reasons: dict[int, RowReason] = {}
        size = self._settings.batch
        for start in range(0, len(lines), size):
            self._reader.source.lines_waiting = lines[start : start + size]  # type: ignore[union-attr]
            batch = self._reader.read(size)
            if batch is None:
                continue
            batch, report = self._adjust_batch(batch)
            reasons |= {start + number - batch.first: reason for number, reason in batch.rejected}
            if report is None:
                continue
            scores[start + np.array(batch.accepted)] = report.scores
            self._report = report
            warning = self._missing_groups.check_first_batch(report)
            if warning is not None:
                _LOG.warning("%s", warning)
            if self._scores is not None and isinstance(batch.sensitive_features, Groups):
                codes = np.stack(batch.sensitive_features.memberships, axis=1).astype(np.int64)
                self._scores.add(report.scores, codes)
        return scores, reasons

    def _adjust_batch(self, batch: InputBatch) -> tuple[InputBatch, AdjustmentReport | None]:
        """Return the report on a batch, without the rows that make the model fail, such as features too large."""
        try:
            return batch, self._report_on(batch)
        except (MemoryError, OSError, StoreError):  # of this machine, not of a row
            raise
        except Exception:
            whole, batch = batch, batch.without_failures(self._adjuster.dry_run)
            if batch is whole:  # no row is the cause
                raise
            return batch, self._report_on(batch)

    def _report_on(self, batch: InputBatch) -> AdjustmentReport | None:
        if not batch.accepted:
            return None
        note = {"rejected_rows": len(batch.rejected)}
        return self._adjuster.adjust(batch.X, sensitive_features=batch.sensitive_features, note=note)

    def close(self) -> None:
        """Finish the requests that wait, write a checkpoint, and release the store."""
        with self._arrived:
            self._closing = True
            self._arrived.notify()
        self._thread.join()
        self._log.close()
        if self._failed:  # a checkpoint must not have rows that were not answered
            self._adjuster.__exit__(StoreError, None, None)
        else:
            self._adjuster.close()


class _Lines:
    """Lines that wait for a `BatchReader`: what it needs of a source."""

    header, incomplete = None, False

    def __init__(self, max_line_bytes: int) -> None:
        self.max_line_bytes = max_line_bytes
        self.lines, self.lines_waiting = 0, list[bytes]()

    def take(self, n_lines: int, *, wait: float | None = None) -> list[bytes]:
        del wait
        taken, self.lines_waiting = self.lines_waiting[:n_lines], []
        self.lines += len(taken)
        return taken


def _open_store(model: Any, settings: ServerSettings) -> ContinualAdjuster:
    if settings.store is not None and ContinualAdjuster.is_store(settings.store):
        return ContinualAdjuster.resume(settings.store, model=model)
    return ContinualAdjuster(
        model,
        store=settings.store,
        checkpoint_every=None,
        title=settings.model.name,
        unknown_group=settings.unknown_group,
    )


def _lines_of(
    body: bytes, file_format: str, wanted: WantedColumns, max_rows: int
) -> tuple[list[bytes], dict[int, RowReason]]:
    """Return the rows of a body as JSON lines; an empty one for a row that cannot be read, and its reason."""
    rows = read_rows(body, file_format, wanted, max_rows)
    table = rows.table
    names = [name for name in (*wanted.needed, *wanted.optional) if name in getattr(table, "column_names", table)]
    columns = [_cells(table[name], number=name in wanted.numbers) for name in names]
    read = iter([dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)])
    lines = [b"" if row in rows.rejected else json.dumps(next(read)).encode() for row in range(rows.n_rows)]
    return lines, rows.rejected


def _cells(column: Any, *, number: bool) -> list[Any]:
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
    return [_number(cell) for cell in cells] if number else cells


def _number(cell: Any) -> Any:
    """Return the number that a text is; other cells, and NaN, which JSON does not have, are left to the parser."""
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            return cell
    return cell


def _answer_of(logged: LoggedAnswer) -> Answer:
    scores = np.array([np.nan if score is None else score for score in logged.scores], dtype=np.float64)
    # Its rows were counted by kind when it was first given.
    reasons = {int(row): RowReason(reason) for row, reason in logged.reasons.items()}
    return Answer(scores, reasons, logged.version)
