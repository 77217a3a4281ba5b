"""Boosted trees of scikit-learn, LightGBM and XGBoost as nodes, with thresholds in the precision of their library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from fairtransport._extras import load_extra
from fairtransport.persistence.onnx._graph import ML_DOMAIN, Graph
from fairtransport.persistence.onnx._operators import as_vector
from fairtransport.persistence.trees import InvalidTreesError, LightGBMTrees, XGBoostTrees

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["add_margins", "has_log_link", "is_boosted"]

_NAN_IS_MISSING, _ZERO_IS_MISSING = 8, 4
_MOST_PARTS = 64
_HISTOGRAMS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
_CATEGORIES = "Splits of categories cannot be exported to ONNX; encode the columns as numbers first."


class _Nodes(NamedTuple):
    """Nodes of all trees: splits with two children, and leaves, whose children are -1."""

    tree: NDArray[np.int64]
    node: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.int64]
    value: NDArray[np.float64]


def is_boosted(model: Any) -> bool:
    """Return whether this is an estimator of LightGBM or XGBoost, or scikit-learn's histogram gradient boosting."""
    return isinstance(model, _HISTOGRAMS) or type(model).__module__.partition(".")[0] in {"lightgbm", "xgboost"}


def has_log_link(model: Any) -> bool:
    """Return whether the predictions of a boosted regressor are the exponentials of its margins."""
    return isinstance(model, _HISTOGRAMS) and getattr(model, "loss", "") in {"gamma", "poisson"}


def add_margins(graph: Graph, model: Any, features: str) -> str:
    """Add the trees of a fitted estimator, and return their sum for each row: a logit, or a prediction.

    Comparisons are made in the precision of the library.
    """
    try:
        if isinstance(model, _HISTOGRAMS):
            return _add_histogram_trees(graph, model, features)
        if type(model).__module__.partition(".")[0] == "lightgbm":
            return _add_lightgbm(graph, model, features)
        return _add_xgboost(graph, model, features)
    except InvalidTreesError as error:
        raise TypeError(f"These boosted trees cannot be exported to ONNX: {error}.") from None


