"""An audit in a notebook: the verdict and a small table of the groups, without any script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairtransport._text import percent, score_text, shorten, three_digits
from fairtransport.auditing.errors.summary import errors_sentence
from fairtransport.auditing.units import threshold_heading
from fairtransport.report.pages.audit._script_data import audit_styles
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["render_notebook_cell"]

_CELL = "padding:.15em .6em;text-align:right"
_HEAD = "padding:.15em .6em;text-align:left"


def render_notebook_cell(audit: Audit) -> str:
    """Return an audit as an HTML fragment; names are escaped.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Returns
    -------
    str

    Examples
    --------
    >>> import fairtransport as ft
    >>> audit = ft.audit([0.1, 0.2, 0.9, 0.8], sensitive_features=["<b>", "<b>", "c", "c"], n_bootstrap=99)
    >>> "<b>" in render_notebook_cell(audit), "&lt;b&gt;" in render_notebook_cell(audit)
    (False, True)
    """
    first = audit.thresholds[0]
    heads = ["Group", "Rows", "Mean", "Median", threshold_heading(audit, first).capitalize()]
    score = three_digits if audit.settings.bounded else score_text
    if first.errors is not None:
        heads.append("Wrong")
    rows = _row(heads, "th")
    largest = sorted(sorted(range(len(audit.groups)), key=lambda index: -audit.groups[index].rows)[:MOST_NAMED])
    styles = audit_styles(audit)
    for index in largest:
        group, style = audit.groups[index], styles[index]
        line = (
            '<svg width="28" height="8" style="margin-right:.4em"><line x1="1" y1="4" x2="27" y2="4" '
            f'stroke="{style.colour}" stroke-width="3" stroke-dasharray="{style.dash_array}"/></svg>'
        )
        few = "" if group.judged else " <small>few rows</small>"
        cells = [
            f"{line}<bdi>{escape(shorten(group.name, 60))}</bdi>{few}",
            f"{group.rows:,}",
            score(group.mean),
            score(group.quantiles[2]),
            percent(first.rates[index].value),
        ]
        if first.errors is not None:
            cells.append(percent(first.errors[index].value))
        rows += _row(cells, "td")
    left_out = len(audit.groups) - len(largest)
    more = f"<p><small>{left_out:,} smaller groups are not shown.</small></p>" if left_out else ""
    return (
        f'<div style="max-width:60em"><p>{_as_html(audit.verdict.sentence)}</p>{_errors(audit)}'
        f'<table style="border-collapse:collapse">{rows}</table>{more}'
        "<p><small><code>print(audit)</code> shows more, <code>audit.to_html(path)</code> writes the page.</small></p>"
        "</div>"
    )


def _errors(audit: Audit) -> str:
    sentence = errors_sentence(audit)
    return "" if sentence is None else f"<p>{_as_html(sentence)}</p>"


def _as_html(sentence: str) -> str:
    return escape(sentence).replace("\u2068", "<b><bdi>").replace("\u2069", "</bdi></b>")


def _row(cells: list[str], tag: str) -> str:
    first, *others = cells
    parts = [
        f'<{tag} style="{_HEAD}">{first}</{tag}>',
        *(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in others),
    ]
    return f"<tr>{''.join(parts)}</tr>"
