"""``fairtransport reproduce``: the tables and figures of the paper, ours beside theirs."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from fairtransport._text import one_line
from fairtransport.cli import _tables as shared
from fairtransport.cli._console import make_table, print_path, print_sentence, print_table
from fairtransport.cli._errors import misuse
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._output import prepare_files, prepare_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from fairtransport.paper.finding import Claim
    from fairtransport.paper.table1 import Table1Row

__all__ = ["run_reproduce"]

_FIGURES = ("figure1", "figure2", "figure3", "figure4", "ablation")
_KNOWN = ("table1", *_FIGURES, "all")
_MOST_SEEDS = "Splits or seeds of each data set (table1 only)."


def run_reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"What to reproduce: {', '.join(_KNOWN)}.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the results [default: fairtransport-NAME].")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer updates and seeds, same code; rougher figures.")
    ] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", min=1, help=_MOST_SEEDS)] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Trainings at the same time [default: one a core]."),
    ] = None,
    json_to: JsonTo = None,
    force: shared.Force = False,
) -> None:
    """Compute tables and figures of the paper, ours beside theirs.

    Writes pictures, the numbers behind them, a summary and a page where each claim of the paper is one row.
    An interrupted run goes on where it stopped when it is called again with the same folder.

    \b
    Example:
      fairtransport reproduce table1 --quick --out table1
      fairtransport reproduce all --out paper
    """  # noqa: D301 - \b keeps the lines of the example
    if name not in _KNOWN:
        raise misuse(f"nothing called {name!r} to reproduce; known: {', '.join(_KNOWN)}")
    if seeds is not None and name != "table1":
        raise misuse("--seeds goes with table1 only")
    goal = JsonGoal(json_to)
    prepare_files([goal.path], force=force, ask=shared.on_terminal())
    files = ("table1.md", "table1.csv", "table1.json") if name == "table1" else ("index.html", "summary.md")
    folder = prepare_folder(out if out is not None else Path(f"fairtransport-{name}"), files)
    workers = jobs if jobs is not None else os.cpu_count() or 1
    if name == "table1":
        _table1(folder, goal, quick=quick, seeds=seeds, jobs=workers)
    else:
        _page(name, folder, goal, quick=quick, jobs=workers)
    if goal.path is not None:
        print_path("JSON:", goal.path)


def _table1(folder: Path, goal: JsonGoal, *, quick: bool, seeds: int | None, jobs: int) -> None:
    from fairtransport.paper.table1 import run_table1  # noqa: PLC0415 - numba takes a while

    table = run_table1(quick=quick, n_seeds=seeds, n_jobs=jobs, folder=folder / "parts", show=shared.watched())
    written = table.write(folder)
    goal.write([_plain(row) for row in table.rows])
    if goal.to_stdout:
        return
    for dataset in dict.fromkeys(row.dataset for row in table.rows):
        print_table(_block(dataset, [row for row in table.rows if row.dataset == dataset]))
    rough = " Quick run: the figures are rough." if quick else ""
    print_sentence(f"Ours ± spread over splits or seeds (the paper's figure). Lower is better.{rough}")
    for path in written:
        print_path("Written:", path)


def _page(name: str, folder: Path, goal: JsonGoal, *, quick: bool, jobs: int) -> None:
    from fairtransport.paper.reproduction import ITEMS, reproduce  # noqa: PLC0415 - numba takes a while

    names = ITEMS if name == "all" else (name,)
    done = reproduce(names, folder, quick=quick, n_jobs=jobs, show=shared.watched())
    findings = [
        {"name": one.name, "title": one.title, "claims": [_plain(claim) for claim in one.claims]}
        for one in done.findings
    ]
    goal.write({"quick": quick, "findings": findings, "page": str(done.files[0])})
    if goal.to_stdout:
        return
    for finding in done.findings:
        print_table(_claims(finding.title, finding.claims))
    print_sentence(done.tally + (" Quick run: the figures are rough." if quick else ""))
    print_path("Page:", done.files[0])


def _plain(record: Any) -> dict[str, Any]:
    """Return a record of words and numbers for JSON; what is not finite is None."""
    held = asdict(record).items()
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in held}


def _claims(title: str, claims: Sequence[Claim]) -> Table:
    """One figure: a line for each claim."""
    table = make_table(title, ["Verdict", "Claim", "Ours"], [], gap=2)
    for claim in claims:
        table.add_row(*(Text(one_line(part)) for part in (claim.verdict, claim.text, claim.ours)))
    return table


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
