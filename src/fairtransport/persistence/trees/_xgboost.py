"""Trees of XGBoost as arrays: read from the binary JSON that XGBoost writes, checked, and written as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport.persistence.trees._checks import (
    MAX_COLUMNS,
    ColumnCategories,
    check_leaf_values,
    check_names,
    check_numbers,
    check_sizes,
    check_structure,
    check_within,
    require,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Reals = NDArray[np.float64]

# Universal Binary JSON, as far as XGBoost uses it: lengths before contents, and arrays of numbers as bytes.

_UBJSON_DTYPES = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_MARKERS = {np.dtype(dtype).newbyteorder("="): marker for marker, dtype in _UBJSON_DTYPES.items()}


def to_ubjson(value: Any) -> bytearray:
    """Return the bytes of dicts, sequences, text, integers, floats (in single precision) and arrays of numbers."""
    out = bytearray()
    _write(value, out)
    return out


def _write(value: Any, out: bytearray) -> None:
    if isinstance(value, dict):
        out += b"{"
        for key, part in value.items():
            _write_text(key, out)
            _write(part, out)
        out += b"}"
    elif isinstance(value, np.ndarray):
        marker = _MARKERS[value.dtype]
        out += f"[${marker}#".encode()
        _write_number("L", value.size, out)
        out += value.astype(_UBJSON_DTYPES[marker]).tobytes()
    elif isinstance(value, str):
        out += b"S"
        _write_text(value, out)
    elif isinstance(value, Sequence):
        out += b"[#"
        _write_number("L", len(value), out)
        for part in value:
            _write(part, out)
    elif isinstance(value, int):
        bits = next((bits for bits in (7, 15, 31) if abs(value) < (1 << bits) - (value > 0)), 63)
        _write_number({7: "i", 15: "I", 31: "l", 63: "L"}[bits], value, out)
    else:
        _write_number("d", value, out)


def _write_text(text: str, out: bytearray) -> None:
    content = text.encode()
    _write_number("L", len(content), out)
    out += content


def _write_number(marker: str, value: float, out: bytearray) -> None:
    out += marker.encode() + np.array(value, dtype=_UBJSON_DTYPES[marker]).tobytes()


def from_ubjson(content: bytes) -> Any:
    """Return the value of what XGBoost wrote. This does not validate: it is not for content from a file."""
    return _Parser(content).read()


class _Parser:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def read(self) -> Any:
        marker = self._marker()
        if marker == "{":
            result = {}
            while self._content[self._at] != ord("}"):
                key = self._text()
                result[key] = self.read()
            self._at += 1
            return result
        if marker == "[":
            return self._array()
        if marker == "S":
            return self._text()
        return self._numbers(marker, 1)[0].item()

    def _array(self) -> Any:
        marker = self._marker()
        if marker == "$":
            kind = self._marker()
            self._marker()
            return self._numbers(kind, self._length())
        return [self.read() for _ in range(self._length())]

    def _marker(self) -> str:
        self._at += 1
        return chr(self._content[self._at - 1])

    def _length(self) -> int:
        return int(self._numbers(self._marker(), 1)[0])

    def _text(self) -> str:
        length = self._length()
        self._at += length
        return self._content[self._at - length : self._at].decode()

    def _numbers(self, marker: str, size: int) -> Any:
        dtype = np.dtype(_UBJSON_DTYPES[marker])
        numbers = np.frombuffer(self._content, dtype, size, self._at)
        self._at += size * dtype.itemsize
        return numbers.astype(dtype.newbyteorder("="))


_VERSION = [2, 1, 0]  # of the format, which later versions read
_FORBIDDEN = "[]<"  # in names of columns, by XGBoost itself
_TYPES = {"float", "int", "i", "q", "c"}
_NO_PARENT = (1 << 31) - 1
_MAX_TREES = 10_000  # XGBoost needs about 5 KB for each while it reads them
_MAX_STATISTIC = 1e30
_MAX_WEIGHT = 1e4
_MAX_CATEGORY = 1 << 24
_MAX_SET_BYTES = 32 << 20  # XGBoost stores a set of categories as bits up to its largest one

_REALS = {"drop_weight", "threshold", "gain", "cover"}
_FLAGS = ("categorical", "default_left")
_OF_NODES = {
    "left": "left_children",
    "right": "right_children",
    "feature": "split_indices",
    "threshold": "split_conditions",
    "categorical": "split_type",
    "default_left": "default_left",
    "gain": "loss_changes",
    "cover": "sum_hessian",
}
_DTYPES: dict[str, Any] = {
    **dict.fromkeys(("split_conditions", "loss_changes", "sum_hessian"), np.float32),
    **dict.fromkeys(("split_type", "default_left"), np.uint8),
}
_KEYS_OF_TREE = {
    *_OF_NODES.values(),
    *("base_weights", "parents", "id", "tree_param"),
    *("categories", "categories_nodes", "categories_segments", "categories_sizes"),
}

#: Objectives of the models that a file may contain.
_OBJECTIVES = ("binary:logistic", "reg:squarederror")


@dataclass(frozen=True, eq=False)
class XGBoostTrees:
    """Trees of a logistic model of two classes, or of a model of real numbers.

    All arrays are vectors of int64 or float64. Arrays of nodes contain those of all trees, one tree after the other.

    Attributes
    ----------
    n_columns : int
    feature_names, feature_types : array of text or None
        None if the columns have no names or types.
    is_regression : bool
        Whether the model is one of real numbers.
    base_score : float
        Probability, or prediction, before the first tree.
    trees_per_round : int
    values : ColumnCategories
    n_nodes : array of shape (n_trees,)
    drop_weight : array of shape (n_trees,) or (0,)
        Weights of the trees of a model with dropout (``booster="dart"``).
    left, right, feature, threshold, categorical, default_left : array of shape (n_nodes,)
        Children by their number in the tree, -1 at a leaf; column; the smallest value that goes right, or the value of
        a leaf; 1 if the split is one of categories; 1 if missing values go left.
    gain, cover : array of shape (n_nodes,)
        For feature importances and contributions of features.
    set_size : array of shape (n_categorical_splits,)
        Size of the set of categories that go right, for each split of categories.
    categories : array of shape (sum of set_size,)
    """

    n_columns: int
    feature_names: NDArray[np.str_] | None
    feature_types: NDArray[np.str_] | None
    is_regression: bool
    base_score: float
    trees_per_round: int
    values: ColumnCategories
    n_nodes: Integers
    drop_weight: Reals
    left: Integers
    right: Integers
    feature: Integers
    threshold: Reals
    categorical: Integers
    default_left: Integers
    gain: Reals
    cover: Reals
    set_size: Integers
    categories: Integers

    @classmethod
    def array_names(cls) -> list[str]:
        """Return the names of the arrays of numbers."""
        return [one.name for one in fields(cls)][7:]

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return self.n_nodes.size // self.trees_per_round

    # -------------------------------------------------------------------------------------------------------- check

    def check(self) -> None:
        """Raise InvalidTreesError unless every tree is a binary tree whose numbers XGBoost may use as indices."""
        names = self.array_names()
        integers = [name for name in names if name not in _REALS]
        check_numbers(vars(self), integers=integers, reals=[name for name in names if name in _REALS])
        self._check_scalars_and_columns()
        check_sizes(self.n_nodes, self.left.size, _MAX_TREES)
        per_round = self.trees_per_round
        is_divisor = isinstance(per_round, int) and per_round >= 1 and self.n_nodes.size % per_round == 0
        require(is_divisor, "the number of trees in a round is out of range")
        require(self.drop_weight.size in {0, self.n_nodes.size}, "drop_weight does not have a number for each tree")
        check_within(np.abs(self.drop_weight), 0, _MAX_WEIGHT, "a weight of a tree")
        for name in _OF_NODES:
            require(getattr(self, name).size == self.left.size, f"{name} does not have a number for each node")
        for name in _FLAGS:
            check_within(getattr(self, name), 0, 2, name)
        check_within(self.feature, 0, self.n_columns, "a column")
        with np.errstate(over="ignore"):
            require(np.all(self.threshold.astype(np.float32) == self.threshold), "a threshold has double precision")
        check_leaf_values(self.threshold[self.left < 0])
        for name in ("gain", "cover"):
            check_within(np.abs(getattr(self, name)), 0, 2 * _MAX_STATISTIC, name)
        check_structure(self.n_nodes, self.left, self.right)
        self._check_sets()
        self.values.check(self.n_columns)

    def _check_scalars_and_columns(self) -> None:
        n_columns = self.n_columns
        require(isinstance(n_columns, int) and 0 < n_columns <= MAX_COLUMNS, "the number of columns is out of range")
        require(isinstance(self.is_regression, bool), "it is not said whether the model is one of real numbers")
        low, high = (-1e30, 1e30) if self.is_regression else (0.0, 1.0)
        require(isinstance(self.base_score, float) and low < self.base_score < high, "the base score is out of range")
        check_names(self.feature_names, n_columns, _FORBIDDEN)
        types = self.feature_types
        if types is not None:
            is_vector = isinstance(types, np.ndarray) and types.dtype.kind == "U" and types.shape == (n_columns,)
            require(is_vector and set(types.tolist()) <= _TYPES, "feature_types is not one known type for each column")

    def _check_sets(self) -> None:
        require(not np.any(self.categorical[self.left < 0]), "a leaf has categories")
        require(self.set_size.size == self.categorical.sum(), "the sets of categories are not those of the splits")
        check_within(self.set_size, 1, self.categories.size + 1, "the size of a set of categories")
        require(self.set_size.sum() == self.categories.size, "the sets of categories do not sum to their number")
        check_within(self.categories, 0, _MAX_CATEGORY, "a category")
        if self.set_size.size:
            largest = np.maximum.reduceat(self.categories, np.cumsum(self.set_size) - self.set_size)
            n_bytes = 4 * int((largest // 32 + 1).sum())
            require(
                n_bytes <= _MAX_SET_BYTES + self.categories.nbytes,
                f"its sets of categories would take {n_bytes} bytes; number frequent categories first, or group rare "
                "ones",
            )

    # -------------------------------------------------------------------------------------------------------- write

    def to_content(self) -> bytearray:
        """Return the trees, which must have been checked, in XGBoost's format, without names and types of columns."""
        n_trees = self.n_nodes.size
        model: dict[str, Any] = {
            "gbtree_model_param": {"num_parallel_tree": str(self.trees_per_round), "num_trees": str(n_trees)},
            "iteration_indptr": list(range(0, n_trees + 1, self.trees_per_round)),
            "tree_info": [0] * n_trees,
            "trees": _TreeSequence(self),
        }
        if self.values.kind.size:
            model = {"cats": self.values.to_dict(), **model}
        booster: dict[str, Any] = {"model": model, "name": "gbtree"}
        if self.drop_weight.size:
            booster = {"gbtree": booster, "name": "dart", "weight_drop": self.drop_weight.tolist()}
        return to_ubjson(
            {
                "learner": {
                    "attributes": {},
                    "feature_names": [],
                    "feature_types": [],
                    "gradient_booster": booster,
                    "learner_model_param": {
                        "base_score": str(np.float32(self.base_score)),
                        "boost_from_average": "1",
                        "num_class": "0",
                        "num_feature": str(self.n_columns),
                        "num_target": "1",
                    },
                    "objective": {"name": _OBJECTIVES[self.is_regression], "reg_loss_param": {"scale_pos_weight": "1"}},
                },
                "version": _VERSION,
            }
        )

    # --------------------------------------------------------------------------------------------------------- read

    @classmethod
    def from_content(cls, content: bytes) -> Self:
        """Return the trees of what XGBoost wrote.

        Raises
        ------
        InvalidTreesError
            If they are of a kind that a model file does not support.
        """
        learner = from_ubjson(content)["learner"]
        objective, entries = learner["objective"]["name"], learner["learner_model_param"]
        require(int(entries["num_class"]) == 0, "it has more than two classes")
        require(objective in _OBJECTIVES, "its objective is neither 'binary:logistic' nor 'reg:squarederror'")
        require(int(entries["num_target"]) == 1, "it has several targets")
        booster, drop_weight = learner["gradient_booster"], np.zeros(0)
        require(booster["name"] in {"gbtree", "dart"}, "it does not consist of trees (booster='gblinear')")
        if booster["name"] == "dart":
            booster, drop_weight = booster["gbtree"], np.array(booster["weight_drop"], dtype=np.float64)
        model = booster["model"]
        _refuse_unknown(model, {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"})
        require(not any(model["tree_info"]), "it has trees of several targets")
        per_round = int(model["gbtree_model_param"]["num_parallel_tree"])
        in_rounds = model["iteration_indptr"] == list(range(0, len(model["trees"]) + 1, per_round))
        require(in_rounds, "its rounds have different numbers of trees")
        trees = [_parse_tree(tree) for tree in model["trees"]]
        require(trees, "there are no trees")
        names, types = (np.array(learner[key]) if learner[key] else None for key in ("feature_names", "feature_types"))
        of_trees = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
        base_score = float(np.float32(entries["base_score"].strip("[]")))
        n_columns = int(entries["num_feature"])
        values = ColumnCategories.from_dict(model.get("cats") or {"enc": []})
        result = cls(
            n_columns,
            names,
            types,
            objective == _OBJECTIVES[1],
            base_score,
            per_round,
            values,
            drop_weight=drop_weight,
            **of_trees,
        )
        result.check()
        return result

    def equals(self, other: Self) -> bool:
        """Return whether all numbers are equal, names and types of columns aside."""
        names = {*vars(self)} - {"feature_names", "feature_types", "values"}
        equal = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)
        return equal and self.values.equals(other.values)


class _TreeSequence(Sequence[dict[str, Any]]):
    """The trees in XGBoost's format, each made when it is asked for."""

    def __init__(self, trees: XGBoostTrees) -> None:
        self._trees = trees
        self._ends = np.concatenate(([0], np.cumsum(trees.n_nodes)))
        self._sets = np.concatenate(([0], np.cumsum(trees.categorical)))
        self._categories = np.concatenate(([0], np.cumsum(trees.set_size)))

    def __len__(self) -> int:
        return int(self._trees.n_nodes.size)

    def __getitem__(self, number: Any) -> Any:
        if number >= len(self):
            raise IndexError(number)
        trees = self._trees
        begin, end = self._ends[number : number + 2].tolist()
        left, right = trees.left[begin:end], trees.right[begin:end]
        parents = np.full(end - begin, _NO_PARENT)
        inner = np.flatnonzero(left >= 0)
        parents[left[inner]] = parents[right[inner]] = inner
        sets = slice(*self._sets[[begin, end]].tolist())
        sizes = trees.set_size[sets]
        first, last = self._categories[[sets.start, sets.stop]].tolist()
        of_nodes = {theirs: getattr(trees, name)[begin:end] for name, theirs in _OF_NODES.items()}
        return {
            "base_weights": np.zeros(end - begin, dtype=np.float32),
            "categories": trees.categories[first:last].astype(np.int32),
            "categories_nodes": np.flatnonzero(trees.categorical[begin:end]).astype(np.int32),
            "categories_segments": np.cumsum(sizes) - sizes,
            "categories_sizes": sizes,
            "id": number,
            "parents": parents.astype(np.int32),
            **{theirs: array.astype(_DTYPES.get(theirs, np.int32)) for theirs, array in of_nodes.items()},
            "tree_param": {
                "num_deleted": "0",
                "num_feature": str(trees.n_columns),
                "num_nodes": str(end - begin),
                "size_leaf_vector": "1",
            },
        }


def _refuse_unknown(entries: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(entries) - known)
    require(not unknown, f"this version of fairtransport does not know {', '.join(unknown)} of XGBoost's format")


def _parse_tree(tree: dict[str, Any]) -> dict[str, NDArray[Any]]:
    _refuse_unknown(tree, _KEYS_OF_TREE)
    require(int(tree["tree_param"]["size_leaf_vector"]) <= 1, "it has leaves of several numbers")
    result: dict[str, NDArray[Any]] = {}
    for name, theirs in _OF_NODES.items():
        result[name] = np.asarray(tree[theirs]).astype(np.float64 if name in _REALS else np.int64)
    for name in ("gain", "cover"):
        result[name] = np.nan_to_num(result[name]).clip(-_MAX_STATISTIC, _MAX_STATISTIC)
    result["threshold"][result["categorical"] == 1] = 0.0  # has no meaning
    result["set_size"] = np.asarray(tree["categories_sizes"], dtype=np.int64)
    result["categories"] = np.asarray(tree["categories"], dtype=np.int64)
    if int(tree["tree_param"]["num_deleted"]):
        result = _without_deleted_nodes(result, np.asarray(tree["categories_nodes"]))
    return {"n_nodes": np.array([result["left"].size]), **result}


def _without_deleted_nodes(tree: dict[str, NDArray[Any]], set_nodes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the tree of the nodes that pruning has left, numbered level by level."""
    order = [0]
    for node in order:
        if tree["left"][node] >= 0:
            order += [int(tree["left"][node]), int(tree["right"][node])]
    numbers = np.full(tree["left"].size + 1, -1)  # the last is for the child -1
    numbers[order] = np.arange(len(order))
    result = {name: tree[name][order] for name in _OF_NODES}
    result["left"], result["right"] = numbers[result["left"]], numbers[result["right"]]
    sets = dict(zip(set_nodes.tolist(), np.split(tree["categories"], np.cumsum(tree["set_size"])), strict=False))
    kept = [sets[node] for node in order if node in sets]
    result["set_size"] = np.array([one.size for one in kept], dtype=np.int64)
    result["categories"] = np.concatenate([*kept, np.zeros(0, dtype=np.int64)])
    return result
