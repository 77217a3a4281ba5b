"""``fairtransport audit``: differences between groups' scores in files, with confidence intervals."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport._extras import load_extra
from fairtransport._text import one_line
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse, print_stderr
from fairtransport.cli._limits import ABOVE, BELOW, EXCEEDED, audit_counted, count_files, parse_limits
from fairtransport.cli._output import JsonOutput, prepare_files, print_paths, progress_bar, spinner, stderr_is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairtransport.auditing import Provenance
    from fairtransport.causal import CounterfactualAudit
    from fairtransport.tables import TableCounts

# ``fairtransport audit --graph``: the scores of a model, and the effects of paths on them under a causal graph.

_Graph = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="PATH",
        help="Causal graph of the columns (DOT, or CSV of causes and effects): also measure how much of the "
        "difference flows along which paths. Needs --model.",
    ),
]
_Model = Annotated[
    str | None, typer.Option("--model", metavar="PATH", help="Model file whose scores are audited with --graph.")
]
_UnfairEdges = Annotated[
    list[str] | None,
    typer.Option(
        "--unfair-edge",
        metavar="A->B",
        help="Edge of the graph along which an effect is unfair; may be repeated. Their effect is shown, too.",
    ),
]
_Resolving = Annotated[
    list[str] | None,
    typer.Option(
        "--resolving",
        metavar="COLUMN",
        help="Column in which a difference is fair, whatever caused it: it is not moved. May be repeated.",
    ),
]
_AdjustFor = Annotated[
    list[str] | None,
    typer.Option("--adjust-for", metavar="COLUMN", help="Cause of the sensitive column; may be repeated."),
]
_To = Annotated[
    str | None,
    typer.Option("--to", metavar="GROUP", help="Group that everyone is moved to, with --graph [default: the largest]."),
]
_Quantiles = Annotated[
    str,
    typer.Option(
        "--quantiles", metavar="forest|linear", help="Conditional distributions along the graph; linear is faster."
    ),
]
_Refits = Annotated[
    int,
    typer.Option("--refits", metavar="N", min=0, help="Bootstrap samples for the intervals of effects; 0 for none."),
]

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "graph": (_Graph, None),
    "model": (_Model, None),
    "unfair_edge": (_UnfairEdges, None),
    "resolving": (_Resolving, None),
    "adjust_for": (_AdjustFor, None),
    "to": (_To, None),
    "quantiles": (_Quantiles, "forest"),
    "refits": (_Refits, 50),
    "verify": (shared.Verify, None),
}


@dataclass(frozen=True)
class EffectOptions:
    """What the options of ``audit`` say about a causal graph."""

    graph: str
    model: str
    unfair_edge: list[str] | None
    resolving: list[str] | None
    adjust_for: list[str] | None
    to: str | None
    quantiles: str
    refits: int
    verify: str | None

    def check_others(self, others: dict[str, Any]) -> None:
        """End the command where options do not go with a causal graph."""
        if self.quantiles not in {"forest", "linear"}:
            raise misuse(f"--quantiles must be forest or linear; got {self.quantiles!r}")
        self.edges()
        for option, chosen in others.items():
            if chosen is not None:
                raise misuse(f"--graph cannot be combined with {option}")

    def edges(self) -> list[tuple[str, str]] | None:
        """Return the unfair edges as pairs."""
        if not self.unfair_edge:
            return None
        pairs = [tuple(part.strip() for part in text.split("->")) for text in self.unfair_edge]
        if any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise misuse("--unfair-edge must be a cause and an effect, such as 'sex->hours'")
        return [(pair[0], pair[1]) for pair in pairs]


def with_effect_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a causal graph, which the command receives as one argument, ``paths``."""
    return shared.add_options(command, "paths", _OPTIONS, _collect)


def _collect(chosen: dict[str, Any]) -> EffectOptions | None:
    missing = [name for name in ("graph", "model") if chosen[name] is None]
    if len(missing) == 1:
        raise misuse("--graph and --model go together: effects are those on the scores of a model")
    if missing and any(chosen[name] for name in ("unfair_edge", "resolving", "adjust_for", "to", "verify")):
        raise misuse("--unfair-edge, --resolving, --adjust-for, --to and --verify need --graph and --model")
    return None if missing else EffectOptions(**chosen)


