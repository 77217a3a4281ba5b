"""The options that several commands share: each has one name, one default and one help text."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

import fairtransport as ft
from fairtransport.cli._errors import misuse

if TYPE_CHECKING:
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


REPAIRED_SCORE = option("COLUMN", "Column with the scores, if the model is a QuantileRepair.")

# What a parameter of this name is on the command line, unless a command describes it otherwise.
_SHARED = {
    "files": argument(
        "FILE",
        "CSV, Parquet, Feather, JSON lines or Excel, or a pattern such as 'scores/*.parquet'; text files may be "
        "compressed (.csv.gz, .csv.zst). Several files are read as one table.",
    ),
    "model": argument("MODEL", "Model file, written by `fairtransport train` or ft.save."),
    "score": option("COLUMN", "Column with the scores."),
    "sensitive": option(
        "COLUMNS", "Columns that define the groups, such as race,sex; each combination of their values is a group."
    ),
    "unknown_group": option(
        "error|pooled|common",
        "If the model needs the group: rows of unknown groups, and without one, are not scored, or scored as everyone "
        "pooled, or as the largest group.",
    ),
    "features": option("COLUMNS", "Columns of the features, if the model was fitted without column names."),
    "label": option("COLUMN", "Column with the labels: two classes, such as 0 and 1, or numbers (see --task)."),
    "pos_label": option("LABEL", "Label that counts as positive; needed unless 0/1, false/true, no/yes or -1/1."),
    "task": choice(
        "classification|regression",
        "Whether the labels are two classes or numbers [default: recognised from the labels].",
    ),
    "weight": option("COLUMN", "Column with sample weights."),
    "score_range": option("LOW,HIGH", "Lowest and highest possible score [default: 0,1].", "--range"),
    "bins": option("N", "Number of histogram bins for the scores.", min=1),
    "seed": option("N", "Seed of the random number generator.", min=0, max=2**32 - 1),
    "html": option("PATH", "Write a self-contained HTML report."),
    "force": flag("--force", "Overwrite existing files without asking."),
    "verify": option(
        "PATH", "Public key (Ed25519, PEM): refuse a MODEL that was not signed with its private key; see `sign`."
    ),
    "missing": choice(
        "set_aside|group", "Set rows without a group aside and count them, or treat them as a group of their own."
    ),
    "small_groups": choice(
        "keep|pool|drop",
        "Keep groups smaller than --min-group-size as they are, pool them into one group, or drop them from the "
        "comparison.",
    ),
    "min_group_size": option("N", "Groups with fewer rows count as small.", min=1),
    "max_groups": option("N", "Fail if there are more groups, as when --sensitive names an identifier.", min=2),
}

Described = TypeVar("Described")


def described(**options: Any) -> Callable[[Described], Described]:
    """Describe parameters of a command, or fields of a record of options, for the command line."""

    def describe(target: Described) -> Described:
        target.options = options  # type: ignore[attr-defined]
        return target

    return describe


@described(
    file_format=option(
        "FORMAT", "csv, parquet, feather, jsonl or excel [default: judged by the file name].", "--format"
    ),
    delimiter=option("CHARACTER", "Delimiter of CSV fields [default: detected]."),
    encoding=option("ENCODING", "Encoding of a CSV file: utf-8, latin-1 or utf-16."),
    null=option("TEXT", "Text that marks a missing value in a CSV file, such as NA; may be repeated."),
    decimal=option("CHARACTER", "Decimal separator in a CSV file: . or , [default: that of training to score, else .]"),
    max_expansion=option(
        "N", "Refuse a compressed file that expands to more than 1 GiB and more than N times its size."
    ),
    sheet=option("NAME", "Sheet of an Excel file [default: the first one]."),
    memory=option("SIZE", "Memory limit of the query engine."),
    threads=option("N", "Threads of the query engine [default: one per core].", min=1),
)
@dataclass(frozen=True)
class ReadingOptions:
    """The options of reading files."""

    file_format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    null: list[str] | None = None
    decimal: str | None = None
    max_expansion: float = 200
    sheet: str | None = None
    memory: str = "2GiB"
    threads: int | None = None

    def open(self, files: Sequence[str]) -> AbstractContextManager[FileTable]:
        delimiter = None if self.delimiter is None else as_delimiter(self.delimiter)
        options = vars(self) | {"null": self.null or (), "delimiter": delimiter, "decimal": self.decimal or "."}
        return ft.tables.open_files(files, format=options.pop("file_format"), **options)


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with its parameters as options; one that is a record has become one for each of its fields."""
    records: dict[str, Any] = {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}
    parameters = []
    for own in _parameters(command):
        parameters += _parameters(records[own.name]) if own.name in records else [own]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in fields(record)})
        command(**values)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapped


def _parameters(target: Any) -> list[inspect.Parameter]:
    """Return the parameters of a command or a record, with what they are on the command line."""
    hints, infos = get_type_hints(target), _SHARED | getattr(target, "options", {})
    parameters = []
    for one in inspect.signature(target).parameters.values():
        kind = Annotated[hints[one.name], infos[one.name]] if one.name in infos else hints[one.name]
        parameters.append(one.replace(kind=one.KEYWORD_ONLY, annotation=kind))
    return parameters


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
