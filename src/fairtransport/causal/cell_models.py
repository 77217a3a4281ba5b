"""Models of the probability of each cell of a node given its causes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.special import softmax
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FEW_CELLS", "CellModel", "ForestCells", "MarginalCells", "MultinomialCells", "Trees"]

FEW_CELLS = 25
"""Up to so many cells are levels, not numbers."""

_TREES = 30
_LEAST_LEAF, _MOST_LEAF = 10, 200
_LEAST_ROWS, _MOST_ROWS = 2_000, 8_000  # that the splits of a tree are found on; all rows are counted in its leaves


class CellModel(Protocol):
    """Estimates the probability of each cell for rows of a design matrix."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of shape (n_rows, n_cells)."""


@dataclass(frozen=True, eq=False)
class MarginalCells:
    """The same probabilities of cells for every row."""

    shares: NDArray[np.float64]

    @classmethod
    def of(cls, located: NDArray[np.int64], n_cells: int) -> MarginalCells:
        """Count the rows of each cell."""
        counts = np.bincount(located, minlength=n_cells).astype(np.float64)
        return cls(counts / counts.sum())

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of shape (n_rows, n_cells)."""
        return np.broadcast_to(self.shares, (X.shape[0], self.shares.size))


@dataclass(frozen=True, eq=False)
class MultinomialCells:
    """Multinomial logistic regression of the cells.

    Parameters
    ----------
    weights : ndarray of shape (n_present, n_features)
    intercepts : ndarray of shape (n_present,)
    present : ndarray of shape (n_present,)
        Cells that have rows; the others have probability 0.
    n_cells : int
    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    present: NDArray[np.int64]
    n_cells: int

    @classmethod
    def of(cls, X: NDArray[np.float64], located: NDArray[np.int64], n_cells: int) -> MultinomialCells:
        """Fit the regression, on standardised features."""
        scaler = StandardScaler().fit(X)
        model = LogisticRegression(max_iter=300).fit(scaler.transform(X), located)
        weights, intercepts = model.coef_, model.intercept_
        if len(weights) == 1:  # two cells
            weights, intercepts = np.vstack([np.zeros_like(weights), weights]), np.array([0.0, intercepts[0]])
        weights = weights / scaler.scale_
        return cls(weights, intercepts - weights @ scaler.mean_, model.classes_.astype(np.int64), n_cells)

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of shape (n_rows, n_cells)."""
        shares = np.zeros((X.shape[0], self.n_cells))
        shares[:, self.present] = softmax(X @ self.weights.T + self.intercepts, axis=1)
        return shares


class Trees(NamedTuple):
    """Nodes of all trees of a forest, one after another.

    Parameters
    ----------
    feature, left, right : ndarray of shape (n_nodes,)
        Both children are -1 at a leaf, and come after their node otherwise.
    threshold : ndarray of shape (n_nodes,)
        Rows go left where the feature is not above it.
    roots : ndarray of shape (n_trees,)
    leaf : ndarray of shape (n_nodes,)
        Index of a leaf among all leaves; -1 for other nodes.
    shares : ndarray of shape (n_leaves, n_cells)
        Probabilities of the cells.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    roots: NDArray[np.int64]
    leaf: NDArray[np.int64]
    shares: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ForestCells:
    """Quantile regression forest (Meinshausen, 2006): mean over trees of the distribution within a row's leaf."""

    trees: Trees
    n_features: int

    @classmethod
    def of(
        cls,
        X: NDArray[np.float64],
        numbers: NDArray[np.float64],
        located: NDArray[np.int64],
        n_cells: int,
        random_state: int,
    ) -> ForestCells:
        """Find splits on some of the rows, and count all rows in the leaves."""
        n_rows = X.shape[0]
        some = min(n_rows, int(np.clip(n_rows // 4, _LEAST_ROWS, _MOST_ROWS)))
        leaf = int(np.clip(n_rows**0.6 / 3, _LEAST_LEAF, _MOST_LEAF) * some / n_rows)
        forest = RandomForestRegressor(
            _TREES,
            min_samples_leaf=max(5, min(leaf, some // 4)),
            max_features=max(1, -(-2 * X.shape[1] // 3)),
            max_samples=some,
            random_state=random_state,
        ).fit(X, _targets(numbers, located, n_cells))
        trees = [one.tree_ for one in forest.estimators_]
        sizes = np.array([tree.node_count for tree in trees])
        roots = np.cumsum(sizes) - sizes
        moved = np.repeat(roots, sizes)
        left, right, feature = (
            np.concatenate([getattr(tree, name) for tree in trees]).astype(np.int64)
            for name in ("children_left", "children_right", "feature")
        )
        inner = left >= 0
        leaves = np.where(inner, -1, np.cumsum(~inner) - 1)
        rows, counts = X.astype(np.float32), []
        for root, tree, size in zip(roots, trees, sizes, strict=True):
            own = leaves[root : root + size]
            first, n_leaves = own.max(initial=-1) - (own >= 0).sum() + 1, int((own >= 0).sum())
            reached = own[tree.apply(rows)] - first
            counts.append(np.bincount(reached * n_cells + located, minlength=n_leaves * n_cells))
        shares = np.concatenate(counts).reshape(-1, n_cells).astype(np.float32)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        nodes = Trees(
            feature=np.where(inner, feature, 0),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            left=np.where(inner, left + moved, -1),
            right=np.where(inner, right + moved, -1),
            roots=roots.astype(np.int64),
            leaf=leaves.astype(np.int64),
            shares=shares,
        )
        return cls(nodes, X.shape[1])

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of shape (n_rows, n_cells)."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"The causes have {X.shape[1]} features; the forest was fitted to {self.n_features}.")
        total = np.zeros((X.shape[0], self.trees.shares.shape[1]), dtype=np.float32)
        _add_leaf_shares(X.astype(np.float32), self.trees, total)
        return (total / np.float32(len(self.trees.roots))).astype(np.float64)


@cached_njit(nogil=True)
def _add_leaf_shares(X: Any, trees: Trees, total: Any) -> None:
    """Add the shares of each row's leaf in every tree to its total."""
    for row in range(X.shape[0]):
        for root in trees.roots:
            node = root
            while trees.left[node] >= 0:
                goes_left = X[row, trees.feature[node]] <= trees.threshold[node]
                node = trees.left[node] if goes_left else trees.right[node]
            leaf = trees.leaf[node]
            for cell in range(total.shape[1]):
                total[row, cell] += trees.shares[leaf, cell]


def _targets(numbers: NDArray[np.float64], located: NDArray[np.int64], n_cells: int) -> NDArray[np.float64]:
    """Return what trees split by: levels as indicators, or numbers with their absolute deviation, standardised."""
    known = np.isfinite(numbers)
    if n_cells <= FEW_CELLS:
        return (located[:, None] == np.arange(n_cells)).astype(np.float64)
    filled = np.where(known, numbers, np.median(numbers[known]))
    low, high = np.quantile(filled, [0.005, 0.995])
    clipped = np.clip(filled, low, high)
    parts = [clipped, np.abs(clipped - np.median(clipped))]
    if not known.all():
        parts.append((~known).astype(np.float64))
    return np.column_stack([part / max(float(part.std()), 1e-300) for part in parts])