def measure_effects(
    files: list[str],
    names: dict[str, Any],
    options: EffectOptions,
    *,
    positive: str | None,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> tuple[TableCounts, Provenance, CounterfactualAudit]:
    """Score the rows of files, count the scores for their audit, and measure the effects of paths."""
    from fairtransport.auditing.options import requested_nodes  # noqa: PLC0415 - numba takes a while
    from fairtransport.auditing.provenance import Provenance, describe_files  # noqa: PLC0415
    from fairtransport.causal import CounterfactualTransport, as_graph, audit_counterfactual  # noqa: PLC0415
    from fairtransport.persistence import load  # noqa: PLC0415
    from fairtransport.tables import Columns, count_table  # noqa: PLC0415

    edges = options.edges()
    graph, model = as_graph(options.graph), load(options.model, verify=options.verify)
    if not hasattr(model, "score_rows"):
        raise TypeError(f"{options.model} holds a {type(model).__name__}, which has no scores.")
    table, columns, paths = _read(files, names, reading)
    if len(columns["sensitive_features"]) != 1:
        raise misuse("--graph is about one sensitive column; cross several into one first")
    sensitive, label = columns["sensitive_features"][0], columns["label"]
    transport = CounterfactualTransport(
        graph,
        sensitive=sensitive,
        outcome=label if label in graph.nodes else None,
        unfair_edges=edges,
        resolving=options.resolving or (),
        adjust_for=options.adjust_for or (),
        quantiles=options.quantiles,
        random_state=seed,
    )
    graph.check_columns(table.column_names)
    table, scores = _scored(model, table, sensitive)
    score = _free_name("score", table.column_names)
    roles = Columns.named(score=score, sensitive_features=sensitive, label=label, strata=columns["strata"] or None)
    shown = _with_labels_as_text(table, label) if positive is not None else table
    counted = {"task": None, **counting, "any_range": True, "nodes": requested_nodes(drawing["thresholds"])}
    if positive is not None:
        counted["pos_label"] = positive
    named = {role: name for role, name in vars(roles).items() if name}
    counts = count_table(shown.append_column(score, [scores]), **named, **counted)
    effects = audit_counterfactual(
        model,
        table,
        transport,
        to=_group_named(options.to, table[sensitive]),
        threshold=_first_threshold(drawing["thresholds"], scores),
        n_bootstrap=options.refits,
        confidence=drawing["confidence"],
        random_state=seed,
        verbose=stderr_is_terminal(),
    )
    known = {role: (name,) if isinstance(name, str) else tuple(name) for role, name in named.items()}
    with progress_bar("Hashing the files") as tell:
        sources = describe_files([*paths, options.model, options.graph], tell)
    provenance = Provenance.now(
        files=sources, rows=counts.rows, columns=known, positive=positive, seed=seed, strata_cuts=counts.cuts
    )
    return counts, provenance, effects


def _read(files: list[str], names: dict[str, Any], reading: dict[str, Any]) -> tuple[Any, dict[str, Any], list[Any]]:
    """Return all rows, the columns by role, and the paths of the files."""
    from importlib import import_module  # noqa: PLC0415

    from fairtransport.tables import open_files  # noqa: PLC0415

    with open_files(files, **reading) as table, progress_bar("Reading") as tell:
        batches = table.batches(guess=True)
        parts = []
        for rows, _ in batches:
            parts.append(rows)
            tell(table.share())
        whole = import_module("pyarrow").Table.from_batches(parts, schema=batches.schema)
        columns = {
            "sensitive_features": table.split(names["sensitive"]),
            "label": names["label"],
            "strata": table.split(names["strata"]) if names["strata"] else [],
        }
        return whole, columns, table.paths


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
        raise misuse("--positive needs --label")
    texts = [None if value is None else str(value) for value in table[label].to_pylist()]
    return table.set_column(table.column_names.index(label), label, [texts])


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


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
    policy = shared.make_policy(small_groups, min_group_size, max_groups, missing=missing, grouping=grouping)
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
        "task": task,
        "within_labels": criterion != "demographic_parity",
    }
    if by is not None:
        _check_series(strata, criterion, markdown)
    layers = strata or ([by] if by is not None else ())
    names = {"score": score, "sensitive": sensitive, "label": label, "strata": layers, "weight": weight}
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
