"""Audits of scores: the differences between groups, with confidence intervals.

Rows, tables or histograms become evidence (`_evidence`); from it all figures are estimated (`_estimation`) and
collected in an `Audit`, which is printed by `_audit_text`.
"""

from fairtransport.auditing._audit import audit, audit_histograms
from fairtransport.auditing._audit_table import audit_counts, audit_table
from fairtransport.auditing._comparison import AuditComparison, Change, ThresholdChange, compare
from fairtransport.auditing.errors import (
    Calibration,
    CorrectedEstimate,
    CrossAuc,
    ErrorRates,
    GroupCalibration,
    GroupRates,
    LabelSeparation,
    RateGap,
    ReliabilityBin,
    Separation,
    ThresholdDifferences,
)
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import (
    GroupSummary,
    PairSummary,
    Reading,
    Settings,
    StratumSummary,
    ThresholdSummary,
)
from fairtransport.auditing.result import Audit

__all__ = [
    "Audit",
    "AuditComparison",
    "Calibration",
    "Change",
    "CorrectedEstimate",
    "CrossAuc",
    "ErrorRates",
    "Estimate",
    "GroupCalibration",
    "GroupRates",
    "GroupSummary",
    "LabelSeparation",
    "PairSummary",
    "RateGap",
    "Reading",
    "ReliabilityBin",
    "Separation",
    "Settings",
    "StratumSummary",
    "ThresholdChange",
    "ThresholdDifferences",
    "ThresholdSummary",
    "audit",
    "audit_counts",
    "audit_histograms",
    "audit_table",
    "compare",
]
