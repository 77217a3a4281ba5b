"""Parts that estimators share: threads, folds, calls with groups, scores of named columns, streaming parameters."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import ClassifierMixin, RegressorMixin, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._validation import check_count
from fairtransport.groups import GroupPolicy, Groups, check_policy

# Stored numbers of a table from which on all threads are used: chosen, not measured. On a busy machine threads took 10
# times the processor time at 1 million; products of larger tables are long enough to be shared.
MANY_NUMBERS = 5_000_000
_limits: list[Any] = []  # one for each training under way; the first has changed that of the process
_lock = threading.Lock()


@contextmanager
def few_threads(X: Any, *, openmp: bool = False) -> Iterator[None]:
    """Train on a table that is not large with one thread of BLAS and, where trees are ours, of OpenMP.

    In small products threads mostly wait for each other. They do so without sleeping: beside other busy processes a
    training took ten times the processor time. The limit of BLAS is that of the process, until the last training ends.
    """
    if stored_numbers(X) > MANY_NUMBERS:
        yield
        return
    libraries = _libraries_with_threads()
    with _lock:
        _limits.append(None if _limits else libraries.limit(limits=1, user_api="blas"))
    try:
        with libraries.limit(limits=1, user_api="openmp") if openmp else nullcontext():  # of this thread alone
            yield
    finally:
        with _lock:
            limit = _limits.pop()
            if limit is not None:
                limit.restore_original_limits()


def stored_numbers(X: Any) -> int:
    """Return rows times columns of a table, and the number of stored entries of a sparse matrix; 0 without a shape."""
    return int(X.nnz) if sparse.issparse(X) else math.prod(getattr(X, "shape", (0,)))


@cache
def _libraries_with_threads() -> ThreadpoolController:
    return ThreadpoolController()


class BinaryClassifierMixin(ClassifierMixin):
    """A classifier of two classes; it stands before other bases, whose tags it completes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class GroupedClassifierMixin(BinaryClassifierMixin):
    """A classifier of two classes whose ``predict_proba`` may need groups."""

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> NDArray[Any]:
        """Return class 1 where its probability is above one half; see ``predict_proba`` for the parameters."""
        options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
        above = self.predict_proba(X, **options)[:, 1] > 0.5
        return np.asarray(self.classes_[above.astype(int)])

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))


class GroupedRegressorMixin(RegressorMixin):
    """A regressor whose ``predict`` may need groups."""

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination (R2) of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))


# Calls of ``fit`` and of predictions with ``sensitive_features``, for estimators and for pipelines of them.


