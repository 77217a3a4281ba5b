"""Sections of the page of an audit that need labels or a causal graph: errors, calibration, effects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import one_line, percent, score_text, shorten, three_digits
from fairtransport.auditing.records import RATES, cut_text, threshold_heading
from fairtransport.report._what_if import RATE_NAMES
from fairtransport.report.pages.tables import (
    EMPTY_CELL,
    Cell,
    Row,
    Table,
    estimate_cell,
    group_cell,
    interval_cell,
    interval_head,
    judged_groups,
    number_cell,
    two_digits,
    with_interval,
)
from fairtransport.report.style.figures import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairtransport.auditing import (
        Audit,
        Calibration,
        CorrectedEstimate,
        CrossAuc,
        Estimate,
        GroupCalibration,
        Reading,
    )
    from fairtransport.causal import CounterfactualAudit, GroupEffects, PathEffect

# Small charts, 100 by 100 with the origin at the top left: reliability curves, and distributions by outcome.

_SIZE = 100.0
_N_POINTS = 101
_RATES = {0: "false_positive_rate", 1: "true_positive_rate"}


def _path(points: Iterable[Sequence[float]]) -> str:
    return "".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y, *_) in enumerate(points))


def collect_panels(audit: Audit) -> list[dict[str, Any]]:
    """Return the reliability curves of everyone and of the largest groups that are judged; none without labels."""
    if audit.calibration is None:
        return []
    by_size = sorted(judged_groups(audit), key=lambda index: -audit.groups[index].effective_rows)
    overall = audit.calibration.overall
    everyone = _path(_points(audit, overall))
    shown = [(audit.calibration.groups[index], index, everyone) for index in sorted(by_size[:MOST_NAMED])]
    panels = []
    for one, group, others in [(overall, None, ""), *shown]:
        bins = "; ".join(f"{score_text(part.mean_score)}: {percent(part.rate.value)}" for part in one.bins)
        title = f"Reliability curve of {'Everyone' if group is None else one.name}"
        description = f"{title}. Mean score and share that is positive, by bin: {bins}."
        points = _points(audit, one)
        panels.append(
            {"group": group, "description": description, "points": points, "line": _path(points), "everyone": others}
        )
    return panels


def _points(audit: Audit, one: GroupCalibration) -> list[tuple[float, ...]]:
    """Return the mean score, the rate and the ends of its interval of each bin."""
    low, high = audit.settings.range
    points = []
    for part in one.bins:
        shares = (part.rate.value, part.rate.low, part.rate.high)
        x = _SIZE * (part.mean_score - low) / (high - low)
        points.append(tuple(round(value, 1) for value in (x, *(_SIZE * (1 - share) for share in shares))))
    return points


def collect_outcomes(audit: Audit) -> list[dict[str, Any]]:
    """Return the groups' distribution functions among people with each outcome that the criterion is about."""
    points = np.linspace(0, 1, _N_POINTS)
    panels = []
    for label in {"equalized_odds": (0, 1), "equal_opportunity": (1,)}.get(audit.settings.criterion, ()):
        curves = 1 - audit.error_curves(audit.histograms.grid.from_unit(points))[_RATES[label]]
        shown = [index for index in range(len(curves)) if not np.isnan(curves[index]).any()]
        halves = [f"{audit.groups[index].name}: {percent(curves[index][_N_POINTS // 2])}" for index in shown]
        title = "Positive outcome" if label else "Negative outcome"
        description = f"Distribution functions by group, {title.lower()}. Share in the lower half of scores: "
        lines = [(index, _path(np.column_stack([_SIZE * points, _SIZE * (1 - curves[index])]))) for index in shown]
        panels.append({"title": title, "description": f"{description}{'; '.join(halves)}.", "lines": lines})
    return panels


def collect_calibration_tables(audit: Audit) -> list[Table]:
    """Return the calibration of each group, and the areas under ROC curves between groups; none without labels."""
    if audit.calibration is None or audit.cross_auc is None:
        return []
    tables = [_calibration_table(audit, audit.calibration)]
    return [*tables, _cross_table(audit, audit.cross_auc)] if len(audit.groups) <= MOST_NAMED else tables


