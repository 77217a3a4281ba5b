"""The main results of an audit, in large type at the top of its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import percent, score_text
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.units import cut_text, points_text, scores_word, threshold_heading

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, WithinStrata

__all__ = ["Card", "collect_cards"]


@dataclass(frozen=True)
class Card:
    """One result: its name, the value with its unit, and one or two lines of detail."""

    name: str
    value: str
    detail: str
    remark: str = ""
    unit: str = ""


def collect_cards(audit: Audit) -> list[Card]:
    """Return the average and the largest gap, the ratio of selection rates, and the error rate if there are labels."""
    shown: Audit | WithinStrata = audit if audit.within is None else audit.within
    pairs, first, farthest = shown.readings[audit.settings.pairs_metric], audit.thresholds[0], shown.farthest
    interval = f"{audit.settings.confidence:.0%} interval"
    n_pairs = audit.verdict.n_pairs if audit.within is None else audit.within.n_pairs
    points, mean = 100 / n_pairs, shown.mean_pairwise_distance
    criterion = "" if audit.within is None else f", {audit.settings.criterion_text}"
    widest = farthest.estimate or Estimate(farthest.distance, 0.0, 1.0)
    between = " and ".join(score_text(score) for score in farthest.most_between)
    cards = [
        Card(
            f"Average gap between two groups{criterion}",
            points_text(mean.value),
            f"{interval} {points_text(mean.low)} to {points_text(mean.high)}",
            f"uncorrected {points * pairs.value:.1f}, by chance alone {points * (pairs.floor or 0):.1f}",
            unit="points",
        ),
        Card(
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
        cards.append(Card(name, f"{first.ratio.value:.2f}", detail, "four fifths is 0.80"))
    if "error_rate" in audit.readings:
        error = audit.readings["error_rate"]
        detail = f"{interval} {percent(error.low)} to {percent(error.high)}"
        area = "" if audit.auc is None else f"area under the ROC curve {audit.auc.value:.2f}"
        where = cut_text(audit, first.threshold)
        cards.append(Card(f"Wrong decisions at {where}", percent(error.value), detail, area))
    if audit.regression is not None and (root := audit.regression.overall["rmse"]) is not None:
        r2 = audit.regression.overall["r2"]
        detail = f"{interval} {score_text(root.low)} to {score_text(root.high)}"
        spread = f"R² {r2.value:.2f}, " if r2 is not None else ""
        remark = f"{spread}standard deviation of the label {score_text(audit.regression.label_deviation)}"
        cards.append(Card("Root mean squared error", score_text(root.value), detail, remark))
    return cards
