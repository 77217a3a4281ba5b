"""Checked training rows: features, outcomes, groups, weights, and the rows that are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numba import config
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from fairtransport._arrays import Floats, Ints
from fairtransport._columns import short_type
from fairtransport._sklearn import as_features, group_cells, n_rows, take_rows
from fairtransport._validation import check_length, check_weights
from fairtransport.criteria import Criterion
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import (
    ComparedStrata,
    compares_each_other,
    resolve_criterion,
    resolve_group_target,
)
from fairtransport.groups import GroupPolicy, Groups, read_groups
from fairtransport.repair.group_checks import groups_to_repair
from fairtransport.strata import Strata, make_strata
from fairtransport.transport.kernels.binned import (
    count_masses,
    count_shared,
    logit_derivatives,
    logit_derivatives_shared,
)
from fairtransport.transport.line import CELLS
from fairtransport.transport.targets import TARGET_SIZE

# A criterion, resolved for training or validation rows: the stratum of each row, and the targets of the strata.

Targets: TypeAlias = "dict[tuple[int | None, int | None], Floats]"
"""Scores of a distribution for each label and stratum."""


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Rows, and where a criterion compares their groups."""

    groups: Groups
    resolved: ComparedStrata
    stratum: Ints

    def fixed_targets(self, target: Any, scores: Floats, scale: float = 1.0) -> Targets | None:
        """Return what groups are compared with in each stratum; None where they are compared with each other.

        Scores of equal mass, divided by ``scale``, represent the distribution that ``target`` names.
        """
        if compares_each_other(target):
            return None
        weights, parts = self.resolved.row_weights, self.resolved.compared
        return {
            (part.label, part.stratum): resolve_group_target(target, scores, self.groups, weights, part).equal_mass(
                TARGET_SIZE
            )
            / scale
            for part in parts
        }

    def comparisons(self, targets: Targets | None = None) -> Comparisons:
        """Return the pairs of cells; with the targets of other rows, those of strata that have one."""
        if targets is None:
            return self.resolved.comparisons()
        parts = [part for part in self.resolved.compared if (part.label, part.stratum) in targets]
        if not parts:
            raise ValueError("There is nothing to compare: no stratum of these rows has a target.")
        kept = ComparedStrata(self.resolved.n_rows, tuple(parts), row_weights=self.resolved.row_weights)
        return kept.comparisons([targets[part.label, part.stratum] for part in parts])


def check_target(target: Any, groups: Groups) -> None:
    """Raise ValueError for a ``target`` that is none, before anything is trained."""
    if not compares_each_other(target):
        resolve_group_target(target, np.full(groups.n_rows, 0.5), groups, None)


def compare_rows(
    criterion: str | Criterion,
    groups: Groups,
    *,
    labels: ArrayLike | None,
    strata: Strata | None,
    row_weights: Floats | None,
) -> ComparedRows:
    """Resolve a criterion, as `resolve_criterion`, and find the stratum of each row."""
    resolved = resolve_criterion(criterion, groups, labels=labels, strata=strata, row_weights=row_weights)
    stratum = np.full(groups.n_rows, len(resolved.compared))
    for number, part in enumerate(resolved.compared):
        inside = np.ones(groups.n_rows, dtype=bool)
        if part.label is not None:
            inside &= np.asarray(labels) == part.label
        if part.stratum is not None and strata is not None:
            inside &= strata.codes == part.stratum
        stratum[inside] = number
    return ComparedRows(groups, resolved, stratum)


@dataclass(eq=False)
class TrainingData:
    """Rows to train or validate on."""

    X: Any
    labels: NDArray[Any]
    groups: Groups
    weights: Floats | None = None
    strata: Strata | None = None

    def select(self, rows: Ints) -> TrainingData:
        """Return the rows at these positions."""
        weights = None if self.weights is None else self.weights[rows]
        strata = None if self.strata is None else self.strata.select(rows)
        return TrainingData(take_rows(self.X, rows), self.labels[rows], self.groups.select(rows), weights, strata)

    def in_canonical_order(self) -> TrainingData:
        """Return the rows in an order that depends on their content only, and is as good as random.

        Rows that differ in their group or stratum alone are in the order of the other rows of these.
        """
        self.X = as_selectable(self.X)
        keys = _row_keys(self.X)
        cells = group_cells(self.groups)
        if self.strata is not None:
            cells = cells * (len(self.strata.codes) + 1) + self.strata.codes
        _, cells = np.unique(cells, return_inverse=True)
        totals = np.zeros(cells.max(initial=0) + 1, dtype=np.uint64)
        np.add.at(totals, cells, keys)
        weights = np.ones(len(keys)) if self.weights is None else self.weights
        return self.select(np.lexsort((totals[cells], weights, self.labels, keys)))

    def compare(self, criterion: str | Criterion) -> ComparedRows:
        """Return where a criterion compares the groups of these rows."""
        return compare_rows(criterion, self.groups, labels=self.labels, strata=self.strata, row_weights=self.weights)


