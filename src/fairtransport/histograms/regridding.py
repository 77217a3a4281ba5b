"""Histograms on another grid: equally spaced nodes, for figures of scores without known bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms._grid import Grid
    from fairtransport.histograms._group_histograms import GroupHistograms

__all__ = ["display_points", "display_range", "regrid"]

_TAIL = 0.005  # share of the scores on each side that may be left out of figures
_NEAR = 0.5  # of the range of the others: a tail that is no longer than this is shown
_MARGIN = 0.05


def display_range(histograms: GroupHistograms) -> tuple[float, float]:
    """Return the range of scores that figures show.

    Parameters
    ----------
    histograms : GroupHistograms

    Returns
    -------
    pair of float
        The range of the grid. Where nodes are not equally spaced and the lowest or the highest 0.5% of the scores
        reach far beyond all others, the range of the others.

    Examples
    --------
    >>> from fairtransport.histograms import Grid, count_entries
    >>> from fairtransport import make_groups
    >>> scores, groups = np.append(np.arange(1000.0), 1e9), make_groups(np.arange(1001) % 2)
    >>> histograms = count_entries(Grid.covering(scores), groups, nodes=np.arange(1001), masses=np.ones(1001))
    >>> display_range(histograms)[0], round(display_range(histograms)[1])
    (0.0, 1044)
    """
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
    """Return equally spaced scores over the range that figures show; see `display_range`.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> display_points(count_scores([0.2, 0.4], sensitive_features=["a", "b"]), 3).tolist()
    [0.0, 0.5, 1.0]
    """
    if not histograms.grid.positions:
        return histograms.grid.from_unit(np.linspace(0, 1, n_points))
    return np.linspace(*display_range(histograms), n_points)  # it ends at the highest score, without rounding errors


def regrid(histograms: GroupHistograms, grid: Grid) -> GroupHistograms:
    """Return the histograms on another grid; scores outside its range are counted at its ends.

    Parameters
    ----------
    histograms : GroupHistograms
    grid : Grid

    Returns
    -------
    GroupHistograms
    """
    places = grid.place_checked(np.clip(histograms.grid.nodes, grid.low, grid.high))

    def move(masses: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = np.flatnonzero(np.append(True, np.diff(places) > 0))
        moved = np.zeros((*masses.shape[:2], grid.n_nodes))
        moved[:, :, places[starts]] = np.add.reduceat(masses, starts, axis=2)
        return moved

    squares = None if histograms.squares is None else move(histograms.squares)
    return replace(histograms, grid=grid, masses=move(histograms.masses), squares=squares)
