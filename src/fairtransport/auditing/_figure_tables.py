"""The figures of audits and comparisons as tables: lists of rows with the same keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.auditing.rate_comparisons import compare_rates
from fairtransport.auditing.records import QUANTILE_LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData

__all__ = ["AUDIT_TABLES", "COMPARISON_TABLES"]

Row = dict[str, Any]


def _estimate(name: str, estimate: Estimate | None) -> Row:
    """Return an estimate as three cells; empty where a figure is not defined."""
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _metrics(audit: AuditData) -> Iterator[Row]:
    among_all = "demographic parity"
    for criterion, readings in ((among_all, audit.readings), (audit.settings.criterion_text, audit.conditional)):
        for name, reading in readings.items():
            yield {
                "metric": name,
                "criterion": criterion,
                "value": reading.value,
                "low": reading.low,
                "high": reading.high,
                "corrected": reading.corrected,
                "noise_floor": reading.floor,
                "p_value": reading.p_value,
            }


def _groups(audit: AuditData) -> Iterator[Row]:
    for group in audit.groups:
        yield {
            "group": group.name,
            "rows": group.rows,
            "weight": group.weight,
            "effective_rows": group.effective_rows,
            "judged": group.judged,
            "mean": group.mean,
            **{f"quantile_{level:g}": value for level, value in zip(QUANTILE_LEVELS, group.quantiles, strict=True)},
            "distance_to_everyone": group.distance_to_everyone,
            **_estimate("error", group.error),
            **_estimate("auc", group.auc),
        }


def _thresholds(audit: AuditData) -> Iterator[Row]:
    for at in audit.thresholds:
        for group, rate, ratio in zip(audit.groups, at.rates, at.ratios, strict=True):
            yield {
                "threshold": at.threshold,
                "top_share": at.top_share,
                "group": group.name,
                "judged": group.judged,
                **_estimate("selection_rate", rate),
                "ratio": ratio,
            }


def _rates(audit: AuditData) -> Iterator[Row]:
    for row in compare_rates(audit):
        yield {
            "threshold": row.threshold,
            "group": row.group,
            "reference": row.reference,
            **_estimate("rate", row.rate),
            **_estimate("ratio", row.ratio),
            "four_fifths": row.four_fifths,
            **_estimate("difference", row.difference),
            "p_value": row.p_value,
            "significant": row.significant,
            "material": row.material,
        }


def _pairs(audit: AuditData) -> Iterator[Row]:
    names = [group.name for group in audit.groups]
    for one in range(len(names)):
        for other in range(one + 1, len(names)):
            p_value = float(audit.pair_p_values[one, other])
            yield {
                "group": names[one],
                "other": names[other],
                "distance": float(audit.distances[one, other]),
                "rank_distance": None if audit.rank_distances is None else float(audit.rank_distances[one, other]),
                "p_value": None if p_value != p_value else p_value,  # noqa: PLR0124 - NaN: the pair is not judged
            }


def _strata(audit: AuditData) -> Iterator[Row]:
    for stratum in audit.strata:
        row: Row = {"stratum": stratum.name, "rows": stratum.rows, "weight": stratum.weight, "groups": stratum.n_groups}
        for name in audit.conditional:
            row[name] = stratum.metrics.get(name)
            row[f"{name}_noise_floor"] = stratum.floors.get(name)
            row[f"{name}_p_value"] = stratum.p_values.get(name)
        yield row


def _separation(audit: AuditData) -> Iterator[Row]:
    separation = audit.separation
    if separation is None:
        return
    figures: list[tuple[str, str, Any]] = [("both", "disparity", separation.disparity)]
    for name, part in (("negative", separation.negatives), ("positive", separation.positives)):
        figures.append((name, "disparity", None if part is None else part.disparity))
    for name, differences in (
        ("both", separation.equalized_odds),
        *(
            (name, None if part is None else part.differences)
            for name, part in (("negative", separation.negatives), ("positive", separation.positives))
        ),
    ):
        for figure in ("maximum", "mean"):
            estimate = None if differences is None else getattr(differences, figure)
            figures.append((name, f"{figure}_difference", estimate))
    for label, figure, estimate in figures:
        if estimate is not None:
            yield {
                "label": label,
                "figure": figure,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "corrected": estimate.corrected,
                "noise_floor": getattr(estimate, "floor", None),
                "p_value": getattr(estimate, "p_value", None),
            }


def _error_rates(audit: AuditData) -> Iterator[Row]:
    for at in audit.error_rates:
        for group in at.groups:
            for name, rate in group.rates.items():
                yield {
                    "threshold": at.threshold,
                    "group": group.name,
                    "rate": name,
                    **_estimate("value", rate),
                    "reference": at.reference,
                    **_estimate("difference", group.differences.get(name)),
                    **_estimate("ratio", group.ratios.get(name)),
                }


def _calibration(audit: AuditData) -> Iterator[Row]:
    for group in audit.calibration.groups if audit.calibration is not None else ():
        yield {
            "group": group.name,
            **_estimate("positive_rate", group.positive_rate),
            **_estimate("expected_calibration_error", group.expected_error),
            **_estimate("intercept", group.intercept),
            **_estimate("slope", group.slope),
        }


def _reliability(audit: AuditData) -> Iterator[Row]:
    for group in audit.calibration.groups if audit.calibration is not None else ():
        for part in group.bins:
            yield {
                "group": group.name,
                "score_low": part.low,
                "score_high": part.high,
                "mean_score": part.mean_score,
                **_estimate("positive_rate", part.rate),
                "weight": part.weight,
            }


def _residuals(audit: AuditData) -> Iterator[Row]:
    errors = audit.regression
    if errors is None:
        return
    for group in errors.groups:
        for figure, estimate in group.figures.items():
            yield {
                "group": group.name,
                "figure": figure,
                **_estimate("value", estimate),
                "reference": errors.reference,
                **_estimate("difference", group.differences[figure]),
                "p_value": group.p_values[figure],
            }


def _residual_deciles(audit: AuditData) -> Iterator[Row]:
    errors = audit.regression
    for decile in errors.deciles if errors is not None else ():
        for group, estimate in zip(audit.groups, decile.groups, strict=True):
            yield {
                "prediction_low": decile.low,
                "prediction_high": decile.high,
                "group": group.name,
                **_estimate("mean_residual", estimate),
            }


def _cross_auc(audit: AuditData) -> Iterator[Row]:
    if audit.cross_auc is not None:
        names = [audit.groups[index].name for index in audit.cross_auc.groups]
        for positives, areas in zip(names, audit.cross_auc.areas, strict=True):
            for negatives, area in zip(names, areas, strict=True):
                yield {"positives_of": positives, "negatives_of": negatives, **_estimate("auc", area)}


def _changes(comparison: Any) -> Iterator[Row]:
    for name, change in comparison.changes.items():
        yield {"metric": name, **_change(change)}
    if comparison.auc is not None:
        yield {"metric": "auc", **_change(comparison.auc)}


def _threshold_changes(comparison: Any) -> Iterator[Row]:
    for at in comparison.thresholds:
        for figure, changes in (("selection_rate", at.rates), ("error_rate", at.errors or ())):
            for group, change in zip(comparison.before.groups, changes, strict=False):
                yield {"threshold": at.threshold, "group": group.name, "figure": figure, **_change(change)}


def _change(change: Any) -> Row:
    return {
        "before": change.before,
        "after": change.after,
        "change": change.value,
        "low": change.low,
        "high": change.high,
        "beyond_noise": change.beyond_noise,
    }


#: The tables of an audit, and of a comparison of two, by name.
AUDIT_TABLES: Mapping[str, Any] = {
    "groups": _groups,
    "metrics": _metrics,
    "thresholds": _thresholds,
    "rates": _rates,
    "pairs": _pairs,
    "strata": _strata,
    "separation": _separation,
    "error_rates": _error_rates,
    "calibration": _calibration,
    "reliability": _reliability,
    "cross_auc": _cross_auc,
    "residuals": _residuals,
    "residual_deciles": _residual_deciles,
}
COMPARISON_TABLES: Mapping[str, Any] = {"metrics": _changes, "thresholds": _threshold_changes}
