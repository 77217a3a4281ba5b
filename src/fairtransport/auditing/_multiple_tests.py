"""Adjustments for many looks at the same data: Holm's p-values, and critical values for selected pairs."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["holm", "pair_critical_value", "range_confidence", "selected_confidence", "selection_factor"]

_POINTS = np.linspace(-9.0, 9.0, 1201)
_NORMAL = NormalDist()
_CDF = np.array([_NORMAL.cdf(float(point)) for point in _POINTS])
_DENSITY = np.exp(-(_POINTS**2) / 2) / np.sqrt(2 * np.pi)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Holm's method; NaN are left out.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)

    Returns
    -------
    array of shape (n_tests,)
        Rejecting those of at most alpha makes any false rejection in at most a share alpha of families of tests,
        whatever the dependence between them.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(values))
    order = tests[np.argsort(values[tests], kind="stable")]
    steps = values[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps)) if order.size else steps
    return adjusted


def range_confidence(critical: float, n_groups: int) -> float:
    """Return the probability that all pairs of normal means lie within ``critical`` standard errors of each other.

    Examples
    --------
    >>> round(range_confidence(1.96, 2), 3), round(range_confidence(3.27, 12), 3)
    (0.95, 0.95)
    """
    within = _CDF - np.interp(_POINTS - critical * np.sqrt(2), _POINTS, _CDF, left=0.0)
    heights = _DENSITY * within ** (n_groups - 1)
    return float(n_groups * (heights[1:] + heights[:-1]).sum() / 2 * (_POINTS[1] - _POINTS[0]))


@lru_cache(maxsize=256)
def pair_critical_value(n_groups: int, confidence: float) -> float:
    r"""Return the critical value of simultaneous intervals for the differences between all pairs of groups (Tukey).

    Parameters
    ----------
    n_groups : int
        At least two.
    confidence : float

    Returns
    -------
    float
        The quantile of the studentised range, divided by :math:`\sqrt 2`; the normal quantile for two groups.

    Examples
    --------
    >>> round(pair_critical_value(2, 0.95), 2), round(pair_critical_value(6, 0.95), 2)
    (1.96, 2.85)
    """
    if n_groups == 2:
        return _NORMAL.inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 12.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if range_confidence(middle, n_groups) < confidence else (low, middle)
    return (low + high) / 2


def selection_factor(n_pairs: int, n_groups: int, confidence: float) -> float:
    """Return the factor of standard errors for an interval of one of several pairs that was selected by its value.

    Parameters
    ----------
    n_pairs : int
        Number of pairs that might have been selected.
    n_groups : int
        Number of groups that the pairs are from.
    confidence : float

    Returns
    -------
    float
        Sidak's or Tukey's critical value, whichever is smaller, relative to that of a single pair.

    Examples
    --------
    >>> selection_factor(1, 6, 0.95), round(selection_factor(15, 6, 0.95), 2)
    (1.0, 1.45)
    """
    plain = _NORMAL.inv_cdf((1 + confidence) / 2)
    if n_pairs <= 1:
        return 1.0
    sidak = _NORMAL.inv_cdf((1 + confidence ** (1 / n_pairs)) / 2)
    return min(sidak, pair_critical_value(n_groups, confidence)) / plain


def selected_confidence(n_pairs: int, n_groups: int, confidence: float) -> float:
    """Return the confidence level of an ordinary interval that is as wide as `selection_factor` asks.

    Examples
    --------
    >>> selected_confidence(1, 2, 0.95), round(selected_confidence(15, 6, 0.95), 4)
    (0.95, 0.9956)
    """
    if n_pairs <= 1:
        return confidence
    plain = _NORMAL.inv_cdf((1 + confidence) / 2)
    return 2 * _NORMAL.cdf(selection_factor(n_pairs, n_groups, confidence) * plain) - 1
