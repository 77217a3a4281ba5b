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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from starlette.responses import Response

from fairtransport.serving._answers import Answer, respond
from fairtransport.serving._counters import RequestCounts, ScoreCounts
from fairtransport.serving._models import ServedModel
from fairtransport.serving.bodies import RequestError, in_worker, is_small, read_rows
from fairtransport.serving.settings import ServerSettings
from fairtransport.storage import write_atomically
from fairtransport.stream import AdjustmentReport, ContinualAdjuster, StoreError
from fairtransport.stream.input import InputBatch, input_schema_for
from fairtransport.stream.loop import MissingGroups, adjust_batch
from fairtransport.tabular.cells import RowCells, join_cells
from fairtransport.tabular.rows import CallBudget, Replaced, RowReason, by_kind

# Answers that were given, by the keys of their requests, so that a request that is sent again gets the same answer.


_MAX_LOGGED = 2**26  # bytes of answers that are kept


class LoggedAnswer(NamedTuple):
    """One answer, the key of its request, a checksum of the body, and the number of batches at that time."""

    key: str
    check: int
    batch: int
    answer: Answer

    @property
    def n_bytes(self) -> int:
        """Memory that it takes, about."""
        return 500 + self.answer.scores.nbytes + 200 * len(self.answer.reasons)

    def line(self) -> bytes:
        answer = self.answer
        given = {**vars(answer), "scores": answer.scores_or_none()}
        text = json.dumps({**self._asdict(), "answer": given}, allow_nan=False, separators=(",", ":")).encode()
        return b"%08x %b\n" % (zlib.crc32(text), text)


class AnswerLog:
    """File of the latest answers."""

    def __init__(self, path: Path, most: int, batches: int) -> None:
        self._path, self._most = path, most
        self.answers: OrderedDict[str, LoggedAnswer] = OrderedDict()
        self._n_bytes = 0
        self._keep([one for one in read_answers(path) if one.batch <= batches] if path.exists() else [])
        self._file: Any = None
        self._rewrite()

    def write(self, answers: list[LoggedAnswer]) -> None:
        """Append answers to the file, and flush it to the disk; they are not among ``answers`` yet."""
        if answers:
            self._file.write(b"".join(one.line() for one in answers))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._lines += len(answers)

    def confirm(self, answers: list[LoggedAnswer]) -> None:
        """Note that the checkpoint of these answers was written; old ones are removed, if there are many."""
        self._keep(answers)
        if self._lines > 2 * self._most or self._file.tell() > 4 * _MAX_LOGGED:
            self._rewrite()

    def _keep(self, answers: list[LoggedAnswer]) -> None:
        for one in answers:
            earlier = self.answers.pop(one.key, None)
            self.answers[one.key] = one
            self._n_bytes += one.n_bytes - (0 if earlier is None else earlier.n_bytes)
        while len(self.answers) > self._most or self._n_bytes > _MAX_LOGGED:
            self._n_bytes -= self.answers.popitem(last=False)[1].n_bytes

    def _rewrite(self) -> None:
        if self._file is not None:
            self._file.close()
        write_atomically(self._path, b"".join(one.line() for one in self.answers.values()))
        self._lines = len(self.answers)
        self._file = self._path.open("ab")

    def close(self) -> None:
        self._file.close()


def read_answers(path: Path) -> list[LoggedAnswer]:
    """Return the answers in a log, up to the first line that is incomplete."""
    answers = []
    with path.open("rb") as lines:
        for line in lines:
            check, text = line[:8], line[9:-1]
            if not line.endswith(b"\n") or check != b"%08x" % zlib.crc32(text):
                break
            entry = json.loads(text)
            answers.append(LoggedAnswer(**{**entry, "answer": _restored(**entry["answer"])}))
    return answers


def _restored(version: str, scores: list[float | None], reasons: dict[str, str], replaced: Any = None) -> Answer:
    # Its rows were counted by kind when it was first given.
    kinds = {int(row): RowReason(reason) for row, reason in reasons.items()}
    return Answer(np.array(scores, dtype=np.float64), kinds, version, replaced or {})


_MAX_BATCHES = 20  # between two checkpoints
_LOG = logging.getLogger("fairtransport.serving")
_NO_STORE = "The store cannot be written, so nothing is scored. Free disk space or repair it, then restart the server."

_NOT_ADJUSTED = "The model does not follow the latest rows: no step brings the groups closer. Check its columns."


@dataclass
class _Waiting:
    key: str | None
    check: int
    rows: RowCells
    answer: Future[Answer]
    budget: CallBudget = field(default_factory=CallBudget)  # of the search for rows that the model cannot score


