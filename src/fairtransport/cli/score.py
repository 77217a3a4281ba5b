"""``fairtransport score``: the rows of files with the scores of a model file."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from fairtransport.cli import _options as shared
from fairtransport.cli._errors import collect_warnings, misuse, print_stderr
from fairtransport.cli._limits import EXCEEDED
from fairtransport.cli._output import (
    JsonOutput,
    check_paths,
    count_of,
    prepare_files,
    print_paths,
    print_sentence,
    progress_bar,
    standard_output,
)
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.tabular.file_scoring import FileScores


_NAMED = ("sensitive_features", "features")  # options that are lists of columns


@shared.with_reading_options
def run_score(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model file, written by `fairtransport train` or ft.save.")
    ],
    files: shared.Files,
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Output file: .parquet, .feather, .csv, .jsonl, .csv.gz, ..., or - for standard output.",
        ),
    ],
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="X",
            min=0,
            max=1,
            help="Also add a column of decisions: 1 where the score is above X.",
        ),
    ] = None,
    column: Annotated[str, typer.Option("--column", metavar="NAME", help="Name of the column to add.")] = "score",
    decision: Annotated[
        str, typer.Option("--decision", metavar="NAME", help="Name of the column of decisions.")
    ] = "decision",
    sensitive: shared.OptionalSensitive = None,
    unknown_group: shared.UnknownGroup = "error",
    features: shared.Features = None,
    score: Annotated[
        str, typer.Option("--score", metavar="COLUMN", help="Column with the scores, if the model is a QuantileRepair.")
    ] = "score",
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected",
            metavar="PATH",
            help="File with the number and the reason of each row without a score [default: OUT.rejected.jsonl].",
        ),
    ] = None,
    max_rejected: Annotated[
        float,
        typer.Option(
            "--max-rejected", metavar="SHARE", min=0, max=1, help="Exit status 2 if a larger share has no score."
        ),
    ] = 0.0,
    verify: shared.Verify = None,
    json_path: shared.JsonPath = None,
    force: shared.Force = False,
    reading: shared.Reading,
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

    \b
    Example:
      fairtransport score model.ft new.csv --out scored.csv
      cat new.csv | fairtransport score model.ft - --threshold .5 --out -
    """  # noqa: D301 - \b keeps the lines of the example
    json_output, to_stdout = JsonOutput(json_path), out == "-"
    if to_stdout and json_output.to_stdout:
        raise misuse("--out - and --json - cannot both have standard output")
    written = None if to_stdout else Path(out)
    if rejected is None and written is not None:
        rejected = written.with_name(f"{written.name}.rejected.jsonl")
    read = [model, *files, *([verify] if verify else [])]
    prepare_files([written, json_output.path, rejected], force=force, inputs=read)
    check_paths(standard_output() if to_stdout else [], inputs=read)
    scoring = {"output": column, "threshold": 0.5 if threshold is None else threshold}
    if threshold is not None:
        scoring["decision"] = decision
    if "-" in files:
        reading["format"] = reading["format"] or "csv"  # which no name tells
    options = {
        "sensitive_features": sensitive,
        "unknown_group": unknown_group,
        "features": features,
        "score": score,
        "decimal": reading["decimal"],
    }
    with collect_warnings() as warnings, _with_stdin(files) as paths:
        from fairtransport.persistence import load  # noqa: PLC0415 - scikit-learn takes a while

        result = _score(
            load(model, verify=verify), paths, written, rejected, reading=reading, scoring=scoring, options=options
        )
    rejects = rejected if result.set_aside else None
    summary = {name.replace(" ", "_"): number for name, number in result.counts.items()}
    decided = {} if result.positive is None else {"positive": result.positive}
    counts = {"rows": result.rows, "scored": result.scored, **decided, "set_aside": result.set_aside, **summary}
    json_output.write(
        {**counts, "rejected": None if rejects is None else str(rejects), "warnings": warnings, "written": out}
    )
    if not json_output.to_stdout:
        _show(result, warnings, written, rejects, json_output)
    if result.rows - result.scored > max_rejected * result.rows:
        raise typer.Exit(EXCEEDED)


def _score(
    model: Any,
    files: list[str],
    out: Path | None,
    rejected: Path | None,
    *,
    reading: dict[str, Any],
    scoring: dict[str, Any],
    options: dict[str, Any],
) -> FileScores:
    from fairtransport.tables import open_files  # noqa: PLC0415
    from fairtransport.tables.files.paths import find_files  # noqa: PLC0415
    from fairtransport.tables.files.writers import check_output, stream_writer, table_writer  # noqa: PLC0415
    from fairtransport.tabular import RowScorer  # noqa: PLC0415
    from fairtransport.tabular.file_scoring import score_file  # noqa: PLC0415

    if out is not None:
        check_output(out)
    known = find_files(files, format=reading["format"])[0].format
    as_text = known if known == "jsonl" else "csv"

    def open_output(schema: Any) -> Any:
        return stream_writer(sys.stdout.buffer, as_text, schema) if out is None else table_writer(out, schema)

    with open_files(files, **reading) as table, progress_bar("Scoring") as tell, _Rejects(rejected) as rejects:
        names = {name: None if options[name] is None else table.split(options[name]) for name in _NAMED}
        scorer = RowScorer(model, **options | names)
        return score_file(scorer, table, open_output, on_set_aside=rejects.add, on_progress=tell, **scoring)


class _Rejects:
    """The file of rows without a score, which appears at the end, and only if there are some."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._file = path, tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed below
        self._is_empty = True

    def __enter__(self) -> Self:
        return self

    def add(self, row: int, reason: str) -> None:
        """Add a row."""
        self._file.write(json.dumps({"row": row, "reason": reason}) + "\n")
        self._is_empty = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is None and self._path is not None and not self._is_empty:
                self._file.seek(0)
                write_atomically(self._path, self._file.read().encode())


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


def _show(
    result: FileScores, warnings: list[str], out: Path | None, rejects: Path | None, json_output: JsonOutput
) -> None:
    """Print a summary, on standard error if the rows themselves went to standard output."""
    counts = result.counts
    decided = "" if result.positive is None else f" {result.positive:,} have a positive decision."
    lines = [f"{result.scored:,} of {result.rows:,} rows have a score.{decided}"]
    lines += [f"Without a score: {count_of(rows, 'row')}, {reason}." for reason, rows in result.set_aside.items()]
    if counts.get("unreadable"):
        lines.append(f"Treated as missing: {count_of(counts['unreadable'], 'cell')} without a readable number or date.")
    if counts.get("unseen category"):
        lines.append(f"Not seen in training: the category of {count_of(counts['unseen category'], 'cell')}.")
    if counts.get("rare or unseen category"):
        rare = count_of(counts["rare or unseen category"], "cell")
        lines.append(f"Rare in training or not seen there: the category of {rare}.")
    lines += [f"Note: {text}" for text in warnings]
    if out is None:
        lines += [] if rejects is None else [f"Rows without a score are listed in {rejects}."]
        for text in lines:
            print_stderr(text)
        return
    for text in lines:
        print_sentence(text)
    print_paths({"Written": out, "Without a score": rejects, "JSON": json_output.path})