def last_step(model: Any) -> tuple[str, Any]:
    """Return the prefix of the parameters of a pipeline's last step, and that step; ``""`` and the model for others."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix, model


def fit_model(
    model: Any, X: Any, y: Any, *, sensitive_features: Any, strata: Any = None, sample_weight: Any = None
) -> Any:
    """Fit a model with the groups and, if given, strata and weights; a pipeline passes them to its last step."""
    prefix, last = last_step(model)
    if not _has_parameter(last.fit, "sensitive_features", default=True):
        raise TypeError(
            f"{type(last).__name__}.fit takes no sensitive_features, so it cannot be trained towards parity; use an "
            "estimator of this package, or wrap it in QuantileRepairClassifier."
        )
    if strata is not None and not _has_parameter(last.fit, "strata", default=True):
        raise TypeError(f"{type(last).__name__}.fit takes no strata, so it cannot be trained for conditional parity.")
    optional = {"strata": strata, "sample_weight": sample_weight}
    options = {f"{prefix}sensitive_features": sensitive_features}
    options |= {prefix + name: value for name, value in optional.items() if value is not None}
    with config_context(enable_metadata_routing=False):  # options are passed by step name
        return model.fit(X, y, **options)


def takes(model: Any, name: str) -> bool:
    """Return whether a model takes ``sensitive_features``, or ``strata``, at prediction."""
    last = last_step(model)[1]
    return _has_parameter(last.predict if is_regressor(last) else last.predict_proba, name)


def model_scores(
    model: Any, X: Any, *, sensitive_features: Any = None, strata: Any = None, unknown_group: str = "error"
) -> Floats:
    """Return a regressor's predictions, or a classifier's probabilities of class 1, with groups and strata if given."""
    X = as_features(X, model)
    given = {"sensitive_features": sensitive_features, "strata": strata}
    options = {name: value for name, value in given.items() if value is not None}
    if sensitive_features is not None and unknown_group != "error":
        options["unknown_group"] = unknown_group
    with config_context(enable_metadata_routing=False):
        if is_regressor(last_step(model)[1]):
            return np.asarray(model.predict(X, **options), dtype=np.float64)
        return positive_scores(model.predict_proba(X, **options))


def as_features(X: Any, model: Any = None) -> Any:
    """Return a table whose numbers every library takes: nullable and Arrow columns of pandas become NumPy's.

    A table with the columns of a fitted model in another order raises ValueError, because not every library notices.
    """
    while isinstance(model, Pipeline):
        model = model.steps[0][1]
    names = None if type(model).__module__.startswith("sklearn.") else getattr(model, "feature_names_in_", None)
    given = getattr(X, "column_names", getattr(X, "columns", None))
    if names is not None and given is not None:
        fitted, found = [*map(str, names)], [*map(str, given)]
        if fitted != found and not set(fitted).isdisjoint(found):  # libraries invent names for arrays
            raise ValueError(
                "The feature names should match those that were passed during fit: X has other columns, or the same in "
                "another order. Pass X[list(model.feature_names_in_)]."
            )
    if not hasattr(X, "iloc"):
        return X
    own = {
        name: np.float64
        for name, kind in X.dtypes.items()
        if not isinstance(kind, np.dtype)
        and kind.kind in "biuf"
        and not hasattr(kind, "fill_value")  # of sparse columns
    }
    return X.astype(own) if own else X


_MOST_NAMED = 5  # columns in a message


@contextmanager
def naming_text_columns(X: Any) -> Iterator[None]:
    """Name the columns of a data frame that contain text where a conversion to numbers fails, and quote no cell."""
    try:
        yield
    except ValueError:
        names = _text_columns(X)
        if not names:
            raise
        others = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise ValueError(
            f"X has text in {say_columns(names[:_MOST_NAMED])}{others}. Encode it as numbers, in a pipeline for "
            "instance, or use fairtransport.tabular.TableModel, which takes raw tables."
        ) from None


def _text_columns(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that cannot be converted to numbers."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        return []
    names = []
    for column in frame.iter_columns() if isinstance(frame, nw.DataFrame) else ():
        if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
            try:
                column.to_numpy().astype(np.float64)
            except (TypeError, ValueError):
                names.append(column.name)
    return names


def positive_scores(probabilities: ArrayLike) -> Floats:
    """Return the probabilities of class 1, of two; values that rounding moved out of [0, 1] are clipped."""
    table = np.asarray(probabilities, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"predict_proba must return probabilities of two classes; it returned shape {table.shape}.")
    clipped = np.clip(table[:, 1], 0.0, 1.0)
    return np.where(np.abs(table[:, 1] - clipped) < 1e-5, clipped, table[:, 1])


def n_rows(X: Any) -> int:
    """Return the number of rows of a matrix or table."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X if hasattr(X, "__len__") else np.asarray(X))


def take_rows(data: Any, rows: Ints) -> Any:
    """Select rows of a matrix, a table of any library, a dict of columns, a list, or Groups."""
    if isinstance(data, np.ndarray) or hasattr(data, "tocsr"):  # a sparse matrix may be a dict
        return (data if isinstance(data, np.ndarray) else data.tocsr())[rows]
    if isinstance(data, Groups):
        return data.select(rows)
    if isinstance(data, dict):
        return {name: take_rows(column, rows) for name, column in data.items()}
    if isinstance(data, (list, tuple)):
        return [data[row] for row in rows.tolist()]
    frame = nw.from_native(data, pass_through=True, allow_series=True, eager_only=False)
    if isinstance(frame, (nw.DataFrame, nw.Series)):
        return frame[rows].to_native()
    return data[rows] if hasattr(data, "shape") else np.asarray(data)[rows]


