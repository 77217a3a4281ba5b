"""The disparities with their confidence intervals, noise floors and p-values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._coarse_histograms import MAX_NODES, coarsen
from fairtransport.auditing._confidence_intervals import Stratum, confidence_distributions
from fairtransport.auditing._disparity_norms import make_norms
from fairtransport.auditing.records import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.auditing.options import Options
    from fairtransport.histograms import GroupHistograms
    from fairtransport.metrics import NoiseFloor

__all__ = ["disparity_readings", "make_stratum"]

_MAX_ENTRIES = 1 << 14  # nodes times groups times strata
_MIN_NODES = 16


def make_stratum(histograms: GroupHistograms, target: Any, *, n_strata: int = 1) -> Stratum:
    """Return coarse histograms with the disparities to measure; many groups or strata get fewer bins each."""
    max_nodes = int(np.clip(_MAX_ENTRIES // (len(histograms.rows) * n_strata), _MIN_NODES, MAX_NODES))
    return Stratum(coarsen(histograms, max_nodes), make_norms(histograms, target))


def disparity_readings(
    strata: Sequence[Stratum],
    values: Sequence[Mapping[str, float]],
    floors: Mapping[str, NoiseFloor],
    options: Options,
    rng: np.random.Generator,
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

    Returns
    -------
    dict of str to Reading
        Without distribution-free margins (infinite).
    """
    readings = {}
    for name, distribution in confidence_distributions(strata, options.n_bootstrap, rng).items():
        low, high = distribution.interval(options.confidence)
        floor = floors[name]
        value = float(sum(stratum.weight * value[name] for stratum, value in zip(strata, values, strict=True)))
        binning_error = value - floor.observed
        if floor.p_value > (1 - options.confidence) / 2:  # not significant by the permutation test, which is exact
            low = 0.0
        readings[name] = Reading(
            value=value,
            low=_shift_positive(low, binning_error),
            high=_shift_positive(high, binning_error),
            corrected=_shift_positive(distribution.median, binning_error),
            margin=math.inf,
            floor=floor.mean,
            p_value=floor.p_value,
        )
    return readings


def _shift_positive(disparity: float, binning_error: float) -> float:
    """Correct a positive disparity for the error of coarse bins; 0 stays 0."""
    return max(0.0, disparity + binning_error) if disparity > 0 else 0.0
