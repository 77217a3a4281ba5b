"""``fairtransport reproduce``: a table of the paper, our figures beside the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport._progress import progress
from fairtransport.cli._console import make_table, print_path, print_sentence, print_table
from fairtransport.cli._errors import complain
from fairtransport.cli._output import prepare_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

__all__ = ["run_reproduce"]

_KNOWN = ("table1",)


def run_reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to reproduce: table1.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the results [default: fairtransport-NAME].")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer splits and updates; rougher figures.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", min=1, help="Splits or seeds of each data set.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Processes that work at the same time.")] = 1,
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
    folder = prepare_folder(out if out is not None else Path(f"fairtransport-{name}"))
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
    print_sentence("Ours ± spread over splits or seeds (the paper's figure). Lower is better.")
    for path in written:
        print_path("Written:", path)


def _block(dataset: str, rows: Iterable[Any]) -> Table:
    """One data set: a line for each method, a column for each metric."""
    cells: dict[str, dict[str, str]] = {}
    floors: dict[str, list[float]] = {}
    for row in rows:
        cells.setdefault(row.method, {})[row.metric] = _cell(row.mean, row.spread, row.published)
        if row.floor is not None:
            floors.setdefault(row.metric, []).append(row.floor)
    metrics = list(dict.fromkeys(metric for line in cells.values() for metric in line))
    table = make_table(dataset, [""], metrics)
    for method, line in cells.items():
        table.add_row(method, *(line.get(metric, "") for metric in metrics))
    if floors:
        table.add_row("noise floor", *(_range(floors.get(metric, [])) for metric in metrics), style="dim")
    return table


def _cell(mean: float, spread: float | None, published: float | None) -> str:
    """Write ``.178±.002 (.175)`` in sixteen signs, so that four fit into a line of 80."""
    told = _figure(mean) + (f"±{_figure(spread)}" if spread else "")
    return told if published is None else f"{told} ({_figure(published)})"


def _range(values: list[float]) -> str:
    if not values:
        return ""
    low, high = _figure(min(values)), _figure(max(values))
    return low if low == high else f"{low} to {high}"


def _figure(value: float) -> str:
    """Three digits: ``.178``, ``1.44``, ``12.3``."""
    if abs(value) < 0.9995:
        return f"{value:.3f}".replace("0.", ".", 1)
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"
