"""Results without any script: a sentence and a small table in a notebook, and audits as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from fairtransport._text import one_line, plain, shorten
from fairtransport.auditing import Audit, AuditComparison, AuditSeries
from fairtransport.auditing.comparison import comparison_tables
from fairtransport.auditing.errors.summary import errors_sentence
from fairtransport.auditing.series import series_table
from fairtransport.auditing.tables import Table, audit_tables, figure_tables, largest_groups
from fairtransport.report.pages.audit import audit_styles
from fairtransport.report.pages.comparison import comparison_verdict
from fairtransport.selection import Frontier

_LINE = (
    '<svg width="28" height="8" style="margin-right:.4em"><line x1="1" y1="4" x2="27" y2="4" stroke="{0.colour}" '
    'stroke-width="3" stroke-dasharray="{0.dash_array}"/></svg>'
)


def render_notebook_cell(audit: Audit) -> str:
    """Return an audit as an HTML fragment; names are escaped."""
    table, styles = next(table for table in figure_tables(audit) if table.key == "groups"), audit_styles(audit)
    rows = []
    for index in (shown := largest_groups(audit)):
        few = "" if audit.groups[index].judged else " <small>few rows</small>"
        name = (
            f"{_LINE.format(styles[index])}<bdi>{escape(shorten(audit.groups[index].name, 60, audit.names))}</bdi>{few}"
        )
        rows.append([name, *(escape(text) for text, _ in table.brief(table.rows[index]))])
    header = [table.head, *(escape(text) for text, _ in table.brief())]
    left_out = len(audit.groups) - len(shown)
    sentences = [audit.verdict.sentence, errors_sentence(audit)]
    paragraphs = "".join(f"<p>{_as_html(sentence)}</p>" for sentence in sentences if sentence is not None)
    more = f"<p><small>{left_out:,} smaller groups are not shown.</small></p>" if left_out else ""
    return (
        f'<div style="max-width:60em">{paragraphs}{_table(header, rows)}{more}'
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
        plain(comparison_verdict(comparison).sentence), *_texts(comparison_tables(comparison)[0])
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
    return table.heads, [(row.head, *table.texts(row)) for row in table.rows]


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


# An audit as Markdown, for model cards and reports: the verdict, and the tables of its page.

DISCLAIMER = (
    "These figures describe differences between scores and decisions. Whether a difference is lawful or justified "
    "depends on the decision that the scores are for and on the law that applies, and is not for statistics to say."
)


def audit_markdown(audit: Audit, *, title: str | None = None) -> str:
    """Return an audit as Markdown: verdict, provenance, and tables that a model card can take over."""
    return "\n".join(_markdown(audit, title)).rstrip() + "\n"


def _markdown(audit: Audit, title: str | None) -> Iterator[str]:
    heading = title or audit.provenance.title or f"Scores by {', '.join(map(one_line, audit.settings.columns))}"
    yield from (f"# {_cell(heading)}", "", _cell(plain(audit.verdict.sentence)))
    for point in audit.verdict.points:
        yield from ("", f"- {_cell(plain(point))}")
    yield ""
    if provenance := list(audit.provenance.lines()):
        yield "## What was audited"
        yield from _markdown_table(["", ""], provenance)
    for table in audit_tables(audit):
        yield from (f"## {_cell(table.title)}", "", _cell(table.words))
        rows = ((f"{row.head} ({row.note})" if row.note else row.head, *table.texts(row)) for row in table.rows)
        yield from _markdown_table(table.heads, rows)
    yield from ("## How to read this", "")
    yield (
        f"Intervals have {audit.settings.confidence:.0%} confidence. Groups with fewer than "
        f"{audit.settings.small_groups.min_size} rows are shown and not judged. {DISCLAIMER}"
    )


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"| {' | '.join(map(_cell, header))} |", f"| {' | '.join('---' for _ in header)} |")
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _cell(text: str) -> str:
    """Return a text of one line that Markdown does not read as markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", one_line(text))
