"""The discrete penalty: exact transport from each group's scores to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_scores
from fairtransport.penalties.base import PenaltyTerms, cells, check_targets
from fairtransport.transport.coupled import area_below, coupled_distance, coupled_pull, place_of, running_area

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["DiscretePenalty"]


class DiscretePenalty:
    r"""Sum over groups of the Wasserstein-1 distance to the target, computed exactly.

    Parameters
    ----------
    target : array-like, or list of array-likes
        Target scores; with strata, one vector for each.

    Notes
    -----
    With the optimal coupling T of a group's n scores and the target,

    .. math:: \frac{\partial W_1}{\partial s_i} = \sum_j T_{ij}\,\mathrm{sign}(s_i - t_j)

    (the paper's DOT). The distance is piecewise linear in the scores; where a score meets the target
    value it is coupled with, this is the middle of the subgradients.

    Examples
    --------
    >>> from fairtransport.groups import make_groups
    >>> groups = make_groups(["a", "a", "b", "b"])
    >>> terms = DiscretePenalty([0.5]).value_and_gradient([0.1, 0.3, 0.5, 0.9], groups)
    >>> round(terms.value, 3)
    0.5
    >>> terms.gradient.tolist()
    [-0.5, -0.5, 0.0, 0.5]
    """

    def __init__(self, target: ArrayLike | list[ArrayLike]) -> None:
        self.targets = check_targets(target)
        self._ascending = tuple(np.sort(scores) for scores in self.targets)

    def value_and_gradient(self, scores: ArrayLike, groups: Groups, *, strata: ArrayLike | None = None) -> PenaltyTerms:
        """Exact distance and its derivative; groups absent from the batch are passed over."""
        s = check_scores(scores)
        gradient = np.zeros_like(s)
        by_group = np.full((len(self.targets), len(groups)), np.nan)
        value = 0.0
        for cell in cells(s, groups, strata, len(self.targets)):
            distance, pull = _to_target(s[cell.rows], self._ascending[cell.stratum])
            by_group[cell.stratum, cell.group] = distance
            value += cell.share * distance
            gradient[cell.rows] += cell.share * pull
        return PenaltyTerms(float(value), gradient, by_group)


def _to_target(scores: NDArray[np.float64], ascending: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Wasserstein-1 distance to the target, whose scores ascend, and its derivative."""
    n, m = len(scores), len(ascending)
    rank = np.empty(n)
    rank[np.argsort(scores, kind="stable")] = np.arange(n)
    low, high = rank / n, (rank + 1.0) / n
    below, upto = (np.searchsorted(ascending, scores, side=side) / m for side in ("left", "right"))
    levels = np.stack([low, high, np.clip(upto, low, high)])
    at = place_of(levels, m)
    areas = area_below(levels, at, m, values=ascending[at], running=running_area(ascending)[at])
    return float(coupled_distance(scores, low, high, upto, areas).sum()), coupled_pull(low, high, below, upto)
