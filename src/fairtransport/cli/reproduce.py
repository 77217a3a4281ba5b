"""``fairtransport reproduce``, ``demo`` and ``datasets``: the paper, beside the published figures."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import fairtransport as ft
from fairtransport._extras import check_report
from fairtransport._text import three_digits
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse
from fairtransport.cli._output import (
    Output,
    prepare_folder,
    print_paths,
    print_sentence,
    print_table,
    stderr_is_terminal,
    step_progress,
)
from fairtransport.report import COMPARISON_FILES, METRICS, Comparison, verdict, write_comparison

if TYPE_CHECKING:
    from fairtransport.paper.table1 import Table1Row

_KNOWN = ("table1", "figure1", "figure2", "figure3", "figure4", "ablation", "all")


@shared.described(
    name=shared.argument("NAME", f"What to reproduce: {', '.join(_KNOWN)}."),
    out=shared.option("DIR", "Output folder [default: fairtransport-NAME]."),
    quick=shared.flag("--quick", "Run the same code with fewer updates and seeds; the figures are less precise."),
    seeds=shared.option("N", "Number of splits or seeds for each data set (table1 only).", min=1),
    jobs=shared.option("N", "Number of trainings that run at the same time [default: one per core].", min=1),
)
def run_reproduce(
    name: str,
    *,
    out: Path | None = None,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    output: Output,
) -> None:
    """Reproduce the tables and figures of the paper.

    The output folder gets the figures, the numbers behind them, a summary, and a page that lists each claim of the
    paper with what was measured. An interrupted run resumes where it stopped when it is started again with the same
    folder.

    \b
    Example:
      fairtransport reproduce table1 --quick --out table1
      fairtransport reproduce all --out paper
    """  # noqa: D301 - \b keeps the lines of the example
    if name not in _KNOWN:
        raise misuse(f"nothing called {name!r} to reproduce; choose one of {', '.join(_KNOWN)}")
    if seeds is not None and name != "table1":
        raise misuse("--seeds applies to table1 only")
    target = out if out is not None else Path(f"fairtransport-{name}")
    output.prepare(folders=[target])
    files = ("table1.md", "table1.csv", "table1.json") if name == "table1" else ("index.html", "summary.md")
    folder = prepare_folder(target, files)
    workers = jobs if jobs is not None else os.cpu_count() or 1
    if name == "table1":
        _table1(folder, output, quick=quick, seeds=seeds, jobs=workers)
    else:
        _page(name, folder, output, quick=quick, jobs=workers)


def _table1(folder: Path, output: Output, *, quick: bool, seeds: int | None, jobs: int) -> None:
    from fairtransport.paper.table1 import run_table1  # noqa: PLC0415 - numba takes a while

    table = run_table1(quick=quick, n_seeds=seeds, n_jobs=jobs, folder=folder / "parts", show=stderr_is_terminal())
    written = table.write(folder)
    if output.write_json([_plain(row) for row in table.rows]):
        return
    for dataset in dict.fromkeys(row.dataset for row in table.rows):
        _print_block(dataset, [row for row in table.rows if row.dataset == dataset])
    rough = " Quick run: the figures are rough." if quick else ""
    print_sentence(f"Ours ± spread over splits or seeds (the paper's figure). Lower is better.{rough}")
    for path in written:
        print_paths({"Written": path})
    output.print_paths({})


def _page(name: str, folder: Path, output: Output, *, quick: bool, jobs: int) -> None:
    from fairtransport.paper.reproduction import ITEMS, reproduce  # noqa: PLC0415 - numba takes a while

    names = ITEMS if name == "all" else (name,)
    done = reproduce(names, folder, quick=quick, n_jobs=jobs, show=stderr_is_terminal())
    findings = [
        {"name": finding.name, "title": finding.title, "claims": [_plain(claim) for claim in finding.claims]}
        for finding in done.findings
    ]
    if output.write_json({"quick": quick, "findings": findings, "page": str(done.files[0])}):
        return
    for finding in done.findings:
        claims = [(claim.verdict, claim.text, claim.ours) for claim in finding.claims]
        print_table(finding.title, ["Verdict", "Claim", "Ours"], [], claims)
    print_sentence(done.tally + (" Quick run: the figures are rough." if quick else ""))
    output.print_paths({"Page": done.files[0]})


def _plain(record: Any) -> dict[str, Any]:
    """Return a record as a dictionary for JSON, with None for numbers that are not finite."""
    items = asdict(record).items()
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in items}


def _print_block(dataset: str, rows: Sequence[Table1Row]) -> None:
    """Print a table of one data set: a line for each method and the noise floor, a column for each metric."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        cells = {row.metric: _cell(row.mean, row.spread, row.published) for row in rows if row.method == method}
        lines.append([method, *(cells.get(metric, "") for metric in metrics)])
    floors = {row.metric: _figure(row.floor) for row in rows}
    print_table(dataset, [""], metrics, lines, gap=1, dim=["noise floor", *(floors[metric] for metric in metrics)])


