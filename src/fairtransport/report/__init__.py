"""Results -> pictures and one self-contained HTML page (extra: ``report``)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairtransport.report.comparison import METRICS, Comparison, MethodOutcome
from fairtransport.report.distributions import distribution_figure
from fairtransport.report.page import write_comparison
from fairtransport.report.verdict import verdict

if TYPE_CHECKING:
    from fairtransport.report.adjustment_display import AdjustmentDisplay
    from fairtransport.report.cdf_display import CdfDisplay
    from fairtransport.report.distribution_display import GroupDistributionDisplay
    from fairtransport.report.dual_display import DualDisplay
    from fairtransport.report.frontier import FrontierDisplay
    from fairtransport.report.pairwise_display import PairwiseDisparityDisplay
    from fairtransport.report.transport_map_display import TransportMapDisplay
    from fairtransport.report.what_if import WhatIf

__all__ = [
    "METRICS",
    "AdjustmentDisplay",
    "CdfDisplay",
    "Comparison",
    "DualDisplay",
    "FrontierDisplay",
    "GroupDistributionDisplay",
    "MethodOutcome",
    "PairwiseDisparityDisplay",
    "TransportMapDisplay",
    "WhatIf",
    "distribution_figure",
    "verdict",
    "write_comparison",
]

# They bring the estimators, which commands that train nothing do not need: loaded when first used.
_HOMES = {
    "AdjustmentDisplay": "adjustment_display",
    "CdfDisplay": "cdf_display",
    "DualDisplay": "dual_display",
    "FrontierDisplay": "frontier",
    "GroupDistributionDisplay": "distribution_display",
    "PairwiseDisparityDisplay": "pairwise_display",
    "TransportMapDisplay": "transport_map_display",
    "WhatIf": "what_if",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"fairtransport.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fairtransport.report' has no attribute {name!r}")
