"""The outcome of a training of boosted trees in words, in those of the linear estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport.linear.training.evaluation import metrics_before_and_after
from fairtransport.linear.training.outcome import (
    Notice,
    describe_criterion,
    describe_weight,
    notices_of_losses,
    within_chance,
)

if TYPE_CHECKING:
    from fairtransport.boosting._responses import BoostedResponse
    from fairtransport.boosting._training import Training

__all__ = ["describe_training"]


def describe_training(
    training: Training, response: BoostedResponse, *, criterion: str, scale: str, max_disparity: float | None, rows: str
) -> Notice:
    """Describe rounds, weight, what parity cost and what was not reached; ``rows`` are those of the metrics."""
    ending = f"ran all {training.n_rounds} rounds"
    if training.is_stopped_early:
        ending = f"stopped after {training.n_rounds} rounds, the best on {rows}"
    if training.is_within_chance and training.parity_weight == 0.0:
        return describe_criterion(Notice(f"{within_chance()}; {ending}"), criterion, training.compared)
    losses = Notice()
    if training.parity_weight > 0.0:
        figures = metrics_before_and_after(training.evaluator, training.scores)
        # Shrinking gains nothing on the standardized scale: few rounds may spread scores less, that is all.
        excess = training.metrics.excess if scale == "score" else 0.0
        losses = notices_of_losses(training.metrics.information_kept, figures, excess, response)
    outcome = describe_weight(
        Notice(ending),
        losses,
        parity_weight=training.parity_weight,
        metrics=training.metrics,
        reason=training.reason,
        reached=training.reached,
        max_disparity=max_disparity,
        remedy=f"Repair (repair_amount, {response.repair})",
        rows=rows,
    )
    return describe_criterion(outcome, criterion, training.compared)
