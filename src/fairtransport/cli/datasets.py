"""``fairtransport datasets``: the data sets that come with the package."""

from __future__ import annotations

from dataclasses import asdict

import typer

from fairtransport.cli import _options as shared  # noqa: TC001 - typer reads it
from fairtransport.cli._console import make_table, print_paths, print_table
from fairtransport.cli._json import JsonOutput
from fairtransport.cli._output import prepare_files

__all__ = ["show_datasets"]


def show_datasets(json_path: shared.JsonPath = None, *, force: shared.Force = False) -> None:
    """List the data sets that come with the package.

    \b
    Example:
      fairtransport datasets --json
    """  # noqa: D301 - \b keeps the lines of the example
    from fairtransport.datasets import list_datasets  # noqa: PLC0415 - scikit-learn takes a while

    json_output = JsonOutput(json_path)
    prepare_files([json_output.path], force=force)
    entries = list_datasets()
    json_output.write([asdict(entry) for entry in entries])
    if json_output.to_stdout:
        return
    table = make_table("Data sets", ["Name", "Label", "Sensitive", "Licence"], ["Rows", "Columns"])
    for entry in entries:
        words = (entry.name, entry.label, ", ".join(entry.sensitive), entry.licence)
        table.add_row(*words, f"{entry.rows:,}", f"{entry.columns:,}")
    print_table(table)
    for entry in entries:
        typer.echo(entry.citation)
    print_paths({"JSON": json_output.path})
