"""Sections of the page of an audit that need labels or a causal graph: errors, calibration, effects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fairtransport import report
from fairtransport._extras import load_extra
from fairtransport._text import one_line, percent, score_text
from fairtransport.auditing import Audit, GroupCalibration
from fairtransport.auditing.records import compared_groups
from fairtransport.auditing.tables import Cell, Column, Row, Table, sheet_of
from fairtransport.auditing.text import AUDIT_TABLES, reliability_rows
from fairtransport.causal import CounterfactualAudit, GroupEffects
from fairtransport.report.style.figures import MOST_NAMED, figure_bytes, image_address

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
    by_size = sorted(compared_groups(audit), key=lambda index: -audit.groups[index].effective_rows)
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
    panels: list[dict[str, Any]] = []
    if not audit.histograms.has_labels:  # or outcomes are no classes
        return panels
    for label in {"equalized_odds": (0, 1), "equal_opportunity": (1,)}.get(audit.settings.criterion, ()):
        curves = 1 - audit.error_curves(audit.histograms.grid.from_unit(points))[_RATES[label]]
        shown = [index for index in range(len(curves)) if not np.isnan(curves[index]).any()]
        halves = [f"{audit.groups[index].name}: {percent(curves[index][_N_POINTS // 2])}" for index in shown]
        title = "Positive outcome" if label else "Negative outcome"
        description = f"Distribution functions by group, {title.lower()}. Share in the lower half of scores: "
        lines = [(index, _path(np.column_stack([_SIZE * points, _SIZE * (1 - curves[index])]))) for index in shown]
        panels.append({"title": title, "description": f"{description}{'; '.join(halves)}.", "lines": lines})
    return panels


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


def collect_effect_figures(effects: CounterfactualAudit | None) -> list[tuple[Any, str, str]]:
    """Return each group, its effects along paths in words, and the graph with them as an image."""
    figures: list[tuple[Any, str, str]] = []
    if effects is None:
        return figures
    for one in effects.groups:
        said = "; ".join(f"{effect.name} {_signed_effect(effect.mean)}" for effect in one.paths)
        words = f"Effects on the mean score if {one.group} were {effects.to}, under this graph: {said}."
        figure = report.CausalEffectsDisplay.from_effects(effects, group=one.group).figure_
        figures.append((one.group, words, image_address(figure_bytes(figure, "svg"), "svg")))
        load_extra("matplotlib.pyplot").close(figure)
    return figures


def collect_effect_tables(effects: CounterfactualAudit | None) -> list[Table]:
    """Return one table for each group: its effects in all units, with intervals and what chance shows."""
    return [] if effects is None else [_table(effects, index, one) for index, one in enumerate(effects.groups)]


def _share(value: float, gap: float) -> str:
    """Return the share of the gap, where there is a gap to speak of."""
    return f"{value / gap:.0%}".replace("-0%", "0%") if abs(gap) >= 0.001 * max(1.0, abs(value)) else ""


def _four_digits(value: float) -> str:
    return f"{value:.4f}"


def _signed_effect(value: float) -> str:
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+,.0f}"


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
