"""What a page adds to the verdict on an audit: the cost of a repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtransport.auditing import Audit
    from fairtransport.report._what_if import WhatIf

__all__ = ["compared_groups", "verdict_points"]


def verdict_points(audit: Audit, what_if: WhatIf) -> list[str]:
    """Return the further sentences of the verdict, with one on repair where the scores can be repaired.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    what_if : WhatIf
        The audit with repair.

    Returns
    -------
    list of str
        Names are enclosed in U+2068 and U+2069; see `fairtransport._text.isolated`.
    """
    points = list(audit.verdict.points)
    return [*points, _repair(audit, what_if)] if what_if.reduced.can_repair else points


def compared_groups(audit: Audit) -> list[int]:
    """Return the indices of the groups that the disparities refer to: those that are judged, or all."""
    judged = [index for index, group in enumerate(audit.groups) if group.judged]
    return judged if len(judged) >= 2 else list(range(len(audit.groups)))


def _repair(audit: Audit, what_if: WhatIf) -> str:
    threshold = audit.thresholds[0].threshold
    before, after = what_if.at(threshold), what_if.at(threshold, amount=1.0, chosen=compared_groups(audit))
    left = 100 * after.disparity / audit.verdict.n_pairs
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
