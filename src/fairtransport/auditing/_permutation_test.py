"""The permutation test of no difference between groups, on histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._pair_tests import index_pairs, pair_distances, pair_scales
from fairtransport.metrics import NoiseFloor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._confidence_intervals import Stratum
    from fairtransport.auditing._disparity_norms import DisparityNorm

__all__ = ["PAIRS_TEST", "joint_noise_floors", "noise_floors"]

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
    return joint_noise_floors([stratum], n_permutations, rng)[0]


def joint_noise_floors(
    strata: Sequence[Stratum], n_permutations: int, rng: np.random.Generator
) -> tuple[dict[str, NoiseFloor], list[dict[str, NoiseFloor]]]:
    """Measure every disparity after each permutation of group membership within strata.

    Parameters
    ----------
    strata : sequence of Stratum
    n_permutations : int
    rng : numpy.random.Generator

    Returns
    -------
    total : dict of str to NoiseFloor
        The sums over strata, by weight, and the statistic of the test of no difference in any stratum.
    parts : list of dict
        The same for each stratum alone, with weight 1.
    """
    index = index_pairs(strata)
    scales = index.scales(strata)
    names = [norm.name for norm in strata[0].norms]
    total = {name: np.zeros(n_permutations + 1) for name in (*names, PAIRS_TEST)}
    parts = [{name: np.empty(n_permutations + 1) for name in total} for _ in strata]
    chunk = max(1, _MAX_CURVE_ENTRIES // sum(stratum.histograms.masses.size for stratum in strata))
    starts = [*range(0, n_permutations, chunk), n_permutations]
    for start, stop in zip(starts, [*starts[1:], n_permutations + 1], strict=True):
        at = slice(start, stop)
        distances = np.zeros((len(index.pairs), stop - start))
        for stratum, part, positions in zip(strata, parts, index.positions, strict=True):
            histograms = stratum.histograms
            # The observed groups come last, after all permutations.
            curves = histograms.curves() if start == n_permutations else histograms.null_curves(rng, stop - start)
            for norm in stratum.norms:
                part[norm.name][at] = _measure(norm, stratum, curves)
                total[norm.name][at] += stratum.weight * part[norm.name][at]
            between = pair_distances(curves[:-1], histograms.widths)
            part[PAIRS_TEST][at] = (between / pair_scales(histograms.effective_sizes)[:, None]).max(axis=0)
            distances[positions] += stratum.weight * between
        total[PAIRS_TEST][at] = (distances / scales[:, None]).max(axis=0)
    return _floors(total), [_floors(part) for part in parts]


def _floors(values: Mapping[str, NDArray[np.float64]]) -> dict[str, NoiseFloor]:
    return {name: NoiseFloor(float(each[-1]), each[:-1]) for name, each in values.items()}


def _measure(norm: DisparityNorm, stratum: Stratum, curves: NDArray[np.float64]) -> NDArray[np.float64]:
    histograms = stratum.histograms
    prepared = norm.prepare(curves, histograms)
    if norm.target is not None:
        prepared = prepared - histograms.average_cdf(norm.target)
    return norm.total(prepared, norm.widths(histograms))
