"""``fairtransport audit``: how far apart the groups' scores in files are, and how sure that is."""

from __future__ import annotations

import textwrap
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport._extras import load_extra
from fairtransport._text import one_line, plain
from fairtransport.cli import _tables as shared
from fairtransport.cli._console import print_path, spinner
from fairtransport.cli._errors import complain
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._limits import ABOVE, BELOW, EXCEEDED, parse_limits
from fairtransport.cli._output import prepare_files

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["run_audit"]


def run_audit(
    files: shared.Files,
    *,
    score: shared.Score,
    sensitive: shared.Sensitive,
    label: Annotated[str | None, typer.Option("--label", metavar="COLUMN", help="Column of two labels.")] = None,
    positive: shared.Positive = None,
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Column of weights.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMNS", help="Compare within each value of these as well, such as region."),
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option("--threshold", metavar="X", help="Scores above are selected; may be repeated [default: middle]."),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="WORD", help="What wass1 is measured to: barycenter, barycenter_w2, pooled or a group."
        ),
    ] = "barycenter",
    score_range: shared.ScoreRange = None,
    grouping: Annotated[
        str,
        typer.Option("--grouping", metavar="WORD", help="crossed, or each: one group for each value of each column."),
    ] = "crossed",
    missing: Annotated[
        str, typer.Option("--missing", metavar="WORD", help="A missing group: set_aside (and counted), or group.")
    ] = "set_aside",
    small_groups: shared.SmallGroups = "keep",
    min_group_size: shared.MinGroupSize = 30,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write a page that can be handed on.")
    ] = None,
    json_to: JsonTo = None,
    fail_above: Annotated[
        list[str] | None,
        typer.Option("--fail-above", metavar="NAME=X", help=f"Exit with 2 when it is above X: {', '.join(ABOVE)}."),
    ] = None,
    fail_below: Annotated[
        list[str] | None,
        typer.Option("--fail-below", metavar="NAME=X", help=f"Exit with 2 when it is below X: {', '.join(BELOW)}."),
    ] = None,
    surely: Annotated[
        bool, typer.Option("--surely", help="Limits are exceeded only when the whole interval is beyond them.")
    ] = False,
    force: shared.Force = False,
    confidence: Annotated[float, typer.Option("--confidence", metavar="X", help="Of the intervals.")] = 0.95,
    replicates: Annotated[
        int, typer.Option("--replicates", metavar="N", min=20, help="Bootstrap replicates, and shuffles of the groups.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Of everything random.")] = 0,
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
    """Say how far apart groups' scores in files are, and how sure it is.

    Files may be larger than memory; only counts are kept. Rows without score or group are counted and reported.

    \b
    Exit status:
      0    all is well
      1    bad input, or a failure: one line on standard error says which
      2    a limit is exceeded, and nothing else
      64   the command was called wrongly
      130  stopped by Ctrl-C

    \b
    Example:
      fairtransport audit scores.csv --score s --sensitive race,sex
      fairtransport audit 'day/*.parquet' --score s --sensitive race \\
          --label y --by region --html report.html --fail-above spdd=.1
    """  # noqa: D301 - \b keeps the lines of the example
    limits = parse_limits(fail_above or (), fail_below or (), labelled=label is not None)
    shared.check_small_groups(small_groups)
    goal = JsonGoal(json_to)
    prepare_files([html, goal.path], force=force, ask=shared.on_terminal(), inputs=files)
    if html is not None:
        load_extra("jinja2")  # told before anything is computed
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
    drawing: dict[str, Any] = {
        "thresholds": threshold or None,
        "target": target,
        "confidence": confidence,
        "n_bootstrap": replicates,
        "n_permutations": replicates,
        "unsure_below": 30,
        "small_groups": small_groups,
        "min_group_size": min_group_size,
    }
    counting: dict[str, Any] = {
        "range": shared.parse_range(score_range),
        "n_bins": bins,
        "grouping": grouping,
        "missing": missing,
        "max_groups": max_groups,
    }
    names = {"score": score, "sensitive": sensitive, "label": label, "by": by or (), "weight": weight}
    with shared.in_options():
        audit = _audit(files, names, positive, reading=reading, counting=counting, drawing=drawing, seed=seed)
    _hand_on(audit, html, goal)
    exceeded = [told for limit in limits if (told := limit.exceeded(audit, surely=surely)) is not None]
    for told in exceeded:
        complain(told)
    if exceeded:
        raise typer.Exit(EXCEEDED)


def _audit(
    files: list[str],
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> Audit:
    from fairtransport.tables import count_table, open_files  # noqa: PLC0415 - numba takes a while

    def load_and_check() -> None:
        from fairtransport.auditing.options import check_options  # noqa: PLC0415
        from fairtransport.histograms import Grid  # noqa: PLC0415

        check_options(Grid.over(counting["range"], counting["n_bins"]), **drawing)

    with open_files(files, **reading) as table:
        columns = shared.name_columns(table, **names)
        if positive is not None:
            counting["pos_label"] = table.read_label(columns, positive)
        counts = table.run(count_table, columns, show=shared.watched(), meanwhile=load_and_check, **counting)
    from fairtransport.auditing import audit_counts  # noqa: PLC0415 - loaded by now

    with spinner("Intervals and noise floor"):
        return audit_counts(counts, random_state=seed, **drawing)


def _hand_on(audit: Audit, html: Path | None, goal: JsonGoal) -> None:
    from fairtransport.report.pages.audit_verdict import audit_verdict  # noqa: PLC0415 - its room brings much

    if html is not None:
        with spinner("Writing the page"):
            audit.to_html(html)
    goal.write(audit.to_json(indent=2))
    if goal.to_stdout:
        return
    typer.echo(str(audit))
    typer.echo()
    typer.echo(textwrap.fill(one_line(plain(audit_verdict(audit).sentence)), 80, break_on_hyphens=False))
    for what, path in (("Page:", html), ("JSON:", goal.path)):
        if path is not None:
            print_path(what, path)
