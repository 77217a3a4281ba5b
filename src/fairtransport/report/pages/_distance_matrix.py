"""Distances between groups as a square of cells, shaded by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["LEVELS", "Matrix", "matrix"]

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Distances at which the shade of a cell changes: the same on every page, so that pages can be compared."""


@dataclass(frozen=True)
class Matrix:
    """The cells.

    Parameters
    ----------
    places : tuple of int
        The groups that are shown, in their order.
    distances : tuple of tuple of float
        Between them.
    levels : tuple of tuple of int
        Shade of each, from 0 to ``len(LEVELS)``.
    left_out : int
        Groups that are not shown: smaller than those that are.
    """

    places: tuple[int, ...]
    distances: tuple[tuple[float, ...], ...]
    levels: tuple[tuple[int, ...], ...]
    left_out: int


def matrix(audit: Audit) -> Matrix:
    """Return the distances between the largest groups, twelve at most.

    Parameters
    ----------
    audit : Audit

    Returns
    -------
    Matrix

    Examples
    --------
    >>> import fairtransport as ft
    >>> found = ft.audit([0.1, 0.1, 0.13, 0.29], sensitive_features=["a", "a", "b", "c"], n_bootstrap=99)
    >>> matrix(found).levels
    ((0, 2, 5), (2, 0, 5), (5, 5, 0))
    """
    rows = audit.histograms.group_rows
    places = np.sort(np.argsort(-rows, kind="stable")[:MOST_NAMED])
    distances = audit.distances[np.ix_(places, places)]
    levels = np.searchsorted(LEVELS, distances, side="right")
    return Matrix(
        tuple(places.tolist()),
        tuple(map(tuple, distances.tolist())),
        tuple(map(tuple, levels.tolist())),
        len(rows) - places.size,
    )
