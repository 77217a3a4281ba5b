"""Histograms of the groups' scores: a summary of fixed size that can be merged, discounted, resampled and stored."""

from fairtransport.histograms._grid import DEFAULT_BINS, SLACK, Grid
from fairtransport.histograms._group_histograms import (
    GroupHistograms,
    count_entries,
    count_scores,
    display_points,
    display_range,
    regrid,
)
from fairtransport.histograms.resampling import resample_masses, shuffle_cells

__all__ = [
    "DEFAULT_BINS",
    "SLACK",
    "Grid",
    "GroupHistograms",
    "count_entries",
    "count_scores",
    "display_points",
    "display_range",
    "regrid",
    "resample_masses",
    "shuffle_cells",
]
