"""Criteria of fairness, as comparisons: which samples of scores should have the same distribution.

Learners depend on `fairtransport.penalties.Comparisons` only, not on the criterion that made them.
"""

from __future__ import annotations

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.criteria._criterion import (
    CRITERIA,
    STRATUM_WEIGHTS,
    ComparedStrata,
    ComparedStratum,
    criterion_of,
    criterion_text,
    demographic_parity,
    needs_labels,
    resolve_criterion,
)
from fairtransport.criteria._pairs import MAX_PAIRED_GROUPS, pairs_of_groups
from fairtransport.criteria._reliability import chance_distances, chance_spreads, net_of_chance, weigh_by_reliability
from fairtransport.criteria._targets import EACH_OTHER, compares_each_other, resolve_group_target

__all__ = [
    "CRITERIA",
    "EACH_OTHER",
    "MAX_PAIRED_GROUPS",
    "STRATUM_WEIGHTS",
    "ComparedStrata",
    "ComparedStratum",
    "chance_distances",
    "chance_spreads",
    "compares_each_other",
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

redact_public_errors(globals())
