"""The page of an audit, or of two: collect what it shows, then render it. Nothing in it needs a network."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport._text import count_word, one_line, shorten
from fairtransport.report.pages._audit_comparison_tables import comparison_tables
from fairtransport.report.pages._audit_comparison_verdict import comparison_verdict
from fairtransport.report.pages._audit_data import dash_list, page_data, styles_of
from fairtransport.report.pages._audit_method import comparison_method_entries, method_entries, software
from fairtransport.report.pages._audit_tables import audit_tables, sheets
from fairtransport.report.pages._cards import audit_cards
from fairtransport.report.pages._distance_matrix import matrix
from fairtransport.report.pages._self_contained import check_goal, render_audit, write_page
from fairtransport.report.pages._threshold_table import live_rows
from fairtransport.report.pages._what_if import WhatIf
from fairtransport.report.pages.audit_verdict import audit_verdict
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from pathlib import Path

    from fairtransport.auditing import Audit, AuditComparison

__all__ = ["audit_page", "comparison_page"]

_SCRIPTS = ("data", "what_if", "svg", "chart", "live", "controls", "csv", "main")

_MOST_ROWS = 15  # of a table that are shown before somebody asks for all


def audit_page(
    audit: Audit,
    path: Any = None,
    *,
    title: str | None = None,
    repair_target: Any = "barycenter_w2",
    written: datetime | None = None,
) -> Path | str:
    """Make the page of an audit.

    Parameters
    ----------
    audit : Audit
    path : path, optional
        File to write; without it the page is returned.
    title : str, optional
        Heading of the page.
    repair_target : str, label or array, default "barycenter_w2"
        What the page's repair carries every group to.
    written : datetime, optional
        The date to print; now, when omitted.

    Returns
    -------
    Path or str
    """
    check_goal(path)
    part = WhatIf.of(audit, repair_target=repair_target)
    tables = audit_tables(audit)
    verdict = audit_verdict(audit, part)
    here = range(len(audit.groups))
    columns = ", ".join(one_line(column) for column in audit.settings.columns)
    context = {
        **_frame([part], written),
        "title": one_line(title) if title is not None else shorten(f"Scores by {columns}", 80),
        "verdict": verdict,
        "cards": audit_cards(audit),
        "data": {**page_data([part], names=[""], places=[here]), "sheets": sheets(tables, audit)},
        "parts": [""],
        "live": live_rows([part], [here]),
        "repairable": part.reduced.can_repair,
        "repair_words": _repair_words(repair_target),
        "tables": tables,
        "matrix": matrix(audit),
        "method": method_entries(audit, part),
    }
    return write_page(render_audit(context), path)


def comparison_page(
    comparison: AuditComparison,
    path: Any = None,
    *,
    title: str | None = None,
    written: datetime | None = None,
) -> Path | str:
    """Make the page of two audits; parameters as in `audit_page`."""
    check_goal(path)
    parts = [WhatIf.of(audit, repair_target=None) for audit in (comparison.before, comparison.after)]
    places = [range(len(comparison.places)), comparison.places]
    tables = comparison_tables(comparison)
    names = [shorten(name, 24) for name in comparison.names]
    context = {
        **_frame(parts, written),
        "title": one_line(title) if title is not None else f"{names[0]} and {names[1]}",
        "verdict": comparison_verdict(comparison),
        "cards": [],
        "data": {**page_data(parts, names=names, places=places), "sheets": sheets(tables)},
        "parts": names,
        "live": live_rows(parts, places),
        "repairable": False,
        "repair_words": "",
        "tables": tables,
        "matrix": None,
        "method": comparison_method_entries(parts, names),
    }
    return write_page(render_audit(context), path)


def _frame(parts: list[WhatIf], written: datetime | None) -> dict[str, Any]:
    """Return what every page has."""
    first = parts[0].audit
    low, high = first.settings.range
    return {
        "version": __version__,
        "software": software(),
        "written": (written or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M %Z").strip(),
        "groups": [
            {
                "name": one_line(group.name),
                "rows": f"{group.rows:,}",
                "unsure": group.unsure,
                "colour": style.colour,
                "dashes": dash_list(style),
                "named": style.named,
            }
            for group, style in zip(first.groups, styles_of(first), strict=True)
        ],
        "many": len(first.groups) > MOST_NAMED,
        "most_named": MOST_NAMED,
        "labelled": all(part.reduced.has_labels for part in parts),
        "threshold": f"{first.thresholds[0].threshold:g}",
        "low": low,
        "high": high,
        "confidence": f"{first.settings.confidence:.0%}",
        "rows": f"{first.rows:,}",
        "n_groups": count_word(len(first.groups)),
    }


def _repair_words(target: Any) -> str:
    if isinstance(target, str):
        return f"QuantileRepair(target={one_line(target)!r})"
    return "QuantileRepair(target=...)"
