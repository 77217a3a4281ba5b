"""``fairtransport datasets``: what data come with the package."""

from __future__ import annotations

from dataclasses import asdict

import typer

from fairtransport.cli import _tables as shared
from fairtransport.cli._console import make_table, print_path, print_table
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._output import prepare_files

__all__ = ["show_datasets"]


def show_datasets(json_to: JsonTo = None, *, force: shared.Force = False) -> None:
    """List the data sets that come with the package.

    \b
    Example:
      fairtransport datasets --json
    """  # noqa: D301 - \b keeps the lines of the example
    from fairtransport.datasets import list_datasets  # noqa: PLC0415 - scikit-learn takes a while

    goal = JsonGoal(json_to)
    prepare_files([goal.path], force=force, ask=shared.on_terminal())
    entries = list_datasets()
    goal.write([asdict(entry) for entry in entries])
    if goal.to_stdout:
        return
    table = make_table("Data sets", ["Name", "Label", "Sensitive", "Licence"], ["Rows", "Columns"])
    for entry in entries:
        words = (entry.name, entry.label, ", ".join(entry.sensitive), entry.licence)
        table.add_row(*words, f"{entry.rows:,}", f"{entry.columns:,}")
    print_table(table)
    for entry in entries:
        typer.echo(entry.citation)
    if goal.path is not None:
        print_path("JSON:", goal.path)
