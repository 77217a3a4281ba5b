"""The outcome of training in words, and warnings where parity cost too much or was not reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

from fairtransport._warnings import FairnessWarning
from fairtransport.criteria import criterion_text, needs_labels
from fairtransport.linear.training.weight_path import MIN_INFORMATION

if TYPE_CHECKING:
    from fairtransport.criteria import ComparedStrata
    from fairtransport.linear.responses import Response
    from fairtransport.linear.responses.base import ScoredResponse
    from fairtransport.linear.training.evaluation import ScoreMetrics
    from fairtransport.linear.training.parity_evidence import ParityEvidence

__all__ = [
    "Notice",
    "criterion_text",
    "describe_criterion",
    "describe_evidence",
    "describe_lbfgs",
    "describe_weight",
    "notices_of_losses",
    "within_chance",
]

_MATERIAL = 0.02  # mean difference of selection rates above which a warning is issued
_CONSTANT = 0.01  # of the initial spread: nearly constant scores
_LOWERED, _FOLLOWED = 0.25, 0.5  # a reduction of SPDD that matters, and the share of it that ranks should show
_ABOVE_CHANCE = 1.3  # times the mean disparity under chance
_MANY_SET_ASIDE = 1 / 3  # of the rows, which are compared with nobody

Figures = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Notice:
    """A remark for ``outcome_`` and the warnings that go with it.

    Attributes
    ----------
    text : str
        Empty where there is nothing to say.
    warnings : tuple of (str, type)
        Messages and their categories.
    """

    text: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()


def describe_criterion(outcome: Notice, criterion: str, strata: ComparedStrata) -> Notice:
    """Add to an outcome which criterion was trained for, and what could not be compared."""
    if strata.is_everywhere:
        return outcome
    has_strata = strata.compared[0].stratum is not None
    of_y = needs_labels(criterion) and strata.compared[0].label is None  # ranges of a real y are strata
    text, warnings = criterion_text(criterion, has_strata=has_strata and not of_y), outcome.warnings
    if has_strata:
        aside = f", {len(strata.set_aside)} set aside" if strata.set_aside else ""
        n = len(strata.compared)
        text += f" ({n} {'stratum' if n == 1 else 'strata'}{' of y' if of_y else ''}{aside})"
    if strata.share_set_aside > _MANY_SET_ASIDE:
        message = (
            f"{strata.share_set_aside:.0%} of the rows have only one group in their stratum and were set aside: "
            f"nothing is compared in {len(strata.set_aside)} of {len(strata.set_aside) + len(strata.compared)} strata. "
            "Use fewer or coarser strata."
        )
        warnings = (*warnings, (message, FairnessWarning))
    return Notice(f"{text}: {outcome.text}", warnings)


def within_chance(ending: str = "nothing was moved") -> str:
    """Return the outcome where groups of the initial model differ no more than by chance."""
    return f"the groups of the initial model differ no more than by chance; {ending}"


def describe_evidence(
    outcome: Notice, evidence: ParityEvidence, response: ScoredResponse, *, reached: bool, remedy: str, rows: str
) -> Notice:
    """Add to the outcome of an automatic weight what rows show about parity, where nothing was said of it.

    Parameters
    ----------
    outcome : Notice
        Where it has a `FairnessWarning`, that is enough.
    evidence : ParityEvidence
    response : ScoredResponse
    reached : bool
        Whether the goal of the weight was reached. Where it was not, even a small difference is to be excluded.
    remedy, rows : str
        As for `describe_weight`.
    """
    if any(category is FairnessWarning for _, category in outcome.warnings):
        return outcome
    disparity, floor, limit = (response.score_unit * x for x in (evidence.disparity, evidence.floor, evidence.limit))
    figures = f"the disparity of {evidence.n_rows:,} {rows} is {disparity:.3g}, its noise floor {floor:.3g}"
    points = f"{100 * evidence.rate_limit:.1f} percentage points"
    advice = f"The smallest group has {evidence.smallest_group:,} rows. Audit the model on new rows."
    if evidence.shows_difference:
        text = f"groups of the {rows} differ by more than chance"
        message = (
            f"Groups differ by more than chance: {figures} (p = {evidence.p_value:.2g}). All pairs of groups count the "
            f"same in it, also those of small groups. {advice} {remedy} with the group at hand goes further."
        )
    elif evidence.shows_parity and (reached or evidence.excludes_difference):
        return Notice(f"{outcome.text}; groups differ by at most {points} (95 % confidence)", outcome.warnings)
    else:
        text = f"{rows} cannot exclude a difference of {points}"
        message = (
            f"Parity cannot be shown: {figures}, and that of new rows may be up to {limit:.3g} with 95 % confidence, "
            f"{points} at equal shares selected. {advice} More rows, or fewer and larger groups (small_groups), show "
            "more."
        )
    return Notice(f"{outcome.text}; {text}", (*outcome.warnings, (message, FairnessWarning)))


def describe_lbfgs(
    *,
    n_iter: int,
    converged: bool,
    max_iter: int,
    parity_weight: float,
    metrics: ScoreMetrics,
    figures: Figures,
    reason: str,
    reached: bool,
    max_disparity: float | None,
    group_specific: bool,
    response: Response,
) -> Notice:
    """Describe a run of L-BFGS.

    Parameters
    ----------
    n_iter, converged, max_iter
        Of the final run.
    parity_weight : float
        The weight that was used.
    metrics : ScoreMetrics
        Of the trained model, out of fold where it is flexible.
    figures : dict
        Metrics of the training rows before and after.
    reason : str
        Why this weight was chosen; empty where it was not.
    reached : bool
        Whether the goal of an automatic weight was reached.
    max_disparity, group_specific
        The parameters.
    response : Response
    """
    warnings: tuple[tuple[str, type[Warning]], ...] = ()
    text = f"converged after {n_iter} iterations"
    if not converged:
        text = f"stopped after max_iter={max_iter} iterations, before convergence"
        warnings = ((f"The solver {text}. Raise max_iter or tol; the model so far is kept.", ConvergenceWarning),)
    if parity_weight > 0.0:
        losses = notices_of_losses(metrics.information_kept, figures, metrics.excess, response)
    else:
        losses = _notice_of_group_weights(metrics.information_kept, response)
    remedy = f"Repair ({response.repair})"
    if not group_specific:
        remedy = f"Own weights for each group ({response.aware_option}) or repair ({response.repair})"
    return describe_weight(
        Notice(text, warnings),
        losses,
        parity_weight=parity_weight,
        metrics=metrics,
        reason=reason,
        reached=reached,
        max_disparity=max_disparity,
        remedy=remedy,
    )


def describe_weight(
    ending: Notice,
    losses: Notice,
    *,
    parity_weight: float,
    metrics: ScoreMetrics,
    reason: str,
    reached: bool,
    max_disparity: float | None,
    remedy: str,
    rows: str = "training rows",
) -> Notice:
    """Describe how training ended, why its weight was chosen, and what parity cost.

    Parameters
    ----------
    ending, losses : Notice
        How training ended, and what parity cost; see `notices_of_losses`.
    parity_weight, metrics, reason, reached, max_disparity
        As for `describe_lbfgs`.
    remedy : str
        What goes further with the group at hand.
    rows : str
        The rows that metrics are of.
    """
    text, warnings = ending.text, [*ending.warnings, *losses.warnings]
    if reason:
        text = f"{reason} (parity_weight {parity_weight:.3g}); {text}"
        if not reached:
            warnings += _warnings_of_disparity(metrics, reason, max_disparity, remedy=remedy, rows=rows)
    return Notice(f"{text}; {losses.text}" if losses.text else text, tuple(warnings))


def notices_of_losses(information_kept: float, figures: Figures, excess: float, response: ScoredResponse) -> Notice:
    """Describe what parity cost: nearly constant scores, lost information, or scores that only shrank."""
    spread = figures["spread"]
    if spread[1] < _CONSTANT * spread[0]:
        remark = "the scores are nearly constant"
    elif information_kept < MIN_INFORMATION:
        remark = f"{max(information_kept, 0.0):.0%} of the initial model's information is left"
    else:
        return _notice_of_shrinkage(figures, excess, response.shrinkage_remedies)
    before, after = figures[response.quality_name]
    message = (
        f"Parity cost most of the model: {remark}; the {response.quality_text} fell from {before:.3f} to {after:.3f}. "
        "These features allow no more at this weight. Use a smaller parity_weight or amount, parity_weight='auto', "
        f"repair with the group at hand ({response.repair}, {response.aware_option}), or another criterion."
    )
    return Notice(remark, ((message, FairnessWarning),))


def _notice_of_shrinkage(figures: Figures, excess: float, remedies: str) -> Notice:
    before, after = figures["disparity"]
    lowered = 1.0 - after / before if before > 0.0 else 0.0
    ranks = figures["rank_disparity"]
    ranks_lowered = 1.0 - ranks[1] / max(ranks[0], 1e-300)
    if not (lowered > _LOWERED and ranks_lowered < _FOLLOWED * lowered and excess > _ABOVE_CHANCE):
        return Notice()
    message = (
        f"Scores were squeezed: the disparity fell by {lowered:.0%}, but the order of people is nearly as unequal as "
        f"before (rank disparity {ranks[0]:.3f} to {ranks[1]:.3f}). Use {remedies}."
    )
    return Notice("scores were squeezed more than their order was equalised", ((message, FairnessWarning),))


def _notice_of_group_weights(information_kept: float, response: Response) -> Notice:
    """Describe weights for each group that lose the information without any parity: there are too few rows."""
    if information_kept >= MIN_INFORMATION:
        return Notice()
    share = f"{max(information_kept, 0.0):.0%}"
    remark = f"weights for each group keep {share} of the initial model's information on rows left out"
    message = (
        f"There are too few rows for group_specific=True: {remark}. Use shared weights, or repair with the group at "
        f"hand ({response.repair})."
    )
    return Notice(remark, ((message, FairnessWarning),))


def _warnings_of_disparity(
    metrics: ScoreMetrics, reason: str, max_disparity: float | None, *, remedy: str, rows: str
) -> list[tuple[str, type[Warning]]]:
    if max_disparity is not None:
        remaining = f"max_disparity={max_disparity:g} was not reached on {rows}: {metrics.disparity:.4g}"
    elif metrics.excess > _ABOVE_CHANCE and metrics.rank_distance > _MATERIAL:
        remaining = (
            f"at equal shares selected, groups still differ by {100 * metrics.rank_distance:.1f} percentage "
            f"points, {metrics.excess:.1f} times what chance shows"
        )
    else:
        return []
    message = f"Parity was not reached: {remaining}; {reason}. {remedy} with the group at hand goes further."
    return [(message, FairnessWarning)]
