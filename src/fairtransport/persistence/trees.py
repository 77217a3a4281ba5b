"""Trees of any library as arrays of nodes: read when a model is saved, checked, and scored by one compiled loop."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass, fields
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_array, check_is_fitted

from fairtransport._arrays import Floats, Ints
from fairtransport._extras import load_extra
from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import Recipe, ValueType
from fairtransport.repair.blind.group_model import DenseBoostingClassifier, DenseBoostingRegressor
from fairtransport.storage import ModelFileError
from fairtransport.tabular.column_plans import known_categories
from fairtransport.transport.kernels.trees import add_trees, sigmoids

Margins = NDArray[np.floating[Any]]

MISSING_LEFT, ZERO_IS_MISSING, CATEGORIES = 1, 2, 4  # flags of a node
LINKS = ("identity", "logistic", "softmax", "exp", "mean")
LIBRARIES = ("lightgbm", "xgboost", "histogram", "forest")
_MAX_COLUMNS = 1 << 20
_LIGHTGBM_ZERO = float(np.float32(1e-35))
_MAX_VALUE = 1e30  # of a leaf: the sum over all trees is finite, in single precision too
_DTYPES: dict[str, tuple[Any, ...]] = {
    "base": (np.float64,),
    "starts": (np.int64,),
    "feature": (np.int32,),
    "threshold": (np.float64,),
    "left": (np.int32,),
    "right": (np.int32,),
    "flags": (np.uint8,),
    "values": (np.float32, np.float64),
    "set_starts": (np.int64,),
    "words": (np.uint32,),
}
_OF_NODES = ("feature", "threshold", "left", "right", "flags")


class InvalidTreesError(ValueError):
    """Trees that are inconsistent, or of a kind that a model file does not support; the message says what is wrong."""


def require(condition: object, reason: str) -> None:
    """Raise InvalidTreesError with this reason unless the condition holds."""
    if not condition:
        raise InvalidTreesError(reason)


@dataclass(frozen=True, eq=False)
class Trees:
    """Nodes of all trees, one tree after the other.

    Attributes
    ----------
    library : {"lightgbm", "xgboost", "histogram", "forest"}
        Whose rules of rounding and comparing hold: XGBoost and forests read numbers of 32 bits, XGBoost goes left below
        a threshold and the others up to it.
    link : {"identity", "logistic", "softmax", "exp", "mean"}
        What makes a prediction of the sum over trees.
    n_columns : int
    allow_nan : bool
    missing : float
        The number that stands for a missing value; NaN always does.
    base : array of shape (n_outputs,)
        The sum before the first tree.
    starts : array of shape (n_trees + 1,)
        First node of each tree, and the number of nodes.
    feature, threshold, left, right, flags : array of shape (n_nodes,)
        Column; threshold, or at a split of categories the number of the set that goes left; children by their number in
        the tree. At a leaf ``left`` is -1 and ``right`` a row of ``values``. Flags: 1 if missing values go left, 2 if
        zero is a missing value, 4 at a split of categories.
    values : array of shape (n_leaves, n_outputs) or (n_leaves, 1)
        In the second case trees take turns at the outputs.
    set_starts, words : array of shape (n_sets + 1,) and (n_words,)
        Sets of categories as bits, 32 in a word.
    """

    library: str
    link: str
    n_columns: int
    allow_nan: bool
    missing: float
    base: Floats
    starts: Ints
    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    flags: NDArray[np.uint8]
    values: NDArray[Any]
    set_starts: Ints
    words: NDArray[np.uint32]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.starts.size - 1

    @property
    def is_single(self) -> bool:
        """True if the library reads numbers of 32 bits."""
        return self.library in {"xgboost", "forest"}

    def check(self) -> None:
        """Raise InvalidTreesError unless every walk from a root ends at a leaf, and every index is in range."""
        require(self.library in LIBRARIES and self.link in LINKS, "the library or the link is not known")
        n_columns = self.n_columns
        require(type(n_columns) is int and 0 < n_columns <= _MAX_COLUMNS, "the number of columns is out of range")
        described = isinstance(self.allow_nan, bool) and isinstance(self.missing, float)
        require(described, "missing values are not described")
        for name, dtypes in _DTYPES.items():
            array = getattr(self, name)
            is_array = isinstance(array, np.ndarray) and array.ndim == 1 + (name == "values")
            require(is_array and array.dtype in dtypes, f"{name} has another type or shape")
        self._check_sizes()
        for name in ("base", "values"):
            array = getattr(self, name)
            require(
                np.isfinite(array).all() and np.abs(array).max() <= _MAX_VALUE, f"{name} is not finite or too large"
            )
        require(not np.isnan(self.threshold).any(), "a threshold is NaN")
        require((self.flags < 2 * CATEGORIES).all(), "a flag is not known")
        require(_within(self.feature, 0, n_columns), "a column is out of range")
        inner = self.left >= 0
        size = np.diff(self.starts)
        number = np.arange(self.left.size) - np.repeat(self.starts[:-1], size)
        size = np.repeat(size, size)
        for child in (self.left, self.right):
            ordered = (child[inner] > number[inner]) & (child[inner] < size[inner])
            require(ordered.all(), "a child is out of range")
        require(
            (self.left[~inner] == -1).all() and _within(self.right[~inner], 0, len(self.values)), "a leaf has no value"
        )
        sets = self.threshold[(self.flags & CATEGORIES) > 0]
        require(_within(sets, 0, self.set_starts.size - 1) and (sets == np.floor(sets)).all(), "a set is out of range")

    def _check_sizes(self) -> None:
        n_outputs, n_nodes = self.base.size, self.left.size
        require(n_outputs >= 1 and len(self.values) >= 1, "there are no outputs, or no leaves")
        require(self.values.shape[1] in {1, n_outputs}, "leaves do not have a value for each output")
        for name in _OF_NODES:
            require(getattr(self, name).size == n_nodes, f"{name} does not have a number for each node")
        for name, steps, total in (("starts", 1, n_nodes), ("set_starts", 0, self.words.size)):
            array = getattr(self, name)
            require(array.size >= 1 + steps and array[0] == 0 and array[-1] == total, f"{name} does not fit")
            require(_within(array, 0, total + 1) and (np.diff(array) >= steps).all(), f"{name} does not ascend")
        require(self.n_trees % (n_outputs // self.values.shape[1]) == 0, "a round has too few trees")

    def margins(self, X: Floats) -> Margins:
        """Return the sum over trees for each row and output, in the precision of the library."""
        sums = np.empty((len(X), self.base.size), dtype=self.values.dtype)
        sums[:] = self.base
        add_trees(X, sums, self.library == "xgboost", *(getattr(self, one.name) for one in fields(self)[6:]))
        return sums / self.n_trees if self.link == "mean" else sums


def _within(array: NDArray[Any], low: float, high: float) -> bool:
    return bool((array >= low).all() and (array < high).all())


class _TreeModel(BaseEstimator):
    """Base class of `TreeClassifier` and `TreeRegressor`."""

    trees_: Trees
    column_categories_: dict[int, tuple[Any, ...]]

    def fit(self, *_: Any, **__: Any) -> NoReturn:
        """Raise TypeError: a file has the trees, not what is needed to train others."""
        raise TypeError(
            "This model is one of trees from a file, which can be scored but not trained. Set the estimator that is "
            "to be trained instead, LGBMClassifier() for instance."
        )

    def margins(self, X: Any) -> Margins:
        """Return the sums over trees of a table or matrix X: of shape (n,), or (n, n_outputs) if there are several."""
        check_is_fitted(self, "trees_")
        sums = self.trees_.margins(self._read(X))
        return sums[:, 0] if sums.shape[1] == 1 else sums

    def _read(self, X: Any) -> Floats:
        """Return the features as the library would read them, categories as their numbers."""
        trees = self.trees_
        table = nw.from_native(X, pass_through=True, eager_only=True)
        if isinstance(table, nw.DataFrame):
            X = self._read_table(table)
        elif self.column_categories_ and trees.library == "histogram":  # the others take numbers of categories
            X = self._with_codes([*np.asarray(X).T])
        if sparse.issparse(X):
            X = _dense(X, np.nan if trees.library == "xgboost" else 0.0)
        refuses_infinity = "allow-nan" if trees.allow_nan else True
        numbers = check_array(
            X,
            dtype=np.float32 if trees.is_single else np.float64,
            ensure_all_finite=refuses_infinity if trees.is_single else False,
            input_name="X",
        ).astype(np.float64)
        if numbers.shape[1] != trees.n_columns:
            raise ValueError(f"X has {numbers.shape[1]} features, but the model was fitted on {trees.n_columns}.")
        if not np.isnan(trees.missing):
            numbers[numbers == trees.missing] = np.nan
        if trees.library == "lightgbm":
            numbers[np.abs(numbers) <= _LIGHTGBM_ZERO] = 0.0
        return np.ascontiguousarray(numbers)

    def _read_table(self, table: nw.DataFrame[Any]) -> Any:
        names, given = getattr(self, "feature_names_in_", None), [*map(str, table.columns)]
        invented = self.trees_.library == "lightgbm" and names is not None and set(names).isdisjoint(given)
        if names is not None and list(names) != given and not invented:
            raise ValueError("X has columns of other names, or in another order, than those the model was fitted on.")
        known, is_booster = self.column_categories_, self.trees_.library in {"lightgbm", "xgboost"}
        for index, (name, dtype) in enumerate(table.schema.items()):
            if is_booster and dtype in {nw.Categorical, nw.Enum} and index not in known:
                raise ValueError(f"X has categories in the column {name!r}, of which the model knows none.")
        if not known:
            return table.to_native()
        return self._with_codes([table[:, index] for index in range(table.shape[1])])

    def _with_codes(self, columns: list[Any]) -> Floats:
        """Return columns as numbers: of categories their position among those known, NaN for others."""
        numbers = np.empty((len(columns[0]), len(columns)))
        for index, column in enumerate(columns):
            known = self.column_categories_.get(index)
            if known is None:
                numbers[:, index] = np.asarray(column, dtype=np.float64)
                continue
            codes = {value: float(code) for code, value in enumerate(known) if value == value}  # noqa: PLR0124 - not NaN
            codes[None] = np.nan
            numbers[:, index] = [
                codes.get(cell, np.nan) for cell in (column.to_list if hasattr(column, "to_list") else column.tolist)()
            ]
        return numbers

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trees_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = not hasattr(self, "trees_") or self.trees_.allow_nan
        return tags


def _dense(X: Any, absent: float) -> Floats:
    """Return a sparse matrix as a dense one, with this value where it has none."""
    cells = X.tocoo()
    dense = np.full(X.shape, absent)
    dense[cells.row, cells.col] = cells.data
    return dense


class TreeClassifier(ClassifierMixin, _TreeModel):
    """Trees of LightGBM, XGBoost or scikit-learn from a model file, which give the probabilities of classes.

    Predictions are those of the model that was saved, to the last bit. Neither its library nor its settings are needed,
    so it cannot be trained again.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where the model was fitted on a table.
    column_categories_ : dict of int to tuple
        The categories of columns, by position.
    trees_ : Trees
    """

    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the classes for the rows of a table or matrix X, of shape (n, n_classes)."""
        margins, link = self.margins(X), self.trees_.link
        if link == "mean":
            return np.asarray(margins)
        if link == "softmax":
            return np.asarray(softmax(margins))
        positive = expit(margins) if self.trees_.library == "histogram" else sigmoids(margins)
        return np.column_stack((1 - positive, positive))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


