"""Tables of the page of two audits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairtransport._text import one_line, percent, shorten, three_digits
from fairtransport.auditing.units import distance_text, threshold_heading
from fairtransport.report.pages.audit._table import METRIC_NAMES, Cell, Row, Table
from fairtransport.report.pages.audit._tables import farthest_pairs, pair_distances

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairtransport.auditing import AuditComparison, Change

__all__ = ["collect_comparison_tables"]


def collect_comparison_tables(comparison: AuditComparison) -> list[Table]:
    """Return the tables of two audits: metrics, selection rates at each common threshold, and farthest pairs."""
    names = tuple(shorten(name, 24) for name in comparison.names)
    interval = f"{comparison.before.settings.confidence:.0%} interval"
    columns = (*names, "Change", interval, "Beyond noise")
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
        tables.append(Table(f"selected-{number + 1}", title, caption, ("Group", *columns), rows, frozenset({4})))
    tables.append(_pair_table(comparison, names))
    return tables


def _change_table(comparison: AuditComparison, columns: tuple[str, ...]) -> Table:
    rows = []
    for metric, change in comparison.changes.items():
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
    return Table("changes", "What changed", caption, ("Metric", *columns), tuple(rows), frozenset({4}))


def _pair_table(comparison: AuditComparison, names: tuple[str, ...]) -> Table:
    before, after = comparison.before, comparison.after
    rows = []
    for one, other, distance in farthest_pairs(before):
        later = float(pair_distances(after)[comparison.positions[one], comparison.positions[other]])
        partner = before.groups[other].name
        cells = (
            Cell(shorten(partner, 60), one_line(partner)),
            Cell(three_digits(distance), distance),
            Cell(three_digits(later), later),
        )
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
