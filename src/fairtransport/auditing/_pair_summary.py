"""The scores at which two groups differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing.records import PairSummary

if TYPE_CHECKING:
    from fairtransport.histograms import GroupHistograms

__all__ = ["summarise_pair"]


def summarise_pair(histograms: GroupHistograms, one: int, other: int, distance: float) -> PairSummary:
    """Find the scores at which two groups differ most.

    Parameters
    ----------
    histograms : GroupHistograms
    one, other : int
        Indices of the groups.
    distance : float
        Wasserstein-1 distance between them.

    Returns
    -------
    PairSummary
        Scores are accurate to one bin.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> histograms = count_scores([0.0, 0.5, 0.0, 0.75], sensitive_features=["a", "a", "b", "b"])
    >>> pair = summarise_pair(histograms, 0, 1, 0.125)
    >>> pair.higher, pair.threshold, pair.shares_above
    ('b', 0.5, (0.0, 0.5))
    >>> pair.most_between[1] - pair.most_between[0]
    0.125
    """
    cdf, grid = histograms.cdf, histograms.grid
    widths = grid.unit_widths if grid.positions else 1.0
    # The group with the higher distribution function has the lower scores.
    if np.sum((cdf[one] - cdf[other])[:-1] * widths) < 0:
        one, other = other, one
    lower, higher = cdf[one], cdf[other]
    gap = np.abs(lower - higher)
    nodes = grid.nodes
    area = np.append(0.0, np.cumsum(gap[:-1] * widths))
    ends = np.searchsorted(area, area + area[-1] / 2)
    starts = np.flatnonzero(ends < area.size)
    lengths = nodes[ends[starts]] - nodes[starts] if grid.positions else ends[starts] - starts
    start = starts[np.argmin(lengths)]
    widest = int(np.argmax(gap))
    names = histograms.groups.names
    return PairSummary(
        lower=names[one],
        higher=names[other],
        distance=distance,
        most_between=(float(nodes[start]), float(nodes[ends[start]])),
        threshold=float(nodes[widest]),
        shares_above=(float(1 - lower[widest]), float(1 - higher[widest])),
    )
