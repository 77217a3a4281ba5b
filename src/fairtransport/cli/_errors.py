"""Errors, warnings and signals as the commands report them: one line each, in the words of the options."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fairtransport._text import one_line
from fairtransport._validation.error_redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

# SIGTERM and SIGHUP end a command like Ctrl-C, so that it removes its temporary files and unfinished outputs.


class Terminated(KeyboardInterrupt):
    """A signal has asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def termination_as_exception() -> Iterator[None]:
    """Raise `Terminated` in the block when the first of these signals arrives; a second one ends the process at once.

    A signal that is ignored, as under ``nohup``, stays ignored.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, _frame: Any) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_DFL)
        raise Terminated(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


#: Exit status of a command that was called wrongly: EX_USAGE. Not 2, which says that a limit is exceeded.
USAGE_ERROR = 64

#: The end of every command's help; a command with exit statuses of its own lists those itself.
DEBUG_HELP = "Add --debug to see where an error was raised."
STATUS_HELP = (
    "Exit status: 0 success; 1 bad input or another failure, explained in one line on standard error; 64 wrong usage; "
    f"130 interrupted by Ctrl-C. {DEBUG_HELP}"
)

# Names and phrases of the library -> those of the command line.
_OPTION_NAMES = (
    (r"\brange=\(low, high\)", "--range LOW,HIGH"),
    (r"\brange=\((\d+), (\d+)\)", r"--range \1,\2"),
    (r"\bencoding='utf-16'", "--encoding utf-16"),
    (r"\bdecimal=','", "--decimal ,"),
    (r"\bpos_label\b=?", "--positive"),
    (r"\bsensitive_features (has|must)\b", r"--sensitive \1"),
    (r"\bstrata (has|must)\b", r"--strata \1"),
    (r"\bcriterion='(\w+)'", r"--criterion \1"),
    (r"\btask=\"(\w+)\"", r"--task \1"),
    (r"\bfavourable must\b", "--favourable must"),
    (r"\breference must\b", "--reference must"),
    (r"\bthresholds has\b", "--threshold has"),
    (r"^by has\b", "--by has"),
    (r"\bmax_groups\b=?", "--max-groups"),
    (r"\bmax_expansion\b=?", "--max-expansion"),
    (r"\bn_bins\b=?", "--bins"),
    (r"\bmin_group_size=(\d)", r"--min-group-size \1"),
    (r"\bmin_group_size\b=?", "--min-group-size"),
    (r"\bUse cv=\d+ or fewer folds, merge\b", "Merge"),
    (r"\bsmall_groups='(\w+)'", r"--small-groups \1"),
    (r"\bsmall_groups\b=?", "--small-groups"),
    (r"\boutput=", "--column"),
    (r"\bmax_disparity=(\d)", r"--max-disparity \1"),
    (r"\bmax_disparity\b=?", "--max-disparity"),
    (r"\bpositive is none\b", "--positive is none"),
    (r"\bcategorical names\b", "--categorical names"),
    (r" Drop these rows, fill the values, or make them a group of their own with missing=\"group\"\.", ""),
    (r" has that label; see Groups\.labels\.", " has the name that --target says."),
    (r"\b(encoding|null|memory)=", r"--\1"),
    (r"\bdrop=", "--drop"),
    (r"\bverify=", "--verify"),
    (r"\badjust_for=", "--adjust-for"),
    (r"\bresolving=", "--resolving"),
    (r"^unfair_edges has\b", "--unfair-edge has"),
    (r", or declare what they affect in common with confounded=", ""),
    (r"\(QuantileRepair(Classifier|Regressor), group_specific=True\)", "(--method dpp, --aware)"),
    (r"\bQuantileRepair(Classifier|Regressor)\b", "--method dpp"),
    (r"\bgroup_specific=True", "--aware"),
    (r"\bparity_weight='auto'", "--parity-weight auto"),
    (r"\bparity_weight or amount\b", "--parity-weight or --amount"),
)
_SHOWN_WARNINGS = {"ConvergenceWarning", "FairnessWarning", "ModelFileWarning"}

_UsageError: Any = typer.BadParameter.__base__  # typer does not export the class itself


class GuardedGroup(TyperGroup):
    """Commands whose expected errors end in one line and an exit status: 1, 64 for wrong usage, or 130 after Ctrl-C.

    With ``--debug`` errors are raised.
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the options before the command's name."""
        try:
            return super().make_context(*arguments, **options)
        except _UsageError as error:
            error.exit_code = USAGE_ERROR
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with termination_as_exception():
                return super().invoke(ctx)
        except _UsageError as error:
            error.exit_code = USAGE_ERROR
            raise
        except Terminated as signal:
            print_stderr("stopped")
            raise typer.Exit(128 + signal.number) from None
        except KeyboardInterrupt:
            print_stderr("stopped")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of a pipe has closed it; typer ends quietly
            raise
        except (typer.Exit, typer.Abort, _UsageError.__base__):
            raise
        except Exception as error:  # noqa: BLE001 - raised again, or printed
            safe = redacted(error)
            if ctx.params.get("debug") or not isinstance(safe, (ValueError, TypeError, OSError, ImportError)):
                raise safe from safe.__cause__
            print_stderr(f"error: {describe(safe)}")
            raise typer.Exit(1) from None


class GuardedCommand(TyperCommand):
    """A command that also takes ``--debug`` after its name, and ``--json`` without a path."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments after the command's name."""
        end = args.index("--") if "--" in args else len(args)
        arguments, rest = args[:end], args[end:]
        if "--debug" in arguments:
            arguments = [argument for argument in arguments if argument != "--debug"]
            ctx.find_root().params["debug"] = True
        completed = []
        for argument, following in zip(arguments, [*arguments[1:], "--"], strict=False):
            completed.append(argument)
            if argument == "--json" and following.startswith("-") and following != "-":
                completed.append("-")
        return super().parse_args(ctx, [*completed, *rest])


def misuse(message: str) -> typer.Exit:
    """Print what is wrong with a call, and return the exception that ends the command."""
    print_stderr(f"error: {message}")
    return typer.Exit(USAGE_ERROR)


def print_stderr(message: str) -> None:
    """Print one line on standard error."""
    sys.stdout.flush()
    typer.echo(one_line(message), err=True)


@contextlib.contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the library's warnings for the command to report, and drop those of other libraries."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
        for warning in caught:
            if warning.category.__name__ in _SHOWN_WARNINGS:
                text = _name_options(str(warning.message).partition(", or pass people_per_point")[0].rstrip("."))
                texts += [f"{text}."] if f"{text}." not in texts else []


@contextlib.contextmanager
def option_names_in_errors() -> Iterator[None]:
    """Raise the library's errors with its parameters named as on the command line."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = _name_options(str(error))
        raise (TypeError if isinstance(error, TypeError) else ValueError)(text) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _may_be_column(error.filename):
            error.strerror = f"{error.strerror} (several columns are separated by commas, as in --sensitive race,sex)"
        if error.strerror and error.filename is None:
            error.strerror = error.strerror.replace("memory=", "--memory")
        raise


def _may_be_column(name: object) -> bool:
    """Return whether a missing file has a name that looks like that of a column."""
    return isinstance(name, str) and name.isidentifier()


def _name_options(text: str) -> str:
    for pattern, option in _OPTION_NAMES:
        text = re.sub(pattern, option, text)
    return text


def describe(error: Exception) -> str:
    """Return an error's message, without the error numbers of Python or the operating system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__