def canonical_rows(X: Any) -> Any:
    """Return features; a sparse matrix row by row, in which each cell is stored once and columns ascend."""
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def row_block(X: Any, start: int, stop: int) -> Any:
    """Return consecutive rows of a dense or CSR matrix without copying them."""
    if not sparse.issparse(X):
        return X[start:stop]
    entries, block = slice(X.indptr[start], X.indptr[stop]), sparse.csr_matrix((stop - start, X.shape[1]))
    # The constructor would copy arrays that are small parts of others.
    block.data, block.indices = X.data[entries], X.indices[entries]
    block.indptr = X.indptr[start : stop + 1] - X.indptr[start]
    block.has_canonical_format = X.has_canonical_format
    return block


def _has_parameter(method: Any, name: str, *, default: bool = False) -> bool:
    """Return whether a method has a parameter; ``default`` where its signature does not tell."""
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):  # compiled methods may have no signature
        return default
    return name in parameters or (default and any(p.kind is p.VAR_KEYWORD for p in parameters.values()))


# A line about the fitted model, below scikit-learn's HTML diagram of an estimator.


def fitted_summary_html(groups: Groups | None, describe: Callable[[], Sequence[str]]) -> str:
    """Return an HTML paragraph that estimators append to their diagram, in ``_html_repr``, once they are fitted."""
    if groups is None:
        return ""
    statements = [f"Fitted to {len(groups)} groups of {', '.join(groups.columns)}", *describe()]
    return f'<p style="font-size:.9em;margin:.3em 0">{escape("; ".join(statements))}.</p>'


# Cross-validation splits in which every group has training rows and held-out rows.


_ENTRIES = 1 << 16  # of a sparse matrix at a time
_UNITS_OF_PART = 5  # different rows of a cell for each part, from which on equal rows stay together


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of the rows that a model is trained on, and of those held out for its evaluation."""

    training_rows: Ints | Bools  # a mask needs less memory
    held_out_rows: Ints | Bools

    @property
    def training(self) -> Ints:
        """Positions of the rows that a model is trained on."""
        return _positions(self.training_rows)

    @property
    def held_out(self) -> Ints:
        """Positions of the rows held out."""
        return _positions(self.held_out_rows)

    def require_apart(self) -> None:
        """Raise where rows are in both parts."""
        n_shared = np.intersect1d(self.training, self.held_out).size
        if n_shared:
            raise ValueError(
                f"cv must hold out rows that are not trained on; {n_shared} rows of a split are in both parts."
            )


def _positions(rows: Ints | Bools) -> Ints:
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64, copy=False)


def group_cells(groups: Groups) -> Ints:
    """Return the code of each row's group or, where groups overlap, of its combination of groups."""
    if len(groups.memberships) == 1:
        return groups.memberships[0].astype(np.int64)
    cells = np.unique(np.column_stack(groups.memberships), axis=0, return_inverse=True)[1]
    return cells.reshape(-1).astype(np.int64)


def make_folds(
    cv: Any,
    X: Any,
    positive: Bools,
    groups: Groups,
    *,
    rng: np.random.Generator,
    weights: Floats | None = None,
    spreads_few: bool = False,
    keys: Floats | None = None,
) -> list[Fold]:
    """Split the rows such that every group is in the training and in the held-out rows of every fold.

    With ``spreads_few``, groups with fewer rows than there are folds are in some of the folds only. ``keys`` are the
    `content_keys`, where they are known.
    """
    cells = group_cells(groups)
    has_weight, least = np.ones(positive.size, dtype=bool) if weights is None else weights > 0, 1
    if isinstance(cv, (int, np.integer, float, np.floating)):  # check_count rejects bool and float
        n_folds = check_count(cv, name="cv", least=2)
        least = n_folds if spreads_few else 1
        if not spreads_few:
            _check_smallest(n_folds, groups)
        if keys is None:
            keys = np.zeros(positive.size) if X is None else content_keys(X)
        fold_of_row = deal_rows(keys, positive, cells, n_folds, rng)
        folds = [Fold(fold_of_row != one, fold_of_row == one) for one in range(n_folds)]
    elif isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise TypeError(f"cv must be a number of folds, a splitter or a list of splits; got {type(cv).__name__}.")
    else:
        parts = check_cv(cv).split(X, 2 * cells + positive)
        folds = [read_fold(pair, positive.size) for pair in parts]
    if not folds:
        raise ValueError("cv has no splits; give at least one pair of training and held-out rows.")
    for number, fold in enumerate(folds):
        for part, rows in (("training", fold.training), ("held-out", fold.held_out)):
            name = f"Fold {number + 1} of {len(folds)} has no {part} rows"
            _check_part(name, rows[has_weight[rows]], positive, groups, least)
    return folds


