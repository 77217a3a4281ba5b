"""Proportions, their differences and ratios, and areas under ROC curves, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport.transport.line import Sample, positions

# Adjustments for many looks at the same data: Holm's p-values, and critical values for selected pairs.

_POINTS = np.linspace(-9.0, 9.0, 1201)
_NORMAL = NormalDist()
#: Distance from 0 of a lower limit that excludes it.
SMALLEST = 1e-9
_CDF = np.array([_NORMAL.cdf(float(point)) for point in _POINTS])
_DENSITY = np.exp(-(_POINTS**2) / 2) / np.sqrt(2 * np.pi)


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted by Holm's method; NaN are left out."""
    values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(values))
    order = tests[np.argsort(values[tests], kind="stable")]
    steps = values[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps)) if order.size else steps
    return adjusted


def student_quantile(freedom: float, level: float) -> float:
    """Return a quantile of Student's t distribution: by the expansion of Cornish and Fisher where SciPy can wait."""
    if freedom < 200:
        from scipy.special import stdtrit  # noqa: PLC0415 - importing it takes a tenth of the time of an audit

        return float(stdtrit(freedom, level))
    z = _NORMAL.inv_cdf(level)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return (
        z
        + ((z**3 + z) / 4 + (second + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / freedom) / freedom) / freedom
    )


def range_confidence(critical: float, n_groups: int) -> float:
    """Return the probability that all pairs of normal means lie within ``critical`` standard errors of each other."""
    within = _CDF - np.interp(_POINTS - critical * np.sqrt(2), _POINTS, _CDF, left=0.0)
    heights = _DENSITY * within ** (n_groups - 1)
    return float(n_groups * (heights[1:] + heights[:-1]).sum() / 2 * (_POINTS[1] - _POINTS[0]))


@lru_cache(maxsize=256)
def pair_critical_value(n_groups: int, confidence: float) -> float:
    """Return the critical value of simultaneous intervals for the differences between all pairs of groups (Tukey)."""
    if n_groups == 2:
        return _NORMAL.inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 12.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if range_confidence(middle, n_groups) < confidence else (low, middle)
    return (low + high) / 2


def selection_factor(n_pairs: int, n_groups: int, confidence: float) -> float:
    """Return the factor of standard errors for an interval of one of several pairs that was selected by its value."""
    plain = _NORMAL.inv_cdf((1 + confidence) / 2)
    if n_pairs <= 1:
        return 1.0
    sidak = _NORMAL.inv_cdf((1 + confidence ** (1 / n_pairs)) / 2)
    return min(sidak, pair_critical_value(n_groups, confidence)) / plain


def selected_confidence(n_pairs: int, n_groups: int, confidence: float) -> float:
    """Return the confidence level of an ordinary interval that is as wide as `selection_factor` asks."""
    if n_pairs <= 1:
        return confidence
    plain = _NORMAL.inv_cdf((1 + confidence) / 2)
    return 2 * _NORMAL.cdf(selection_factor(n_pairs, n_groups, confidence) * plain) - 1


@dataclass(frozen=True)
class Estimate:
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float


def agreeing(estimate: Estimate, null: float, *, rejected: bool) -> Estimate:
    """Return an estimate whose interval excludes a value if and only if a test, adjusted for others, rejects it."""
    low, high = estimate.low, estimate.high
    if not rejected:
        return Estimate(estimate.value, min(low, null), max(high, null))
    if low <= null <= high:
        low, high = (null + SMALLEST, high) if estimate.value > null else (low, null - SMALLEST)
    return Estimate(estimate.value, low, high)


@dataclass(frozen=True)
class Tally:
    """Total weight of the rows inside and outside a subset, and the sums of their squared weights."""

    inside: float
    outside: float
    inside_squares: float
    outside_squares: float

    @property
    def total(self) -> float:
        """Total weight of all rows."""
        return self.inside + self.outside

    @property
    def value(self) -> float:
        """Share of the weight inside; NaN without rows."""
        return self.inside / self.total if self.total > 0 else math.nan

    @property
    def effective_size(self) -> float:
        """Effective sample size (Kish): the number of rows of equal weight with the same precision; 0 without rows."""
        squares = self.inside_squares + self.outside_squares
        return self.total**2 / squares if squares > 0 else 0.0

    @property
    def binomial_size(self) -> float:
        """Sample size at which a proportion of rows of equal weight has the variance of this share; see `share`."""
        if not self.total > 0:
            return 0.0
        value = self.value
        variance = ((1 - value) ** 2 * self.inside_squares + value**2 * self.outside_squares) / self.total**2
        return value * (1 - value) / variance if variance > 0 else self.effective_size


