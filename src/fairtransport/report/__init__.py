"""Results -> pictures and one self-contained HTML page (extra: ``report``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.report.comparison import METRICS, Comparison, MethodOutcome
from fairtransport.report.distributions import distribution_figure
from fairtransport.report.page import write_comparison
from fairtransport.report.verdict import verdict

if TYPE_CHECKING:
    from fairtransport.report.frontier import FrontierDisplay

__all__ = [
    "METRICS",
    "Comparison",
    "FrontierDisplay",
    "MethodOutcome",
    "distribution_figure",
    "verdict",
    "write_comparison",
]


def __getattr__(name: str) -> Any:
    if name == "FrontierDisplay":  # it brings the estimators, which commands that train nothing do not need
        from fairtransport.report.frontier import FrontierDisplay  # noqa: PLC0415

        return FrontierDisplay
    raise AttributeError(f"module 'fairtransport.report' has no attribute {name!r}")
