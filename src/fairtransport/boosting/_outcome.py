"""The outcome of a training of boosted trees in words, in those of the linear estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport.linear.training.evaluation import metrics_before_and_after
from fairtransport.linear.training.outcome import (
    Notice,
    describe_criterion,
    describe_evidence,
    describe_weight,
    notices_of_losses,
    within_chance,
)
from fairtransport.linear.training.parity_evidence import parity_evidence

if TYPE_CHECKING:
    from fairtransport.boosting._responses import BoostedResponse
    from fairtransport.boosting._training import Training

__all__ = ["describe_training"]


def describe_training(
    training: Training,
    response: BoostedResponse,
    *,
    criterion: str,
    scale: str,
    seeks_parity: bool,
    max_disparity: float | None,
    rows: str,
) -> Notice:
    """Describe rounds, weight, what parity cost and what was not reached.

    Parameters
    ----------
    training : Training
    response : BoostedResponse
    criterion, scale, max_disparity
        The parameters.
    seeks_parity : bool
        Whether the weight was chosen such that groups differ no more than by chance, which rows may or may not show.
    rows : str
        The rows of the metrics.
    """
    ending = f"ran all {training.n_rounds} rounds"
    if training.is_stopped_early:
        ending = f"stopped after {training.n_rounds} rounds, the best on {rows}"
    remedy = f"Repair (repair_amount, {response.repair})"
    evidence = None
    if seeks_parity and training.compared.is_everywhere:
        evidence = parity_evidence(training.scores, training.evaluator.comparisons.criterion)
    if training.is_within_chance and training.parity_weight == 0.0:
        start = within_chance()
        if evidence is not None and evidence.shows_difference:  # the test of training rows is the stricter one
            start = "groups of the training rows differ too little to be distinguished from chance; nothing was moved"
        outcome = Notice(f"{start}; {ending}")
    else:
        outcome = describe_weight(
            Notice(ending),
            _losses(training, response, scale),
            parity_weight=training.parity_weight,
            metrics=training.metrics,
            reason=training.reason,
            reached=training.reached,
            max_disparity=max_disparity,
            remedy=remedy,
            rows=rows,
        )
    if evidence is not None:
        outcome = describe_evidence(outcome, evidence, response, reached=training.reached, remedy=remedy, rows=rows)
    return describe_criterion(outcome, criterion, training.compared)


def _losses(training: Training, response: BoostedResponse, scale: str) -> Notice:
    """Describe what parity cost."""
    if training.parity_weight == 0.0:
        return Notice()
    figures = metrics_before_and_after(training.evaluator, training.scores)
    # Shrinking gains nothing on the standardized scale: few rounds may spread scores less, that is all.
    excess = training.metrics.excess if scale == "score" else 0.0
    return notices_of_losses(training.metrics.information_kept, figures, excess, response)
