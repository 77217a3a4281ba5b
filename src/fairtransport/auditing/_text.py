"""An audit as text of 80 columns, and as rows of data frames."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from fairtransport._text import number_text, one_line, plain, score_text, shorten, three_digits, wrap
from fairtransport.auditing.records import (
    QUANTILE_LEVELS,
    compare_rates,
    distance_text,
    n_distances,
    scores_word,
    threshold_heading,
    threshold_text,
)
from fairtransport.auditing.verdict import among_whom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fairtransport.auditing.errors import GroupCalibration, RegressionErrors
    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData, Reading, ThresholdSummary
    from fairtransport.auditing.verdict import Verdict

# The errors of an audit as lines of text: rates at the first threshold, equalized odds and calibration.

#: Short names of the rates that have a column.
RATE_TITLES = {
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "false_negative_rate": "FNR",
    "positive_predictive_value": "PPV",
    "negative_predictive_value": "NPV",
    "accuracy": "acc",
}
#: Names of the errors of real-valued predictions.
FIGURE_TITLES = {"rmse": "RMSE", "mae": "MAE", "r2": "R2", "mean_residual": "mean residual"}
_UNDEFINED = "\N{EN DASH}"


def error_lines(audit: AuditData, max_groups: int) -> Iterator[str]:
    """Yield the errors by group as lines of at most 80 characters; nothing without labels."""
    if audit.regression is not None:
        yield from _residual_lines(audit, audit.regression, max_groups)
    if not audit.error_rates or audit.calibration is None:
        return
    first, calibration = audit.error_rates[0], audit.calibration
    heads = "".join(f"{title:>7}" for title in RATE_TITLES.values())
    title = f"Errors {threshold_heading(audit, audit.thresholds[0])}"
    yield f"{shorten(title, _NAME_WIDTH - 1):<{_NAME_WIDTH}}{heads}{'ECE':>7}"
    for summary, group, one in list(zip(audit.groups, first.groups, calibration.groups, strict=True))[:max_groups]:
        yield _row(group.name, group.rates, one) + ("" if summary.judged else " ?")
    yield _row("everyone", first.overall, calibration.overall)
    yield _row(
        "largest difference", {rate: None if gap is None else gap.difference for rate, gap in first.gaps.items()}, None
    )
    if first.equalized_odds is not None:
        yield from wrap(f"Equalized odds: {_points(first.equalized_odds)}{_all_thresholds(audit)}.")
        if audit.settings.criterion == "demographic_parity":
            yield from wrap("Demographic parity and equalized odds conflict in general.")
    if calibration.largest_error is not None and calibration.worst is not None:
        name = shorten(audit.groups[calibration.worst].name, _NAME_WIDTH - 1)
        yield from wrap(f"Largest expected calibration error (ECE), {name}: {_points(calibration.largest_error)}.")
    undefined = sorted({name for names in first.undefined.values() for name in names})
    if undefined:
        names = ", ".join(shorten(name, _NAME_WIDTH - 1) for name in undefined[:5])
        more = f" and {len(undefined) - 5} more" if len(undefined) > 5 else ""
        yield from wrap(f"{_UNDEFINED}: no rows to compute the rate from ({names}{more}).")


def _residual_lines(audit: AuditData, errors: RegressionErrors, max_groups: int) -> Iterator[str]:
    heads = "".join(f"{title:>14}" for title in FIGURE_TITLES.values())
    yield f"{'Errors':<{_NAME_WIDTH}}{heads}"
    rows = [(group.name, group.figures) for group in errors.groups[:max_groups]]
    for name, figures in [*rows, ("everyone", errors.overall)]:
        cells = "".join(f"{_score(figures[figure]):>14}" for figure in FIGURE_TITLES)
        yield f"{shorten(name, _NAME_WIDTH - 1):<{_NAME_WIDTH}}{cells}"
    established = [
        f"{title} of {shorten(group.name, _NAME_WIDTH - 1)} (p = {p_value:.2g})"
        for group in errors.groups
        for figure, title in FIGURE_TITLES.items()
        if (p_value := group.p_values[figure]) is not None and p_value <= 1 - audit.settings.confidence
    ]
    reference = shorten(errors.reference, _NAME_WIDTH - 1)
    if established:
        yield from wrap(
            f"Different from {reference} beyond chance, p-values adjusted for the number of groups (Holm): "
            f"{', '.join(established[:6])}{f' and {len(established) - 6} more' if len(established) > 6 else ''}."
        )
    else:
        yield from wrap(f"No error of a group differs from that of {reference} beyond chance.")


def _score(estimate: Estimate | None) -> str:
    return _UNDEFINED if estimate is None else score_text(estimate.value)


def _row(name: str, rates: Mapping[str, Estimate | None], one: GroupCalibration | None) -> str:
    cells = "".join(f"{_percent_text(rates[rate]):>7}" for rate in RATE_TITLES)
    error = "" if one is None or one.expected_error is None else f"{one.expected_error.value:.3f}"
    return f"{shorten(name, _NAME_WIDTH - 1):<{_NAME_WIDTH}}{cells}{error:>7}".rstrip()


def _percent_text(estimate: Estimate | None) -> str:
    return _UNDEFINED if estimate is None else f"{estimate.value:.1%}"


def _points(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} points ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def _all_thresholds(audit: AuditData) -> str:
    if audit.separation is None or audit.separation.equalized_odds is None:
        return ""
    worst = audit.separation.equalized_odds
    return f"; at the worst of all thresholds, {worst.threshold:.3g}, {_points(worst.maximum)}"


MAX_GROUPS_SHOWN = 40
METRIC_TITLES = {
    "error_rate": "Error",
    "wasserstein_disparity": "To the target, mean",
    "strong_demographic_disparity": "To everyone, mean",
    "strong_pairwise_disparity": "Between pairs, mean",
    "rank_disparity": "Rank disparity, mean",
    "kolmogorov_smirnov_disparity": "Largest difference",
}

_MAX_STRATA_SHOWN = 20
_NAME_WIDTH = 24


def audit_text(audit: AuditData, verdict: Verdict) -> str:
    """Return the audit as lines of at most 80 characters."""
    return "\n".join(_lines(audit, verdict))


def _lines(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    settings = audit.settings
    columns = ", ".join(map(one_line, settings.columns))
    yield from wrap(f"Audit of {audit.rows:,} rows in {len(audit.groups)} groups ({columns})")
    for reason, count in settings.set_aside.items():
        yield from wrap(f"Set aside: {count:,} rows, {one_line(reason)}")
    for sentence in settings.small_groups.sentences():
        yield from wrap(sentence)
    for sentence in (verdict.sentence, *verdict.points):
        yield ""
        yield from wrap(one_line(plain(sentence)))
    yield ""
    if audit.strata:
        yield from _strata(audit)
        yield ""
        yield "Among all people (demographic parity)"
    yield from _readings(audit, audit.mean_readings)
    yield from _all_groups(audit, verdict)
    yield ""
    yield from _groups(audit)
    if audit.error_rates or audit.regression is not None:
        yield ""
        yield from error_lines(audit, MAX_GROUPS_SHOWN)
    for threshold in audit.thresholds[1:]:  # the verdict has the first
        yield ""
        yield from wrap(_threshold(audit, threshold))
    yield ""
    yield from wrap(_farthest(audit))
    yield ""
    yield from wrap(_method(audit))


def _readings(audit: AuditData, readings: Mapping[str, Reading]) -> Iterator[str]:
    level = f"{audit.settings.confidence:.0%} interval"
    yield f"{'Distances':<23}{'value':>8}{level:>18}{'corrected':>11}{'by chance':>11}{'p':>9}"
    for name, reading in readings.items():
        text = partial(distance_text, audit, metric=name)
        line = f"{METRIC_TITLES[name]:<23}{text(reading.value):>8}{_interval(reading, text):>18}"
        if reading.floor is not None:
            line += f"{text(reading.corrected):>11}{text(reading.floor):>11}"
        if reading.p_value is not None:
            line += f"{reading.p_value:>9.3g}"
        yield line


def _interval(reading: Reading, text: Callable[[float], str]) -> str:
    low = "<0.001" if text(reading.low) == "0.000" and reading.low > 0 else text(reading.low)
    return f"{low} to {text(reading.high)}"


def _all_groups(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    """Yield the means over all groups where some are not judged."""
    if len(verdict.judged) >= 2 and verdict.set_aside:
        to_target, to_everyone, pairs = (
            distance_text(audit, value / n_distances(name, len(audit.groups)))
            for name, value in audit.metrics_all_groups.items()
        )
        yield from wrap(
            f"Means over all {len(audit.groups)} groups, with those that are not judged: to the target {to_target}, "
            f"to everyone {to_everyone}, between pairs {pairs}."
        )


def _groups(audit: AuditData) -> Iterator[str]:
    has_labels = any(group.error is not None for group in audit.groups)
    first = audit.thresholds[0]
    above = f"> {first.threshold:g}" if first.top_share is None else threshold_heading(audit, first)
    score, width = (three_digits, 8) if audit.settings.bounded else (score_text, 10)
    tail = f"{'error':>7}{'AUC':>6}" if has_labels else ""
    yield f"{'Group':<{_NAME_WIDTH}}{'rows':>11}{'mean':>8}{'median':>8}{above:>{width}}{tail}"
    for group, rate in zip(audit.groups[:MAX_GROUPS_SHOWN], first.rates, strict=False):
        line = f"{_short_name(group.name):<{_NAME_WIDTH}}{group.rows:>11,}{score(group.mean):>8}"
        line += f"{score(group.quantiles[2]):>8}{rate.value:>{width}.1%}"
        if has_labels:
            line += f"{_percent(group.error):>7}{'' if group.auc is None else f'{group.auc.value:.2f}':>6}"
        yield line + (" ?" if not group.judged else "")
    if len(audit.groups) > MAX_GROUPS_SHOWN:
        yield f"... and {len(audit.groups) - MAX_GROUPS_SHOWN} more groups"


def _threshold(audit: AuditData, at: ThresholdSummary) -> str:
    high_is_favourable = at.favourable == "high"
    if at.four_fifths is None:
        return f"{threshold_text(audit, at)}: {'nobody is selected' if high_is_favourable else 'everyone is flagged'}."
    low, high = (
        f"{at.rates[i].value:.1%} of {_short_name(audit.groups[i].name)}" for i in (at.worse_off, at.better_off)
    )
    interval = f"({at.ratio.low:.2f} to {at.ratio.high:.2f})"
    verdict = "meets" if at.four_fifths else "does not meet"
    doubt = "" if at.conclusive else ", but the interval includes 0.80"
    ratio = "ratio" if high_is_favourable else "flagged; ratio of the shares not flagged"
    return (
        f"{threshold_text(audit, at)}: {low}, {high}{';' if high_is_favourable else ''} {ratio} {at.ratio.value:.2f} "
        f"{interval} {verdict} the four-fifths rule{doubt}."
    )


def _farthest(audit: AuditData) -> str:
    pair = audit.farthest
    lower, higher = _short_name(pair.lower), _short_name(pair.higher)
    start, end, cut = (
        f"{value:.3g}" if audit.settings.bounded else number_text(value)
        for value in (*pair.most_between, pair.threshold)
    )
    between = "" if audit.settings.bounded else " between ranks"
    return (
        f"Farthest apart: {lower} and {higher}, distance{between} {pair.distance:.3f}, half of it between "
        f"{scores_word(audit)} {start} and {end}. Above {cut}: "
        f"{pair.shares_above[0]:.1%} of {lower}, {pair.shares_above[1]:.1%} of {higher}."
    )


def _strata(audit: AuditData) -> Iterator[str]:
    number = sum(stratum.weight > 0 for stratum in audit.strata)
    mean = f", mean over {number} {'strata' if audit.settings.strata else 'outcomes'}" if number > 1 else ""
    yield from wrap(f"{among_whom(audit)} ({audit.settings.criterion_text}){mean}")
    if audit.within is not None:
        yield from _readings(audit, audit.within.mean_readings)
    title = "Stratum" if audit.settings.strata else "Outcome"
    yield f"{title:<{_NAME_WIDTH}}{'rows':>11}{'groups':>8}{'judged':>8}{'pairs':>8}{'by chance':>11}{'p':>9}"
    for stratum in audit.strata[:_MAX_STRATA_SHOWN]:
        line = (
            f"{_short_name(stratum.name):<{_NAME_WIDTH}}{stratum.rows:>11,}{stratum.n_groups:>8}{stratum.n_judged:>8}"
        )
        key = audit.settings.pairs_metric
        if key in stratum.metrics:
            n = n_distances(key, stratum.n_compared)
            line += f"{stratum.metrics[key] / n:>8.3f}{stratum.floors[key] / n:>11.3f}{stratum.p_values[key]:>9.3g}"
        yield line if stratum.metrics else f"{line}  set aside"
    if len(audit.strata) > _MAX_STRATA_SHOWN:
        yield f"... and {len(audit.strata) - _MAX_STRATA_SHOWN} more strata"


def _method(audit: AuditData) -> str:
    settings = audit.settings
    if settings.exact:
        precision = "Figures are exact."
    else:
        reading = audit.mean_readings["strong_pairwise_disparity"]
        error = f"{1 / settings.n_bins:.2g}" if settings.bounded else score_text(reading.resolution)
        precision = f"Figures are from {settings.n_bins} bins; a distance is off by at most {error}."
    if not settings.bounded:
        precision += " Distances are in units of the score, those between ranks in shares of people selected."
    null = "permutations of the groups" if settings.null == "permuted" else "draws of each group's noise"
    return (
        f"{precision} Target: {one_line(settings.target)}. Intervals from {settings.n_bootstrap} bootstrap replicates, "
        f"'by chance' and p from {settings.n_permutations} {null}."
    )


def _percent(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.1%}"


def _short_name(name: str) -> str:
    return shorten(name, _NAME_WIDTH - 1)


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


def _reliability(audit: AuditData) -> Iterator[Row]:
    for group in audit.calibration.groups if audit.calibration is not None else ():
        for part in group.bins:
            where = _cells(part, score_low="low", score_high="high", mean_score="mean_score")
            yield {"group": group.name, **where, **_estimates(positive_rate=part.rate), "weight": part.weight}


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
