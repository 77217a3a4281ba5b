"""Checks of the arrays of boosted trees that both libraries share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# Limits of what costs more memory in a library than in the file: see `docs/model_files.md`.
MAX_COLUMNS = 100_000
MAX_CATEGORIES = 500_000  # of all columns together
_MAX_DEPTH = 1024  # libraries descend by recursion, and need the square of the depth for contributions of features
_MAX_VALUE = 1e30  # of a leaf: the sum over all trees is finite, in single precision too
_MAX_NAME = 1000


class InvalidTreesError(ValueError):
    """Trees that are inconsistent, or of a kind that a model file does not support; the message says what is wrong."""


def require(condition: object, reason: str) -> None:
    """Raise InvalidTreesError with this reason unless the condition holds."""
    if not condition:
        raise InvalidTreesError(reason)


def check_numbers(arrays: dict[str, Any], *, integers: Sequence[str], reals: Sequence[str]) -> None:
    """Check that each array is a vector of 64-bit integers or of 64-bit numbers, finite but for thresholds."""
    for names, dtype in ((integers, np.int64), (reals, np.float64)):
        for name in names:
            array = arrays[name]
            is_vector = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == dtype
            require(is_vector, f"{name} is not a vector of type {np.dtype(dtype).name}")
            if dtype is np.float64:
                require(not np.isnan(array).any(), f"{name} contains NaN")
                require(name == "threshold" or np.isfinite(array).all(), f"{name} is not finite")


def check_within(array: NDArray[Any], low: Any, high: Any, name: str) -> None:
    """Check that all numbers are at least ``low`` and less than ``high``."""
    require(np.all(array >= low) and np.all(array < high), f"{name} is out of range")


def check_leaf_values(values: NDArray[np.float64]) -> None:
    """Check that sums of leaf values stay finite."""
    require(np.all(np.abs(values) <= _MAX_VALUE), f"a leaf has a value beyond {_MAX_VALUE:g}")


def positions_in_trees(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each element within its tree, for trees of these sizes one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def check_sizes(sizes: NDArray[np.int64], total: int, max_trees: int) -> None:
    """Check the number of trees, and that their sizes are positive and sum to the total."""
    require(sizes.size > 0, "there are no trees")
    require(sizes.size <= max_trees, f"there are more than {max_trees} trees")
    check_within(sizes, 1, total + 1, "the size of a tree")
    require(sizes.sum() == total, "the sizes of the trees do not sum to the number of nodes or leaves")


def check_structure(sizes: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]) -> None:
    """Check that the nodes of each tree form a binary tree of limited depth."""
    inner = left >= 0
    require(np.array_equal(inner, right >= 0), "a node has one child")
    require(np.all(left[~inner] == -1) and np.all(right[~inner] == -1), "a leaf has children")
    starts = np.cumsum(sizes) - sizes
    first, size = (np.repeat(of_trees, sizes)[inner] for of_trees in (starts, sizes))
    own = np.flatnonzero(inner) - first
    for child in (left[inner], right[inner]):
        require(np.all(child > own) and np.all(child < size), "a child is out of range")
    children = np.full((2, left.size), -1)
    children[:, inner] = left[inner] + first, right[inner] + first
    n_parents = np.bincount(children[:, inner].ravel(), minlength=left.size)
    n_parents[starts] += 1
    require(np.all(n_parents == 1), "a node is not the child of one node")
    # Every node but the roots has one parent with a smaller number, so all nodes are reached.
    level = starts
    for _ in range(_MAX_DEPTH):
        level = children[:, level].ravel()
        level = level[level >= 0]
        if not level.size:
            return
    raise InvalidTreesError(f"a tree is deeper than {_MAX_DEPTH} levels")


def check_names(names: Any, n_columns: int, forbidden: str) -> None:
    """Check that this is None, or one distinct name for each column that a library can store."""
    if names is None:
        return
    is_vector = isinstance(names, np.ndarray) and names.dtype.kind == "U" and names.shape == (n_columns,)
    require(is_vector, "feature_names is not an array of text with a name for each column")
    texts = names.tolist()
    require(len(set(texts)) == n_columns, "two columns have one name")
    require(
        all(0 < len(text) <= _MAX_NAME and text.isprintable() and not set(forbidden) & set(text) for text in texts),
        f"a column has a name that is empty, longer than {_MAX_NAME} characters, or with characters that cannot be "
        f"printed or one of {' '.join(forbidden)}",
    )


# Categories of the columns of a table, which XGBoost stores with its trees since version 3.1.

_TEXT = 0
# Types of categories that are numbers, by the number that XGBoost gives them.
_DTYPES: dict[int, Any] = {9: np.int8, 10: np.uint8, 11: np.int16, 13: np.int32, 15: np.int64}
_FLIP_SIGN = bytes((byte + 128) % 256 for byte in range(256))


@dataclass(frozen=True, eq=False)
class ColumnCategories:
    """Categories of all columns; all arrays are vectors of int64.

    Attributes
    ----------
    kind, n_values : array of shape (n_columns,) or (0,)
        Type and number of the categories of each column: 0 is text. Without elements if no column has categories.
    numbers : array
        Categories that are numbers.
    lengths, content : array
        Categories that are text: the length of each, and the bytes of all.
    """

    kind: Integers
    n_values: Integers
    numbers: Integers
    lengths: Integers
    content: Integers

    @classmethod
    def array_names(cls) -> list[str]:
        """Return the names of the arrays."""
        return [one.name for one in fields(cls)]

    def check(self, n_columns: int) -> None:
        """Raise InvalidTreesError unless the arrays agree with each other and with the number of columns."""
        check_numbers(vars(self), integers=self.array_names(), reals=())
        require(self.kind.size in {0, n_columns}, "categories are not those of the columns")
        require(self.n_values.size == self.kind.size, "categories are not those of the columns")
        require(set(self.kind.tolist()) <= {_TEXT, *_DTYPES}, "categories are of an unknown type")
        check_within(self.n_values, 0, MAX_CATEGORIES + 1, "a number of categories")
        require(self.n_values.sum() <= MAX_CATEGORIES, f"columns have more than {MAX_CATEGORIES} categories")
        text = self.kind == _TEXT
        require(self.n_values[text].sum() == self.lengths.size, "categories do not sum to their number")
        require(self.n_values[~text].sum() == self.numbers.size, "categories do not sum to their number")
        check_within(self.lengths, 0, self.content.size + 1, "the length of a category")
        require(self.lengths.sum() == self.content.size, "lengths of categories do not sum to their bytes")
        check_within(self.content, 0, 256, "a byte of a category")
        for kind, numbers in zip(self.kind[~text].tolist(), _split(self.numbers, self.n_values[~text]), strict=True):
            limits = np.iinfo(_DTYPES[kind])
            require(np.all((numbers >= limits.min) & (numbers <= limits.max)), "a category is out of range")

    def to_dict(self) -> dict[str, Any]:
        """Return the categories as XGBoost stores them."""
        text = self.kind == _TEXT
        lengths = _split(self.lengths, self.n_values[text])
        contents = iter(_split(self.content, np.array([length.sum() for length in lengths], dtype=np.int64)))
        of_texts, numbers = iter(lengths), iter(_split(self.numbers, self.n_values[~text]))
        columns: list[dict[str, Any]] = []
        orders = [np.zeros(0, dtype=np.int64)]
        for kind in self.kind.tolist():
            if kind == _TEXT:
                offsets = np.concatenate(([0], np.cumsum(next(of_texts))))
                content = next(contents).astype(np.uint8)
                orders.append(_order_of_texts(content.tobytes(), offsets.tolist()))
                kept = offsets if offsets.size > 1 else offsets[:0]
                columns.append({"offsets": kept.astype(np.int32), "values": content.view(np.int8)})
            else:
                values = next(numbers)
                orders.append(np.argsort(values, kind="stable"))
                columns.append({"type": kind, "values": values.astype(_DTYPES[kind])})
        return {
            "enc": columns,
            "feature_segments": np.concatenate(([0], np.cumsum(self.n_values))).astype(np.int32),
            "sorted_idx": np.concatenate(orders).astype(np.int32),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the categories that XGBoost stored."""
        kinds: list[int] = []
        n_values: list[int] = []
        numbers, lengths, contents = ([np.zeros(0, dtype=np.int64)] for _ in range(3))
        for column in stored["enc"]:
            if "offsets" in column:
                kinds.append(_TEXT)
                lengths.append(np.diff(column["offsets"]).astype(np.int64))
                contents.append(np.asarray(column["values"], dtype=np.int8).view(np.uint8).astype(np.int64))
                n_values.append(lengths[-1].size)
            else:
                require(column["type"] in _DTYPES, "it has categories of another type than text and integers")
                kinds.append(column["type"])
                numbers.append(np.asarray(column["values"], dtype=np.int64))
                n_values.append(numbers[-1].size)
        if not any(n_values):
            kinds, n_values = [], []
        counts = (np.array(part, dtype=np.int64) for part in (kinds, n_values))
        result = cls(*counts, *(np.concatenate(parts) for parts in (numbers, lengths, contents)))
        result.check(len(kinds))
        if kinds:
            order = result.to_dict()["sorted_idx"]
            require(np.array_equal(order, stored["sorted_idx"]), "its categories have another order than expected")
        return result

    def equals(self, other: Self) -> bool:
        """Return whether all categories are equal."""
        return all(np.array_equal(value, getattr(other, name)) for name, value in vars(self).items())


def _split(array: Integers, sizes: Integers) -> list[Integers]:
    """Split into parts of these sizes, which sum to the size of the array."""
    return np.split(array, np.cumsum(sizes)[:-1]) if sizes.size else []


def _order_of_texts(content: bytes, offsets: list[int]) -> Integers:
    """Return the order of categories by their bytes, which XGBoost compares as signed numbers."""
    signed = content.translate(_FLIP_SIGN)
    texts = [signed[begin:end] for begin, end in pairwise(offsets)]
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
