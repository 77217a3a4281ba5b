"""Results as figures and pages: what ``plot``, ``to_html`` and notebooks call, by name, when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._validation import check_choice

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, AuditComparison
    from fairtransport.selection import Frontier

__all__ = ["audit_repr_html", "audit_to_html", "comparison_to_html", "plot_audit", "plot_frontier"]

_KINDS = {
    "distribution": "GroupDistributionDisplay",
    "cdf": "CdfDisplay",
    "pairs": "PairwiseDisparityDisplay",
    "map": "TransportMapDisplay",
}


def plot_audit(audit: Audit, *, kind: str = "distribution", **options: Any) -> Any:
    """Draw an audit as one of the displays; see `Audit.plot`."""
    check_choice(kind, tuple(_KINDS), name="kind")
    from fairtransport import report  # noqa: PLC0415 - each display is loaded when it is drawn

    return getattr(report, _KINDS[kind]).from_audit(audit, **options)


def plot_frontier(frontier: Frontier, **options: Any) -> Any:
    """Draw a trade-off curve; see `Frontier.plot`."""
    from fairtransport.report.displays.frontier import FrontierDisplay  # noqa: PLC0415 - loaded when asked for

    return FrontierDisplay.from_frontier(frontier, **options)


def audit_to_html(audit: Audit, path: Any = None, **options: Any) -> Any:
    """Write the page of an audit; see `Audit.to_html`."""
    from fairtransport.report.pages._audit_page import audit_page  # noqa: PLC0415 - loaded when asked for

    return audit_page(audit, path, **options)


def comparison_to_html(comparison: AuditComparison, path: Any = None, **options: Any) -> Any:
    """Write the page of two audits; see `AuditComparison.to_html`."""
    from fairtransport.report.pages._audit_page import comparison_page  # noqa: PLC0415 - loaded when asked for

    return comparison_page(comparison, path, **options)


def audit_repr_html(audit: Audit) -> str:
    """Return an audit as a notebook shows it."""
    from fairtransport.report.pages._notebook import audit_html  # noqa: PLC0415 - loaded when asked for

    return audit_html(audit)
