r"""Confidence intervals of norms of deviations, such as the largest difference between the rates of several groups.

The largest difference of several observed rates is biased upward: it is positive even where all true rates are equal.
As in `fairtransport.auditing._confidence_intervals`, intervals are obtained by inversion. The true deviations are taken
to be a multiple :math:`\lambda D` of the observed ones D; for each draw h of the noise, the equation

.. math:: \|\lambda_b D + h_b\| = \|D\|, \qquad \theta_b = \lambda_b \|D\|,

is solved for the true norm :math:`\theta_b` that would have been observed as it was. The upper limit is not lower than
that of the norm linearised at D, which has no bias where the largest deviations stand out, nor than that of a smooth
direction. The lower limit is not higher than that of a direction with ties: groups that are truly alike differ by
chance, and the noise adds more to the norm of deviations that are tied than to that of deviations which stand out. It
is 0 where noise alone reaches the observed norm too often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._confidence_intervals import smooth_direction
from fairtransport.auditing._secant import largest_roots
from fairtransport.auditing.proportions import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Norm = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["N_DRAWS", "CorrectedEstimate", "interval_of_norm", "rate_noise", "smooth_deviations", "tied_deviations"]

#: Draws of the errors of rates: so cheap that they need not be as few as bootstrap replicates.
N_DRAWS = 2000

_STEP = 1e-6  # of the directional derivative
_TIED = 2.0  # standard errors: groups that are closer are treated as equal
_FLAT = 1.0  # standard errors: differences at two thresholds that are treated as equal
_EQUAL = 1e-12  # a norm that is 0 but for rounding


@dataclass(frozen=True)
class CorrectedEstimate(Estimate):
    """An estimate that is biased upward, with its interval and its value corrected for the bias.

    Parameters
    ----------
    value : float
        As observed.
    low, high : float
        Confidence interval of the true value. It corrects for the bias, so the observed value may lie above it.
    corrected : float
        The value after correction for the bias.
    """

    corrected: float


def rate_noise(
    values: NDArray[np.float64], sizes: NDArray[np.float64], rng: np.random.Generator, n_draws: int = N_DRAWS
) -> NDArray[np.float64]:
    """Draw the errors of observed proportions: observed minus true, with the true ones from Jeffreys' posterior.

    Parameters
    ----------
    values, sizes : array of shape (k,)
        Proportions and their effective sample sizes.
    rng : numpy.random.Generator
    n_draws : int, default 2000

    Returns
    -------
    array of shape (n_draws, k)
    """
    shape = (n_draws, *values.shape)
    return values - rng.beta(values * sizes + 0.5, (1 - values) * sizes + 0.5, size=shape)


def tied_deviations(
    curves: NDArray[np.float64], noise: NDArray[np.float64], *, flat: bool = False
) -> NDArray[np.float64]:
    r"""Return the figures of groups, with those indistinguishable from the highest or the lowest one set equal to it.

    Parameters
    ----------
    curves : array of shape (n_groups, k)
        Observed figures of each group, for instance at k thresholds.
    noise : array of shape (n_draws, n_groups, k)
        Draws of their errors.
    flat : bool, default False
        Also widen the difference of the highest and the lowest group to the largest of all k where it is
        indistinguishable from it, for norms that are the largest of k.

    Returns
    -------
    array of shape (n_groups, k)
        The difference of the highest and the lowest group is as observed unless ``flat``.
    """
    tied = curves - curves.mean(axis=0)
    top, bottom = np.argmax(tied, axis=0), np.argmin(tied, axis=0)
    at = np.arange(tied.shape[1])
    distances, near = [], []
    for extreme in (bottom, top):
        distance = np.abs(tied - tied[extreme, at])
        error = (noise - noise[:, extreme, at][:, None]).std(axis=0)
        distances.append(distance)
        near.append(distance <= _TIED * error)
    to_bottom = near[0] & (distances[0] <= distances[1])
    to_top = near[1] & ~to_bottom & (distances[1] <= distances[0])
    tied = np.where(to_bottom, tied[bottom, at], np.where(to_top, tied[top, at], tied))
    if flat:
        spread = np.ptp(tied, axis=0)
        error = (noise[:, top, at] - noise[:, bottom, at]).std(axis=0)
        largest = spread.max()
        near_largest = (spread > 0) & (largest - spread <= _FLAT * error)
        tied = tied * np.where(near_largest, largest / np.where(spread > 0, spread, 1.0), 1.0)
    return tied


def smooth_deviations(
    curves: NDArray[np.float64], noise: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the deviations of groups from their mean, nearly those of shifted scores.

    Parameters
    ----------
    curves : array of shape (n_groups, k)
        Distribution functions.
    noise : array of shape (n_draws, n_groups, k)
        Draws of their errors.
    widths : array of shape (k,)

    Returns
    -------
    array of shape (n_groups, k)
    """
    mean = curves.mean(axis=0)
    shift = mean * (1 - mean)
    deviations, errors = curves - mean, noise - noise.mean(axis=1, keepdims=True)
    return smooth_direction(deviations, errors, shift, widths)


