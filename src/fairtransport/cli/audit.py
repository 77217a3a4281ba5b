"""``fairtransport audit``: differences between groups' scores in files, with confidence intervals."""

from __future__ import annotations

import textwrap
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport._extras import load_extra
from fairtransport._text import one_line, plain
from fairtransport.cli import _options as shared
from fairtransport.cli._console import print_paths, spinner, stderr_is_terminal
from fairtransport.cli._errors import option_names_in_errors, print_stderr
from fairtransport.cli._json import JsonOutput
from fairtransport.cli._limits import ABOVE, BELOW, EXCEEDED, parse_limits
from fairtransport.cli._output import prepare_files

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["run_audit"]


@shared.with_reading_options
def run_audit(
    files: shared.Files,
    *,
    score: shared.Score,
    sensitive: shared.Sensitive,
    label: shared.OptionalLabel = None,
    positive: shared.Positive = None,
    weight: shared.Weight = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(
            "--strata", metavar="COLUMNS", help="Also compare within each value of these columns, such as region."
        ),
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            "--threshold",
            metavar="X",
            help="Scores above X are selected; may be repeated [default: the middle of the range].",
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Distribution that wass1 is measured to: barycenter, barycenter_w2, pooled or the name of a group.",
        ),
    ] = "barycenter",
    score_range: shared.ScoreRange = None,
    grouping: Annotated[
        str,
        typer.Option(
            "--grouping",
            metavar="crossed|each",
            help="One group for each combination of values, or for each value of each column.",
        ),
    ] = "crossed",
    missing: shared.Missing = "set_aside",
    small_groups: shared.SmallGroups = "keep",
    min_group_size: shared.MinGroupSize = 30,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write a self-contained HTML report.")
    ] = None,
    json_path: shared.JsonPath = None,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-above", metavar="NAME=X", help=f"Exit with status 2 if a metric is above X: {', '.join(ABOVE)}."
        ),
    ] = None,
    fail_below: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-below", metavar="NAME=X", help=f"Exit with status 2 if a metric is below X: {', '.join(BELOW)}."
        ),
    ] = None,
    surely: Annotated[
        bool,
        typer.Option("--surely", help="Count a limit as exceeded only if the whole confidence interval is beyond it."),
    ] = False,
    force: shared.Force = False,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="X", help="Level of the confidence intervals.")
    ] = 0.95,
    replicates: Annotated[
        int,
        typer.Option(
            "--replicates",
            metavar="N",
            min=20,
            help="Number of bootstrap replicates, and of permutations of the groups.",
        ),
    ] = 1000,
    seed: shared.Seed = 0,
    bins: shared.Bins = 16_384,
    max_groups: shared.MaxGroups = 200,
    reading: shared.Reading,
) -> None:
    """Measure differences between groups' scores, with intervals.

    Files may be larger than memory, because only histograms of the scores are kept. Rows without a score or a group are
    counted and reported.

    \b
    Metrics that can have a limit:
      spdd        strong pairwise demographic disparity: distance between pairs
      sdd         strong demographic disparity: distance to everyone's scores
      wass1       Wasserstein-1 distance to the target
      err         error rate, with --label
      difference  largest difference of selection rates
      ratio       smallest ratio of selection rates

    \b
    Exit status:
      0    success
      1    bad input or another failure, explained on standard error
      2    a limit is exceeded
      64   wrong usage
      130  interrupted by Ctrl-C

    \b
    Example:
      fairtransport audit scores.csv --score s --sensitive race,sex
      fairtransport audit 'day/*.parquet' --score s --sensitive race \\
          --label y --strata region --html report.html --fail-above spdd=.1
    """  # noqa: D301 - \b keeps the lines of the example
    limits = parse_limits(fail_above or (), fail_below or (), labelled=label is not None)
    shared.check_policies(small_groups, missing)
    json_output = JsonOutput(json_path)
    prepare_files([html, json_output.path], force=force, inputs=files)
    if html is not None:
        load_extra("jinja2")  # fails before anything is computed
    drawing: dict[str, Any] = {
        "thresholds": threshold or None,
        "target": target,
        "confidence": confidence,
        "n_bootstrap": replicates,
        "n_permutations": replicates,
        "min_judged_rows": 30,
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
    names = {"score": score, "sensitive": sensitive, "label": label, "strata": strata or (), "weight": weight}
    with option_names_in_errors():
        audit = _audit(files, names, positive, reading=reading, counting=counting, drawing=drawing, seed=seed)
    _report(audit, html, json_output)
    exceeded = [text for limit in limits if (text := limit.exceeded(audit, surely=surely)) is not None]
    for text in exceeded:
        print_stderr(text)
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
        counts = table.run(count_table, columns, show=stderr_is_terminal(), meanwhile=load_and_check, **counting)
    from fairtransport.auditing import audit_counts  # noqa: PLC0415 - loaded by now

    with spinner("Intervals and noise floor"):
        return audit_counts(counts, random_state=seed, **drawing)


def _report(audit: Audit, html: Path | None, json_output: JsonOutput) -> None:
    from fairtransport.report import audit_verdict  # noqa: PLC0415 - loads much, and only this command needs it

    if html is not None:
        with spinner("Writing the page"):
            audit.to_html(html)
    json_output.write(audit.to_json(indent=2))
    if json_output.to_stdout:
        return
    typer.echo(str(audit))
    typer.echo()
    typer.echo(textwrap.fill(one_line(plain(audit_verdict(audit).sentence)), 80, break_on_hyphens=False))
    print_paths({"Page": html, "JSON": json_output.path})
