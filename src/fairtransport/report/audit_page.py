"""The page of an audit, or of two: collect what it shows, then render it. Nothing in it needs a network."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport.report.audit_data import dash_list, page_data, styles_of
from fairtransport.report.audit_method import comparison_method_entries, method_entries, software
from fairtransport.report.audit_tables import audit_tables, comparison_tables, sheets
from fairtransport.report.audit_verdict import PAIRS, audit_verdict, n_pairs
from fairtransport.report.comparison_verdict import comparison_verdict
from fairtransport.report.embedding import content_policy, embedded_json
from fairtransport.report.extra import load_extra
from fairtransport.report.live import live_rows
from fairtransport.report.matrix import matrix
from fairtransport.report.style import MOST_NAMED, THEMES
from fairtransport.report.text import count_word, one_line, percent, shorten
from fairtransport.report.what_if import WhatIf
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, AuditComparison

__all__ = ["audit_page", "comparison_page", "write_page"]

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
    check_path(path)
    part = WhatIf.of(audit, repair_target=repair_target)
    tables = audit_tables(audit)
    verdict = audit_verdict(audit, part)
    here = range(len(audit.groups))
    columns = ", ".join(one_line(column) for column in audit.settings.columns)
    context = {
        **_frame([part], written),
        "title": one_line(title) if title is not None else shorten(f"Scores by {columns}", 80),
        "verdict": verdict,
        "cards": _cards(audit),
        "data": {**page_data([part], names=[""], places=[here]), "sheets": sheets(tables, audit)},
        "parts": [""],
        "live": live_rows([part], [here]),
        "repairable": part.reduced.can_repair,
        "repair_words": _repair_words(repair_target),
        "tables": tables,
        "matrix": matrix(audit),
        "method": method_entries(audit, part),
    }
    return write_page(_render(context), path)


def comparison_page(
    comparison: AuditComparison,
    path: Any = None,
    *,
    title: str | None = None,
    written: datetime | None = None,
) -> Path | str:
    """Make the page of two audits; parameters as in `audit_page`."""
    check_path(path)
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
    return write_page(_render(context), path)


def check_path(path: Any) -> None:
    """Refuse a path that no file can have, before anything is computed."""
    if path is None:
        return
    goal = Path(path)
    if goal.is_dir():
        raise IsADirectoryError(f"{goal} is a folder; name a file in it, such as {goal / 'report.html'}.")
    if not goal.parent.is_dir():
        raise FileNotFoundError(f"The folder {goal.parent} does not exist; make it first, or choose another path.")


def write_page(page: str, path: Any) -> Path | str:
    """Write the page, all at once, and return its path; without a path return the page."""
    return page if path is None else write_atomically(path, page.encode())


# ----------------------------------------------------------------------------------------------------------- render


def _render(context: dict[str, Any]) -> str:
    jinja2, markup = load_extra("jinja2"), load_extra("markupsafe")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtransport.report"),
        autoescape=True,  # names come from the user's data
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["isolate"] = lambda text: _isolate(text, markup)
    style = environment.get_template("audit/page.css").render(themes=THEMES, most_rows=_MOST_ROWS)
    script = _script()
    page: str = environment.get_template("audit/page.html").render(
        **{**context, "data": markup.Markup(embedded_json(context["data"]))},
        style=markup.Markup(style),
        script=markup.Markup(script),
        policy=markup.Markup(content_policy(style, script)),
    )
    return page


def _script() -> str:
    """Return the page's script: our files one after the other, in a function of their own."""
    home = resources.files("fairtransport.report") / "templates" / "audit"
    parts = [(home / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _isolate(text: str, markup: Any) -> Any:
    """Turn the signs around names into elements; everything is escaped."""
    parts = re.split("\u2068([^\u2069]*)\u2069", text)
    told = (markup.Markup("<bdi>{}</bdi>").format(part) if place % 2 else part for place, part in enumerate(parts))
    return markup.Markup("").join(told)


# ---------------------------------------------------------------------------------------------------------- collect


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
        "most_rows": _MOST_ROWS,
        "labelled": all(part.reduced.has_labels for part in parts),
        "threshold": f"{first.thresholds[0].threshold:g}",
        "low": low,
        "high": high,
        "confidence": f"{first.settings.confidence:.0%}",
        "rows": f"{first.rows:,}",
        "n_groups": count_word(len(first.groups)),
    }


@dataclass(frozen=True)
class _Card:
    """A figure that stands large on top."""

    name: str
    value: str
    told: str
    more: str = ""
    unit: str = ""


def _cards(audit: Audit) -> list[_Card]:
    pairs, first, apart = audit.readings[PAIRS], audit.thresholds[0], audit.farthest
    interval = f"{audit.settings.confidence:.0%} interval"
    points = 100 / n_pairs(audit)
    cards = [
        _Card(
            "Average gap between two groups",
            f"{points * pairs.corrected:.1f}",
            f"{interval} {points * pairs.low:.1f} to {points * pairs.high:.1f}",
            f"as read {points * pairs.value:.1f}, by chance alone {points * (pairs.floor or 0):.1f}",
            unit="points",
        ),
        _Card(
            "Gap of the farthest two",
            f"{100 * apart.distance:.1f}",
            f"half of it between scores {apart.most_between[0]:.2g} and {apart.most_between[1]:.2g}",
            unit="points",
        ),
    ]
    if first.four_fifths is not None:
        told = f"{interval} {first.ratio.low:.2f} to {first.ratio.high:.2f}"
        name = f"Lowest over highest rate above {first.threshold:g}"
        cards.append(_Card(name, f"{first.ratio.value:.2f}", told, "four fifths is 0.80"))
    if "error_rate" in audit.readings:
        error = audit.readings["error_rate"]
        told = f"{interval} {percent(error.low)} to {percent(error.high)}"
        area = "" if audit.auc is None else f"area under the ROC curve {audit.auc.value:.2f}"
        cards.append(_Card(f"Wrong decisions at {first.threshold:g}", percent(error.value), told, area))
    return cards


def _repair_words(target: Any) -> str:
    if isinstance(target, str):
        return f"QuantileRepair(target={one_line(target)!r})"
    return "QuantileRepair(target=...)"
