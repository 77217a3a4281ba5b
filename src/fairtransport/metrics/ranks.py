"""Pooled ranks and their disparity, which does not depend on the scale of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_vector, check_weights
from fairtransport.metrics._disparity import strong_pairwise_disparity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["pooled_ranks", "rank_disparity"]


def pooled_ranks(scores: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""Return the mid-rank of each score among all rows, as a share of the rows.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers.
    weights : array-like of shape (n,), optional
        A weight of k is equivalent to k copies of a row; equal when omitted.

    Returns
    -------
    ndarray of shape (n,)
        Within (0, 1) for every row of positive weight; tied scores have the same rank.

    See Also
    --------
    rank_disparity : The pairwise disparity of these ranks.

    Notes
    -----
    With F the distribution function of all scores and :math:`F(s^-)` its limit from below,

    .. math:: r(s) = \tfrac{1}{2} \bigl(F(s^-) + F(s)\bigr).

    Without weights this is ``(scipy.stats.rankdata(scores) - 0.5) / n``.

    Examples
    --------
    >>> pooled_ranks([3.0, -1.0, 3.0, 20.0])
    array([0.5  , 0.125, 0.5  , 0.875])
    """
    values = check_vector(scores, name="scores")
    masses = check_weights(weights, size=values.size, name="weights")
    order = np.argsort(values)
    ascending = values[order]
    first = np.append(True, ascending[1:] != ascending[:-1])
    starts = np.append(np.flatnonzero(first), values.size)
    totals = np.arange(values.size + 1.0) if masses is None else np.append(0.0, np.cumsum(masses[order]))
    cumulative = totals[starts]
    mid_ranks = (cumulative[:-1] + cumulative[1:]) / (2.0 * cumulative[-1])
    ranks = np.empty(values.size)
    ranks[order] = np.repeat(mid_ranks, np.diff(starts))
    return ranks


def rank_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum over pairs of groups of the distance between their pooled ranks.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers: probabilities, logits, predictions of a regression, decile scores.
    sensitive_features, sample_weight, grouping, missing, min_size
        As in `wasserstein_disparity`. With overlapping groups (``grouping="each"``) every row still counts once among
        all rows.

    Returns
    -------
    float
        0 when all groups have the same distribution of ranks; 0.5 for two groups of equal size whose scores do not
        overlap.

    See Also
    --------
    strong_pairwise_disparity : The same sum in units of the score.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    With :math:`R_a` the mid-ranks of group a among all rows (`pooled_ranks`), over unordered pairs of groups

    .. math:: \sum_{a < b} W_1(R_a, R_b) = \sum_{a < b} \int_0^1 |P(R_a > 1 - q) - P(R_b > 1 - q)| \, dq.

    This is the difference between two groups' selection rates, averaged over all shares q of rows selected. It is
    invariant under increasing maps of the scores, so a model cannot lower it by shrinking its scores toward their mean.

    Examples
    --------
    >>> scores, groups = [0.1, 0.2, 0.3, 0.4], ["a", "a", "b", "b"]
    >>> rank_disparity(scores, sensitive_features=groups)
    0.5
    >>> rank_disparity([score / 2 for score in scores], sensitive_features=groups)
    0.5
    """
    values = check_vector(scores, name="scores")
    weights = check_weights(sample_weight, size=values.size)
    return strong_pairwise_disparity(
        pooled_ranks(values, weights),
        sensitive_features=sensitive_features,
        sample_weight=weights,
        grouping=grouping,
        missing=missing,
        min_size=min_size,
    )