def _calibration_table(audit: Audit, calibration: Calibration) -> Table:
    rows = []
    areas = [*(group.auc for group in audit.groups), audit.auc]
    for index, (one, area) in enumerate(zip((*calibration.groups, calibration.overall), areas, strict=True)):
        error, everyone = one.expected_error, index == len(audit.groups)
        cells = (
            Cell(percent(one.positive_rate.value), one.positive_rate.value),
            estimate_cell(error, three_digits),
            EMPTY_CELL if error is None else interval_cell(error.low, error.high, three_digits),
            with_interval(one.intercept, two_digits),
            with_interval(one.slope, two_digits),
            estimate_cell(area, two_digits),
        )
        rows.append(Row("Everyone" if everyone else one.name, cells, None if everyone else index))
    return Table(
        key="calibration",
        title="Calibration",
        caption="The expected calibration error is the mean distance between scores and shares of positive rows. It is "
        "above 0 even by chance, for which its interval is corrected. An intercept above 0 means scores that are too "
        "low, a slope below 1 scores that are too extreme. AUC is the area under the ROC curve."
        if calibration.probabilities
        else "Scores outside [0, 1] are not probabilities, so that there is no calibration error.",
        columns=("Group", "Positive", "Calibration error", interval_head(audit), "Intercept", "Slope", "AUC"),
        rows=tuple(rows),
        wide=(3, 4, 5),
    )


def _cross_table(audit: Audit, crossed: CrossAuc) -> Table:
    rows = tuple(
        Row(audit.groups[index].name, tuple(estimate_cell(area, two_digits) for area in areas), index)
        for index, areas in zip(crossed.groups, crossed.areas, strict=True)
    )
    return Table(
        key="cross-auc",
        title="Ranking between groups",
        caption="The probability that a positive row of the group on the left scores above a negative row of the group "
        "on top (cross-group area under the ROC curve, xAUC). Where a figure and its mirror image differ, errors of "
        "ranking fall on one group more than on the other.",
        columns=("Positive rows of", *(shorten(audit.groups[index].name, 18) for index in crossed.groups)),
        rows=rows,
    )


def collect_calibration_sheets(audit: Audit) -> dict[str, list[list[Any]]]:
    """Return the reliability curves of all groups for a spreadsheet."""
    if audit.calibration is None:
        return {}
    rows: list[list[Any]] = [["Group", "Above", "Up to", "Mean score", "Positive", "Low", "High", "Weight"]]
    for one in (audit.calibration.overall, *audit.calibration.groups):
        for part in one.bins:
            scores = [part.low, part.high, part.mean_score]
            rows.append([one_line(one.name), *scores, part.rate.value, part.rate.low, part.rate.high, part.weight])
    return {"reliability": rows}


# Errors by group at the thresholds of the audit.


def collect_rate_tables(audit: Audit) -> list[Table]:
    """Return the error rates by group at each threshold, for files without sliders."""
    tables = []
    for number, at in enumerate(audit.error_rates):
        rates = [(group.name, group.rates, index) for index, group in enumerate(at.groups)]
        rows = tuple(
            Row(name, tuple(with_interval(values[rate], percent) for rate in RATE_NAMES), index)
            for name, values, index in [*rates, ("Everyone", at.overall, None)]
        )
        title = f"Error rates, {threshold_heading(audit, audit.thresholds[number])}"
        caption = f"With {audit.settings.confidence:.0%} intervals."
        columns = ("Group", *(name for name, _ in RATE_NAMES.values()))
        tables.append(Table(f"errors-{number}", title, caption, columns, rows))
    return tables


def collect_error_tables(audit: Audit) -> list[Table]:
    """Return the differences from the reference group, and the largest differences between groups."""
    if not audit.error_rates:
        return []
    return [_reference_table(audit), _gap_table(audit)]


def _reference_table(audit: Audit) -> Table:
    first = audit.error_rates[0]
    shown = ("true_positive_rate", "false_positive_rate", "positive_predictive_value")
    rows = []
    for index, group in enumerate(first.groups):
        estimates = [group.differences[rate] for rate in shown]
        note = "the reference" if group.name == first.reference else ""
        rows.append(Row(group.name, tuple(cell for one in estimates for cell in _point_cells(one)), index, note))
    heads = [head for rate in shown for head in (RATE_NAMES[rate][0], interval_head(audit))]
    reference = shorten(first.reference, 40)
    return Table(
        key="errors-reference",
        title=f"Errors above {cut_text(audit, first.threshold)} compared with {reference}",
        caption=f"Each group's rate minus that of {reference}, in percentage points. The CSV file has all rates, their "
        "differences and their ratios at all thresholds of the audit.",
        columns=("Group", *heads),
        rows=tuple(rows),
        wide=(2, 4, 6),
    )


def _point_cells(estimate: Estimate | None) -> tuple[Cell, Cell]:
    if estimate is None:
        return EMPTY_CELL, EMPTY_CELL
    value = Cell(signed_points(estimate.value), estimate.value)
    return value, interval_cell(estimate.low, estimate.high, signed_points)


