"""``fairtransport stream``: lines in, scored lines out, and the model is kept fair meanwhile."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

import fairtransport as ft
from fairtransport._extras import load_extra
from fairtransport._text import one_line
from fairtransport._validation import describe_error
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import handling, print_stderr
from fairtransport.cli._limits import EXCEEDED
from fairtransport.cli._output import check_paths, count_of, standard_output

if TYPE_CHECKING:
    from fairtransport.stream import AdjustmentReport, ContinualAdjuster
    from fairtransport.stream.input import InputSchema
    from fairtransport.stream.kafka import KafkaSettings, TopicOutput, TopicSource
    from fairtransport.stream.loop import RunOptions


@shared.described(
    kafka=shared.option("BROKERS", "Read from Kafka: host:port, separated by commas."),
    topic=shared.option("NAME", "Topic of the rows."),
    group_id=shared.option("NAME", "Consumer group that offsets are committed for."),
    output_topic=shared.option("NAME", "Topic for scored rows, in transactions [default: --out]."),
    rejected_topic=shared.option("NAME", "Topic for rejected rows [default: --rejected]."),
    partitions=shared.option("NUMBERS", "Partitions to read, as in 0,1 [default: all]."),
    start_at=shared.option("END", "Where to start if the group has no offsets: earliest or latest."),
    columns=shared.option("NAMES", "Columns of CSV messages, which have no header; separated by commas."),
    kafka_config=shared.option("PATH", "Properties of librdkafka, such as security.protocol=SASL_SSL, one per line."),
)
@dataclass(frozen=True)
class KafkaOptions:
    """The options of Kafka."""

    kafka: str | None = None
    topic: str | None = None
    group_id: str | None = None
    output_topic: str | None = None
    rejected_topic: str | None = None
    partitions: str | None = None
    start_at: str = "earliest"
    columns: str | None = None
    kafka_config: Path | None = None

    def __bool__(self) -> bool:
        return self.kafka is not None

    def check(self, *, file: Path | None, out: Path | None, rejected: Path | None, file_format: str) -> None:
        """Raise if options contradict each other."""
        if self.kafka is None:
            if replace(self, start_at="earliest") != KafkaOptions():
                raise typer.BadParameter("Options of Kafka need --kafka with the addresses of brokers.")
            return
        if self.topic is None or self.group_id is None:
            raise typer.BadParameter("--kafka needs --topic and --group-id.")
        if file is not None:
            raise typer.BadParameter("--kafka reads a topic: leave FILE out.")
        if self.output_topic is not None and out is not None:
            raise typer.BadParameter("Use --output-topic or --out, not both.")
        if self.rejected_topic is not None and (rejected is not None or self.output_topic is None):
            raise typer.BadParameter("--rejected-topic needs --output-topic, and replaces --rejected.")
        topics = [name for name in (self.topic, self.output_topic, self.rejected_topic) if name is not None]
        if len({*topics}) < len(topics):
            raise typer.BadParameter("--topic, --output-topic and --rejected-topic must be different topics.")
        if self.start_at not in {"earliest", "latest"}:
            raise typer.BadParameter("--start-at must be earliest or latest.")
        if (file_format == "csv") != (self.columns is not None):
            raise typer.BadParameter("--format csv needs --columns with --kafka, because messages have no header.")

    @contextlib.contextmanager
    def topics(
        self, *, follow: bool, stop: Callable[[], bool], delimiter: str
    ) -> Iterator[tuple[TopicSource, TopicOutput | None]]:
        """Open the topics; the output comes first, because it ends the transaction of a run that was killed."""
        from fairtransport.stream.kafka import TopicOutput, TopicSource  # noqa: PLC0415 - scikit-learn takes a while

        settings, output = self._settings(), None
        if self.output_topic is not None:
            output = TopicOutput(settings, self.output_topic, self.rejected_topic)
        header = None if self.columns is None else _header(self.columns, delimiter)
        source = TopicSource(settings, follow=follow, stop=stop, header=header, commits=output is None)
        if output is not None:
            output.source = source
        try:
            yield source, output
        finally:
            source.close()

    def _settings(self) -> KafkaSettings:
        from fairtransport.stream.kafka import KafkaSettings, read_properties  # noqa: PLC0415

        try:
            partitions = tuple(int(number) for number in (self.partitions or "").split(",") if number.strip())
        except ValueError:
            raise typer.BadParameter("--partitions must be numbers, separated by commas.") from None
        return KafkaSettings(
            str(self.kafka),
            str(self.topic),
            str(self.group_id),
            partitions=partitions,
            start=self.start_at,
            properties={} if self.kafka_config is None else read_properties(self.kafka_config),
        )


def _header(columns: str, delimiter: str) -> bytes:
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow(name.strip() for name in columns.split(","))
    return line.getvalue().encode()


# Progress of ``fairtransport stream`` on standard error: a live line on a terminal, plain lines elsewhere.


class StreamReporter:
    """Reports batches at intervals, and alarms at once."""

    def __init__(
        self, seconds: float, show: Callable[[str], None] | None = None, say: Callable[[str], None] = print_stderr
    ) -> None:
        self._seconds, self._show, self._say = seconds, show, say
        self._due = time.monotonic() + seconds
        self._since, self._rows = time.monotonic(), 0

    def report_batch(self, report: AdjustmentReport, *, lines: int, rejected: int) -> None:
        """Report a batch."""
        self._rows += len(report.scores)
        if report.alarm:
            self._say(f"alarm: batch {report.batch}: a group's scores have changed; adjusting")
        if report.stalled:
            self._say(f"alarm: batch {report.batch}: not adjusted; no step brings the groups closer")
        if time.monotonic() < self._due and self._show is None and not report.alarm:
            return
        (self._show or self._say)(self._line(report, lines, rejected))
        self._due = time.monotonic() + self._seconds

    def warn(self, text: str) -> None:
        """Report a warning."""
        self._say(f"warning: {text}")

    def _line(self, report: AdjustmentReport, lines: int, rejected: int) -> str:
        spent = max(time.monotonic() - self._since, 1e-9)
        state = "frozen" if report.frozen else "at the border of the trust region" if report.at_border else "adjusting"
        unknown = f"{report.rows_without_group:,} without a known group, " if report.rows_without_group else ""
        return (
            f"batch {report.batch:,}: {lines:,} lines, {rejected:,} rejected, {unknown}"
            f"{self._rows / spent:,.0f} rows/s; disparity {report.disparity_after:.3f} (before "
            f"{report.disparity_before:.3f}, noise floor {report.noise_floor:.3f}); {state}, "
            f"moved {report.moved:.3f}, agreement {report.agreement:.3f}"
        )


@contextlib.contextmanager
def make_reporter(seconds: float) -> Iterator[StreamReporter]:
    """Yield the reporter for a terminal, or for another kind of standard error."""
    console: Any = Console(stderr=True)
    if not (console.is_terminal and sys.stderr.isatty()):
        yield StreamReporter(seconds)
        return
    with console.status(Text("waiting for lines")) as status:
        yield StreamReporter(
            seconds,
            show=lambda line: status.update(Text(one_line(line))),
            say=lambda line: console.print(Text(one_line(line)), soft_wrap=True),
        )


@shared.described(
    file=shared.argument("FILE", "JSON lines or CSV [default: standard input]."),
    model=shared.option("PATH", "Model file, written by `fairtransport train` or ft.save."),
    score=shared.REPAIRED_SCORE,
    store=shared.option("DIR", "Folder for checkpoints and the journal."),
    resume=shared.flag("--resume", "Continue from the last checkpoint in --store, if there is one."),
    out=shared.option("PATH", "Output file for scored lines [default: standard output]."),
    rejected=shared.option("PATH", "File for rejected lines [default: in --store, or next to --out]."),
    max_rejected=shared.option("SHARE", "Stop if a larger fraction of the lines is rejected.", min=0, max=1),
    batch=shared.option("N", "Number of lines in a batch.", min=1),
    checkpoint_every=shared.option("N", "Batches between two checkpoints.", min=1),
    follow=shared.flag("--follow", "Wait for more lines at the end of FILE or topic."),
    wait=shared.option("SECONDS", "Maximum time to wait for a full batch [default with Kafka: 1].", min=0),
    column=shared.option("NAME", "Name of the column to add [default: score, or SCORE_repaired]."),
    file_format=shared.option("FORMAT", "csv or jsonl [default: judged by the file name].", "--format"),
    delimiter=shared.option("CHARACTER", "Delimiter of CSV fields."),
    alarm_rate=shared.option("X", "Maximum rate of false alarms per batch.", min=0, max=1),
    trust_radius=shared.option("X", "How far the model may move from the accepted one.", min=0),
    keep_checkpoints=shared.option("N", "Number of checkpoints to keep.", min=1),
    freeze=shared.flag("--freeze", "Score and monitor without adjusting the model."),
    page=shared.option("PORT", "Serve a live page on this port, to this machine only."),
    report=shared.option("SECONDS", "Time between two status lines on standard error.", min=0),
)
def run_stream(
    file: Path | None = None,
    *,
    model: Path,
    sensitive: list[str] | None = None,
    unknown_group: str = "error",
    score: str | None = None,
    features: list[str] | None = None,
    store: Path | None = None,
    resume: bool = False,
    out: Path | None = None,
    rejected: Path | None = None,
    max_rejected: float = 0.05,
    batch: int = 500,
    checkpoint_every: int = 50,
    follow: bool = False,
    wait: float | None = None,
    column: str | None = None,
    file_format: str | None = None,
    delimiter: str = ",",
    alarm_rate: float = 0.001,
    trust_radius: float | None = None,
    keep_checkpoints: int = 5,
    freeze: bool = False,
    page: int | None = None,
    report: float = 10.0,
    kafka: KafkaOptions,
    verify: str | None = None,
    force: bool = False,
) -> None:
    """Score a stream of rows, and adjust the model when it drifts.

    Each valid line is written once, in order, with its score. Other lines are rejected with their number and the
    reason. The columns of features and groups are those of the model file. Linear models and repairs are adjusted;
    other models are scored and monitored. SIGTERM and Ctrl-C finish the current batch and write a checkpoint; with
    --resume and --out each line is in the output exactly once, even after kill -9. With --kafka, lines are the messages
    of a topic, and --follow waits for more of them.

    \b
    Exit status:
      0    end of the input, or SIGTERM
      1    bad input or another failure, explained on standard error
      2    too many rejected lines
      64   wrong usage
      130  interrupted by Ctrl-C

    \b
    Example:
      fairtransport stream --model model.ft --store run --resume \\
          --out scored.jsonl rows.jsonl
      tail -n +1 -F rows.jsonl | fairtransport stream --model model.ft \\
          --batch 100
      fairtransport stream --model model.ft --store run \\
          --resume --follow --kafka localhost:9092 --topic rows \\
          --group-id scoring --output-topic scored
    """  # noqa: D301 - \b keeps the lines of the example
    if resume and store is None:
        raise typer.BadParameter("--resume needs --store.")
    kafka.check(file=file, out=out, rejected=rejected, file_format=_format_of(file, file_format))
    if follow and file is None and not kafka:
        raise typer.BadParameter("--follow needs a FILE; a pipe is followed anyway.")
    from fairtransport.stream.input import LineSource, input_schema_for  # noqa: PLC0415
    from fairtransport.stream.loop import RunOptions, StreamRun, TooManyRejectedError  # noqa: PLC0415

    options = RunOptions(
        batch=batch,
        checkpoint_every=checkpoint_every,
        format=_format_of(file, file_format),
        column=column or ("score" if score is None else f"{score}_repaired"),
        delimiter=shared.as_delimiter(delimiter),
        out=out,
        rejected=None if kafka.rejected_topic else rejected or _rejected_path(store, out),
        max_rejected=max_rejected,
        wait=1.0 if kafka and follow and wait is None else wait,
        freeze=freeze,
        force=force,
    )
    _check_paths(options, file, [model, *([Path(verify)] if verify else [])], store)
    schema = input_schema_for(
        ft.load(model, verify=verify),
        sensitive=None if sensitive is None else shared.split_names(sensitive),
        score=score,
        features=None if features is None else shared.split_names(features),
        unknown_group=unknown_group,
    )
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(_stopping())
        adjusting = {
            "alarm_rate": alarm_rate,
            "trust_radius": trust_radius,
            "keep_checkpoints": keep_checkpoints,
            "unknown_group": unknown_group,
            "title": model.name,
        }
        adjuster = stack.enter_context(_adjuster(schema, store, adjusting, resume=resume))
        schema = replace(schema, unknown_group=adjuster.unknown_group)  # of a store, that with which it was begun
        if page is not None:
            stack.enter_context(_page(adjuster, page))
        source: LineSource | TopicSource
        if kafka:
            opened = kafka.topics(follow=follow, stop=stop.is_set, delimiter=options.delimiter)
            source, output = stack.enter_context(opened)
        else:
            handle = stack.enter_context(_opened(file))
            source, output = LineSource(handle, follow=follow, stop=stop.is_set), None
        try:
            with make_reporter(report) as reporter:
                run = StreamRun(adjuster, schema, source, options, reporter, topic=output)
                run.run(stop.is_set)
        except TooManyRejectedError as error:
            where = "" if options.rejected is None else f" Their numbers and the reasons are in {options.rejected}."
            print_stderr(f"stopped: {error}{where}")
            raise typer.Exit(EXCEEDED) from None
        except KeyboardInterrupt:
            if stop.by != signal.SIGTERM:
                raise
            print_stderr("stopped; the last checkpoint is intact")
            raise typer.Exit(0) from None
        where = f" (see {options.rejected})" if run.rejected and options.rejected is not None else ""
        without = adjuster.rows_without_group
        unknown = f" ({without:,} without a known group)" if without else ""
        counts = f"{adjuster.rows:,} rows scored{unknown}, {run.rejected:,} lines rejected{where}"
        cells = f", {count_of(run.replaced.total(), 'cell')} unlike those of training" if run.replaced else ""
        print_stderr(f"done: {counts}{cells}, {adjuster.alarms} alarms")
        if stop.by == signal.SIGINT:
            raise typer.Exit(130)


class _Stop(threading.Event):
    """Set by the first signal; remembers which it was."""

    by: int | None = None


@contextlib.contextmanager
def _stopping() -> Iterator[_Stop]:
    """Let the first SIGTERM or Ctrl-C ask for a stop after the batch, and a second Ctrl-C end at once."""
    stop = _Stop()

    def ask(number: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.by = number
        stop.set()

    with handling(ask, "SIGTERM", "SIGINT"):
        yield stop


@contextlib.contextmanager
def _adjuster(
    schema: InputSchema, store: Path | None, options: dict[str, Any], *, resume: bool
) -> Iterator[ContinualAdjuster]:
    """Begin or go on; warnings of the store become lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ft.stream.StoreWarning)
        if resume and store is not None and ft.stream.ContinualAdjuster.is_store(store):
            adjuster = ft.stream.ContinualAdjuster.resume(store, model=schema.scorer.model)
        else:
            adjuster = ft.stream.ContinualAdjuster(schema.scorer.model, store=store, checkpoint_every=None, **options)
    for warning in caught:
        print_stderr(f"warning: {warning.message}")
    with warnings.catch_warnings(), adjuster:
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # columns were taken by name
        yield adjuster


