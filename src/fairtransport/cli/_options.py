"""The options that several commands share: each has one name, one default and one help text."""

from __future__ import annotations

import functools
import inspect
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli._errors import misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairtransport.groups import GroupPolicy
    from fairtransport.tables import Columns, FileTable


_label = typer.Option(
    "--label", metavar="COLUMN", help="Column with the labels: two classes, such as 0 and 1, or numbers (see --task)."
)
_sensitive = typer.Option(
    "--sensitive",
    metavar="COLUMNS",
    help="Columns that define the groups, such as race,sex; each combination of their values is a group.",
)

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, Feather, JSON lines or Excel, or a pattern such as 'scores/*.parquet'; text files may be "
        "compressed (.csv.gz, .csv.zst). Several files are read as one table.",
    ),
]
Score = Annotated[str, typer.Option("--score", metavar="COLUMN", help="Column with the scores.")]
Sensitive = Annotated[list[str], _sensitive]
OptionalSensitive = Annotated[list[str] | None, _sensitive]
UnknownGroup = Annotated[
    str,
    typer.Option(
        "--unknown-group",
        metavar="error|pooled|common",
        help="If the model needs the group: rows of unknown groups, and without one, are not scored, or scored as "
        "everyone pooled, or as the largest group.",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features", metavar="COLUMNS", help="Columns of the features, if the model was fitted without column names."
    ),
]
Label = Annotated[str, _label]
OptionalLabel = Annotated[str | None, _label]
Positive = Annotated[
    str | None,
    typer.Option("--positive", metavar="LABEL", help="Label that counts as positive [default: the larger one]."),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="classification|regression",
        help="Whether the labels are two classes or numbers [default: recognised from the labels].",
    ),
]
Weight = Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Column with sample weights.")]
ScoreRange = Annotated[
    str | None,
    typer.Option("--range", metavar="LOW,HIGH", help="Lowest and highest possible score [default: 0,1]."),
]
Bins = Annotated[int, typer.Option("--bins", metavar="N", min=1, help="Number of histogram bins for the scores.")]
MaxGroups = Annotated[
    int,
    typer.Option(
        "--max-groups",
        metavar="N",
        min=2,
        help="Fail if there are more groups, as when --sensitive names an identifier.",
    ),
]
SmallGroups = Annotated[
    str,
    typer.Option(
        "--small-groups",
        metavar="keep|pool|drop",
        help="Keep groups smaller than --min-group-size as they are, pool them into one group, or drop them from the "
        "comparison.",
    ),
]
MinGroupSize = Annotated[
    int, typer.Option("--min-group-size", metavar="N", min=1, help="Groups with fewer rows count as small.")
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="set_aside|group",
        help="Set rows without a group aside and count them, or treat them as a group of their own.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of the random number generator.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files without asking.")]
Verify = Annotated[
    str | None,
    typer.Option(
        "--verify",
        metavar="PATH",
        help="Public key (Ed25519, PEM): refuse a MODEL that was not signed with its private key; see `sign`.",
    ),
]
JsonPath = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="[PATH]",
        help="Write the results as JSON to a file; without PATH, or with -, to standard output instead of tables.",
    ),
]
Reading = dict[str, Any]
"""How files are read: keyword arguments of `fairtransport.tables.open_files`."""

_Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="csv, parquet, feather, jsonl or excel [default: judged by the file name]."
    ),
]
_Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="CHARACTER", help="Delimiter of CSV fields [default: detected].")
]
_Encoding = Annotated[
    str, typer.Option("--encoding", metavar="ENCODING", help="Encoding of a CSV file: utf-8, latin-1 or utf-16.")
]
_Null = Annotated[
    list[str] | None,
    typer.Option(
        "--null", metavar="TEXT", help="Text that marks a missing value in a CSV file, such as NA; may be repeated."
    ),
]
_Decimal = Annotated[
    str, typer.Option("--decimal", metavar="CHARACTER", help="Decimal separator in a CSV file: . or ,")
]
_MaxExpansion = Annotated[
    float,
    typer.Option(
        "--max-expansion",
        metavar="N",
        help="Refuse a compressed file that expands to more than 1 GiB and more than N times its size.",
    ),
]
_Sheet = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="Sheet of an Excel file [default: the first one].")
]
_Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory limit of the query engine.")]
_Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads of the query engine [default: one per core]."),
]

# Parameter of `open_files` -> its option and default. `file_format` is called `format` there, which Python has taken.
_READING: dict[str, tuple[Any, Any]] = {
    "file_format": (_Format, None),
    "delimiter": (_Delimiter, None),
    "encoding": (_Encoding, "utf-8"),
    "null": (_Null, None),
    "decimal": (_Decimal, "."),
    "max_expansion": (_MaxExpansion, 200),
    "sheet": (_Sheet, None),
    "memory": (_Memory, "2GiB"),
    "threads": (_Threads, None),
}


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how files are read, which the command receives as one argument, ``reading``."""
    return add_options(command, "reading", _READING, _collect_reading)


def _collect_reading(options: dict[str, Any]) -> dict[str, Any]:
    reading = {("format" if name == "file_format" else name): value for name, value in options.items()}
    reading["null"] = reading["null"] or ()
    if reading["delimiter"] in {"tab", "\\t"}:
        reading["delimiter"] = "\t"
    return reading


def add_options(
    command: Callable[..., None],
    parameter: str,
    options: Mapping[str, tuple[Any, Any]],
    collect: Callable[[dict[str, Any]], Any],
) -> Callable[..., None]:
    """Return a command with further options, which it receives as one argument."""

    @functools.wraps(command)
    def wrapped(*arguments: Any, **values: Any) -> None:
        chosen = {name: values.pop(name) for name in options}
        command(*arguments, **{parameter: collect(chosen)}, **values)

    signature = inspect.signature(command, eval_str=True)
    parameters = [one for one in signature.parameters.values() if one.name != parameter]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for name, (option, default) in options.items()
    ]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapped


def command_line() -> str:
    """Return the command as it was typed, with the program's name instead of its path."""
    return shlex.join(["fairtransport", *sys.argv[1:]])


def make_policy(
    small_groups: str, min_group_size: int, max_groups: int, *, missing: str = "set_aside", grouping: str = "crossed"
) -> GroupPolicy:
    """Return what the options say about groups; end the command for words that they do not accept."""
    if small_groups not in {"keep", "pool", "drop"}:
        raise misuse(f"--small-groups must be keep, pool or drop; got {small_groups!r}")
    if missing not in {"set_aside", "group"}:
        raise misuse(f"--missing must be set_aside or group; got {missing!r}")
    if grouping not in {"crossed", "each"}:
        raise misuse(f"--grouping must be crossed or each; got {grouping!r}")
    from fairtransport.groups import GroupPolicy  # noqa: PLC0415 - numba takes a while

    return GroupPolicy(grouping == "crossed", missing, small_groups, min_group_size, max_groups=max_groups)


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
    from fairtransport.tables import Columns  # noqa: PLC0415 - narwhals takes a while

    return Columns.named(
        score=score,
        sensitive_features=table.split(sensitive),
        label=label,
        strata=table.split(strata) if strata else None,
        weight=weight,
    )
