"""Page of two audits side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._text import one_line, shorten
from fairtransport.report._what_if import WhatIf
from fairtransport.report.pages.audit._comparison_tables import collect_comparison_tables
from fairtransport.report.pages.audit._comparison_verdict import comparison_verdict
from fairtransport.report.pages.audit._method_notes import collect_comparison_notes
from fairtransport.report.pages.audit._page import collect_common, collect_sources
from fairtransport.report.pages.audit._rendering import check_destination, render_audit_page, write_page
from fairtransport.report.pages.audit._script_data import collect_script_data
from fairtransport.report.pages.audit._tables import collect_sheets
from fairtransport.report.pages.audit._threshold_table import collect_threshold_rows

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from fairtransport.auditing import AuditComparison

__all__ = ["audit_comparison_page", "collect_audit_comparison_page"]


def audit_comparison_page(comparison: AuditComparison, path: Any = None, **options: Any) -> Path | str:
    """Write the page of two audits.

    Parameters
    ----------
    comparison : AuditComparison
        Result of `fairtransport.compare`.
    path : path, default=None
        File to write; if None, the page is returned.
    **options
        Parameters of `collect_audit_comparison_page`.

    Returns
    -------
    Path or str
    """
    check_destination(path)
    return write_page(render_audit_page(collect_audit_comparison_page(comparison, **options)), path)


def collect_audit_comparison_page(
    comparison: AuditComparison, *, title: str | None = None, written: datetime | None = None
) -> dict[str, Any]:
    """Collect what the page of two audits shows.

    Parameters
    ----------
    comparison : AuditComparison
        Result of `fairtransport.compare`.
    title : str, default=None
        Heading of the page; if None, it names the two audits.
    written : datetime, default=None
        Date to print; if None, the current one.

    Returns
    -------
    dict
        Values of the template.
    """
    before, after = comparison.before, comparison.after
    what_ifs = [WhatIf.of(audit, before, after, repair_target=None) for audit in (before, after)]
    indices = [range(len(comparison.positions)), comparison.positions]
    tables = collect_comparison_tables(comparison)
    names = [shorten(name, 24) for name in comparison.names]
    script_data = collect_script_data(what_ifs, names=names, indices=indices)
    return {
        **collect_common(what_ifs, written),
        "title": one_line(title) if title is not None else f"{names[0]} and {names[1]}",
        "verdict": (verdict := comparison_verdict(comparison)),
        "points": verdict.points,
        "cards": [],
        "data": {**script_data, "sheets": collect_sheets(tables)},
        "names": names,
        "threshold_rows": collect_threshold_rows(what_ifs, indices),
        "repairable": False,
        "repair_call": "",
        "tables": tables,
        "matrix": None,
        "method": collect_comparison_notes(what_ifs, names),
        "sources": collect_sources(dict(zip(names, (comparison.before, comparison.after), strict=True))),
    }
