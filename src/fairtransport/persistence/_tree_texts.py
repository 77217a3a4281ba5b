"""Checks of boosted trees in the text formats of LightGBM and XGBoost.

Both libraries read their formats in compiled code that does not validate its input. Every number that is an index (of a
column, a child, a category, a tree) is therefore checked when a file is written and before it is loaded. Parts that the
trees do not need are removed: parameters of the training, and the range of each column, whose ends are values of
individuals.
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
_MAX_COLUMNS = 100_000
_MAX_NUMBER = 3e38  # of single precision, which XGBoost uses


def _require(condition: object) -> None:
    if not condition:
        raise ValueError("The trees are inconsistent, or of a kind that a model file does not support.")


# ---------------------------------------------------------------------------------------------------------- LightGBM


def clean_lightgbm(text: str) -> str:
    """Return the text without the parts that the trees do not need."""
    head, trees, rest = text.partition("\ntree_sizes=")
    ranges = re.search(r"(?<=\nfeature_infos=)[^\n]*", head)
    if ranges:
        head = head[: ranges.start()] + _RANGE.sub("[-inf:inf]", ranges[0]) + head[ranges.end() :]
    return _PARAMETERS.sub("", head + trees + rest)


def n_columns_of_lightgbm(text: str) -> int:
    """Return the number of features of a checked text."""
    return int(_entries(text.partition("\n\n")[0])["max_feature_idx"]) + 1


def check_lightgbm(text: str) -> None:
    """Raise a ValueError unless this is a model of two classes with consistent trees."""
    head, _, rest = text.partition("\n\n")
    entries = _entries(head)
    _require(text.startswith("tree\n") and entries.get("objective") == "binary sigmoid:1")
    _require(entries.get("num_class") == entries.get("num_tree_per_iteration") == "1")
    _require("linear_tree" not in entries and "average_output" not in entries and "\nparameters:" not in text)
    n_columns = int(entries["max_feature_idx"]) + 1
    _require(0 < n_columns <= _MAX_COLUMNS and len(entries["feature_names"].split(" ")) == n_columns)
    _require(len(entries["feature_infos"].split(" ")) == n_columns)
    sizes = [int(size) for size in entries["tree_sizes"].split()]
    content = rest.encode()
    ends = np.cumsum([0, *sizes])
    _require(sizes and min(sizes) > 0 and content[ends[-1] :].startswith(b"end of trees\n"))
    for number, (begin, end) in enumerate(pairwise(ends.tolist())):
        block = content[begin:end].decode()
        _require(block.startswith(f"Tree={number}\n") and block.count("Tree=") == 1)
        _check_lightgbm_tree(_entries(block), n_columns)


def _entries(block: str) -> dict[str, str]:
    lines = [line.partition("=") for line in block.splitlines() if line]
    entries = {name: value for name, _, value in lines}
    _require(len(entries) == len(lines))  # no entry occurs twice
    return entries


def _check_lightgbm_tree(entries: dict[str, str], n_columns: int) -> None:
    def integers(name: str, size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        numbers = np.array([int(one) for one in entries[name].split()], dtype=np.int64)
        _require(numbers.size == size)
        return numbers

    def reals(name: str, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        numbers = np.array([float(one) for one in entries[name].split()])
        _require(numbers.size == size and not np.isnan(numbers).any())
        return numbers

    n_leaves, n_cats = int(entries["num_leaves"]), int(entries["num_cat"])
    _require(n_leaves >= 1 and n_cats >= 0 and entries.get("is_linear") == "0")
    reals("leaf_value", n_leaves)
    if n_leaves == 1:
        return
    n_nodes = n_leaves - 1
    columns, kinds, cuts = (
        integers("split_feature", n_nodes),
        integers("decision_type", n_nodes),
        reals("threshold", n_nodes),
    )
    _require(columns.min() >= 0 and columns.max() < n_columns)
    _require(kinds.min() >= 0 and kinds.max() < 16)
    _check_children(integers("left_child", n_nodes), integers("right_child", n_nodes), n_leaves)
    for name in ("split_gain", "internal_value", "internal_weight", "internal_count"):
        reals(name, n_nodes)
    for name in ("leaf_weight", "leaf_count"):
        reals(name, n_leaves)
    categorical = cuts[kinds % 2 == 1]
    _require(n_cats > 0 or not categorical.size)
    if n_cats:
        bounds = integers("cat_boundaries", n_cats + 1)
        _require(bounds[0] == 0 and (np.diff(bounds) > 0).all() and bounds[-1] <= len(entries["cat_threshold"]))
        masks = integers("cat_threshold", int(bounds[-1]))
        _require(masks.min() >= 0 and masks.max() < 1 << 32)
        _require((categorical >= 0).all() and (categorical < n_cats).all() and (categorical % 1 == 0).all())


def _check_children(left: Any, right: Any, n_leaves: int) -> None:
    """Check that every node but the root, and every leaf (-1, -2, ...), is the child of one earlier node."""
    children = np.concatenate((left, right))
    parents = np.tile(np.arange(n_leaves - 1), 2)
    inner = children >= 0
    _require((children[inner] > parents[inner]).all())
    expected = np.concatenate((np.arange(-n_leaves, 0), np.arange(1, n_leaves - 1)))
    _require(np.array_equal(np.sort(children), expected))


# ----------------------------------------------------------------------------------------------------------- XGBoost


def check_xgboost(text: str) -> None:
    """Raise a ValueError unless this is a model of two classes with consistent trees."""
    learner = json.loads(text)["learner"]
    _require(learner["objective"]["name"] == "binary:logistic")
    entries = learner["learner_model_param"]
    _require(int(entries["num_class"]) == 0 and int(entries["num_target"]) == 1)
    n_columns = int(entries["num_feature"])
    _require(0 < n_columns <= _MAX_COLUMNS)
    _require(all(len(learner[name]) in {0, n_columns} for name in ("feature_names", "feature_types")))
    booster = learner["gradient_booster"]
    if booster["name"] == "dart":
        _require(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]))
        _require(all(abs(one) < _MAX_NUMBER for one in booster["weight_drop"]))
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
    _require(all(0 <= index < max(counts) for index in cats["sorted_idx"]))


def _check_xgboost_tree(tree: dict[str, Any], n_columns: int) -> None:
    entries = tree["tree_param"]
    n_nodes = int(entries["num_nodes"])
    _require(n_nodes >= 1 and int(entries["num_feature"]) == n_columns and int(entries["size_leaf_vector"]) <= 1)
    for name in (
        *("base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children"),
        *("split_conditions", "split_indices", "split_type", "sum_hessian"),
    ):
        _require(len(tree[name]) == n_nodes)
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian"):
        _require(all(isinstance(one, (int, float)) and abs(one) < _MAX_NUMBER for one in tree[name]))
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
    _require(len(seen) + int(entries["num_deleted"]) == n_nodes)
    _require(tree["categories_nodes"] == [node for node, kind in enumerate(tree["split_type"]) if kind])
    parts = [tree[name] for name in ("categories_nodes", "categories_segments", "categories_sizes")]
    _require(len({len(part) for part in parts}) == 1)
    for begin, size in zip(*parts[1:], strict=True):
        _require(begin >= 0 < size and begin + size <= len(tree["categories"]))
    _require(all(isinstance(one, int) and 0 <= one < 1 << 24 for one in tree["categories"]))
