"""The metrics of the paper, those of other criteria, ranks, largest differences and noise floors, computed exactly."""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.metrics._conditional import conditional_disparity, opportunity_disparity, separation_disparity
from fairtransport.metrics._disparity import (
    disparities,
    pairwise_distances,
    rank_disparity,
    strong_demographic_disparity,
    strong_pairwise_disparity,
    wasserstein_disparity,
)
from fairtransport.metrics._errors import error_rate
from fairtransport.metrics._kolmogorov_smirnov import kolmogorov_smirnov_disparity
from fairtransport.metrics._noise import NoiseFloor, noise_floor
from fairtransport.metrics._scorers import disparity_scorer
from fairtransport.metrics._thresholds import conditional_demographic_disparity, equalized_odds_difference
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

redact_public_errors(globals())
