"""The page of two audits side by side, and what changed in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fairtransport._text import isolated, one_line, shorten
from fairtransport.auditing.comparison import comparison_tables
from fairtransport.auditing.records import threshold_heading
from fairtransport.auditing.tables import interval_head
from fairtransport.report._what_if import WhatIf
from fairtransport.report.pages.audit import (
    collect_common,
    collect_method_notes,
    collect_script_data,
    collect_sources,
    collect_threshold_rows,
)
from fairtransport.report.pages.rendering import check_destination, render_audit_page, write_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from fairtransport.auditing import AuditComparison, Change

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
    one, other = (isolated(name, 24) for name in comparison.names)
    mean = " on average" if comparison.before.verdict.n_pairs > 1 else ""
    over = "all thresholds" if settings.bounded else "all shares of people selected"
    sentence = (
        f"{opening}: averaged over {over}, the shares of two groups above the threshold lie "
        f"{100 * change.before:.1f} percentage points apart{mean} in {one} and {100 * change.after:.1f} in "
        f"{other}, a change of {_signed(100 * change.value)} ({_interval(comparison, change)}), "
        f"{_noise(change)}."
    )
    return ComparisonVerdict(status, sentence, tuple(_points(comparison)))


def _points(comparison: AuditComparison) -> Iterator[str]:
    if "error_rate" in comparison.changes:
        error = comparison.changes["error_rate"]
        yield (
            f"Wrong decisions: {100 * error.before:.1f}% and {100 * error.after:.1f}%, a change of "
            f"{_signed(100 * error.value)} percentage points ({_interval(comparison, error)}), {_noise(error)}."
        )
    for threshold in comparison.thresholds[:1]:
        ratios = [f"{ratio:.2f}" if ratio is not None else "none" for ratio in threshold.ratios]
        where = threshold_heading(comparison.before, comparison.before.thresholds[0])
        yield f"Lowest over highest rate, {where}: {ratios[0]} and {ratios[1]}; four fifths is 0.80."


def _noise(change: Change) -> str:
    return "beyond noise" if change.beyond_noise else "within noise"


def _interval(comparison: AuditComparison, change: Change) -> str:
    low, high = _signed(100 * change.low), _signed(100 * change.high)
    return f"{interval_head(comparison.before)} {low} to {high}"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def audit_comparison_page(comparison: AuditComparison, path: Any = None, **options: Any) -> Path | str:
    """Write the page of two audits."""
    check_destination(path)
    return write_page(render_audit_page(collect_audit_comparison_page(comparison, **options)), path)


def collect_audit_comparison_page(
    comparison: AuditComparison, *, title: str | None = None, written: datetime | None = None
) -> dict[str, Any]:
    """Collect what the page of two audits shows."""
    before, after = comparison.before, comparison.after
    what_ifs = [WhatIf.of(audit, before, after, repair_target=None) for audit in (before, after)]
    indices = [range(len(comparison.positions)), comparison.positions]
    tables = comparison_tables(comparison)
    names = [shorten(name, 24) for name in comparison.names]
    script_data = collect_script_data(what_ifs, names=names, indices=indices)
    return {
        **collect_common(what_ifs, written),
        "title": one_line(title) if title is not None else f"{names[0]} and {names[1]}",
        "verdict": (verdict := comparison_verdict(comparison)),
        "points": verdict.points,
        "cards": [],
        "data": {**script_data, "sheets": {table.key: table.sheet for table in tables}},
        "names": names,
        "threshold_rows": collect_threshold_rows(what_ifs, indices),
        "repairable": False,
        "repair_call": "",
        "tables": tables,
        "matrix": None,
        "method": _notes(what_ifs, names),
        "sources": collect_sources(dict(zip(names, (comparison.before, comparison.after), strict=True))),
    }


def _notes(what_ifs: Sequence[WhatIf], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the notes on two audits: once where they agree, by the name of the audit where they differ."""
    notes: list[tuple[str, str]] = []
    for (key, value), (_, other) in zip(*(collect_method_notes(each.audit, each) for each in what_ifs), strict=True):
        notes += [(key, value)] if value == other else [(f"{key}, {names[0]}", value), (f"{key}, {names[1]}", other)]
    changes = "A change is beyond noise when its interval, which treats the audits as independent, does not contain 0"
    return [*notes, ("Changes", changes)]
