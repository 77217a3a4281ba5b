"""Disparity of ranks: how differently the groups are ordered, whatever the scale of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_vector, check_weights
from fairtransport.metrics._ordered import order_scores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["pooled_ranks", "rank_disparity"]


def pooled_ranks(scores: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""Replace each score by its mid-rank among all rows, as a share of the rows.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers.
    weights : array-like of shape (n,), optional
        Weight k equals k copies of a row; equal when omitted.

    Returns
    -------
    ndarray of shape (n,)
        Within (0, 1) for every row of positive weight; ties share one rank.

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
    heights = np.arange(values.size + 1.0) if masses is None else np.append(0.0, np.cumsum(masses[order]))
    cumulative = heights[starts]
    middles = (cumulative[:-1] + cumulative[1:]) / (2.0 * cumulative[-1])
    ranks = np.empty(values.size)
    ranks[order] = np.repeat(middles, np.diff(starts))
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
    r"""Sum over pairs of groups of the distance between their pooled ranks.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers: probabilities, logits, predictions of a regression, decile scores.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        How groups are made; see `fairtransport.make_groups`. With overlapping groups (``grouping="each"``),
        ranks are still among all rows, each counted once.

    Returns
    -------
    float
        0 when all groups have the same distribution of ranks. Two groups of equal size that do not overlap
        in score are at distance 0.5.

    See Also
    --------
    strong_pairwise_disparity : The same sum in units of the score.
    noise_floor : What this reads when groups are drawn by chance.

    Notes
    -----
    With :math:`R_a` the mid-ranks of group a among all rows (`pooled_ranks`), over unordered pairs of groups

    .. math:: \sum_{a < b} W_1(R_a, R_b) = \sum_{a < b} \int_0^1 |P(R_a > 1 - q) - P(R_b > 1 - q)| \, dq.

    This is the difference between two groups' selection rates, averaged over all shares q of people selected.
    It does not change under any increasing map of the scores, so a model does not lower it by shrinking its
    scores toward their mean.

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
    ordered = order_scores(
        pooled_ranks(values, weights),
        sensitive_features,
        weights,
        grouping=grouping,
        missing=missing,
        min_size=min_size,
    )
    return ordered.sums().between_pairs
