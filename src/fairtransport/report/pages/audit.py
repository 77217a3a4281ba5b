"""The page of an audit: verdict, cards, panels, thresholds, and the data of its script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from fairtransport import __version__
from fairtransport._text import count_word, number_text, one_line, percent, score_text, shorten
from fairtransport.auditing.proportions import Estimate, critical_values
from fairtransport.auditing.records import compared_groups, cut_text, points_text, scores_word, threshold_heading
from fairtransport.auditing.tables import (
    RATE_NAMES,
    calibration_tables,
    error_tables,
    figure_tables,
    interval_head,
    largest_groups,
    method_notes,
    pair_distances,
)
from fairtransport.auditing.verdict import CRITERIA_CONFLICT, among_whom
from fairtransport.report._what_if import ERROR_RATES, WhatIf, score_title
from fairtransport.report.pages.audit_sections import (
    collect_effect_tables,
    collect_effects,
    collect_error_rows,
    collect_panels,
    collect_sheets,
)
from fairtransport.report.pages.rendering import check_destination, render_audit_page, write_page
from fairtransport.report.style.figures import MOST_NAMED, GroupStyle, group_styles
from fairtransport.report.style.web_pages import date_text, software_versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from numpy.typing import NDArray

    from fairtransport.auditing import Audit, WithinStrata
    from fairtransport.causal import CounterfactualAudit
    from fairtransport.report._what_if import NodeMasses, Outcome

# What a page adds to the verdict on an audit: the cost of a repair.


def verdict_points(audit: Audit, what_if: WhatIf) -> list[str]:
    """Return the further sentences of the verdict, with one on repair where the scores can be repaired."""
    points = list(audit.verdict.points)
    return [*points, _repair(audit, what_if)] if what_if.reduced.can_repair else points


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


# The main results of an audit, in large type at the top of its page.


def collect_cards(audit: Audit) -> list[dict[str, str]]:
    """Return the average and the largest gap, the ratio of selection rates, and the error rate if there are labels."""
    shown: Audit | WithinStrata = audit if audit.within is None else audit.within
    pairs, first, farthest = shown.mean_readings[audit.settings.pairs_metric], audit.thresholds[0], shown.farthest
    interval, mean = interval_head(audit), shown.mean_pairwise_distance
    criterion = "" if audit.within is None else f", {audit.settings.criterion_text}"
    widest = farthest.estimate or Estimate(farthest.distance, 0.0, 1.0)
    between = " and ".join(score_text(score) for score in farthest.most_between)
    cards = [
        _card(
            f"Average gap between two groups{criterion}",
            points_text(mean.value),
            f"{interval} {points_text(mean.low)} to {points_text(mean.high)}",
            f"uncorrected {100 * pairs.value:.1f}, by chance alone {100 * (pairs.floor or 0):.1f}",
            unit="points",
        ),
        _card(
            ("Widest established gap" if audit.verdict.different else "Least certain gap") + criterion,
            points_text(widest.value),
            f"{interval} {points_text(widest.low)} to {points_text(widest.high)}",
            f"half of it between {scores_word(audit)} {between}",
            unit="points",
        ),
    ]
    if first.four_fifths is not None:
        detail = f"{interval} {first.ratio.low:.2f} to {first.ratio.high:.2f}"
        rate = "rate" if first.favourable == "high" else "share not flagged"
        name = f"Lowest over highest {rate}, {threshold_heading(audit, first)}"
        if first.top_share is None:
            name = f"Lowest over highest {rate} above {cut_text(audit, first.threshold)}"
        cards.append(_card(name, f"{first.ratio.value:.2f}", detail, "four fifths is 0.80"))
    if "error_rate" in audit.readings:
        error = audit.readings["error_rate"]
        detail = f"{interval} {percent(error.low)} to {percent(error.high)}"
        area = "" if audit.auc is None else f"area under the ROC curve {audit.auc.value:.2f}"
        where = cut_text(audit, first.threshold)
        cards.append(_card(f"Wrong decisions at {where}", percent(error.value), detail, area))
    if audit.regression is not None and (root := audit.regression.overall["rmse"]) is not None:
        r2 = audit.regression.overall["r2"]
        detail = f"{interval} {score_text(root.low)} to {score_text(root.high)}"
        spread = f"R² {r2.value:.2f}, " if r2 is not None else ""
        remark = f"{spread}standard deviation of the label {score_text(audit.regression.label_deviation)}"
        cards.append(_card("Root mean squared error", score_text(root.value), detail, remark))
    return cards


def _card(name: str, value: str, detail: str, remark: str = "", unit: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "detail": detail, "remark": remark, "unit": unit}


# Distributions of the groups' scores among people with the same outcome, as small charts.

_N_POINTS = 101
_SIZE = 100.0  # of the square that curves are drawn in
_RATES = {0: "false_positive_rate", 1: "true_positive_rate"}


def collect_outcomes(audit: Audit) -> dict[str, object] | None:
    """Return what the page says about people with the same outcome; None unless the criterion is about classes."""
    labels = {"equalized_odds": (0, 1), "equal_opportunity": (1,)}.get(audit.settings.criterion, ())
    if not labels or not audit.histograms.has_labels:
        return None
    return {
        "title": f"{among_whom(audit)}, are the groups scored alike?",
        "note": CRITERIA_CONFLICT,
        "panels": [_panel(audit, label) for label in labels],
    }


def _panel(audit: Audit, label: int) -> dict[str, Any]:
    """Return distribution functions of all groups with one outcome, 100 by 100, origin at the top left."""
    points = np.linspace(0, 1, _N_POINTS)
    curves = 1 - audit.error_curves(audit.histograms.grid.from_unit(points))[_RATES[label]]
    middle = _N_POINTS // 2
    shown = [index for index in range(len(curves)) if not np.isnan(curves[index]).any()]
    halves = "; ".join(f"{one_line(audit.groups[index].name)}: {percent(curves[index][middle])}" for index in shown)
    title = "Positive outcome" if label else "Negative outcome"
    description = f"Distribution functions by group, {title.lower()}. Share in the lower half of scores: {halves}."
    return {
        "title": title,
        "description": description,
        "lines": [(index, _path(points, curves[index])) for index in shown],
    }


def _path(points: NDArray[np.float64], curve: NDArray[np.float64]) -> str:
    return "".join(
        f"{'L' if number else 'M'}{_SIZE * x:.1f} {_SIZE * (1 - y):.1f}"
        for number, (x, y) in enumerate(zip(points.tolist(), curve.tolist(), strict=True))
    )


# Distances between groups as a matrix of cells, shaded by size.

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Distances at which the shade of a cell changes: the same on every page, so that pages can be compared."""


