"""Results -> pictures and one self-contained HTML page (extra: ``report``)."""

from __future__ import annotations

from fairtransport.report.comparison import METRICS, Comparison, MethodOutcome

__all__ = ["METRICS", "Comparison", "MethodOutcome"]