def _check_smallest(n_folds: int, groups: Groups) -> None:
    """Raise where a group has fewer rows than there are folds."""
    smallest = int(groups.counts.min())
    if smallest < n_folds:
        few = int(np.count_nonzero(groups.counts < n_folds))
        fewer = f"Use cv={smallest} or fewer folds, merge" if smallest >= 2 else "Merge"
        raise ValueError(
            f"A group of {say_columns(groups.columns)} has {smallest} rows, fewer than the {n_folds} folds; {few} of "
            f"{len(groups)} groups are that small, and every fold needs held-out rows of every group. {fewer} such "
            "groups with others, or drop their rows."
        )


def content_keys(X: Any) -> Floats:
    """Return a number for each row that its features decide: a fixed random projection of their columns."""
    rng = np.random.default_rng(0)
    if sparse.issparse(X):
        X, largest = canonical_rows(X), np.full(X.shape[1], 1e-300)
        for start in range(0, X.nnz, _ENTRIES):
            part = slice(start, start + _ENTRIES)
            np.maximum.at(largest, X.indices[part], np.abs(X.data[part]))
        return np.asarray(X @ (rng.normal(size=X.shape[1]) / largest), dtype=np.float64)
    keys = np.zeros(n_rows(X))
    for block in _blocks(X):
        for values in block.T:  # each alone: the same bits in any order of rows
            column = np.where(np.isfinite(values), values, 0.0)
            keys += rng.normal() / max(float(np.abs(column).max(initial=0.0)), 1e-300) * column
    return keys


def deal_rows(keys: Floats, labels: NDArray[Any], groups: Ints, n_parts: int, rng: np.random.Generator) -> Ints:
    """Return the part of each row: labels within groups are spread evenly, and rows with one key stay together.

    So weight k is k copies, and neither the order of rows nor the numbers of groups decide; and equal rows with
    different labels are not told apart by their parts. A key that many rows of a group have with a label is
    spread, and so are all where there are few.
    """
    order = np.lexsort((keys, labels, groups))
    keys, labels, groups = keys[order], labels[order], groups[order]
    of_group = np.append(True, groups[1:] != groups[:-1])
    of_cell = of_group | np.append(True, labels[1:] != labels[:-1])
    of_key = of_cell | np.append(True, keys[1:] != keys[:-1])
    group, cell, key = (np.cumsum(starts) - 1 for starts in (of_group, of_cell, of_key))
    enough, n_equal = _UNITS_OF_PART * n_parts, np.bincount(key)[key]
    is_spread = (np.bincount(cell, of_key)[cell] < enough) | (
        (n_equal >= enough) & (n_equal * enough > np.bincount(cell)[cell])
    )
    lowest = np.minimum.reduceat(keys, np.flatnonzero(of_group))
    rank = np.argsort(np.lexsort((np.bincount(group[of_key]), lowest)))[group]  # groups by their content
    size = np.bincount(cell)[cell]  # rows of several groups or labels are dealt with the fewest
    by_unit = np.lexsort((labels, rank, size, keys, is_spread))
    of_unit = is_spread[by_unit] | np.append(True, keys[by_unit][1:] != keys[by_unit][:-1])
    first = by_unit[of_unit]
    keys, labels, rank = keys[first], labels[first], rank[first]
    draws, part_of_unit, part = np.empty(first.size), np.empty(first.size, dtype=np.int64), np.empty_like(order)
    draws[np.lexsort((keys, labels, rank))] = rng.random(first.size)
    part_of_unit[np.lexsort((draws, labels, rank))] = np.arange(first.size) % n_parts
    part[order[by_unit]] = part_of_unit[np.cumsum(of_unit) - 1]
    return part


