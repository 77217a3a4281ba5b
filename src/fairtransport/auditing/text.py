"""An audit as text of 80 columns, and as rows of data frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from fairtransport._text import number_text, one_line, plain, three_digits, wrap
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import QUANTILE_LEVELS, compare_rates, group_text, scores_word
from fairtransport.auditing.tables import audit_tables, method_notes
from fairtransport.auditing.verdict import threshold_sentence

if TYPE_CHECKING:
    from fairtransport.auditing.errors import GroupCalibration
    from fairtransport.auditing.records import AuditData
    from fairtransport.auditing.verdict import Verdict


def audit_lines(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    """Yield the audit as lines of at most 80 characters."""
    settings = audit.settings
    columns = ", ".join(map(one_line, settings.columns))
    label = audit.provenance.label_text
    yield from wrap(f"Audit of {audit.rows:,} rows in {len(audit.groups)} groups ({columns}){label}")
    for reason, count in settings.set_aside.items():
        yield from wrap(f"Set aside: {count:,} rows, {one_line(reason)}")
    for sentence in settings.small_groups.sentences():
        yield from wrap(sentence)
    for sentence in (verdict.sentence, *verdict.points):
        yield from ("", *wrap(one_line(plain(sentence))))
    for table in audit_tables(audit):
        if lines := list(table.lines([group.rows for group in audit.groups])):
            yield from ("", *lines)
    for threshold in audit.thresholds[1:]:  # the verdict has the first
        yield from ("", *wrap(one_line(plain(threshold_sentence(audit, threshold)))))
    yield from ("", *wrap(_farthest(audit)))
    yield ""
    for name, note in method_notes(audit):
        yield from wrap(f"{name}: {note}.")


def _farthest(audit: AuditData) -> str:
    pair = audit.farthest
    if math.isnan(pair.distance):
        return ""
    lower, higher = (plain(group_text(audit, name, 23)) for name in (pair.lower, pair.higher))
    start, end, cut = (
        f"{value:.3g}" if audit.settings.bounded else number_text(value)
        for value in (*pair.most_between, pair.threshold)
    )
    between = "" if audit.settings.bounded else " between ranks"
    chance = "" if (pair.p_value or 0.0) <= 1 - audit.settings.confidence else " (which chance may explain)"
    return (
        f"Farthest apart: {lower} and {higher}, distance{between} {three_digits(pair.distance)}{chance}, half of it "
        f"between {scores_word(audit)} {start} and {end}. Above {cut}: "
        f"{pair.shares_above[0]:.1%} of {lower}, {pair.shares_above[1]:.1%} of {higher}."
    )


# The figures of audits and comparisons as tables: lists of rows with the same keys.

Row = dict[str, Any]


def _cells(record: Any, *names: str, **renamed: str) -> Row:
    """Return fields of a record as cells, some under another name: ``column="field"``."""
    columns = {name: name for name in names} | renamed
    return {column: getattr(record, name, None) for column, name in columns.items()}


def _estimates(**estimates: Estimate | None) -> Row:
    """Return each estimate as three cells; empty where a figure is not defined."""
    return {
        f"{name}{ending}": getattr(estimate, part, None)
        for name, estimate in estimates.items()
        for ending, part in (("", "value"), ("_low", "low"), ("_high", "high"))
    }


def _reading(reading: Any) -> Row:
    return _cells(reading, "value", "low", "high", "corrected", noise_floor="floor", p_value="p_value")


def _metrics(audit: AuditData) -> Iterator[Row]:
    among_all = "demographic parity"
    for criterion, readings in ((among_all, audit.readings), (audit.settings.criterion_text, audit.conditional)):
        for name, reading in readings.items():
            yield {"metric": name, "criterion": criterion, **_reading(reading)}


def _group_rows(audit: AuditData) -> Iterator[Row]:
    for group in audit.groups:
        yield {
            "group": group.name,
            **_cells(group, "rows", "weight", "effective_rows", "judged", "mean"),
            **{f"quantile_{level:g}": value for level, value in zip(QUANTILE_LEVELS, group.quantiles, strict=True)},
            "distance_to_everyone": group.distance_to_everyone,
            **_estimates(error=group.error, auc=group.auc),
        }


def _thresholds(audit: AuditData) -> Iterator[Row]:
    for at in audit.thresholds:
        for group, rate, ratio in zip(audit.groups, at.rates, at.ratios, strict=True):
            where = {**_cells(at, "threshold", "top_share"), "group": group.name, "judged": group.judged}
            yield {**where, **_estimates(selection_rate=rate), "ratio": ratio}


def _rates(audit: AuditData) -> Iterator[Row]:
    for row in compare_rates(audit):
        yield {
            **_cells(row, "threshold", "group", "reference"),
            **_estimates(rate=row.rate, ratio=row.ratio),
            "four_fifths": row.four_fifths,
            **_estimates(difference=row.difference),
            **_cells(row, "p_value", "significant", "material"),
        }


def _pairs(audit: AuditData) -> Iterator[Row]:
    for one, other in combinations(range(len(audit.groups)), 2):
        p_value = float(audit.pair_p_values[one, other])
        yield {
            "group": audit.groups[one].name,
            "other": audit.groups[other].name,
            "distance": float(audit.distances[one, other]),
            "rank_distance": None if audit.rank_distances is None else float(audit.rank_distances[one, other]),
            "p_value": None if math.isnan(p_value) else p_value,  # the pair is not judged
        }


def _stratum_rows(audit: AuditData) -> Iterator[Row]:
    for stratum in audit.strata:
        row: Row = {"stratum": stratum.name, **_cells(stratum, "rows", "weight", groups="n_groups")}
        for name in audit.conditional:
            row[name] = stratum.metrics.get(name)
            row[f"{name}_noise_floor"] = stratum.floors.get(name)
            row[f"{name}_p_value"] = stratum.p_values.get(name)
        yield row


def _separation(audit: AuditData) -> Iterator[Row]:
    separation = audit.separation
    if separation is None:
        return
    parts = {"negative": separation.negatives, "positive": separation.positives}
    figures: list[tuple[str, str, Any]] = [("both", "disparity", separation.disparity)]
    figures += [(name, "disparity", getattr(part, "disparity", None)) for name, part in parts.items()]
    differences = {"both": separation.equalized_odds}
    differences |= {name: getattr(part, "differences", None) for name, part in parts.items()}
    figures += [
        (name, f"{figure}_difference", getattr(each, figure, None))
        for name, each in differences.items()
        for figure in ("maximum", "mean")
    ]
    for label, figure, estimate in figures:
        if estimate is not None:
            yield {"label": label, "figure": figure, **_reading(estimate)}


def _error_rates(audit: AuditData) -> Iterator[Row]:
    for at in audit.error_rates:
        for group in at.groups:
            for name, rate in group.rates.items():
                yield {
                    "threshold": at.threshold,
                    "group": group.name,
                    "rate": name,
                    **_estimates(value=rate),
                    "reference": at.reference,
                    **_estimates(difference=group.differences.get(name), ratio=group.ratios.get(name)),
                }


def _calibration(audit: AuditData) -> Iterator[Row]:
    for group in audit.calibration.groups if audit.calibration is not None else ():
        error, slope = group.expected_error, group.slope
        estimates = _estimates(
            positive_rate=group.positive_rate, expected_calibration_error=error, intercept=group.intercept, slope=slope
        )
        yield {"group": group.name, **estimates}


def reliability_rows(groups: Iterable[GroupCalibration]) -> Iterator[Row]:
    """Yield the points of the reliability curves of groups."""
    for group in groups:
        for part in group.bins:
            where = _cells(part, score_low="low", score_high="high", mean_score="mean_score")
            yield {"group": group.name, **where, **_estimates(positive_rate=part.rate), "weight": part.weight}


def _reliability(audit: AuditData) -> Iterator[Row]:
    return reliability_rows(audit.calibration.groups if audit.calibration is not None else ())


def _residuals(audit: AuditData) -> Iterator[Row]:
    errors = audit.regression
    for group in errors.groups if errors is not None else ():
        for figure, estimate in group.figures.items():
            yield {
                "group": group.name,
                "figure": figure,
                **_estimates(value=estimate),
                **_cells(errors, "reference"),
                **_estimates(difference=group.differences[figure]),
                "p_value": group.p_values[figure],
            }


def _residual_deciles(audit: AuditData) -> Iterator[Row]:
    errors = audit.regression
    for decile in errors.deciles if errors is not None else ():
        for group, estimate in zip(audit.groups, decile.groups, strict=True):
            where = _cells(decile, prediction_low="low", prediction_high="high")
            yield {**where, "group": group.name, **_estimates(mean_residual=estimate)}


def _cross_auc(audit: AuditData) -> Iterator[Row]:
    if audit.cross_auc is not None:
        names = [audit.groups[index].name for index in audit.cross_auc.groups]
        for positives, areas in zip(names, audit.cross_auc.areas, strict=True):
            for negatives, area in zip(names, areas, strict=True):
                yield {"positives_of": positives, "negatives_of": negatives, **_estimates(auc=area)}


def _changes(comparison: Any) -> Iterator[Row]:
    changes = comparison.changes if comparison.auc is None else {**comparison.changes, "auc": comparison.auc}
    for name, change in changes.items():
        yield {"metric": name, **_change(change)}


def _threshold_changes(comparison: Any) -> Iterator[Row]:
    for at in comparison.thresholds:
        for figure, changes in (("selection_rate", at.rates), ("error_rate", at.errors or ())):
            for group, change in zip(comparison.before.groups, changes, strict=False):
                yield {"threshold": at.threshold, "group": group.name, "figure": figure, **_change(change)}


def _change(change: Any) -> Row:
    return _cells(change, "before", "after", change="value", low="low", high="high", beyond_noise="beyond_noise")


#: The tables of an audit, and of a comparison of two, by name.
AUDIT_TABLES: Mapping[str, Any] = {
    "groups": _group_rows,
    "metrics": _metrics,
    "thresholds": _thresholds,
    "rates": _rates,
    "pairs": _pairs,
    "strata": _stratum_rows,
    "separation": _separation,
    "error_rates": _error_rates,
    "calibration": _calibration,
    "reliability": _reliability,
    "cross_auc": _cross_auc,
    "residuals": _residuals,
    "residual_deciles": _residual_deciles,
}
COMPARISON_TABLES: Mapping[str, Any] = {"metrics": _changes, "thresholds": _threshold_changes}
