"""Recipes of scikit-learn's histogram gradient boosting: parameters, and the trees as checked arrays.

It is the default model of the groups in blind repair, and a base model of ``fairtransport train``. Its compiled code
follows the indices of nodes without a check, so that they are checked here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from fairtransport.persistence._values import ValueType
from fairtransport.persistence.recipes._checks import (
    FEATURE_NAMES,
    count_up_to,
    is_bool,
    is_none,
    is_seed,
    label_array,
    number_array,
    number_in,
    one_of,
)
from fairtransport.repair.blind.dense_boosting import DenseBoostingClassifier, DenseBoostingRegressor
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.persistence.recipes._checks import Check
    from fairtransport.persistence.recipes._registry import Recipe

__all__ = ["RECIPES", "VALUE_TYPES"]

_MOST_COLUMNS, _MOST_CLASSES = 100_000, 10_000
_FIELDS = ("value", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right")
_PARAMS: dict[str, Check] = {
    "early_stopping": lambda value: value == "auto" or is_bool(value),
    "l2_regularization": number_in(0.0, 1e300),
    "learning_rate": number_in(0.0, 1e300),
    "max_bins": count_up_to(255),
    "max_depth": lambda value: is_none(value) or count_up_to(1 << 31)(value),
    "max_features": number_in(0.0, 1.0),
    "max_iter": count_up_to(1 << 31),
    "max_leaf_nodes": lambda value: is_none(value) or count_up_to(1 << 31)(value),
    "min_samples_leaf": count_up_to(1 << 31),
    "n_iter_no_change": count_up_to(1 << 31),
    "random_state": is_seed,
    "tol": number_in(0.0, 1e300),
    "validation_fraction": number_in(0.0, 1.0),
    "verbose": one_of(0),
}
_NOT_STORED = {"verbose"}


def _to_parts(estimator: Any) -> dict[str, Any]:
    defaults, name = type(estimator)().get_params(), type(estimator).__name__
    params = {name: value for name, value in estimator.get_params().items() if name not in _NOT_STORED}
    params = {name: value for name, value in params.items() if value is not defaults[name] and value != defaults[name]}
    refused = sorted(name for name, value in params.items() if name not in _PARAMS or not _PARAMS[name](value))
    if refused:
        raise TypeError(f"A model file cannot store these parameters of {name}: {', '.join(refused)}.")
    if not hasattr(estimator, "_predictors"):
        return {"params": params}
    if estimator.is_categorical_ is not None:
        raise TypeError(f"A model file cannot store a {name} with categorical columns; encode them first.")
    trees = [tree.nodes for one_round in estimator._predictors for tree in one_round]  # noqa: SLF001
    nodes = np.concatenate(trees)
    return {
        "params": params,
        "classes": None if is_regressor(estimator) else estimator.classes_,
        "n_columns": int(estimator.n_features_in_),
        "feature_names": getattr(estimator, "feature_names_in_", None),
        "baseline": np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel(),  # noqa: SLF001
        "sizes": np.array([tree.size for tree in trees], dtype=np.int64),
        **{f"nodes.{name}": np.asarray(nodes[name], dtype=_dtype(name)) for name in _FIELDS},
    }


def _dtype(name: str) -> type:
    return np.float64 if name in {"value", "num_threshold"} else np.int64


def _from_parts(parts: dict[str, Any], kind: Any) -> Any:
    params = parts["params"]
    if not isinstance(params, dict) or not all(name in _PARAMS and _PARAMS[name](params[name]) for name in params):
        raise ModelFileError("The file has parameters of gradient boosting that are not allowed; do not trust it.")
    estimator = kind(**params)
    if set(parts) == {"params"}:
        return estimator
    if not _is_valid(parts, regression=issubclass(kind, HistGradientBoostingRegressor)):
        raise ModelFileError("The trees of the file are not valid. Do not trust it.")
    classes, n_columns, names = parts["classes"], parts["n_columns"], parts["feature_names"]
    # scikit-learn has no public way to make a fitted one: fit a minimal one and replace its trees.
    minimal = kind(max_iter=1, min_samples_leaf=1, early_stopping=False)
    target = np.arange(2.0) if classes is None else np.tile(classes, 2)
    minimal.fit(np.zeros((target.size, n_columns)), target)
    own = minimal.get_params()
    vars(estimator).update({name: value for name, value in vars(minimal).items() if name not in own})
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    made = minimal._predictors[0][0]  # noqa: SLF001
    trees = []
    for part in np.split(np.arange(parts["sizes"].sum()), np.cumsum(parts["sizes"])[:-1]):
        nodes = np.zeros(part.size, dtype=made.nodes.dtype)
        for name in _FIELDS:
            nodes[name] = parts[f"nodes.{name}"][part]
        nodes["is_leaf"] = nodes["left"] == 0
        trees.append(type(made)(nodes, made.binned_left_cat_bitsets, made.raw_left_cat_bitsets))
    n_each = parts["baseline"].size
    estimator._predictors = [trees[first : first + n_each] for first in range(0, len(trees), n_each)]  # noqa: SLF001
    estimator._baseline_prediction = parts["baseline"].reshape(1, -1)  # noqa: SLF001
    return estimator


def _is_valid(parts: dict[str, Any], *, regression: bool) -> bool:
    expected = {"params", "classes", "n_columns", "feature_names", "baseline", "sizes"}
    if set(parts) != expected | {f"nodes.{name}" for name in _FIELDS} or not _has_valid_columns(parts):
        return False
    sizes, baseline, classes = parts["sizes"], parts["baseline"], parts["classes"]
    if not (classes is None if regression else _are_classes(classes)):
        return False
    n_each = 1 if classes is None or classes.size == 2 else classes.size
    if not number_array(1)(baseline) or baseline.dtype != np.float64 or baseline.size != n_each:
        return False
    if not number_array(1)(sizes) or sizes.dtype != np.int64 or not sizes.size or sizes.size % n_each:
        return False
    arrays = {name: parts[f"nodes.{name}"] for name in _FIELDS}
    if not all(isinstance(one, np.ndarray) and one.dtype == _dtype(name) for name, one in arrays.items()):
        return False
    n_nodes = arrays["left"].size
    fits = (sizes >= 1).all() and (sizes <= n_nodes).all() and sizes.sum() == n_nodes
    fits = fits and all(one.shape == (n_nodes,) for one in arrays.values())
    return bool(fits) and _are_trees(arrays, sizes, parts["n_columns"])


def _has_valid_columns(parts: dict[str, Any]) -> bool:
    n_columns, names = parts["n_columns"], parts["feature_names"]
    if not count_up_to(_MOST_COLUMNS)(n_columns) or n_columns < 1:
        return False
    return names is None or (FEATURE_NAMES["feature_names_in_"](names) and names.size == n_columns)


def _are_classes(classes: Any) -> bool:
    if not label_array(1)(classes) or not 2 <= classes.size <= _MOST_CLASSES:
        return False
    return len(set(classes.tolist())) == classes.size


def _are_trees(arrays: dict[str, NDArray[Any]], sizes: NDArray[np.int64], n_columns: int) -> bool:
    """Return whether every node but the first of a tree is the child of exactly one node before it."""
    left, right, feature = arrays["left"], arrays["right"], arrays["feature_idx"]
    if ((left < 0) | (left >= left.size) | (right < 0) | (right >= left.size)).any():
        return False
    inner, roots = left != 0, np.cumsum(sizes) - sizes
    first, last = np.repeat(roots, sizes), np.repeat(roots + sizes, sizes)
    children = np.concatenate([first[inner] + child[inner] for child in (left, right)])
    parents = np.tile(np.flatnonzero(inner), 2)
    ordered = (children > parents).all() and (children < last[parents]).all() and not right[~inner].any()
    once = np.array_equal(np.sort(children), np.setdiff1d(np.arange(left.size), roots))
    finite = np.isfinite(arrays["value"]).all() and not np.isnan(arrays["num_threshold"]).any()
    ways = np.isin(arrays["missing_go_to_left"], (0, 1)).all()
    return bool(ordered and once and finite and ways and ((feature >= 0) & (feature < n_columns)).all())


_KINDS = {
    "sklearn_boosting": HistGradientBoostingClassifier,
    "sklearn_boosting_regressor": HistGradientBoostingRegressor,
    "dense_boosting": DenseBoostingClassifier,
    "dense_boosting_regressor": DenseBoostingRegressor,
}
VALUE_TYPES = tuple(ValueType(tag, kind, _to_parts, partial(_from_parts, kind=kind)) for tag, kind in _KINDS.items())
RECIPES: tuple[Recipe, ...] = ()
