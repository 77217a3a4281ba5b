"""Audits of scores: the differences between groups, with confidence intervals.

Rows, tables or histograms become evidence (`_evidence`); from it all figures are estimated (`_estimation`) and
collected in an `Audit`, which is printed by `text`.
"""

from fairtransport.auditing._audit import audit, audit_counts, audit_histograms
from fairtransport.auditing._audit_table import audit_table
from fairtransport.auditing.comparison import AuditComparison, Change, ThresholdChange, compare
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
from fairtransport.auditing.options import Inference
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.provenance import Provenance, SourceFile
from fairtransport.auditing.records import (
    GroupSummary,
    PairSummary,
    RateComparison,
    Reading,
    Settings,
    StratumSummary,
    ThresholdSummary,
    WithinStrata,
    compare_rates,
)
from fairtransport.auditing.result import Audit
from fairtransport.auditing.series import AuditSeries, SeriesPoint, audit_counts_by
from fairtransport.auditing.verdict import Verdict

__all__ = [
    "Audit",
    "AuditComparison",
    "AuditSeries",
    "Calibration",
    "Change",
    "CorrectedEstimate",
    "CrossAuc",
    "ErrorRates",
    "Estimate",
    "GroupCalibration",
    "GroupRates",
    "GroupSummary",
    "Inference",
    "LabelSeparation",
    "PairSummary",
    "Provenance",
    "RateComparison",
    "RateGap",
    "Reading",
    "ReliabilityBin",
    "Separation",
    "SeriesPoint",
    "Settings",
    "SourceFile",
    "StratumSummary",
    "ThresholdChange",
    "ThresholdDifferences",
    "ThresholdSummary",
    "Verdict",
    "WithinStrata",
    "audit",
    "audit_counts",
    "audit_counts_by",
    "audit_histograms",
    "audit_table",
    "compare",
    "compare_rates",
]
