"""Causal graphs: their edges, the DOT language, and what moves along which paths."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from fairtransport._columns import say_columns

# Edges of a graph in DOT text, the language of Graphviz: ``digraph { sex -> {education hours} -> income; }``.

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/      # space and comments
    | (?P<text>"(?:[^"\\]|\\.)*")                   # "a name"
    | (?P<mark>->|--|[{}\[\];,=:])
    | (?P<word>[^\s{}\[\];,=:"\-]+(?:-(?![->])[^\s{}\[\];,=:"\-]*)*)""",
    re.VERBOSE | re.DOTALL,
)


def parse_dot(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the nodes and edges of one directed graph; attributes are ignored."""
    tokens = _tokens(text)
    while tokens and tokens[0] in {"strict", "digraph", "graph"} and tokens[0] != "{":
        if tokens.pop(0) == "graph":
            raise ValueError("The graph is undirected; a causal graph is a digraph, with edges such as sex -> job.")
    if tokens and tokens[0] != "{":
        tokens.pop(0)  # its name
    if not tokens or tokens[0] != "{" or tokens[-1] != "}":
        raise ValueError("A graph in DOT text is written as: digraph { sex -> job; job -> income }")
    nodes: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    position = _statements(tokens, 1, nodes, edges)
    if position != len(tokens):
        raise ValueError("The DOT text has one graph too many, or a brace that is not matched.")
    return [*nodes], [*edges]


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"The DOT text cannot be read from character {position + 1} on.")
        position = match.end()
        if match.group("text") is not None:
            tokens.append(
                "\0" + re.sub(r"\\(.)", r"\1", match.group("text")[1:-1])
            )  # so that it is never read as punctuation
        elif match.group("mark") is not None or match.group("word") is not None:
            tokens.append(match.group().strip())
    return tokens


def _statements(tokens: list[str], position: int, nodes: dict[str, None], edges: dict[tuple[str, str], None]) -> int:
    """Read statements up to the closing brace, and return the position after it."""
    while position < len(tokens) and tokens[position] != "}":
        if tokens[position] in {";", ","}:
            position += 1
            continue
        ends, position = _operand(tokens, position, nodes, edges)
        if position < len(tokens) and tokens[position] == "=":  # an attribute of the graph
            for name in ends:
                nodes.pop(name, None)
            position += 2
            continue
        while position < len(tokens) and tokens[position] in {"->", "--"}:
            if tokens[position] == "--":
                raise ValueError("An edge of the graph is undirected (--); write it as -> in its direction.")
            others, position = _operand(tokens, position + 1, nodes, edges)
            edges.update(dict.fromkeys((one, other) for one in ends for other in others))
            ends = others
        position = _skip_attributes(tokens, position)
    return position + 1


def _operand(
    tokens: list[str], position: int, nodes: dict[str, None], edges: dict[tuple[str, str], None]
) -> tuple[list[str], int]:
    """Return the nodes of one name or of one pair of braces, and the position after it."""
    if position >= len(tokens):
        raise ValueError("The DOT text ends in the middle of an edge.")
    word = tokens[position]
    if word == "subgraph":
        position += 1 if tokens[position + 1 : position + 2] == ["{"] else 2
        word = tokens[position] if position < len(tokens) else ""
    if word == "{":
        inner: dict[str, None] = {}
        position = _statements(tokens, position + 1, inner, edges)
        nodes.update(inner)
        return [*inner], position
    if word in {"->", "--", "}", "[", "]", "=", ":", ""}:
        raise ValueError("The DOT text has an edge without a node at one end.")
    name = word.removeprefix("\0")
    if word not in {"node", "edge", "graph"}:  # defaults of attributes
        nodes[name] = None
    position += 1
    while position < len(tokens) and tokens[position] == ":":  # a port
        position += 2
    return [name], position


def _skip_attributes(tokens: list[str], position: int) -> int:
    while position < len(tokens) and tokens[position] == "[":
        while position < len(tokens) and tokens[position] != "]":
            position += 1
        position += 1
    return position


Edge = tuple[str, str]


@dataclass(frozen=True)
class CausalGraph:
    """A directed graph without cycles; its nodes are columns of a table, causes before their effects."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def from_edges(cls, edges: Iterable[Edge], nodes: Iterable[str] = ()) -> CausalGraph:
        """Return the graph of these edges, and of further nodes without any; a cycle raises, and is named."""
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

    def descendants(
        self, node: str, edges: Collection[Edge] | None = None, *, except_for: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Return the nodes that can be reached from a node along edges (all by default), causes first."""
        used, excluded = self.edges if edges is None else edges, {*except_for}
        reached = {node}
        for one in self.nodes:
            if one not in excluded and any((parent, one) in used for parent in reached.intersection(self.parents(one))):
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


# What forbids that nodes are moved along chosen edges.


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
    for node in graph.descendants(sensitive, edges, except_for=resolving):
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
