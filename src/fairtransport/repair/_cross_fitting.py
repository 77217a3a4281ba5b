"""What a repair does to rows that it was not fitted to, estimated from histograms of folds."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from fairtransport.histograms import GroupHistograms
from fairtransport.repair._counted_cells import cells_of
from fairtransport.tables import TableCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.repair.quantile import QuantileRepair

__all__ = ["cross_fitted_histograms", "fold_of_rows", "n_folds"]

_FOLDS, _FEW_FOLDS, _MANY_GROUPS = 5, 2, 50
_DRAWS = 16  # of each counted score, of a randomised repair


def n_folds(n_groups: int) -> int:
    """Return the number of folds; few where there are many groups, because each fold has histograms of all of them."""
    return _FOLDS if n_groups <= _MANY_GROUPS else _FEW_FOLDS


def fold_of_rows(start: int, n_rows: int, folds: int) -> NDArray[np.int64]:
    """Return the fold of each row: a hash of its number, so that any order of the rows gives balanced folds.

    Examples
    --------
    >>> np.bincount(fold_of_rows(0, 10_000, 5)).tolist()
    [1935, 2027, 2000, 1973, 2065]
    >>> bool(np.array_equal(fold_of_rows(0, 100, 5)[40:], fold_of_rows(40, 60, 5)))
    True
    """
    # The finaliser of SplitMix64: neighbouring row numbers give unrelated bits.
    bits = np.arange(start + 1, start + n_rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) % np.uint64(folds)).astype(np.int64)


def cross_fitted_histograms(
    folds: Sequence[GroupHistograms], repair: QuantileRepair, strata: Sequence[str] = ()
) -> list[GroupHistograms]:
    """Return the histograms of the repaired scores of each fold, by maps fitted to the other folds.

    Distances have to be measured fold by fold and averaged. Summed over the folds, the scores would look as equal as
    those of the rows that the maps were fitted to: what a fold has more of in some bin, the others have less of.

    Parameters
    ----------
    folds : sequence of GroupHistograms
        Scores before repair, with the same grid and groups; at least two folds.
    repair : QuantileRepair
        Its parameters are used, not its maps.
    strata : sequence of str
        Columns of strata, as in `QuantileRepair.fit_counts`.

    Returns
    -------
    list of GroupHistograms
        A group that occurs in one fold only has no other rows to fit a map to and keeps its scores.
    """
    parts = []
    for index, fold in enumerate(folds):
        others = reduce(add, [*folds[:index], *folds[index + 1 :]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has issued it
            fitted = clone(repair).fit_counts(TableCounts(others.filled(), {}, {}), strata=strata)
        parts.append(_repair(fold, fitted))
    return parts


def _repair(fold: GroupHistograms, fitted: QuantileRepair) -> GroupHistograms:
    cells = cells_of(fitted.groups_, fitted.strata_)
    index_of = {label: index for index, label in enumerate(cells.labels)}
    cell_of_group = np.array([index_of.get(label, -1) for label in fold.groups.labels])
    labels, groups, nodes = np.nonzero(fold.masses)
    # A randomised repair spreads the rows of a node over as many scores as there are draws.
    n_draws = _DRAWS if hasattr(fitted, "randomized_maps_") else 1
    labels, groups, nodes = (np.repeat(one, n_draws) for one in (labels, groups, nodes))
    scores, moved = fold.grid.nodes[nodes], fold.grid.nodes[nodes]
    known = cell_of_group[groups] >= 0
    strata, codes = np.divmod(cell_of_group[groups[known]], len(fitted.groups_))
    if n_draws > 1:
        draws = np.tile((np.arange(n_draws) + 0.5) / n_draws, nodes.size // n_draws)[known]
        drawn = fitted.randomized_maps_.draw(scores[known], codes, draws)
        moved[known] = (1.0 - fitted.amount) * scores[known] + fitted.amount * drawn
    else:
        within = None if fitted.strata_ is None else strata
        moved[known] = fitted.move(scores[known], codes.astype(np.uint32), within)
    images = fold.grid.place_checked(np.clip(moved, fold.grid.low, fold.grid.high))
    repaired = GroupHistograms.from_cells(
        fold.grid,
        fold.groups,
        cells=groups,
        nodes=images,
        masses=fold.masses[labels, groups, nodes] / n_draws,
        squares=None if fold.squares is None else fold.squares[labels, groups, nodes] / n_draws,
        labels=labels if fold.has_labels else None,
    )
    return replace(repaired, rows=fold.rows)
