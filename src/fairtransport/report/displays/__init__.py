"""Figures of results, in matplotlib."""

from __future__ import annotations

from typing import Any

from fairtransport import report
from fairtransport._validation import check_choice

_AUDIT_DISPLAYS = {
    "distribution": "GroupDistributionDisplay",
    "cdf": "CdfDisplay",
    "pairs": "PairwiseDisparityDisplay",
    "map": "TransportMapDisplay",
    "separation": "SeparationDisplay",
    "errors": "ErrorRateDisplay",
    "reliability": "ReliabilityDisplay",
}


def plot_audit(audit: Any, *, kind: str = "distribution", **options: Any) -> Any:
    """Draw an audit as one of the displays; see `Audit.plot`."""
    check_choice(kind, tuple(_AUDIT_DISPLAYS), name="kind")
    return getattr(report, _AUDIT_DISPLAYS[kind]).from_audit(audit, **options)


def plot_effects(audit: Any, **options: Any) -> Any:
    """Draw effects along the paths of a graph; see `CounterfactualAudit.plot`."""
    return report.CausalEffectsDisplay.from_effects(audit, **options)


def plot_frontier(frontier: Any, **options: Any) -> Any:
    """Draw a trade-off curve; see `Frontier.plot`."""
    return report.FrontierDisplay.from_frontier(frontier, **options)


def plot_series(series: Any, **options: Any) -> Any:
    """Draw the control chart of a series of audits; see `AuditSeries.plot`."""
    return report.AuditSeriesDisplay.from_series(series, **options)
