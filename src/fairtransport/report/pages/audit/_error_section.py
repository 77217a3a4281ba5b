"""Errors by group: the table that follows the sliders, as it is before the reader moves them, and fixed tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport._text import one_line, percent, shorten
from fairtransport.auditing.decisions import RATES
from fairtransport.auditing.units import cut_text
from fairtransport.report._what_if import ERROR_RATES
from fairtransport.report.pages.audit._table import EMPTY_CELL, Cell, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing import Audit, CorrectedEstimate, Estimate, Reading
    from fairtransport.report._what_if import WhatIf

__all__ = ["RATE_NAMES", "ErrorRow", "collect_error_rows", "collect_error_sheets", "collect_error_tables"]

#: Name of each rate, and its description.
RATE_NAMES = {
    "true_positive_rate": ("True positive rate", "of the positive rows, the share above the threshold"),
    "false_positive_rate": ("False positive rate", "of the negative rows, the share above the threshold"),
    "false_negative_rate": ("False negative rate", "of the positive rows, the share at or below it"),
    "positive_predictive_value": ("Predictive value", "of those above the threshold, the share that is positive"),
    "negative_predictive_value": ("Negative predictive value", "of those at or below it, the share that is negative"),
    "accuracy": ("Accuracy", "share on the right side of the threshold"),
}
_DASH = "\N{EN DASH}"


@dataclass(frozen=True)
class ErrorRow:
    """The rates of a group, or of everyone, which the script keeps up to date.

    Parameters
    ----------
    group : int or None
        Index of the group; None for everyone.
    cells : tuple of (str, str, str)
        Name, value and interval of each rate.
    """

    group: int | None
    cells: tuple[tuple[str, str, str], ...]


def collect_error_rows(what_if: WhatIf) -> list[ErrorRow]:
    """Return the rates at the first threshold, without repair; none without labels.

    Parameters
    ----------
    what_if : WhatIf
        The audit.

    Returns
    -------
    list of ErrorRow
        Everyone comes last.
    """
    outcome = what_if.at(what_if.audit.thresholds[0].threshold)
    if outcome.error_rates is None or outcome.overall_rates is None:
        return []
    rows = [
        ErrorRow(group, tuple((rate, *_value_and_interval(rates[rate])) for rate in ERROR_RATES))
        for group, rates in enumerate(outcome.error_rates)
    ]
    everyone = ((rate, outcome.overall_rates[rate]) for rate in ERROR_RATES)
    return [
        *rows,
        ErrorRow(None, tuple((rate, _DASH if value is None else percent(value), "") for rate, value in everyone)),
    ]


def _value_and_interval(estimate: Estimate | None) -> tuple[str, str]:
    if estimate is None:
        return _DASH, ""
    return percent(estimate.value), f"{percent(estimate.low)} to {percent(estimate.high)}"


def collect_error_tables(audit: Audit) -> list[Table]:
    """Return the differences from the reference group, and the largest differences between groups.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Returns
    -------
    list of Table
        Empty without labels.
    """
    if not audit.error_rates:
        return []
    return [_reference_table(audit), _gap_table(audit)]


def _reference_table(audit: Audit) -> Table:
    first = audit.error_rates[0]
    interval = f"{audit.settings.confidence:.0%} interval"
    shown = ("true_positive_rate", "false_positive_rate", "positive_predictive_value")
    rows = []
    for index, group in enumerate(first.groups):
        estimates = [group.differences[rate] for rate in shown]
        note = "the reference" if group.name == first.reference else ""
        rows.append(Row(group.name, tuple(cell for one in estimates for cell in _point_cells(one)), index, note))
    heads = [head for rate in shown for head in (RATE_NAMES[rate][0], interval)]
    reference = shorten(first.reference, 40)
    return Table(
        key="errors-reference",
        title=f"Errors above {cut_text(audit, first.threshold)} compared with {reference}",
        caption=f"Each group's rate minus that of {reference}, in percentage points. The CSV file has all rates, their "
        "differences and their ratios at all thresholds of the audit.",
        columns=("Group", *heads),
        rows=tuple(rows),
        wide=frozenset({2, 4, 6}),
    )


def _point_cells(estimate: Estimate | None) -> tuple[Cell, Cell]:
    if estimate is None:
        return EMPTY_CELL, EMPTY_CELL
    low, high = (_signed(100 * limit) for limit in (estimate.low, estimate.high))
    return Cell(_signed(100 * estimate.value), estimate.value), Cell(f"{low} to {high}", f"{low} to {high}")


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "\N{MINUS SIGN}")


def _gap_table(audit: Audit) -> Table:
    first = audit.error_rates[0]
    rows = []
    for rate, (name, description) in RATE_NAMES.items():
        gap = first.gaps[rate]
        lowest, highest = (EMPTY_CELL, EMPTY_CELL)
        if gap is not None:
            groups = [audit.groups[index].name for index in (gap.lowest, gap.highest)]
            lowest, highest = (Cell(shorten(each, 40), one_line(each)) for each in groups)
        rows.append(
            Row(name, (*_gap_cells(None if gap is None else gap.difference), lowest, highest), note=description)
        )
    rows += [
        Row(name, (*_gap_cells(estimate), EMPTY_CELL, EMPTY_CELL), note=note) for name, estimate, note in _odds(audit)
    ]
    return Table(
        key="errors-largest",
        title="Largest differences of errors",
        caption="The largest difference between two groups, among those with enough rows for the rate, in percentage "
        f"points above {cut_text(audit, first.threshold)} unless said otherwise. “Corrected” is the value without the "
        "upward bias of the largest of several differences, which the interval takes into account as well.",
        columns=(
            "Rate",
            "Difference",
            f"{audit.settings.confidence:.0%} interval",
            "Corrected",
            "Lowest",
            "Highest",
        ),
        rows=tuple(rows),
        wide=frozenset({3, 4, 5}),
    )


def _gap_cells(estimate: CorrectedEstimate | Reading | None) -> tuple[Cell, Cell, Cell]:
    if estimate is None:
        return EMPTY_CELL, EMPTY_CELL, EMPTY_CELL
    low, high = f"{100 * estimate.low:.1f}", f"{100 * estimate.high:.1f}"
    return (
        Cell(f"{100 * estimate.value:.1f}", estimate.value),
        Cell(f"{low} to {high}", f"{estimate.low} to {estimate.high}"),
        Cell(f"{100 * estimate.corrected:.1f}", estimate.corrected),
    )


def _odds(audit: Audit) -> Iterator[tuple[str, CorrectedEstimate | Reading | None, str]]:
    first, separation = audit.error_rates[0], audit.separation
    yield "Equalized odds", first.equalized_odds, "the larger one of true and false positive rates"
    rate = "true" if audit.settings.favourable == "high" else "false"
    yield "Equal opportunity", first.equal_opportunity, f"that of {rate} positive rates"
    if separation is None:
        return
    if separation.equalized_odds is not None:
        at = f"{separation.equalized_odds.threshold:.3g}"
        yield "Equalized odds, worst threshold", separation.equalized_odds.maximum, f"at {at}, of all thresholds"
        yield "Equalized odds, mean", separation.equalized_odds.mean, "over all thresholds"
    if separation.disparity is not None:
        name = "Separation"
        yield name, separation.disparity, "distances between scores with the same outcome, mean of both outcomes"
    for part, rows in ((separation.positives, "positive"), (separation.negatives, "negative")):
        if part is not None:
            name = f"Separation of {rows} rows"
            yield name, part.disparity, "distances between their scores, summed over all pairs of groups"


def collect_error_sheets(audit: Audit) -> dict[str, list[list[Any]]]:
    """Return all rates at all thresholds for a spreadsheet, in place of the table of differences."""
    if not audit.error_rates:
        return {}
    head = ["Threshold", "Group", "Rate", "Value", "Low", "High", "Reference", "Difference", "Low", "High"]
    rows: list[list[Any]] = [[*head, "Ratio", "Low", "High"]]
    for at in audit.error_rates:
        for group in at.groups:
            for rate in RATES:
                parts = (group.rates[rate], group.differences[rate], group.ratios[rate])
                cells = [["", "", ""] if one is None else [one.value, one.low, one.high] for one in parts]
                reference = one_line(at.reference)
                rows.append([at.threshold, one_line(group.name), rate, *cells[0], reference, *cells[1], *cells[2]])
    return {"errors-reference": rows}