def collect_distance_matrix(audit: Audit) -> dict[str, Any]:
    """Return the distances between the largest groups, at most twelve; of ranks, where scores have no known bounds."""
    indices = largest_groups(audit)
    distances = pair_distances(audit)[np.ix_(indices, indices)]
    levels = np.searchsorted(LEVELS, distances, side="right")
    left_out = len(audit.groups) - len(indices)
    return {"indices": indices, "distances": distances.tolist(), "levels": levels.tolist(), "left_out": left_out}


# Data of the page's script: histograms, names and colours, as one JSON value.

_WEIGHT_DIGITS = 9  # significant digits; counts stay whole numbers


def collect_script_data(
    what_ifs: Sequence[WhatIf], *, names: Sequence[str], indices: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Collect what the script needs of one audit, or of two audits of the same groups."""
    first = what_ifs[0].audit
    settings = first.settings
    return {
        "range": list(settings.range),
        "ranks": not settings.bounded,
        "scoreTitle": score_title(first),
        "threshold": first.thresholds[0].threshold,
        "confidence": f"{settings.confidence:.0%}",
        "favourable": settings.favourable,
        "minJudgedRows": settings.small_groups.min_size,
        "z": float(ndtri((1 + settings.confidence) / 2)),
        "labelled": all(what_if.reduced.has_labels for what_if in what_ifs),
        "groups": _styled_groups(first),
        "tukey": [round(value, 6) for value in critical_values(len(first.groups), first.settings.confidence)],
        "audits": [_audit_data(*audit) for audit in zip(what_ifs, names, indices, strict=True)],
    }


def audit_styles(audit: Audit) -> tuple[GroupStyle, ...]:
    """Return the styles of the groups of an audit."""
    return group_styles(audit.histograms.groups, audit.histograms.group_rows)


def _styled_groups(audit: Audit) -> list[dict[str, Any]]:
    return [
        {"name": one_line(group.name), "colour": style.colour, "dashes": style.dash_array, "named": style.named}
        for group, style in zip(audit.groups, audit_styles(audit), strict=True)
    ]


def _audit_data(what_if: WhatIf, name: str, indices: Sequence[int]) -> dict[str, Any]:
    reduced, audit = what_if.reduced, what_if.audit
    return {
        "name": one_line(name),
        "bins": reduced.n_bins,
        "fullBins": reduced.full_bins,
        "disparity": audit.mean_readings[audit.settings.pairs_metric].value,
        "groups": [
            {
                "rows": audit.groups[index].rows,
                "effective": audit.groups[index].effective_rows,
                "judged": audit.groups[index].judged,
                **_node_data(reduced.groups[index]),
            }
            for index in indices
        ],
        # Overlapping groups do not add up to everyone.
        "everyone": _node_data(reduced.everyone) if audit.histograms.groups.overlapping else None,
    }


def _node_data(group: NodeMasses) -> dict[str, Any]:
    return {
        "at": np.diff(group.indices, prepend=0).tolist(),
        "masses": [_short_numbers(masses) for masses in group.masses],
        "images": None if group.images is None else group.images.tolist(),
    }


def _short_numbers(masses: NDArray[np.float64]) -> list[float]:
    """Return whole numbers as integers, others with as many digits as the page needs."""
    whole = masses.astype(np.int64)
    if np.array_equal(whole, masses):
        return whole.tolist()
    return [float(f"{mass:.{_WEIGHT_DIGITS}g}") for mass in masses.tolist()]


# The table that follows the sliders, as it is before the reader moves them.


def collect_threshold_rows(what_ifs: Sequence[WhatIf], indices: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Return the rows at the first threshold, without repair."""
    threshold = what_ifs[0].audit.thresholds[0].threshold
    outcomes = [what_if.at(threshold) for what_if in what_ifs]
    high_is_favourable = what_ifs[0].audit.settings.favourable == "high"
    rows = []
    for group in range(len(indices[0])):
        pairs = [(outcome, order[group]) for outcome, order in zip(outcomes, indices, strict=True)]
        rates = [outcome.rates[index] for outcome, index in pairs]
        rows.append(
            {
                "group": group,
                "rates": [percent(rate.value) for rate in rates],
                "intervals": [f"{percent(rate.low)} to {percent(rate.high)}" for rate in rates],
                "ratios": [_ratio(outcome, index, high_is_favourable=high_is_favourable) for outcome, index in pairs],
                "errors": [percent(outcome.errors[index]) for outcome, index in pairs if outcome.errors is not None],
            }
        )
    return rows


def _ratio(outcome: Outcome, index: int, *, high_is_favourable: bool) -> str:
    """Return the rate of the favourable outcome divided by the highest."""
    values = (outcome.rates[at].value for at in (index, outcome.better_off))
    value, highest = values if high_is_favourable else (1 - each for each in values)
    return f"{value / highest:.2f}" if highest > 0 else "\N{EN DASH}"


def audit_page(audit: Audit, path: Any = None, **options: Any) -> Path | str:
    """Write the page of an audit."""
    check_destination(path)
    return write_page(render_audit_page(collect_audit_page(audit, **options)), path)


def collect_audit_page(
    audit: Audit,
    *,
    title: str | None = None,
    repair_target: Any = "barycenter_w2",
    effects: CounterfactualAudit | None = None,
    written: datetime | None = None,
) -> dict[str, Any]:
    """Collect what the page of an audit shows."""
    what_if = WhatIf.of(audit, repair_target=repair_target)
    shown = what_if.audit  # the same figures, with equally spaced nodes
    tables = {
        "tables": figure_tables(audit),
        "error_tables": error_tables(audit),
        "calibration_tables": calibration_tables(audit),
        "effect_tables": collect_effect_tables(effects),
    }
    sheets = collect_sheets(audit, [table for part in tables.values() for table in part])
    indices = range(len(audit.groups))
    columns = ", ".join(one_line(column) for column in audit.settings.columns)
    heading = audit.provenance.title if title is None else title
    default = shorten(f"{scores_word(audit).capitalize()} by {columns}", 80)
    script_data = collect_script_data([what_if], names=[""], indices=[indices])
    return {
        **collect_common([what_if], written),
        "title": one_line(heading) if heading is not None else default,
        "verdict": audit.verdict,
        "points": verdict_points(audit, what_if),
        "cards": collect_cards(audit),
        "data": {**script_data, "sheets": sheets},
        "names": [""],
        "threshold_rows": collect_threshold_rows([what_if], [indices]),
        "error_rows": collect_error_rows(what_if),
        **tables,
        "outcomes": collect_outcomes(shown),
        "effects": collect_effects(effects),
        "panels": collect_panels(audit),
        "repairable": what_if.reduced.can_repair,
        "repair_call": _repair_call(repair_target),
        "matrix": collect_distance_matrix(audit),
        "method": collect_method_notes(audit, what_if),
        "sources": collect_sources({"": audit}),
    }


def collect_method_notes(audit: Audit, what_if: WhatIf) -> list[tuple[str, str]]:
    """Return how the figures of a page were measured."""
    settings, reduced, grid = audit.settings, what_if.reduced, what_if.audit.histograms.grid
    reasons = [f"{count:,} rows: {one_line(reason)}" for reason, count in settings.set_aside.items()]
    charts = "all scores"
    if (grid.low, grid.high) != settings.range:
        charts = f"{number_text(grid.low)} to {number_text(grid.high)}, others at the ends"
    sliders = (
        f"Computed on this page from counts in {reduced.n_bins:,} bins; a threshold is rounded up to the next edge"
    )
    return [
        ("Rows", f"{audit.rows:,}{', weighted' if settings.weighted else ''}"),
        ("Set aside", "; ".join([*reasons, *settings.small_groups.sentences()]) or "no rows"),
        ("Groups", f"{len(audit.groups)} of {', '.join(map(one_line, settings.columns))}"),
        *method_notes(audit),
        ("Charts", charts),
        ("Sliders", f"{sliders}. Repair is fitted to these same rows" if reduced.can_repair else sliders),
    ]


def collect_sources(audits: Mapping[str, Audit]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Collect what is known about the origin of audits, by their names on the page; empty where nothing is."""
    known = {name: [(key, one_line(text)) for key, text in audit.provenance.lines()] for name, audit in audits.items()}
    return [(name, lines) for name, lines in known.items() if lines]


def collect_common(what_ifs: Sequence[WhatIf], written: datetime | None) -> dict[str, Any]:
    """Collect what the pages of one and of two audits share: software, date, groups, first threshold."""
    first = what_ifs[0].audit
    low, high = first.settings.range
    return {
        "version": __version__,
        "software": software_versions(),
        "written": date_text(written),
        "groups": [
            {**styled, "rows": f"{group.rows:,}", "judged": group.judged}
            for group, styled in zip(first.groups, _styled_groups(first), strict=True)
        ],
        "many": len(first.groups) > MOST_NAMED,
        "most_named": MOST_NAMED,
        "labelled": all(what_if.reduced.has_labels for what_if in what_ifs),
        "threshold": f"{first.thresholds[0].threshold:{'g' if first.settings.bounded else '.10g'}}",
        "score_title": score_title(first),
        "averaged": "all thresholds" if first.settings.bounded else "all shares of people selected",
        "ranks": not first.settings.bounded,
        "low": low,
        "high": high,
        "confidence": f"{first.settings.confidence:.0%}",
        "rows": f"{first.rows:,}",
        "n_groups": count_word(len(first.groups)),
        "high_is_favourable": first.settings.favourable == "high",
        "rate_names": [(rate, RATE_NAMES[rate][0], RATE_NAMES[rate][2]) for rate in ERROR_RATES],
        "error_rows": [],
        "error_tables": [],
        "outcomes": None,
        "effects": None,
        "effect_tables": [],
        "panels": [],
        "calibration_tables": [],
    }


def _repair_call(target: Any) -> str:
    return f"QuantileRepair(target={one_line(target)!r})" if isinstance(target, str) else "QuantileRepair(target=...)"
