"""The page of two audits side by side, and what changed in words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fairtransport._text import isolated, percent, shorten, three_digits
from fairtransport.auditing.records import distance_text, threshold_heading
from fairtransport.report._what_if import WhatIf
from fairtransport.report.pages.audit import collect_common
from fairtransport.report.pages.audit_sections import signed_points
from fairtransport.report.pages.rendering import check_destination, render_audit_page, write_page
from fairtransport.report.pages.tables import (
    METRIC_NAMES,
    Cell,
    Row,
    Table,
    collect_comparison_notes,
    collect_sheets,
    farthest_pairs,
    group_cell,
    interval_head,
    pair_distances,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fairtransport.auditing import AuditComparison, Change

# Tables of the page of two audits.


def collect_comparison_tables(comparison: AuditComparison) -> list[Table]:
    """Return the tables of two audits: metrics, selection rates at each common threshold, and farthest pairs."""
    names = tuple(shorten(name, 24) for name in comparison.names)
    columns = (*names, "Change", interval_head(comparison.before), "Beyond noise")
    tables = [_change_table(comparison, columns)]
    for number, threshold in enumerate(comparison.thresholds):
        rows = tuple(
            Row(group.name, _change_cells(change, percents=True), index)
            for index, (group, change) in enumerate(zip(comparison.before.groups, threshold.rates, strict=True))
        )
        ratios = " and ".join("none" if ratio is None else f"{ratio:.2f}" for ratio in threshold.ratios)
        caption = (
            f"Lowest over highest rate: {ratios}. Groups are judged one by one; a few may seem to change by chance."
        )
        summary = next(at for at in comparison.before.thresholds if at.threshold == threshold.threshold)
        title = f"Selected {threshold_heading(comparison.before, summary)}"
        tables.append(Table(f"selected-{number + 1}", title, caption, ("Group", *columns), rows, (4,)))
    tables.append(_pair_table(comparison, names))
    return tables


def _change_table(comparison: AuditComparison, columns: tuple[str, ...]) -> Table:
    rows = []
    for metric, change in comparison.mean_changes.items():
        name, description = METRIC_NAMES[metric]
        text = partial(distance_text, comparison.before, metric=metric)
        cells = _change_cells(change, percents=metric == "error_rate", text=text)
        rows.append(Row(name, cells, note=description))
    if comparison.auc is not None:
        note = "Probability that a positive row scores above a negative one."
        rows.append(Row("Area under the ROC curve", _change_cells(comparison.auc), note=note))
    caption = (
        "A change is beyond noise when its interval does not contain 0; the two audits are treated as independent."
    )
    return Table("changes", "What changed", caption, ("Metric", *columns), tuple(rows), (4,))


def _pair_table(comparison: AuditComparison, names: tuple[str, ...]) -> Table:
    before, after = comparison.before, comparison.after
    rows = []
    for one, other, distance in farthest_pairs(before):
        later = float(pair_distances(after)[comparison.positions[one], comparison.positions[other]])
        partner = before.groups[other].name
        cells = (group_cell(partner, 60), *(Cell(three_digits(value), value) for value in (distance, later)))
        rows.append(Row(before.groups[one].name, cells, one))
    return Table(
        key="pairs",
        title=f"Farthest apart in {names[0]}",
        caption="Distance between two groups, in both audits.",
        columns=("Group", "And", *names),
        rows=tuple(rows),
    )


def _change_cells(
    change: Change, *, percents: bool = False, text: Callable[[float], str] = three_digits
) -> tuple[Cell, ...]:
    def show(value: float) -> str:
        return percent(value) if percents else text(value)

    def signed(value: float) -> str:
        shown = f"{100 * value:.1f}" if percents else text(value)
        return f"{'' if shown.startswith('-') else '+'}{shown}".replace("-", "\N{MINUS SIGN}")

    unit = " points" if percents else ""
    beyond_noise = "yes" if change.beyond_noise else "no"
    return (
        Cell(show(change.before), change.before),
        Cell(show(change.after), change.after),
        Cell(f"{signed(change.value)}{unit}", change.value),
        Cell(f"{signed(change.low)} to {signed(change.high)}", f"{change.low} to {change.high}"),
        Cell(beyond_noise, beyond_noise),
    )


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
        f"{other}, a change of {signed_points(change.value)} ({_interval(comparison, change)}), "
        f"{_noise(change)}."
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
    tables = collect_comparison_tables(comparison)
    names = [shorten(name, 24) for name in comparison.names]
    verdict = comparison_verdict(comparison)
    page = render_audit_page(
        collect_common(what_ifs, names, indices, collect_sheets(tables)),
        title=title if title is not None else f"{names[0]} and {names[1]}",
        verdict=verdict,
        points=verdict.points,
        tables=tables,
        method=collect_comparison_notes(what_ifs, names),
    )
    return write_page(page, path)
