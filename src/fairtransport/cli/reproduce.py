"""``fairtransport reproduce``: a table of the paper, our figures beside the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtransport._progress import progress
from fairtransport.cli._console import make_table, print_path, print_sentence, print_table
from fairtransport.cli._errors import complain
from fairtransport.cli._output import prepare_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from fairtransport.paper.table1 import Table1Row

__all__ = ["run_reproduce"]

_KNOWN = {"table1": ("table1.md", "table1.csv", "table1.json")}  # names, and the files they leave


def run_reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to reproduce: table1.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the results [default: fairtransport-NAME].")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer splits and updates; rougher figures.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", min=1, help="Splits or seeds of each data set.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Trainings that run at the same time.")] = 1,
) -> None:
    """Compute a table of the paper, ours beside theirs.

    Prints the table and writes it as CSV, Markdown and JSON; files of an earlier run are replaced.

    \b
    Example:
      fairtransport reproduce table1 --quick --out table1
    """  # noqa: D301 - \b keeps the lines of the example
    if name not in _KNOWN:
        complain(f"error: nothing called {name!r} to reproduce; known: {', '.join(_KNOWN)}")
        raise typer.Exit(2)
    folder = prepare_folder(out if out is not None else Path(f"fairtransport-{name}"), _KNOWN[name])
    from fairtransport.paper.table1 import run_table1  # noqa: PLC0415 - numba takes a while

    with progress(name, 100) as bar:
        table = run_table1(
            quick=quick,
            n_seeds=seeds,
            n_jobs=jobs,
            progress=lambda done, total, note: bar.advance(100 * done // max(total, 1), note),
        )
    written = table.write(folder)
    for dataset in dict.fromkeys(row.dataset for row in table.rows):
        print_table(_block(dataset, [row for row in table.rows if row.dataset == dataset]))
    rough = " Quick run: the figures are rough." if quick else ""
    print_sentence(f"Ours ± spread over splits or seeds (the paper's figure). Lower is better.{rough}")
    for path in written:
        print_path("Written:", path)


def _block(dataset: str, rows: Sequence[Table1Row]) -> Table:
    """One data set: a line for each method, a column for each metric, and the noise floor."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    table = make_table(dataset, [""], metrics, gap=1)
    for method in dict.fromkeys(row.method for row in rows):
        cells = {row.metric: _cell(row.mean, row.spread, row.published) for row in rows if row.method == method}
        table.add_row(method, *(cells.get(metric, "") for metric in metrics))
    floors = {row.metric: row.floor for row in rows}
    table.add_row("noise floor", *(_figure(floors[metric]) for metric in metrics), style="dim")
    return table


def _cell(mean: float, spread: float | None, published: float | None) -> str:
    """Write ``.178±.002 (.175)`` in sixteen signs, so that four fit into a line of 80."""
    told = _figure(mean) + (f"±{_figure(spread)}" if spread else "")
    return told if published is None else f"{told} ({_figure(published)})"


def _figure(value: float | None) -> str:
    """Three digits: ``.178``, ``1.44``, ``12.3``."""
    if value is None:
        return ""
    if abs(value) < 0.9995:
        return f"{value:.3f}".replace("0.", ".", 1)
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"
