"""``fairtransport score``: the rows of files with the scores of a model file."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import fairtransport as ft
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import collect_warnings, misuse, print_stderr
from fairtransport.cli._limits import EXCEEDED
from fairtransport.cli._output import Output, check_paths, count_of, print_sentence, progress_bar, standard_output
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from fairtransport.tabular.file_scoring import FileScores


@shared.described(
    out=shared.option("PATH", "Output file: .parquet, .feather, .csv, .jsonl, .csv.gz, ..., or - for standard output."),
    threshold=shared.option("X", "Also add a column of decisions: 1 where the score is above X.", min=0, max=1),
    column=shared.option("NAME", "Name of the column to add."),
    decision=shared.option("NAME", "Name of the column of decisions."),
    score=shared.REPAIRED_SCORE,
    rejected=shared.option(
        "PATH",
        "File with the number, from 1 after the header, and the reason of each row without a score "
        "[default: OUT.rejected.jsonl].",
    ),
    max_rejected=shared.option("SHARE", "Exit status 2 if a larger share has no score.", min=0, max=1),
)
def run_score(
    model: str,
    files: list[str],
    *,
    out: str,
    threshold: float | None = None,
    column: str = "score",
    decision: str = "decision",
    sensitive: list[str] | None = None,
    unknown_group: str = "error",
    features: list[str] | None = None,
    score: str = "score",
    rejected: Path | None = None,
    max_rejected: float = 0.0,
    verify: str | None = None,
    output: Output,
    reading: shared.ReadingOptions,
) -> None:
    """Score the rows of files with a trained model.

    Files may be larger than memory; FILE may be - for standard input. Columns are found by name and may have any
    order; a missing column is an error. Missing values and categories not seen in training are handled as in training.
    The output has the rows in their order. A row that cannot be scored has an empty score, and is listed with its
    reason in the file of --rejected. --sensitive is needed only if its columns are called differently here than in
    training, and not at all for a model that does not need the group.

    \b
    Exit status:
      0    all rows have a score, or all but the share of --max-rejected
      1    bad input or another failure, explained on standard error
      2    more rows have none
      64   wrong usage
      130  interrupted by Ctrl-C

    \b
    Example:
      fairtransport score model.ft new.csv --out scored.csv
      cat new.csv | fairtransport score model.ft - --threshold .5 --out -
    """  # noqa: D301 - \b keeps the lines of the example
    written = None if out == "-" else Path(out)
    if written is None and output.is_json:
        raise misuse("--out - and --json - cannot both have standard output")
    if rejected is None and written is not None:
        rejected = written.with_name(f"{written.name}.rejected.jsonl")
    read = [model, *files, *([verify] if verify else [])]
    output.prepare(written, rejected, inputs=read)
    check_paths(standard_output() if written is None else [], inputs=read)
    if "-" in files and reading.file_format is None:
        reading = replace(reading, file_format="csv")  # which no name tells
    with collect_warnings() as warnings, _with_stdin(files) as paths:
        from fairtransport.tabular.file_scoring import score_file  # noqa: PLC0415

        loaded = ft.load(model, verify=verify)
        open_output = _output_opener(paths, written, reading.file_format)
        with reading.open(paths) as table, progress_bar("Scoring") as tell, _rejects(rejected) as add_rejected:
            scorer = ft.tabular.RowScorer(
                loaded,
                sensitive_features=None if sensitive is None else table.split(sensitive),
                unknown_group=unknown_group,
                features=None if features is None else table.split(features),
                score=score,
                decimal=reading.decimal,
            )
            result = score_file(
                scorer,
                table,
                open_output,
                output=column,
                decision=None if threshold is None else decision,
                threshold=0.5 if threshold is None else threshold,
                on_set_aside=add_rejected,
                on_progress=tell,
            )
    hint = _decimal_hint(result, reading.decimal or getattr(loaded, "decimal", None))
    warnings += [hint] if hint else []
    listed = rejected if result.set_aside else None
    summary = {
        "rows": result.rows,
        "scored": result.scored,
        **({} if result.positive is None else {"positive": result.positive}),
        "set_aside": result.set_aside,
        "replaced": result.counts,
        "rejected": None if listed is None else str(listed),
        "warnings": warnings,
        "written": out,
    }
    output.write_json(summary)
    if not output.is_json:
        say = print_stderr if written is None else print_sentence  # the rows themselves went to standard output
        for line in _summary(result, warnings):
            say(line)
        if written is not None:
            output.print_paths({"Written": written, "Without a score": listed})
        elif listed is not None:
            say(f"Rows without a score are listed in {listed}.")
    if result.rows - result.scored > max_rejected * result.rows:
        raise typer.Exit(EXCEEDED)


def _output_opener(files: list[str], out: Path | None, file_format: str | None) -> Callable[[Any], Any]:
    """Return what opens the output for rows of a schema; standard output has the format of the input."""
    from fairtransport.tables.files.paths import find_files  # noqa: PLC0415
    from fairtransport.tables.files.writers import check_output, stream_writer, table_writer  # noqa: PLC0415

    if out is not None:
        check_output(out)
        return lambda schema: table_writer(out, schema)
    known = find_files(files, format=file_format)[0].format
    return lambda schema: stream_writer(sys.stdout.buffer, known if known == "jsonl" else "csv", schema)


@contextlib.contextmanager
def _rejects(path: Path | None) -> Iterator[Callable[[int, str], Any]]:
    """Yield what adds a row without a score; the file of them appears at the end, and only if there are some."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        yield lambda row, reason: file.write(json.dumps({"row": row, "reason": reason}) + "\n")
        if path is not None and file.tell():
            file.seek(0)
            write_atomically(path, file.read().encode())


