"""Figures and self-contained HTML pages of results (extra: ``report``).

Every public name of the package is listed here; each is loaded when first used. Displays follow scikit-learn's
conventions: create them by their ``from_*`` constructors, which draw at once and return the display; ``plot(ax=...)``
draws again, and what was drawn is kept in ``ax_`` and ``figure_``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtransport.report._comparison import METRICS, Comparison, MethodOutcome
    from fairtransport.report._what_if import WhatIf
    from fairtransport.report.displays._differences import (
        AuditSeriesDisplay,
        CausalEffectsDisplay,
        PairwiseDisparityDisplay,
    )
    from fairtransport.report.displays._distributions import CdfDisplay, GroupDistributionDisplay
    from fairtransport.report.displays._errors import ErrorRateDisplay, ReliabilityDisplay, SeparationDisplay
    from fairtransport.report.displays._frontier import FrontierDisplay
    from fairtransport.report.displays._method_panels import distribution_figure
    from fairtransport.report.displays._transport import AdjustmentDisplay, DualDisplay, TransportMapDisplay
    from fairtransport.report.pages.methods import COMPARISON_FILES, verdict, write_comparison
    from fairtransport.report.style.web_pages import base_style, template_environment

__all__ = [
    "COMPARISON_FILES",
    "METRICS",
    "AdjustmentDisplay",
    "AuditSeriesDisplay",
    "CausalEffectsDisplay",
    "CdfDisplay",
    "Comparison",
    "DualDisplay",
    "ErrorRateDisplay",
    "FrontierDisplay",
    "GroupDistributionDisplay",
    "MethodOutcome",
    "PairwiseDisparityDisplay",
    "ReliabilityDisplay",
    "SeparationDisplay",
    "TransportMapDisplay",
    "WhatIf",
    "base_style",
    "distribution_figure",
    "template_environment",
    "verdict",
    "write_comparison",
]

_NAMES = {
    "_comparison": ("METRICS", "Comparison", "MethodOutcome"),
    "_what_if": ("WhatIf",),
    "displays._differences": ("AuditSeriesDisplay", "CausalEffectsDisplay", "PairwiseDisparityDisplay"),
    "displays._distributions": ("CdfDisplay", "GroupDistributionDisplay"),
    "displays._errors": ("ErrorRateDisplay", "ReliabilityDisplay", "SeparationDisplay"),
    "displays._frontier": ("FrontierDisplay",),
    "displays._method_panels": ("distribution_figure",),
    "displays._transport": ("AdjustmentDisplay", "DualDisplay", "TransportMapDisplay"),
    "pages.methods": ("COMPARISON_FILES", "verdict", "write_comparison"),
    "style.web_pages": ("base_style", "template_environment"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"fairtransport.report.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'fairtransport.report' has no attribute {name!r}")
