"""The loop of ``fairtransport stream``: read a batch, score it, write it, and now and then a checkpoint.

A checkpoint stores how far the input was read and how long the output was. A resumed run reads the input from that
position and processes the same batches again. What the output already has after that length is compared with what the
run writes, and only what is missing is added, so each line is in the output exactly once, and what a reader has seen
does not change. The protocol is written down in `fairtransport.stream._store`.
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fairtransport._columns import say_columns
from fairtransport.stream._adjuster import ContinualAdjuster
from fairtransport.stream._line_file import LineFile, NoFile, StoreError
from fairtransport.stream._state import AdjustmentReport
from fairtransport.stream.input import BatchReader, InputBatch, InputSchema, Source
from fairtransport.tables.column_roles import suggest_names
from fairtransport.tabular.rows import REPLACED, RowReason

if TYPE_CHECKING:
    from fairtransport.stream.kafka import TopicOutput

# Warnings about an input without groups: its rows are scored, but the model cannot be adjusted to them.


class MissingGroups:
    """Check that the rows of an input have groups; each input is warned of once."""

    def __init__(self, schema: InputSchema) -> None:
        self._schema = schema
        self._checked = False

    def check_header(self, absent: Sequence[str], unused: Sequence[str], *, frozen: bool) -> str | None:
        """Return a warning if the header lacks a column of the groups; None if it has all, or if there is no header."""
        if not absent:
            return None
        self._checked = True
        lacking = f"input has no {say_columns(absent)}{_hint(absent, unused)}"
        if self._schema.scorer.learns and not frozen and self._schema.unknown_group == "error":
            raise ValueError(
                f"The {lacking}, so the model cannot be adjusted to its groups. Correct the header, or use --freeze to "
                "score the rows without adjusting the model."
            )
        return f"the {lacking}. {self._consequence(frozen=frozen)}"

    def check_first_batch(
        self, report: AdjustmentReport, absent: Sequence[str], unused: Sequence[str] = ()
    ) -> str | None:
        """Return a warning if no row of the first batch has a known group; None if one has, and for later batches."""
        if self._checked:
            return None
        self._checked = True
        known = self._schema.sensitive if len(self._schema.scorer.groups) else ()
        none = f"none of the first {len(report.scores)} rows has a"
        consequence = self._consequence(frozen=report.frozen)
        if absent:
            return f"{none} {say_columns(absent)}{_hint(absent, unused)}. {consequence}"
        if known and not any(group.rows for group in report.groups):
            return f"{none} group that the model knows: check the values of {say_columns(known)}. {consequence}"
        return None

    def _consequence(self, *, frozen: bool) -> str:
        if self._schema.unknown_group == "common":
            return "Rows without a group count as rows of the largest group."
        if self._schema.scorer.learns and not frozen:
            return "Rows without a group are scored; the model is not adjusted to them."
        return "Rows without a group are scored; they are not monitored."


def _hint(absent: Sequence[str], unused: Sequence[str]) -> str:
    """Return the names that are similar, where there are any."""
    hint = suggest_names(absent[0], list(unused))
    return f" ({hint.removesuffix('.')})" if hint.startswith("close") else ""


def adjust_batch(
    adjuster: ContinualAdjuster, batch: InputBatch, adjust: Callable[[InputBatch], AdjustmentReport | None]
) -> tuple[InputBatch, AdjustmentReport | None]:
    """Return the report on a batch, without the rows that make the model fail, such as features too large."""
    try:
        return batch, adjust(batch)
    except (MemoryError, OSError, StoreError):  # of this machine, not of a row
        raise
    except Exception:
        without = batch.without_failures(adjuster.dry_run)
        if without is batch:  # no row is the cause
            raise
        return without, adjust(without)


_MIN_LINES = 100  # before the share of rejected lines is checked
_PATIENCE = 5.0  # seconds for lines that are in a file already


class TooManyRejectedError(ValueError):
    """More lines were rejected than the run allows."""


@dataclass(frozen=True)
class RunOptions:
    """Options of one run of the command."""

    batch: int = 500
    checkpoint_every: int = 50
    format: str = "jsonl"
    column: str = "score"
    delimiter: str = ","
    out: Path | None = None
    rejected: Path | None = None
    max_rejected: float = 0.05
    wait: float | None = None
    freeze: bool = False
    force: bool = False


class _StandardOutput(NoFile):
    def add(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(1, left) :]
        self.length += len(content)


class StreamRun:
    """One run over an input; ``reporter`` has the methods ``report_batch`` and ``warn``."""

    def __init__(
        self,
        adjuster: ContinualAdjuster,
        schema: InputSchema,
        source: Source,
        options: RunOptions,
        reporter: Any,
        *,
        topic: TopicOutput | None = None,
    ) -> None:
        self.adjuster, self.source, self.options, self.reporter = adjuster, source, options, reporter
        self.rejected = 0
        self.replaced: Counter[tuple[str, str]] = Counter()  # cells of this run, by kind and column
        self._topic = topic
        self._reader = BatchReader(source, schema, options.column, options.format, options.delimiter)
        self._missing_groups = MissingGroups(schema)
        self._out: Any = None
        self._rejected_file: Any = None
        self._batches = 0
        self._warned = False

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Process the input until it ends or ``stopped`` returns True; leave a checkpoint."""
        try:
            if self._open():
                self._loop(stopped)
                self._check_rejected(at_end=True)
                self._check_complete()
        finally:
            for file in self._files():
                file.close()

    def _open(self) -> bool:
        """Open input and output at the last checkpoint; return False for a CSV input without a header."""
        options, stored = self.options, self.adjuster.extra
        self._check_settings(stored)
        self._out = self._topic or (_StandardOutput() if options.out is None else LineFile(options.out))
        self._rejected_file = NoFile() if options.rejected is None else LineFile(options.rejected)
        if not self._reader.open():
            return False
        frozen = options.freeze or self.adjuster.frozen
        self._warn(self._missing_groups.check_header(*self._reader.further_columns, frozen=frozen))
        if stored:
            self._resume(stored)
        else:
            self._start()
        header = self._reader.parser.output_header
        if self._topic is None and self.adjuster.extra["out_bytes"] == 0 and header:
            self._out.add(header)
        self._warn_of_unused_columns()
        return True

    def _check_settings(self, stored: dict[str, Any]) -> None:
        for name, value in self._settings().items():
            if stored and stored.get(name) != value:
                raise ValueError(
                    f"The run to resume was started with another {name.replace('_', ' ')}. Pass the same one, or start "
                    "with an empty store."
                )

    def _settings(self) -> dict[str, Any]:
        """Return the options that a resumed run must repeat."""
        options = self.options
        paths = {"output_file": options.out, "file_of_rejected_lines": options.rejected}
        return {
            "format": options.format,
            "column": options.column,
            "batch": options.batch,
            "checkpoint_every": options.checkpoint_every,
            **{name: None if path is None else path.name for name, path in paths.items()},
            **self.source.settings,
            **({} if self._topic is None else self._topic.settings),
        }

    def _start(self) -> None:
        for file in self._files():
            if file.length:
                if not self.options.force:
                    raise FileExistsError(errno.EEXIST, "The file exists; use --force to replace it", str(file.path))
                file.cut(0)
        self._checkpoint()  # the files belong to this run from now on
        if self._topic is not None:
            self._topic.start()

    def _resume(self, stored: dict[str, Any]) -> None:
        self.source.restore(stored)
        if self._topic is not None:
            self._topic.resume(self.adjuster.lost)
        self._out.continue_from(stored["out_bytes"], stored["out_digest"])
        self._rejected_file.continue_from(stored["rejected_bytes"], stored["rejected_digest"])
        self.rejected, self._batches = stored["rejected"], stored["batches"]

    def _files(self) -> list[Any]:
        return [file for file in (self._out, self._rejected_file) if file is not None]

    def _loop(self, stopped: Callable[[], bool]) -> None:
        while not (stopped() and self.source.seekable):
            if self.adjuster.lost and "operator" in self.adjuster.lost[0]:
                self._act(self.adjuster.repeat_action, self.adjuster.lost[0])
                continue
            if self.adjuster.lost or any(file.ahead for file in self._files()):  # an earlier run has written more
                batch = self._repeated_batch(stopped)
            else:
                if self.options.freeze and not self.adjuster.frozen:
                    self._act(self.adjuster.freeze)
                batch = self._reader.read(self.options.batch, wait=self.options.wait)
            if batch is None:
                if self.source.ended or stopped():  # a pipe's lines cannot be read again, so they come first
                    break
                continue
            self._process(batch)
            if self._batches % self.options.checkpoint_every == 0:
                self._checkpoint()
            self._check_rejected()
        if self.adjuster.extra["lines"] != self.source.lines:
            self._checkpoint()
        for file in self._files():
            file.check()

    def _repeated_batch(self, stopped: Callable[[], bool]) -> InputBatch | None:
        """Return the next batch as an earlier run had it; batches that the journal has lost were full."""
        known = self.adjuster.lost
        if known:
            self.source.repeat(known[0])
        size = known[0]["lines"] if known else self.options.batch
        batch = self._reader.read(size, wait=_PATIENCE if self.source.seekable else None)
        if batch is not None and len(batch.lines) == size:
            return batch
        if stopped():
            if batch is None:
                return None
            raise KeyboardInterrupt  # in the middle of a batch; the pipe has to be sent again anyway
        if known:
            raise ValueError(f"The input ends after line {self.source.lines}, but more was read before. Pass it again.")
        name = next(file.path.name for file in self._files() if file.ahead)
        raise StoreError(
            f"{name} has content that this run has not written: another program has changed it. Restore the file, and "
            "resume."
        )

    def _act(self, action: Callable[..., None], *arguments: Any) -> None:
        """Perform an action of an operator, which writes a checkpoint."""
        self._prepare_checkpoint()
        action(*arguments)

    def _process(self, batch: InputBatch) -> None:
        """Add a batch to the journal, then to the output; see the protocol in `_store`."""
        self._warn_of_unused_columns()
        batch, report = adjust_batch(self.adjuster, batch, self._adjust)
        self._batches += 1
        self._write_rejected(batch.rejected)
        if report is not None:
            self._write_scored(batch, report.scores)
        if self._topic is not None:
            self._topic.end_batch()
        for (kind, name), rows in batch.replaced.items():
            if (kind, name) not in self.replaced:
                self._warn(f"column {name!r} has cells with {REPLACED[kind]}")
            self.replaced[kind, name] += rows.size
        if report is not None:
            self._warn(self._missing_groups.check_first_batch(report, *self._reader.further_columns))
            self.reporter.report_batch(report, lines=self.source.lines, rejected=self.rejected)

    def _adjust(self, batch: InputBatch) -> AdjustmentReport | None:
        self._check_may_reject(batch)
        note = {"lines": len(batch.lines), "rejected": len(batch.rejected), **self.source.batch_end()}
        by_clock = (
            self.options.wait is not None or len(batch.lines) < self.options.batch or not self.source.reproducible
        )
        if not batch.accepted:
            self.adjuster.note(**note, durable=by_clock)
            return None
        return self.adjuster.adjust(batch.X, sensitive_features=batch.sensitive_features, note=note, durable=by_clock)

    def _check_may_reject(self, batch: InputBatch) -> None:
        has_topic = self._topic is not None and self._topic.takes_rejected
        if batch.rejected and self.options.rejected is None and not has_topic:
            line, reason = batch.rejected[0]
            raise ValueError(
                f"Line {line} cannot be scored: {reason}. To continue after such lines, use --rejected, --store or "
                "--out."
            )

    def _write_scored(self, batch: InputBatch, scores: NDArray[Any]) -> None:
        lines = self._reader.scored_lines(batch, scores)
        if self._topic is None:
            self._out.add(b"".join(lines))
        else:
            self._topic.send(batch.accepted, lines)

    def _write_rejected(self, rejected: list[tuple[int, RowReason]]) -> None:
        if not rejected:
            return
        entries = [
            json.dumps({**self.source.locate(line), "reason": reason}).encode() + b"\n" for line, reason in rejected
        ]
        if self._topic is not None and self._topic.takes_rejected:
            self._topic.reject(entries)
        else:
            self._rejected_file.add(b"".join(entries))
        self.rejected += len(rejected)

    def _check_rejected(self, *, at_end: bool = False) -> None:
        """Raise when too many lines were rejected."""
        lines = self.source.lines
        if (lines >= _MIN_LINES or at_end) and self.rejected > self.options.max_rejected * lines:
            self._checkpoint()
            raise TooManyRejectedError(
                f"{self.rejected} of {lines} lines were rejected, more than --max-rejected "
                f"{self.options.max_rejected:g}."
            )

    def _check_complete(self) -> None:
        """Raise when the input ended in the middle of a line; a resumed run reads it when it is complete."""
        if self.source.incomplete:
            raise ValueError(
                f"Line {self.source.lines + 1} was not scored: the input ends without a newline, so the line may be "
                "incomplete. All lines before it were scored."
            )

    def _checkpoint(self) -> None:
        self._prepare_checkpoint()
        self.adjuster.checkpoint()
        self.source.checkpointed()

    def _prepare_checkpoint(self) -> None:
        """Flush the output, then store its length for the next checkpoint."""
        for file in self._files():
            file.sync()
        self.adjuster.extra = {
            **self._settings(),
            **self.source.state(),
            "out_bytes": self._out.length,
            "out_digest": self._out.digest,
            "rejected_bytes": self._rejected_file.length,
            "rejected_digest": self._rejected_file.digest,
            "rejected": self.rejected,
            "batches": self._batches,
        }

    def _warn(self, warning: str | None) -> None:
        if warning is not None:
            self.reporter.warn(warning)

    def _warn_of_unused_columns(self) -> None:
        names = self._reader.parser.unused
        if self._warned or names is None:
            return
        self._warned = True
        if names:
            shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
            self.reporter.warn(f"{len(names)} column(s) of the input are not used: {shown}")
