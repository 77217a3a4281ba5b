"""The disparities with their confidence intervals, noise floors and p-values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._coarse_histograms import MAX_NODES, coarsen
from fairtransport.auditing._confidence_intervals import Stratum, confidence_distributions
from fairtransport.auditing._disparity_norms import METRICS, DisparityNorm, make_norms, make_rank_norms
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.auditing._confidence_intervals import ConfidenceDistribution
    from fairtransport.auditing.options import Options
    from fairtransport.histograms import GroupHistograms
    from fairtransport.metrics import NoiseFloor

__all__ = ["disparity_readings", "make_rank_stratum", "make_stratum", "pair_estimate"]

_MAX_ENTRIES = 1 << 14  # nodes times groups times strata
_MIN_NODES = 16
_SMALLEST = 1e-9  # a lower limit that excludes 0


def make_stratum(histograms: GroupHistograms, target: Any, *, n_strata: int = 1, scale: float = 1.0) -> Stratum:
    """Return coarse histograms with the disparities to measure; many groups or strata get fewer bins each.

    Parameters
    ----------
    histograms : GroupHistograms
    target : str, label, array-like or Sample
    n_strata : int, default 1
    scale : float, default 1
        Length of the range, in which distances are measured.

    Returns
    -------
    Stratum
    """
    coarse = coarsen(histograms, _max_nodes(histograms, n_strata), scale=scale)
    return Stratum(coarse, make_norms(histograms, target, scale=scale))


def make_rank_stratum(histograms: GroupHistograms, *, n_strata: int = 1) -> Stratum:
    """Return coarse histograms of ranks with the disparities to measure."""
    return Stratum(coarsen(histograms, _max_nodes(histograms, n_strata)), make_rank_norms())


def _max_nodes(histograms: GroupHistograms, n_strata: int) -> int:
    return int(np.clip(_MAX_ENTRIES // (len(histograms.rows) * n_strata), _MIN_NODES, MAX_NODES))


def disparity_readings(
    strata: Sequence[Stratum],
    values: Sequence[Mapping[str, float]],
    floors: Mapping[str, NoiseFloor],
    options: Options,
    rng: np.random.Generator,
    *,
    p_value: float,
) -> dict[str, Reading]:
    """Return the weighted sum over strata of each disparity, with interval, noise floor and p-value.

    Parameters
    ----------
    strata : sequence of Stratum
    values : sequence of dict
        The disparities of each stratum, measured on its rows or full histograms.
    floors : dict of str to NoiseFloor
        Of the sums.
    options : Options
    rng : numpy.random.Generator
    p_value : float
        Of the test of no difference between groups. All disparities are 0 under the same hypothesis, so they have the
        same p-value; only the distance to a fixed distribution has its own.

    Returns
    -------
    dict of str to Reading
        Without distribution-free margins (infinite). An interval includes 0 if and only if the p-value exceeds 1 -
        confidence.
    """
    readings = {}
    kinds = {norm.name: norm.kind for norm in strata[0].norms}
    significant = p_value <= 1 - options.confidence or "fixed" in kinds.values()
    distributions = confidence_distributions(strata, options.n_bootstrap, rng, significant=significant)
    for name, distribution in distributions.items():
        floor = floors[name]
        value = float(sum(stratum.weight * value[name] for stratum, value in zip(strata, values, strict=True)))
        binning_error = value - floor.observed
        p = distribution.p_value if kinds[name] == "fixed" else p_value
        if value == 0:
            p = 1.0
        estimate = _estimate(distribution, p, binning_error, options.confidence)
        readings[name] = Reading(
            value=value,
            low=estimate.low,
            high=estimate.high,
            corrected=estimate.value,
            margin=math.inf,
            floor=floor.mean,
            p_value=p,
        )
    return readings


def pair_estimate(
    histograms: Sequence[GroupHistograms],
    options: Options,
    rng: np.random.Generator,
    *,
    distance: float,
    p_value: float,
    noise_factor: float,
    weights: Sequence[float],
) -> Estimate:
    """Return the bias-corrected distance between two groups, with its interval.

    Parameters
    ----------
    histograms : sequence of GroupHistograms
        Of the two groups, in each part of the rows.
    options : Options
    rng : numpy.random.Generator
    distance : float
        As observed.
    p_value : float
        The interval includes 0 if and only if it exceeds 1 - confidence.
    noise_factor : float
        Factor of the noise, for the selection of the pair.
    weights : sequence of float
        Of the parts.

    Returns
    -------
    Estimate
    """
    norm = DisparityNorm(METRICS[2], "pairs")
    max_nodes = int(np.clip(_MAX_ENTRIES // (2 * len(histograms)), _MIN_NODES, MAX_NODES))
    strata = [
        Stratum(coarsen(each, max_nodes), (norm,), weight, noise_factor=noise_factor)
        for each, weight in zip(histograms, weights, strict=True)
    ]
    significant = p_value <= 1 - options.confidence
    distribution = confidence_distributions(strata, options.n_bootstrap, rng, significant=significant)[norm.name]
    observed = sum(
        stratum.weight * float(norm.total(stratum.histograms.curves(), stratum.histograms.widths)[0])
        for stratum in strata
    )
    return _estimate(distribution, p_value, distance - observed, options.confidence)


def _estimate(
    distribution: ConfidenceDistribution, p_value: float, binning_error: float, confidence: float
) -> Estimate:
    """Return the median and the interval of a disparity, after correction for the error of coarse bins."""
    low, high = (_shift_positive(limit, binning_error) for limit in distribution.interval(confidence, p_value))
    if p_value <= 1 - confidence:
        low = max(low, _SMALLEST)
    high = max(low, high)
    return Estimate(min(max(low, _shift_positive(distribution.median, binning_error)), high), low, high)


def _shift_positive(disparity: float, binning_error: float) -> float:
    """Correct a positive disparity for the error of coarse bins; 0 stays 0."""
    return max(0.0, disparity + binning_error) if disparity > 0 else 0.0
