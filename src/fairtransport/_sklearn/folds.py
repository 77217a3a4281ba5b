"""Cross-validation splits in which every group has training rows and held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import check_cv

from fairtransport._columns import say_columns
from fairtransport._validation import check_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["Fold", "group_cells", "make_folds"]


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of the rows that a model is trained on, and of those held out for its evaluation."""

    training: NDArray[np.int64]
    held_out: NDArray[np.int64]


def group_cells(groups: Groups) -> NDArray[np.int64]:
    """Return the code of each row's group or, where groups overlap, of its combination of groups."""
    if len(groups.memberships) == 1:
        return groups.memberships[0].astype(np.int64)
    cells = np.unique(np.column_stack(groups.memberships), axis=0, return_inverse=True)[1]
    return cells.reshape(-1).astype(np.int64)


def make_folds(
    cv: Any,
    X: Any,
    positive: NDArray[np.bool_],
    groups: Groups,
    *,
    rng: np.random.Generator,
    weights: NDArray[np.float64] | None = None,
    remedy: str = "",
) -> list[Fold]:
    """Split the rows such that every group is in the training and in the held-out rows of every fold.

    Parameters
    ----------
    cv : int, splitter or iterable of (training rows, held-out rows)
        A splitter is passed the combination of group and label as ``y``, so that scikit-learn's stratified
        splitters stratify by both.
    X : table or matrix
        Passed to a splitter.
    positive : array of bool
        True for rows of class 1.
    groups : Groups
    rng : Generator
        Shuffles the rows if ``cv`` is a number.
    weights : array, optional
        Rows of weight 0 are ignored.
    remedy : str
        What else a caller can do about a group with fewer rows than folds, as the end of the message.

    Returns
    -------
    list of Fold

    Notes
    -----
    With a number of folds k, rows are sorted by group and label, in random order within each combination, and assigned
    to the folds in turn. So every group, and every combination of group and label, is spread over the folds as evenly
    as its number of rows allows, even with fewer than k rows.
    """
    cells = group_cells(groups)
    has_weight = np.ones(positive.size, dtype=bool) if weights is None else weights > 0
    if isinstance(cv, (int, np.integer, float, np.floating)):  # check_count rejects bool and float
        folds = _stratified_folds(check_count(cv, name="cv", least=2), cells, positive, groups, rng, remedy=remedy)
    elif isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise TypeError(f"cv must be a number of folds, a splitter or a list of splits; got {type(cv).__name__}.")
    else:
        parts = check_cv(cv).split(X, 2 * cells + positive)
        folds = [Fold(*(_row_positions(rows, positive.size) for rows in pair)) for pair in parts]
    if not folds:
        raise ValueError("cv has no splits; give at least one pair of training and held-out rows.")
    for number, fold in enumerate(folds):
        for part, rows in (("training", fold.training), ("held-out", fold.held_out)):
            name = f"Fold {number + 1} of {len(folds)} has no {part} rows"
            _check_part(name, rows[has_weight[rows]], positive, groups)
    return folds


def _stratified_folds(
    n_folds: int,
    cells: NDArray[np.int64],
    positive: NDArray[np.bool_],
    groups: Groups,
    rng: np.random.Generator,
    *,
    remedy: str,
) -> list[Fold]:
    smallest = int(groups.counts.min())
    if smallest < n_folds:
        few = int(np.count_nonzero(groups.counts < n_folds))
        fewer = f"Use cv={smallest} or fewer folds, merge" if smallest >= 2 else "Merge"
        raise ValueError(
            f"A group of {say_columns(groups.columns)} has {smallest} rows, fewer than the {n_folds} folds; {few} of "
            f"{len(groups)} groups are that small, and every fold needs held-out rows of every group. {fewer} such "
            f"groups with others, or drop their rows{remedy}."
        )
    order = np.lexsort((rng.random(positive.size), positive, cells))
    fold_of_row = np.empty(positive.size, dtype=np.int64)
    fold_of_row[order] = np.arange(positive.size) % n_folds
    return [Fold(np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)) for fold in range(n_folds)]


def _row_positions(rows: Any, size: int) -> NDArray[np.int64]:
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
    return positions.astype(np.int64)


def _check_part(problem: str, rows: NDArray[np.int64], positive: NDArray[np.bool_], groups: Groups) -> None:
    """Raise ``problem`` if a part of a fold lacks a group or a class."""
    empty = int(np.count_nonzero(groups.select(rows).counts == 0))
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
