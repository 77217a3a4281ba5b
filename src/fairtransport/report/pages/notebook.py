"""Results in a notebook: a sentence and a small table, without any script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairtransport._text import percent, plain, score_text, shorten, three_digits
from fairtransport.auditing.errors.summary import errors_sentence
from fairtransport.auditing.records import threshold_heading
from fairtransport.report.pages.audit import audit_styles
from fairtransport.report.pages.comparison import collect_comparison_tables, comparison_verdict
from fairtransport.report.pages.series import series_table
from fairtransport.report.pages.tables import largest_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairtransport.auditing import Audit, AuditComparison, AuditSeries
    from fairtransport.report.pages.tables import Table
    from fairtransport.selection import Frontier

_LINE = (
    '<svg width="28" height="8" style="margin-right:.4em"><line x1="1" y1="4" x2="27" y2="4" stroke="{0.colour}" '
    'stroke-width="3" stroke-dasharray="{0.dash_array}"/></svg>'
)


def render_notebook_cell(audit: Audit) -> str:
    """Return an audit as an HTML fragment; names are escaped."""
    first, styles = audit.thresholds[0], audit_styles(audit)
    score = three_digits if audit.settings.bounded else score_text
    header = ["Group", "Rows", "Mean", "Median", threshold_heading(audit, first).capitalize()]
    rows = []
    for index in (shown := largest_groups(audit)):
        group = audit.groups[index]
        few = "" if group.judged else " <small>few rows</small>"
        name = f"{_LINE.format(styles[index])}<bdi>{escape(shorten(group.name, 60))}</bdi>{few}"
        cells = [f"{group.rows:,}", score(group.mean), score(group.quantiles[2]), percent(first.rates[index].value)]
        rows.append([name, *cells, *([] if first.errors is None else [percent(first.errors[index].value)])])
    if first.errors is not None:
        header.append("Wrong")
    left_out = len(audit.groups) - len(shown)
    sentences = [audit.verdict.sentence, errors_sentence(audit)]
    paragraphs = "".join(f"<p>{_as_html(sentence)}</p>" for sentence in sentences if sentence is not None)
    more = f"<p><small>{left_out:,} smaller groups are not shown.</small></p>" if left_out else ""
    return (
        f'<div style="max-width:60em">{paragraphs}{_table([escape(name) for name in header], rows)}{more}'
        "<p><small><code>print(audit)</code> shows more, <code>audit.to_html(path)</code> writes the page.</small></p>"
        "</div>"
    )


def _as_html(sentence: str) -> str:
    return escape(sentence).replace("\u2068", "<b><bdi>").replace("\u2069", "</bdi></b>")


# Comparisons and trade-off curves in a notebook: a sentence and a small table, without any script.

_CURVE = ("error_rate", "auc", "pairwise_disparity", "noise_floor", "rank_disparity")


def comparison_cell(comparison: AuditComparison) -> str:
    """Return a comparison as an HTML fragment."""
    return _sentence_and_table(
        plain(comparison_verdict(comparison).sentence), *_texts(collect_comparison_tables(comparison)[0])
    )


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
    return _sentence_and_table(title, header, rows)


def series_cell(series: AuditSeries) -> str:
    """Return a series of audits as an HTML fragment."""
    return _sentence_and_table(series.sentence, *_texts(series_table(series)))


def _texts(table: Table) -> tuple[Sequence[str], list[Sequence[str]]]:
    return table.columns, [(row.head, *row.texts) for row in table.rows]


def _sentence_and_table(sentence: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a sentence above a table, with all texts escaped."""
    cells = [[escape(text) for text in row] for row in rows]
    return f"<div><p>{escape(sentence)}</p>{_table([escape(name) for name in header], cells)}</div>"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML fragments, whose first column has the headers of the rows."""
    left, right = (f'style="padding:.15em .6em;text-align:{side}"' for side in ("left", "right"))
    head = "".join(f'<th scope="col" {right if at else left}>{name}</th>' for at, name in enumerate(header))
    body = "".join(
        f'<tr><th scope="row" {left}>{first}</th>{"".join(f"<td {right}>{text}</td>" for text in others)}</tr>'
        for first, *others in rows
    )
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _with_error(value: float, error: float) -> str:
    return f"{value:.3f}" if error != error else f"{value:.3f} ± {error:.3f}"  # noqa: PLR0124 - NaN with one fold
