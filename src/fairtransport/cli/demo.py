"""``fairtransport demo``: four methods on the Adult data, and a page about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtransport._extras import check_report
from fairtransport._text import one_line, three_digits
from fairtransport.cli import _tables as shared
from fairtransport.cli._console import make_table, print_path, print_sentence, print_table, steps
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._output import prepare_files, prepare_folder
from fairtransport.report import METRICS, verdict, write_comparison
from fairtransport.report.pages.comparison_page import FILES

if TYPE_CHECKING:
    from rich.table import Table

    from fairtransport.report import Comparison

__all__ = ["run_demo"]

_STEPS = 8  # reading, LR, compiling, three trainings, measuring, the page


def run_demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the page and its figures.")] = Path(
        "fairtransport-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Train for a few seconds only; rougher figures.")] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Of everything random.")] = 0,
    json_to: JsonTo = None,
    force: shared.Force = False,
) -> None:
    """Compare four methods on the Adult data; write a page.

    Plain logistic regression (LR), repair of its scores (DPP), and training with discrete (DOT) and continuous
    optimal transport (COT). Takes less than a minute; files of an earlier run are replaced.

    \b
    Example:
      fairtransport demo --out demo     then open demo/index.html
    """  # noqa: D301 - \b keeps the lines of the example
    check_report()
    goal = JsonGoal(json_to)
    prepare_files([goal.path], force=force, ask=shared.on_terminal())
    folder = prepare_folder(out, FILES)
    from fairtransport.paper.comparison import compare_on_adult  # noqa: PLC0415 - numba takes a while

    with steps("Demo", _STEPS) as progress:
        comparison = compare_on_adult(quick=quick, random_state=seed, progress=progress)
        if progress is not None:
            progress("Writing the page")
        page = write_comparison(comparison, folder)
    goal.write((folder / "comparison.json").read_text(encoding="utf-8").rstrip())
    if goal.to_stdout:
        return
    print_table(_table(comparison))
    print_sentence(verdict(comparison))
    print_path("Page:", page)
    if goal.path is not None:
        print_path("JSON:", goal.path)


def _table(comparison: Comparison) -> Table:
    title = f"{comparison.dataset}, {comparison.groups.n_rows:,} test rows (lower is better)"
    table = make_table(title, ["Method", ""], [*METRICS.values(), "Seconds"])
    for outcome in comparison.outcomes:
        values = [three_digits(outcome.metrics[metric]) for metric in METRICS]
        table.add_row(one_line(outcome.name), one_line(outcome.title), *values, f"{outcome.seconds:.1f}")
    floor = [three_digits(comparison.floor[metric]) if metric in comparison.floor else "" for metric in METRICS]
    table.add_row("floor", "groups drawn by lot", *floor, "", style="dim")
    return table
