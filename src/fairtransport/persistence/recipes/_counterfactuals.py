"""Recipes of counterfactuals along a causal graph: the graph, and conditional distributions as checked arrays.

Forests of scikit-learn are not stored as such: their nodes are arrays here, whose indices are checked, because compiled
code follows them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtransport.causal import CausalGraph, as_graph
from fairtransport.causal.conditional_distributions import (
    METHODS,
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
from fairtransport.persistence._summaries import NO_CHANGE
from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import named_recipe, record

_MOST_CELLS = 1 << 16
_MODELS = (MarginalCells, MultinomialCells, ForestCells)
_whole = check.array(1, dtype=np.int64)


def _make_graph(nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> CausalGraph:
    """Return the graph of these nodes, causes first."""
    graph = CausalGraph.from_edges(edges, nodes)
    order = {node: number for number, node in enumerate(nodes)}
    if sorted(graph.nodes) != sorted(nodes) or any(order[one] >= order[other] for one, other in edges):
        raise ValueError("The nodes of a causal graph are those of its edges and others without any, causes first.")
    return CausalGraph(nodes, edges)


def _are_cells(cells: Cells) -> bool:
    """Return whether the ends of cells ascend; the first one, for missing values, may have none."""
    low, high = cells.low, cells.high
    if low.shape != high.shape or not 0 < low.size <= _MOST_CELLS:
        return False
    first = int(np.isnan(low[0]))
    known = np.isfinite(low[first:]).all() and np.isfinite(high[first:]).all() and first < low.size
    if not known or np.isnan(low[:first]).sum() != np.isnan(high[:first]).sum():
        return False
    low, high = low[first:], high[first:]
    return bool((np.diff(low) >= 0).all() and (low <= high).all() and (np.diff(high) >= 0).all())


def _is_multinomial(model: MultinomialCells) -> bool:
    present = model.present
    if len({len(model.weights), model.intercepts.size, present.size}) != 1 or not present.size:
        return False
    return bool(np.unique(present).size == present.size and present.min() >= 0 and present.max() < model.n_cells)


def _is_forest(forest: ForestCells) -> bool:
    """Return whether every walk from a root ends at a leaf, and every index is in range."""
    trees, index = forest.trees, np.arange(forest.trees.left.size)
    nodes = (trees.feature, trees.left, trees.right, trees.leaf, trees.threshold)
    if not index.size or any(one.shape != index.shape for one in nodes):
        return False
    inner = trees.left >= 0
    for children in (trees.left, trees.right):
        ends = (children[inner] > index[inner]) & (children[inner] < index.size)
        if not ends.all() or (children[~inner] != -1).any():
            return False
    leaves = trees.leaf[~inner]
    split = (trees.feature >= 0).all() and (trees.feature < forest.n_features).all()
    known = (leaves >= 0).all() and (leaves < len(trees.shares)).all() and (trees.leaf[inner] == -1).all()
    roots = trees.roots.size and trees.roots.min() >= 0 and trees.roots.max() < index.size
    return bool(split and known and roots and trees.shares.shape[1] <= _MOST_CELLS)


def _is_distribution(distribution: ConditionalDistribution) -> bool:
    """Return whether there is a probability for each cell."""
    model: Any = distribution.model
    if isinstance(model, MultinomialCells):
        n_cells = model.n_cells
    else:
        n_cells = (model.trees if isinstance(model, ForestCells) else model).shares.shape[-1]
    return bool(n_cells == distribution.cells.low.size)


def _is_consistent(model: Any) -> bool:
    graph, columns, groups = model.graph_, model.columns_, model.groups_
    if set(columns) != set(graph.nodes) or set(model.ranges_) != set(graph.nodes) or model.sensitive not in columns:
        return False
    return (
        columns[model.sensitive].levels == groups
        and len(groups) >= 2
        and all(len(parts) == len(groups) for parts in model.ranges_.values())
        and set(model.distributions_) == set(graph.descendants(model.sensitive)) - set(model.resolving)
        and all(len(parts) in {len(groups), 1} for parts in model.distributions_.values())
    )


_edge = check.tuple_of(check.text)
_edges = check.or_none(check.list_of(_edge), check.tuple_of(_edge), check.list_of(check.list_of(check.text)))
_forest = record(
    "forest_cells",
    ForestCells,
    _is_forest,
    make=lambda n_features, **arrays: ForestCells(Trees(**arrays), n_features),
    **dict.fromkeys(("feature", "left", "right", "leaf", "roots"), _whole),
    threshold=check.floats(1),
    shares=check.array(2, dtype=np.float32, least=0.0),
    n_features=check.count_up_to(check.MAX_COLUMNS),
)

VALUE_TYPES = (
    record(
        "causal_graph",
        CausalGraph,
        make=_make_graph,
        nodes=check.tuple_of(check.text),
        edges=check.tuple_of(check.tuple_of(check.text, 2)),
    ),
    record(
        "node_column",
        NodeColumn,
        lambda column: column.levels != (),
        name=check.text,
        levels=check.or_none(check.tuple_of(check.plain)),
        ordered=check.boolean,
        whole=check.boolean,
    ),
    record(
        "seen_values",
        SeenValues,
        lambda seen: not np.isnan(seen.low) and not np.isnan(seen.high),
        low=check.instance_of(float),
        high=check.instance_of(float),
        levels=check.or_none(check.floats(1)),
        missing=check.boolean,
    ),
    record("value_cells", Cells, _are_cells, low=check.floats(1, finite=False), high=check.floats(1, finite=False)),
    record("marginal_cells", MarginalCells, shares=check.floats(1, least=0.0)),
    record(
        "multinomial_cells",
        MultinomialCells,
        _is_multinomial,
        weights=check.floats(2),
        intercepts=check.floats(1),
        present=_whole,
        n_cells=check.count_up_to(_MOST_CELLS),
    ),
    _forest._replace(to_parts=lambda forest: {**forest.trees._asdict(), "n_features": forest.n_features}),
    record(
        "linear_spread",
        LinearSpread,
        lambda spread: spread.least > 0.0,
        model=check.having("coef_"),
        least=check.instance_of(float),
    ),
    record(
        "conditional_distribution",
        ConditionalDistribution,
        _is_distribution,
        cells=check.instance_of(Cells),
        model=check.instance_of(_MODELS),
        location=check.or_none(check.having("predict")),
        scale=check.or_none(check.instance_of(LinearSpread)),
    ),
)

_CHECKS = {
    **check.SHARED,
    **check.by_name(
        {
            _edges: "confounded unfair_edges",
            check.amount: "individual_weight",
            check.any_of(check.one_of(*METHODS), check.estimator): "quantiles",
            check.dict_of(check.any_of(check.one_of(*METHODS), check.estimator)): "methods_",
            check.count_up_to(1000): "cv",
            check.dict_of(check.instance_of(NodeColumn)): "columns_",
            check.dict_of(check.tuple_of(check.instance_of(ConditionalDistribution))): "distributions_",
            check.dict_of(check.tuple_of(check.instance_of(SeenValues))): "ranges_",
            check.estimator: "estimator transport",
            check.having("predict"): "estimator_",
            check.instance_of(CausalGraph): "graph graph_",
            check.names: "adjust_for resolving",
            check.or_none(
                check.dict_of(check.any_of(check.list_of(check.plain), check.tuple_of(check.plain)))
            ): "orders",
            check.or_none(check.text): "outcome",
            check.text: "sensitive",
            check.tuple_of(check.plain): "groups_",
        }
    ),
}

RECIPES = (
    named_recipe(
        _CHECKS,
        "fairtransport.causal.CounterfactualTransport",
        "columns_ distributions_ graph_ groups_ methods_ ranges_",
        "",
        "adjust_for confounded cv graph orders outcome quantiles random_state resolving sensitive unfair_edges",
        is_consistent=_is_consistent,
        summarize=lambda model, _: {"graph": (as_graph(model.graph), NO_CHANGE)},  # whatever form it was given in
    ),
    *(
        named_recipe(
            _CHECKS,
            f"fairtransport.causal.CounterfactuallyFair{kind}",
            "feature_names_in_ estimator_ graph_ n_iter_",
            params="estimator individual_weight transport",
        )
        for kind in ("Classifier", "Regressor")
    ),
)
