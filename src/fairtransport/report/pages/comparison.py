"""The page of two audits side by side, with what changed in words, and that of a series of audits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairtransport._extras import load_extra
from fairtransport._text import isolated, plain, shorten
from fairtransport.auditing import AuditComparison, AuditSeries, Change
from fairtransport.auditing.comparison import comparison_tables
from fairtransport.auditing.records import threshold_heading
from fairtransport.auditing.series import series_table
from fairtransport.auditing.tables import interval_head, signed_points
from fairtransport.report._what_if import WhatIf
from fairtransport.report.displays._differences import MAX_PANELS, AuditSeriesDisplay, small_multiples
from fairtransport.report.pages.audit import collect_common, collect_method_notes
from fairtransport.report.pages.rendering import check_destination, render_audit_page, write_page
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import render_template

# Two audits in plain words.


class ComparisonVerdict(NamedTuple):
    """Verdict on two audits."""

    status: str
    sentence: str
    points: tuple[str, ...]


def comparison_verdict(comparison: AuditComparison) -> ComparisonVerdict:
    """State whether the disparity has changed, by how much, and with what uncertainty."""
    settings = comparison.before.settings
    change = comparison.mean_changes[settings.pairs_metric]
    status = "same" if not change.beyond_noise else "smaller" if change.value < 0 else "larger"
    opening = {
        "smaller": "The groups are closer together",
        "larger": "The groups are farther apart",
        "same": "No change beyond noise",
    }[status]
    one, other = (isolated(name, 24, comparison.names) for name in comparison.names)
    mean = " on average" if comparison.before.verdict.n_pairs > 1 else ""
    both = [audit.mean_readings[settings.pairs_metric] for audit in (comparison.before, comparison.after)]
    observed, chance = (
        " and ".join(f"{100 * (getattr(each, part) or 0.0):.1f}" for each in both) for part in ("value", "floor")
    )
    over = "all thresholds" if settings.bounded else "all shares of people selected"
    sentence = (
        f"{opening}: averaged over {over}, the shares of two groups above the threshold lie "
        f"{100 * change.before:.1f} percentage points apart{mean} in {one} and {100 * change.after:.1f} in "
        f"{other}, corrected for chance (observed {observed}, by chance {chance}), a change of "
        f"{signed_points(change.value)} ({_interval(comparison, change)}), {_noise(change)}."
    )
    return ComparisonVerdict(status, sentence, tuple(_points(comparison)))


def _points(comparison: AuditComparison) -> Iterator[str]:
    if "error_rate" in comparison.changes:
        error = comparison.changes["error_rate"]
        yield (
            f"Wrong decisions: {100 * error.before:.1f}% and {100 * error.after:.1f}%, a change of "
            f"{signed_points(error.value)} percentage points ({_interval(comparison, error)}), {_noise(error)}."
        )
    for threshold in comparison.thresholds[:1]:
        ratios = [f"{ratio:.2f}" if ratio is not None else "none" for ratio in threshold.ratios]
        where = threshold_heading(comparison.before, comparison.before.thresholds[0])
        yield f"Lowest over highest rate, {where}: {ratios[0]} and {ratios[1]}; four fifths is 0.80."


def _noise(change: Change) -> str:
    return "beyond noise" if change.beyond_noise else "within noise"


def _interval(comparison: AuditComparison, change: Change) -> str:
    low, high = signed_points(change.low), signed_points(change.high)
    return f"{interval_head(comparison.before)} {low} to {high}"


def audit_comparison_page(comparison: AuditComparison, path: Any = None, *, title: str | None = None) -> Path | str:
    """Write the page of two audits."""
    check_destination(path)
    before, after = comparison.before, comparison.after
    what_ifs = [WhatIf.of(audit, before, after, repair_target=None) for audit in (before, after)]
    indices = [range(len(comparison.positions)), comparison.positions]
    tables = comparison_tables(comparison)
    names = [shorten(name, 24, comparison.names) for name in comparison.names]
    verdict = comparison_verdict(comparison)
    page = render_audit_page(
        collect_common(what_ifs, names, indices, {table.key: table.sheet for table in tables}),
        title=title if title is not None else f"{names[0]} and {names[1]}",
        verdict=verdict,
        points=verdict.points,
        tables=tables,
        method=_notes(what_ifs, names),
    )
    return write_page(page, path)


def _notes(what_ifs: Sequence[WhatIf], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the notes on two audits: once where they agree, by the name of the audit where they differ."""
    notes: list[tuple[str, str]] = []
    for (key, value), (_, other) in zip(*(collect_method_notes(each.audit, each) for each in what_ifs), strict=True):
        notes += [(key, value)] if value == other else [(f"{key}, {names[0]}", value), (f"{key}, {names[1]}", other)]
    changes = "A change is beyond noise when its interval, which treats the audits as independent, does not contain 0"
    return [*notes, ("Changes", changes)]


# The page of a series of audits; it needs no script.


def series_page(series: AuditSeries, path: Any = None, *, title: str | None = None) -> Path | str:
    """Write the page of a series of audits."""
    check_destination(path)
    overall = series.overall
    chart = AuditSeriesDisplay.from_series(series).figure_
    images = [image_address(figure_bytes(figure, "svg"), "svg") for figure in (chart, small_multiples(series))]
    load_extra("matplotlib.pyplot").close(chart)
    by = f"Scores by {', '.join(overall.settings.columns)}, for each {series.by}"
    page = render_template(
        "series/page.html",
        title=title or overall.provenance.title or by,
        verdict=series.sentence,
        series=series,
        images=images,
        table=series_table(series),
        max_panels=MAX_PANELS,
        plain=plain,
    )
    return write_page(page, path)
