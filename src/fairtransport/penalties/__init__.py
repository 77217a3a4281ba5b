"""Penalties turn scores and `Comparisons` into a value and a gradient with respect to the scores.

Everything that learns plugs in here. Which samples are compared is the criterion's business (`fairtransport.criteria`),
how far apart two samples are the penalty's: regularized and through dual variables (continuous) or by the exact
coupling (discrete); on rows, on slice means or on histograms.
"""

from __future__ import annotations

from fairtransport.penalties._continuous import ContinuousPenalty
from fairtransport.penalties.base import HistogramTerms, PenaltyTerms, SampleTerms, TransportPenalty
from fairtransport.penalties.comparisons import Comparisons
from fairtransport.penalties.discrete import DiscretePenalty

__all__ = [
    "Comparisons",
    "ContinuousPenalty",
    "DiscretePenalty",
    "HistogramTerms",
    "PenaltyTerms",
    "SampleTerms",
    "TransportPenalty",
]
