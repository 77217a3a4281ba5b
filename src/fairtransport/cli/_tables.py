"""What the commands for tables share: options that say how files are read, and errors in the words of options."""

from __future__ import annotations

import contextlib
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli._errors import misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairtransport.tables import Columns, FileTable

__all__ = [
    "Bins",
    "Decimal",
    "Delimiter",
    "Encoding",
    "Files",
    "Force",
    "Format",
    "MaxExpansion",
    "MaxGroups",
    "Memory",
    "MinGroupSize",
    "Null",
    "Positive",
    "Score",
    "ScoreRange",
    "Sensitive",
    "SmallGroups",
    "Threads",
    "bar",
    "check_small_groups",
    "in_options",
    "name_columns",
    "on_terminal",
    "parse_range",
    "read_options",
    "watched",
]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, Feather or JSON lines; patterns such as 'scores/*.parquet'; .csv.gz and .zst too. Several "
        "files are one table.",
    ),
]
Score = Annotated[str, typer.Option("--score", metavar="COLUMN", help="Column of the scores.")]
Sensitive = Annotated[
    list[str],
    typer.Option(
        "--sensitive", metavar="COLUMNS", help="Columns of the groups, such as race,sex; several are crossed."
    ),
]
Positive = Annotated[
    str | None, typer.Option("--positive", metavar="LABEL", help="The positive label [default: the larger one].")
]
ScoreRange = Annotated[
    str | None, typer.Option("--range", metavar="LOW,HIGH", help="Range of the scores [default: 0,1].")
]
Bins = Annotated[int, typer.Option("--bins", metavar="N", min=1, help="Bins that scores are counted in.")]
MaxGroups = Annotated[
    int, typer.Option("--max-groups", metavar="N", min=2, help="More groups are refused: an identifier was named.")
]
SmallGroups = Annotated[
    str,
    typer.Option(
        "--small-groups", metavar="WORD", help="Groups of few rows: keep, pool (into one group) or drop (leave out)."
    ),
]
MinGroupSize = Annotated[
    int, typer.Option("--min-group-size", metavar="N", min=1, help="A group of fewer rows is small.")
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="WORD", help="csv, parquet, feather or jsonl, if names do not say it.")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="SIGN", help="Between the fields of a CSV file [default: found].")
]
Encoding = Annotated[str, typer.Option("--encoding", metavar="WORD", help="Of a CSV file: utf-8, latin-1 or utf-16.")]
Null = Annotated[
    list[str] | None, typer.Option("--null", metavar="TEXT", help="Means a missing value in a CSV file, such as NA.")
]
Decimal = Annotated[str, typer.Option("--decimal", metavar="SIGN", help="Before decimals in a CSV file: . or ,")]
MaxExpansion = Annotated[
    float,
    typer.Option(
        "--max-expansion", metavar="N", help="Refuse a packed file of more than 1 GiB and N times its packed size."
    ),
]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="What the engine may keep in memory.")]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", min=1, help="Of the engine [default: one a core].")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist, without asking.")]

_SPOKEN = (
    (r"\brange=\(low, high\)", "--range LOW,HIGH"),
    (r"\bencoding='utf-16'", "--encoding utf-16"),
    (r"\bdecimal=','", "--decimal ,"),
    (r"\bpos_label\b=?", "--positive"),
    (r"\bsensitive_features has\b", "--sensitive has"),
    (r"\bmax_groups\b=?", "--max-groups"),
    (r"\bmax_expansion\b=?", "--max-expansion"),
    (r"\bn_bins\b=?", "--bins"),
    (r"\bmin_group_size=(\d)", r"--min-group-size \1"),
    (r"\bmin_group_size\b=?", "--min-group-size"),
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
)


def on_terminal() -> bool:
    """Return whether someone sees what is written to standard error, and can answer."""
    return watched() and sys.stdin.isatty()


def watched() -> bool:
    """Return whether someone sees what is written to standard error; only then progress is shown."""
    return sys.stderr.isatty()


def check_small_groups(word: str) -> None:
    """End the command for a policy that is none."""
    if word not in {"keep", "pool", "drop"}:
        raise misuse(f"--small-groups must be keep, pool or drop; got {word!r}")


@contextlib.contextmanager
def bar(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on work of more than two seconds, if someone sees it; give what takes the share that is done."""
    from fairtransport._progress import progress  # noqa: PLC0415
    from fairtransport.tables.files.engine import QUIET  # noqa: PLC0415 - narwhals takes a while

    with progress(title, 1000, show=watched(), after=QUIET) as shown:
        yield lambda share: shown.advance(int(1000 * share))


@contextlib.contextmanager
def in_options() -> Iterator[None]:
    """Raise the library's errors with the names that its parameters have on the command line."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = str(error)
        for pattern, option in _SPOKEN:
            text = re.sub(pattern, option, text)
        raise (TypeError if isinstance(error, TypeError) else ValueError)(text) from error
    except OSError as error:
        if error.strerror and error.filename is None:
            error.strerror = error.strerror.replace("memory=", "--memory")
        raise


def parse_range(text: str | None) -> tuple[float, float] | None:
    """Return the two numbers of ``LOW,HIGH``."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--range must be two numbers, such as 300,850; got {text!r}.") from None
    return low, high


def read_options(**given: Any) -> dict[str, Any]:
    """Return the options of `fairtransport.tables.open_files` from what the command line gave."""
    if given["delimiter"] in {"tab", "\\t"}:
        given["delimiter"] = "\t"
    return {**given, "null": given["null"] or ()}


def name_columns(
    table: FileTable,
    *,
    score: str,
    sensitive: Sequence[str],
    label: str | None = None,
    by: Sequence[str] = (),
    weight: str | None = None,
) -> Columns:
    """Return which column is what; ``race,sex`` are two columns, unless one has that name."""
    from fairtransport.tables import Columns  # noqa: PLC0415 - narwhals takes a while

    return Columns.named(
        score=score,
        sensitive=table.split(sensitive),
        label=label,
        by=table.split(by) if by else None,
        weight=weight,
    )