def signed_points(share: float) -> str:
    """Return a difference of shares in percentage points."""
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def _gap_table(audit: Audit) -> Table:
    first = audit.error_rates[0]
    rows = []
    for rate, (name, description) in RATE_NAMES.items():
        gap = first.gaps[rate]
        ends = [EMPTY_CELL] * 2
        if gap is not None:
            ends = [group_cell(audit.groups[index].name) for index in (gap.lowest, gap.highest)]
        rows.append(Row(name, (*_gap_cells(None if gap is None else gap.difference), *ends), note=description))
    for name, estimate, note in _odds(audit):
        rows.append(Row(name, (*_gap_cells(estimate), EMPTY_CELL, EMPTY_CELL), note=note))
    return Table(
        key="errors-largest",
        title="Largest differences of errors",
        caption="The largest difference between two groups, among those with enough rows for the rate, in percentage "
        f"points above {cut_text(audit, first.threshold)} unless said otherwise. “Corrected” is the value without the "
        "upward bias of the largest of several differences, which the interval takes into account as well.",
        columns=("Rate", "Difference", interval_head(audit), "Corrected", "Lowest", "Highest"),
        rows=tuple(rows),
        wide=(3, 4, 5),
    )


def _gap_cells(estimate: CorrectedEstimate | Reading | None) -> tuple[Cell, Cell, Cell]:
    if estimate is None:
        return EMPTY_CELL, EMPTY_CELL, EMPTY_CELL
    return (
        Cell(_points_text(estimate.value), estimate.value),
        interval_cell(estimate.low, estimate.high, _points_text),
        Cell(_points_text(estimate.corrected), estimate.corrected),
    )


def _points_text(share: float) -> str:
    return f"{100 * share:.1f}"


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
        note = "distance between two groups' scores with the same outcome, mean over pairs and both outcomes"
        yield "Separation", separation.disparity, note
    for part, rows in ((separation.positives, "positive"), (separation.negatives, "negative")):
        if part is not None:
            name = f"Separation of {rows} rows"
            yield name, part.disparity, "distance between two groups' scores, mean over all pairs"


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


# Effects along the paths of a causal graph: a figure for each group, and a table.

_WIDTH, _ROW, _TOP = 520, 54, 64  # of the figure, in units of its own
_BOX, _SIDE = 126, 78  # widths of the boxes of mediators, and of the sensitive column and the score
_MOST_STROKE = 9.0


def collect_effect_figures(effects: CounterfactualAudit | None) -> list[dict[str, Any]]:
    """Return the graph of each group with its effects along paths; none without effects."""
    return [] if effects is None else [_figure(effects, group) for group in effects.groups]


def collect_effect_tables(effects: CounterfactualAudit | None) -> list[Table]:
    """Return one table for each group: its effects in all units, with intervals and what chance shows."""
    return [] if effects is None else [_table(effects, index, one) for index, one in enumerate(effects.groups)]


def _figure(effects: CounterfactualAudit, one: GroupEffects) -> dict[str, Any]:
    through = {effect.name.removeprefix("through "): effect for effect in one.paths if effect.name != "direct"}
    nodes = [node for node in effects.graph.nodes if node in through]
    rows = {node: _TOP + index * _ROW for index, node in enumerate(nodes)}
    middle = _TOP + (len(nodes) - 1) * _ROW / 2
    left, right = _SIDE, _WIDTH - _SIDE
    first, last = (_WIDTH - _BOX) / 2 + 28, (_WIDTH + _BOX) / 2 + 28
    largest = max(abs(effect.mean) for effect in one.paths) or 1.0
    arrows = [
        _passing_arrow(f"M{last} {rows[a]}C{last + 26} {rows[a]} {last + 26} {rows[b]} {last + 3} {rows[b]}")
        for a, b in effects.graph.edges
        if a in rows and b in rows
    ]
    arrows += [_passing_arrow(f"M{last} {y}L{right - 3} {middle}") for y in rows.values()]
    for node, y in rows.items():
        bend = left + 46  # the rest is level, below the figures
        path = f"M{left} {middle}C{left + 26} {middle} {left + 16} {y} {bend} {y}H{first - 5}"
        arrows.append(_effect_arrow(through[node], one, path, largest, ((left + 30 + first) / 2, y)))
    over = f"M{_SIDE / 2} {middle - 15}V20H{_WIDTH - _SIDE / 2}V{middle - 19}"
    arrows.append(_effect_arrow(one.effects["direct"], one, over, largest, (_WIDTH / 2, 20.0)))
    boxes = [
        (shorten(effects.sensitive, 12), 0, middle, _SIDE),
        *((shorten(node, 18), first, y, _BOX) for node, y in rows.items()),
        ("score", right, middle, _SIDE),
    ]
    said = "; ".join(f"{effect.name} {_signed_effect(effect.mean)}" for effect in one.paths)
    return {
        "group": one.group,
        "description": f"Effects on the mean score if {one.group} were {effects.to}, under this graph: {said}.",
        "width": _WIDTH,
        "height": int(_TOP + max(len(nodes) - 1, 0) * _ROW + 34),
        "boxes": boxes,
        "arrows": arrows,
    }


