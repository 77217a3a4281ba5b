"""The errors of an audit as lines of text: rates at the first threshold, equalized odds and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import score_text, shorten, wrap
from fairtransport.auditing.units import threshold_heading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairtransport.auditing.errors import GroupCalibration, RegressionErrors
    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData

__all__ = ["FIGURE_TITLES", "RATE_TITLES", "error_lines"]

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
_NAME_WIDTH = 24
_UNDEFINED = "\N{EN DASH}"


def error_lines(audit: AuditData, max_groups: int) -> Iterator[str]:
    """Yield the errors by group as lines of at most 80 characters; nothing without labels.

    Parameters
    ----------
    audit : AuditData
    max_groups : int
        Number of groups to show.
    """
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
    cells = "".join(f"{_percent(rates[rate]):>7}" for rate in RATE_TITLES)
    error = "" if one is None or one.expected_error is None else f"{one.expected_error.value:.3f}"
    return f"{shorten(name, _NAME_WIDTH - 1):<{_NAME_WIDTH}}{cells}{error:>7}".rstrip()


def _percent(estimate: Estimate | None) -> str:
    return _UNDEFINED if estimate is None else f"{estimate.value:.1%}"


def _points(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} points ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def _all_thresholds(audit: AuditData) -> str:
    if audit.separation is None or audit.separation.equalized_odds is None:
        return ""
    worst = audit.separation.equalized_odds
    return f"; at the worst of all thresholds, {worst.threshold:.3g}, {_points(worst.maximum)}"
