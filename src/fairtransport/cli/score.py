"""``fairtransport score``: the rows of files with the scores of a model file."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _options as shared
from fairtransport.cli._console import count_of, print_paths, print_sentence, progress_bar
from fairtransport.cli._errors import collect_warnings, misuse, option_names_in_errors, print_stderr
from fairtransport.cli._json import JsonOutput
from fairtransport.cli._output import prepare_files
from fairtransport.cli._paths import check_paths, standard_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.tabular import TableModel

__all__ = ["run_score"]

_WITHOUT = ("no group", "unknown group")


@shared.with_reading_options
def run_score(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model file written by `fairtransport train`.")],
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
    verify: shared.Verify = None,
    json_path: shared.JsonPath = None,
    force: shared.Force = False,
    reading: shared.Reading,
) -> None:
    """Score the rows of files with a trained model.

    Files may be larger than memory; FILE may be - for standard input. Columns are found by name and may have any
    order; a missing column is an error. Missing values and categories not seen in training are handled as in training.
    The output has the rows in their order. If the model needs the group, a row without one or of an unknown one gets no
    score and is counted. --sensitive is needed only if its columns are called differently here than in training.

    \b
    Example:
      fairtransport score model.ft new.csv --out scored.csv
      cat new.csv | fairtransport score model.ft - --threshold .5 --out -
    """  # noqa: D301 - \b keeps the lines of the example
    json_output, to_stdout = JsonOutput(json_path), out == "-"
    if to_stdout and json_output.to_stdout:
        raise misuse("--out - and --json - cannot both have standard output")
    written = None if to_stdout else Path(out)
    read = [model, *files, *([verify] if verify else [])]
    prepare_files([written, json_output.path], force=force, inputs=read)
    check_paths(standard_output() if to_stdout else [], inputs=read)
    scoring = {"output": column, "threshold": 0.5 if threshold is None else threshold}
    if threshold is not None:
        scoring["decision"] = decision
    if "-" in files:
        reading["format"] = reading["format"] or "csv"  # which no name tells
    with option_names_in_errors(), collect_warnings() as warnings, _with_stdin(files) as paths:
        counts = _score(
            _load(model, verify, reading["decimal"]), paths, written, sensitive, reading=reading, scoring=scoring
        )
    summary = {reason.replace(" ", "_"): number for reason, number in counts.items()}
    json_output.write({**summary, "warnings": warnings, "written": out})
    if not json_output.to_stdout:
        _show(counts, warnings, written, json_output)


def _load(path: str, verify: str | None, decimal: str) -> TableModel:
    from fairtransport.persistence import load  # noqa: PLC0415
    from fairtransport.tabular import TableModel  # noqa: PLC0415 - scikit-learn takes a while

    model = load(path, verify=verify)
    if not isinstance(model, TableModel):
        raise TypeError(
            f"{path} holds a {type(model).__name__}, which takes features, not raw columns; train a model with "
            "`fairtransport train`."
        )
    model.encoder_.set_params(decimal=decimal)
    return model


def _score(
    model: TableModel,
    files: list[str],
    out: Path | None,
    sensitive: list[str] | None,
    *,
    reading: dict[str, Any],
    scoring: dict[str, Any],
) -> dict[str, int]:
    from fairtransport.tables import open_files  # noqa: PLC0415
    from fairtransport.tables.files.paths import find_files  # noqa: PLC0415
    from fairtransport.tables.files.writers import check_output, stream_writer, table_writer  # noqa: PLC0415
    from fairtransport.tabular.file_scoring import score_file  # noqa: PLC0415

    if out is not None:
        check_output(out)
    known = find_files(files, format=reading["format"])[0].format
    as_text = known if known == "jsonl" else "csv"

    def open_output(schema: Any) -> Any:
        return stream_writer(sys.stdout.buffer, as_text, schema) if out is None else table_writer(out, schema)

    with open_files(files, **reading) as table, progress_bar("Scoring") as tell:
        names = None if sensitive is None else table.split(sensitive)
        return score_file(model, table, open_output, sensitive_features=names, on_progress=tell, **scoring)


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
            raise ValueError(str(error).replace(path, "standard input")) from error


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


def _show(counts: dict[str, int], warnings: list[str], out: Path | None, json_output: JsonOutput) -> None:
    """Print a summary, on standard error if the rows themselves went to standard output."""
    decided = f" {counts['positive']:,} have a positive decision." if "positive" in counts else ""
    lines = [f"{counts['scored']:,} of {counts['rows']:,} rows have a score.{decided}"]
    lines += [
        f"Without a score: {count_of(counts[reason], 'row')}, {reason}." for reason in _WITHOUT if counts.get(reason)
    ]
    if counts.get("unreadable"):
        lines.append(f"Treated as missing: {count_of(counts['unreadable'], 'cell')} without a readable number or date.")
    if counts.get("unseen category"):
        lines.append(f"Not seen in training: the category of {count_of(counts['unseen category'], 'cell')}.")
    if counts.get("rare or unseen category"):
        rare = count_of(counts["rare or unseen category"], "cell")
        lines.append(f"Rare in training or not seen there: the category of {rare}.")
    lines += [f"Note: {text}" for text in warnings]
    if out is None:
        for text in lines:
            print_stderr(text)
        return
    for text in lines:
        print_sentence(text)
    print_paths({"Written": out, "JSON": json_output.path})
