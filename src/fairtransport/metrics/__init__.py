"""The metrics of the paper, the rank disparity and their noise floors, computed exactly."""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.metrics._disparity import (
    disparities,
    pairwise_distances,
    strong_demographic_disparity,
    strong_pairwise_disparity,
    wasserstein_disparity,
)
from fairtransport.metrics._errors import error_rate
from fairtransport.metrics._noise import NoiseFloor, noise_floor
from fairtransport.metrics.ranks import pooled_ranks, rank_disparity

__all__ = [
    "NoiseFloor",
    "disparities",
    "error_rate",
    "noise_floor",
    "pairwise_distances",
    "pooled_ranks",
    "rank_disparity",
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "wasserstein_disparity",
]

redact_public_errors(globals())
