"""Trees of any library as arrays of nodes: checked, and scored by one compiled loop."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn

import narwhals as nw
import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_array, check_is_fitted

from fairtransport.transport.kernels.trees import add_trees, sigmoids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport._arrays import Floats, Ints

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
        """Whether the library reads numbers of 32 bits."""
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
    trees: Trees, classes: NDArray[Any] | None, names: NDArray[Any] | None, categories: Mapping[int, tuple[Any, ...]]
) -> Any:
    """Return the estimator of checked trees: a classifier where there are classes."""
    model: Any = TreeRegressor() if classes is None else TreeClassifier()
    model.trees_, model.n_features_in_, model.column_categories_ = trees, trees.n_columns, dict(categories)
    if classes is not None:
        model.classes_ = classes
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    return model
