"""Exact disparities: means over pairs, the sums of the paper, other criteria, ranks, largest differences, noise floors.

A disparity is the mean over all pairs of groups, each of which counts the same: `pairwise_disparity` in units of the
score, `rank_disparity` for ranks. The sums of the paper have the paper's names, `strong_pairwise_disparity` (SPDD),
`strong_demographic_disparity` (SDD) and `wasserstein_disparity` (Wass1).
"""

from fairtransport.metrics._conditional import (
    conditional_demographic_disparity,
    conditional_disparity,
    equalized_odds_difference,
    error_rate,
    group_scorer,
    opportunity_disparity,
    separation_disparity,
)
from fairtransport.metrics._disparity import (
    NoiseFloor,
    disparities,
    kolmogorov_smirnov_disparity,
    noise_floor,
    pairwise_disparity,
    pairwise_distances,
    rank_disparity,
    strong_demographic_disparity,
    strong_pairwise_disparity,
    wasserstein_disparity,
)
from fairtransport.metrics.ranks import pooled_ranks

__all__ = [
    "NoiseFloor",
    "conditional_demographic_disparity",
    "conditional_disparity",
    "disparities",
    "equalized_odds_difference",
    "error_rate",
    "group_scorer",
    "kolmogorov_smirnov_disparity",
    "noise_floor",
    "opportunity_disparity",
    "pairwise_disparity",
    "pairwise_distances",
    "pooled_ranks",
    "rank_disparity",
    "separation_disparity",
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "wasserstein_disparity",
]
