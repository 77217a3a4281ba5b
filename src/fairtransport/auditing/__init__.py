"""Arrays, tables or histograms -> Audit: how far apart groups are, for whom, where, and how sure that is."""

from fairtransport.auditing._audit import audit, audit_histograms
from fairtransport.auditing._audit_table import audit_counts, audit_table
from fairtransport.auditing._comparison import AuditComparison, Change, ThresholdChange, compare
from fairtransport.auditing._pair_summary import PairSummary
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.result import Audit, GroupSummary, Reading, Settings, StratumSummary, ThresholdSummary

__all__ = [
    "Audit",
    "AuditComparison",
    "Change",
    "Estimate",
    "GroupSummary",
    "PairSummary",
    "Reading",
    "Settings",
    "StratumSummary",
    "ThresholdChange",
    "ThresholdSummary",
    "audit",
    "audit_counts",
    "audit_histograms",
    "audit_table",
    "compare",
]
