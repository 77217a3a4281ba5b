"""Checks of the arrays of boosted trees that both libraries share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "MAX_CATEGORIES",
    "MAX_COLUMNS",
    "InvalidTreesError",
    "check_leaf_values",
    "check_names",
    "check_numbers",
    "check_sizes",
    "check_structure",
    "check_within",
    "positions_in_trees",
    "require",
]

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
    """Check that the nodes of each tree form a binary tree of limited depth.

    Parameters
    ----------
    sizes : array of shape (n_trees,)
        Nodes of each tree, checked by `check_sizes`.
    left, right : array of shape (n_nodes,)
        Children of each node by their number within the tree, which is larger than that of the node; -1 at a leaf.
    """
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
