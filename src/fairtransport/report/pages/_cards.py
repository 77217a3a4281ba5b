"""The figures that stand large on top of an audit's page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import percent, score_text
from fairtransport.report.pages.audit_verdict import PAIRS, gap_points, n_pairs

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

__all__ = ["Card", "audit_cards"]


@dataclass(frozen=True)
class Card:
    """One figure: its name, the value with its unit, and one or two lines about it."""

    name: str
    value: str
    told: str
    more: str = ""
    unit: str = ""


def audit_cards(audit: Audit) -> list[Card]:
    """Return the average and the largest gap, the ratio of rates, and the errors where there are labels."""
    pairs, first, apart = audit.readings[PAIRS], audit.thresholds[0], audit.farthest
    interval = f"{audit.settings.confidence:.0%} interval"
    points = 100 / n_pairs(audit)
    gap, low, high = gap_points(audit, pairs)
    most = " and ".join(score_text(score) for score in apart.most_between)
    cards = [
        Card(
            "Average gap between two groups",
            f"{gap:.1f}",
            f"{interval} {low:.1f} to {high:.1f}",
            f"as read {points * pairs.value:.1f}, by chance alone {points * (pairs.floor or 0):.1f}",
            unit="points",
        ),
        Card(
            "Gap of the farthest two",
            f"{100 * apart.distance:.1f}",
            f"half of it between scores {most}",
            unit="points",
        ),
    ]
    if first.four_fifths is not None:
        told = f"{interval} {first.ratio.low:.2f} to {first.ratio.high:.2f}"
        name = f"Lowest over highest rate above {first.threshold:g}"
        cards.append(Card(name, f"{first.ratio.value:.2f}", told, "four fifths is 0.80"))
    if "error_rate" in audit.readings:
        error = audit.readings["error_rate"]
        told = f"{interval} {percent(error.low)} to {percent(error.high)}"
        area = "" if audit.auc is None else f"area under the ROC curve {audit.auc.value:.2f}"
        cards.append(Card(f"Wrong decisions at {first.threshold:g}", percent(error.value), told, area))
    return cards
