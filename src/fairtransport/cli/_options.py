"""The options that several commands share: each has one name, one default and one help text."""

from __future__ import annotations

import functools
import inspect
import shlex
import sys
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import fairtransport as ft
from fairtransport.cli._errors import misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from fairtransport.groups import GroupPolicy
    from fairtransport.tables import Columns, FileTable


CRITERIA = ("demographic_parity", "equalized_odds", "equal_opportunity")  # fairtransport.criteria.CRITERIA loads slowly


def argument(metavar: str, text: str) -> Any:
    """Return an argument of a command: its placeholder and its help."""
    return typer.Argument(metavar=metavar, help=text)


def option(metavar: str, text: str, *names: str, **limits: Any) -> Any:
    """Return an option: its placeholder, its help, and a name where it is not called like the parameter."""
    return typer.Option(*names, metavar=metavar, help=text, **limits)


def choice(metavar: str, text: str, *, among: Sequence[str] = ()) -> Any:
    """Return an option that must be one of some words, by default those of its placeholder."""
    words = among or metavar.split("|")

    def check(parameter: typer.CallbackParam, value: str | None) -> str | None:
        if value is not None and value not in words:
            raise misuse(f"{parameter.opts[0]} must be {', '.join(words[:-1])} or {words[-1]}; got {value!r}")
        return value

    return option(metavar, text, callback=check)


def flag(name: str, text: str) -> Any:
    return typer.Option(name, help=text)


_label = option("COLUMN", "Column with the labels: two classes, such as 0 and 1, or numbers (see --task).")
_sensitive = option(
    "COLUMNS", "Columns that define the groups, such as race,sex; each combination of their values is a group."
)
_repaired_score = option("COLUMN", "Column with the scores, if the model is a QuantileRepair.")

