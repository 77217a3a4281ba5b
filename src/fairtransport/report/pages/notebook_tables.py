"""Comparisons and trade-off curves in a notebook: a sentence and a small table, without any script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairtransport._text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairtransport.auditing import AuditComparison, AuditSeries
    from fairtransport.selection import Frontier

__all__ = ["comparison_cell", "frontier_cell", "series_cell", "table_html"]

_TITLES = {
    "error_rate": "Error",
    "wasserstein_disparity": "Distance to the target",
    "strong_demographic_disparity": "Distance to everyone",
    "strong_pairwise_disparity": "Distance between pairs",
    "auc": "Area under the ROC curve",
}
_CURVE = ("error_rate", "auc", "strong_pairwise_disparity", "noise_floor", "rank_disparity")


def comparison_cell(comparison: AuditComparison) -> str:
    """Return a comparison as an HTML fragment.

    Parameters
    ----------
    comparison : AuditComparison

    Returns
    -------
    str
    """
    from fairtransport.report.pages.audit._comparison_verdict import comparison_verdict  # noqa: PLC0415 - loads a page

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
    """Return a trade-off curve as an HTML fragment.

    Parameters
    ----------
    frontier : Frontier

    Returns
    -------
    str
    """
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
    """Return a series of audits as an HTML fragment.

    Parameters
    ----------
    series : AuditSeries

    Returns
    -------
    str
    """
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
    """Return a table whose cells are escaped and whose first column has the headers of the rows.

    Examples
    --------
    >>> table_html(["", "<b>"], [("a", "1")]).count("&lt;b&gt;")
    1
    """
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