@contextlib.contextmanager
def _page(adjuster: ContinualAdjuster, port: int) -> Iterator[None]:
    """Serve the page; whatever happens to it, the stream goes on."""
    try:
        load_extra("uvicorn")
        page = importlib.import_module("fairtransport.serving.live_page").serve_page(adjuster.snapshot, port)
    except (ImportError, OSError) as error:
        print_stderr(f"warning: there is no page. {describe_error(error)}")
        yield
        return
    print_stderr(f"page: {page.url}")
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            page.close()


@contextlib.contextmanager
def _opened(file: Path | None) -> Iterator[int]:
    if file is None:
        yield sys.stdin.fileno()
    else:
        with file.open("rb", buffering=0) as opened:
            yield opened.fileno()


def _check_paths(options: RunOptions, file: Path | None, others: list[Path], store: Path | None) -> None:
    """Raise if one of the files is another one, or belongs to the store."""
    written, read = [path for path in (options.out, options.rejected) if path], [file] if file else []
    check_paths([*written, *([] if options.out else standard_output())], inputs=[*read, *others])
    if store is not None:
        own = _rejected_path(store, None)
        check_paths([path for path in (*written, *read) if path != own], folders=[store])


def _format_of(file: Path | None, given: str | None) -> str:
    if given is not None:
        if given not in {"csv", "jsonl"}:
            raise typer.BadParameter("--format must be csv or jsonl.")
        return given
    return "csv" if file is not None and file.suffix.lower() in {".csv", ".tsv"} else "jsonl"


def _rejected_path(store: Path | None, out: Path | None) -> Path | None:
    if store is not None:
        return store / "rejected.jsonl"
    return None if out is None else out.with_name(f"{out.name}.rejected.jsonl")
