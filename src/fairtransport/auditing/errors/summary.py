"""The errors of an audit in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import isolated, percent

if TYPE_CHECKING:
    from fairtransport.auditing.records import AuditData

__all__ = ["errors_sentence"]


def errors_sentence(audit: AuditData) -> str | None:
    """Return which groups have the lowest and highest error rates at the first threshold; None without labels.

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
        f"Above {first.threshold:g}, {parts[0]}, {parts[1]}: equalized odds are violated by {size} "
        f"({interval}){chance}."
    )
