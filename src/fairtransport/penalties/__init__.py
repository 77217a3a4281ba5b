"""A penalty turns scores and groups into a value and a gradient with respect to the scores.

Everything that learns plugs in here. With ``strata`` the penalty compares groups within each stratum
only: strata = label gives strong equalized odds, strata = a legitimate feature conditional parity.
"""

from __future__ import annotations

from fairtransport.penalties.base import Penalty, PenaltyTerms
from fairtransport.penalties.continuous import ContinuousPenalty
from fairtransport.penalties.discrete import DiscretePenalty

__all__ = ["ContinuousPenalty", "DiscretePenalty", "Penalty", "PenaltyTerms"]
