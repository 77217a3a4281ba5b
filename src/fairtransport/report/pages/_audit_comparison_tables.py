"""The tables of two audits' page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import one_line, percent, shorten, three_digits
from fairtransport.report.pages._audit_tables import farthest_pairs
from fairtransport.report.pages._table import METRIC_WORDS, Cell, Row, Table

if TYPE_CHECKING:
    from fairtransport.auditing import AuditComparison, Change

__all__ = ["comparison_tables"]


def comparison_tables(found: AuditComparison) -> list[Table]:
    """Return the tables of two audits: metrics, and the rates of each threshold that both have."""
    one, other = (shorten(name, 24) for name in found.names)
    interval = f"{found.before.settings.confidence:.0%} interval"
    columns = (one, other, "Change", interval, "Beyond noise")
    metrics = [
        Row(METRIC_WORDS[name][0], _change_cells(change, percents=name == "error_rate"), note=METRIC_WORDS[name][1])
        for name, change in found.changes.items()
    ]
    if found.auc is not None:
        note = "Chance that a positive row scores above a negative one."
        metrics.append(Row("Area under the ROC curve", _change_cells(found.auc), note=note))
    caption = "A change is beyond noise when its interval does not hold 0; the two audits count as independent."
    tables = [
        Table("changes", "What changed", caption, ("Figure", *columns), tuple(metrics), frozenset({4})),
    ]
    for number, threshold in enumerate(found.thresholds):
        rows = tuple(
            Row(group.name, _change_cells(change, percents=True), place, unsure=group.unsure)
            for place, (group, change) in enumerate(zip(found.before.groups, threshold.rates, strict=True))
        )
        ratios = " and ".join("none" if ratio is None else f"{ratio:.2f}" for ratio in threshold.ratios)
        caption = (
            f"Lowest over highest rate: {ratios}. Groups are judged one by one; a few may seem to change by chance."
        )
        title = f"Selected above {threshold.threshold:g}"
        tables.append(Table(f"selected-{number + 1}", title, caption, ("Group", *columns), rows, frozenset({4})))
    tables.append(_pair_changes(found, (one, other)))
    return tables


def _pair_changes(found: AuditComparison, names: tuple[str, str]) -> Table:
    before, after = found.before, found.after
    rows = []
    for one, other, distance in farthest_pairs(before):
        later = float(after.distances[found.places[one], found.places[other]])
        partner = before.groups[other].name
        cells = (
            Cell(shorten(partner, 60), one_line(partner)),
            Cell(three_digits(distance), distance),
            Cell(three_digits(later), later),
        )
        rows.append(Row(before.groups[one].name, cells, place=one))
    return Table(
        key="pairs",
        title=f"Farthest apart in {names[0]}",
        caption="Distance between two groups, in both audits.",
        columns=("Group", "And", *names),
        rows=tuple(rows),
    )


def _change_cells(change: Change, *, percents: bool = False) -> tuple[Cell, ...]:
    def show(value: float) -> str:
        return percent(value) if percents else three_digits(value)

    def signed(value: float) -> str:
        return (f"{100 * value:+.1f}" if percents else f"{value:+.3f}").replace("-", "\N{MINUS SIGN}")

    unit = " points" if percents else ""
    return (
        Cell(show(change.before), change.before),
        Cell(show(change.after), change.after),
        Cell(f"{signed(change.value)}{unit}", change.value),
        Cell(f"{signed(change.low)} to {signed(change.high)}", f"{change.low} to {change.high}"),
        Cell("yes" if change.beyond_noise else "no", "yes" if change.beyond_noise else "no"),
    )