def share(tally: Tally, confidence: float) -> Estimate:
    """Return the share of the weight inside, with Wilson's interval.

    It is computed for the sample size p (1 - p) / v at which a proportion has the variance of the weighted share,
    :math:`v = ((1-p)^2 Q_{in} + p^2 Q_{out}) / W^2` with Q the sums of squared weights; shares of 0 and 1 have W^2 / Q.
    """
    if not tally.total > 0:
        return Estimate(math.nan, 0.0, 1.0)
    return wilson(tally.value, tally.binomial_size, confidence)


def wilson(value: float, size: float, confidence: float) -> Estimate:
    """Return a share of a sample of some size, with Wilson's interval."""
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    middle = (value + z2 / (2 * size)) / (1 + z2 / size)
    half = math.sqrt(z2 * (value * (1 - value) / size + z2 / (4 * size**2))) / (1 + z2 / size)
    # Shares of 0 and 1 are exact limits of their intervals.
    return Estimate(
        value, 0.0 if value == 0 else max(0.0, middle - half), 1.0 if value == 1 else min(1.0, middle + half)
    )


def complement(rate: Estimate) -> Estimate:
    """Return 1 minus a proportion."""
    return Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """Return ``one`` minus ``other``, for independent proportions, with Newcombe's interval."""
    value = one.value - other.value
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, max(-1.0, value - down), min(1.0, value + up))


def ratio(one: Estimate, other: Estimate) -> Estimate:
    """Return ``one`` divided by ``other``, for independent proportions, with the interval of Donner and Zou."""
    if not other.value > 0:
        return Estimate(math.nan, 0.0, math.inf)
    value, product = one.value / other.value, one.value * other.value
    below = product**2 - one.low * other.high * (2 * one.value - one.low) * (2 * other.value - other.high)
    above = product**2 - one.high * other.low * (2 * one.value - one.high) * (2 * other.value - other.low)
    bottom_low = other.high * (2 * other.value - other.high)
    bottom_high = other.low * (2 * other.value - other.low)
    low = (product - math.sqrt(max(below, 0.0))) / bottom_low if bottom_low > 0 else 0.0
    high = (product + math.sqrt(max(above, 0.0))) / bottom_high if bottom_high > 0 else math.inf
    return Estimate(value, min(max(low, 0.0), value), max(high, value))


def extremes_confidence(rates: Sequence[Estimate], confidence: float) -> float:
    """Return the confidence level of the lowest and highest of several rates, for all pairs that may be extreme."""
    low, high = min(rates, key=lambda rate: rate.value), max(rates, key=lambda rate: rate.value)
    may_be_low, may_be_high = [rate.low <= low.high for rate in rates], [rate.high >= high.low for rate in rates]
    n_both = sum(one and other for one, other in zip(may_be_low, may_be_high, strict=True))
    n_pairs = sum(may_be_low) * sum(may_be_high) - n_both * (n_both + 1) // 2
    return selected_confidence(n_pairs, len(rates), confidence)


def critical_values(n_groups: int, confidence: float) -> list[float]:
    """Return the critical values of the differences between all pairs of 2, 3, ..., ``n_groups`` groups (Tukey)."""
    return [pair_critical_value(number, confidence) for number in range(2, n_groups + 1)]


def area_under_curve(
    negatives: Sample | None, positives: Sample | None, sizes: tuple[float, float], confidence: float
) -> Estimate | None:
    """Return the area under the ROC curve with Wilson's interval, for the sample size that has DeLong's variance."""
    if negatives is None or positives is None:
        return None
    over, under = _mid_levels(negatives, positives.values), 1 - _mid_levels(positives, negatives.values)
    value = float(over @ positives.weights)
    variances = (float((under - value) ** 2 @ negatives.weights), float((over - value) ** 2 @ positives.weights))
    variance = sum(part / max(size - 1, 1e-9) for part, size in zip(variances, sizes, strict=True))
    size = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else min(sizes)
    return wilson(float(np.clip(value, 0.0, 1.0)), max(size, 1e-9), confidence)


def _mid_levels(sample: Sample, points: Floats) -> Floats:
    """Return the share of a sample below each of some ascending points, ties counting half."""
    levels = np.append(0.0, sample.levels)
    below = levels[positions(sample.values, points)]
    at_or_below = levels[positions(sample.values, np.nextafter(points, np.inf))]
    return (below + at_or_below) / 2
