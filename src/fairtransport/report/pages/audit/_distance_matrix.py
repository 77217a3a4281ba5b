"""Distances between groups as a matrix of cells, shaded by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["LEVELS", "DistanceMatrix", "collect_distance_matrix"]

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Distances at which the shade of a cell changes: the same on every page, so that pages can be compared."""


@dataclass(frozen=True)
class DistanceMatrix:
    """Distances between the largest groups.

    Parameters
    ----------
    indices : tuple of int
        Indices of the groups that are shown.
    distances : tuple of tuple of float
        Distances between them.
    levels : tuple of tuple of int
        Shade of each distance, from 0 to ``len(LEVELS)``.
    left_out : int
        Number of smaller groups that are not shown.
    """

    indices: tuple[int, ...]
    distances: tuple[tuple[float, ...], ...]
    levels: tuple[tuple[int, ...], ...]
    left_out: int


def collect_distance_matrix(audit: Audit) -> DistanceMatrix:
    """Return the distances between the largest groups, at most twelve; of ranks, where scores have no known bounds.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Returns
    -------
    DistanceMatrix

    Examples
    --------
    >>> import fairtransport as ft
    >>> audit = ft.audit([0.1, 0.1, 0.13, 0.29], sensitive_features=["a", "a", "b", "c"], n_bootstrap=99)
    >>> collect_distance_matrix(audit).levels
    ((0, 2, 5), (2, 0, 5), (5, 5, 0))
    """
    rows = audit.histograms.group_rows
    indices = np.sort(np.argsort(-rows, kind="stable")[:MOST_NAMED])
    whole = audit.distances if audit.rank_distances is None else audit.rank_distances
    distances = whole[np.ix_(indices, indices)]
    levels = np.searchsorted(LEVELS, distances, side="right")
    return DistanceMatrix(
        tuple(indices.tolist()),
        tuple(map(tuple, distances.tolist())),
        tuple(map(tuple, levels.tolist())),
        len(rows) - indices.size,
    )
