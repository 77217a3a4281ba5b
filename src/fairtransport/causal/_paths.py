"""Which nodes move along chosen edges, and what forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._columns import say_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairtransport.causal._graph import CausalGraph, Edge

__all__ = ["check_confounding", "check_parents", "check_witnesses", "moved_nodes"]


def moved_nodes(
    graph: CausalGraph, sensitive: str, edges: Collection[Edge], resolving: Collection[str] = ()
) -> list[str]:
    """Return the descendants of the sensitive column that a change of the group reaches along edges, causes first."""
    moved = {sensitive}
    for node in graph.nodes:
        if node not in resolving and any((parent, node) in edges for parent in moved.intersection(graph.parents(node))):
            moved.add(node)
    return [node for node in graph.nodes if node in moved and node != sensitive]


def check_parents(graph: CausalGraph, sensitive: str, adjust_for: Collection[str]) -> None:
    """Raise where causes of the sensitive column are not named."""
    forgotten = [parent for parent in graph.parents(sensitive) if parent not in adjust_for]
    if forgotten:
        raise ValueError(
            f"The graph has an edge into the sensitive column, from {say_columns(forgotten)}. Counterfactuals are then "
            "those of people with equal values there: name it in adjust_for=, or remove the edge."
        )
    unknown = [name for name in adjust_for if name not in graph.parents(sensitive)]
    if unknown:
        raise ValueError(f"adjust_for names {say_columns(unknown)}; the graph has no edge from there to {sensitive!r}.")


def check_witnesses(graph: CausalGraph, sensitive: str, edges: Collection[Edge], resolving: Collection[str]) -> None:
    """Raise where a moved column would have to be seen both moved and as it is: a recanting witness."""
    for node in moved_nodes(graph, sensitive, edges, resolving):
        used = [child for child in graph.children(node) if child not in resolving]
        unfair = [child for child in used if (node, child) in edges]
        if unfair and len(unfair) < len(used):
            fair = next(child for child in used if child not in unfair)
            raise ValueError(
                f"Column {node!r} is a recanting witness: it would have to be seen moved by {unfair[0]!r} and as it is "
                f"by {fair!r}, so the data do not identify the effect of these paths. Make all edges from it unfair "
                "or none, or name it in resolving=."
            )


def check_confounding(graph: CausalGraph, sensitive: str, moved: Collection[str], confounded: Collection[Edge]) -> None:
    """Raise where a pair with a hidden common cause lies on a path that is moved."""
    for one, other in confounded:
        unknown = [name for name in (one, other) if name not in graph.nodes]
        if unknown:
            raise ValueError(f"confounded names {say_columns(unknown)}; the graph has no such node.")
        if {one, other} <= {sensitive, *moved}:
            raise ValueError(
                f"Columns {one!r} and {other!r} are confounded, and the paths that are moved pass through both: people "
                "with equal causes are then not comparable. Choose other paths, or measure the common cause."
            )
