"""An audit in plain words: one sentence with its uncertainty, and a few more on what readers ask next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import count_word, isolated, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing import Audit, Reading, ThresholdSummary
    from fairtransport.report._what_if import WhatIf

__all__ = ["PAIRS", "AuditVerdict", "audit_verdict", "four_fifths_text", "gap_points", "n_pairs"]

PAIRS = "strong_pairwise_disparity"
_MAX_NAMES = 5
_COARSE = 0.05  # a mean distance that is mentioned when it cannot be ruled out


@dataclass(frozen=True)
class AuditVerdict:
    """Verdict on an audit.

    Parameters
    ----------
    standing : {"apart", "alike", "unsure"}
        Whether the groups differ by more than chance; unsure if fewer than two groups have enough rows.
    sentence : str
        One sentence. Names are enclosed in U+2068 and U+2069; see `fairtransport._text.isolated`.
    points : tuple of str
        Further sentences: selection rates, cost of repair, groups with few rows.
    """

    standing: str
    sentence: str
    points: tuple[str, ...]


def audit_verdict(audit: Audit, what_if: WhatIf | None = None) -> AuditVerdict:
    """State how far apart the groups are, with its uncertainty, and what repair would cost.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    what_if : WhatIf, default=None
        The audit with repair; if None, there is no sentence about repair.

    Returns
    -------
    AuditVerdict

    Notes
    -----
    The groups differ if the confidence interval of the sum over all pairs does not contain 0. It contains 0 unless a
    permutation test rejects equality, so fewer than 40 permutations never find a difference at 95% confidence.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from fairtransport._text import plain
    >>> rng = np.random.default_rng(0)
    >>> scores = np.r_[rng.beta(2, 4, 500), rng.beta(4, 2, 500)]
    >>> audit = ft.audit(scores, sensitive_features=np.repeat(["a", "b"], 500), random_state=0)
    >>> print(plain(audit_verdict(audit).sentence))
    The two groups are scored differently: averaged over all thresholds, the shares of a and b above the threshold lie
    32.8 percentage points apart (95% interval 30.7 to 35.0).
    """
    sure = sum(group.judged for group in audit.groups)
    reading = audit.readings[PAIRS]
    if sure < 2:
        standing, sentence = "unsure", _too_few(audit, sure)
    elif reading.low <= 0:
        standing, sentence = "alike", _alike(audit, reading)
    else:
        standing, sentence = "apart", _apart(audit, reading)
    return AuditVerdict(standing, sentence, tuple(_points(audit, what_if)))


def n_pairs(audit: Audit) -> int:
    """Return the number of pairs of groups, by which the sum of all distances is divided for their mean."""
    return len(audit.groups) * (len(audit.groups) - 1) // 2


def gap_points(audit: Audit, reading: Reading) -> tuple[float, float, float]:
    """Return the mean distance between two groups in percentage points, bias-corrected, with its interval."""
    points = 100 / n_pairs(audit)
    middle, low, high = (min(100.0, points * value) for value in (reading.corrected, reading.low, reading.high))
    return middle, low, high


def four_fifths_text(summary: ThresholdSummary) -> str:
    """Return how the ratio of selection rates compares with four fifths."""
    if summary.four_fifths is None:
        return "nobody is selected"
    if not summary.conclusive:
        return "not certainly above or below four fifths"
    return "at least four fifths" if summary.four_fifths else "below four fifths"


def _groups(audit: Audit) -> str:
    return f"{count_word(len(audit.groups))} groups"


def _gap(audit: Audit, reading: Reading) -> str:
    """Describe the mean distance between two groups, bias-corrected, with its interval."""
    middle, low, high = gap_points(audit, reading)
    interval = f"{low:.1f} to {high:.1f}"
    apart = f"{middle:.1f} percentage points apart"
    mean = " on average" if len(audit.groups) > 2 else ""
    return f"{apart}{mean} ({audit.settings.confidence:.0%} interval {interval})"


def _apart(audit: Audit, reading: Reading) -> str:
    pair = audit.farthest
    lower, higher = isolated(pair.lower), isolated(pair.higher)
    start = f"The {_groups(audit)} are scored differently: averaged over all thresholds, the shares of"
    if len(audit.groups) == 2:
        return f"{start} {lower} and {higher} above the threshold lie {_gap(audit, reading)}."
    return (
        f"{start} two groups above the threshold lie {_gap(audit, reading)}, and those of {lower} and {higher}, the "
        f"two farthest apart, {100 * pair.distance:.1f}."
    )


def _alike(audit: Audit, reading: Reading) -> str:
    coarse = reading.high / n_pairs(audit) >= _COARSE
    return (
        f"The {_groups(audit)} are scored no more differently than expected by chance: averaged over all thresholds, "
        f"the shares of two groups above the threshold lie {_gap(audit, reading)}"
        f"{', so with so few rows a difference cannot be ruled out either' if coarse else ''}."
    )


def _too_few(audit: Audit, sure: int) -> str:
    subject = "no group has" if sure == 0 else "only one group has"
    return (
        f"Too few rows to judge: {subject} {audit.settings.min_judged_rows} rows or more; the shares of two groups above "
        f"a threshold lie {_gap(audit, audit.readings[PAIRS])}."
    )


def _points(audit: Audit, what_if: WhatIf | None) -> Iterator[str]:
    first = audit.thresholds[0]
    low, high = (isolated(audit.groups[index].name) for index in (first.lowest, first.highest))
    if first.four_fifths is None:
        yield f"Above {first.threshold:g} nobody is selected."
    elif first.lowest == first.highest:
        yield f"Above {first.threshold:g}, {percent(first.rates[first.lowest].value)} of every group are selected."
    else:
        yield (
            f"Above {first.threshold:g}, {percent(first.rates[first.lowest].value)} of {low} and "
            f"{percent(first.rates[first.highest].value)} of {high} are selected: a ratio of {first.ratio.value:.2f} "
            f"({first.ratio.low:.2f} to {first.ratio.high:.2f}), {four_fifths_text(first)}."
        )
    if what_if is not None and what_if.reduced.can_repair:
        yield _repair(audit, what_if)
    if audit.not_judged:
        yield _unsure(audit)


def _repair(audit: Audit, what_if: WhatIf) -> str:
    threshold = audit.thresholds[0].threshold
    before, after = what_if.at(threshold), what_if.at(threshold, amount=1.0)
    left = 100 * after.disparity / n_pairs(audit)
    text = f"Full repair of these scores would leave {left:.1f} percentage points between two groups on average"
    if before.error is None or after.error is None:
        return f"{text}."
    change = 100 * (after.error - before.error)
    if abs(change) < 0.05:
        return f"{text} and as many wrong decisions at that threshold."
    return (
        f"{text}, with {abs(change):.1f} {'more' if change > 0 else 'fewer'} wrong decisions per 100 people at that "
        "threshold."
    )


def _unsure(audit: Audit) -> str:
    names = [isolated(name) for name in audit.not_judged[:_MAX_NAMES]]
    count = len(audit.not_judged)
    more = f" and {count - _MAX_NAMES} more" if count > _MAX_NAMES else ""
    subject = "One group has" if count == 1 else f"{count_word(count).capitalize()} groups have"
    return f"{subject} fewer than {audit.settings.min_judged_rows} rows, too few to judge: {', '.join(names)}{more}."
