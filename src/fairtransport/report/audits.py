"""What the report room does for audits: loaded by name when an audit is first drawn, written or shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._validation import check_choice
from fairtransport.auditing import register_renderer

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, AuditComparison

__all__ = ["plot_audit"]

_KINDS = ("distribution", "cdf", "pairs", "map")


def plot_audit(audit: Audit, *, kind: str = "distribution", **options: Any) -> Any:
    """Draw an audit as one of the displays; see `Audit.plot`."""
    check_choice(kind, _KINDS, name="kind")
    from fairtransport import report  # noqa: PLC0415 - each display is loaded when it is drawn

    display = {
        "distribution": "GroupDistributionDisplay",
        "cdf": "CdfDisplay",
        "pairs": "PairwiseDisparityDisplay",
        "map": "TransportMapDisplay",
    }[kind]
    return getattr(report, display).from_audit(audit, **options)


def _to_html(audit: Audit, path: Any = None, **options: Any) -> Any:
    from fairtransport.report.audit_page import audit_page  # noqa: PLC0415 - loaded when asked for

    return audit_page(audit, path, **options)


def _compare_to_html(comparison: AuditComparison, path: Any = None, **options: Any) -> Any:
    from fairtransport.report.audit_page import comparison_page  # noqa: PLC0415 - loaded when asked for

    return comparison_page(comparison, path, **options)


def _repr_html(audit: Audit) -> str:
    from fairtransport.report.notebook import audit_html  # noqa: PLC0415 - loaded when asked for

    return audit_html(audit)


register_renderer("plot", plot_audit)
register_renderer("to_html", _to_html)
register_renderer("compare_to_html", _compare_to_html)
register_renderer("repr_html", _repr_html)
