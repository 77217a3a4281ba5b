"""``fairtransport stream``: lines in, scored lines out, and the model is kept fair meanwhile."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _kafka as kafka
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import describe, print_stderr
from fairtransport.cli._limits import EXCEEDED
from fairtransport.cli._paths import check_paths, standard_output
from fairtransport.cli._stream_report import make_reporter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.stream import ContinualAdjuster
    from fairtransport.stream.input import InputSchema, Source
    from fairtransport.stream.loop import RunOptions

__all__ = ["run_stream"]


def run_stream(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="JSON lines or CSV [default: standard input].")
    ] = None,
    *,
    model: Annotated[
        Path, typer.Option("--model", metavar="PATH", help="Model file, written by `fairtransport train` or ft.save.")
    ],
    sensitive: shared.OptionalSensitive = None,
    unknown_group: shared.UnknownGroup = "error",
    score: Annotated[
        str | None,
        typer.Option("--score", metavar="COLUMN", help="Column with the scores, if the model is a QuantileRepair."),
    ] = None,
    features: shared.Features = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="DIR", help="Folder for checkpoints and the journal.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the last checkpoint in --store, if there is one.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="Output file for scored lines [default: standard output]."),
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected", metavar="PATH", help="File for rejected lines [default: in --store, or next to --out]."
        ),
    ] = None,
    max_rejected: Annotated[
        float,
        typer.Option(
            "--max-rejected", metavar="SHARE", min=0, max=1, help="Stop if a larger fraction of the lines is rejected."
        ),
    ] = 0.05,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Number of lines in a batch.")] = 500,
    checkpoint_every: Annotated[
        int, typer.Option("--checkpoint-every", metavar="N", min=1, help="Batches between two checkpoints.")
    ] = 50,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more lines at the end of FILE or topic.")] = False,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Maximum time to wait for a full batch [default with Kafka: 1]."
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="NAME", help="Name of the column to add [default: score, or SCORE_repaired]."),
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="csv or jsonl [default: judged by the file name].")
    ] = None,
    delimiter: Annotated[str, typer.Option("--delimiter", metavar="CHARACTER", help="Delimiter of CSV fields.")] = ",",
    alarm_rate: Annotated[
        float, typer.Option("--alarm-rate", metavar="X", min=0, max=1, help="Maximum rate of false alarms per batch.")
    ] = 0.001,
    trust_radius: Annotated[
        float | None,
        typer.Option("--trust-radius", metavar="X", min=0, help="How far the model may move from the accepted one."),
    ] = None,
    keep_checkpoints: Annotated[
        int, typer.Option("--keep-checkpoints", metavar="N", min=1, help="Number of checkpoints to keep.")
    ] = 5,
    freeze: Annotated[bool, typer.Option("--freeze", help="Score and monitor without adjusting the model.")] = False,
    page: Annotated[
        int | None, typer.Option("--page", metavar="PORT", help="Serve a live page on this port, to this machine only.")
    ] = None,
    report: Annotated[
        float,
        typer.Option("--report", metavar="SECONDS", min=0, help="Time between two status lines on standard error."),
    ] = 10.0,
    brokers: kafka.Brokers = None,
    topic: kafka.Topic = None,
    group_id: kafka.GroupId = None,
    output_topic: kafka.OutputTopic = None,
    rejected_topic: kafka.RejectedTopic = None,
    partitions: kafka.Partitions = None,
    start_at: kafka.StartAt = "earliest",
    columns: kafka.Columns = None,
    kafka_config: kafka.ConfigFile = None,
    verify: shared.Verify = None,
    force: shared.Force = False,
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
    topics = kafka.KafkaArguments(
        brokers, topic, group_id, output_topic, rejected_topic, partitions, start_at, columns, kafka_config
    )
    topics.check(file=file, out=out, rejected=rejected, file_format=_format_of(file, file_format))
    if follow and file is None and not topics:
        raise typer.BadParameter("--follow needs a FILE; a pipe is followed anyway.")
    from fairtransport.persistence import load  # noqa: PLC0415 - scikit-learn takes a while
    from fairtransport.stream.input import LineSource, input_schema_for  # noqa: PLC0415
    from fairtransport.stream.loop import RunOptions, StreamRun, TooManyRejectedError  # noqa: PLC0415

    options = RunOptions(
        batch=batch,
        checkpoint_every=checkpoint_every,
        format=_format_of(file, file_format),
        column=column or ("score" if score is None else f"{score}_repaired"),
        delimiter="\t" if delimiter in {"tab", "\\t"} else delimiter,
        out=out,
        rejected=None if rejected_topic else rejected or _rejected_path(store, out),
        max_rejected=max_rejected,
        wait=1.0 if topics and follow and wait is None else wait,
        freeze=freeze,
        force=force,
    )
    _check_paths(options, file, [model, *([Path(verify)] if verify else [])], store)
    schema = input_schema_for(
        load(model, verify=verify),
        sensitive=None if sensitive is None else _split(sensitive),
        score=score,
        features=None if features is None else _split(features),
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
        source: Source
        if topics:
            opened = topics.topics(follow=follow, stop=stop.is_set, delimiter=options.delimiter)
            source, output = stack.enter_context(opened)
        else:
            handle = stack.enter_context(_opened(file))
            source, output = LineSource(handle, follow=follow, stop=stop.is_set), None
        try:
            with make_reporter(seconds=report) as reporter:
                run = StreamRun(adjuster, schema, source, options, reporter, topic=output)
                run.run(stop.is_set)
        except TooManyRejectedError as error:
            print_stderr(f"stopped: {error}{_where(options.rejected)}")
            raise typer.Exit(EXCEEDED) from None
        except KeyboardInterrupt:
            if stop.by != signal.SIGTERM:
                raise
            print_stderr("stopped; the last checkpoint is intact")
            raise typer.Exit(0) from None
        reporter.end(
            rows=adjuster.rows,
            rows_without_group=adjuster.rows_without_group,
            rejected=run.rejected,
            alarms=adjuster.alarms,
            rejected_file=options.rejected,
        )
        if stop.by == signal.SIGINT:
            raise typer.Exit(130)


class _Stop(threading.Event):
    """Set by the first signal; remembers which it was."""

    by: int | None = None


@contextlib.contextmanager
def _stopping() -> Iterator[_Stop]:
    """Let the first SIGTERM or Ctrl-C ask for a stop after the batch, and a second Ctrl-C end at once."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.by = number
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _adjuster(
    schema: InputSchema, store: Path | None, options: dict[str, Any], *, resume: bool
) -> Iterator[ContinualAdjuster]:
    """Begin or go on; warnings of the store become lines."""
    import warnings  # noqa: PLC0415

    from fairtransport.stream import ContinualAdjuster, StoreWarning  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StoreWarning)
        if resume and store is not None and ContinualAdjuster.is_store(store):
            adjuster = ContinualAdjuster.resume(store, model=schema.model)
        else:
            adjuster = ContinualAdjuster(schema.model, store=store, checkpoint_every=None, **options)
    for warning in caught:
        print_stderr(f"warning: {warning.message}")
    with warnings.catch_warnings(), adjuster:
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # columns were taken by name
        yield adjuster


@contextlib.contextmanager
def _page(adjuster: ContinualAdjuster, port: int) -> Iterator[None]:
    """Serve the page; whatever happens to it, the stream goes on."""
    from fairtransport._extras import load_extra  # noqa: PLC0415

    try:
        load_extra("uvicorn")
        page = importlib.import_module("fairtransport.serving.live_page").serve_page(adjuster.snapshot, port)
    except (ImportError, OSError) as error:
        print_stderr(f"warning: there is no page. {describe(error)}")
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
        return
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        yield handle
    finally:
        os.close(handle)


def _check_paths(options: RunOptions, file: Path | None, others: list[Path], store: Path | None) -> None:
    """Raise if one of the files is another one, or belongs to the store."""
    written, read = [path for path in (options.out, options.rejected) if path], [file] if file else []
    check_paths([*written, *([] if options.out else standard_output())], inputs=[*read, *others])
    if store is not None:
        own = _rejected_path(store, None)
        check_paths([path for path in (*written, *read) if path != own], folders=[store])


def _where(rejected: Path | None) -> str:
    return "" if rejected is None else f" Their numbers and the reasons are in {rejected}."


def _split(names: list[str]) -> list[str]:
    return [part.strip() for name in names for part in name.split(",") if part.strip()]


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