def _cell(mean: float, spread: float | None, published: float | None) -> str:
    """Write ``.178±.002 (.175)`` in sixteen characters, so that four fit into a line of 80."""
    text = _figure(mean) + (f"±{_figure(spread)}" if spread else "")
    return text if published is None else f"{text} ({_figure(published)})"


def _figure(value: float | None) -> str:
    """Write three significant digits: ``.178``, ``1.44``, ``12.3``."""
    if value is None:
        return ""
    if abs(value) < 0.9995:
        return f"{value:.3f}".replace("0.", ".", 1)
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"


# ``fairtransport demo``: four methods on the Adult data set, and a page that compares them.

_STEPS = 8  # reading, LR, compiling, three trainings, measuring, the page


@shared.described(
    out=shared.option("DIR", "Output folder for the page and its figures."),
    quick=shared.flag("--quick", "Train for a few seconds only; the figures are less precise."),
)
def run_demo(out: Path = Path("fairtransport-demo"), *, quick: bool = False, seed: int = 0, output: Output) -> None:
    """Compare four methods on the Adult data set, in a web page.

    The methods are logistic regression (LR), quantile repair of its scores (DPP), and training with discrete (DOT) and
    with continuous optimal transport (COT). This takes less than a minute. Files of an earlier run in the same folder
    are overwritten.

    \b
    Example:
      fairtransport demo --out demo    # then open demo/index.html
    """  # noqa: D301 - \b keeps the lines of the example
    check_report()
    output.prepare(folders=[out])
    folder = prepare_folder(out, COMPARISON_FILES)
    from fairtransport.paper.comparison import compare_on_adult  # noqa: PLC0415 - numba takes a while

    with step_progress("Demo", _STEPS) as progress:
        comparison = compare_on_adult(quick=quick, random_state=seed, progress=progress)
        if progress is not None:
            progress("Writing the page")
        page = write_comparison(comparison, folder)
    if output.write_json((folder / "comparison.json").read_text(encoding="utf-8").rstrip()):
        return
    _print_comparison(comparison)
    print_sentence(verdict(comparison))
    output.print_paths({"Page": page})


def _print_comparison(comparison: Comparison) -> None:
    title = f"{comparison.dataset}, {comparison.groups.n_rows:,} test rows (lower is better)"
    rows = [
        [one.name, one.title, *(three_digits(one.metrics[name]) for name in METRICS), f"{one.seconds:.1f}"]
        for one in comparison.outcomes
    ]
    floor = [three_digits(comparison.floor[name]) if name in comparison.floor else "" for name in METRICS]
    dim = ["floor", "groups permuted at random", *floor, ""]
    print_table(title, ["Method", ""], [*METRICS.values(), "Seconds"], rows, dim=dim)


# ``fairtransport datasets``: the data sets that come with the package.


def show_datasets(output: Output) -> None:
    """List the data sets that come with the package.

    \b
    Example:
      fairtransport datasets --json
    """  # noqa: D301 - \b keeps the lines of the example
    output.prepare()
    entries = ft.datasets.list_datasets()
    if output.write_json([asdict(entry) for entry in entries]):
        return
    rows = [
        (one.name, one.label, ", ".join(one.sensitive), one.licence, f"{one.rows:,}", f"{one.columns:,}")
        for one in entries
    ]
    print_table("Data sets", ["Name", "Label", "Sensitive", "Licence"], ["Rows", "Columns"], rows)
    for entry in entries:
        typer.echo(entry.citation)
    output.print_paths({})
