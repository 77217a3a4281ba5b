"""``fairtransport audit``: differences between groups' scores in files, with confidence intervals."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import fairtransport as ft
from fairtransport._extras import load_extra
from fairtransport._text import one_line
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse, print_stderr
from fairtransport.cli._file_audits import AuditPlan
from fairtransport.cli._limits import ABOVE, BELOW, EXCEEDED, parse_limits
from fairtransport.cli._output import Output, progress_bar, spinner, stderr_is_terminal

if TYPE_CHECKING:
    from fairtransport.auditing import Provenance
    from fairtransport.causal import CounterfactualAudit
    from fairtransport.tables import TableCounts

# ``fairtransport audit --graph``: the scores of a model, and the effects of paths on them under a causal graph.


@shared.described(
    graph=shared.option(
        "PATH",
        "Causal graph of the columns (DOT, or CSV of causes and effects): also measure how much of the difference "
        "flows along which paths. Needs --model.",
    ),
    model=shared.option("PATH", "Model file whose scores are audited with --graph."),
    unfair_edge=shared.option(
        "A->B", "Edge of the graph along which an effect is unfair; may be repeated. Their effect is shown, too."
    ),
    resolving=shared.option(
        "COLUMN", "Column in which a difference is fair, whatever caused it: it is not moved. May be repeated."
    ),
    adjust_for=shared.option("COLUMN", "Cause of the sensitive column; may be repeated."),
    to=shared.option("GROUP", "Group that everyone is moved to, with --graph [default: the largest]."),
    quantiles=shared.choice(
        "auto|linear|forest|boosted", "Conditional distributions along the graph; auto chooses by held-out rows."
    ),
    refits=shared.option("N", "Bootstrap samples for the intervals of effects; 0 for none.", min=0),
)
@dataclass(frozen=True)
class EffectOptions:
    """The options of ``audit`` about a causal graph."""

    graph: str | None = None
    model: str | None = None
    unfair_edge: list[str] | None = None
    resolving: list[str] | None = None
    adjust_for: list[str] | None = None
    to: str | None = None
    quantiles: str = "auto"
    refits: int = 50
    verify: str | None = None

    def __bool__(self) -> bool:
        return self.graph is not None

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [path for path in (self.graph, self.model) if path is not None]

    def check(self, others: dict[str, Any]) -> None:
        """End the command where options contradict each other, or others that were given."""
        if len(self.inputs) == 1:
            raise misuse("--graph and --model go together: effects are those on the scores of a model")
        if not self and any((self.unfair_edge, self.resolving, self.adjust_for, self.to, self.verify)):
            raise misuse("--unfair-edge, --resolving, --adjust-for, --to and --verify need --graph and --model")
        self.edges()
        if self:
            _refuse("--graph", others)

    def edges(self) -> list[tuple[str, str]] | None:
        """Return the unfair edges as pairs."""
        if not self.unfair_edge:
            return None
        pairs = [tuple(part.strip() for part in text.split("->")) for text in self.unfair_edge]
        if any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise misuse("--unfair-edge must be a cause and an effect, such as 'sex->hours'")
        return [(pair[0], pair[1]) for pair in pairs]


def _refuse(option: str, others: dict[str, Any]) -> None:
    """End the command if an option was given with another that it cannot be combined with."""
    for other, chosen in others.items():
        if chosen is not None:
            raise misuse(f"{option} cannot be combined with {other}")


def measure_effects(
    files: list[str], plan: AuditPlan, options: EffectOptions
) -> tuple[TableCounts, Provenance, CounterfactualAudit]:
    """Score the rows of files, count the scores for their audit, and measure the effects of paths."""
    from fairtransport.tables.column_roles import free_name  # noqa: PLC0415
    from fairtransport.tabular.file_scoring import collect_file  # noqa: PLC0415

    inference = plan.drawing["inference"]
    graph, model = ft.causal.as_graph(options.graph), ft.load(str(options.model), verify=options.verify)
    if not hasattr(model, "score_rows"):
        raise TypeError(f"{options.model} holds a {type(model).__name__}, which has no scores.")
    with plan.reading.open(files) as opened, progress_bar("Reading") as tell:
        score = free_name("score", opened.names)
        columns, paths = shared.name_columns(opened, **{**plan.names, "score": score}), opened.paths
        table = collect_file(opened, guess=True, on_progress=tell)
    if len(columns.sensitive_features) != 1:
        raise misuse("--graph is about one sensitive column; cross several into one first")
    sensitive, label = columns.sensitive_features[0], columns.label
    transport = ft.causal.CounterfactualTransport(
        graph,
        sensitive=sensitive,
        outcome=label if label in graph.nodes else None,
        unfair_edges=options.edges(),
        resolving=options.resolving or (),
        adjust_for=options.adjust_for or (),
        quantiles=options.quantiles,
        random_state=inference.random_state,
    )
    graph.check_columns(table.column_names)
    table, scores = _scored(model, table, sensitive)
    shown, counting = table, plan.all_counting
    if plan.positive is not None:
        shown, counting["pos_label"] = _with_labels_as_text(table, label), plan.positive
    named = {role: name for role, name in vars(columns).items() if name}
    counts = ft.tables.count_table(shown.append_column(score, [scores]), **named, **counting)
    effects = ft.causal.audit_counterfactual(
        model,
        table,
        transport,
        to=_group_named(options.to, table[sensitive]),
        threshold=_first_threshold(plan.drawing["thresholds"], scores),
        inference=replace(inference, n_bootstrap=options.refits, n_permutations=20),
        verbose=stderr_is_terminal(),
    )
    return counts, plan.provenance(counts, columns, [*paths, *options.inputs[::-1]]), effects


def _scored(model: Any, table: Any, sensitive: str) -> tuple[Any, Any]:
    """Return the rows that have a group and a score, and their scores."""
    import numpy as np  # noqa: PLC0415

    table = table.filter(table[sensitive].is_valid())
    scores = np.asarray(model.score_rows(table).scores, dtype=np.float64)
    known = np.isfinite(scores)
    if not known.any():
        raise ValueError("The model has a score for none of the rows.")
    return table.filter(known), scores[known]


def _group_named(text: str | None, column: Any) -> Any:
    if text is None:
        return None
    groups = {str(value): value for value in column.unique().to_pylist()}
    if text not in groups:
        raise ValueError(f"--to must name one of the {len(groups)} groups of the table.")
    return groups[text]


def _first_threshold(texts: list[str] | None, scores: Any) -> float | None:
    """Return the first threshold that is a number; by default .5 for scores within 0 and 1, and none for others."""
    for text in texts or ():
        try:
            return float(text)
        except ValueError:
            continue
    return 0.5 if scores.min() >= 0.0 and scores.max() <= 1.0 else None


def _with_labels_as_text(table: Any, label: str | None) -> Any:
    if label is None:
        raise misuse("--pos-label needs --label")
    texts = [None if value is None else str(value) for value in table[label].to_pylist()]
    return table.set_column(table.column_names.index(label), label, [texts])


@shared.described(
    score=shared.option("COLUMN", "Column with the scores [required without --graph]."),
    criterion=shared.option(
        "CRITERION",
        "What the verdict is about: demographic_parity (all people), equalized_odds (people with the same label, "
        "or similar numbers) or equal_opportunity (people with the positive label).",
    ),
    strata=shared.option(
        "COLUMNS",
        "Compare people only within each value of these columns, such as region (conditional parity); columns of "
        "many numbers are cut at quantiles.",
    ),
    by=shared.option(
        "COLUMN",
        "One audit for each value of this column, such as region, or for each month of its dates, with a control chart "
        "on one page.",
    ),
    threshold=shared.option(
        "X",
        "Scores above X are selected, or a share such as 'top 10%'; may be repeated [default: the middle of the "
        "range; top 10, 25 and 50% without known bounds].",
    ),
    target=shared.option(
        "TARGET", "Distribution that wass1 is measured to: barycenter, barycenter_w2, pooled or the name of a group."
    ),
    favourable=shared.option(
        "high|low", "Which scores are to a person's advantage; low for a risk, where those above X are flagged."
    ),
    reference=shared.option("GROUP", "Group that error rates are compared with [default: the largest]."),
    grouping=shared.choice(
        "crossed|each", "One group for each combination of values, or for each value of each column."
    ),
    markdown=shared.option("PATH", "Write the tables as Markdown, for a model card."),
    title=shared.option("TEXT", "Heading of the report."),
    fail_above=shared.option("NAME=X", f"Exit with status 2 if a metric is above X: {', '.join(ABOVE)}."),
    fail_below=shared.option("NAME=X", f"Exit with status 2 if a metric is below X: {', '.join(BELOW)}."),
    surely=shared.flag("--surely", "Count a limit as exceeded only if the whole confidence interval is beyond it."),
    confidence=shared.option("X", "Level of the confidence intervals."),
    materiality=shared.option(
        "X", "Smallest distance between two groups that matters: a mean difference of selection rates."
    ),
    n_bootstrap=shared.option("N", "Bootstrap replicates for the intervals.", min=20),
    n_permutations=shared.option("N", "Permutations of the groups for noise floors and p-values.", min=20),
)
def run_audit(
    files: list[str],
    *,
    score: str | None = None,
    sensitive: list[str],
    label: str | None = None,
    pos_label: str | None = None,
    task: str | None = None,
    weight: str | None = None,
    criterion: str = "demographic_parity",
    strata: list[str] | None = None,
    by: str | None = None,
    threshold: list[str] | None = None,
    target: str = "barycenter",
    favourable: str = "high",
    reference: str | None = None,
    score_range: str | None = None,
    grouping: str = "crossed",
    missing: str = "set_aside",
    small_groups: str = "keep",
    min_group_size: int = 30,
    html: Path | None = None,
    markdown: Path | None = None,
    output: Output,
    title: str | None = None,
    fail_above: list[str] | None = None,
    fail_below: list[str] | None = None,
    surely: bool = False,
    confidence: float = 0.95,
    materiality: float = 0.02,
    n_bootstrap: int = 1000,
    n_permutations: int = 1000,
    seed: int = 0,
    bins: int = 16_384,
    max_groups: int = 200,
    paths: EffectOptions,
    reading: shared.ReadingOptions,
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
                  disparity (mean over pairs), and the largest difference at any
                  threshold
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
      separation  mean distance between two groups among people with the same
                  label, over all thresholds
      opportunity the same among people with the positive label
    and with --strata:
      conditional mean distance among people in the same stratum

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
    policy = shared.make_policy(small_groups, min_group_size, max_groups, missing=missing, grouping=grouping)
    paths.check({"--score": score, "--weight": weight, "--by": by, "--markdown": markdown})
    if not paths and score is None:
        raise misuse("--score is required, or --graph and --model, which compute scores")
    if by is not None:
        others = {"--strata": strata, "--criterion": None if criterion == "demographic_parity" else criterion}
        _refuse("--by", {**others, "--markdown": markdown})
    output.prepare(html, markdown, inputs=[*files, *paths.inputs])
    if html is not None:
        load_extra("jinja2")  # fails before anything is computed
    from fairtransport.auditing.series import by_in_errors  # noqa: PLC0415

    drawing: dict[str, Any] = {
        "thresholds": threshold or None,
        "target": target,
        "inference": ft.auditing.Inference(confidence, n_bootstrap, n_permutations, seed),
        "materiality": materiality,
        "groups": policy,
        "favourable": favourable,
        "reference": reference,
        "criterion": criterion,
    }
    counting: dict[str, Any] = {
        "range": shared.parse_range(score_range),
        "n_bins": bins,
        "groups": policy,
        "cut_strata": by is None,
        "cut_dates": by is not None,
        "task": task,
        "within_labels": criterion != "demographic_parity",
    }
    layers = strata or ([by] if by is not None else ())
    names = {"score": score, "sensitive": sensitive, "label": label, "strata": layers, "weight": weight}
    plan = AuditPlan(names, pos_label, reading, counting, drawing)
    effects = None
    with by_in_errors() if by is not None else nullcontext():
        if paths:
            counts, provenance, effects = measure_effects(files, plan, paths)
        else:
            counts, provenance = plan.count(files)
    provenance = replace(provenance, title=title, command=shlex.join(["fairtransport", *sys.argv[1:]]))
    result = plan.audit(counts, provenance, by=by)
    _report(result, html, markdown, output, effects)
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


def _report(
    audit: Any, html: Path | None, markdown: Path | None, output: Output, effects: CounterfactualAudit | None = None
) -> None:
    if html is not None:
        with spinner("Writing the page"):
            audit.to_html(html, **({} if effects is None else {"effects": effects}))
    if markdown is not None:
        audit.to_markdown(markdown)
    if output.json_path is not None:
        text = audit.to_json(indent=2)
        output.write_json(text if effects is None else {**json.loads(text), "effects": effects.to_dict()})
        if output.is_json:
            return
    typer.echo(str(audit))
    if effects is not None:
        typer.echo(f"\n{effects}")
    output.print_paths({"Page": html, "Markdown": markdown})
