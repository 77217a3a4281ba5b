"""How effects change with one edge of the graph more or less."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from fairtransport._extras import make_frame
from fairtransport._progress import progress
from fairtransport.causal._audit import audit_counterfactual
from fairtransport.causal._graph import CausalGraph, as_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairtransport.causal._effects import CounterfactualAudit
    from fairtransport.causal._graph import Edge
    from fairtransport.causal._transport import CounterfactualTransport

__all__ = ["EdgeSensitivity", "GraphVariant", "edge_sensitivity"]

_QUICK: dict[str, Any] = {"n_bootstrap": 0, "n_permutations": 0, "n_orders": 0}


@dataclass(frozen=True)
class GraphVariant:
    """The effects under a graph that differs by one edge.

    Attributes
    ----------
    edge : (str, str)
    change : {"added", "removed"}
    audit : CounterfactualAudit or None
        None where the question has no answer under this graph.
    """

    edge: Edge
    change: str
    audit: CounterfactualAudit | None


@dataclass(frozen=True)
class EdgeSensitivity:
    """Effects under a graph, and under all graphs that differ by one edge.

    Attributes
    ----------
    audit : CounterfactualAudit
        Under the graph as it is.
    variants : tuple of GraphVariant
    """

    audit: CounterfactualAudit
    variants: tuple[GraphVariant, ...]

    def range(self, effect: str = "total", *, group: Any = None) -> tuple[float, float]:
        """Return the lowest and the highest mean effect, of the largest group by default."""
        means = [self._mean(one, effect, group) for one in (self.audit, *(one.audit for one in self.variants))]
        known = [mean for mean in means if mean is not None]
        return min(known), max(known)

    def to_frame(self, library: str | None = None) -> Any:
        """Return one row for each graph, group and effect, with the mean effect, as a data frame."""
        graphs = [("", "as it is", self.audit)]
        graphs += [(f"{one.edge[0]} -> {one.edge[1]}", one.change, one.audit) for one in self.variants if one.audit]
        rows = [
            {"edge": edge, "change": change, "group": group.group, "effect": name, "mean": effect.mean}
            for edge, change, audit in graphs
            for group in audit.groups
            for name, effect in group.effects.items()
        ]
        return make_frame(rows, library)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        base = self._mean(self.audit, "total", None) or 0.0
        yield f"Total effect of {self.audit.sensitive} if everyone were {self.audit.to}, by graph"
        yield f"  {'as it is':<44}  {base:+.4f}"
        known = [(one, self._mean(one.audit, "total", None)) for one in self.variants]
        for one, mean in sorted(known, key=lambda pair: -abs((base if pair[1] is None else pair[1]) - base)):
            name = f"{'with' if one.change == 'added' else 'without'} {one.edge[0]} -> {one.edge[1]}"
            yield f"  {name:<44}  {'no answer' if mean is None else f'{mean:+.4f}'}"

    def _mean(self, audit: CounterfactualAudit | None, effect: str, group: Any) -> float | None:
        if audit is None:
            return None
        largest = max(self.audit.groups, key=lambda one: one.rows).group
        own = next(one for one in audit.groups if one.group == (largest if group is None else group))
        return own.effects[effect].mean if effect in own.effects else None


def edge_sensitivity(
    model: Any,
    table: Any,
    transport: CounterfactualTransport,
    *,
    to: Any = None,
    edges: Iterable[Edge] | None = None,
    threshold: float | None = 0.5,
    verbose: bool = False,
) -> EdgeSensitivity:
    """Measure effects again under every graph that has one edge more or less.

    Parameters
    ----------
    model, table, to, threshold
        As for `audit_counterfactual`.
    transport : CounterfactualTransport
        It is cloned and fitted to ``table`` with each graph.
    edges : iterable of (str, str), optional
        Edges to remove where the graph has them, and to add where it does not. By default all edges, and all pairs of
        columns without one in the order of the graph, except into the sensitive column.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    EdgeSensitivity
        ``print`` shows the total effect under each graph, the most different first; ``to_frame`` has all effects.

    Notes
    -----
    The graph is an assumption, which data cannot verify, and intervals do not include the uncertainty about it. An edge
    that is added is unfair only if all edges are, that is, with ``unfair_edges=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.causal import CounterfactualTransport, edge_sensitivity
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 1000)
    >>> age = rng.normal(40, 5, 1000) + 2 * sex
    >>> table = {"sex": sex, "age": age, "hours": age + 3 * sex + rng.normal(size=1000)}
    >>> transport = CounterfactualTransport([("sex", "hours"), ("age", "hours")], sensitive="sex", quantiles="linear")
    >>> found = edge_sensitivity(lambda rows: rows["hours"], table, transport, to=1, threshold=None)
    >>> [round(end) for end in found.range()]
    [3, 6]
    """
    graph = as_graph(transport.graph)
    whole = clone(transport).set_params(graph=graph)
    base = audit_counterfactual(model, table, whole.fit(table), to=to, threshold=threshold, **_QUICK)
    chosen = [*edges] if edges is not None else [*graph.edges, *_absent_edges(graph, whole)]
    variants = []
    with progress("Graphs", len(chosen), show=verbose) as bar:
        for edge in chosen:
            variants.append(_variant(model, table, whole, edge, to=base.to, threshold=threshold))
            bar.advance(len(variants))
    return EdgeSensitivity(base, tuple(variants))


def _variant(model: Any, table: Any, transport: CounterfactualTransport, edge: Edge, **options: Any) -> GraphVariant:
    graph: CausalGraph = transport.graph
    removed = edge in graph.edges
    edges = [one for one in graph.edges if one != edge] if removed else [*graph.edges, edge]
    changed = clone(transport).set_params(graph=CausalGraph.from_edges(edges, graph.nodes))
    if transport.unfair_edges is not None:
        changed.set_params(unfair_edges=[tuple(one) for one in transport.unfair_edges if tuple(one) in edges])
    audit = None
    try:
        changed.fit(table)
    except ValueError:  # a recanting witness, for instance, or no effect of the group at all
        pass
    else:
        audit = audit_counterfactual(model, table, changed, **options, **_QUICK)
    return GraphVariant(edge, "removed" if removed else "added", audit)


def _absent_edges(graph: CausalGraph, transport: CounterfactualTransport) -> list[Edge]:
    """Return the pairs of nodes without an edge, in the order of the graph; the sensitive column has no causes."""
    others = [node for node in graph.nodes if node not in graph.descendants(transport.sensitive)]
    others.sort(key=lambda node: node != transport.sensitive)
    order = [*others, *graph.descendants(transport.sensitive)]
    return [
        (one, other)
        for one, other in combinations(order, 2)
        if (one, other) not in graph.edges and other != transport.sensitive and one != transport.outcome
    ]