def _add_histogram_trees(graph: Graph, model: Any, features: str) -> str:
    trees = [tree.nodes for one_round in model._predictors for tree in one_round]  # noqa: SLF001 - as in a model file
    nodes = np.concatenate(trees)
    if nodes["is_categorical"].any():
        raise TypeError(_CATEGORIES)
    is_leaf = nodes["is_leaf"] != 0
    left, right = (np.where(is_leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    joined = _Nodes(
        np.repeat(np.arange(len(trees)), [tree.size for tree in trees]),
        np.concatenate([np.arange(tree.size) for tree in trees]),
        np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int64),
        np.where(is_leaf, 0.0, nodes["num_threshold"]),
        left,
        right,
        nodes["missing_go_to_left"].astype(np.int64),
        np.where(is_leaf, nodes["value"], 0.0),
    )
    base = float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001
    return _add_nodes(graph, features, joined, mode="BRANCH_LEQ", base=base)


def _add_lightgbm(graph: Graph, model: Any, features: str) -> str:
    trees = LightGBMTrees.from_text(model.booster_.model_to_string())
    if (trees.decision & 1).any():
        raise TypeError(_CATEGORIES)
    if (trees.decision & _ZERO_IS_MISSING).any():
        raise TypeError("A model with zero_as_missing=True cannot be exported to ONNX.")
    parts = []
    first_split = first_leaf = 0
    for tree, n_leaves in enumerate(trees.n_leaves.tolist()):
        n_splits = n_leaves - 1
        splits, leaves = slice(first_split, first_split + n_splits), slice(first_leaf, first_leaf + n_leaves)
        decision, threshold = trees.decision[splits], trees.threshold[splits]
        # Where NaN was not seen in training, it counts as 0.
        goes_left = np.where(decision & _NAN_IS_MISSING, (decision & 2) > 0, threshold >= 0.0)
        children = [
            np.where(side[splits] < 0, n_splits - 1 - side[splits], side[splits]) for side in (trees.left, trees.right)
        ]
        blank, nowhere = np.zeros(n_leaves), np.full(n_leaves, -1)
        parts.append(
            _Nodes(
                np.full(n_splits + n_leaves, tree),
                np.arange(n_splits + n_leaves),
                np.append(trees.feature[splits], nowhere * 0),
                np.append(threshold, blank),
                np.append(children[0], nowhere),
                np.append(children[1], nowhere),
                np.append(goes_left, nowhere * 0),
                np.append(np.zeros(n_splits), trees.leaf_value[leaves]),
            )
        )
        first_split, first_leaf = first_split + n_splits, first_leaf + n_leaves
    return _add_nodes(graph, features, _joined(parts), mode="BRANCH_LEQ", base=0.0)


def _add_xgboost(graph: Graph, model: Any, features: str) -> str:
    trees = XGBoostTrees.from_content(bytes(model.get_booster().save_raw("ubj")))
    if trees.categorical.any():
        raise TypeError(_CATEGORIES)
    if trees.drop_weight.size:
        raise TypeError("XGBoost's models with dropout (booster='dart') cannot be exported to ONNX.")
    best = getattr(model, "best_iteration", None) if hasattr(model, "evals_result_") else None
    n_trees = trees.n_nodes.size if best is None else (best + 1) * trees.trees_per_round
    ends = np.cumsum(trees.n_nodes)
    kept = slice(0, int(ends[n_trees - 1]))
    tree = np.repeat(np.arange(trees.n_nodes.size), trees.n_nodes)[kept]
    is_leaf = trees.left[kept] < 0
    nodes = _Nodes(
        tree,
        np.arange(tree.size) - np.repeat(ends - trees.n_nodes, trees.n_nodes)[kept],
        trees.feature[kept],
        np.where(is_leaf, 0.0, trees.threshold[kept]),
        trees.left[kept],
        trees.right[kept],
        trees.default_left[kept],
        np.where(is_leaf, trees.threshold[kept], 0.0),
    )
    base = trees.base_score if trees.is_regression else float(np.log(trees.base_score / (1.0 - trees.base_score)))
    single = graph.add("Cast", features, to=graph.number_type("FLOAT"))  # as XGBoost reads them
    return _add_nodes(
        graph, graph.add("Cast", single, to=graph.number_type("DOUBLE")), nodes, mode="BRANCH_LT", base=base
    )


def _joined(parts: list[_Nodes]) -> _Nodes:
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return _Nodes(*columns)


def _add_nodes(graph: Graph, features: str, nodes: _Nodes, *, mode: str, base: float) -> str:
    """Return the sum of the trees: a few at a time, because ONNX rounds each sum to a float of 32 bits."""
    total = graph.constant(np.float64(base))
    n_trees = int(nodes.tree[-1]) + 1
    size = -(-n_trees // _MOST_PARTS)
    for first in range(0, n_trees, size):
        chosen = (nodes.tree >= first) & (nodes.tree < first + size)
        columns: list[Any] = [column[chosen] for column in nodes]
        part = _Nodes(*columns)
        total = graph.add("Add", total, _add_part(graph, features, part, mode))
    return total


def _add_part(graph: Graph, features: str, nodes: _Nodes, mode: str) -> str:
    make = load_extra("onnx").numpy_helper.from_array
    leaves = np.flatnonzero(nodes.left < 0)
    options = {
        "nodes_treeids": nodes.tree.tolist(),
        "nodes_nodeids": nodes.node.tolist(),
        "nodes_featureids": nodes.feature.tolist(),
        "nodes_modes": ["LEAF" if left < 0 else mode for left in nodes.left.tolist()],
        "nodes_values_as_tensor": make(np.asarray(nodes.threshold, dtype=np.float64), "nodes_values"),
        "nodes_truenodeids": np.maximum(nodes.left, 0).tolist(),
        "nodes_falsenodeids": np.maximum(nodes.right, 0).tolist(),
        "nodes_missing_value_tracks_true": np.asarray(nodes.missing_left, dtype=np.int64).tolist(),
        "target_treeids": nodes.tree[leaves].tolist(),
        "target_nodeids": nodes.node[leaves].tolist(),
        "target_ids": [0] * leaves.size,
        "target_weights_as_tensor": make(np.asarray(nodes.value[leaves], dtype=np.float64), "target_weights"),
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
    total = graph.add("TreeEnsembleRegressor", features, domain=ML_DOMAIN, **options)
    return graph.add("Cast", as_vector(graph, total), to=graph.number_type("DOUBLE"))
