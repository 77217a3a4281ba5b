"""Binning: rows or group-by results -> histograms; another grid for the same scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_length, check_weights
from fairtransport.groups import GroupPolicy, Groups, rows_of_groups
from fairtransport.histograms._grid import DEFAULT_BINS, Grid
from fairtransport.histograms._group_histograms import GroupHistograms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


def count_scores(
    scores: ArrayLike,
    y_true: ArrayLike | None = None,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    groups: GroupPolicy | None = None,
) -> GroupHistograms:
    """Count each group's scores at the nodes of a grid."""
    grid = Grid.over(range, n_bins)
    made, (scores, y_true, sample_weight) = rows_of_groups(
        sensitive_features, groups, scores, y_true, sample_weight, at_least=1
    )
    values = grid.check(scores)
    if made.n_rows != values.size:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {made.n_rows}.")
    weights = check_weights(sample_weight, size=values.size)
    labels = None
    if y_true is not None:
        labels = np.asarray(y_true)
        check_length(labels, size=values.size, name="y_true")
        n_others = int(np.count_nonzero((labels != 0) & (labels != 1)))
        if n_others:
            raise ValueError(f"y_true has {n_others} of {labels.size} labels that are neither 0 nor 1.")
    return count_entries(
        grid,
        made,
        nodes=grid.place_checked(values),
        masses=np.ones(values.size) if weights is None else weights,
        squares=None if weights is None else weights**2,
        rows=None if weights is None else np.ones(values.size),
        labels=labels,
    )


def count_entries(
    grid: Grid,
    groups: Groups,
    *,
    nodes: ArrayLike,
    masses: ArrayLike,
    squares: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> GroupHistograms:
    """Return the histograms of entries with known groups: rows, or the results of a group-by."""
    cells, members = _cells(groups)
    return GroupHistograms.from_cells(
        grid,
        _without_rows(groups),
        cells=cells,
        nodes=nodes,
        masses=masses,
        squares=squares,
        rows=rows,
        labels=labels,
        members=members,
    )


def _without_rows(groups: Groups) -> Groups:
    """Return the labels and names alone, so that histograms contain no rows."""
    return groups.select(np.empty(0, dtype=np.int64))


def _cells(groups: Groups) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return the cell of each row, and the cells of each group; None where every group is one cell."""
    if not groups.overlapping and groups.counts.sum() == groups.n_rows:
        return groups.codes, None
    # Rows of the same groups form a cell. One group at a time, to limit memory to a few columns.
    cells = np.zeros(groups.n_rows, dtype=np.int64)
    for rows in groups.rows:
        inside = np.zeros(groups.n_rows, dtype=np.int64)
        inside[rows] = 1
        cells = 2 * cells + inside
        present = np.flatnonzero(np.bincount(cells))  # renumber, so that codes stay small
        table = np.zeros(int(present[-1]) + 1, dtype=np.int64)
        table[present] = np.arange(present.size)
        cells = table[cells]
    n_cells = int(cells.max()) + 1
    members = np.zeros((len(groups), n_cells), dtype=np.bool_)
    for group, rows in enumerate(groups.rows):
        members[group, np.unique(cells[rows])] = True
    return cells, members


# Histograms on another grid: equally spaced nodes, for figures of scores without known bounds.

_TAIL = 0.005  # share of the scores on each side that may be left out of figures
_NEAR = 0.5  # of the range of the others: a tail that is no longer than this is shown
_MARGIN = 0.05


def display_range(histograms: GroupHistograms) -> tuple[float, float]:
    """Return the range of scores that figures show."""
    grid = histograms.grid
    if not grid.positions:
        return grid.low, grid.high
    cdf = histograms.cdf_of_everyone
    occupied = np.flatnonzero(histograms.everyone)
    lowest, highest = (float(grid.nodes[index]) for index in (occupied[0], occupied[-1]))
    low, high = (float(grid.nodes[np.searchsorted(cdf, level)]) for level in (_TAIL, 1 - _TAIL))
    if not high > low:
        low, high = lowest, highest
    if not high > low:
        return grid.low, grid.high
    length = high - low
    start = lowest if low - lowest <= _NEAR * length else low - _MARGIN * length
    end = highest if highest - high <= _NEAR * length else high + _MARGIN * length
    return start, end


def display_points(histograms: GroupHistograms, n_points: int) -> NDArray[np.float64]:
    """Return equally spaced scores over the range that figures show; see `display_range`."""
    if not histograms.grid.positions:
        return histograms.grid.from_unit(np.linspace(0, 1, n_points))
    return np.linspace(*display_range(histograms), n_points)  # it ends at the highest score, without rounding errors


def regrid(histograms: GroupHistograms, grid: Grid) -> GroupHistograms:
    """Return the histograms on another grid; scores outside its range are counted at its ends."""
    places = grid.place_checked(np.clip(histograms.grid.nodes, grid.low, grid.high))

    def move(masses: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = np.flatnonzero(np.append(True, np.diff(places) > 0))
        moved = np.zeros((*masses.shape[:2], grid.n_nodes))
        moved[:, :, places[starts]] = np.add.reduceat(masses, starts, axis=2)
        return moved

    squares = None if histograms.squares is None else move(histograms.squares)
    return replace(histograms, grid=grid, masses=move(histograms.masses), squares=squares)