Files = Annotated[
    list[str],
    argument(
        "FILE",
        "CSV, Parquet, Feather, JSON lines or Excel, or a pattern such as 'scores/*.parquet'; text files may be "
        "compressed (.csv.gz, .csv.zst). Several files are read as one table.",
    ),
]
Model = Annotated[str, argument("MODEL", "Model file, written by `fairtransport train` or ft.save.")]
Score = Annotated[str, option("COLUMN", "Column with the scores.")]
RepairedScore = Annotated[str, _repaired_score]
OptionalRepairedScore = Annotated[str | None, _repaired_score]
Sensitive = Annotated[list[str], _sensitive]
OptionalSensitive = Annotated[list[str] | None, _sensitive]
UnknownGroup = Annotated[
    str,
    option(
        "error|pooled|common",
        "If the model needs the group: rows of unknown groups, and without one, are not scored, or scored as everyone "
        "pooled, or as the largest group.",
    ),
]
Features = Annotated[
    list[str] | None, option("COLUMNS", "Columns of the features, if the model was fitted without column names.")
]
Label = Annotated[str, _label]
OptionalLabel = Annotated[str | None, _label]
PosLabel = Annotated[str | None, option("LABEL", "Label that counts as positive [default: the larger one].")]
Task = Annotated[
    str | None,
    choice(
        "classification|regression",
        "Whether the labels are two classes or numbers [default: recognised from the labels].",
    ),
]
Weight = Annotated[str | None, option("COLUMN", "Column with sample weights.")]
ScoreRange = Annotated[str | None, option("LOW,HIGH", "Lowest and highest possible score [default: 0,1].", "--range")]
Bins = Annotated[int, option("N", "Number of histogram bins for the scores.", min=1)]
Seed = Annotated[int, option("N", "Seed of the random number generator.", min=0, max=2**32 - 1)]
Html = Annotated[Path | None, option("PATH", "Write a self-contained HTML report.")]
Force = Annotated[bool, flag("--force", "Overwrite existing files without asking.")]
Verify = Annotated[
    str | None,
    option("PATH", "Public key (Ed25519, PEM): refuse a MODEL that was not signed with its private key; see `sign`."),
]
Missing = Annotated[
    str,
    choice("set_aside|group", "Set rows without a group aside and count them, or treat them as a group of their own."),
]
SmallGroups = Annotated[
    str,
    choice(
        "keep|pool|drop",
        "Keep groups smaller than --min-group-size as they are, pool them into one group, or drop them from the "
        "comparison.",
    ),
]
MinGroupSize = Annotated[int, option("N", "Groups with fewer rows count as small.", min=1)]
MaxGroups = Annotated[
    int, option("N", "Fail if there are more groups, as when --sensitive names an identifier.", min=2)
]


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read."""

    file_format: Annotated[
        str | None,
        option("FORMAT", "csv, parquet, feather, jsonl or excel [default: judged by the file name].", "--format"),
    ] = None
    delimiter: Annotated[str | None, option("CHARACTER", "Delimiter of CSV fields [default: detected].")] = None
    encoding: Annotated[str, option("ENCODING", "Encoding of a CSV file: utf-8, latin-1 or utf-16.")] = "utf-8"
    null: Annotated[
        list[str] | None,
        option("TEXT", "Text that marks a missing value in a CSV file, such as NA; may be repeated."),
    ] = None
    decimal: Annotated[str, option("CHARACTER", "Decimal separator in a CSV file: . or ,")] = "."
    max_expansion: Annotated[
        float,
        option("N", "Refuse a compressed file that expands to more than 1 GiB and more than N times its size."),
    ] = 200
    sheet: Annotated[str | None, option("NAME", "Sheet of an Excel file [default: the first one].")] = None
    memory: Annotated[str, option("SIZE", "Memory limit of the query engine.")] = "2GiB"
    threads: Annotated[int | None, option("N", "Threads of the query engine [default: one per core].", min=1)] = None

    def open(self, files: Sequence[str]) -> AbstractContextManager[FileTable]:
        delimiter = None if self.delimiter is None else as_delimiter(self.delimiter)
        options = vars(self) | {"null": self.null or (), "delimiter": delimiter}
        return ft.tables.open_files(files, format=options.pop("file_format"), **options)


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters that are records have become options, one for each of their fields."""
    hints = get_type_hints(command, include_extras=True)
    records: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in records:
            parameters += _fields_as_parameters(records[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in fields(record)})
        command(**values)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapped


def _fields_as_parameters(record: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(record)
    ]


def command_line() -> str:
    """Return the command as it was typed, with the program's name instead of its path."""
    return shlex.join(["fairtransport", *sys.argv[1:]])


def make_policy(
    small_groups: str, min_group_size: int, max_groups: int, *, missing: str = "set_aside", grouping: str = "crossed"
) -> GroupPolicy:
    """Return what the options say about groups."""
    return ft.GroupPolicy(grouping == "crossed", missing, small_groups, min_group_size, max_groups=max_groups)


def as_delimiter(text: str) -> str:
    """Return the character that an option names."""
    return "\t" if text in {"tab", "\\t"} else text


def split_names(names: Sequence[str]) -> list[str]:
    """Return all names of options that have several, separated by commas."""
    return [part.strip() for name in names for part in name.split(",") if part.strip()]


def parse_range(text: str | None) -> tuple[float, float] | None:
    """Return the two numbers of ``LOW,HIGH``."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--range must be two numbers, such as 300,850; got {text!r}.") from None
    return low, high


def name_columns(
    table: FileTable,
    *,
    score: str,
    sensitive: Sequence[str],
    label: str | None = None,
    strata: Sequence[str] = (),
    weight: str | None = None,
) -> Columns:
    """Return the role of each column; ``race,sex`` are two columns, unless one column has that name."""
    return ft.tables.Columns.named(
        score=score,
        sensitive_features=table.split(sensitive),
        label=label,
        strata=table.split(strata) if strata else None,
        weight=weight,
    )
