"""Results -> pictures and one self-contained HTML page (extra: ``report``)."""

from __future__ import annotations

from fairtransport.report.comparison import METRICS, Comparison, MethodOutcome
from fairtransport.report.distributions import distribution_figure
from fairtransport.report.frontier import FrontierDisplay
from fairtransport.report.page import write_comparison
from fairtransport.report.verdict import verdict

__all__ = [
    "METRICS",
    "Comparison",
    "FrontierDisplay",
    "MethodOutcome",
    "distribution_figure",
    "verdict",
    "write_comparison",
]
