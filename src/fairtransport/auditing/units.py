"""Scores, thresholds and distances in words: shares of a known range, or units of scores without known bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import number_text, percent, score_text, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing.records import AuditData, ThresholdSummary

__all__ = [
    "cut_text",
    "distance_text",
    "four_fifths_text",
    "points_text",
    "scores_word",
    "threshold_heading",
    "threshold_text",
    "unit_points",
]

_PAIRS = "strong_pairwise_disparity"
_LARGEST = "kolmogorov_smirnov_disparity"


def scores_word(audit: AuditData, *, plural: bool = True) -> str:
    """Return what the scores are: ``"predictions"`` of a regression, or ``"scores"``."""
    return ("prediction" if audit.settings.task == "regression" else "score") + ("s" if plural else "")


def cut_text(audit: AuditData, threshold: float) -> str:
    """Format a threshold."""
    return f"{threshold:g}" if audit.settings.bounded else number_text(threshold)


def distance_text(audit: AuditData, distance: float, metric: str = _PAIRS) -> str:
    """Format a disparity: a share with three decimals, or a number in units of the score."""
    in_units = not audit.settings.bounded and metric.startswith(("strong_", "wasserstein_"))
    return score_text(distance) if in_units else three_digits(distance)


def threshold_text(audit: AuditData, at: ThresholdSummary) -> str:
    """Return where rows are selected, at the beginning of a sentence: ``"Above 0.5"``."""
    cut = cut_text(audit, at.threshold)
    if at.top_share is None:
        return f"Above {cut}"
    return f"In the top {100 * at.overall:.3g}% of {scores_word(audit)} (above {cut})"


def threshold_heading(audit: AuditData, at: ThresholdSummary) -> str:
    """Return a short name of a threshold: ``"above 0.5"``, ``"top 10%"``."""
    return f"above {cut_text(audit, at.threshold)}" if at.top_share is None else f"top {100 * at.overall:.3g}%"


def unit_points(audit: AuditData) -> Iterator[str]:
    """Yield sentences on the distance in units of the score and on the largest difference of selection rates.

    Only for scores without known bounds, whose verdict refers to ranks.
    """
    within = audit.within
    readings, pair = (audit.readings, audit.farthest) if within is None else (within.readings, within.farthest)
    if audit.settings.bounded or pair.score_distance is None:
        return
    unit = "the label" if audit.regression is not None else f"the {scores_word(audit, plural=False)}"
    size = score_text(pair.score_distance)
    deviation = 0.0 if audit.regression is None else audit.regression.label_deviation
    if deviation > 0:
        size += f", {score_text(pair.score_distance / deviation)} standard deviations of the label"
    n_judged = sum(group.judged for group in audit.groups)
    pairs = readings.get(_PAIRS)
    interval = ""
    if n_judged == 2 and pairs is not None:
        interval = f" ({audit.settings.confidence:.0%} interval {score_text(pairs.low)} to {score_text(pairs.high)})"
    yield f"In units of {unit}, the distance between these two is {size}{interval}."
    largest = readings.get(_LARGEST)
    if largest is not None and within is None and n_judged == 2:
        yield (
            f"Their shares above a threshold differ most above {number_text(pair.threshold)}: by "
            f"{percent(largest.value).removesuffix('%')} percentage points (Kolmogorov-Smirnov)."
        )


def points_text(value: float) -> str:
    """Format a share as percentage points: one decimal, or two significant digits for small positive values.

    Examples
    --------
    >>> points_text(0.123), points_text(0.0), points_text(0.0004), points_text(1e-9)
    ('12.3', '0.0', '0.04', '<0.01')
    """
    points = min(100.0, 100 * value)
    if points <= 0 or points >= 0.05:
        return f"{points:.1f}"
    return f"{points:.2f}" if points >= 0.005 else "<0.01"


def four_fifths_text(summary: ThresholdSummary) -> str:
    """Return how the ratio of selection rates compares with four fifths."""
    if summary.four_fifths is None:
        return "nobody is selected" if summary.favourable == "high" else "everyone is flagged"
    if not summary.conclusive:
        return "not certainly above or below four fifths"
    return "at least four fifths" if summary.four_fifths else "below four fifths"
