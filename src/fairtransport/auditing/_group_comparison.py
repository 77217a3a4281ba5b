"""The groups that are judged, compared: disparities, all pairs, and the pair that stands for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from fairtransport.auditing._coarse_histograms import variance_precision
from fairtransport.auditing._disparity_norms import METRICS
from fairtransport.auditing._disparity_readings import disparity_readings, make_stratum, pair_estimate
from fairtransport.auditing._dkw_bounds import distribution_free_margins
from fairtransport.auditing._multiple_tests import selection_factor
from fairtransport.auditing._pair_summary import summarise_pair
from fairtransport.auditing._pair_tests import compare_pairs
from fairtransport.auditing._permutation_test import PAIRS_TEST, noise_floors
from fairtransport.auditing.proportions import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._confidence_intervals import Stratum
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing._pair_tests import PairTests
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.records import PairSummary, Reading
    from fairtransport.histograms import GroupHistograms

__all__ = ["GroupComparison", "compare_groups"]


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """The differences between some groups of an audit.

    Parameters
    ----------
    readings : dict of str to Reading
        The three disparities.
    pair_p_values : array of shape (n_groups, n_groups)
        Of all groups of the audit; NaN where one of them is not compared.
    farthest : PairSummary
    largest_distance : float
        Upper confidence limit of the largest distance between any two of the groups.
    n_nodes : int
        Number of bins of the resampled histograms.
    permuted : bool
        Whether group membership was permuted.
    """

    readings: dict[str, Reading]
    pair_p_values: NDArray[np.float64]
    farthest: PairSummary
    largest_distance: float
    n_nodes: int
    permuted: bool


def compare_groups(
    evidence: Evidence, groups: NDArray[np.intp], target: int, options: Options, rng: np.random.Generator
) -> GroupComparison:
    """Compare some groups with each other.

    Parameters
    ----------
    evidence : Evidence
        Of all groups of the audit.
    groups : array of int
        Indices of the groups to compare, at least two.
    target : int
        Index of the group that is the target; -1 where the target is no group.
    options : Options
    rng : numpy.random.Generator

    Returns
    -------
    GroupComparison

    Notes
    -----
    Only these groups take part, and rows that belong to none of them are left out. A target that is not among them is
    added for the distance to the target.
    """
    n_groups = len(evidence.histograms.groups)
    to_target: dict[str, Reading] = {}
    if target >= 0 and target not in groups:
        wider = evidence.only(np.append(groups, target))
        readings, _ = _readings(wider, make_stratum(wider.histograms, options.target), options, rng)
        to_target = {METRICS[0]: readings[METRICS[0]]}
        options = replace(options, target="barycenter")
    compared = evidence if groups.size == n_groups else evidence.only(groups)
    stratum = make_stratum(compared.histograms, options.target)
    readings, p_value = _readings(compared, stratum, options, rng)
    tests = compare_pairs(stratum.histograms, p_value, options.confidence, options.n_bootstrap, rng)
    matrix = np.full((n_groups, n_groups), np.nan)
    matrix[np.ix_(groups, groups)] = tests.matrix(groups.size)
    index = tests.main_pair(1 - options.confidence)
    farthest = _farthest(compared, tests, index, options, rng, readings=readings)
    limit = 1.0 if farthest.estimate is None else farthest.estimate.high
    if p_value <= 1 - options.confidence and len(tests.pairs) > 1:
        factor = selection_factor(len(tests.pairs), groups.size, options.confidence)
        limit = max(limit, float(np.delete(tests.distances + factor * tests.noise, index).max()))
    return GroupComparison(
        readings={**readings, **to_target},
        pair_p_values=matrix,
        farthest=farthest,
        largest_distance=min(limit, 1.0),
        n_nodes=stratum.histograms.nodes.size,
        permuted=stratum.histograms.can_permute,
    )


def _readings(
    evidence: Evidence, stratum: Stratum, options: Options, rng: np.random.Generator
) -> tuple[dict[str, Reading], float]:
    """Return the disparities with intervals and distribution-free margins, and the p-value of no difference."""
    histograms = evidence.histograms
    values = evidence.disparities(options.target)
    floors = noise_floors(stratum, options.n_permutations, rng)
    p_value = floors[PAIRS_TEST].p_value
    readings = disparity_readings([stratum], [values], floors, options, rng, p_value=p_value)
    resolution = {} if evidence.exact else histograms.bounds()
    margins = distribution_free_margins(
        stratum.norms, histograms.effective_sizes, histograms.weights, options.confidence
    )
    return {
        name: replace(reading, margin=margins[name], resolution=resolution.get(name, 0.0))
        for name, reading in readings.items()
    }, p_value


def _farthest(
    evidence: Evidence,
    tests: PairTests,
    index: int,
    options: Options,
    rng: np.random.Generator,
    *,
    readings: dict[str, Reading],
) -> PairSummary:
    """Return a pair of groups with its interval."""
    pair = tests.pairs[index]
    histograms = evidence.histograms
    p_value = float(tests.p_values[index])
    factor = 1.0
    if len(tests.pairs) == 1:
        reading = readings[METRICS[2]]
        distance, estimate = reading.value, Estimate(reading.corrected, reading.low, reading.high)
        p_value = float(reading.p_value or 0.0)
    else:
        factor = selection_factor(tests.n_rivals(index), len(histograms.groups), options.confidence)
        alone = evidence.only(pair)
        distance = float(alone.distances()[0, 1])
        estimate = pair_estimate(
            alone.histograms, options, rng, distance=distance, p_value=p_value, noise_factor=factor
        )
    summary = summarise_pair(histograms, int(pair[0]), int(pair[1]), distance)
    names = list(histograms.groups.names)
    lower, higher = names.index(summary.lower), names.index(summary.higher)
    difference = mean_difference(histograms, higher, lower, options.confidence, factor)
    return replace(summary, estimate=estimate, p_value=p_value, mean_difference=difference)


def mean_difference(
    histograms: GroupHistograms, one: int, other: int, confidence: float, factor: float = 1.0
) -> Estimate:
    """Return the mean score of one group minus that of another, as a share of the range, with Welch's interval."""
    pair = [one, other]
    nodes = np.arange(histograms.grid.n_nodes) / histograms.grid.n_bins
    masses, squares = histograms.by_group[pair], histograms.squares_by_class[:, pair].sum(axis=0)
    totals = masses.sum(axis=1)
    means = masses @ nodes / totals
    factors, degrees = (array[pair] for array in variance_precision(histograms))
    variances = factors * (squares * (nodes - means[:, None]) ** 2).sum(axis=1) / totals**2
    variance = float(variances.sum())
    # Half of the degrees of freedom: skewed weights make a mean less certain than its variance tells.
    welch = variance**2 / float(np.sum(variances**2 / (degrees / 2))) if variance > 0 else 4.0
    value = float(means[0] - means[1])
    half = factor * float(stdtrit(welch, (1 + confidence) / 2)) * float(np.sqrt(variance))
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half))
