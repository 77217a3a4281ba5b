"""Recipes of counterfactuals along a causal graph: the graph, and conditional distributions as checked arrays.

Forests of scikit-learn are not stored as such: their nodes are arrays here, whose indices are checked, because compiled
code follows them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from fairtransport.causal import CausalGraph, as_graph
from fairtransport.causal.conditional_distributions import (
    Cells,
    ConditionalDistribution,
    ForestCells,
    LinearSpread,
    MarginalCells,
    MultinomialCells,
    NodeColumn,
    SeenValues,
    Trees,
)
from fairtransport.persistence._summaries import Change
from fairtransport.persistence._values import ValueType, attributes_of
from fairtransport.persistence.recipes._registry import (
    FEATURE_NAMES,
    Recipe,
    any_of,
    count_up_to,
    dict_of,
    instance_of,
    is_bool,
    is_count,
    is_estimator,
    is_none,
    is_plain,
    is_seed,
    is_text,
    list_of,
    number_array,
    number_in,
    one_of,
    tuple_of,
)

_MOST_CELLS = 1 << 16
_MODELS = (MarginalCells, MultinomialCells, ForestCells)


def _floats(value: Any, n_axes: int, *, finite: bool = True) -> bool:
    return bool(number_array(n_axes, finite=finite)(value) and value.dtype == np.float64)


def _whole(value: Any) -> bool:
    return bool(number_array(1)(value) and value.dtype == np.int64)


def _are_shares(value: Any, n_axes: int) -> bool:
    return bool(number_array(n_axes)(value) and value.dtype.kind == "f" and (value >= 0).all())


def _graph_from_parts(parts: dict[str, Any]) -> CausalGraph:
    nodes, edges = parts["nodes"], parts["edges"]
    is_edge = tuple_of(is_text)
    if not tuple_of(is_text)(nodes) or not tuple_of(lambda edge: is_edge(edge) and len(edge) == 2)(edges):
        raise TypeError("A causal graph consists of nodes and of edges between them.")
    graph = CausalGraph.from_edges(edges, nodes)
    if set(graph.nodes) != set(nodes) or len(nodes) != len(graph.nodes):
        raise ValueError("The nodes of a causal graph are those of its edges, and others without any.")
    order = {node: number for number, node in enumerate(nodes)}
    if any(order[one] >= order[other] for one, other in edges):
        raise ValueError("The nodes of a causal graph are in order, causes first.")
    return CausalGraph(nodes, edges)


def _column_from_parts(parts: dict[str, Any]) -> NodeColumn:
    valid = is_text(parts["name"]) and is_bool(parts["ordered"]) and is_bool(parts["whole"])
    if not valid or not any_of(is_none, tuple_of(is_plain))(parts["levels"]) or parts["levels"] == ():
        raise TypeError("A column of a graph has a name, and levels or none.")
    return NodeColumn(**parts)


def _seen_from_parts(parts: dict[str, Any]) -> SeenValues:
    numbers = all(isinstance(parts[name], float) and not np.isnan(parts[name]) for name in ("low", "high"))
    if (
        not numbers
        or not is_bool(parts["missing"])
        or not any_of(is_none, lambda one: _floats(one, 1))(parts["levels"])
    ):
        raise TypeError("The values that were seen are a range, or levels.")
    return SeenValues(**parts)


def _cells_from_parts(parts: dict[str, Any]) -> Cells:
    low, high = parts["low"], parts["high"]
    if not all(_floats(one, 1, finite=False) for one in (low, high)) or low.shape != high.shape:
        raise TypeError("Cells consist of their lower and upper ends.")
    first = int(np.isnan(low[:1]).sum()) if low.size else 0
    known = np.isfinite(low[first:]).all() and np.isfinite(high[first:]).all()
    if not first < low.size <= _MOST_CELLS or not known or np.isnan(low[:first]).sum() != np.isnan(high[:first]).sum():
        raise ValueError("The ends of cells must be finite, except of the first, for missing values.")
    if (np.diff(low[first:]) < 0).any() or (high[first:] < low[first:]).any() or (np.diff(high[first:]) < 0).any():
        raise ValueError("Cells must ascend.")
    return Cells(low, high)


def _marginal_from_parts(parts: dict[str, Any]) -> MarginalCells:
    if not _are_shares(parts["shares"], 1) or parts["shares"].dtype != np.float64:
        raise TypeError("The probabilities of cells must be floats, and not negative.")
    return MarginalCells(**parts)


def _multinomial_from_parts(parts: dict[str, Any]) -> MultinomialCells:
    weights, intercepts, present, n_cells = (parts[one.name] for one in fields(MultinomialCells))
    if not _floats(weights, 2) or not _floats(intercepts, 1) or not _whole(present):
        raise TypeError("A multinomial regression consists of weights, intercepts and cells.")
    if not count_up_to(_MOST_CELLS)(n_cells) or len({len(weights), intercepts.size, present.size}) != 1:
        raise ValueError("The parts of a multinomial regression must agree in shape.")
    if not present.size or np.unique(present).size != present.size or present.min() < 0 or present.max() >= n_cells:
        raise ValueError("The cells of a multinomial regression must be cells that there are.")
    return MultinomialCells(**parts)


def _forest_parts(forest: ForestCells) -> dict[str, Any]:
    return {**forest.trees._asdict(), "n_features": forest.n_features}


def _forest_from_parts(parts: dict[str, Any]) -> ForestCells:
    trees, n_features = Trees(**{name: parts[name] for name in Trees._fields}), parts["n_features"]
    nodes = (trees.feature, trees.left, trees.right, trees.leaf)
    if set(parts) != {*Trees._fields, "n_features"} or not all(map(_whole, (*nodes, trees.roots))):
        raise TypeError("The nodes of a forest are whole numbers.")
    if not _floats(trees.threshold, 1) or not _are_shares(trees.shares, 2) or trees.shares.dtype != np.float32:
        raise TypeError("The thresholds and shares of a forest are floats.")
    n_nodes = trees.left.size
    if not n_nodes or any(one.shape != (n_nodes,) for one in (*nodes, trees.threshold)):
        raise ValueError("The parts of a forest must agree in shape.")
    if not count_up_to(1 << 20)(n_features) or not _are_trees(trees, n_features):
        raise ValueError("The nodes of a forest must form trees.")
    return ForestCells(trees, n_features)


def _are_trees(trees: Trees, n_features: int) -> bool:
    inner, index = trees.left >= 0, np.arange(trees.left.size)
    for children in (trees.left, trees.right):
        ends = (children[inner] > index[inner]) & (children[inner] < index.size)
        if not ends.all() or (children[~inner] != -1).any():
            return False
    leaves = trees.leaf[~inner]
    split = (trees.feature >= 0).all() and (trees.feature < n_features).all()
    known = (leaves >= 0).all() and (leaves < len(trees.shares)).all() and (trees.leaf[inner] == -1).all()
    roots = trees.roots.size and trees.roots.min() >= 0 and trees.roots.max() < index.size
    return bool(split and known and roots and trees.shares.shape[1] <= _MOST_CELLS)


def _spread_from_parts(parts: dict[str, Any]) -> LinearSpread:
    if not hasattr(parts["model"], "coef_") or not isinstance(parts["least"], float) or not parts["least"] > 0.0:
        raise TypeError("A spread consists of a linear regression and a least value.")
    return LinearSpread(**parts)


def _distribution_from_parts(parts: dict[str, Any]) -> ConditionalDistribution:
    cells, model, location, scale = (parts[one.name] for one in fields(ConditionalDistribution))
    if not isinstance(cells, Cells) or not isinstance(model, _MODELS):
        raise TypeError("A conditional distribution consists of cells and a model of them.")
    if not (location is None or hasattr(location, "predict")) or not any_of(is_none, instance_of(LinearSpread))(scale):
        raise TypeError("The location of a conditional distribution is a regressor.")
    shares = {MarginalCells: "shares", ForestCells: "trees"}
    n_cells = model.n_cells if isinstance(model, MultinomialCells) else getattr(model, shares[type(model)])
    n_cells = n_cells.shares.shape[1] if isinstance(n_cells, Trees) else getattr(n_cells, "size", n_cells)
    if n_cells != cells.low.size:
        raise ValueError("A conditional distribution has a probability for each of its cells.")
    return ConditionalDistribution(**parts)


def _names(kind: Any) -> Any:
    return attributes_of(*(one.name for one in fields(kind)))


def _with_graph(model: Any, people: int) -> dict[str, tuple[Any, Change]]:  # noqa: ARG001 - of summaries
    """Return the graph as it is stored, whatever form it was given in."""
    return {"graph": (as_graph(model.graph), Change(0.0, 0.0))}


def _is_consistent(model: Any) -> bool:
    graph, columns = model.graph_, model.columns_
    if set(columns) != set(graph.nodes) or set(model.ranges_) != set(graph.nodes) or model.sensitive not in columns:
        return False
    groups = columns[model.sensitive].levels
    if groups is None or model.groups_ != groups or len(groups) < 2:
        return False
    if any(len(parts) != len(groups) for parts in model.ranges_.values()):
        return False
    movable = [node for node in graph.descendants(model.sensitive) if node not in tuple(model.resolving)]
    if set(model.distributions_) != set(movable):
        return False
    sizes = {len(groups), 1}
    return all(len(parts) in sizes for parts in model.distributions_.values())


_edges = any_of(is_none, list_of(tuple_of(is_text)), tuple_of(tuple_of(is_text)), list_of(list_of(is_text)))
_words = any_of(list_of(is_text), tuple_of(is_text))

VALUE_TYPES = (
    ValueType("causal_graph", CausalGraph, _names(CausalGraph), _graph_from_parts),
    ValueType("node_column", NodeColumn, _names(NodeColumn), _column_from_parts),
    ValueType("seen_values", SeenValues, _names(SeenValues), _seen_from_parts),
    ValueType("value_cells", Cells, _names(Cells), _cells_from_parts),
    ValueType("marginal_cells", MarginalCells, _names(MarginalCells), _marginal_from_parts),
    ValueType("multinomial_cells", MultinomialCells, _names(MultinomialCells), _multinomial_from_parts),
    ValueType("forest_cells", ForestCells, _forest_parts, _forest_from_parts),
    ValueType("linear_spread", LinearSpread, _names(LinearSpread), _spread_from_parts),
    ValueType(
        "conditional_distribution",
        ConditionalDistribution,
        _names(ConditionalDistribution),
        _distribution_from_parts,
    ),
)

_TRAINED = {
    "estimator_": lambda value: hasattr(value, "predict"),
    "feature_names_in_": FEATURE_NAMES["feature_names_in_"],
    "graph_": instance_of(CausalGraph),
    "n_iter_": is_count,
}
_TRAINING = {"estimator": is_estimator, "individual_weight": number_in(0.0, 1e300), "transport": is_estimator}

RECIPES = (
    Recipe(
        "fairtransport.causal.CounterfactualTransport",
        attributes={
            "columns_": dict_of(instance_of(NodeColumn)),
            "distributions_": dict_of(tuple_of(instance_of(ConditionalDistribution))),
            "graph_": instance_of(CausalGraph),
            "groups_": tuple_of(is_plain),
            "ranges_": dict_of(tuple_of(instance_of(SeenValues))),
        },
        required=("columns_", "distributions_", "graph_", "groups_", "ranges_"),
        params={
            "adjust_for": _words,
            "confounded": _edges,
            "cv": count_up_to(1000),
            "graph": instance_of(CausalGraph),
            "orders": any_of(is_none, dict_of(any_of(list_of(is_plain), tuple_of(is_plain)))),
            "outcome": any_of(is_none, is_text),
            "quantiles": any_of(one_of("forest", "linear"), is_estimator),
            "random_state": is_seed,
            "resolving": _words,
            "sensitive": is_text,
            "unfair_edges": _edges,
        },
        is_consistent=_is_consistent,
        summarize=_with_graph,
    ),
    *(
        Recipe(
            f"fairtransport.causal.CounterfactuallyFair{kind}",
            attributes=_TRAINED,
            required=("estimator_", "feature_names_in_", "graph_", "n_iter_"),
            params=_TRAINING,
        )
        for kind in ("Classifier", "Regressor")
    ),
)