def _passing_arrow(path: str) -> dict[str, Any]:
    """Return an edge that passes effects on."""
    return {"path": path, "kind": "passes", "stroke": 1.0, "label": ""}


def _effect_arrow(
    effect: PathEffect, one: GroupEffects, path: str, largest: float, place: tuple[float, float]
) -> dict[str, Any]:
    stroke = 1.0 + (_MOST_STROKE - 1.0) * abs(effect.mean) / largest
    return {
        "path": path,
        "kind": "direct" if effect.name == "direct" else "effect",
        "stroke": round(stroke, 2),
        "label": _signed_effect(effect.mean),
        "share": _share(effect.mean, one.gap),
        "x": round(place[0], 1),
        "y": round(place[1] - stroke / 2 - 5.0, 1),
    }


def _share(value: float, gap: float) -> str:
    """Return the share of the gap, where there is a gap to speak of."""
    return f"{value / gap:.0%}".replace("-0%", "0%") if abs(gap) >= 0.001 * max(1.0, abs(value)) else ""


def _four_digits(value: float) -> str:
    return f"{value:.4f}"


def _signed_effect(value: float) -> str:
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+,.0f}"


def _table(effects: CounterfactualAudit, index: int, one: GroupEffects) -> Table:
    name, to = one_line(one.group), one_line(effects.to)
    columns = ["Path", "Mean change", f"{effects.confidence:.0%} interval", "By chance", "Of the gap"]
    columns += ["Distance", "Rank distance", "Per person"]
    if effects.threshold is not None:
        columns.append(f"Above {effects.threshold:g}")
    rows = [_row(effects, one, effect) for effect in one.effects.values()]
    n_empty = len(columns) - 3
    for label, value in (("interaction of paths", one.interaction), ("no effect of the group", one.not_caused)):
        cells = (
            number_cell(value, _signed_effect),
            EMPTY_CELL,
            EMPTY_CELL,
            Cell(_share(value, one.gap), value / one.gap),
        )
        rows.append(Row(label, (*cells, *[EMPTY_CELL] * (n_empty - 2))))
    caption = (
        f"What scores of {name} ({one.rows:,} rows) would be if they were {to}, minus what they are; the mean score of "
        f"{to} is {_signed_effect(one.gap)} higher. By chance: the mean size in {effects.n_permutations} tables with "
        "shuffled groups. Distances are between the distributions of scores, and of ranks among all people; per person "
        f"is the mean absolute change. {_order_sentence(one)}{_support_sentence(one)}"
    )
    return Table(f"effects-{index}", f"Effects of paths: {name}", caption, tuple(columns), tuple(rows), (5, 6))


def _row(effects: CounterfactualAudit, one: GroupEffects, effect: PathEffect) -> Row:
    low, high = effect.intervals["mean"]
    interval = EMPTY_CELL if math.isnan(low) else interval_cell(low, high, _signed_effect)
    cells = [
        number_cell(effect.mean, _signed_effect),
        interval,
        number_cell(effect.floors["mean"], _four_digits),
        Cell(_share(effect.mean, one.gap), effect.mean / one.gap if one.gap else ""),
        *(number_cell(value, _four_digits) for value in (effect.distance, effect.rank_distance, effect.individual)),
    ]
    if effects.threshold is not None:
        cells.append(number_cell(effect.rate, lambda value: f"{100 * value:+.1f} pp"))
    return Row(effect.name, tuple(cells))


def _order_sentence(one: GroupEffects) -> str:
    low, high = one.effects["total"].order_range
    if not high - low >= 0.0005:
        return ""
    return f"With categories in other orders the total is between {_signed_effect(low)} and {_signed_effect(high)}. "


def _support_sentence(one: GroupEffects) -> str:
    return (
        f"{1 - one.support:.0%} of these people have counterfactuals outside what was seen."
        if one.support < 0.99
        else ""
    )
