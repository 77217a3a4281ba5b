"""The page of an audit: verdict, cards, panels, thresholds, and the data of its script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport import report
from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport._text import count_word, number_text, one_line, percent, score_text, shorten
from fairtransport.auditing import Audit, GroupCalibration, WithinStrata
from fairtransport.auditing.proportions import critical_values
from fairtransport.auditing.records import compared_groups, cut_text, points_text, scores_word, threshold_heading
from fairtransport.auditing.result import plain_values
from fairtransport.auditing.tables import (
    RATE_NAMES,
    Cell,
    Column,
    Row,
    Table,
    calibration_tables,
    error_tables,
    figure_tables,
    interval_head,
    largest_groups,
    method_notes,
    pair_distances,
    sheet_of,
    two_digits,
)
from fairtransport.auditing.text import AUDIT_TABLES, reliability_rows
from fairtransport.auditing.verdict import CRITERIA_CONFLICT, among_whom
from fairtransport.groups import MIN_SHOWN_ROWS
from fairtransport.report._what_if import NodeMasses, Outcome, WhatIf, score_title
from fairtransport.report.pages.rendering import check_destination, render_audit_page, write_page
from fairtransport.report.style.figures import MOST_NAMED, GroupStyle, figure_bytes, group_styles, image_address

if TYPE_CHECKING:
    from fairtransport.causal import CounterfactualAudit, GroupEffects

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
    by_size = [index for index in by_size if not audit.groups[index].withheld]
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
    distances = (["" if math.isnan(distance) else distance for distance in row] for row in audit.distances.tolist())
    rows = ([name, *row] for name, row in zip(names, distances, strict=True))
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


def verdict_points(audit: Audit, what_if: WhatIf) -> list[str]:
    """Return the further sentences of the verdict, with one on repair where the scores can be repaired."""
    points = list(audit.verdict.points)
    comparable = sum(not group.withheld for group in audit.groups) >= 2
    return [*points, _repair(audit, what_if)] if comparable and what_if.reduced.can_repair else points


def _repair(audit: Audit, what_if: WhatIf) -> str:
    threshold = audit.thresholds[0].threshold
    before, after = what_if.at(threshold), what_if.at(threshold, amount=1.0, chosen=compared_groups(audit))
    left = 100 * after.disparity
    text = f"Full repair, measured on the rows it is fitted to, leaves {left:.1f} percentage points between two groups"
    if before.error is None or after.error is None:
        return f"{text}."
    change = 100 * (after.error - before.error)
    if abs(change) < 0.05:
        return f"{text} and as many wrong decisions at that threshold."
    return (
        f"{text}, with {abs(change):.1f} {'more' if change > 0 else 'fewer'} wrong decisions per 100 people at that "
        "threshold."
    )


def collect_cards(audit: Audit) -> list[dict[str, str]]:
    """Return the average and the largest gap, the ratio of selection rates, and the error rate if there are labels."""
    cards = []

    def card(name: str, estimate: Any, show: Callable[[float], str], remark: str, unit: str = "") -> None:
        if math.isnan(estimate.value):
            return
        value, low, high = map(show, (estimate.value, estimate.low, estimate.high))
        detail = f"{interval_head(audit)} {low} to {high}"
        cards.append({"name": name, "value": value, "detail": detail, "remark": remark, "unit": unit})

    shown: Audit | WithinStrata = audit if audit.within is None else audit.within
    pairs, first, farthest = shown.mean_readings[audit.settings.pairs_metric], audit.thresholds[0], shown.farthest
    criterion = "" if audit.within is None else f", {audit.settings.criterion_text}"
    chance = f"uncorrected {100 * pairs.value:.1f}, by chance alone {100 * (pairs.floor or 0):.1f}"
    card(f"Average gap between two groups{criterion}", shown.mean_pairwise_distance, points_text, chance, "points")
    between = " and ".join(score_text(score) for score in farthest.most_between)
    card(
        f"Largest gap between two groups{criterion}",
        shown.largest_distance,
        points_text,
        f"half of it between {scores_word(audit)} {between}",
        "points",
    )
    cut = cut_text(audit, first.threshold)
    if first.four_fifths is not None:
        rate = "rate" if first.favourable == "high" else "share not flagged"
        where = f" above {cut}" if first.top_share is None else f", {threshold_heading(audit, first)}"
        card(f"Lowest over highest {rate}{where}", first.ratio, two_digits, "four fifths is 0.80")
    if "error_rate" in audit.readings:
        area = "" if audit.auc is None else f"area under the ROC curve {audit.auc.value:.2f}"
        card(f"Wrong decisions at {cut}", audit.readings["error_rate"], percent, area)
    if audit.regression is not None and (root := audit.regression.overall["rmse"]) is not None:
        r2 = audit.regression.overall["r2"]
        spread = f"R² {r2.value:.2f}, " if r2 is not None else ""
        remark = f"{spread}standard deviation of the label {score_text(audit.regression.label_deviation)}"
        card("Root mean squared error", root, score_text, remark)
    return cards


# Data of the page's script: histograms, names and colours, as one JSON value.

_WEIGHT_DIGITS = 9  # significant digits; counts stay whole numbers


def collect_script_data(
    what_ifs: Sequence[WhatIf], *, names: Sequence[str], indices: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Collect what the script needs of one audit, or of two audits of the same groups."""
    first = what_ifs[0].audit
    settings = first.settings
    withheld = [
        any(what_if.audit.groups[index].withheld for what_if, index in zip(what_ifs, each, strict=True))
        for each in zip(*indices, strict=True)
    ]
    return {
        "range": list(settings.range),
        "ranks": not settings.bounded,
        "scoreTitle": score_title(first),
        "threshold": first.thresholds[0].threshold,
        "confidence": f"{settings.confidence:.0%}",
        "favourable": settings.favourable,
        "minJudgedRows": settings.small_groups.min_size,
        "z": NormalDist().inv_cdf((1 + settings.confidence) / 2),
        "labelled": all(what_if.reduced.has_labels for what_if in what_ifs),
        "groups": _styled_groups(first, withheld),
        "tukey": [round(value, 6) for value in critical_values(len(first.groups), first.settings.confidence)],
        "audits": [_audit_data(*audit) for audit in zip(what_ifs, names, indices, strict=True)],
    }


