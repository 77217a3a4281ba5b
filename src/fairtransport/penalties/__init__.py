"""Penalties: the value and the gradient of transport distances between samples of scores.

A criterion (`fairtransport.criteria`) says which samples are compared, by `Comparisons`; a penalty says how far apart
two samples are: by the regularized distance and its dual potentials (continuous optimal transport, COT) or by the exact
coupling (discrete optimal transport, DOT); on rows, on slice means or on histograms. All learners use the same ones.
"""

from __future__ import annotations

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.penalties._continuous import ContinuousPenalty
from fairtransport.penalties.base import HistogramTerms, PenaltyTerms, SampleTerms, TransportPenalty
from fairtransport.penalties.chance import ChanceTerm
from fairtransport.penalties.comparisons import Comparisons
from fairtransport.penalties.discrete import DiscretePenalty

__all__ = [
    "ChanceTerm",
    "Comparisons",
    "ContinuousPenalty",
    "DiscretePenalty",
    "HistogramTerms",
    "PenaltyTerms",
    "SampleTerms",
    "TransportPenalty",
]

redact_public_errors(globals())