class TreeRegressor(RegressorMixin, _TreeModel):
    """Trees of LightGBM, XGBoost or scikit-learn from a model file, which predict numbers; see `TreeClassifier`."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions for the rows of a table or matrix X, of shape (n,)."""
        margins = self.margins(X)
        return np.exp(margins) if self.trees_.link == "exp" else np.asarray(margins)


def make_model(
    trees: Trees, classes: NDArray[Any] | None, names: NDArray[Any] | None, categories: dict[int, tuple[Any, ...]]
) -> Any:
    """Return the estimator of checked trees: a classifier where there are classes."""
    model: Any = TreeRegressor() if classes is None else TreeClassifier()
    model.trees_, model.n_features_in_, model.column_categories_ = trees, trees.n_columns, dict(categories)
    if classes is not None:
        model.classes_ = classes
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    return model


# Reading the trees of LightGBM, XGBoost and scikit-learn.

_MAX_CLASSES = 10_000
_MAX_CATEGORIES = 500_000  # of all columns together
_HISTOGRAMS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
_FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
_SINGLE = (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
_BOOSTERS = tuple(
    f"{library}.sklearn.{name}{kind}"
    for library, name in (("lightgbm", "LGBM"), ("xgboost", "XGB"))
    for kind in ("Classifier", "Regressor")
)
_ARRAYS = [one.name for one in fields(Trees)][5:]
#: End of the name of an array that every file with trees contains.
THRESHOLDS = "trees.threshold"


def is_tree_model(model: Any) -> bool:
    """Return whether a file stores this estimator as arrays of nodes."""
    kind = type(model)
    return kind in _KINDS or f"{kind.__module__}.{kind.__qualname__}" in _KINDS


def read_trees(model: Any) -> Any:
    """Return a fitted estimator of trees as a `TreeClassifier` or `TreeRegressor`.

    Raises
    ------
    InvalidTreesError
        If it is of a kind that a model file does not support, or predicts otherwise than its arrays.
    """
    if isinstance(model, (TreeClassifier, TreeRegressor)):
        return model
    library = type(model).__module__.partition(".")[0]
    read = {"lightgbm": _read_lightgbm, "xgboost": _read_xgboost}.get(library)
    if read is None:
        read = _read_histogram_trees if isinstance(model, _HISTOGRAMS) else _read_forest
    n_columns = int(model.n_features_in_)
    trees = Trees(n_columns=n_columns, allow_nan=bool(get_tags(model).input_tags.allow_nan), **read(model))
    trees.check()
    classes = None if is_regressor(model) else np.asarray(model.classes_)
    categories = known_categories(model, n_columns)
    made = make_model(trees, classes, getattr(model, "feature_names_in_", None), categories)
    _compare(made, model)
    return made


def _join(trees: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
    """Return the arrays of all trees; leaves are those without a left child, and have a row of values each."""
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    leaves, is_set = joined["left"] < 0, (joined["flags"] & CATEGORIES) > 0
    sets: list[NDArray[Any]] = others.pop("sets", [])
    values = joined.pop("values")
    threshold = np.where(leaves, 0.0, joined["threshold"])
    threshold[is_set] = np.arange(is_set.sum())
    return {
        "missing": math.nan,
        "starts": np.cumsum([0, *(tree["left"].size for tree in trees)]),
        "feature": np.where(leaves, 0, joined["feature"]).astype(np.int32),
        "threshold": threshold,
        "left": joined["left"].astype(np.int32),
        "right": np.where(leaves, np.cumsum(leaves) - 1, joined["right"]).astype(np.int32),
        "flags": np.where(leaves, 0, joined["flags"]).astype(np.uint8),
        "values": values[leaves].reshape(leaves.sum(), -1),
        "set_starts": np.cumsum([0, *(one.size for one in sets)]),
        "words": np.concatenate([np.zeros(0, dtype=np.uint32), *sets]).astype(np.uint32),
        **others,
    }


def _read_lightgbm(model: Any) -> dict[str, Any]:
    """Return the trees of LightGBM's text; a decision is 1 for categories, 2 for missing left, and what is missing."""
    text = model.booster_.model_to_string()
    head, _, rest = text.partition("\nTree=")
    header = _entries(head)
    require(header["num_class"] == header["num_tree_per_iteration"] == "1", "it has more than two classes")
    require("average_output" not in header, "it is a random forest of LightGBM (boosting_type='rf')")
    objective = header.get("objective", "")
    links = {"binary sigmoid:1": "logistic", "regression": "identity"}
    require(objective in links, "its objective is neither 'binary' with sigmoid=1 nor 'regression'")
    known = known_categories(model, int(model.n_features_in_)) or not model.booster_.pandas_categorical
    require(known, "some of its columns of categories are categories of a table, and others are not")
    trees, sets = [], []
    for block in rest.partition("\nend of trees")[0].split("\nTree="):
        entries = _entries(block)
        require(entries.get("is_linear", "0") == "0", "it has linear leaves (linear_tree=True)")
        of_splits = ("decision_type", "split_feature", "left_child", "right_child", "threshold")
        decision, feature, left, right, threshold = (_numbers(entries, name) for name in of_splits)
        values = _numbers(entries, "leaf_value")
        kind = decision.astype(np.int64)
        is_set, missing = kind & 1 > 0, kind >> 2
        nan_left = np.where(missing == 0, threshold >= 0.0, kind & 2 > 0) & ~is_set  # where none is missing, NaN is 0
        flags = nan_left * MISSING_LEFT + (missing == 1) * ~is_set * ZERO_IS_MISSING + is_set * CATEGORIES
        bounds = _numbers(entries, "cat_boundaries").astype(np.int64)
        words = _numbers(entries, "cat_threshold").astype(np.uint32)
        sets += [words[bounds[int(number)] : bounds[int(number) + 1]] for number in threshold[is_set]]
        n_splits, blank = feature.size, np.zeros(values.size)
        children = (np.where(child < 0, n_splits - 1 - child, child) for child in (left, right))
        left, right = (np.append(child, blank - 1) for child in children)
        trees.append({
            "feature": np.append(feature, blank), "threshold": np.append(threshold, blank), "left": left,
            "right": right, "flags": np.append(flags, blank).astype(np.int64),
            "values": np.append(np.zeros(n_splits), values),
        })  # fmt: skip
    return _join(trees, sets=sets, library="lightgbm", link=links[objective], base=np.zeros(1))


def _entries(block: str) -> dict[str, str]:
    lines = (line.partition("=") for line in block.split("\n"))
    return {name: value for name, _, value in lines}


def _numbers(entries: dict[str, str], name: str) -> Floats:
    return np.array(entries.get(name, "").split(), dtype=np.float64)


def _read_xgboost(model: Any) -> dict[str, Any]:
    """Return the trees of XGBoost's JSON; sets of categories there go right, so that children change sides."""
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    objective, entries = learner["objective"]["name"], learner["learner_model_param"]
    require(int(entries["num_class"]) == 0, "it has more than two classes")
    links = {"binary:logistic": "logistic", "reg:squarederror": "identity"}
    require(objective in links, "its objective is neither 'binary:logistic' nor 'reg:squarederror'")
    require(int(entries.get("num_target", 1)) == 1, "it has several targets")
    booster = learner["gradient_booster"]
    require(booster["name"] in {"gbtree", "dart"}, "it does not consist of trees (booster='gblinear')")
    weights = booster.get("weight_drop")
    content = booster.get("gbtree", booster)["model"]
    encoded = {index for index, column in enumerate(content.get("cats", {}).get("enc", ())) if len(column["values"])}
    decoded = encoded == {*known_categories(model, int(model.n_features_in_))}
    require(decoded, "XGBoost keeps only categories of numbers and of letters of ASCII as they are")
    require(not any(content["tree_info"]), "it has trees of several targets")
    stored = content["trees"]
    if getattr(model, "early_stopping_rounds", None) is not None and hasattr(model, "best_iteration"):
        stored = stored[: (model.best_iteration + 1) * int(content["gbtree_model_param"]["num_parallel_tree"])]
    base = np.float32(entries["base_score"].strip("[]"))
    if links[objective] == "logistic":
        base = np.float32(-math.log(np.float32(1.0) / base - np.float32(1.0)))
    trees, sets = [], []
    for number, tree in enumerate(stored):
        require(int(tree["tree_param"]["size_leaf_vector"]) <= 1, "it has leaves of several numbers")
        of_nodes = ("left_children", "right_children", "default_left", "split_type", "split_indices")
        left, right, nan_left, is_set, feature = (np.array(tree[name], dtype=np.int64) for name in of_nodes)
        swap = (is_set > 0) & (left >= 0)
        threshold = np.array(tree["split_conditions"], dtype=np.float32)
        values = threshold
        if weights is not None:  # dropout, where XGBoost takes the base from each sum again
            values = np.float32(weights[number]) * ((base + threshold) - base)
        trees.append({
            "feature": feature, "threshold": threshold.astype(np.float64), "left": np.where(swap, right, left),
            "right": np.where(swap, left, right), "flags": (nan_left ^ swap) * MISSING_LEFT + swap * CATEGORIES,
            "values": values,
        })  # fmt: skip
        parts = np.split(np.array(tree["categories"], dtype=np.int64), np.cumsum(tree["categories_sizes"])[:-1])
        of_node = dict(zip(tree["categories_nodes"], parts, strict=False))
        sets += [_bits(of_node[node]) for node in np.flatnonzero(swap).tolist()]
    others = {"library": "xgboost", "link": links[objective], "base": np.array([base], dtype=np.float64)}
    return {**_join(trees, sets=sets, **others), "missing": float(model.missing)}


def _bits(categories: Ints, n_words: int = 0) -> NDArray[np.uint32]:
    words = np.zeros(max(n_words, int(categories.max(initial=-1)) // 32 + 1), dtype=np.uint32)
    np.bitwise_or.at(words, categories // 32, np.uint32(1) << (categories % 32).astype(np.uint32))
    return words


def _read_histogram_trees(model: Any) -> dict[str, Any]:
    """Return the trees of scikit-learn's histogram gradient boosting, which has its columns of categories first."""
    is_set = np.zeros(model.n_features_in_, dtype=bool) if model.is_categorical_ is None else model.is_categorical_
    columns = np.concatenate([np.flatnonzero(is_set), np.flatnonzero(~is_set)])
    known: Any = None
    if is_set.any():
        known = model._bin_mapper.make_known_categories_bitsets()  # noqa: SLF001 - as in `predict`
    trees, sets = [], []
    for one in (tree for one_round in model._predictors for tree in one_round):  # noqa: SLF001
        nodes = one.nodes
        inner, splits = nodes["is_leaf"] == 0, (nodes["is_categorical"] != 0) & (nodes["is_leaf"] == 0)
        nan_left = nodes["missing_go_to_left"] != 0
        trees.append({
            "feature": columns[np.where(inner, nodes["feature_idx"], 0)],
            "threshold": nodes["num_threshold"],
            "left": np.where(inner, nodes["left"].astype(np.int64), -1),
            "right": nodes["right"].astype(np.int64),
            "flags": nan_left * MISSING_LEFT + splits * CATEGORIES,
            "values": nodes["value"],
        })  # fmt: skip
        for node in nodes[splits]:
            left = one.raw_left_cat_bitsets[node["bitset_idx"]]
            if node["missing_go_to_left"]:  # as do categories that were not among the rows of training
                bitsets, of_column = known
                left = left | ~bitsets[of_column[node["feature_idx"]]]
            sets.append(left)
    n_outputs = len(model._predictors[0])  # noqa: SLF001
    link = "softmax" if n_outputs > 1 else "logistic"
    if is_regressor(model):
        link = "exp" if model.loss in {"gamma", "poisson"} else "identity"
    base = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()  # noqa: SLF001
    return _join(trees, sets=sets, library="histogram", link=link, base=base)


def _read_forest(model: Any) -> dict[str, Any]:
    """Return the trees of a forest of scikit-learn, or its only one."""
    require(model.n_outputs_ == 1, "it has several outputs")
    trees = [
        {
            "feature": one.feature, "threshold": one.threshold, "left": one.children_left,
            "right": one.children_right, "flags": one.missing_go_to_left.astype(np.int64) * MISSING_LEFT,
            "values": one.value[:, 0, :],
        }
        for one in (tree.tree_ for tree in getattr(model, "estimators_", [model]))
    ]  # fmt: skip
    width = trees[0]["values"].shape[1]
    return _join(trees, library="forest", link="mean", base=np.zeros(width))


_N_PROBES = 100


def _compare(made: Any, model: Any) -> None:
    """Raise InvalidTreesError unless rows at and beside thresholds have the library's predictions."""
    rows = _probes(made)
    with warnings.catch_warnings(action="ignore"):  # of names of columns, which a matrix does not have
        if is_regressor(model):
            expected, given = model.predict(rows), made.predict(rows)
        else:
            expected, given = model.predict_proba(rows), made.predict_proba(rows)
    tolerance = 1e-5 if made.trees_.values.dtype == np.float32 else 1e-12
    close = np.allclose(given, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    require(close, "its arrays do not predict what its library predicts")


def _probes(made: Any) -> Any:
    """Return rows of thresholds, numbers beside them, zeros, missing values and categories, drawn with a fixed seed."""
    trees, rng = made.trees_, np.random.default_rng(0)
    inner, is_set = trees.left >= 0, (trees.flags & CATEGORIES) > 0
    rows = np.zeros((_N_PROBES, trees.n_columns))
    for column in np.unique(trees.feature[inner]).tolist():
        chosen = inner & (trees.feature == column)
        if is_set[chosen].any():
            pool = np.arange(len(made.column_categories_.get(column, range(40))), dtype=np.float64)
        else:
            at = trees.threshold[chosen].astype(np.float32 if trees.is_single else np.float64)
            at = at[np.isfinite(at) & (np.abs(at) < 1e38)]
            pool = np.concatenate([np.zeros(1), at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf)])
        if trees.allow_nan:
            pool = np.append(pool, np.full(1 + pool.size // 8, np.nan))
        rows[:, column] = rng.choice(pool, size=_N_PROBES)
    return _with_categories(rows, made) if made.column_categories_ else rows


def _with_categories(rows: Floats, made: Any) -> Any:
    """Return the rows with categories as the library takes them."""
    columns: dict[int, Any] = {}
    for index, column in enumerate(rows.T):
        columns[index] = column
        known = made.column_categories_.get(index)
        if known is not None:
            missing = next((one for one in known if one is None or one != one), np.nan)  # noqa: PLR0124
            values = [missing if np.isnan(code) else known[int(code)] for code in column]
            columns[index] = values
            if made.trees_.library != "histogram":
                columns[index] = load_extra("pandas").Categorical(values, categories=[*known])
    names = getattr(made, "feature_names_in_", None)
    if names is None:
        table = np.array([*columns.values()], dtype=object).T
        numeric = all(isinstance(one, (int, float)) for known in made.column_categories_.values() for one in known)
        return table.astype(np.float64) if numeric else table
    return load_extra("pandas").DataFrame(dict(zip(names, columns.values(), strict=True)))


def _to_parts(model: Any) -> dict[str, Any]:
    """Return what a file has of an estimator of trees; nothing of one that is not fitted."""
    name = type(model).__name__
    try:
        check_is_fitted(model)
    except NotFittedError:
        return {"is_classifier": not is_regressor(model)}
    try:
        made = read_trees(model)
    except InvalidTreesError as error:
        raise TypeError(
            f"A model file cannot store this {name}: {error}. Of boosted trees it stores those of two classes with the "
            "logistic objective, or of real numbers with squared error, without linear leaves. Save others in the "
            "format of their library, and a QuantileRepair of their scores in a model file."
        ) from None
    trees, categories = made.trees_, made.column_categories_
    return {
        "classes": getattr(made, "classes_", None),
        "feature_names": getattr(made, "feature_names_in_", None),
        "categories": [_as_array(values) for values in categories.values()],
        "category_columns": np.array([*categories], dtype=np.int64),
        **{one.name: getattr(trees, one.name) for one in fields(Trees)[:5]},
        **{f"trees.{array}": getattr(trees, array) for array in _ARRAYS},
    }


def _as_array(values: tuple[Any, ...]) -> NDArray[Any]:
    """Return categories as an array of one type where that keeps them as they are."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({*map(type, plain)}) == 1 and isinstance(plain[0], (str, int, float)):
        array = np.array(plain)
        if array.tolist() == plain:  # not with a trailing NUL
            return array
    objects = np.empty(len(plain), dtype=object)
    objects[:] = plain
    return objects


def _from_parts(parts: dict[str, Any]) -> Any:
    if set(parts) == {"is_classifier"}:
        return TreeClassifier() if parts["is_classifier"] else TreeRegressor()
    try:
        return _checked_model(parts)
    except InvalidTreesError as error:
        raise ModelFileError(f"The trees of the file are not valid: {error}. Do not trust it.") from None


def _checked_model(parts: dict[str, Any]) -> Any:
    scalars = [one.name for one in fields(Trees)[:5]]
    expected = {"classes", "feature_names", "categories", "category_columns", *scalars}
    require(set(parts) == expected | {f"trees.{name}" for name in _ARRAYS}, "something is missing or not known")
    trees = Trees(*(parts[name] for name in scalars), *(parts[f"trees.{name}"] for name in _ARRAYS))
    trees.check()
    classes, n_outputs = parts["classes"], trees.base.size
    if classes is None:
        agrees = n_outputs == 1 and trees.link in {"identity", "exp", "mean"}
    else:
        is_known = check.labels(1)(classes) and 1 <= classes.size <= _MAX_CLASSES
        require(is_known and len(set(classes.tolist())) == classes.size, "the classes are not distinct labels")
        agrees = (n_outputs, trees.link) in {(classes.size, "mean"), (classes.size, "softmax")}
        agrees |= (n_outputs, trees.link, classes.size) == (1, "logistic", 2)
    require(agrees, "the classes do not agree with the trees")
    names = parts["feature_names"]
    are_names = names is None or (check.column_names(names) and names.size == trees.n_columns)
    require(are_names, "there is not one name for each column")
    return make_model(trees, classes, names, _checked_categories(parts, trees.n_columns))


def _checked_categories(parts: dict[str, Any], n_columns: int) -> dict[int, tuple[Any, ...]]:
    categories, columns = parts["categories"], parts["category_columns"]
    are_arrays = isinstance(categories, list) and all(map(check.labels(1), categories))
    require(are_arrays and sum(one.size for one in categories) <= _MAX_CATEGORIES, "categories are not arrays")
    is_vector = isinstance(columns, np.ndarray) and columns.dtype == np.int64 and columns.shape == (len(categories),)
    in_range = is_vector and (columns >= 0).all() and (columns < n_columns).all() and (np.diff(columns) > 0).all()
    require(in_range, "the columns of categories are not columns of the trees")
    known = {int(column): tuple(values.tolist()) for column, values in zip(columns, categories, strict=True)}
    require(all(len(set(values)) == len(values) for values in known.values()), "a column has one category twice")
    return known


_KINDS = (*_BOOSTERS, *_HISTOGRAMS, DenseBoostingClassifier, DenseBoostingRegressor, *_FORESTS, *_SINGLE,
          TreeClassifier, TreeRegressor)  # fmt: skip
VALUE_TYPES = tuple(ValueType("trees", kind, _to_parts, _from_parts) for kind in _KINDS)
RECIPES: tuple[Recipe, ...] = ()
