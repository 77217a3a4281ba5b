"""``fairtransport audit``: differences between groups' scores in files, with confidence intervals."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport._extras import load_extra
from fairtransport._text import one_line
from fairtransport.cli import _options as shared
from fairtransport.cli._console import print_paths, spinner
from fairtransport.cli._effects import EffectOptions, measure_effects, with_effect_options
from fairtransport.cli._errors import misuse, option_names_in_errors, print_stderr
from fairtransport.cli._file_audits import audit_counted, count_files
from fairtransport.cli._json import JsonOutput
from fairtransport.cli._limits import ABOVE, BELOW, EXCEEDED, parse_limits
from fairtransport.cli._output import prepare_files

if TYPE_CHECKING:
    from fairtransport.causal import CounterfactualAudit

__all__ = ["run_audit"]


@shared.with_reading_options
@with_effect_options
def run_audit(
    files: shared.Files,
    *,
    score: Annotated[
        str | None, typer.Option("--score", metavar="COLUMN", help="Column with the scores [required without --graph].")
    ] = None,
    sensitive: shared.Sensitive,
    label: shared.OptionalLabel = None,
    positive: shared.Positive = None,
    task: shared.Task = None,
    weight: shared.Weight = None,
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion",
            metavar="CRITERION",
            help="What the verdict is about: demographic_parity (all people), equalized_odds (people with the same "
            "label, or similar numbers) or equal_opportunity (people with the positive label).",
        ),
    ] = "demographic_parity",
    strata: Annotated[
        list[str] | None,
        typer.Option(
            "--strata",
            metavar="COLUMNS",
            help="Compare people only within each value of these columns, such as region (conditional parity); "
            "columns of many numbers are cut at quantiles.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="One audit for each value of this column, such as month, with a control chart on one page.",
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="X",
            help="Scores above X are selected, or a share such as 'top 10%'; may be repeated [default: the middle of "
            "the range; top 10, 25 and 50% without known bounds].",
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
    favourable: Annotated[
        str,
        typer.Option(
            "--favourable",
            metavar="high|low",
            help="Which scores are to a person's advantage; low for a risk, where those above X are flagged.",
        ),
    ] = "high",
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="GROUP",
            help="Group that error rates are compared with [default: the largest].",
        ),
    ] = None,
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
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="PATH", help="Write the tables as Markdown, for a model card."),
    ] = None,
    json_path: shared.JsonPath = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Heading of the report.")] = None,
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
    materiality: Annotated[
        float,
        typer.Option(
            "--materiality",
            metavar="X",
            help="Smallest distance between two groups that matters: a mean difference of selection rates.",
        ),
    ] = 0.02,
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
    paths: EffectOptions | None,
    reading: shared.Reading,
) -> None:
    """Measure differences between groups' scores, with intervals.

    Files may be larger than memory, because only histograms of the scores are kept. Rows without a score or a group are
    counted and reported. Scores may be probabilities or any other numbers, such as decile scores, logits or
    predictions of a regression: those outside [0, 1] are compared by their ranks, unless --range gives their bounds.
    With --graph and --model all rows have to fit into memory; effects hold under this graph, which is an assumption.

    \b
    Metrics that can have a limit:
      mean        mean distance between two groups
      largest     widest distance between two groups that is established
      rank, ks    of scores without known bounds, such as predictions: the rank
                  disparity, and the largest difference at any threshold
      spdd        strong pairwise demographic disparity: sum over all pairs
      sdd         strong demographic disparity: sum of distances to everyone
      wass1       sum of Wasserstein-1 distances to the target
      difference  largest difference of selection rates
      ratio       smallest ratio of selection rates
    and with --label:
      err         error rate
      tpr, fpr, fnr, ppv, npv, acc
                  largest difference of true positive, false positive and false
                  negative rates, predictive values and accuracy
      eo          equalized odds: the larger difference of tpr and fpr
      eop         equal opportunity: that of tpr, or of fpr with --favourable low
      ece         largest expected calibration error of a group
      separation  distances among people with the same label, over all thresholds
      opportunity the same among people with the positive label
    and with --strata:
      conditional distances among people in the same stratum

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
      fairtransport audit scores.csv --score s --sensitive sex --label y \\
          --criterion equalized_odds --fail-above separation=.05 --surely
      fairtransport audit wages.csv --score predicted --label wage \\
          --sensitive sex --threshold 'top 10%' --fail-above rank=.1
      fairtransport audit data.csv --graph graph.dot --model model.ft \\
          --sensitive sex --unfair-edge 'sex->hours' --html report.html
    """  # noqa: D301 - \b keeps the lines of the example
    limits = parse_limits(fail_above or (), fail_below or (), labelled=label is not None, stratified=bool(strata))
    if criterion != "demographic_parity" and label is None:
        raise misuse(f"--criterion {criterion} compares people with the same label, so it needs --label")
    shared.check_policies(small_groups, missing)
    if paths is not None:
        paths.check_others({"--score": score, "--weight": weight, "--by": by, "--markdown": markdown})
    elif score is None:
        raise misuse("--score is required, or --graph and --model, which compute scores")
    json_output = JsonOutput(json_path)
    inputs = files if paths is None else [*files, paths.graph, paths.model]
    prepare_files([html, markdown, json_output.path], force=force, inputs=inputs)
    if html is not None:
        load_extra("jinja2")  # fails before anything is computed
    drawing: dict[str, Any] = {
        "thresholds": threshold or None,
        "target": target,
        "confidence": confidence,
        "n_bootstrap": replicates,
        "n_permutations": replicates,
        "min_judged_rows": 30,
        "materiality": materiality,
        "small_groups": small_groups,
        "min_group_size": min_group_size,
        "favourable": favourable,
        "reference": reference,
        "criterion": criterion,
    }
    counting: dict[str, Any] = {
        "range": shared.parse_range(score_range),
        "n_bins": bins,
        "grouping": grouping,
        "missing": missing,
        "max_groups": max_groups,
        "cut_strata": by is None,
        "task": task,
        "within_labels": criterion != "demographic_parity",
    }
    if by is not None:
        _check_series(strata, criterion, markdown)
    layers = strata or ([by] if by is not None else ())
    names = {"score": score, "sensitive": sensitive, "label": label, "strata": layers, "weight": weight}
    with option_names_in_errors():
        from fairtransport.auditing.series import by_in_errors  # noqa: PLC0415 - numba takes a while

        effects = None
        settings: dict[str, Any] = {"reading": reading, "counting": counting, "drawing": drawing, "seed": seed}
        with by_in_errors() if by is not None else nullcontext():
            if paths is None:
                counts, provenance = count_files(files, names, positive, **settings)
            else:
                counts, provenance, effects = measure_effects(files, names, paths, positive=positive, **settings)
        provenance = replace(provenance, title=title, command=shared.command_line())
        result = audit_counted(counts, provenance, by=by, random_state=seed, **drawing)
    _report(result, html, markdown, json_output, effects)
    audits = {None: result} if by is None else result.audits
    exceeded = [
        text if value is None else f"{by} {one_line(value)}: {text}"
        for value, audit in audits.items()
        for limit in limits
        if (text := limit.exceeded(audit, surely=surely)) is not None
    ]
    for text in exceeded:
        print_stderr(text)
    if exceeded:
        raise typer.Exit(EXCEEDED)


def _check_series(strata: list[str] | None, criterion: str, markdown: Path | None) -> None:
    """End the command where options do not go with ``--by``."""
    others = {
        "--strata": strata,
        "--criterion": criterion != "demographic_parity",
        "--markdown": markdown is not None,
    }
    for option, chosen in others.items():
        if chosen:
            raise misuse(f"--by cannot be combined with {option}")


def _report(
    audit: Any,
    html: Path | None,
    markdown: Path | None,
    json_output: JsonOutput,
    effects: CounterfactualAudit | None = None,
) -> None:
    if html is not None:
        with spinner("Writing the page"):
            audit.to_html(html, **({} if effects is None else {"effects": effects}))
    if markdown is not None:
        audit.to_markdown(markdown)
    text = audit.to_json(indent=2)
    json_output.write(text if effects is None else {**json.loads(text), "effects": effects.to_dict()})
    if json_output.to_stdout:
        return
    typer.echo(str(audit))
    if effects is not None:
        typer.echo(f"\n{effects}")
    print_paths({"Page": html, "Markdown": markdown, "JSON": json_output.path})