def audit_styles(audit: Audit) -> tuple[GroupStyle, ...]:
    """Return the styles of the groups of an audit."""
    return group_styles(audit.histograms.groups, audit.histograms.group_rows)


def _styled_groups(audit: Audit, withheld: Sequence[bool]) -> list[dict[str, Any]]:
    return [
        {
            "name": one_line(name),
            "short": shorten(name, 60, audit.names),
            "colour": style.colour,
            "dashes": style.dash_array,
            "named": style.named,
            "withheld": hidden,
        }
        for name, style, hidden in zip(audit.names, audit_styles(audit), withheld, strict=True)
    ]


def _audit_data(what_if: WhatIf, name: str, indices: Sequence[int]) -> dict[str, Any]:
    reduced, audit = what_if.reduced, what_if.audit
    return {
        "name": one_line(name),
        "bins": reduced.n_bins,
        "fullBins": reduced.full_bins,
        "disparity": plain_values(audit.mean_readings[audit.settings.pairs_metric].value),
        "groups": [
            {
                "rows": audit.groups[index].rows,
                "effective": audit.groups[index].effective_rows,
                "judged": audit.groups[index].judged,
                **_node_data(reduced.groups[index]),
            }
            for index in indices
        ],
        "asked": [_outcome_data(what_if.at(at.threshold), indices) for at in audit.thresholds],
        # Overlapping groups do not add up to everyone.
        "everyone": _node_data(reduced.everyone) if audit.histograms.groups.overlapping else None,
    }


def _outcome_data(outcome: Outcome, indices: Sequence[int]) -> dict[str, Any]:
    """Return the figures of the audit at one of its thresholds, from which the script computes nothing anew."""
    figures = {name: getattr(outcome, name) for name in ("threshold", "overall", "ratio", "error", "gaps")}
    by_group = {"rates": outcome.rates, "errors": outcome.errors, "errorRates": outcome.error_rates}
    figures |= {name: each and [each[index] for index in indices] for name, each in by_group.items()}
    shown: dict[str, Any] = plain_values({**figures, "overallRates": outcome.overall_rates})
    return shown


def _node_data(group: NodeMasses) -> dict[str, Any]:
    return {
        "at": np.diff(group.indices, prepend=0).tolist(),
        "masses": [_short_numbers(masses) for masses in group.masses],
        "images": None if group.images is None else group.images.tolist(),
    }


def _short_numbers(masses: Floats) -> list[float]:
    """Return whole numbers as integers, others with as many digits as the page needs."""
    whole = masses.astype(np.int64)
    if np.array_equal(whole, masses):
        return whole.tolist()
    return [float(f"{mass:.{_WEIGHT_DIGITS}g}") for mass in masses.tolist()]


