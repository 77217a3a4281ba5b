"""What went wrong, in one line, unless the whole story is asked for."""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fairtransport._text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MISUSE",
    "ON_DEBUG",
    "STATUSES",
    "GuardedCommand",
    "GuardedGroup",
    "complain",
    "describe",
    "misuse",
    "warned",
]

#: Exit status of a command that was called wrongly: EX_USAGE. Not 2, which says that a limit is exceeded.
MISUSE = 64

#: What every command's help says; a command with statuses of its own says those itself.
ON_DEBUG = "With --debug a failure shows where it happened."
STATUSES = (
    "Exit status: 0 done; 1 bad input, or a failure: one line on standard error says which; 64 a wrong call; "
    f"130 stopped by Ctrl-C. {ON_DEBUG}"
)

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


class GuardedCommand(TyperCommand):
    """A command that takes ``--debug`` behind its name as well, and ``--json`` without a path."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands behind the command's name."""
        ours = args.index("--") if "--" in args else len(args)
        given, rest = args[:ours], args[ours:]
        if "--debug" in given:
            given = [one for one in given if one != "--debug"]
            ctx.find_root().params["debug"] = True
        told = []
        for place, one in enumerate(given):
            following = given[place + 1] if place + 1 < len(given) else "--"
            told.append(one)
            if one == "--json" and following.startswith("-") and following != "-":
                told.append("-")
        return super().parse_args(ctx, [*told, *rest])


def misuse(message: str) -> typer.Exit:
    """Say what is wrong with a call, and return what ends the command."""
    complain(f"error: {message}")
    return typer.Exit(MISUSE)


def complain(message: str) -> None:
    """Print one line on standard error.

    Parameters
    ----------
    message : str
    """
    sys.stdout.flush()
    typer.echo(one_line(message), err=True)


@contextlib.contextmanager
def warned() -> Iterator[list[str]]:
    """Collect what the library warns of, for the command to say in its own words; Python's own warnings are dropped."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
        for one in caught:
            if one.category.__name__ in {"ConvergenceWarning", "ModelFileWarning"}:
                text = str(one.message).partition(", or pass people_per_point")[0].rstrip(".")
                told += [f"{text}."] if f"{text}." not in told else []


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
