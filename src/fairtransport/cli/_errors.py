"""Errors, warnings and signals as the commands report them: one line each, in the words of the options."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fairtransport._text import one_line
from fairtransport._validation import describe_error


class Terminated(KeyboardInterrupt):
    """A signal has asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def handling(handler: Any, *names: str) -> Iterator[None]:
    """Handle signals in the block, as far as the platform has them; other threads than the main one have none."""
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def termination_as_exception() -> Iterator[None]:
    """Raise `Terminated` in the block when SIGTERM or SIGHUP arrives; a second one ends the process at once.

    So they end a command like Ctrl-C, which removes its temporary files and unfinished outputs. A signal that is
    ignored, as under ``nohup``, stays ignored.
    """
    known = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    names = [name for name in known if signal.getsignal(getattr(signal, name)) == signal.SIG_DFL]

    def end(number: int, _frame: Any) -> None:
        for name in names:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        raise Terminated(number)

    with handling(end, *names):
        yield


@contextlib.contextmanager
def without_logs() -> Iterator[None]:
    """Leave it to the exception to say what has ended the block, also where a broken connection raises over a signal.

    Clients of clusters log failures as tracebacks, whose messages may quote values.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    except Exception as error:
        earlier: BaseException | None = error
        while earlier is not None:
            if isinstance(earlier, KeyboardInterrupt):
                raise earlier from None
            earlier = earlier.__context__
        raise
    finally:
        logging.disable(before)


#: Exit status of a command that was called wrongly: EX_USAGE. Not 2, which says that a limit is exceeded.
USAGE_ERROR = 64

#: The end of every command's help; a command with exit statuses of its own lists those itself.
DEBUG_HELP = "Add --debug to see where an error was raised."
STATUS_HELP = (
    "Exit status: 0 success; 1 bad input or another failure, explained in one line on standard error; 64 wrong usage; "
    f"130 interrupted by Ctrl-C. {DEBUG_HELP}"
)

# Parameters of the library -> options.
_OPTIONS = {
    "min_size": "--min-group-size",
    "n_bins": "--bins",
    "output": "--column",
    "sensitive_features": "--sensitive",
    "small": "--small-groups",
    "thresholds": "--threshold",
    "unfair_edges": "--unfair-edge",
}
_SAME_NAME = """
    adjust_for amount by categorical criterion decimal delimiter drop encoding favourable max_disparity max_expansion
    max_groups memory null parity_weight pos_label reference resolving strata task verify
"""
_OPTIONS |= {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME.split()}
# A parameter with or without a value, or as the subject of a sentence; names with an underscore are no English words.
_PARAMETER = re.compile(
    rf"(?<![-\w/'])({'|'.join(_OPTIONS)})\b"
    r"""(=(?:(['"])([^'"]+)\3|([\d.]*\d))?|(?= (?:has|must|names|is none)\b))?"""
)
# Advice that only a caller in Python can follow.
_PHRASES = (
    (r"groups=GroupPolicy\((small='\w+')\)", r"\1"),
    (r"\brange=\((low|\d+), (high|\d+)\)", r"--range \1,\2"),
    (r"\bUse cv=\d+ or fewer folds, merge\b", "Merge"),
    (r" Drop these rows, fill the values, make them a group of their own.*?set_aside\"\.", ""),
    (r" has that label; see Groups\.labels\.", " has the name that --target says."),
    (r", or declare what they affect in common with confounded=", ""),
    (r"\brepair=QuantileRepair\(\)(, or QuantileRepair(Classifier|Regressor))?", "--method dpp --base trees"),
    (r"\(QuantileRepair(Classifier|Regressor), group_specific=True\)", "(--method dpp, --aware)"),
    (r"\bQuantileRepairClassifier, QuantileRepairRegressor\b|\bQuantileRepair(Classifier|Regressor)\b", "--method dpp"),
    (r" Set slack to a smaller number to go on\.", ""),
    (r"\bgroup_specific=True", "--aware"),
    (r"\bparity_weight or amount\b", "--parity-weight or --amount"),
    (r", or pass people_per_point[^.]*", ""),
    (r"; small_groups_ names them", ""),  # as the command does
)
_SHOWN_WARNINGS = {"ConvergenceWarning", "FairnessWarning", "ModelFileWarning"}

_UsageError: Any = typer.BadParameter.__base__  # typer does not export the class itself


class GuardedGroup(TyperGroup):
    """Commands whose expected errors end in one line and an exit status: 1, 64 for wrong usage, or 130 after Ctrl-C.

    With ``--debug``, and of an error that no one expected, the traceback is printed, without the error's message.
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().make_context(*arguments, **options)
        except _UsageError as error:
            error.exit_code = USAGE_ERROR
            raise

    def invoke(self, ctx: Any) -> Any:
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
        except Exception as error:  # noqa: BLE001 - whatever it is, no value of a row is printed
            if ctx.params.get("debug") or not isinstance(error, (ValueError, TypeError, OSError, ImportError)):
                typer.echo("".join(traceback.format_tb(error.__traceback__)), err=True, nl=False)
            print_stderr(f"error: {_describe(error, self.commands[ctx.invoked_subcommand])}")
            raise typer.Exit(1) from None


class GuardedCommand(TyperCommand):
    """A command that also takes ``--debug`` after its name, and ``--json`` without a path."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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
        try:
            return super().parse_args(ctx, [*completed, *rest])
        except _UsageError as error:
            if type(error).__name__ == "MissingParameter":  # by now all options that were given are in ctx.params
                needed = [one for one in self.params if one.required and one.name not in ctx.params]
                options = ", ".join(one.opts[0] for one in needed if one.opts[0].startswith("-"))
                if options:
                    error.message = f"Needed options: {options}. {_describe_columns(ctx.params)}".strip()
            raise


def misuse(message: str) -> typer.Exit:
    """Print what is wrong with a call, and return the exception that ends the command."""
    print_stderr(f"error: {message}")
    return typer.Exit(USAGE_ERROR)


def print_stderr(message: str) -> None:
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
                text = _name_options(str(warning.message)).rstrip(".")
                texts += [f"{text}."] if f"{text}." not in texts else []


def _describe_columns(params: dict[str, Any]) -> str:
    """Return the names of the table's columns; none where its first line may be a row of data."""
    from fairtransport.tables import open_files  # noqa: PLC0415 - engines take a while

    try:
        with open_files(params["files"]) as table:
            table.check(["#"])  # no column: the error names those that there are
    except (KeyError, ValueError, OSError, ImportError) as error:
        return str(error).replace(" has no column '#';", ":") if "column '#'" in str(error) else ""
    return ""


def _describe(error: Exception, command: Any) -> str:
    """Return an error in the words of the command."""
    names_columns = any(option.name == "sensitive" for option in command.params)
    if isinstance(error, FileNotFoundError) and names_columns and str(error.filename).isidentifier():
        hint = "several columns are separated by commas, as in --sensitive race,sex"
        return f"{error.strerror} ({hint}): {error.filename}"
    return _name_options(describe_error(error))


def _name_options(text: str) -> str:
    """Return a message of the library with its parameters named as on the command line."""
    for pattern, phrase in _PHRASES:
        text = re.sub(pattern, phrase, text)
    return _PARAMETER.sub(_name_option, text)


def _name_option(found: re.Match[str]) -> str:
    name, follows, quoted, number = found.group(1, 2, 4, 5)
    if follows is None and "_" not in name:
        return found[0]
    return " ".join(filter(None, (_OPTIONS[name], quoted or number)))