@contextlib.contextmanager
def _with_stdin(files: list[str]) -> Iterator[list[str]]:
    """Yield the files, with standard input copied to one, because the head of a file is read before its rows."""
    if "-" not in files:
        yield files
        return
    with _nameless_file() as (file, path):
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        try:
            yield [path if name == "-" else name for name in files]
        except ValueError as error:
            error.args = (str(error).replace(path, "standard input"),)
            raise


@contextlib.contextmanager
def _nameless_file() -> Iterator[tuple[Any, str]]:
    """Yield an open file and a path to it; it has no name in any folder, so that no signal can leave it behind."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():  # not Linux: a file that is removed at the end, and after SIGTERM and SIGHUP
        with tempfile.NamedTemporaryFile(prefix="fairtransport-") as file:
            yield file, file.name
        return
    with tempfile.TemporaryFile() as file:
        yield file, str(descriptors / str(file.fileno()))


def _decimal_hint(result: FileScores, decimal: str | None) -> str:
    """Return how to read another decimal separator, where most rows have something that is not a number."""
    unread = sum(rows for reason, rows in result.set_aside.items() if reason.endswith("is not a number"))
    other, name = (".", "point") if decimal == "," else (",", "comma")
    return f"If these numbers have a decimal {name}, add --decimal '{other}'." if 2 * unread > result.rows else ""


def _summary(result: FileScores, warnings: list[str]) -> Iterator[str]:
    decided = "" if result.positive is None else f" {result.positive:,} have a positive decision."
    yield f"{result.scored:,} of {result.rows:,} rows have a score.{decided}"
    for reason, rows in result.set_aside.items():
        yield f"Without a score: {count_of(rows, 'row')}, {reason}."
    from fairtransport.tabular.rows import REPLACED  # noqa: PLC0415 - loaded by now

    for (kind, name), n_cells in result.replaced.items():
        yield f"Column {name!r}: {count_of(n_cells, 'cell')} with {REPLACED[kind]}."
    yield from (f"Note: {text}" for text in warnings)
