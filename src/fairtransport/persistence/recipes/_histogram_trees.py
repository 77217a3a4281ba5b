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

from fairtransport._extras import load_extra
from fairtransport.persistence._values import ValueType
from fairtransport.persistence.recipes._registry import (
    FEATURE_NAMES,
    count_up_to,
    is_bool,
    is_none,
    is_seed,
    is_word,
    label_array,
    list_of,
    number_array,
    number_in,
    one_of,
)
from fairtransport.persistence.recipes._sklearn_checks import is_selection
from fairtransport.repair.blind.group_model import DenseBoostingClassifier, DenseBoostingRegressor
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.persistence.recipes._registry import Check, Recipe


_MOST_COLUMNS, _MOST_CLASSES = 100_000, 10_000
_MOST_CATEGORIES, _BITSET_WORDS = 256, 8  # 255 and a missing value; bits of as many
_FIELDS = (
    *("value", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right"),
    *("is_categorical", "bitset_idx"),
)
_PARAMS: dict[str, Check] = {
    "categorical_features": lambda value: is_none(value) or is_word(value) or is_selection(value),
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
    made = [tree for one_round in estimator._predictors for tree in one_round]  # noqa: SLF001
    trees, bitsets = [tree.nodes for tree in made], [tree.raw_left_cat_bitsets for tree in made]
    nodes, categories = np.concatenate(trees), None
    if estimator.is_categorical_ is not None:
        categories = estimator._preprocessor.named_transformers_["encoder"].categories_  # noqa: SLF001
    return {
        "params": params,
        "classes": None if is_regressor(estimator) else estimator.classes_,
        "n_columns": int(estimator.n_features_in_),
        "feature_names": getattr(estimator, "feature_names_in_", None),
        "baseline": np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel(),  # noqa: SLF001
        "categorical": None if categories is None else estimator.is_categorical_.astype(np.int64),
        "categories": categories,
        "bitsets": np.concatenate(bitsets).astype(np.int64).reshape(-1, _BITSET_WORDS),
        "n_bitsets": np.array([len(one) for one in bitsets], dtype=np.int64),
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
    names, minimal = parts["feature_names"], _minimal_model(parts, kind)
    own = minimal.get_params()
    vars(estimator).update({name: value for name, value in vars(minimal).items() if name not in own})
    if names is not None and parts["categories"] is None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    made = minimal._predictors[0][0]  # noqa: SLF001
    trees = []
    bitsets = np.split(parts["bitsets"].astype(made.raw_left_cat_bitsets.dtype), np.cumsum(parts["n_bitsets"])[:-1])
    nodes_of_trees = np.split(np.arange(parts["sizes"].sum()), np.cumsum(parts["sizes"])[:-1])
    for part, bits in zip(nodes_of_trees, bitsets, strict=True):
        nodes = np.zeros(part.size, dtype=made.nodes.dtype)
        for name in _FIELDS:
            nodes[name] = parts[f"nodes.{name}"][part]
        nodes["is_leaf"] = nodes["left"] == 0
        trees.append(type(made)(nodes, bits, bits))  # rows are not binned at prediction
    n_each = parts["baseline"].size
    estimator._predictors = [trees[first : first + n_each] for first in range(0, len(trees), n_each)]  # noqa: SLF001
    estimator._baseline_prediction = parts["baseline"].reshape(1, -1)  # noqa: SLF001
    return estimator


def _minimal_model(parts: dict[str, Any], kind: Any) -> Any:
    """Return a model of a few rows with the same columns, classes and categories.

    scikit-learn has no public way to make a fitted one: the trees of this one are replaced.
    """
    classes, n_columns, categories = parts["classes"], parts["n_columns"], parts["categories"]
    options = {"max_iter": 1, "min_samples_leaf": 1, "early_stopping": False}
    target = np.arange(2.0) if classes is None else np.tile(classes, 2)
    if categories is None:
        return kind(**options).fit(np.zeros((target.size, n_columns)), target)
    n_rows = max(target.size, *(one.size for one in categories))
    is_categorical = parts["categorical"] != 0
    columns: list[Any] = [np.zeros(n_rows)] * n_columns
    for index, values in zip(np.flatnonzero(is_categorical), categories, strict=True):
        columns[index] = np.resize(values, n_rows)
    rows: Any = np.column_stack([column.astype(object) for column in columns])
    if all(one.dtype.kind in "biuf" for one in categories):
        rows = rows.astype(np.float64)
    if parts["feature_names"] is not None:
        named = dict(zip(parts["feature_names"].tolist(), columns, strict=True))
        rows = load_extra("pandas").DataFrame(named)
    minimal = kind(categorical_features=is_categorical, **options).fit(rows, np.resize(target, n_rows))
    known = minimal._preprocessor.named_transformers_["encoder"].categories_  # noqa: SLF001
    if [one.tolist() for one in map(_without_nan, known)] != [one.tolist() for one in map(_without_nan, categories)]:
        raise ModelFileError("The categories of the file are not in order; do not trust it.")
    return minimal


def _without_nan(values: NDArray[Any]) -> NDArray[Any]:
    return values[[value == value for value in values.tolist()]]  # noqa: PLR0124


def _has_valid_categories(parts: dict[str, Any]) -> bool:
    categorical, categories = parts["categorical"], parts["categories"]
    bitsets, n_bitsets = parts["bitsets"], parts["n_bitsets"]
    if not isinstance(bitsets, np.ndarray) or bitsets.dtype != np.int64 or bitsets.shape[1:] != (_BITSET_WORDS,):
        return False
    counted = isinstance(n_bitsets, np.ndarray) and n_bitsets.dtype == np.int64 and n_bitsets.ndim == 1
    if not counted or (n_bitsets < 0).any() or (n_bitsets > len(bitsets)).any() or n_bitsets.sum() != len(bitsets):
        return False
    if ((bitsets < 0) | (bitsets >= 1 << 32)).any():
        return False
    if categorical is None or categories is None:
        return categorical is categories and not len(bitsets)
    if not number_array(1)(categorical) or categorical.size != parts["n_columns"]:
        return False
    return (
        list_of(label_array(1))(categories)
        and len(categories) == np.count_nonzero(categorical)
        and all(1 <= one.size <= _MOST_CATEGORIES for one in categories)
    )


def _is_valid(parts: dict[str, Any], *, regression: bool) -> bool:
    expected = {"params", "classes", "n_columns", "feature_names", "baseline", "sizes"}
    expected |= {"categorical", "categories", "bitsets", "n_bitsets"}
    if set(parts) != expected | {f"nodes.{name}" for name in _FIELDS} or not _has_valid_columns(parts):
        return False
    sizes, baseline, classes = parts["sizes"], parts["baseline"], parts["classes"]
    n_each = _trees_per_round(classes, regression=regression)
    if not n_each or not number_array(1)(baseline) or baseline.dtype != np.float64 or baseline.size != n_each:
        return False
    if not number_array(1)(sizes) or sizes.dtype != np.int64 or not sizes.size or sizes.size % n_each:
        return False
    arrays = {name: parts[f"nodes.{name}"] for name in _FIELDS}
    if not all(isinstance(one, np.ndarray) and one.dtype == _dtype(name) for name, one in arrays.items()):
        return False
    n_nodes = arrays["left"].size
    fits = (sizes >= 1).all() and (sizes <= n_nodes).all() and sizes.sum() == n_nodes
    fits = fits and all(one.shape == (n_nodes,) for one in arrays.values())
    if not fits or not _has_valid_categories(parts) or parts["n_bitsets"].size != sizes.size:
        return False
    return _are_trees(arrays, sizes, parts["n_columns"]) and _fit_categories(arrays, sizes, parts)


def _fit_categories(arrays: dict[str, NDArray[Any]], sizes: NDArray[np.int64], parts: dict[str, Any]) -> bool:
    """Return whether nodes that split categories do so for a column of categories, by a bitset of their tree."""
    splits, index = arrays["is_categorical"] != 0, arrays["bitset_idx"]
    n_categorical = 0 if parts["categories"] is None else len(parts["categories"])  # these columns come first
    n_bitsets = np.repeat(parts["n_bitsets"], sizes)
    fits = (index >= 0) & (index < n_bitsets) & (arrays["feature_idx"] < n_categorical)
    return bool(np.isin(arrays["is_categorical"], (0, 1)).all() and fits[splits].all() and not index[~splits].any())


def _trees_per_round(classes: Any, *, regression: bool) -> int:
    """Return the number of trees of a round; 0 where classes are not valid."""
    if not (classes is None if regression else _are_classes(classes)):
        return 0
    return 1 if classes is None or classes.size == 2 else int(classes.size)


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
