"""Trees of LightGBM as arrays: read from the text that LightGBM writes, checked, and written as such a text."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport.persistence.trees._checks import (
    MAX_COLUMNS,
    check_leaf_values,
    check_names,
    check_numbers,
    check_sizes,
    check_structure,
    check_within,
    positions_in_trees,
    require,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Reals = NDArray[np.float64]


#: Objectives of the models that a file may contain, as LightGBM writes them.
_OBJECTIVES = ("binary sigmoid:1", "regression")
_FORBIDDEN = ' ",:[]{}'  # in names of columns, by LightGBM itself
_MAX_LEAVES = 131_072  # of a tree, by LightGBM itself
_MAX_ALL_LEAVES = 2_000_000  # while LightGBM reads them, their text is in memory, too
_MAX_TREES = 50_000  # LightGBM needs about 1 KB for each
_MAX_COUNT = 1 << 31
_MAX_GAIN = 1e30

_HEADER = {
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective"),
    *("feature_names", "feature_infos", "monotone_constraints", "tree_sizes"),
}
_IGNORED = {"leaf_weight", "internal_value", "internal_weight"}
# Names of LightGBM for the arrays with one number for each split, and with one for each leaf.
_OF_SPLITS = {
    "feature": "split_feature",
    "gain": "split_gain",
    "threshold": "threshold",
    "decision": "decision_type",
    "left": "left_child",
    "right": "right_child",
    "count": "internal_count",
}
_OF_LEAVES = {"leaf_value": "leaf_value", "leaf_count": "leaf_count"}
_REALS = {"gain", "threshold", "leaf_value", "shrinkage"}


@dataclass(frozen=True, eq=False)
class LightGBMTrees:
    """Trees of a logistic model of two classes, or of a model of real numbers.

    All arrays are vectors of int64 or float64. Arrays of splits and leaves contain those of all trees, one tree after
    the other; a tree of n leaves has n - 1 splits.

    Attributes
    ----------
    n_columns : int
    feature_names : array of text or None
        None if the columns have no names.
    is_regression : bool
        Whether the model is one of real numbers.
    n_leaves, shrinkage : array of shape (n_trees,)
    feature, threshold, decision, left, right : array of shape (n_splits,)
        Column; the largest value that goes left, which may be infinite (0 at a split of categories); 1 for a split of
        categories, plus 2 if missing values go left, plus 0, 4 or 8 if none, zero or NaN is missing; number of the
        split or, if negative, of the leaf (-1 is leaf 0) on either side.
    gain, count : array of shape (n_splits,)
        For feature importances and contributions of features.
    leaf_value, leaf_count : array of shape (n_leaves,)
    n_words : array of shape (n_categorical_splits,)
        Words of the set of categories that go left, for each split of categories.
    words : array of shape (sum of n_words,)
        Each a set of 32 categories as bits.
    """

    n_columns: int
    feature_names: NDArray[np.str_] | None
    is_regression: bool
    n_leaves: Integers
    shrinkage: Reals
    feature: Integers
    threshold: Reals
    decision: Integers
    left: Integers
    right: Integers
    gain: Reals
    count: Integers
    leaf_value: Reals
    leaf_count: Integers
    n_words: Integers
    words: Integers

    @classmethod
    def array_names(cls) -> list[str]:
        """Return the names of the arrays of numbers."""
        return [one.name for one in fields(cls)][3:]

    # -------------------------------------------------------------------------------------------------------- check

    def check(self) -> None:
        """Raise InvalidTreesError unless every tree is a binary tree whose numbers LightGBM may use as indices."""
        require(isinstance(self.is_regression, bool), "it is not said whether the model is one of real numbers")
        names = self.array_names()
        reals = [name for name in names if name in _REALS]
        check_numbers(vars(self), integers=[name for name in names if name not in _REALS], reals=reals)
        n_columns = self.n_columns
        require(isinstance(n_columns, int) and 0 < n_columns <= MAX_COLUMNS, "the number of columns is out of range")
        check_names(self.feature_names, n_columns, _FORBIDDEN)
        check_sizes(self.n_leaves, self.leaf_value.size, _MAX_TREES)
        require(self.leaf_value.size <= _MAX_ALL_LEAVES, f"it has more than {_MAX_ALL_LEAVES} leaves")
        check_within(self.n_leaves, 1, _MAX_LEAVES + 1, "a number of leaves")
        n_splits = self.leaf_value.size - self.n_leaves.size
        for name in _OF_SPLITS:
            require(getattr(self, name).size == n_splits, f"{name} does not have a number for each split")
        require(self.leaf_count.size == self.leaf_value.size, "leaf_count does not have a number for each leaf")
        require(self.shrinkage.size == self.n_leaves.size, "shrinkage does not have a number for each tree")
        check_within(self.feature, 0, n_columns, "a column")
        check_within(self.decision, 0, 12, "a kind of decision")
        check_within(self.count, 0, _MAX_COUNT, "a count")
        check_within(self.leaf_count, 0, _MAX_COUNT, "a count")
        check_within(np.abs(self.gain), 0, 2 * _MAX_GAIN, "a gain")
        check_within(np.abs(self.shrinkage), 0, _MAX_GAIN, "a shrinkage")
        check_leaf_values(self.leaf_value)
        require(self.n_words.size == (self.decision & 1).sum(), "the sets of categories are not those of the splits")
        check_within(self.n_words, 1, self.words.size + 1, "the size of a set of categories")
        require(self.n_words.sum() == self.words.size, "the sets of categories do not sum to their number")
        check_within(self.words, 0, 1 << 32, "a set of categories")
        self._check_structure()

    def _check_structure(self) -> None:
        """Check the children, with the leaves of each tree numbered after its splits."""
        n_splits = self.n_leaves - 1
        sizes = self.n_leaves + n_splits
        of_leaves = np.repeat(n_splits, n_splits)
        is_split = positions_in_trees(sizes) < np.repeat(n_splits, sizes)
        children = []
        for child in (self.left, self.right):
            check_within(child, -_MAX_LEAVES, _MAX_LEAVES, "a child")
            require(np.all(child < of_leaves), "a child is out of range")
            numbers = np.full(is_split.size, -1)
            numbers[is_split] = np.where(child < 0, of_leaves - 1 - child, child)
            children.append(numbers)
        check_structure(sizes, *children)

    # -------------------------------------------------------------------------------------------------------- write

    def to_text(self) -> bytes:
        """Return the trees, which must have been checked, in LightGBM's format."""
        names = self._names()
        head = {
            "version": "v4",
            "num_class": 1,
            "num_tree_per_iteration": 1,
            "label_index": 0,
            "max_feature_idx": self.n_columns - 1,
            "objective": _OBJECTIVES[self.is_regression],
            "feature_names": " ".join(names),
            "feature_infos": " ".join(["none"] * len(names)),
        }
        out = io.BytesIO()
        out.write(b"tree\n" + _lines(head) + b"\n")
        split = leaf = category_split = word = 0
        for number, n_leaves in enumerate(self.n_leaves.tolist()):
            splits, leaves = slice(split, split + n_leaves - 1), slice(leaf, leaf + n_leaves)
            categorical = self.decision[splits] & 1 == 1
            thresholds = self.threshold[splits].copy()
            thresholds[categorical] = np.arange(categorical.sum())  # of categories: the number of the set
            n_words = self.n_words[category_split : category_split + int(categorical.sum())]
            words = self.words[word : word + int(n_words.sum())]
            tree: dict[str, object] = {"Tree": number, "num_leaves": n_leaves, "num_cat": n_words.size}
            tree |= {theirs: _join(getattr(self, name)[splits].tolist()) for name, theirs in _OF_SPLITS.items()}
            tree |= {theirs: _join(getattr(self, name)[leaves].tolist()) for name, theirs in _OF_LEAVES.items()}
            tree["threshold"] = _join(thresholds.tolist())
            tree["split_gain"] = " ".join(f"{gain:.6g}" for gain in self.gain[splits].tolist())
            if n_words.size:
                tree["cat_boundaries"] = _join([0, *np.cumsum(n_words).tolist()])
                tree["cat_threshold"] = _join(words.tolist())
            tree |= {"is_linear": 0, "shrinkage": repr(float(self.shrinkage[number]))}
            out.write(_lines(tree) + b"\n\n")
            split, leaf = splits.stop, leaves.stop
            category_split, word = category_split + n_words.size, word + words.size
        out.write(b"end of trees\n")
        return out.getvalue()

    def _names(self) -> list[str]:
        if self.feature_names is None:
            return [f"Column_{number}" for number in range(self.n_columns)]
        names: list[str] = self.feature_names.tolist()
        return names

    # --------------------------------------------------------------------------------------------------------- read

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the trees of a text that LightGBM wrote.

        Raises
        ------
        InvalidTreesError
            If they are of a kind that a model file does not support.
        """
        head, _, rest = text.partition("\nTree=")
        header = _entries(head.removeprefix("tree\n"))
        require(header.get("num_class") == header.get("num_tree_per_iteration") == "1", "it has more than two classes")
        require("average_output" not in header, "it is a random forest (boosting_type='rf')")
        objective = header.get("objective")
        require(objective in _OBJECTIVES, "its objective is neither 'binary' with sigmoid=1 nor 'regression'")
        _refuse_unknown(header, _HEADER)
        blocks = rest.partition("\nend of trees")[0].split("\nTree=")
        trees = [_parse_tree(block.partition("\n")[2]) for block in blocks]
        names = header["feature_names"].split(" ")
        joined: dict[str, Any] = {
            name: np.concatenate([tree[name] for tree in trees]).astype(np.float64 if name in _REALS else np.int64)
            for name in cls.array_names()
        }
        joined["gain"] = np.nan_to_num(joined["gain"]).clip(-_MAX_GAIN, _MAX_GAIN)
        result = cls(len(names), np.array(names), objective == _OBJECTIVES[1], **joined)
        if names == [f"Column_{number}" for number in range(len(names))]:
            result = cls(len(names), None, objective == _OBJECTIVES[1], **joined)
        result.check()
        return result

    def equals(self, other: Self) -> bool:
        """Return whether all numbers and names are equal."""
        return all(np.array_equal(value, getattr(other, name)) for name, value in vars(self).items())


def _entries(block: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for line in block.split("\n"):
        name, _, value = line.partition("=")
        require(name not in entries or not name, f"{name} occurs twice")
        entries[name] = value
    entries.pop("", None)
    return entries


def _refuse_unknown(entries: Iterable[str], known: set[str]) -> None:
    unknown = sorted(set(entries) - known)
    require(not unknown, f"this version of fairtransport does not know {', '.join(unknown)} of LightGBM's format")


def _parse_tree(block: str) -> dict[str, NDArray[Any]]:
    entries = _entries(block)
    require(entries.get("is_linear", "0") == "0", "it has linear leaves (linear_tree=True)")
    known = {*_OF_SPLITS.values(), *_OF_LEAVES.values(), "num_leaves", "num_cat", "is_linear", "shrinkage"}
    _refuse_unknown(entries, {*known, *_IGNORED, "cat_boundaries", "cat_threshold"})
    tree: dict[str, Any] = {
        name: np.array(entries.get(theirs, "").split(), dtype=np.float64 if name in _REALS else np.int64)
        for name, theirs in {**_OF_SPLITS, **_OF_LEAVES}.items()
    }
    tree["n_leaves"] = np.array([int(entries["num_leaves"])])
    if not tree["leaf_count"].size:  # of a single leaf, in version 4.3
        tree["leaf_count"] = np.zeros(1, dtype=np.int64)
    tree["shrinkage"] = np.array([float(entries["shrinkage"])])
    categorical = tree["decision"] & 1 == 1
    in_order = np.array_equal(tree["threshold"][categorical], np.arange(int(entries["num_cat"])))
    require(in_order, "its sets of categories are not in the order of its splits")
    tree["threshold"][categorical] = 0.0
    tree["n_words"] = np.diff(np.array(entries.get("cat_boundaries", "0").split(), dtype=np.int64))
    tree["words"] = np.array(entries.get("cat_threshold", "").split(), dtype=np.int64)
    return tree


def _lines(entries: dict[str, object]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in entries.items()).encode()


def _join(numbers: list[Any]) -> str:
    return " ".join(map(repr, numbers))
