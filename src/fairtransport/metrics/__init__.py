"""The metrics of the paper, those of other criteria, ranks, largest differences and noise floors, computed exactly."""

from fairtransport.metrics._conditional import (
    conditional_demographic_disparity,
    conditional_disparity,
    disparity_scorer,
    equalized_odds_difference,
    error_rate,
    opportunity_disparity,
    separation_disparity,
)
from fairtransport.metrics._disparity import (
    NoiseFloor,
    disparities,
    kolmogorov_smirnov_disparity,
    noise_floor,
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
    "disparity_scorer",
    "equalized_odds_difference",
    "error_rate",
    "kolmogorov_smirnov_disparity",
    "noise_floor",
    "opportunity_disparity",
    "pairwise_distances",
    "pooled_ranks",
    "rank_disparity",
    "separation_disparity",
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "wasserstein_disparity",
]