# The page of one audit, and what the page of two audits has as well.

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Distances at which the shade of a cell changes: the same on every page, so that pages can be compared."""


def audit_page(
    audit: Audit,
    path: Any = None,
    *,
    title: str | None = None,
    repair_target: Any = "barycenter_w2",
    effects: CounterfactualAudit | None = None,
) -> Path | str:
    """Write the page of an audit."""
    check_destination(path)
    what_if = WhatIf.of(audit, repair_target=repair_target)
    tables = {
        "tables": figure_tables(audit),
        "error_tables": error_tables(audit),
        "calibration_tables": calibration_tables(audit),
        "effect_tables": collect_effect_tables(effects),
    }
    sheets = collect_sheets(audit, [table for part in tables.values() for table in part])
    heading = audit.provenance.title if title is None else title
    by = shorten(f"{scores_word(audit).capitalize()} by {', '.join(map(one_line, audit.settings.columns))}", 80)
    largest = [index for index in largest_groups(audit) if not audit.groups[index].withheld]
    distances = pair_distances(audit)[np.ix_(largest, largest)]
    page = render_audit_page(
        collect_common([what_if], [""], [range(len(audit.groups))], sheets),
        title=by if heading is None else heading,
        verdict=audit.verdict,
        points=verdict_points(audit, what_if),
        cards=collect_cards(audit),
        among_whom=among_whom(audit),
        conflict=CRITERIA_CONFLICT,
        outcome_panels=collect_outcomes(what_if.audit),  # whose nodes are equally spaced
        panels=collect_panels(audit),
        effects=effects,
        effect_figures=collect_effect_figures(effects),
        repair_target=repair_target if isinstance(repair_target, str) else None,
        **tables,
        matrix=zip(largest, distances.tolist(), np.searchsorted(LEVELS, distances, side="right").tolist(), strict=True),
        matrix_groups=largest,
        method=collect_method_notes(audit, what_if),
    )
    return write_page(page, path)


def collect_method_notes(audit: Audit, what_if: WhatIf) -> list[tuple[str, str]]:
    """Return how the figures of a page were measured."""
    settings, reduced, grid = audit.settings, what_if.reduced, what_if.audit.histograms.grid
    reasons = [f"{count:,} rows: {one_line(reason)}" for reason, count in settings.set_aside.items()]
    charts = "all scores"
    if (grid.low, grid.high) != settings.range:
        charts = f"{number_text(grid.low)} to {number_text(grid.high)}, others at the ends"
    sliders = (
        f"Computed on this page from counts in {reduced.n_bins:,} bins; a threshold is rounded up to the next edge, "
        "unless it is one of the audit, where figures are the audit's"
    )
    return [
        ("Rows", f"{audit.rows:,}{', weighted' if settings.weighted else ''}"),
        ("Set aside", "; ".join([*reasons, *settings.small_groups.sentences()]) or "no rows"),
        ("Groups", f"{len(audit.groups)} of {', '.join(map(one_line, settings.columns))}"),
        *method_notes(audit),
        ("Charts", charts),
        ("Sliders", f"{sliders}. Repair is fitted to these same rows" if reduced.can_repair else sliders),
    ]


def collect_common(
    what_ifs: Sequence[WhatIf], names: Sequence[str], indices: Sequence[Sequence[int]], sheets: Mapping[str, Any]
) -> dict[str, Any]:
    """Collect what the pages of one and of two audits share."""
    first = what_ifs[0].audit
    settings, threshold = first.settings, first.thresholds[0].threshold
    data = collect_script_data(what_ifs, names=names, indices=indices)
    audits = zip(names, (what_if.audit for what_if in what_ifs), strict=True)
    return {
        "audit": first,
        "names": names,
        "data": {**data, "sheets": sheets},
        "groups": data["groups"],
        "labelled": data["labelled"],
        "confidence": data["confidence"],
        "score_title": data["scoreTitle"],
        "repairable": what_ifs[0].reduced.can_repair,
        "threshold": f"{threshold:{'g' if settings.bounded else '.10g'}}",
        "outcomes": [(what_if.at(threshold), order) for what_if, order in zip(what_ifs, indices, strict=True)],
        "averaged": "all thresholds" if settings.bounded else "all shares of people selected",
        "n_groups": count_word(len(first.groups)),
        "most_named": MOST_NAMED,
        "min_shown": MIN_SHOWN_ROWS,
        "rate_names": RATE_NAMES,
        "sources": [(name, lines) for name, audit in audits if (lines := list(audit.provenance.lines()))],
    }