def upper_half(y: Floats, median: float) -> Bools:
    """Return which numbers are above their median, or equal to it where it is the largest: a y to stratify folds by."""
    return y > median if y.max() > median else y >= median


def read_fold(split: Any, size: int) -> Fold:
    """Return a split of the user as positions from 0 on."""
    training, held_out = (_row_positions(rows, size) for rows in split)
    return Fold(training, held_out)


def _row_positions(rows: Any, size: int) -> Ints:
    """Return a split's rows, given as positions or as a mask, as positions."""
    positions = np.asarray(rows)
    if positions.dtype == bool and positions.shape == (size,):
        return np.flatnonzero(positions)
    if (
        positions.ndim != 1
        or positions.dtype.kind not in "iu"
        or (positions.size and not -size <= positions.min() <= positions.max() < size)
    ):
        raise ValueError(f"cv must yield positions of the {size} rows: vectors of integers below {size}.")
    return positions.astype(np.int64) % size


def _check_part(problem: str, rows: Ints, positive: Bools, groups: Groups, least: int) -> None:
    """Raise ``problem`` if a part of a fold lacks a class, or a group with at least so many rows."""
    empty = int(np.count_nonzero((groups.select(rows).counts == 0) & (groups.counts >= least)))
    if empty:
        raise ValueError(
            f"{problem} of {empty} of {len(groups)} groups of {say_columns(groups.columns)}; the "
            f"smallest group has {groups.counts.min()} rows in all. Use cv=<number of folds>, which spreads every "
            "group over the folds, use fewer folds, or merge small groups. (Rows of weight 0 do not count.)"
        )
    if positive[rows].all() or not positive[rows].any():
        n_fewer = int(min(np.count_nonzero(positive), np.count_nonzero(~positive)))
        raise ValueError(
            f"{problem} of one of the two classes, which has {n_fewer} rows in all. Use fewer folds, "
            "or splits that are stratified by the label. (Rows of weight 0 do not count.)"
        )


# Group awareness: whether a model needs the group of a row at prediction, or knows it from the features.

#: Why a model is aware or blind, for people.
GROUPS_NEEDED = "the group is needed at prediction"
GROUPS_UNUSED = "groups are used in training only"


def needs_groups(model: Any, X: Any = None, *, sensitive_features: Any = None) -> bool:
    """Return whether a fitted model needs the group of a row to score it: for a repair, or weights for each group."""
    last = last_step(model)[1]
    if not hasattr(last, "predict") or not takes(last, "sensitive_features"):
        return not hasattr(last, "predict")  # a repair of scores
    if hasattr(last, "repair_"):
        return last.repair_ is not None
    if hasattr(last, "groups_") and hasattr(last, "coef_"):
        return len(last.coef_) > 1
    if X is None:
        return True
    scores = model_scores(model, X, sensitive_features=sensitive_features)
    try:
        return not np.array_equal(scores, model_scores(model, X))
    except (TypeError, ValueError):  # it can score the rows with groups, so it is the groups that it lacks
        return True


def score_with_groups(model: Any, X: Any, sensitive_features: Any, strata: Any = None) -> Floats:
    """Return the scores of a model, with groups and strata where it takes them at prediction; see `model_scores`."""
    return model_scores(
        model,
        X,
        sensitive_features=sensitive_features if takes(model, "sensitive_features") else None,
        strata=strata if takes(model, "strata") else None,
    )


