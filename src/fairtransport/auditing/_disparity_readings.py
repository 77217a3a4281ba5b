"""Disparities with their confidence intervals, noise floors and p-values; distances in units of the score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._confidence_intervals import (
    METRICS,
    DisparityNorm,
    Stratum,
    confidence_distributions,
    joint_noise_floors,
    make_norms,
)
from fairtransport.auditing._evidence import EVERYONE, MAX_NODES, coarsen
from fairtransport.auditing.options import Options
from fairtransport.auditing.proportions import SMALLEST, Estimate
from fairtransport.auditing.records import PairSummary, Reading
from fairtransport.histograms import GroupHistograms
from fairtransport.metrics import NoiseFloor

if TYPE_CHECKING:
    from fairtransport.auditing._confidence_intervals import ConfidenceDistribution
    from fairtransport.auditing._evidence import CoarseHistograms, Evidence

_MAX_ENTRIES = 1 << 14  # nodes times groups times strata
_MIN_NODES = 16


def make_stratum(
    histograms: GroupHistograms,
    norms: tuple[DisparityNorm, ...],
    *,
    n_strata: int = 1,
    scale: float = 1.0,
    **settings: Any,
) -> Stratum:
    """Return coarse histograms with the disparities to measure; many groups or strata get fewer bins each."""
    most = MAX_NODES if any(norm.kind == "largest" for norm in norms) else MAX_NODES // 2
    n_nodes = int(np.clip(_MAX_ENTRIES // (len(histograms.rows) * n_strata), _MIN_NODES, most))
    return Stratum(coarsen(histograms, n_nodes, scale=scale), norms, **settings)


def disparity_readings(
    strata: Sequence[Stratum],
    values: Sequence[Mapping[str, float]],
    floors: Mapping[str, NoiseFloor],
    options: Options,
    rng: np.random.Generator,
    *,
    p_value: float,
) -> dict[str, Reading]:
    """Return the weighted sum over strata of each disparity, with interval, noise floor and p-value."""
    readings = {}
    kinds = {norm.name: norm.kind for norm in strata[0].norms}
    tail = 1 - options.inference.confidence
    tail = tail if p_value <= tail or "fixed" in kinds.values() else 0.0
    distributions = confidence_distributions(strata, options.inference.n_bootstrap, rng, tail=tail)
    for name, distribution in distributions.items():
        floor = floors[name]
        value = float(sum(stratum.weight * value[name] for stratum, value in zip(strata, values, strict=True)))
        binning_error = value - floor.observed
        p = distribution.p_value if kinds[name] == "fixed" else p_value
        if value == 0:
            p = 1.0
        most = sum(stratum.weight * _largest(kinds[name], stratum.histograms) for stratum in strata)
        estimate = _estimate(distribution, p, binning_error, options.inference.confidence, most)
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
    """Return the bias-corrected distance between two groups, with its interval."""
    norm = DisparityNorm(METRICS[2], "pairs")
    strata = [
        make_stratum(each, (norm,), n_strata=len(histograms), weight=weight, noise_factor=noise_factor)
        for each, weight in zip(histograms, weights, strict=True)
    ]
    tail = 1 - options.inference.confidence
    tail = tail if p_value <= tail else 0.0
    distributions = confidence_distributions(strata, options.inference.n_bootstrap, rng, tail=tail)
    observed = sum(
        stratum.weight * float(norm.total(stratum.histograms.curves(), stratum.histograms.widths)[0])
        for stratum in strata
    )
    most = sum(stratum.weight * _largest(norm.kind, stratum.histograms) for stratum in strata)
    return _estimate(distributions[norm.name], p_value, distance - observed, options.inference.confidence, most)


def _largest(kind: str, histograms: CoarseHistograms) -> float:
    """Return the largest value that a disparity can have: every distance as long as the range of scores."""
    if kind == "largest":
        return 1.0
    n_groups = histograms.group_shares.size
    return float(histograms.widths.sum()) * (math.comb(n_groups, 2) if kind == "pairs" else n_groups)


def _estimate(
    distribution: ConfidenceDistribution, p_value: float, binning_error: float, confidence: float, most: float
) -> Estimate:
    """Return the median and the interval of a disparity, after correction for the error of coarse bins."""
    ends = distribution.interval(confidence, p_value)
    low, high = (min(most, _shift_positive(limit, binning_error)) for limit in ends)
    if p_value <= 1 - confidence:
        low = max(low, SMALLEST)
    high = max(low, high)
    return Estimate(min(max(low, _shift_positive(distribution.median, binning_error)), high), low, high)


def _shift_positive(disparity: float, binning_error: float) -> float:
    """Correct a positive disparity for the error of coarse bins; 0 stays 0."""
    return max(0.0, disparity + binning_error) if disparity > 0 else 0.0


# Distances between the scores of groups: their sums, and their estimates in units of the score.


def score_readings(
    parts: Sequence[tuple[Evidence, float]],
    options: Options,
    rng: np.random.Generator,
    *,
    p_value: float,
    whole: Evidence,
) -> dict[str, Reading]:
    """Return disparities of scores without known bounds, computed in interquartile ranges, in units of the score."""
    grid = whole.histograms.grid
    spread = _spread(whole)
    strata = [
        make_stratum(
            evidence.histograms,
            make_norms(evidence.histograms, options.target, scale=1 / spread),
            n_strata=len(parts),
            scale=1 / spread,
            weight=weight,
        )
        for evidence, weight in parts
    ]
    values = [
        {name: value / spread for name, value in evidence.disparities(options.target).items()} for evidence, _ in parts
    ]
    floors, _ = joint_noise_floors(strata, options.inference.n_permutations, rng)
    unit = spread * (grid.high - grid.low)
    exact = all(evidence.exact for evidence, _ in parts)
    bounds = {} if exact else whole.histograms.filled().bounds()
    return {
        name: replace(reading.scaled(unit), resolution=(grid.high - grid.low) * bounds.get(name, 0.0))
        for name, reading in disparity_readings(strata, values, floors, options, rng, p_value=p_value).items()
    }


def _spread(evidence: Evidence) -> float:
    """Return the interquartile range of all scores as a share of their range, or their mean deviation where it is 0."""
    sample = evidence.sample(EVERYONE)
    low, middle, high = sample.quantile([0.25, 0.5, 0.75]).tolist()
    if high > low:
        return float(high - low)
    deviation = float(np.abs(sample.values - middle) @ sample.weights)
    return deviation if deviation > 0 else 1.0


# The scores at which two groups differ.


def summarise_pair(histograms: GroupHistograms, one: int, other: int, distance: float) -> PairSummary:
    """Find the scores at which two groups differ most."""
    cdf, grid = histograms.cdf, histograms.grid
    widths = grid.unit_widths if grid.positions else 1.0
    # The group with the higher distribution function has the lower scores.
    if np.sum((cdf[one] - cdf[other])[:-1] * widths) < 0:
        one, other = other, one
    lower, higher = cdf[one], cdf[other]
    gap = np.abs(lower - higher)
    nodes = grid.nodes
    area = np.append(0.0, np.cumsum(gap[:-1] * widths))
    ends = np.searchsorted(area, area + area[-1] / 2)
    starts = np.flatnonzero(ends < area.size)
    lengths = nodes[ends[starts]] - nodes[starts] if grid.positions else ends[starts] - starts
    start = starts[np.argmin(lengths)]
    widest = int(np.argmax(gap))
    names = histograms.groups.names
    return PairSummary(
        lower=names[one],
        higher=names[other],
        distance=distance,
        most_between=(float(nodes[start]), float(nodes[ends[start]])),
        threshold=float(nodes[widest]),
        shares_above=(float(1 - lower[widest]), float(1 - higher[widest])),
    )
