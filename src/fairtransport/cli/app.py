"""The command line application: all commands, and the options of every one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from fairtransport import __version__
from fairtransport.cli._errors import DEBUG_HELP, STATUS_HELP, GuardedCommand, GuardedGroup
from fairtransport.cli._options import with_records
from fairtransport.cli.audit import run_audit
from fairtransport.cli.compare import run_compare
from fairtransport.cli.repair import run_repair
from fairtransport.cli.reproduce import run_demo, run_reproduce, show_datasets
from fairtransport.cli.score import run_score
from fairtransport.cli.serve import run_serve
from fairtransport.cli.sign import run_sign
from fairtransport.cli.stream import run_stream
from fairtransport.cli.train import run_train
from fairtransport.cli.workbench import run_app

app = typer.Typer(
    name="fairtransport",
    cls=GuardedGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,  # its tracebacks show the values of variables
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": run_demo,
    "audit": run_audit,
    "compare": run_compare,
    "train": run_train,
    "score": run_score,
    "serve": run_serve,
    "app": run_app,
    "sign": run_sign,
    "repair": run_repair,
    "stream": run_stream,
    "reproduce": run_reproduce,
    "datasets": show_datasets,
}
for _name, _run in _COMMANDS.items():
    _end = DEBUG_HELP if "Exit status:" in (_run.__doc__ or "") else STATUS_HELP  # some have one of their own
    app.command(_name, cls=GuardedCommand, epilog=_end)(with_records(_run))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fairtransport {__version__}")
        raise typer.Exit


@app.callback()
def _shared(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may also follow the command.")
    ] = False,
) -> None:
    """Measure and remove differences between groups in a model's scores.

    Audits scores for demographic disparity, and trains or repairs models with optimal transport so that the scores of
    all groups have the same distribution.

    \b
    Example:
      fairtransport demo --out demo     compares four methods
      fairtransport audit scores.csv --score s --sensitive race,sex
      fairtransport train data.csv --label income --sensitive race,sex \\
          --method cot --out model.ft
      fairtransport score model.ft new.csv --out scored.csv
    """  # noqa: D301 - \b keeps the lines of the example
