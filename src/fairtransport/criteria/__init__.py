"""Criteria of fairness, resolved into `Comparisons`: which samples of scores must look alike.

No learner knows criteria; each knows `fairtransport.penalties.Comparisons`.
"""

from __future__ import annotations

from fairtransport.criteria._demographic_parity import EACH_OTHER, demographic_parity
from fairtransport.criteria._reliability import chance_distances, weigh_by_reliability

__all__ = ["EACH_OTHER", "chance_distances", "demographic_parity", "weigh_by_reliability"]
