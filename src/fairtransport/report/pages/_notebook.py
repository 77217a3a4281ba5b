"""An audit in a notebook: the verdict, and the groups in a small table. No script, nothing to install."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairtransport._text import percent, shorten
from fairtransport.report.pages._audit_data import dash_list, styles_of
from fairtransport.report.pages.audit_verdict import audit_verdict
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["audit_html"]

_CELL = "padding:.15em .6em;text-align:right"
_HEAD = "padding:.15em .6em;text-align:left"


def audit_html(audit: Audit) -> str:
    """Return the audit as a piece of HTML; names are escaped.

    Parameters
    ----------
    audit : Audit

    Returns
    -------
    str

    Examples
    --------
    >>> import fairtransport as ft
    >>> found = ft.audit([0.1, 0.2, 0.9, 0.8], sensitive_features=["<b>", "<b>", "c", "c"], n_bootstrap=99)
    >>> "<b>" in audit_html(found), "&lt;b&gt;" in audit_html(found)
    (False, True)
    """
    first = audit.thresholds[0]
    heads = ["Group", "Rows", "Mean", "Median", f"Above {first.threshold:g}"]
    labelled = first.errors is not None
    if labelled:
        heads.append("Wrong")
    rows = _row(heads, "th")
    largest = sorted(sorted(range(len(audit.groups)), key=lambda place: -audit.groups[place].rows)[:MOST_NAMED])
    styles = styles_of(audit)
    for place in largest:
        group, style = audit.groups[place], styles[place]
        line = (
            '<svg width="28" height="8" style="margin-right:.4em"><line x1="1" y1="4" x2="27" y2="4" '
            f'stroke="{style.colour}" stroke-width="3" stroke-dasharray="{dash_list(style)}"/></svg>'
        )
        unsure = " <small>unsure</small>" if group.unsure else ""
        cells = [
            f"{line}<bdi>{escape(shorten(group.name, 60))}</bdi>{unsure}",
            f"{group.rows:,}",
            f"{group.mean:.3f}",
            f"{group.quantiles[2]:.3f}",
            percent(first.rates[place].value),
        ]
        if first.errors is not None:
            cells.append(percent(first.errors[place].value))
        rows += _row(cells, "td")
    left_out = len(audit.groups) - len(largest)
    more = f"<p><small>{left_out:,} smaller groups are not shown.</small></p>" if left_out else ""
    return (
        f'<div style="max-width:60em"><p>{_sentence(audit)}</p>'
        f'<table style="border-collapse:collapse">{rows}</table>{more}'
        "<p><small><code>print(audit)</code> tells more, <code>audit.to_html(path)</code> writes the page.</small></p>"
        "</div>"
    )


def _sentence(audit: Audit) -> str:
    told = escape(audit_verdict(audit).sentence)
    return told.replace("\u2068", "<b><bdi>").replace("\u2069", "</bdi></b>")


def _row(cells: list[str], kind: str) -> str:
    first, *others = cells
    parts = [
        f'<{kind} style="{_HEAD}">{first}</{kind}>',
        *(f'<{kind} style="{_CELL}">{one}</{kind}>' for one in others),
    ]
    return f"<tr>{''.join(parts)}</tr>"
