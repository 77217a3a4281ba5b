"""Results -> pictures and one self-contained HTML page (extra: ``report``)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairtransport.report.displays.method_panels import distribution_figure
from fairtransport.report.pages._comparison_verdict import verdict
from fairtransport.report.pages.comparison import METRICS, Comparison, MethodOutcome
from fairtransport.report.pages.comparison_page import write_comparison

if TYPE_CHECKING:
    from fairtransport.report.displays._adjustment import AdjustmentDisplay
    from fairtransport.report.displays._cdf import CdfDisplay
    from fairtransport.report.displays._dual import DualDisplay
    from fairtransport.report.displays._group_distribution import GroupDistributionDisplay
    from fairtransport.report.displays._pairwise import PairwiseDisparityDisplay
    from fairtransport.report.displays._transport_map import TransportMapDisplay
    from fairtransport.report.displays.frontier import FrontierDisplay
    from fairtransport.report.pages._what_if import WhatIf

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
    "AdjustmentDisplay": "displays._adjustment",
    "CdfDisplay": "displays._cdf",
    "DualDisplay": "displays._dual",
    "FrontierDisplay": "displays.frontier",
    "GroupDistributionDisplay": "displays._group_distribution",
    "PairwiseDisparityDisplay": "displays._pairwise",
    "TransportMapDisplay": "displays._transport_map",
    "WhatIf": "pages._what_if",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"fairtransport.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fairtransport.report' has no attribute {name!r}")
