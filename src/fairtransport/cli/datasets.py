"""``fairtransport datasets``: what data come with the package."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from fairtransport.cli._console import make_table, print_table

__all__ = ["show_datasets"]


def show_datasets(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the data sets that come with the package.

    \b
    Example:
      fairtransport datasets --json
    """  # noqa: D301 - \b keeps the lines of the example
    from fairtransport.datasets import list_datasets  # noqa: PLC0415 - scikit-learn takes a while

    entries = list_datasets()
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in entries], indent=2))
        return
    table = make_table("Data sets", ["Name", "Label", "Sensitive", "Licence"], ["Rows", "Columns"])
    for entry in entries:
        words = (entry.name, entry.label, ", ".join(entry.sensitive), entry.licence)
        table.add_row(*words, f"{entry.rows:,}", f"{entry.columns:,}")
    print_table(table)
    for entry in entries:
        typer.echo(entry.citation)
