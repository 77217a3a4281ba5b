"""Page of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport._text import count_word, one_line, shorten
from fairtransport.auditing.units import scores_word
from fairtransport.report._shown_scores import score_title
from fairtransport.report._what_if import ERROR_RATES, WhatIf
from fairtransport.report.pages.audit._calibration_section import (
    collect_calibration_sheets,
    collect_calibration_tables,
    collect_panels,
)
from fairtransport.report.pages.audit._distance_matrix import collect_distance_matrix
from fairtransport.report.pages.audit._effects_section import collect_effect_tables, collect_effects
from fairtransport.report.pages.audit._error_section import (
    RATE_NAMES,
    collect_error_rows,
    collect_error_sheets,
    collect_error_tables,
)
from fairtransport.report.pages.audit._method_notes import collect_method_notes
from fairtransport.report.pages.audit._outcome_section import collect_outcomes
from fairtransport.report.pages.audit._rendering import check_destination, render_audit_page, write_page
from fairtransport.report.pages.audit._script_data import audit_styles, collect_script_data
from fairtransport.report.pages.audit._summary_cards import collect_cards
from fairtransport.report.pages.audit._tables import collect_sheets, collect_tables
from fairtransport.report.pages.audit._threshold_table import collect_threshold_rows
from fairtransport.report.pages.audit._verdict import verdict_points
from fairtransport.report.style.colors import MOST_NAMED
from fairtransport.report.style.web_pages import date_text, software_versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from fairtransport.auditing import Audit
    from fairtransport.causal import CounterfactualAudit

__all__ = ["audit_page", "collect_audit_page", "collect_common", "collect_sources"]


def audit_page(audit: Audit, path: Any = None, **options: Any) -> Path | str:
    """Write the page of an audit.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    path : path, default=None
        File to write; if None, the page is returned.
    **options
        Parameters of `collect_audit_page`.

    Returns
    -------
    Path or str
    """
    check_destination(path)
    return write_page(render_audit_page(collect_audit_page(audit, **options)), path)


def collect_audit_page(
    audit: Audit,
    *,
    title: str | None = None,
    repair_target: Any = "barycenter_w2",
    effects: CounterfactualAudit | None = None,
    written: datetime | None = None,
) -> dict[str, Any]:
    """Collect what the page of an audit shows.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    title : str, default=None
        Heading of the page; if None, it names the columns of the groups.
    repair_target : str, label or array, default="barycenter_w2"
        Target of the repair that readers can try, as in `fairtransport.QuantileRepair`.
    effects : CounterfactualAudit, default=None
        Effects along the paths of a causal graph, for a section of their own.
    written : datetime, default=None
        Date to print; if None, the current one.

    Returns
    -------
    dict
        Values of the template.
    """
    what_if = WhatIf.of(audit, repair_target=repair_target)
    shown = what_if.audit  # the same figures, with equally spaced nodes
    tables, error_tables, calibration_tables = (
        collect(audit) for collect in (collect_tables, collect_error_tables, collect_calibration_tables)
    )
    effect_tables = collect_effect_tables(effects)
    sheets = {
        **collect_sheets([*tables, *error_tables, *calibration_tables, *effect_tables], audit),
        **collect_error_sheets(audit),
        **collect_calibration_sheets(audit),
    }
    indices = range(len(audit.groups))
    columns = ", ".join(one_line(column) for column in audit.settings.columns)
    heading = audit.provenance.title if title is None else title
    default = shorten(f"{scores_word(audit).capitalize()} by {columns}", 80)
    script_data = collect_script_data([what_if], names=[""], indices=[indices])
    return {
        **collect_common([what_if], written),
        "title": one_line(heading) if heading is not None else default,
        "verdict": audit.verdict,
        "points": verdict_points(audit, what_if),
        "cards": collect_cards(audit),
        "data": {**script_data, "sheets": sheets},
        "names": [""],
        "threshold_rows": collect_threshold_rows([what_if], [indices]),
        "error_rows": collect_error_rows(what_if),
        "error_tables": error_tables,
        "outcomes": collect_outcomes(shown),
        "effects": collect_effects(effects),
        "effect_tables": effect_tables,
        "panels": collect_panels(audit),
        "calibration_tables": calibration_tables,
        "repairable": what_if.reduced.can_repair,
        "repair_call": _repair_call(repair_target),
        "tables": tables,
        "matrix": collect_distance_matrix(audit),
        "method": collect_method_notes(audit, what_if),
        "sources": collect_sources({"": audit}),
    }


def collect_sources(audits: Mapping[str, Audit]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Collect what is known about the origin of audits, by their names on the page; empty where nothing is.

    Parameters
    ----------
    audits : dict of str to Audit

    Returns
    -------
    list of (str, list of (str, str))
        The name of an audit, and pairs of a title and a text.
    """
    known = {name: [(key, one_line(text)) for key, text in audit.provenance.lines()] for name, audit in audits.items()}
    return [(name, lines) for name, lines in known.items() if lines]


def collect_common(what_ifs: Sequence[WhatIf], written: datetime | None) -> dict[str, Any]:
    """Collect what the pages of one and of two audits have in common: software, date, groups and the first threshold.

    Parameters
    ----------
    what_ifs : sequence of WhatIf
        The audits.
    written : datetime or None
        Date to print.

    Returns
    -------
    dict
    """
    first = what_ifs[0].audit
    low, high = first.settings.range
    return {
        "version": __version__,
        "software": software_versions(),
        "written": date_text(written),
        "groups": [
            {
                "name": one_line(group.name),
                "rows": f"{group.rows:,}",
                "judged": group.judged,
                "colour": style.colour,
                "dashes": style.dash_array,
                "named": style.named,
            }
            for group, style in zip(first.groups, audit_styles(first), strict=True)
        ],
        "many": len(first.groups) > MOST_NAMED,
        "most_named": MOST_NAMED,
        "labelled": all(what_if.reduced.has_labels for what_if in what_ifs),
        "threshold": f"{first.thresholds[0].threshold:{'g' if first.settings.bounded else '.10g'}}",
        "score_title": score_title(first),
        "averaged": "all thresholds" if first.settings.bounded else "all shares of people selected",
        "ranks": not first.settings.bounded,
        "low": low,
        "high": high,
        "confidence": f"{first.settings.confidence:.0%}",
        "rows": f"{first.rows:,}",
        "n_groups": count_word(len(first.groups)),
        "high_is_favourable": first.settings.favourable == "high",
        "rate_names": [(rate, *RATE_NAMES[rate]) for rate in ERROR_RATES],
        "error_rows": [],
        "error_tables": [],
        "outcomes": None,
        "effects": None,
        "effect_tables": [],
        "panels": [],
        "calibration_tables": [],
    }


def _repair_call(target: Any) -> str:
    return f"QuantileRepair(target={one_line(target)!r})" if isinstance(target, str) else "QuantileRepair(target=...)"
