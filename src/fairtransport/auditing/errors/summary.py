"""The errors of an audit in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import isolated, percent, score_text
from fairtransport.auditing.units import threshold_text

if TYPE_CHECKING:
    from fairtransport.auditing.errors.regression import RegressionErrors
    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData

__all__ = ["errors_sentence"]


def errors_sentence(audit: AuditData) -> str | None:
    """Return which groups have the lowest and highest errors; None without labels.

    Of classes, the error rates at the first threshold; of real-valued labels, root mean squared errors and mean
    residuals.

    Parameters
    ----------
    audit : AuditData

    Returns
    -------
    str or None
        Names are enclosed in U+2068 and U+2069; see `fairtransport._text.isolated`. None also where fewer than two
        groups have enough rows of both labels.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from fairtransport._text import plain
    >>> scores, labels = np.tile([0.9, 0.1, 0.9, 0.1], 100), np.tile([1, 0, 0, 0], 100)
    >>> groups = np.tile(["a", "a", "a", "b"], 100)
    >>> audit = ft.audit(scores, labels, sensitive_features=groups, random_state=0)
    >>> errors_sentence(audit) is None  # all positive rows belong to one group
    True
    """
    if audit.regression is not None:
        return _residuals_sentence(audit, audit.regression)
    if not audit.error_rates:
        return None
    first = audit.error_rates[0]
    parts = []
    for rate, name in (("true_positive_rate", "true"), ("false_positive_rate", "false")):
        gap = first.gaps[rate]
        if gap is None or not gap.judged:
            return None
        ends = []
        for index in (gap.lowest, gap.highest):
            estimate = first.groups[index].rates[rate]
            if estimate is None:
                return None
            ends.append(f"{percent(estimate.value)} ({isolated(audit.groups[index].name)})")
        parts.append(f"{name} positive rates lie between {ends[0]} and {ends[1]}")
    odds = first.equalized_odds
    if odds is None:
        return None
    size = f"{100 * odds.value:.1f} percentage points"
    interval = f"{audit.settings.confidence:.0%} interval {100 * odds.low:.1f} to {100 * odds.high:.1f}"
    chance = ", which chance may explain" if odds.low <= 0 else ""
    return (
        f"{threshold_text(audit, audit.thresholds[0])}, {parts[0]}, {parts[1]}: equalized odds are violated by {size} "
        f"({interval}){chance}."
    )


def _residuals_sentence(audit: AuditData, errors: RegressionErrors) -> str | None:
    judged = [group for group, summary in zip(errors.groups, audit.groups, strict=True) if summary.judged]
    if len(judged) < 2:
        return None
    roots: list[tuple[Estimate, str]] = []
    means: list[tuple[Estimate, str]] = []
    for group in judged:
        root, mean = group.figures["rmse"], group.figures["mean_residual"]
        if root is None or mean is None:
            return None
        roots.append((root, isolated(group.name)))
        means.append((mean, isolated(group.name)))
    low, high = (choose(roots, key=lambda pair: pair[0].value) for choose in (min, max))
    under, over = (choose(means, key=lambda pair: pair[0].value) for choose in (max, min))
    known = [p for group in judged for figure in ("rmse", "mean_residual") if (p := group.p_values[figure]) is not None]
    chance = ", which chance may explain" if known and min(known) > 1 - audit.settings.confidence else ""
    return (
        f"Root mean squared errors lie between {score_text(low[0].value)} ({low[1]}) and {score_text(high[0].value)} "
        f"({high[1]}), and mean residuals (label minus prediction) between {score_text(over[0].value)} ({over[1]}) and "
        f"{score_text(under[0].value)} ({under[1]}){chance}."
    )
