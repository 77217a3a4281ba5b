"""Areas under ROC curves between groups, and the errors of an audit in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._arrays import Floats
from fairtransport._text import isolated, percent, score_text
from fairtransport.auditing.errors.separation import N_DRAWS, interval_of_norm
from fairtransport.auditing.options import Options
from fairtransport.auditing.proportions import Estimate, area_under_curve, difference
from fairtransport.auditing.records import group_text, threshold_text

if TYPE_CHECKING:
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors.regression import RegressionErrors
    from fairtransport.auditing.errors.separation import CorrectedEstimate
    from fairtransport.auditing.records import AuditData


def errors_sentence(audit: AuditData) -> str | None:
    """Return the positive label and the lowest and highest error rates, or residuals; None without labels."""
    if audit.regression is not None:
        return _residuals_sentence(audit, audit.regression)
    positive = audit.provenance.positive
    label = "" if positive is None else f"The positive label is {isolated(positive)}."
    return " ".join(filter(None, (label, _rates_sentence(audit)))) or None


def _rates_sentence(audit: AuditData) -> str | None:
    """Return the lowest and highest rates at the first threshold; None where too few groups can be judged."""
    first, parts = (audit.error_rates or (None,))[0], []
    if first is None or (odds := first.equalized_odds) is None:
        return None
    for rate, name in (("true_positive_rate", "true"), ("false_positive_rate", "false")):
        gap = first.gaps[rate]
        if gap is None or not gap.judged:
            return None
        ends = (
            f"{percent(estimate.value)} ({group_text(audit, audit.names[at])})"
            for at in (gap.lowest, gap.highest)
            if (estimate := first.groups[at].rates[rate]) is not None
        )
        parts.append(f"{name} positive rates lie between {' and '.join(ends)}")
    interval = f"{audit.settings.confidence:.0%} interval {100 * odds.low:.1f} to {100 * odds.high:.1f}"
    chance = ", which chance may explain" if odds.low <= 0 else ""
    return (
        f"{threshold_text(audit, audit.thresholds[0])}, {', '.join(parts)}: equalized odds are violated by "
        f"{100 * odds.value:.1f} percentage points ({interval}){chance}."
    )


def _residuals_sentence(audit: AuditData, errors: RegressionErrors) -> str | None:
    judged = [group for group, summary in zip(errors.groups, audit.groups, strict=True) if summary.judged]
    if len(judged) < 2:
        return None
    ends = {}
    for figure in ("rmse", "mean_residual"):
        known = [
            (each.value, group_text(audit, group.name))
            for group in judged
            if (each := group.figures[figure]) is not None
        ]
        if len(known) < len(judged):
            return None
        low, high = (choose(known, key=lambda pair: pair[0]) for choose in (min, max))
        ends[figure] = f"between {score_text(low[0])} ({low[1]}) and {score_text(high[0])} ({high[1]})"
    p_values = [p for group in judged for figure in ends if (p := group.p_values[figure]) is not None]
    chance = ", which chance may explain" if p_values and min(p_values) > 1 - audit.settings.confidence else ""
    return (
        f"Root mean squared errors lie {ends['rmse']}, and mean residuals (label minus prediction) "
        f"{ends['mean_residual']}{chance}."
    )


# Areas under ROC curves between the positive rows of one group and the negative rows of another.

#: Number of groups, the largest ones, whose areas are crossed.
MAX_CROSSED = 20


@dataclass(frozen=True)
class CrossAuc:
    """Cross-group areas under the ROC curve (xAUC).

    Parameters
    ----------
    groups : tuple of int
        Indices of the groups: at most the `MAX_CROSSED` largest.
    areas : tuple of tuple of Estimate or None
        ``areas[i][j]`` is the probability that a positive row of the i-th of these groups scores above a negative row
        of the j-th, ties counting half. None where there are no such rows. The diagonal has the groups' own areas.
    disparity, pair : CorrectedEstimate, pair of int, or None
        The largest difference ``areas[i][j] - areas[j][i]`` between two groups with enough rows of both labels, with an
        interval that accounts for the selection of the pair, and the indices of these groups.

    References
    ----------
    Kallus and Zhou (2019), "The Fairness of Risk Scores Beyond Classification: Bipartite Ranking and the xAUC Metric".
    """

    groups: tuple[int, ...]
    areas: tuple[tuple[Estimate | None, ...], ...]
    disparity: CorrectedEstimate | None
    pair: tuple[int, int] | None


def estimate_cross_auc(evidence: Evidence, options: Options, rng: np.random.Generator) -> CrossAuc:
    """Estimate the cross-group areas of evidence with labels."""
    sizes = evidence.class_sizes
    largest = np.argsort(-evidence.histograms.effective_sizes, kind="stable")[:MAX_CROSSED]
    groups = tuple(sorted(largest.tolist()))
    areas = tuple(
        tuple(
            area_under_curve(
                evidence.class_sample(0, other),
                evidence.class_sample(1, one),
                (float(sizes[0, other]), float(sizes[1, one])),
                options.inference.confidence,
            )
            for other in groups
        )
        for one in groups
    )
    judged = [at for at, group in enumerate(groups) if sizes[:, group].min() >= options.groups.min_size]
    disparity, pair = _largest_difference(areas, judged, options, rng)
    return CrossAuc(groups, areas, disparity, None if pair is None else (groups[pair[0]], groups[pair[1]]))


def _largest_difference(
    areas: tuple[tuple[Estimate | None, ...], ...], judged: list[int], options: Options, rng: np.random.Generator
) -> tuple[CorrectedEstimate | None, tuple[int, int] | None]:
    differences = {
        (one, other): difference(above, below)
        for at, one in enumerate(judged)
        for other in judged[:at]
        if (above := areas[one][other]) is not None and (below := areas[other][one]) is not None
    }
    if not differences:
        return None, None
    pairs, estimates = list(differences), list(differences.values())
    values = np.array([each.value for each in estimates])
    z = NormalDist().inv_cdf((1 + options.inference.confidence) / 2)
    deviations = np.array([(each.high - each.low) / (2 * z) for each in estimates])
    noise = rng.normal(size=(N_DRAWS, values.size)) * deviations

    def largest(array: Floats) -> Floats:
        maximum: Floats = np.abs(array).max(axis=-1)
        return maximum

    widest = int(np.argmax(np.abs(values)))
    one, other = pairs[widest] if values[widest] >= 0 else pairs[widest][::-1]
    return interval_of_norm(values, noise, largest, options.inference.confidence), (one, other)
