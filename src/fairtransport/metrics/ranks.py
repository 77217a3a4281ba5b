"""Pooled ranks, which do not depend on the scale of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_vector, check_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["pooled_ranks"]


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
