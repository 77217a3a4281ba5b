"""Three readings of the same selection rates: the four-fifths rule, statistical and practical significance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._multiple_tests import holm
from fairtransport.auditing.proportions import Estimate, complement, difference, ratio

if TYPE_CHECKING:
    from fairtransport.auditing.records import AuditData, GroupSummary, ThresholdSummary

__all__ = ["RateComparison", "compare_rates"]

_NORMAL = NormalDist()


@dataclass(frozen=True)
class RateComparison:
    """The rate of the favourable outcome in one group, compared with the group that has it most often.

    Parameters
    ----------
    threshold : float
    group, reference : str
        Names of the group, and of the group with the highest rate.
    rate : Estimate
        Rate of the favourable outcome: of selection, or of not being flagged with ``favourable="low"``.
    ratio : Estimate
        Of the rate to that of the reference.
    four_fifths : bool
        Whether the ratio is at least 0.8: the rule of thumb of the Uniform Guidelines on Employee Selection Procedures
        (1978). It takes no account of the number of rows.
    difference : Estimate
        The rate of the reference minus that of the group.
    p_value : float
        Two-sided, of equal rates; adjusted for the number of groups by Holm's method.
    significant : bool
        Whether ``p_value`` is at most 1 - confidence: statistical significance.
    material : bool
        Whether ``difference`` is at least the materiality of the audit: practical significance.
    """

    threshold: float
    group: str
    reference: str
    rate: Estimate
    ratio: Estimate
    four_fifths: bool
    difference: Estimate
    p_value: float
    significant: bool
    material: bool


def compare_rates(audit: AuditData) -> tuple[RateComparison, ...]:
    """Compare the rates of the groups that are judged with the highest, at each threshold.

    Parameters
    ----------
    audit : AuditData

    Returns
    -------
    tuple of RateComparison
        Empty at thresholds where nobody has the favourable outcome.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> scores = np.r_[np.linspace(0, 1, 500), np.linspace(0, 1, 500) ** 2]
    >>> audit = ft.audit(scores, sensitive_features=np.repeat(["a", "b"], 500), random_state=0)
    >>> comparison, = compare_rates(audit)
    >>> comparison.group, comparison.four_fifths, comparison.significant, comparison.material
    ('b', False, True, True)
    """
    return tuple(row for at in audit.thresholds for row in _compare_at(audit, at))


def _compare_at(audit: AuditData, at: ThresholdSummary) -> list[RateComparison]:
    rates = at.rates if at.favourable == "high" else tuple(map(complement, at.rates))
    best = at.better_off
    if at.four_fifths is None:
        return []
    judged = [index for index, group in enumerate(audit.groups) if group.judged and index != best]
    alpha, rows = 1 - audit.settings.confidence, []
    for index in judged:
        gap = difference(rates[best], rates[index])
        rate_ratio = ratio(rates[index], rates[best])
        p_value = _test(rates[best], audit.groups[best], rates[index], audit.groups[index])
        rows.append(
            RateComparison(
                at.threshold,
                audit.groups[index].name,
                audit.groups[best].name,
                rates[index],
                rate_ratio,
                bool(rate_ratio.value >= 0.8),
                gap,
                p_value,
                significant=False,
                material=bool(gap.value >= audit.settings.materiality),
            )
        )
    adjusted = holm(np.array([row.p_value for row in rows]))
    return [
        replace(row, p_value=float(p_value), significant=bool(p_value <= alpha))
        for row, p_value in zip(rows, adjusted, strict=True)
    ]


def _test(one: Estimate, first: GroupSummary, other: Estimate, second: GroupSummary) -> float:
    """Return the p-value of the test of two proportions with a pooled variance, for effective sample sizes."""
    sizes = first.effective_rows, second.effective_rows
    pooled = (one.value * sizes[0] + other.value * sizes[1]) / sum(sizes)
    variance = pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])
    if variance <= 0:
        return 1.0
    return 2 * (1 - _NORMAL.cdf(abs(one.value - other.value) / math.sqrt(variance)))
