"""Distribution-free bounds on disparities: Dvoretzky, Kiefer and Wolfowitz, with Massart's constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._disparity_norms import DisparityNorm

__all__ = ["distribution_free_margins"]


def distribution_free_margins(
    norms: Sequence[DisparityNorm],
    sizes: NDArray[np.float64],
    weights: NDArray[np.float64],
    confidence: float,
) -> dict[str, float]:
    r"""Bound the difference between each disparity and its true value, for any distributions.

    Parameters
    ----------
    norms : sequence of DisparityNorm
    sizes : array of shape (n_groups,)
        Effective sample sizes. With rows of unequal weight the bound is approximate.
    weights : array of shape (n_groups,)
        Total weights, for the distribution of all rows.
    confidence : float
        Simultaneous confidence level for all groups.

    Returns
    -------
    dict of str to float

    Notes
    -----
    With confidence :math:`1 - \alpha`, all of G empirical distribution functions are uniformly within

    .. math:: \varepsilon_a = \min\!\left(1, \sqrt{\frac{\log(2 G / \alpha)}{2 n_a}}\right)

    of the true ones, so the error of a distance on [0, 1] is at most the sum of two such bounds. The distance to the
    Wasserstein-1 barycenter is the smallest sum of distances to any distribution, so its margin is the sum over groups.

    Examples
    --------
    >>> from fairtransport.auditing._disparity_norms import DisparityNorm
    >>> pairs = DisparityNorm("spdd", "pairs")
    >>> margins = distribution_free_margins([pairs], np.array([1e4, 1e4]), np.array([1.0, 1.0]), 0.95)
    >>> round(margins["spdd"], 4)
    0.0296
    """
    n_groups = sizes.size
    radius = np.minimum(1.0, np.sqrt(np.log(2 * n_groups / (1 - confidence)) / (2 * np.maximum(sizes, 1e-9))))
    total, pooled = float(radius.sum()), float(weights @ radius / weights.sum())
    margins = {}
    for norm in norms:
        if norm.kind == "pairs":
            margin = (n_groups - 1) * total
        elif norm.kind in {"everyone", "mean"}:
            margin = total + n_groups * pooled
        elif norm.kind == "largest":
            margin = float(np.sort(radius)[-2:].sum())
        elif norm.kind == "group":
            margin = total + (n_groups - 2) * float(radius[norm.group])
        else:
            margin = total
        margins[norm.name] = margin
    return margins
