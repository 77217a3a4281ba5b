"""Sections of the page of an audit that need labels or a causal graph: errors, calibration, effects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fairtransport._text import one_line, percent, score_text, shorten
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import compared_groups
from fairtransport.auditing.tables import Cell, Column, Row, Table, sheet_of
from fairtransport.auditing.text import AUDIT_TABLES, reliability_rows
from fairtransport.report._what_if import ERROR_RATES
from fairtransport.report.style.figures import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.auditing import Audit, GroupCalibration
    from fairtransport.causal import CounterfactualAudit, GroupEffects, PathEffect
    from fairtransport.report._what_if import WhatIf

_SIZE = 100.0  # of the square that a curve is drawn in


def collect_panels(audit: Audit) -> list[dict[str, Any]]:
    """Return the reliability curves of everyone and of the largest groups that are judged; none without labels."""
    if audit.calibration is None:
        return []
    by_size = sorted(compared_groups(audit), key=lambda index: -audit.groups[index].effective_rows)
    everyone = _path(_points(audit, audit.calibration.overall))
    panels = [_panel(audit, audit.calibration.overall, None, everyone)]
    return [
        *panels,
        *(_panel(audit, audit.calibration.groups[index], index, everyone) for index in sorted(by_size[:MOST_NAMED])),
    ]


def _panel(audit: Audit, one: GroupCalibration, group: int | None, everyone: str) -> dict[str, Any]:
    """Return a reliability curve in the coordinates of its chart: 100 by 100, the origin at the top left."""
    title = "Everyone" if group is None else one_line(one.name)
    bins = "; ".join(f"{score_text(part.mean_score)}: {percent(part.rate.value)}" for part in one.bins)
    return {
        "group": group,
        "description": f"Reliability curve of {title}. Mean score and share that is positive, by bin: {bins}.",
        "points": _points(audit, one),
        "line": _path(_points(audit, one)),
        "everyone": "" if group is None else everyone,
    }


def _points(audit: Audit, one: GroupCalibration) -> list[tuple[float, float, float, float]]:
    low, high = audit.settings.range
    points = []
    for part in one.bins:
        x = _SIZE * (part.mean_score - low) / (high - low)
        points.append((x, *(_SIZE * (1 - rate) for rate in (part.rate.value, part.rate.low, part.rate.high))))
    return [tuple(round(value, 1) for value in point) for point in points]  # type: ignore[misc]


def _path(points: list[tuple[float, float, float, float]]) -> str:
    return "".join(f"{'L' if number else 'M'}{x} {y}" for number, (x, y, _, _) in enumerate(points))


# Errors by group: the table that follows the sliders, as it is before the reader moves them, and CSV files.


def collect_error_rows(what_if: WhatIf) -> list[dict[str, Any]]:
    """Return the rates at the first threshold, without repair; none without labels."""
    outcome = what_if.at(what_if.audit.thresholds[0].threshold)
    if outcome.error_rates is None or outcome.overall_rates is None:
        return []
    column = Column("", percent)

    def cells(rates: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        shown = [(rate, rates[rate]) for rate in ERROR_RATES]
        limits = [(each.low, each.high) if isinstance(each, Estimate) else Cell("", None) for _, each in shown]
        return [(rate, column.text(each), column.text(end)) for (rate, each), end in zip(shown, limits, strict=True)]

    groups = [{"group": group, "cells": cells(rates)} for group, rates in enumerate(outcome.error_rates)]
    return [*groups, {"group": None, "cells": cells(outcome.overall_rates)}]


def collect_sheets(audit: Audit, tables: Sequence[Table]) -> dict[str, list[list[Any]]]:
    """Return what can be saved as CSV, by key: tables, the distances between all groups, and figures with labels."""
    names = [one_line(group.name) for group in audit.groups]
    rows = ([name, *row] for name, row in zip(names, audit.distances.tolist(), strict=True))
    sheets = {**{table.key: table.sheet for table in tables}, "distances": [["", *names], *rows]}
    if audit.error_rates:
        sheets["errors-reference"] = sheet_of(AUDIT_TABLES["error_rates"](audit))  # all rates at all thresholds
    if audit.calibration is not None:
        sheets["reliability"] = sheet_of(reliability_rows((audit.calibration.overall, *audit.calibration.groups)))
    return sheets


# Effects along the paths of a causal graph: a figure for each group, and a table.

_WIDTH, _ROW, _TOP = 520, 54, 64  # of the figure, in units of its own
_BOX, _SIDE = 126, 78  # widths of the boxes of mediators, and of the sensitive column and the score
_MOST_STROKE = 9.0


def collect_effects(effects: CounterfactualAudit | None) -> dict[str, object] | None:
    """Return what the page says about effects along paths; None without any."""
    if effects is None:
        return None
    edges = ", ".join(f"{one_line(one)} \N{RIGHTWARDS ARROW} {one_line(other)}" for one, other in effects.graph.edges)
    return {
        "title": f"Which paths lead from {one_line(effects.sensitive)} to the score, under this graph",
        "to": one_line(effects.to),
        "graph": edges,
        "figures": [_figure(effects, group) for group in effects.groups],
    }


def collect_effect_tables(effects: CounterfactualAudit | None) -> list[Table]:
    """Return one table for each group: its effects in all units, with intervals and what chance shows."""
    return [] if effects is None else [_table(effects, index, one) for index, one in enumerate(effects.groups)]


# ------------------------------------------------------------------------------------------------------------- figure


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
    boxes: list[tuple[str, float, float, float]] = [
        (shorten(one_line(effects.sensitive), 12), 0.0, middle, _SIDE),
        *((shorten(one_line(node), 18), first, y, _BOX) for node, y in rows.items()),
        ("score", float(right), middle, _SIDE),
    ]
    said = "; ".join(f"{one_line(effect.name)} {_signed_effect(effect.mean)}" for effect in one.paths)
    name = one_line(one.group)
    return {
        "group": name,
        "description": f"Effects on the mean score if {name} were {one_line(effects.to)}, under this graph: {said}.",
        "width": _WIDTH,
        "height": int(_TOP + max(len(nodes) - 1, 0) * _ROW + 34),
        "boxes": [dict(zip(("text", "x", "y", "width"), box, strict=True)) for box in boxes],
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


# -------------------------------------------------------------------------------------------------------------- table


def _table(effects: CounterfactualAudit, index: int, one: GroupEffects) -> Table:
    name, to = one_line(one.group), one_line(effects.to)
    columns = [
        Column("Mean change", _signed_effect),
        Column(f"{effects.confidence:.0%} interval", _signed_effect),
        Column("By chance", _four_digits),
        Column("Of the gap"),
        *(
            Column(title, _four_digits, wide=title != "Per person")
            for title in ("Distance", "Rank distance", "Per person")
        ),
    ]
    if effects.threshold is not None:
        columns.append(Column(f"Above {effects.threshold:g}", lambda value: f"{100 * value:+.1f} pp"))
    rows = []
    for effect in one.effects.values():
        low, high = effect.intervals["mean"]
        interval = None if math.isnan(low) else (low, high)
        sizes = (effect.distance, effect.rank_distance, effect.individual, effect.rate)
        values = (effect.mean, interval, effect.floors["mean"], _share_cell(effect.mean, one.gap), *sizes)
        rows.append(Row(effect.name, values[: len(columns)]))
    for label, value in (("interaction of paths", one.interaction), ("no effect of the group", one.not_caused)):
        rows.append(Row(label, (value, None, None, _share_cell(value, one.gap), *[None] * (len(columns) - 4))))
    caption = (
        f"What scores of {name} ({one.rows:,} rows) would be if they were {to}, minus what they are; the mean score of "
        f"{to} is {_signed_effect(one.gap)} higher. By chance: the mean size in {effects.n_permutations} tables with "
        "shuffled groups. Distances are between the distributions of scores, and of ranks among all people; per person "
        f"is the mean absolute change. {_order_sentence(one)}{_support_sentence(one)}"
    )
    return Table(f"effects-{index}", f"Effects of paths: {name}", caption, "Path", tuple(columns), tuple(rows))


def _share_cell(value: float, gap: float) -> Cell:
    return Cell(_share(value, gap), value / gap if gap else "")


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
