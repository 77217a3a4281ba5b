"""``fairtransport demo``: four methods on the Adult data set, and a page that compares them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtransport._extras import check_report
from fairtransport._text import one_line, three_digits
from fairtransport.cli import _options as shared  # noqa: TC001 - typer reads it
from fairtransport.cli._console import make_table, print_paths, print_sentence, print_table, step_progress
from fairtransport.cli._json import JsonOutput
from fairtransport.cli._output import prepare_files, prepare_folder
from fairtransport.report import COMPARISON_FILES, METRICS, verdict, write_comparison

if TYPE_CHECKING:
    from rich.table import Table

    from fairtransport.report import Comparison

__all__ = ["run_demo"]

_STEPS = 8  # reading, LR, compiling, three trainings, measuring, the page


def run_demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Output folder for the page and its figures.")
    ] = Path("fairtransport-demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Train for a few seconds only; the figures are less precise.")
    ] = False,
    seed: shared.Seed = 0,
    json_path: shared.JsonPath = None,
    force: shared.Force = False,
) -> None:
    """Compare four methods on the Adult data set, in a web page.

    The methods are logistic regression (LR), quantile repair of its scores (DPP), and training with discrete (DOT) and
    with continuous optimal transport (COT). This takes less than a minute. Files of an earlier run in the same folder
    are overwritten.

    \b
    Example:
      fairtransport demo --out demo    # then open demo/index.html
    """  # noqa: D301 - \b keeps the lines of the example
    check_report()
    json_output = JsonOutput(json_path)
    prepare_files([json_output.path], force=force, folders=[out])
    folder = prepare_folder(out, COMPARISON_FILES)
    from fairtransport.paper.comparison import compare_on_adult  # noqa: PLC0415 - numba takes a while

    with step_progress("Demo", _STEPS) as progress:
        comparison = compare_on_adult(quick=quick, random_state=seed, progress=progress)
        if progress is not None:
            progress("Writing the page")
        page = write_comparison(comparison, folder)
    json_output.write((folder / "comparison.json").read_text(encoding="utf-8").rstrip())
    if json_output.to_stdout:
        return
    print_table(_table(comparison))
    print_sentence(verdict(comparison))
    print_paths({"Page": page, "JSON": json_output.path})


def _table(comparison: Comparison) -> Table:
    title = f"{comparison.dataset}, {comparison.groups.n_rows:,} test rows (lower is better)"
    table = make_table(title, ["Method", ""], [*METRICS.values(), "Seconds"])
    for outcome in comparison.outcomes:
        values = [three_digits(outcome.metrics[metric]) for metric in METRICS]
        table.add_row(one_line(outcome.name), one_line(outcome.title), *values, f"{outcome.seconds:.1f}")
    floor = [three_digits(comparison.floor[metric]) if metric in comparison.floor else "" for metric in METRICS]
    table.add_row("floor", "groups permuted at random", *floor, "", style="dim")
    return table
