"""Rows to train on and rows to judge by, with every group in both."""

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
    """Row positions: those a model is trained on, and those held out to judge it."""

    training: NDArray[np.int64]
    held_out: NDArray[np.int64]


def group_cells(groups: Groups) -> NDArray[np.int64]:
    """Return the number of each row's group; where groups overlap, its combination of groups."""
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
) -> list[Fold]:
    """Split the rows such that every group is in every part.

    Parameters
    ----------
    cv : int, splitter or iterable of (training rows, held-out rows)
        A splitter gets the crossing of group and label as its ``y``, so that scikit-learn's stratified ones
        stratify by both.
    X : table or matrix
        For splitters that look at it.
    positive : array of bool
        Rows of class 1.
    groups : Groups
    rng : Generator
        Shuffles the rows when ``cv`` is a number.
    weights : array, optional
        Rows without weight do not count.

    Returns
    -------
    list of Fold

    Notes
    -----
    With a number of folds k, rows are sorted by group and label, in random order among equals, and dealt out in turn,
    like cards. So every group, and every group's rows of one label, is spread over the folds as evenly as its
    number of rows allows, also where there are fewer than k.
    """
    cells = group_cells(groups)
    counted = np.ones(positive.size, dtype=bool) if weights is None else weights > 0
    if isinstance(cv, (int, np.integer, float, np.floating)):  # bool is an int, too
        folds = _deal(check_count(cv, name="cv", least=2), cells, positive, groups, rng)
    elif isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise TypeError(f"cv must be a number of folds, a splitter or a list of splits; got {type(cv).__name__}.")
    else:
        parts = check_cv(cv).split(X, 2 * cells + positive)
        folds = [Fold(*(_positions(rows, positive.size) for rows in pair)) for pair in parts]
    if not folds:
        raise ValueError("cv has no splits; give at least one pair of training and held-out rows.")
    for number, fold in enumerate(folds):
        told = f"fold {number + 1} of {len(folds)}"
        _check_part(f"{told} has no training rows", fold.training[counted[fold.training]], positive, groups)
        _check_part(f"{told} has no held-out rows", fold.held_out[counted[fold.held_out]], positive, groups)
    return folds


def _deal(
    n_folds: int, cells: NDArray[np.int64], positive: NDArray[np.bool_], groups: Groups, rng: np.random.Generator
) -> list[Fold]:
    smallest = int(groups.counts.min())
    if smallest < n_folds:
        few = int(np.count_nonzero(groups.counts < n_folds))
        fewer = f"Use cv={smallest} or fewer folds, merge" if smallest >= 2 else "Merge"
        raise ValueError(
            f"A group of {say_columns(groups.columns)} has {smallest} rows, fewer than the {n_folds} folds; {few} of "
            f"{len(groups)} groups are so small, and every fold needs held-out rows of every group. {fewer} such "
            "groups with others, or drop their rows."
        )
    order = np.lexsort((rng.random(positive.size), positive, cells))
    places = np.empty(positive.size, dtype=np.int64)
    places[order] = np.arange(positive.size) % n_folds
    return [Fold(np.flatnonzero(places != fold), np.flatnonzero(places == fold)) for fold in range(n_folds)]


def _positions(rows: Any, size: int) -> NDArray[np.int64]:
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == (size,):
        return np.flatnonzero(chosen)
    if (
        chosen.ndim != 1
        or chosen.dtype.kind not in "iu"
        or (chosen.size and not -size <= chosen.min() <= chosen.max() < size)
    ):
        raise ValueError(f"cv must give positions of the {size} rows: vectors of whole numbers below {size}.")
    return chosen.astype(np.int64)


def _check_part(told: str, rows: NDArray[np.int64], positive: NDArray[np.bool_], groups: Groups) -> None:
    empty = int(np.count_nonzero(groups.select(rows).counts == 0))
    if empty:
        raise ValueError(
            f"{told[0].upper()}{told[1:]} of {empty} of {len(groups)} groups of {say_columns(groups.columns)}; the "
            f"smallest group has {groups.counts.min()} rows in all. Use cv=<number of folds>, which spreads every "
            "group over the folds, use fewer folds, or merge small groups. (Rows of weight 0 do not count.)"
        )
    if positive[rows].all() or not positive[rows].any():
        n_fewer = int(min(np.count_nonzero(positive), np.count_nonzero(~positive)))
        raise ValueError(
            f"{told[0].upper()}{told[1:]} of one of the two classes, which has {n_fewer} rows in all. Use fewer folds, "
            "or splits that are stratified by the label. (Rows of weight 0 do not count.)"
        )
