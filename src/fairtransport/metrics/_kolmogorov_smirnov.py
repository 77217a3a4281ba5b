"""The Kolmogorov-Smirnov disparity: the largest difference between groups' shares above any threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_choice
from fairtransport.groups import make_groups
from fairtransport.metrics._sorted_scores import SortedScores, sort_scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

__all__ = ["kolmogorov_smirnov_disparity"]

_BLOCK = 1 << 20  # cumulative shares in memory


def kolmogorov_smirnov_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    against: str = "pairs",
    reduce: str = "max",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the largest difference between two groups' shares of scores above the same threshold.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers: probabilities, logits, predictions of a regression, decile scores.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    against : {"pairs", "everyone"}, default "pairs"
        Whether groups are compared with each other or with all rows.
    reduce : {"max", "mean", "sum"}, default "max"
        How the statistics of all pairs, or of all groups, become one figure.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        As in `fairtransport.make_groups`.

    Returns
    -------
    float
        From 0, when all groups have the same distribution, to 1 for ``reduce="max"`` and ``"mean"``.

    See Also
    --------
    rank_disparity : The difference averaged over all shares selected, in place of the largest.
    strong_pairwise_disparity : The difference averaged over all thresholds.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    With :math:`S_a` the scores of group a, for each pair of groups

    .. math:: \sup_\tau |P(S_a > \tau) - P(S_b > \tau)|,

    the statistic of the two-sample Kolmogorov-Smirnov test. It is invariant under increasing maps of the scores. With
    ``against="everyone"``, the second distribution is that of all rows.

    References
    ----------
    Chzhen, Denis, Hebiri, Oneto and Pontil (2020), "Fair Regression with Wasserstein Barycenters", NeurIPS.
    Agarwal, Dudik and Wu (2019), "Fair Regression: Quantitative Definitions and Reduction-Based Algorithms", ICML.

    Examples
    --------
    >>> scores, groups = [10, 20, 30, 25, 35, 45], ["a", "a", "a", "b", "b", "b"]
    >>> round(kolmogorov_smirnov_disparity(scores, sensitive_features=groups), 3)
    0.667
    >>> round(kolmogorov_smirnov_disparity(scores, sensitive_features=groups, against="everyone"), 3)
    0.333
    """
    check_choice(against, ("pairs", "everyone"), name="against")
    check_choice(reduce, ("max", "mean", "sum"), name="reduce")
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    ordered = sort_scores(scores, groups, sample_weight)
    first, second = np.triu_indices(len(groups), 1)
    largest = np.zeros(len(groups) if against == "everyone" else first.size)
    for below in _shares_below(ordered):
        if against == "everyone":
            gaps = np.abs(below[:, :-1] - below[:, -1:]).max(axis=0)
        elif reduce == "max":  # the extremes at each threshold suffice
            gaps = np.ptp(below[:, :-1], axis=1).max(keepdims=True)
        else:
            gaps = np.array([np.abs(below[:, a] - below[:, b]).max() for a, b in zip(first, second, strict=True)])
        largest = np.maximum(largest, gaps)
    return float(largest.max() if reduce == "max" else largest.mean() if reduce == "mean" else largest.sum())


def _shares_below(ordered: SortedScores) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of the shares of each group, and of all rows, at or below each distinct score."""
    n_groups, n = len(ordered.groups), ordered.values.size
    size = max(1, _BLOCK // (n_groups + 1))
    total = np.zeros(n_groups + 1)
    for start in range(0, n, size):
        end = min(start + size, n)
        codes = ordered.codes[start:end].astype(np.int64)
        masses = np.ones(codes.size) if ordered.masses is None else ordered.masses[start:end]
        steps = np.zeros((codes.size, n_groups + 1))
        steps[np.arange(codes.size), codes] = masses
        if not ordered.separate:
            steps[:, -1] = masses
        sums = total + np.cumsum(steps, axis=0)
        total = sums[-1].copy()
        following = ordered.values[start + 1 : end + 1]
        last_of_tie = np.append(following != ordered.values[start : start + following.size], True)[: codes.size]
        if last_of_tie.any():
            yield sums[last_of_tie] / ordered.totals
