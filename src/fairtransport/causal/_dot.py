"""Edges of a graph in DOT text, the language of Graphviz: ``digraph { sex -> {education hours} -> income; }``."""

from __future__ import annotations

import re

__all__ = ["parse_dot"]

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/      # space and comments
    | (?P<text>"(?:[^"\\]|\\.)*")                   # "a name"
    | (?P<mark>->|--|[{}\[\];,=:])
    | (?P<word>[^\s{}\[\];,=:"\-]+(?:-(?![->])[^\s{}\[\];,=:"\-]*)*)""",
    re.VERBOSE | re.DOTALL,
)


def parse_dot(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the nodes and edges of one directed graph; attributes are ignored.

    Parameters
    ----------
    text : str

    Returns
    -------
    nodes : list of str
        In order of appearance.
    edges : list of (str, str)

    Examples
    --------
    >>> parse_dot('digraph { sex -> {job "hours per week"} -> income [color=red]; age }')[1][:3]
    [('sex', 'job'), ('sex', 'hours per week'), ('job', 'income')]
    """
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
