"""Criteria of fairness, as comparisons: which samples of scores should have the same distribution.

Learners depend on `fairtransport.criteria.penalty.Comparisons` only, not on the criterion that made them.
"""

from __future__ import annotations

from fairtransport.criteria._criterion import (
    CRITERIA,
    EACH_OTHER,
    MAX_PAIRED_GROUPS,
    ComparedStrata,
    ComparedStratum,
    Criterion,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    as_criterion,
    chance_distances,
    chance_spreads,
    compares_each_other,
    criterion_name,
    criterion_of,
    criterion_text,
    demographic_parity,
    needs_labels,
    net_of_chance,
    pairs_of_groups,
    resolve_criterion,
    resolve_group_target,
    weigh_by_reliability,
)
from fairtransport.criteria.distance import ContinuousDistance, DiscreteDistance
from fairtransport.strata import STRATUM_WEIGHTS

__all__ = [
    "CRITERIA",
    "EACH_OTHER",
    "MAX_PAIRED_GROUPS",
    "STRATUM_WEIGHTS",
    "ComparedStrata",
    "ComparedStratum",
    "ContinuousDistance",
    "Criterion",
    "DemographicParity",
    "DiscreteDistance",
    "EqualOpportunity",
    "EqualizedOdds",
    "as_criterion",
    "chance_distances",
    "chance_spreads",
    "compares_each_other",
    "criterion_name",
    "criterion_of",
    "criterion_text",
    "demographic_parity",
    "needs_labels",
    "net_of_chance",
    "pairs_of_groups",
    "resolve_criterion",
    "resolve_group_target",
    "weigh_by_reliability",
]
