"""``fairtransport audit --graph``: the scores of a model, and the effects of paths on them under a causal graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _options as shared
from fairtransport.cli._console import progress_bar, stderr_is_terminal
from fairtransport.cli._errors import misuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairtransport.auditing import Provenance
    from fairtransport.causal import CounterfactualAudit
    from fairtransport.tables import TableCounts

__all__ = ["EffectOptions", "measure_effects", "with_effect_options"]


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
    """What the options of ``audit`` say about a causal graph.

    Parameters
    ----------
    graph, model : str
        Files of the graph and of the model.
    unfair_edge : list of str or None
        Such as ``sex->hours``.
    resolving, adjust_for : list of str or None
    to : str or None
        Name of the group that everyone is moved to.
    quantiles : str
    refits : int
        Bootstrap samples.
    verify : str or None
        Public key of the model file.
    """

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
    """Add the options of a causal graph, which the command receives as one argument, ``paths``; None without a graph.

    Parameters
    ----------
    command : callable
        Has a keyword-only parameter ``paths``.

    Returns
    -------
    callable
        The same command with these options in its signature, for typer to read.
    """
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
    """Score the rows of files, count the scores for their audit, and measure the effects of paths.

    Parameters
    ----------
    files : list of str
    names : dict of str to str
        Columns by role, without the score.
    options : EffectOptions
    positive, reading, counting, drawing, seed
        As for `fairtransport.cli._file_audits.count_files`.

    Returns
    -------
    tuple of TableCounts, Provenance and CounterfactualAudit
    """
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