class AdjustedScoring:
    """Scoring by a model that is adjusted to the rows."""

    loaded = True

    def __init__(self, settings: ServerSettings, requests: RequestCounts) -> None:
        if settings.store is None:
            raise ValueError("A model is adjusted with a store: pass store=.")
        self._settings, self._requests = settings, requests
        self.model = ServedModel.load(settings)
        estimator = self.model.scorer.estimator_
        schema = input_schema_for(
            estimator,
            score=None if hasattr(estimator, "predict") else settings.score,
            features=settings.features,
            unknown_group=settings.unknown_group,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._adjuster = _open_store(schema.scorer.model, settings)
        self._schema = replace(schema, unknown_group=self._adjuster.unknown_group)  # with which the store was begun
        self.model = replace(self.model, wanted=self._schema.wanted)
        if settings.frozen != self._adjuster.frozen:
            (self._adjuster.freeze if settings.frozen else self._adjuster.thaw)()
        self._log = AnswerLog(settings.store / "answers.jsonl", settings.remembered, self._adjuster.batches)
        names = self._schema.scorer.groups.names
        self.served = self.model, ScoreCounts(names) if names else None
        self.report: AdjustmentReport | None = None
        self._missing_groups = MissingGroups(self._schema)
        self._in_flight: dict[str, _Waiting] = {}
        self._queue: deque[_Waiting] = deque()
        self._arrived = threading.Condition()
        self._closing, self._failed, self._stalled = False, False, False
        self._thread = threading.Thread(target=self._work, name="fairtransport-adjuster", daemon=True)
        self._thread.start()

    @property
    def problems(self) -> list[str]:
        return [_NO_STORE] if self._failed else [_NOT_ADJUSTED] if self._stalled else []

    @property
    def ready(self) -> bool:
        return not self._failed

    def reload(self) -> bool:
        """Return False: the store belongs to one model; another one needs a new store."""
        return False

    def snapshot(self) -> dict[str, Any]:
        return self._adjuster.snapshot()

    async def score(self, body: bytes, file_format: str, wanted: str, key: str | None) -> Response:
        """Return the response with the scores of the rows of a body, once they are stored."""
        return await respond(await self._answer(body, file_format, key), wanted)

    async def _answer(self, body: bytes, file_format: str, key: str | None) -> Answer:
        check = zlib.crc32(body)
        if key is not None:
            earlier = self._earlier(key, check)
            if isinstance(earlier, Answer):
                return earlier
            if earlier is not None:
                return await asyncio.shield(asyncio.wrap_future(earlier.answer))
        given = (body, file_format, self.model.wanted, self._settings.max_rows)
        rows = read_rows(*given) if is_small(body, file_format) else await in_worker(len(body), read_rows, *given)
        waiting = _Waiting(key, check, rows, Future())
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
            logged, waiting = self._log.answers.get(key), self._in_flight.get(key)
        found = logged or waiting
        if found is not None and found.check != check:
            raise RequestError(422, "Another body was sent with this Idempotency-Key before; use a new key.")
        return waiting if logged is None else logged.answer

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
            rows += chosen[-1].rows.n_rows
            if rows + self._queue[0].rows.n_rows > most:
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
        scores, reasons, replaced = self._adjust(chosen)
        version = f"{self.model.version}+{self._adjuster.batches}"
        answers, start = [], 0
        for waiting in chosen:
            stop = start + waiting.rows.n_rows
            own = {row - start: reason for row, reason in reasons.items() if start <= row < stop}
            cells = {key: int(np.count_nonzero((start <= rows) & (rows < stop))) for key, rows in replaced.items()}
            answers.append(Answer(scores[start:stop], own, version, by_kind(cells)))
            start = stop
        logged = [
            LoggedAnswer(waiting.key, waiting.check, self._adjuster.batches, answer)
            for waiting, answer in zip(chosen, answers, strict=True)
            if waiting.key is not None
        ]
        self._log.write(logged)
        self._adjuster.checkpoint()
        with self._arrived:
            self._log.confirm(logged)
        for answer in answers:
            self._requests.add_answer(answer)
        return answers

    def _adjust(self, chosen: list[_Waiting]) -> tuple[Any, dict[int, RowReason], Replaced]:
        """Return the scores of all rows, the reason of each that has none, and the cells that were replaced."""
        rows = join_cells([waiting.rows for waiting in chosen], self.model.wanted)
        ends = np.cumsum([waiting.rows.n_rows for waiting in chosen])
        scores, reasons = np.full(rows.n_rows, np.nan), dict(rows.rejected)
        replaced: Replaced = {}
        for start in range(0, rows.kept.size, self._settings.batch):
            numbers = rows.kept[start : start + self._settings.batch]
            columns = {name: column[start : start + numbers.size] for name, column in rows.columns.items()}
            own_ends = np.searchsorted(numbers, ends).tolist()
            owners = [*zip(own_ends, (waiting.budget for waiting in chosen), strict=True)]
            batch = self._schema.read(RowCells(numbers.size, columns, owners=owners))
            batch, report = adjust_batch(self._adjuster, batch, self._report_on)
            reasons |= {int(numbers[row]): reason for row, reason in batch.rejected}
            for key, cells in batch.replaced.items():
                replaced[key] = np.append(replaced.get(key, cells[:0]), numbers[cells])
            if report is None:
                continue
            scores[numbers[batch.accepted]] = report.scores
            self._stalled, self.report = report.stalled, report
            absent = [name for name in self._schema.sensitive if name not in columns]
            warning = self._missing_groups.check_first_batch(report, absent)
            if warning is not None:
                _LOG.warning("%s", warning)
            if self.served[1] is not None:
                self.served[1].add(report.scores, self._codes(batch))
        return scores, reasons, replaced

    def _codes(self, batch: InputBatch) -> Any:
        """Return the groups of each row; new groups are not counted."""
        scorer, policy = self._schema.scorer, self._schema.unknown_group
        groups = scorer.groups.encode(
            batch.sensitive_features, unknown_group="pooled" if policy == "error" else policy, sizes=scorer.group_sizes
        )
        return np.stack(groups.memberships, axis=1).astype(np.int64)

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
