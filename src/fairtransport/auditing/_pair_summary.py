"""Where on the score two groups differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairtransport.histograms import GroupHistograms

__all__ = ["PairSummary", "pair_summary"]


@dataclass(frozen=True)
class PairSummary:
    """Two groups: how far apart, and in which scores.

    Parameters
    ----------
    lower, higher : str
        Names; ``higher`` has the higher mean.
    distance : float
        Wasserstein-1, as a share of the range of scores.
    most_between : pair of float
        The shortest range of scores that holds half of the distance.
    threshold : float
        Where the shares above differ most.
    shares_above : pair of float
        There, of the lower and of the higher group.
    """

    lower: str
    higher: str
    distance: float
    most_between: tuple[float, float]
    threshold: float
    shares_above: tuple[float, float]


def pair_summary(histograms: GroupHistograms, one: int, other: int, distance: float) -> PairSummary:
    """Find where two groups differ most.

    Parameters
    ----------
    histograms : GroupHistograms
    one, other : int
        Positions of the groups.
    distance : float
        Between them.

    Returns
    -------
    PairSummary
        Scores to within one bin.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> counted = count_scores([0.0, 0.5, 0.0, 0.75], sensitive_features=["a", "a", "b", "b"])
    >>> found = pair_summary(counted, 0, 1, 0.125)
    >>> found.higher, found.threshold, found.shares_above
    ('b', 0.5, (0.0, 0.5))
    >>> found.most_between[1] - found.most_between[0]
    0.125
    """
    cdf = histograms.cdf
    if np.sum(cdf[one] - cdf[other]) < 0:  # the higher function has the lower scores
        one, other = other, one
    lower, higher = cdf[one], cdf[other]
    gap = np.abs(lower - higher)
    nodes = histograms.grid.nodes
    area = np.append(0.0, np.cumsum(gap[:-1]))
    ends = np.searchsorted(area, area + area[-1] / 2)
    inside = np.flatnonzero(ends < area.size)
    start = inside[np.argmin(ends[inside] - inside)]
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
