"""``fairtransport repair``: files of scores -> a file with repaired scores, and the map for others to use."""

from __future__ import annotations

import warnings
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _tables as shared
from fairtransport.cli._console import make_table, print_path, print_sentence, print_table, spinner
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._output import prepare_files
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairtransport.auditing import Audit
    from fairtransport.repair import QuantileRepair
    from fairtransport.repair.files import FileRepair

__all__ = ["run_repair"]

_TITLES = {
    "error_rate": "Error",
    "wasserstein_disparity": "Distance to target",
    "strong_demographic_disparity": "Distance to everyone",
    "strong_pairwise_disparity": "Distance between pairs",
}
_REPLICATES = 100  # for the noise floor of the table that is shown


def run_repair(
    files: shared.Files,
    *,
    score: shared.Score,
    sensitive: shared.Sensitive,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="PATH", help="File to write: .parquet, .feather, .csv, .jsonl, .csv.gz, ..."),
    ],
    amount: Annotated[
        float,
        typer.Option("--amount", metavar="X", min=0, max=1, help="From 0 (as they are) to 1 (equal distributions)."),
    ] = 1.0,
    target: Annotated[
        str, typer.Option("--target", metavar="WORD", help="barycenter_w2, barycenter, pooled or a group.")
    ] = "barycenter_w2",
    fit_on: Annotated[
        list[str] | None,
        typer.Option("--fit-on", metavar="FILE", help="Learn on these files instead, and repair the others."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="Column of two labels, to show the error.")
    ] = None,
    positive: shared.Positive = None,
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Column of weights.")] = None,
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Name of the new column [default: SCORE_repaired].")
    ] = None,
    sql: Annotated[
        Path | None, typer.Option("--sql", metavar="PATH", help="Write the repair as SQL, for a database.")
    ] = None,
    lookup: Annotated[
        Path | None, typer.Option("--lookup", metavar="PATH", help="Write the repair as a small Parquet table.")
    ] = None,
    json_to: JsonTo = None,
    force: shared.Force = False,
    score_range: shared.ScoreRange = None,
    small_groups: Annotated[
        str,
        typer.Option(
            "--small-groups",
            metavar="WORD",
            help="Groups of few rows get no map of their own: keep or pool (the map of all small groups together, if "
            "these have enough rows), or drop (the common map).",
        ),
    ] = "keep",
    min_group_size: shared.MinGroupSize = 30,
    guess_types: Annotated[
        bool, typer.Option("--guess-types", help="Guess which columns of a CSV file hold numbers; text otherwise.")
    ] = False,
    bins: shared.Bins = 16_384,
    max_groups: shared.MaxGroups = 200,
    file_format: shared.Format = None,
    delimiter: shared.Delimiter = None,
    encoding: shared.Encoding = "utf-8",
    null: shared.Null = None,
    decimal: shared.Decimal = ".",
    max_expansion: shared.MaxExpansion = 200,
    memory: shared.Memory = "2GiB",
    threads: shared.Threads = None,
) -> None:
    """Give every group the same distribution of scores; write a file.

    Rows keep their order and all columns; one is added. A row without score, or of no group that was learned, gets
    none, and is counted.

    \b
    Example:
      fairtransport repair scores.csv --score s --sensitive race \\
          --out repaired.parquet
      fairtransport repair new.parquet --fit-on old.parquet --score s \\
          --sensitive race --out new-repaired.parquet --sql repair.sql
    """  # noqa: D301 - \b keeps the lines of the example
    shared.check_small_groups(small_groups)
    goal = JsonGoal(json_to)
    prepare_files(
        [out, sql, lookup, goal.path], force=force, ask=shared.on_terminal(), inputs=[*files, *(fit_on or ())]
    )
    from fairtransport.tables.files.writing import check_output  # noqa: PLC0415 - narwhals takes a while

    check_output(out)
    reading = shared.read_options(
        format=file_format,
        delimiter=delimiter,
        encoding=encoding,
        null=null,
        decimal=decimal,
        max_expansion=max_expansion,
        memory=memory,
        threads=threads,
    )
    names = {"score": score, "sensitive": sensitive, "label": label, "weight": weight}
    counting = {"range": shared.parse_range(score_range), "n_bins": bins, "max_groups": max_groups}
    learning = {
        "target": target,
        "amount": amount,
        "small_groups": small_groups,
        "min_group_size": min_group_size,
    }
    output = column or f"{score}_repaired"
    writing = {"path": out, "output": output, "guess": guess_types}
    with shared.in_options():
        repair, done = _repair(
            files, fit_on, names, positive, reading=reading, counting=counting, learning=learning, writing=writing
        )
        _hand_on(repair, score, sql=sql, lookup=lookup, output=output)
        with spinner("Before and after"):
            before, after = _audits(done)
    set_aside = dict(repair.set_aside_) if fit_on else {}
    summary = {"rows": done.counts, "not_learned_from": set_aside, "before": before.metrics, "after": after.metrics}
    floors = {name: reading.floor for name, reading in after.readings.items()}
    without = {"groups": len(repair.small_groups_), "rows": int(repair.group_sizes_[~repair.own_map_].sum())}
    goal.write({**summary, "noise_floor": floors, "without_own_map": without, "written": str(out)})
    if goal.to_stdout:
        return
    _show(before, after, done, set_aside)
    _show_small_groups(repair)
    for what, path in (("Written:", out), ("SQL:", sql), ("Lookup table:", lookup), ("JSON:", goal.path)):
        if path is not None:
            print_path(what, path)


