"""Results in a notebook: a sentence and a small table, without any script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairtransport._text import percent, plain, score_text, shorten, three_digits
from fairtransport.auditing.errors.summary import errors_sentence
from fairtransport.auditing.records import threshold_heading
from fairtransport.report.pages.audit import audit_styles
from fairtransport.report.style.figures import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairtransport.auditing import Audit, AuditComparison, AuditSeries
    from fairtransport.selection import Frontier

_CELL = "padding:.15em .6em;text-align:right"
_HEAD = "padding:.15em .6em;text-align:left"


def render_notebook_cell(audit: Audit) -> str:
    """Return an audit as an HTML fragment; names are escaped."""
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


# Comparisons and trade-off curves in a notebook: a sentence and a small table, without any script.

_TITLES = {
    "error_rate": "Error",
    "wasserstein_disparity": "Distance to the target",
    "strong_demographic_disparity": "Distance to everyone",
    "strong_pairwise_disparity": "Distance between pairs",
    "auc": "Area under the ROC curve",
}
_CURVE = ("error_rate", "auc", "strong_pairwise_disparity", "noise_floor", "rank_disparity")


def comparison_cell(comparison: AuditComparison) -> str:
    """Return a comparison as an HTML fragment."""
    from fairtransport.report.pages.comparison import comparison_verdict  # noqa: PLC0415 - loads a page

    changes = dict(comparison.changes)
    if comparison.auc is not None:
        changes["auc"] = comparison.auc
    rows = [
        (
            _TITLES[name],
            f"{change.before:.3f}",
            f"{change.after:.3f}",
            f"{change.value:+.3f}",
            f"{change.low:+.3f} to {change.high:+.3f}",
            "beyond noise" if change.beyond_noise else "within noise",
        )
        for name, change in changes.items()
    ]
    header = ["", *comparison.names, "change", f"{comparison.before.settings.confidence:.0%} interval", ""]
    sentence = plain(comparison_verdict(comparison).sentence)
    return f"<div><p>{escape(sentence)}</p>{table_html(header, rows)}</div>"


def frontier_cell(frontier: Frontier) -> str:
    """Return a trade-off curve as an HTML fragment."""
    columns = frontier.table()
    header = [frontier.parameter, *(name.replace("_", " ") for name in _CURVE)]
    rows = [
        (f"{value:g}", *(_with_error(columns[name][index], columns[f"{name}_se"][index]) for name in _CURVE))
        for index, value in enumerate(columns[frontier.parameter])
    ]
    title = (
        f"Error and disparity on held-out rows: {frontier.n_rows:,} rows, {frontier.n_groups} groups, "
        f"{frontier.n_folds} folds, mean and standard error"
    )
    return f"<div><p>{escape(title)}</p>{table_html(header, rows)}</div>"


def series_cell(series: AuditSeries) -> str:
    """Return a series of audits as an HTML fragment."""
    rows = [
        (
            point.value,
            f"{point.rows:,}",
            f"{point.distance:.3f}",
            f"{point.low:.3f} to {point.high:.3f}",
            f"{point.p_value:.2g}",
            "outside the control limits" if point.outside else "",
        )
        for point in series.points
    ]
    header = [series.by, "rows", "distance", f"{series.overall.settings.confidence:.0%} interval", "p (Holm)", ""]
    return f"<div><p>{escape(series.sentence)}</p>{table_html(header, rows)}</div>"


def table_html(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are escaped and whose first column has the headers of the rows."""
    cell = "padding:.15em .6em;text-align:right"
    head = "".join(f'<th scope="col" style="{cell}">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row" style="padding:.15em .6em;text-align:left">{escape(first)}</th>'
        + "".join(f'<td style="{cell}">{escape(text)}</td>' for text in others)
        + "</tr>"
        for first, *others in rows
    )
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _with_error(value: float, error: float) -> str:
    return f"{value:.3f}" if error != error else f"{value:.3f} ± {error:.3f}"  # noqa: PLR0124 - NaN with one fold