def _row_keys(X: Any) -> NDArray[np.uint64]:
    """Return a hash of each row's values, which is the same for each type of table."""
    factors = np.random.default_rng(0).integers(1 << 63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    if issparse(X):
        return _mixed(csr_array((_bits(X.data), X.indices, X.indptr), shape=X.shape) @ factors)
    table = nw.from_native(X, pass_through=True, eager_only=True)
    columns = table.iter_columns() if isinstance(table, nw.DataFrame) else np.asarray(X).T
    return _mixed(sum(_bits(column) * factor for column, factor in zip(columns, factors, strict=True)))


def _bits(column: Any) -> NDArray[np.uint64]:
    """Return 64 bits for each number or text, 0 for the number 0."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64) + 0.0  # no negative zero
        numbers[np.isnan(numbers)] = np.nan
        return _mixed(numbers.view(np.uint64))
    texts = [str(value) for value in values.tolist()]
    known = {text: hashlib.blake2b(text.encode(), digest_size=8).digest() for text in set(texts)}
    return np.frombuffer(b"".join(known[text] for text in texts), dtype=np.uint64)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)


def check_shape(X: Any, n_features: int | None = None, *, owner: str) -> None:
    """Raise ValueError, in scikit-learn's words, for an array that is no table of the expected number of columns.

    XGBoost's own messages are those of failed checks of its C++ code.
    """
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        return
    if len(shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(shape)}D array instead. Reshape your data: one row per sample.")
    if shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required by {owner}.")
    if n_features is not None and shape[1] != n_features:
        raise ValueError(f"X has {shape[1]} features, but {owner} is expecting {n_features} features as input.")


def as_selectable(X: Any) -> Any:
    """Return features from which rows can be selected: tables as they are, sparse matrices as CSR, others as arrays."""
    if issparse(X):
        return X.tocsr()
    return X if hasattr(X, "columns") else np.asarray(X)


def check_training_data(
    X: Any,
    labels: NDArray[Any],
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
    *,
    owner: str,
    strata: Any,
    repair: bool,
    policy: GroupPolicy,
) -> TrainingData:
    """Return the checked rows; ``labels`` are 0 and 1, or numbers."""
    if sensitive_features is None:
        raise ValueError(f"{owner} needs sensitive_features: the column or columns that define groups.")
    check_shape(X, owner=owner)
    size = n_rows(X)
    check_length(labels, size=size, name="y")
    weights = check_weights(sample_weight, size=size)
    if repair:
        groups = groups_to_repair(sensitive_features, n_rows=size, weights=weights, groups=policy)
    else:
        groups = read_groups(sensitive_features, policy)
        check_length(range(groups.n_rows), size=size, name="sensitive_features")
    groups = groups.settle(policy.small, policy.min_size)
    groups.require()
    if weights is not None and not all(weights[rows].any() for rows in groups.rows):
        raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
    found = None if strata is None else make_strata(strata, n_groups=len(groups))
    if found is not None:
        check_length(range(found.n_rows), size=size, name="strata")
    return TrainingData(X, labels, groups, weights, found)


def check_eval_set(
    eval_set: Any, rows: TrainingData, read_labels: Callable[[Any, str], NDArray[Any]]
) -> TrainingData | None:
    """Return the checked validation rows, with the groups and strata of the training rows.

    ``read_labels`` takes the labels of the rows and the name of the argument.
    """
    if eval_set is None:
        return None
    parts = ("X", "y", "sensitive_features") if rows.strata is None else ("X", "y", "sensitive_features", "strata")
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) != len(parts):
        raise ValueError(f"eval_set must be a tuple: {', '.join(parts[:-1])} and {parts[-1]}.")
    X, y, sensitive_features = eval_set[:3]
    X = as_features(X)
    labels = read_labels(y, "eval_set")
    groups = rows.groups.encode(sensitive_features)
    strata = None if rows.strata is None else rows.strata.encode(eval_set[3])
    lengths = {
        "y": len(labels),
        "sensitive_features": groups.n_rows,
        "strata": n_rows(X) if strata is None else strata.n_rows,
    }
    for name, length in lengths.items():
        check_length(range(length), size=n_rows(X), name=f"{name} of eval_set")
    groups.require()
    return TrainingData(X, labels, groups, strata=strata)


def deal(cells: Ints, n_folds: int) -> Ints:
    """Return a fold for each of the rows in canonical order: those of a cell are dealt in turn."""
    _, first, codes = np.unique(cells, return_index=True, return_inverse=True)
    folds = np.empty(len(cells), dtype=np.int64)
    folds[np.argsort(first[codes], kind="stable")] = np.arange(len(cells)) % n_folds  # names of groups do not decide
    return folds


# The training rows of an objective: one pass counts their scores in cells, another looks up their derivatives.

_CHUNK = 1 << 17  # smallest number of rows for a thread


class GroupedRows:
    """Rows with their groups and strata: one code each, or probabilities of all groups of their stratum."""

    def __init__(
        self,
        groups: Groups,
        probabilities: NDArray[Any] | None = None,
        *,
        strata: Ints | None = None,
        n_strata: int = 1,
        n_cells: int = CELLS,
    ) -> None:
        self.n_cells, self.n_rows, self.n_groups, self.n_strata = n_cells, groups.n_rows, len(groups), n_strata
        self.n_cells_of_rows = n_strata * self.n_groups
        self.strata = np.zeros(self.n_rows, np.uint8) if strata is None else strata.astype(short_type(n_strata))
        if probabilities is None and groups.overlapping:
            probabilities = hard_probabilities(groups)
        self.probabilities = None if probabilities is None else np.ascontiguousarray(probabilities, dtype=np.float32)
        self.codes = groups.memberships[0]
        if strata is not None:
            codes = self.n_groups * strata + self.codes
            outside = (self.codes == self.n_groups) | (strata == n_strata)
            self.codes = np.where(outside, self.n_cells_of_rows, codes).astype(short_type(self.n_cells_of_rows))

    def count(self, margins: Floats, weights: Floats, position: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """Return the position of each margin in [0, 1], and the mass of each group of each stratum at the edges."""
        positions = np.empty_like(margins)

        def count(part: slice) -> Floats:
            positions[part] = position(margins[part])
            if self.probabilities is None:
                masses = np.zeros((self.n_cells_of_rows + 1, self.n_cells + 1))  # the last: rows that are in no cell
                count_masses(positions[part], self.codes[part], weights[part], masses)
                return masses[:-1]
            masses = np.zeros((self.n_strata + 1, self.n_cells + 1, self.n_groups))
            count_shared(positions[part], self.probabilities[part], self.strata[part], weights[part], masses)
            return masses[:-1].transpose(0, 2, 1).reshape(self.n_cells_of_rows, self.n_cells + 1)

        first, *others = self._in_threads(count)
        return positions, sum(others, start=first)

    def logit_derivatives(
        self, scores: Floats, labels: NDArray[np.float32], weights: Floats, derivatives: Floats, *, dtype: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return gradient and curvature of log-loss plus penalty with respect to the margins.

        ``derivatives``, of shape (n_strata * n_groups, n_cells, 2), are the first and second derivative of the penalty
        with respect to a score in each cell. The penalty does not act on rows in no group or stratum.
        """
        gradient, curvature = np.empty((2, self.n_rows), dtype)
        table = self._with_zeros(derivatives)

        def write(part: slice) -> None:
            outputs = weights[part], table, gradient[part], curvature[part]
            if self.probabilities is None:
                logit_derivatives(scores[part], labels[part], self.codes[part], *outputs)
            else:
                shares = self.probabilities[part], self.strata[part]
                logit_derivatives_shared(scores[part], labels[part], *shares, *outputs)

        self._in_threads(write)
        return gradient, curvature

    def look_up(self, positions: Floats, derivatives: Floats) -> tuple[Floats, Floats]:
        """Return the first and the second derivative for each row, 0 in no group or stratum.

        A row that counts for several groups has their mean, by its probabilities.
        """
        cells = np.minimum((positions * self.n_cells).astype(np.int64), self.n_cells - 1)
        table = self._with_zeros(derivatives)
        if self.probabilities is None:
            first, second = table[self.codes, cells].T
        else:
            first, second = np.einsum("ij,ikj->ki", self.probabilities, table[self.strata, cells])
        return first, second

    def _with_zeros(self, derivatives: Floats) -> Floats:
        """Return the table with zeros for rows that are not compared; groups last where rows count for several."""
        if self.probabilities is None:
            return np.concatenate((derivatives, np.zeros((1, self.n_cells, 2))))
        table = np.zeros((self.n_strata + 1, self.n_cells, 2, self.n_groups))
        table[:-1] = derivatives.reshape(self.n_strata, self.n_groups, self.n_cells, 2).transpose(0, 2, 3, 1)
        return table

    def _in_threads(self, task: Callable[[slice], Any]) -> list[Any]:
        n_threads = max(1, min(config.NUMBA_NUM_THREADS, self.n_rows // _CHUNK))
        if n_threads == 1:
            return [task(slice(0, self.n_rows))]
        parts = [slice(*pair) for pair in pairwise(np.linspace(0, self.n_rows, n_threads + 1).astype(int).tolist())]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(task, parts))


def hard_probabilities(groups: Groups) -> NDArray[np.float32]:
    """Return 1 for each row's groups and 0 for the others, of shape (n_rows, n_groups)."""
    table = np.zeros((groups.n_rows, len(groups) + 1), dtype=np.float32)  # the last column is "in no group"
    for codes in groups.memberships:
        table[np.arange(groups.n_rows), codes] = 1.0
    return table[:, :-1]
