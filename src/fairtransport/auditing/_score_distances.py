"""Distances between the scores of groups: their sums, and their estimates in units of the score."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._disparity_norms import METRICS
from fairtransport.auditing._disparity_readings import disparity_readings, make_stratum
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing._permutation_test import joint_noise_floors
from fairtransport.transport.line import wasserstein
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.records import Reading

__all__ = ["disparities_of", "score_readings"]


def score_readings(
    parts: Sequence[tuple[Evidence, float]],
    options: Options,
    rng: np.random.Generator,
    *,
    p_value: float,
    whole: Evidence,
) -> dict[str, Reading]:
    """Return the disparities of scores without known bounds, in units of the score.

    Parameters
    ----------
    parts : sequence of (Evidence, float)
        Parts of the rows, with their weights.
    options : Options
    rng : numpy.random.Generator
    p_value : float
        Of no difference between the groups' ranks. Scores differ if and only if ranks do.
    whole : Evidence
        Of all rows, for the scale.

    Returns
    -------
    dict of str to Reading

    Notes
    -----
    Distances are computed in interquartile ranges of all scores, so that tolerances fit scores of any scale.
    """
    grid = whole.histograms.grid
    spread = _spread(whole)
    strata = [
        replace(make_stratum(evidence.histograms, options.target, n_strata=len(parts), scale=1 / spread), weight=weight)
        for evidence, weight in parts
    ]
    values = [
        {name: value / spread for name, value in disparities_of(evidence, options.target).items()}
        for evidence, _ in parts
    ]
    floors, _ = joint_noise_floors(strata, options.n_permutations, rng)
    unit = spread * (grid.high - grid.low)
    exact = all(evidence.exact for evidence, _ in parts)
    bounds = {} if exact else whole.histograms.bounds()
    return {
        name: replace(
            reading,
            value=unit * reading.value,
            low=unit * reading.low,
            high=unit * reading.high,
            corrected=unit * reading.corrected,
            floor=None if reading.floor is None else unit * reading.floor,
            resolution=(grid.high - grid.low) * bounds.get(name, 0.0),
        )
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


def disparities_of(evidence: Evidence, target: Any) -> dict[str, float]:
    """Return the three disparities of the groups that have rows, from their distributions."""
    histograms = evidence.histograms
    weights = histograms.weights
    samples = [evidence.sample(group) for group in range(weights.size)]
    everyone = evidence.sample(EVERYONE)
    resolved = resolve_target(
        histograms.unit_target(target),
        samples,
        weights,
        labels=histograms.groups.labels,
        names=histograms.groups.names,
        everyone=everyone,
    )
    return {
        METRICS[0]: sum(wasserstein(sample, resolved) for sample in samples),
        METRICS[1]: sum(wasserstein(sample, everyone) for sample in samples),
        METRICS[2]: sum(wasserstein(one, other) for one, other in combinations(samples, 2)),
    }
