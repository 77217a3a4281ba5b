"""Causal graphs in every form that users have them in."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairtransport.causal import CausalGraph, as_graph

EDGES = [("sex", "job"), ("sex", "hours"), ("job", "hours"), ("hours", "income")]
DOT = """
strict digraph income {  // of one table
  graph [rankdir=LR]; node [shape=box]; rankdir = LR
  sex -> {job hours} [color="red; [no] edge"];
  job -> hours -> income # the last
  /* subgraph */ subgraph cluster_a { age; "hours per week":n }
}
"""


def test_every_form_is_the_same_graph(tmp_path):
    frame = pd.DataFrame(0, index=["sex", "job", "hours", "income"], columns=["sex", "job", "hours", "income"])
    for one, other in EDGES:
        frame.loc[one, other] = 1
    (tmp_path / "edges.csv").write_text("cause,effect\n" + "\n".join(f"{one}, {other}" for one, other in EDGES))
    (tmp_path / "graph.dot").write_text("digraph { sex -> {job hours}; job -> hours; hours -> income }")
    forms = [
        EDGES, nx.DiGraph(EDGES), {"sex": ["job", "hours"], "job": "hours", "hours": ["income"]}, frame,
        pl.from_pandas(frame.reset_index(names="cause")), tmp_path / "edges.csv", str(tmp_path / "graph.dot"),
        "digraph { sex -> {job hours}; job -> hours; hours -> income }", CausalGraph.from_edges(EDGES),
    ]  # fmt: skip
    for form in forms:
        graph = as_graph(form)
        assert graph.nodes == ("sex", "job", "hours", "income")
        assert set(graph.edges) == set(EDGES)


def test_dot_with_everything_that_graphviz_allows():
    graph = as_graph(DOT)
    assert set(graph.edges) == set(EDGES)
    assert set(graph.nodes) == {"sex", "job", "hours", "income", "age", "hours per week"}
    assert as_graph('digraph{"a \\"b\\""->c-d}').edges == (('a "b"', "c-d"),)


@pytest.mark.parametrize("seed", range(20))
def test_descendants_are_those_of_networkx(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(list("abcdefg"))
    edges = [(order[i], order[j]) for i in range(7) for j in range(i + 1, 7) if rng.random() < 0.3]
    graph, other = as_graph([(str(a), str(b)) for a, b in edges]), nx.DiGraph(edges)
    for node in graph.nodes:
        assert set(graph.descendants(node)) == nx.descendants(other, node)
        assert set(graph.parents(node)) == set(other.predecessors(node))
    some = [edge for edge in graph.edges if rng.random() < 0.5]
    kept = nx.DiGraph(some)
    kept.add_nodes_from(graph.nodes)
    for node in graph.nodes:
        assert set(graph.descendants(node, some)) == nx.descendants(kept, node)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a")], "has a cycle: 'a' -> "),
        (nx.Graph([("a", "b")]), "undirected"),
        ("graph { a -- b }", "undirected"),
        ("digraph { a -- b }", "undirected"),
        ("digraph { a -> }", "without a node"),
        ("digraph { a -> b", "is written as"),
        ("digraph { a -> b } }", "brace that is not matched"),
        ([("a", "b", "c")], "pair of columns"),
        (pl.DataFrame({"cause": ["a", "b"], "a": [0, 0], "c": [1, 0]}), "An adjacency table"),
    ],
)
def test_graphs_that_are_none(graph, message):
    with pytest.raises(ValueError, match=message):
        as_graph(graph)


def test_names_and_columns():
    with pytest.raises(TypeError, match="name of a column"):
        as_graph([(1, 2)])
    with pytest.raises(ValueError, match=r"no columns 'job', 'sex', which the graph has"):
        as_graph([("job", "sex")]).check_columns(["hours"])
