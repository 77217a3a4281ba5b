"""How results are drawn: the functions that ``plot``, ``to_html`` and notebooks call by name.

Results lie below this package and cannot import it; `fairtransport._extras.render` looks the functions up here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport import report
from fairtransport._validation import check_choice

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, AuditComparison, AuditSeries
    from fairtransport.causal import CounterfactualAudit
    from fairtransport.selection import Frontier


_DISPLAYS = {
    "distribution": "GroupDistributionDisplay",
    "cdf": "CdfDisplay",
    "pairs": "PairwiseDisparityDisplay",
    "map": "TransportMapDisplay",
    "separation": "SeparationDisplay",
    "errors": "ErrorRateDisplay",
    "reliability": "ReliabilityDisplay",
}


def plot_audit(audit: Audit, *, kind: str = "distribution", **options: Any) -> Any:
    """Draw an audit as one of the displays; see `Audit.plot`."""
    check_choice(kind, tuple(_DISPLAYS), name="kind")
    return getattr(report, _DISPLAYS[kind]).from_audit(audit, **options)


def plot_effects(audit: CounterfactualAudit, **options: Any) -> Any:
    """Draw effects along the paths of a graph; see `CounterfactualAudit.plot`."""
    return report.CausalEffectsDisplay.from_effects(audit, **options)


def plot_frontier(frontier: Frontier, **options: Any) -> Any:
    """Draw a trade-off curve; see `Frontier.plot`."""
    return report.FrontierDisplay.from_frontier(frontier, **options)


def audit_to_html(audit: Audit, path: Any = None, **options: Any) -> Any:
    """Write the page of an audit, or return it; see `Audit.to_html`."""
    from fairtransport.report.pages.audit import audit_page  # noqa: PLC0415 - each page is loaded when asked for

    return audit_page(audit, path, **options)


def comparison_to_html(comparison: AuditComparison, path: Any = None, **options: Any) -> Any:
    """Write the page of two audits, or return it; see `AuditComparison.to_html`."""
    from fairtransport.report.pages.comparison import audit_comparison_page  # noqa: PLC0415 - likewise

    return audit_comparison_page(comparison, path, **options)


def audit_repr_html(audit: Audit) -> str:
    """Return an audit as a notebook shows it."""
    from fairtransport.report.pages.notebook import render_notebook_cell  # noqa: PLC0415 - likewise

    return render_notebook_cell(audit)


def comparison_repr_html(comparison: AuditComparison) -> str:
    """Return a comparison as a notebook shows it."""
    from fairtransport.report.pages.notebook import comparison_cell  # noqa: PLC0415 - likewise

    return comparison_cell(comparison)


def frontier_repr_html(frontier: Frontier) -> str:
    """Return a trade-off curve as a notebook shows it."""
    from fairtransport.report.pages.notebook import frontier_cell  # noqa: PLC0415 - likewise

    return frontier_cell(frontier)


def plot_series(series: AuditSeries, **options: Any) -> Any:
    """Draw the control chart of a series of audits; see `AuditSeries.plot`."""
    return report.AuditSeriesDisplay.from_series(series, **options)


def series_to_html(series: AuditSeries, path: Any = None, **options: Any) -> Any:
    """Write the page of a series of audits, or return it; see `AuditSeries.to_html`."""
    from fairtransport.report.pages.series import series_page  # noqa: PLC0415 - likewise

    return series_page(series, path, **options)


def series_repr_html(series: AuditSeries) -> str:
    """Return a series of audits as a notebook shows it."""
    from fairtransport.report.pages.notebook import series_cell  # noqa: PLC0415 - likewise

    return series_cell(series)
