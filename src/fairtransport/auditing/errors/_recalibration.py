r"""Logistic recalibration: the intercept and slope of a logistic model of labels on the logits of scores.

.. math:: \operatorname{logit} P(y = 1) = a + b \operatorname{logit}(s)
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from fairtransport.auditing.proportions import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.transport.line import Sample

__all__ = ["CLIP", "WeightedSample", "calibration_intercept", "calibration_slope"]

#: Scores are clipped to [CLIP, 1 - CLIP], since the logits of 0 and 1 are infinite.
CLIP = 1e-4

_MAX_VALUES = 1 << 12  # of each class; longer samples are averaged in as many slices
_MAX_ITER = 50
_MAX_HALVINGS = 40
_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Logits of the scores with one label.

    Parameters
    ----------
    logits, weights : array of shape (n,)
        Ascending logits, and their weights.
    design : float
        Sum of squared weights divided by the sum of weights: the factor by which weights inflate variances; 1 for rows
        of weight 1.
    """

    logits: NDArray[np.float64]
    weights: NDArray[np.float64]
    design: float

    @classmethod
    def of(cls, sample: Sample, total: float, squares: float) -> WeightedSample:
        """Return the logits of a sample of scores on [0, 1], given its sums of weights and of squared weights."""
        logits, weights = logit(np.clip(sample.values, CLIP, 1 - CLIP)), sample.weights * total
        if logits.size > _MAX_VALUES:
            starts = np.arange(_MAX_VALUES) * logits.size // _MAX_VALUES
            masses = np.add.reduceat(weights, starts)
            logits, weights = np.add.reduceat(logits * weights, starts) / masses, masses
        return cls(logits, weights, squares / total)


def calibration_intercept(negatives: WeightedSample, positives: WeightedSample, confidence: float) -> Estimate | None:
    """Return the intercept with the slope fixed at 1, with Wald's interval; None where it does not exist.

    Examples
    --------
    >>> from fairtransport.transport.line import Sample
    >>> scores = Sample.from_values([0.2, 0.2, 0.2, 0.2])
    >>> rows = [WeightedSample.of(scores, 4.0, 4.0)] * 2
    >>> round(calibration_intercept(*rows, 0.95).value, 3)  # half are positive: logit(0.5) - logit(0.2)
    1.386
    """
    fitted = _fit(negatives, positives, n_parameters=1)
    return None if fitted is None else _wald(fitted[0][0], fitted[1][0, 0], confidence)


def calibration_slope(negatives: WeightedSample, positives: WeightedSample, confidence: float) -> Estimate | None:
    """Return the slope, with Wald's interval; None where it does not exist: scores that are constant or separated."""
    overlap = negatives.logits[-1] > positives.logits[0] and positives.logits[-1] > negatives.logits[0]
    fitted = _fit(negatives, positives, n_parameters=2) if overlap else None
    return None if fitted is None else _wald(fitted[0][1], fitted[1][1, 1], confidence)


def _wald(value: float, variance: float, confidence: float) -> Estimate:
    half = NormalDist().inv_cdf((1 + confidence) / 2) * float(np.sqrt(variance))
    return Estimate(float(value), float(value) - half, float(value) + half)


def _fit(
    negatives: WeightedSample, positives: WeightedSample, *, n_parameters: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Fit (intercept, slope), or the intercept alone, by Newton's method; return them with their covariance."""
    samples = (negatives, positives)
    x = np.concatenate([sample.logits for sample in samples])
    weights = np.concatenate([sample.weights for sample in samples])
    designs = np.concatenate([np.full(sample.logits.size, sample.design) for sample in samples])
    labels = np.concatenate([np.zeros(negatives.logits.size), np.ones(positives.logits.size)])
    columns = np.stack([np.ones_like(x), x])[:n_parameters]
    offset = x if n_parameters == 1 else np.zeros_like(x)
    signs = 1 - 2 * labels

    def loss(parameters: NDArray[np.float64]) -> float:
        return float(weights @ np.logaddexp(0.0, signs * (offset + parameters @ columns)))

    parameters = np.array([0.0, 1.0])[:n_parameters]
    now = loss(parameters)
    for _ in range(_MAX_ITER):
        shares = expit(offset + parameters @ columns)
        information = (columns * (weights * shares * (1 - shares))) @ columns.T
        try:
            step = np.linalg.solve(information, columns @ (weights * (labels - shares)))
        except np.linalg.LinAlgError:
            return None
        for _ in range(_MAX_HALVINGS):
            new = loss(parameters + step)
            if new <= now or not np.any(step):
                break
            step /= 2
        parameters, now = parameters + step, new
        if not np.all(np.isfinite(parameters)):
            return None
        if np.abs(step).max() <= _TOL * (1 + np.abs(parameters).max()):
            break
    else:
        return None
    shares = expit(offset + parameters @ columns)
    variances = weights * shares * (1 - shares)
    try:
        inverse = np.linalg.inv((columns * variances) @ columns.T)
    except np.linalg.LinAlgError:
        return None
    covariance = inverse @ ((columns * (variances * designs)) @ columns.T) @ inverse
    return parameters, covariance