def interval_of_norm(
    deviations: NDArray[np.float64],
    noise: NDArray[np.float64],
    norm: Norm,
    confidence: float,
    *,
    tied: NDArray[np.float64] | None = None,
    smooth: NDArray[np.float64] | None = None,
) -> CorrectedEstimate:
    """Return the norm of observed deviations with its confidence interval.

    Parameters
    ----------
    deviations : array of shape (k,)
        Observed deviations; their common part does not change the norm.
    noise : array of shape (n_draws, k)
        Draws of the errors of the deviations.
    norm : callable
        A seminorm of the last axis, ``(..., k) -> (...)``.
    confidence : float
    tied : array of shape (k,), optional
        Another direction for the lower limit; see `tied_deviations`.
    smooth : array of shape (k,), optional
        Another direction for the upper limit: with less of what noise explains.

    Returns
    -------
    CorrectedEstimate

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rates, sizes = np.array([0.3, 0.35, 0.6]), np.full(3, 200.0)
    >>> noise = rate_noise(rates, sizes, rng, 2000)
    >>> estimate = interval_of_norm(rates, noise, lambda array: np.ptp(array, axis=-1), 0.95)
    >>> round(estimate.value, 3), round(estimate.low, 2), round(estimate.high, 2)
    (0.3, 0.2, 0.39)
    """
    observed = float(norm(deviations))
    direction = deviations
    if observed <= _EQUAL:  # all equal: any direction will do
        direction = np.where(np.arange(deviations.size) % 2, 1e-3, -1e-3)
    chance = norm(noise)
    middle = float(np.median(chance))
    values = _largest_norms(norm, direction, noise, chance, observed)
    upper = values if observed >= middle else _largest_norms(norm, direction, noise, chance, middle)
    if smooth is not None and float(norm(smooth)) > _EQUAL:
        upper = np.maximum(upper, _largest_norms(norm, smooth, noise, chance, max(observed, middle)))
    linear = observed - (norm(deviations + _STEP * noise) - observed) / _STEP
    tail = (1 - confidence) / 2
    lower = values
    if tied is not None and float(norm(tied)) > _EQUAL:
        lower = np.minimum(values, _largest_norms(norm, tied, noise, chance, observed))
    p_value = (1 + np.count_nonzero(chance >= observed)) / (1 + len(chance))
    low = float(np.quantile(lower, tail, method="weibull")) if p_value <= tail else 0.0
    high = max(float(np.quantile(each, 1 - tail, method="weibull")) for each in (upper, linear))
    return CorrectedEstimate(observed, low, high, corrected=float(np.median(values)))


def _largest_norms(
    norm: Norm,
    direction: NDArray[np.float64],
    noise: NDArray[np.float64],
    chance: NDArray[np.float64],
    observed: float,
) -> NDArray[np.float64]:
    r"""Return the true norm at the largest root :math:`\lambda \ge 0` for each draw; 0 where there is none."""
    scale = float(norm(direction))
    if not scale > 0:
        return np.zeros(len(noise))
    start = (observed + chance) / scale  # right of the root, by the triangle inequality
    return scale * largest_roots(lambda at: norm(at[:, None] * direction + noise), observed, start, scale)
