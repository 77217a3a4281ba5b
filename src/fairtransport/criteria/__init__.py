"""Criteria of fairness, as comparisons: which samples of scores should have the same distribution.

Learners depend on `fairtransport.criteria.comparisons.Comparisons` only, not on the criterion that made them.
"""

from __future__ import annotations

from fairtransport.criteria.criterion import Criterion, DemographicParity, EqualizedOdds, EqualOpportunity
from fairtransport.criteria.distance import ContinuousDistance, DiscreteDistance

__all__ = [
    "ContinuousDistance",
    "Criterion",
    "DemographicParity",
    "DiscreteDistance",
    "EqualOpportunity",
    "EqualizedOdds",
]
