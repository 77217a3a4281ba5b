"""The permutation test of no difference between groups, on histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.metrics import NoiseFloor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._confidence_intervals import Stratum
    from fairtransport.auditing._disparity_norms import DisparityNorm

__all__ = ["noise_floors"]

_MAX_CURVE_ENTRIES = 1 << 21  # in memory at a time


def noise_floors(strata: Sequence[Stratum], n_permutations: int, rng: np.random.Generator) -> dict[str, NoiseFloor]:
    """Measure every disparity after each permutation of group membership within each stratum.

    Parameters
    ----------
    strata : sequence of Stratum
        Disparities are summed over strata, by weight.
    n_permutations : int
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to NoiseFloor
        By the names of the norms. ``observed`` is measured on the same coarse bins as the permutations.

    Notes
    -----
    Rows keep their scores and groups their sizes: counts are drawn without replacement, which has the distribution of
    permuted rows at a cost that does not depend on their number. With weights (or 10**9 rows and more) each group is
    instead redrawn from the distribution of all rows, with its effective sample size.
    """
    names = [norm.name for norm in strata[0].norms]
    observed, values = dict.fromkeys(names, 0.0), {name: np.zeros(n_permutations) for name in names}
    for stratum in strata:
        histograms = stratum.histograms
        chunk = max(1, _MAX_CURVE_ENTRIES // histograms.masses.size)
        for start in range(0, n_permutations, chunk):
            stop = min(start + chunk, n_permutations)
            curves = histograms.permute(rng, stop - start)
            for norm in stratum.norms:
                values[norm.name][start:stop] += _measure(norm, stratum, curves)
        for norm in stratum.norms:
            observed[norm.name] += float(_measure(norm, stratum, histograms.curves())[0])
    return {name: NoiseFloor(observed[name], values[name]) for name in observed}


def _measure(norm: DisparityNorm, stratum: Stratum, curves: NDArray[np.float64]) -> NDArray[np.float64]:
    histograms = stratum.histograms
    prepared = norm.prepare(curves, histograms)
    if norm.target is not None:
        prepared = prepared - histograms.average_cdf(norm.target)
    return stratum.weight * norm.total(prepared, norm.widths(histograms))
