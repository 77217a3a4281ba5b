"""The permutation test of no difference between groups, on histograms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._pair_tests import largest_ratio
from fairtransport.metrics import NoiseFloor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._coarse_histograms import CoarseHistograms
    from fairtransport.auditing._confidence_intervals import Stratum
    from fairtransport.auditing._disparity_norms import DisparityNorm

__all__ = ["PAIRS_TEST", "noise_floors"]

#: Key of the statistic that the groups are tested with: the largest distance of a pair relative to its standard error.
PAIRS_TEST = "largest_ratio"

_MAX_CURVE_ENTRIES = 1 << 21  # in memory at a time


def noise_floors(stratum: Stratum, n_permutations: int, rng: np.random.Generator) -> dict[str, NoiseFloor]:
    """Measure every disparity after each permutation of group membership.

    Parameters
    ----------
    stratum : Stratum
    n_permutations : int
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to NoiseFloor
        By the names of the norms, and the statistic of the test of no difference by `PAIRS_TEST`. ``observed`` is
        measured on the same coarse bins as the permutations.

    Notes
    -----
    Rows keep their scores and groups their sizes: counts are drawn without replacement, which has the distribution of
    permuted rows at a cost that does not depend on their number.
    """
    histograms = stratum.histograms
    statistics = {norm.name: partial(_measure, norm, stratum) for norm in stratum.norms}
    statistics[PAIRS_TEST] = partial(_largest_ratio, histograms)
    values = {name: np.empty(n_permutations) for name in statistics}
    chunk = max(1, _MAX_CURVE_ENTRIES // histograms.masses.size)
    for start in range(0, n_permutations, chunk):
        stop = min(start + chunk, n_permutations)
        curves = histograms.null_curves(rng, stop - start)
        for name, measure in statistics.items():
            values[name][start:stop] = measure(curves)
    observed = histograms.curves()
    return {name: NoiseFloor(float(measure(observed)[0]), values[name]) for name, measure in statistics.items()}


def _largest_ratio(histograms: CoarseHistograms, curves: NDArray[np.float64]) -> NDArray[np.float64]:
    return largest_ratio(curves[:-1], histograms.widths, histograms.effective_sizes)


def _measure(norm: DisparityNorm, stratum: Stratum, curves: NDArray[np.float64]) -> NDArray[np.float64]:
    histograms = stratum.histograms
    prepared = norm.prepare(curves, histograms)
    if norm.target is not None:
        prepared = prepared - histograms.average_cdf(norm.target)
    return stratum.weight * norm.total(prepared, norm.widths(histograms))
