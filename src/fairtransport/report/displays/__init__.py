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
