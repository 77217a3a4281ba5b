"""Causal graphs: which column is a cause of which."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._columns import say_columns
from fairtransport.causal._dot import parse_dot

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["CausalGraph", "Edge", "as_graph"]

Edge = tuple[str, str]


@dataclass(frozen=True)
class CausalGraph:
    """A directed graph without cycles; its nodes are columns of a table.

    Parameters
    ----------
    nodes : tuple of str
        Causes before their effects.
    edges : tuple of (str, str)
        From a cause to its effect.
    """

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def from_edges(cls, edges: Iterable[Edge], nodes: Iterable[str] = ()) -> CausalGraph:
        """Return the graph of these edges, and of further nodes without any.

        Raises
        ------
        ValueError
            When the edges form a cycle, which is named.
        """
        unique = dict.fromkeys((_name(one), _name(other)) for one, other in edges)
        parents: dict[str, list[str]] = {_name(node): [] for node in nodes}
        for one, other in unique:
            parents.setdefault(one, [])
            parents.setdefault(other, []).append(one)
        try:
            order = tuple(TopologicalSorter(parents).static_order())
        except CycleError as error:
            cycle = " -> ".join(map(repr, error.args[1]))
            raise ValueError(f"The graph has a cycle: {cycle}. A cause cannot be an effect of its effects.") from None
        return cls(order, tuple(unique))

    def parents(self, node: str) -> tuple[str, ...]:
        """Return the causes of a node, in the order of the edges."""
        return tuple(one for one, other in self.edges if other == node)

    def children(self, node: str) -> tuple[str, ...]:
        """Return the effects of a node, in the order of the edges."""
        return tuple(other for one, other in self.edges if one == node)

    def descendants(self, node: str, edges: Collection[Edge] | None = None) -> tuple[str, ...]:
        """Return the nodes that can be reached from a node, causes first, along some edges (all by default)."""
        used = self.edges if edges is None else edges
        reached = {node}
        for one in self.nodes:
            if any((parent, one) in used for parent in reached.intersection(self.parents(one))):
                reached.add(one)
        return tuple(one for one in self.nodes if one in reached and one != node)

    def check_columns(self, columns: Collection[str]) -> None:
        """Raise where the graph has nodes that are no columns of a table."""
        absent = [node for node in self.nodes if node not in columns]
        if absent:
            raise ValueError(
                f"The table has no {say_columns(absent)}, which the graph has. Leave them out of the graph, or declare "
                "what they affect in common with confounded=."
            )

    def check_edges(self, edges: Collection[Edge], *, name: str) -> None:
        """Raise where edges that a parameter names are not those of the graph."""
        for edge in edges:
            if edge not in self.edges:
                raise ValueError(f"{name} has the edge {edge[0]!r} -> {edge[1]!r}, which is not in the graph.")


def as_graph(graph: Any) -> CausalGraph:
    """Return a causal graph, however it is given.

    Parameters
    ----------
    graph : CausalGraph, networkx.DiGraph, str, path, table, mapping or iterable of edges
        DOT text, or a file of it (``.dot``, ``.gv``); a file of edges (``.csv``, one ``cause,effect`` in each line); an
        adjacency table, whose first column (or index) names causes and whose other columns are effects, with 1 for
        an edge; a mapping from causes to lists of effects; or pairs of a cause and an effect.

    Returns
    -------
    CausalGraph

    Examples
    --------
    >>> as_graph("digraph { sex -> {job hours}; job -> hours }").nodes
    ('sex', 'job', 'hours')
    >>> as_graph({"sex": ["job"], "job": ["hours"]}).parents("hours")
    ('job',)
    """
    if isinstance(graph, CausalGraph):
        return graph
    if isinstance(graph, Path) or (isinstance(graph, str) and "{" not in graph):
        return _read_file(Path(graph))
    if isinstance(graph, str):
        nodes, edges = parse_dot(graph)
        return CausalGraph.from_edges(edges, nodes)
    if hasattr(graph, "edges") and hasattr(graph, "nodes"):  # networkx
        if not graph.is_directed():
            raise ValueError("The graph is undirected; a causal graph is a networkx.DiGraph.")
        return CausalGraph.from_edges(((edge[0], edge[1]) for edge in graph.edges), graph.nodes)
    return _from_collection(graph)


def _from_collection(graph: Any) -> CausalGraph:
    """Return the graph of a mapping, an adjacency table, or pairs of columns."""
    if isinstance(graph, Mapping):
        listed = {cause: [effects] if isinstance(effects, str) else effects for cause, effects in graph.items()}
        return CausalGraph.from_edges(((one, other) for one, others in listed.items() for other in others), listed)
    frame = nw.from_native(graph, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_adjacency(graph, frame)
    if not isinstance(graph, Iterable):
        raise TypeError(f"graph must be DOT text, a networkx.DiGraph or pairs of columns; got {type(graph).__name__}.")
    pairs = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair,) for pair in graph]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("An edge of the graph is a pair of columns, the cause first.")
    return CausalGraph.from_edges(pairs)


def _name(node: Any) -> str:
    if not isinstance(node, str):
        raise TypeError(f"A node of the graph is the name of a column; got a {type(node).__name__}.")
    return node


def _read_file(path: Path) -> CausalGraph:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() in {".dot", ".gv"} or "->" in text:
        nodes, edges = parse_dot(text)
        return CausalGraph.from_edges(edges, nodes)
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if any(len(row) != 2 for row in rows):
        raise ValueError(f"{path.name}: each line of a file of edges is a cause and an effect, separated by a comma.")
    pairs = [(one.strip(), other.strip()) for one, other in rows]
    header = {("cause", "effect"), ("from", "to"), ("source", "target")}
    return CausalGraph.from_edges(pairs[1:] if pairs and tuple(map(str.lower, pairs[0])) in header else pairs)


def _from_adjacency(native: Any, frame: nw.DataFrame[Any]) -> CausalGraph:
    columns = list(frame.columns)
    names: Sequence[Any]
    index = getattr(native, "index", None)
    if index is not None and [*map(str, index)] == columns:  # pandas
        names, cells = columns, frame.to_numpy()
    else:
        names, columns = frame[columns[0]].to_list(), columns[1:]
        cells = frame.select(columns).to_numpy()
    unknown = [name for name in names if name not in columns] + [name for name in columns if name not in names]
    if unknown or cells.dtype.kind not in "biuf" or not np.isin(cells, (0, 1)).all():
        raise ValueError("An adjacency table has one row and one column for each node, and 1 where the row causes.")
    edges = [(names[one], columns[other]) for one, other in zip(*np.nonzero(cells), strict=True)]
    return CausalGraph.from_edges(edges, columns)
