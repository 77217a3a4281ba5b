"""Boosted trees as their libraries write them, looked through before they are written or handed back.

LightGBM and XGBoost read their own model formats, in compiled code that believes what it reads. So every number that
is a position (of a column, a child, a category, a tree) is checked here first, in files that we write and files that we
load. What the trees do not need is left out: settings of the training, and the least and largest value of each column,
which are single people's.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["check_lightgbm", "check_xgboost", "clean_lightgbm", "n_columns_of_lightgbm"]

_PARAMETERS = re.compile(r"\nparameters:\n.*?\nend of parameters\n", re.DOTALL)
_RANGE = re.compile(r"\[[^\[\] ]*:[^\[\] ]*\]")
_WIDEST = 100_000  # columns
_LARGEST = 3e38  # number that XGBoost can hold


def _require(condition: object) -> None:
    if not condition:
        raise ValueError("trees whose parts do not fit together, or of a kind that a file does not hold")


# ---------------------------------------------------------------------------------------------------------- LightGBM


def clean_lightgbm(text: str) -> str:
    """Leave out what the trees do not need."""
    head, trees, rest = text.partition("\ntree_sizes=")
    ranges = re.search(r"(?<=\nfeature_infos=)[^\n]*", head)
    if ranges:
        head = head[: ranges.start()] + _RANGE.sub("[-inf:inf]", ranges[0]) + head[ranges.end() :]
    return _PARAMETERS.sub("", head + trees + rest)


def n_columns_of_lightgbm(text: str) -> int:
    """Return the number of features of a checked text."""
    return int(_entries(text.partition("\n\n")[0])["max_feature_idx"]) + 1


def check_lightgbm(text: str) -> None:
    """Raise ValueError unless this is a model of two classes whose trees are whole."""
    head, _, rest = text.partition("\n\n")
    told = _entries(head)
    _require(text.startswith("tree\n") and told.get("objective") == "binary sigmoid:1")
    _require(told.get("num_class") == told.get("num_tree_per_iteration") == "1")
    _require("linear_tree" not in told and "average_output" not in told and "\nparameters:" not in text)
    n_columns = int(told["max_feature_idx"]) + 1
    _require(0 < n_columns <= _WIDEST and len(told["feature_names"].split(" ")) == n_columns)
    _require(len(told["feature_infos"].split(" ")) == n_columns)
    sizes = [int(size) for size in told["tree_sizes"].split()]
    content = rest.encode()
    ends = np.cumsum([0, *sizes])
    _require(sizes and min(sizes) > 0 and content[ends[-1] :].startswith(b"end of trees\n"))
    for number, (begin, end) in enumerate(pairwise(ends.tolist())):
        block = content[begin:end].decode()
        _require(block.startswith(f"Tree={number}\n") and block.count("Tree=") == 1)
        _check_lightgbm_tree(_entries(block), n_columns)


def _entries(block: str) -> dict[str, str]:
    lines = [line.partition("=") for line in block.splitlines() if line]
    told = {name: value for name, _, value in lines}
    _require(len(told) == len(lines))  # nothing is said twice
    return told


def _check_lightgbm_tree(told: dict[str, str], n_columns: int) -> None:
    def whole(name: str, size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        numbers = np.array([int(one) for one in told[name].split()], dtype=np.int64)
        _require(numbers.size == size)
        return numbers

    def real(name: str, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        numbers = np.array([float(one) for one in told[name].split()])
        _require(numbers.size == size and not np.isnan(numbers).any())
        return numbers

    n_leaves, n_cats = int(told["num_leaves"]), int(told["num_cat"])
    _require(n_leaves >= 1 and n_cats >= 0 and told.get("is_linear") == "0")
    real("leaf_value", n_leaves)
    if n_leaves == 1:
        return
    n_nodes = n_leaves - 1
    columns, kinds, cuts = whole("split_feature", n_nodes), whole("decision_type", n_nodes), real("threshold", n_nodes)
    _require(columns.min() >= 0 and columns.max() < n_columns)
    _require(kinds.min() >= 0 and kinds.max() < 16)
    _check_children(whole("left_child", n_nodes), whole("right_child", n_nodes), n_leaves)
    for name in ("split_gain", "internal_value", "internal_weight", "internal_count"):
        real(name, n_nodes)
    for name in ("leaf_weight", "leaf_count"):
        real(name, n_leaves)
    categorical = cuts[kinds % 2 == 1]
    _require(n_cats > 0 or not categorical.size)
    if n_cats:
        bounds = whole("cat_boundaries", n_cats + 1)
        _require(bounds[0] == 0 and (np.diff(bounds) > 0).all() and bounds[-1] <= len(told["cat_threshold"]))
        masks = whole("cat_threshold", int(bounds[-1]))
        _require(masks.min() >= 0 and masks.max() < 1 << 32)
        _require((categorical >= 0).all() and (categorical < n_cats).all() and (categorical % 1 == 0).all())


def _check_children(left: Any, right: Any, n_leaves: int) -> None:
    """Every node but the root, and every leaf (-1, -2, ...), is the child of one earlier node."""
    children = np.concatenate((left, right))
    places = np.tile(np.arange(n_leaves - 1), 2)
    inner = children >= 0
    _require((children[inner] > places[inner]).all())
    expected = np.concatenate((np.arange(-n_leaves, 0), np.arange(1, n_leaves - 1)))
    _require(np.array_equal(np.sort(children), expected))


# ----------------------------------------------------------------------------------------------------------- XGBoost


def check_xgboost(text: str) -> None:
    """Raise ValueError unless this is a model of two classes whose trees are whole."""
    learner = json.loads(text)["learner"]
    _require(learner["objective"]["name"] == "binary:logistic")
    told = learner["learner_model_param"]
    _require(int(told["num_class"]) == 0 and int(told["num_target"]) == 1)
    n_columns = int(told["num_feature"])
    _require(0 < n_columns <= _WIDEST)
    _require(all(len(learner[name]) in {0, n_columns} for name in ("feature_names", "feature_types")))
    booster = learner["gradient_booster"]
    if booster["name"] == "dart":
        _require(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]))
        _require(all(abs(one) < _LARGEST for one in booster["weight_drop"]))
        booster = booster["gbtree"]
    _require(booster["name"] == "gbtree")
    model, trees = booster["model"], booster["model"]["trees"]
    _require(int(model["gbtree_model_param"]["num_trees"]) == len(trees) == len(model["tree_info"]))
    _require(not any(model["tree_info"]))
    rounds = model["iteration_indptr"]
    _require(rounds[0] == 0 and rounds[-1] == len(trees) and all(a <= b for a, b in pairwise(rounds)))
    _check_xgboost_categories(model.get("cats"), n_columns)
    for number, tree in enumerate(trees):
        _require(tree["id"] == number)
        _check_xgboost_tree(tree, n_columns)


def _check_xgboost_categories(cats: Any, n_columns: int) -> None:
    if not cats or not cats["enc"]:
        return
    _require(len(cats["enc"]) == n_columns and len(cats["feature_segments"]) == n_columns + 1)
    counts = []
    for column in cats["enc"]:
        if "offsets" in column:
            offsets = column["offsets"]
            _require(not offsets or (offsets[0] == 0 and offsets[-1] == len(column["values"])))
            _require(all(a <= b for a, b in pairwise(offsets)))
            counts.append(max(len(offsets) - 1, 0))
        else:
            counts.append(len(column["values"]))
    _require(cats["feature_segments"] == np.cumsum([0, *counts]).tolist())
    _require(len(cats["sorted_idx"]) == sum(counts))
    _require(all(0 <= place < max(counts) for place in cats["sorted_idx"]))


def _check_xgboost_tree(tree: dict[str, Any], n_columns: int) -> None:
    told = tree["tree_param"]
    n_nodes = int(told["num_nodes"])
    _require(n_nodes >= 1 and int(told["num_feature"]) == n_columns and int(told["size_leaf_vector"]) <= 1)
    for name in (
        *("base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children"),
        *("split_conditions", "split_indices", "split_type", "sum_hessian"),
    ):
        _require(len(tree[name]) == n_nodes)
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian"):
        _require(all(isinstance(one, (int, float)) and abs(one) < _LARGEST for one in tree[name]))
    left, right = tree["left_children"], tree["right_children"]
    seen, todo = {0}, [0]
    while todo:
        node = todo.pop()
        if left[node] == right[node] == -1:
            continue
        _require(0 <= tree["split_indices"][node] < n_columns and tree["split_type"][node] in {0, 1})
        for child in (left[node], right[node]):
            _require(isinstance(child, int) and 0 <= child < n_nodes and child not in seen)
            _require(tree["parents"][child] == node)
            seen.add(child)
            todo.append(child)
    _require(len(seen) + int(told["num_deleted"]) == n_nodes)
    _require(tree["categories_nodes"] == [node for node, kind in enumerate(tree["split_type"]) if kind])
    parts = [tree[name] for name in ("categories_nodes", "categories_segments", "categories_sizes")]
    _require(len({len(part) for part in parts}) == 1)
    for begin, size in zip(*parts[1:], strict=True):
        _require(begin >= 0 < size and begin + size <= len(tree["categories"]))
    _require(all(isinstance(one, int) and 0 <= one < 1 << 24 for one in tree["categories"]))
