"""What went wrong, in one line, unless the whole story is asked for."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from fairtransport.report.text import one_line

__all__ = ["MISUSE", "GuardedGroup", "complain", "describe"]

#: Exit status of a command that was called wrongly: EX_USAGE. Not 2, which says that a limit is exceeded.
MISUSE = 64

_UsageError: Any = typer.BadParameter.__base__  # typer does not give away the class itself


class GuardedGroup(TyperGroup):
    """Commands whose expected errors end in one line and an exit status: 1, 64 for misuse, or 130 after Ctrl-C.

    With ``--debug`` errors pass through.
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read what stands before the command's name."""
        try:
            return super().make_context(*arguments, **options)
        except _UsageError as error:
            error.exit_code = MISUSE
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            error.exit_code = MISUSE
            raise
        except KeyboardInterrupt:
            complain("stopped")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of a pipe has left; typer ends quietly
            raise
        except (ValueError, TypeError, OSError, ImportError) as error:
            if ctx.params.get("debug"):
                raise
            complain(f"error: {describe(error)}")
            raise typer.Exit(1) from None


def complain(message: str) -> None:
    """Print one line on standard error.

    Parameters
    ----------
    message : str
    """
    sys.stdout.flush()
    typer.echo(one_line(message), err=True)


def describe(error: Exception) -> str:
    """Return what an error says, without Python's or the system's numbers.

    Parameters
    ----------
    error : Exception

    Returns
    -------
    str

    Examples
    --------
    >>> describe(FileNotFoundError(2, "No such file or directory", "scores.csv"))
    'No such file or directory: scores.csv'
    >>> describe(ValueError("strength must be above 0; got -1."))
    'strength must be above 0; got -1.'
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__
