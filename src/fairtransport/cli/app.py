"""The commands put together, with the options that all of them share."""

from __future__ import annotations

from typing import Annotated

import typer

from fairtransport import __version__
from fairtransport.cli._errors import GuardedGroup
from fairtransport.cli.audit import run_audit
from fairtransport.cli.datasets import show_datasets
from fairtransport.cli.demo import run_demo
from fairtransport.cli.repair import run_repair
from fairtransport.cli.reproduce import run_reproduce

__all__ = ["app"]

app = typer.Typer(
    name="fairtransport",
    cls=GuardedGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # with --debug a plain traceback, without the values of variables
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(run_demo)
app.command("audit")(run_audit)
app.command("repair")(run_repair)
app.command("reproduce")(run_reproduce)
app.command("datasets")(show_datasets)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fairtransport {__version__}")
        raise typer.Exit


@app.callback()
def _shared(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback when something fails.")] = False,
) -> None:
    """Scores that say the same about every group, by optimal transport.

    \b
    Example:
      fairtransport demo --out demo     four methods on the Adult data
      fairtransport audit scores.csv --score s --sensitive race,sex
    """  # noqa: D301 - \b keeps the lines of the example