def describe_group_features(X: Any, groups: Groups) -> str | None:
    """Return how a feature identifies groups, by its name or by a threshold, in words; None where none does."""
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        named = [name for name in groups.columns if name in frame.columns]
        if named:
            return f"the features include sensitive {say_columns(named)}"
    cells = group_cells(groups)
    rows = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    for lowest, highest in _ranges(X, rows):
        order = np.argsort(lowest, axis=0, kind="stable")
        ends = np.maximum.accumulate(np.take_along_axis(highest, order, axis=0), axis=0)
        starts = np.take_along_axis(lowest, order, axis=0)
        if (ends[:-1] < starts[1:]).any():
            return "a feature column separates groups exactly"
    return None


def _ranges(X: Any, rows: list[Ints]) -> Iterator[tuple[Floats, Floats]]:
    """Yield the lowest and highest value of each group, for one or more columns at a time."""
    if sparse.issparse(X):
        table = canonical_rows(X)
        ends = [min_max_axis(table[group_rows], axis=0) for group_rows in rows]
        yield np.array([low for low, _ in ends], dtype=float), np.array([high for _, high in ends], dtype=float)
        return
    for block in _blocks(X):
        lowest = np.array([block[group_rows].min(axis=0) for group_rows in rows])
        yield lowest, np.array([block[group_rows].max(axis=0) for group_rows in rows])


def _blocks(X: Any) -> Iterator[Floats]:
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for column in frame.iter_columns():
            yield _numbers(column.to_numpy())[:, None]
        return
    array = np.asarray(X)
    if array.ndim == 1:
        array = array[:, None]
    if array.dtype.kind in "biuf":
        yield _numbers(array)
        return
    for column in array.T:
        yield _numbers(column)[:, None]


def _numbers(values: NDArray[Any]) -> Floats:
    """Return numbers, with missing ones as the lowest; values that are not numbers are replaced by codes."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.float64)
    return np.where(np.isnan(numbers), -np.inf, numbers)


# What every model of this package shares with one that was loaded: `needs_groups_` and `score_rows`.


class RowScoring:
    """Scores of the rows of a table, by the names of its columns; see `fairtransport.tabular.RowScorer`."""

    @property
    def needs_groups_(self) -> bool:
        """True if the model needs the group of a row to score it."""
        check_is_fitted(self)
        return needs_groups(self)

    def score_rows(self, table: Any, *, unknown_group: str = "error") -> Any:
        """Return a score for each row of a table whose columns are found by name."""
        # By name: models lie below tables, and users should not have to know that.
        scorer = import_module("fairtransport.tabular").RowScorer(self, unknown_group=unknown_group)
        return scorer.score_rows(table)


class DeferredAttributes:
    """Fitted attributes that are made from the rows when they are first asked for."""

    _deferred: dict[str, Callable[[], Any]]

    def __getattr__(self, name: str) -> Any:
        """Make what ``fit`` leaves for when it is first asked for."""
        make = vars(self).get("_deferred", {}).get(name)
        if make is None and name in vars(self):  # another thread has made it meanwhile
            return vars(self)[name]
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        setattr(self, name, make())
        self._deferred = {other: later for other, later in self._deferred.items() if other != name}
        return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        for name in list(vars(self).get("_deferred", ())):
            getattr(self, name)  # copies and files have no rows
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_deferred"}

    def _defer(self, attributes: dict[str, Callable[[], Any]]) -> None:
        self._deferred = attributes
        for name in attributes:
            self.__dict__.pop(name, None)


# Groups of estimators, and of batches in ``partial_fit``.


def policy_of(estimator: Any) -> GroupPolicy:
    """Return how an estimator, or the last step of a pipeline, makes groups of sensitive columns."""
    return check_policy(getattr(last_step(estimator)[1], "groups", None))


def encode_batch_groups(groups: Groups, sensitive_features: Any, new_groups: str) -> Groups:
    """Return the groups of a batch; new ones raise, or are appended to the known ones."""
    if sensitive_features is None:
        raise ValueError("partial_fit needs sensitive_features: the column or columns that define groups.")
    if new_groups == "adopt":
        return groups.adopt(sensitive_features)
    return groups.encode(sensitive_features)
