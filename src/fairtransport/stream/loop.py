"""The loop of ``fairtransport stream``: lines in, scored lines out, each exactly once, whatever happens in between.

A checkpoint says how far the input was read and how long the output was then. A run that goes on cuts the output there
and reads the input from there; since nothing is left to chance, it writes again what was cut.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fairtransport.stream._journal import LineFile
from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fairtransport.stream._adjuster import ContinualAdjuster
    from fairtransport.stream._report import AdjustmentReport
    from fairtransport.stream.input._line_source import LineSource
    from fairtransport.stream.input._parser import ParsedBatch, Parser
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["Plan", "Reporter", "StreamRun", "TooManyRejectedError"]

_FEW = 100  # lines before the share of rejected ones is judged


class TooManyRejectedError(ValueError):
    """More lines were set aside than the run allows."""


@dataclass(frozen=True)
class Plan:
    """What the command was asked for.

    Attributes
    ----------
    batch : int
        Lines of a batch.
    every : int
        Batches between two checkpoints.
    format : str
        ``"jsonl"`` or ``"csv"``.
    column : str
        Name of the score in the output.
    delimiter : str
    out, rejected : Path or None
        Where scored lines and those set aside go; None: standard output, and nowhere.
    max_rejected : float
        Share of lines that may be set aside.
    wait : float or None
        Seconds after which a batch that is not full is worked on.
    force : bool
        Replace files that exist.
    """

    batch: int = 500
    every: int = 50
    format: str = "jsonl"
    column: str = "score"
    delimiter: str = ","
    out: Path | None = None
    rejected: Path | None = None
    max_rejected: float = 0.05
    wait: float | None = None
    force: bool = False


class Reporter(Protocol):
    """Who tells the user what goes on."""

    def tell(self, report: AdjustmentReport, *, lines: int, rejected: int) -> None:
        """Hear of a batch."""

    def warn(self, text: str) -> None:
        """Hear of something strange."""


class _Pipe:
    """Standard output: it cannot be cut."""

    length = 0

    def add(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(1, left) :]
        self.length += len(content)

    def cut(self, length: int) -> None:
        """Leave what was read by somebody."""

    def sync(self) -> None:
        """Leave that to the reader."""

    def close(self) -> None:
        """Leave it open."""


class StreamRun:
    """One run over an input.

    Parameters
    ----------
    adjuster : ContinualAdjuster
        With ``every=None``: the run writes the checkpoints, because output comes first.
    feeding : InputSchema
    source : LineSource
    plan : Plan
    reporter : Reporter
    """

    def __init__(
        self, adjuster: ContinualAdjuster, feeding: InputSchema, source: LineSource, plan: Plan, reporter: Reporter
    ) -> None:
        self.adjuster, self.feeding, self.source, self.plan = adjuster, feeding, source, plan
        self.reporter = reporter
        self._out: Any = None
        self._aside: LineFile | None = None
        self.rejected = self._batches = 0
        self._sizes: list[int] = []

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Work until the input ends or ``stopped`` says so; leave a checkpoint."""
        try:
            parser = self._open()
            if parser is not None:
                self._loop(parser, stopped)
                self._judge(at_end=True)
        finally:
            for file in (self._out, self._aside):
                if file is not None:
                    file.close()

    # ---------------------------------------------------------------- beginning

    def _open(self) -> Parser | None:
        """Open the files where the checkpoint says, and read the header; None for an input without one."""
        plan, known = self.plan, self.adjuster.extra
        self._check_known(known)
        self._out = _Pipe() if plan.out is None else LineFile(plan.out)
        self._aside = None if plan.rejected is None else LineFile(plan.rejected)
        header = None
        if plan.format == "csv":
            taken = self.source.take(1)
            if not taken:
                return None
            header = taken[0]
        parser = self._parser(header)
        if known:
            self._go_on(known)
        else:
            self._begin()
        if header is not None and self.adjuster.extra["out_bytes"] == 0:
            self._out.add(parser.add(header.removeprefix(b"\xef\xbb\xbf"), self.plan.column.encode()))
        if isinstance(parser, CsvParser):
            self._warn_of_unused(parser.unused)
        return parser

    def _parser(self, header: bytes | None) -> Parser:
        if header is not None:
            return CsvParser(self.feeding, self.plan.column, header, self.plan.delimiter)
        return JsonParser(self.feeding, self.plan.column)

    def _check_known(self, known: dict[str, Any]) -> None:
        for name, value in self._settings().items():
            if known and known.get(name) != value:
                raise ValueError(
                    f"The store's run was started with another {name.replace('_', ' ')}. Give the same, or begin a new "
                    "store."
                )

    def _settings(self) -> dict[str, Any]:
        plan = self.plan
        names = {"output_file": plan.out, "file_of_rejected_lines": plan.rejected}
        told = {name: None if path is None else path.name for name, path in names.items()}
        return {"format": plan.format, "column": plan.column, "batch": plan.batch, "every": plan.every, **told}

    def _begin(self) -> None:
        for file in (self._out, self._aside):
            if isinstance(file, LineFile) and file.length:
                if not self.plan.force:
                    raise FileExistsError(errno.EEXIST, "The file exists; give --force to replace it", str(file.path))
                file.cut(0)
        self._checkpoint()  # from here on the files are this run's

    def _go_on(self, known: dict[str, Any]) -> None:
        self.source.skip(known["position"], known["lines"], (known["head"][0], known["head"][1]))
        for file, length in ((self._out, known["out_bytes"]), (self._aside, known["rejected_bytes"])):
            if isinstance(file, LineFile):
                if file.length < length:
                    raise ValueError(
                        f"{file.path.name} has {file.length} bytes, but {length} were written. Put it back, or begin a "
                        "new store."
                    )
                file.cut(length)
        self.rejected, self._batches = known["rejected"], known["batches"]
        if self.plan.wait is not None:  # batches may have ended early: end them where they ended
            self._sizes = [entry["lines"] for entry in self.adjuster.lost if "lines" in entry]

    # ---------------------------------------------------------------- working

    def _loop(self, parser: Parser, stopped: Callable[[], bool]) -> None:
        while not (stopped() and self.source.seekable):
            most = self._sizes.pop(0) if self._sizes else self.plan.batch
            lines = self.source.take(most, wait=self.plan.wait)
            if not lines:
                if self.source.ended or stopped():  # what a pipe has given is worked on first: it will not come again
                    break
                continue
            self._work(parser, lines)
            if self._batches % self.plan.every == 0:
                self._checkpoint()
            self._judge()
        if self.adjuster.extra["lines"] != self.source.lines:
            self._checkpoint()

    def _work(self, parser: Parser, lines: list[bytes]) -> None:
        if isinstance(parser, JsonParser) and parser.unused is None:
            parser.unused = tuple(parser.look(lines[0]))
            self._warn_of_unused(parser.unused)
        parsed = parser.parse(lines)
        self._batches += 1
        note = {"lines": len(lines), "rejected": len(parsed.bad)}
        self._set_aside(parsed, len(lines))
        if not parsed.good:
            self.adjuster.note(**note)
            return
        made = self.feeding.make(parsed.columns)
        report = self.adjuster.adjust(made, sensitive_features=parsed.groups, note=note)
        self._out.add(_scored(parser, lines, parsed.good, report.scores.tolist()))
        self.reporter.tell(report, lines=self.source.lines, rejected=self.rejected)

    def _set_aside(self, parsed: ParsedBatch, n_lines: int) -> None:
        if not parsed.bad:
            return
        first = self.source.lines - n_lines + 1
        if self._aside is None:
            place, reason = parsed.bad[0]
            raise ValueError(
                f"Line {first + place} cannot be used: {reason}. To set such lines aside, give --rejected, --store or "
                "--out."
            )
        entries = ({"line": first + place, "reason": reason} for place, reason in parsed.bad)
        self._aside.add(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))
        self.rejected += len(parsed.bad)

    def _judge(self, *, at_end: bool = False) -> None:
        """Stop when too many lines were set aside."""
        lines = self.source.lines
        if (lines >= _FEW or at_end) and self.rejected > self.plan.max_rejected * lines:
            self._checkpoint()
            raise TooManyRejectedError(
                f"{self.rejected} of {lines} lines were set aside, more than --max-rejected {self.plan.max_rejected:g}."
            )

    def _checkpoint(self) -> None:
        """Make output last, then say in a checkpoint how long it is."""
        for file in (self._out, self._aside):
            if file is not None:
                file.sync()
        self.adjuster.extra = {
            **self._settings(),
            "position": self.source.position,
            "lines": self.source.lines,
            "head": list(self.source.head),
            "out_bytes": self._out.length,
            "rejected_bytes": 0 if self._aside is None else self._aside.length,
            "rejected": self.rejected,
            "batches": self._batches,
        }
        self.adjuster.checkpoint()

    def _warn_of_unused(self, names: Sequence[str]) -> None:
        if names:
            shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
            self.reporter.warn(f"{len(names)} column(s) of the input are not used: {shown}")


def _scored(parser: Parser, lines: list[bytes], good: Sequence[int], scores: list[float]) -> bytes:
    """Return the good lines, each with its score in the shortest digits that give it back."""
    add = parser.add
    return b"".join([add(lines[place], repr(score).encode()) for place, score in zip(good, scores, strict=True)])
