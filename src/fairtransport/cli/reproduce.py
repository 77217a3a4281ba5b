"""``fairtransport reproduce``, ``demo`` and ``datasets``: the paper, beside the published figures."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import typer

import fairtransport as ft
from fairtransport._extras import check_report
from fairtransport._text import three_digits
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse
from fairtransport.cli._output import (
    Output,
    prepare_folder,
    print_sentence,
    print_table,
    stderr_is_terminal,
    step_progress,
)

_KNOWN = ("table1", "figure1", "figure2", "figure3", "figure4", "ablation", "all")


@shared.described(
    name=shared.argument("NAME", f"What to reproduce: {', '.join(_KNOWN)}."),
    out=shared.option("DIR", "Output folder [default: fairtransport-NAME]."),
    quick=shared.flag("--quick", "Run the same code with fewer updates and seeds; the figures are less precise."),
    jobs=shared.option("N", "Number of trainings that run at the same time [default: one per core].", min=1),
)
def run_reproduce(
    name: str, *, out: Path | None = None, quick: bool = False, jobs: int | None = None, output: Output
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
    target = out if out is not None else Path(f"fairtransport-{name}")
    output.prepare(folders=[target])
    folder = prepare_folder(target, ("index.html", "summary.md"))
    from fairtransport.paper.reproduction import ITEMS, reproduce  # noqa: PLC0415 - numba takes a while

    names = ITEMS if name == "all" else (name,)
    done = reproduce(names, folder, quick=quick, n_jobs=jobs or os.cpu_count() or 1, show=stderr_is_terminal())
    findings = [
        {"name": finding.name, "title": finding.title, "claims": [asdict(claim) for claim in finding.claims]}
        for finding in done.findings
    ]
    if output.write_json({"quick": quick, "findings": findings, "page": str(done.files[0])}):
        return
    for finding in done.findings:
        claims = [(claim.verdict, claim.text, claim.ours) for claim in finding.claims]
        print_table(finding.title, ["Verdict", "Claim", "Ours"], [], claims)
    print_sentence(done.tally + (" Quick run: the figures are rough." if quick else ""))
    output.print_paths({"Page": done.files[0]})


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
    from fairtransport.paper.comparison import compare_on_adult  # noqa: PLC0415 - numba takes a while
    from fairtransport.report import COMPARISON_FILES, METRICS, verdict, write_comparison  # noqa: PLC0415 - likewise

    folder = prepare_folder(out, COMPARISON_FILES)

    with step_progress("Demo", _STEPS) as progress:
        comparison = compare_on_adult(quick=quick, random_state=seed, progress=progress)
        if progress is not None:
            progress("Writing the page")
        page = write_comparison(comparison, folder)
    if output.write_json((folder / "comparison.json").read_text(encoding="utf-8").rstrip()):
        return
    title = f"{comparison.dataset}, {comparison.groups.n_rows:,} test rows (lower is better)"
    rows = [
        [one.name, one.title, *(three_digits(one.metrics[name]) for name in METRICS), f"{one.seconds:.1f}"]
        for one in comparison.outcomes
    ]
    floor = [three_digits(comparison.floor[name]) if name in comparison.floor else "" for name in METRICS]
    dim = ["floor", "groups permuted at random", *floor, ""]
    print_table(title, ["Method", ""], [*METRICS.values(), "Seconds"], rows, dim=dim)
    print_sentence(verdict(comparison))
    output.print_paths({"Page": page})


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