def _repair(
    files: list[str],
    fit_on: list[str] | None,
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: dict[str, Any],
    counting: dict[str, Any],
    learning: dict[str, Any],
    writing: dict[str, Any],
) -> tuple[QuantileRepair, FileRepair]:
    """Learn from the counts of one table, and write the other, which may be the same."""
    from contextlib import ExitStack  # noqa: PLC0415

    from fairtransport.repair import QuantileRepair  # noqa: PLC0415 - scikit-learn takes a while
    from fairtransport.repair.files import repair_file  # noqa: PLC0415
    from fairtransport.tables import count_table, open_files  # noqa: PLC0415

    show = shared.watched()
    with ExitStack() as stack:
        table = stack.enter_context(open_files(files, **reading))
        columns = shared.name_columns(table, **names)
        table.check(columns)
        table.check_new(writing["output"])
        pos_label = None if positive is None else table.read_label(columns, positive)
        source, own = table, columns
        if fit_on:
            source = stack.enter_context(open_files(fit_on, **reading))
            own = shared.name_columns(source, **{**names, "label": None})
            source.check(own)
        as_text = table.kinds(columns.sensitive) != source.kinds(own.sensitive)
        given = {} if fit_on else {"pos_label": pos_label}
        counts = source.run(count_table, own, title="Reading", show=show, as_text=as_text, **counting, **given)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="None of the .* groups has min_group_size")  # said at the end
            repair = QuantileRepair(**learning).fit_counts(counts)
        with shared.bar("Writing") as tell:
            done = repair_file(
                repair,
                table,
                columns,
                as_text=as_text,
                pos_label=pos_label,
                tell=tell,
                **writing,
            )
    return repair, done


def _show_small_groups(repair: QuantileRepair) -> None:
    from fairtransport.repair.quantile import describe_small_groups  # noqa: PLC0415 - scikit-learn takes a while

    for sentence in describe_small_groups(repair):
        print_sentence(f"{sentence}.")


def _hand_on(repair: QuantileRepair, score: str, *, sql: Path | None, lookup: Path | None, output: str) -> None:
    if sql is not None:
        write_atomically(sql, repair.to_sql(score=score, output=output).encode())
    if lookup is not None:
        repair.to_parquet(lookup)


def _audits(done: FileRepair) -> tuple[Audit, Audit]:
    from fairtransport.auditing import audit_histograms  # noqa: PLC0415

    def read(histograms: Any) -> Audit:
        return audit_histograms(histograms, n_bootstrap=_REPLICATES, n_permutations=_REPLICATES, random_state=0)

    return read(done.before), read(done.after)


def _show(before: Audit, after: Audit, done: FileRepair, set_aside: Mapping[str, int]) -> None:
    table = make_table(
        f"{done.counts['rows']:,} rows in {len(after.groups)} groups", [""], ["before", "after", "by chance"]
    )
    for name, reading in after.readings.items():
        floor = "" if reading.floor is None else f"{reading.floor:.3f}"
        table.add_row(_TITLES[name], f"{before.readings[name].value:.3f}", f"{reading.value:.3f}", floor)
    print_table(table)
    for reason, rows in set_aside.items():
        print_sentence(f"Not learned from: {rows:,} rows, {reason}.")
    if done.counts["clamped"]:
        print_sentence(f"Clamped to the fitted range: {done.counts['clamped']:,} rows.")
    for reason in ("no score", "no group", "unknown group"):
        if done.counts[reason]:
            print_sentence(f"Without a repaired score: {done.counts[reason]:,} rows, {reason}.")
