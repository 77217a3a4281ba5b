"""``fairtransport score``: a model file and raw rows -> the rows with scores."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _tables as shared
from fairtransport.cli._console import many, print_path, print_sentence
from fairtransport.cli._errors import complain, misuse, warned
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._output import prepare_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.tabular import TableModel

__all__ = ["run_score"]

_WITHOUT = ("no group", "unknown group")


def run_score(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model file that `fairtransport train` wrote.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Raw rows: CSV, Parquet, Feather or JSON lines; patterns; .csv.gz and .zst too; - for standard input.",
        ),
    ],
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="PATH", help="File to write: .parquet, .feather, .csv, .jsonl, ...; - for standard output."
        ),
    ],
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", metavar="X", min=0, max=1, help="Add decisions: 1 where the score is above X."),
    ] = None,
    column: Annotated[str, typer.Option("--column", metavar="NAME", help="Name of the new column.")] = "score",
    decision: Annotated[
        str, typer.Option("--decision", metavar="NAME", help="Name of that of decisions.")
    ] = "decision",
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="COLUMNS", help="The groups' columns here, if their names have changed."),
    ] = None,
    json_to: JsonTo = None,
    force: shared.Force = False,
    file_format: shared.Format = None,
    delimiter: shared.Delimiter = None,
    encoding: shared.Encoding = "utf-8",
    null: shared.Null = None,
    decimal: shared.Decimal = ".",
    max_expansion: shared.MaxExpansion = 200,
    memory: shared.Memory = "2GiB",
    threads: shared.Threads = None,
) -> None:
    """Score raw rows with a model file; write them with their scores.

    Files may be larger than memory. Columns are found by name, in any order; rows keep theirs. A missing column is an
    error. A missing value, or a word that training did not see, is dealt with as in training. Where the model needs
    the group, a row of none or of an unknown one gets no score, and is counted.

    \b
    Example:
      fairtransport score model.ft new.csv --out scored.csv
      cat new.csv | fairtransport score model.ft - --threshold .5 --out -
    """  # noqa: D301 - \b keeps the lines of the example
    goal, to_stdout = JsonGoal(json_to), out == "-"
    if to_stdout and goal.to_stdout:
        raise misuse("--out - and --json - cannot both have standard output")
    written = None if to_stdout else Path(out)
    prepare_files([written, goal.path], force=force, ask=shared.on_terminal(), inputs=[model, *files])
    reading = shared.read_options(
        format=file_format,
        delimiter=delimiter,
        encoding=encoding,
        null=null,
        decimal=decimal,
        max_expansion=max_expansion,
        memory=memory,
        threads=threads,
    )
    scoring = {"output": column, "threshold": 0.5 if threshold is None else threshold}
    if threshold is not None:
        scoring["decision"] = decision
    with shared.in_options(), warned() as warnings, _with_stdin(files, reading) as given:
        counts = _score(_load(model, decimal), given, written, sensitive, reading=reading, scoring=scoring)
    told = {reason.replace(" ", "_"): number for reason, number in counts.items()}
    goal.write({**told, "warnings": warnings, "written": out})
    if not goal.to_stdout:
        _show(counts, warnings, written, goal)


def _load(path: str, decimal: str) -> TableModel:
    from fairtransport.persistence import load  # noqa: PLC0415
    from fairtransport.tabular import TableModel  # noqa: PLC0415 - scikit-learn takes a while

    model = load(path)
    if not isinstance(model, TableModel):
        raise TypeError(
            f"{path} holds a {type(model).__name__}, which does not know what becomes of raw columns; `fairtransport "
            "train` makes models that do."
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
    from fairtransport.tables.files.writing import check_output, writing, writing_to  # noqa: PLC0415
    from fairtransport.tabular.scored_files import score_file  # noqa: PLC0415

    if out is not None:
        check_output(out)
    known = find_files(files, format=reading["format"])[0].format
    as_text = known if known == "jsonl" else "csv"

    def open_output(schema: Any) -> Any:
        return writing_to(sys.stdout.buffer, as_text, schema) if out is None else writing(out, schema)

    with open_files(files, **reading) as table, shared.bar("Scoring") as tell:
        names = None if sensitive is None else table.split(sensitive)
        return score_file(model, table, open_output, sensitive=names, tell=tell, **scoring)


@contextlib.contextmanager
def _with_stdin(files: list[str], reading: dict[str, Any]) -> Iterator[list[str]]:
    """Give the files; standard input becomes one, because the head of a file is read before its rows."""
    if "-" not in files:
        yield files
        return
    with tempfile.TemporaryDirectory(prefix="fairtransport-") as folder:
        path = Path(folder) / f"standard-input.{reading['format'] or 'csv'}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield [str(path) if name == "-" else name for name in files]
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "standard input")) from error


def _show(counts: dict[str, int], warnings: list[str], out: Path | None, goal: JsonGoal) -> None:
    """Say what was done; on standard error where the rows themselves went to standard output."""
    decided = f" {counts['positive']:,} are decided positively." if "positive" in counts else ""
    told = [f"{counts['scored']:,} of {counts['rows']:,} rows have a score.{decided}"]
    told += [f"Without a score: {many(counts[reason], 'row')}, {reason}." for reason in _WITHOUT if counts.get(reason)]
    if counts.get("unreadable"):
        told.append(f"Taken for missing: {many(counts['unreadable'], 'cell')} without a number or date.")
    if counts.get("new words"):
        told.append(f"Not seen in training: the text of {many(counts['new words'], 'cell')}.")
    told += [f"Note: {text}" for text in warnings]
    if out is None:
        for text in told:
            complain(text)
        return
    for text in told:
        print_sentence(text)
    for what, path in (("Written:", out), ("JSON:", goal.path)):
        if path is not None:
            print_path(what, path)
