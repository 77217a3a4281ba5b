"""An audit in plain words: one sentence with how sure it is, and a few more that answer what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import count_word, isolated, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing import Audit, Reading, ThresholdSummary
    from fairtransport.report.pages._what_if import WhatIf

__all__ = ["PAIRS", "AuditVerdict", "audit_verdict", "four_fifths_words", "gap_points", "n_pairs"]

PAIRS = "strong_pairwise_disparity"
_FEW = 5  # names in a list
_COARSE = 0.05  # a mean difference of this many points that is not ruled out deserves a word


@dataclass(frozen=True)
class AuditVerdict:
    """What to tell first.

    Parameters
    ----------
    standing : {"apart", "alike", "unsure"}
        Whether the groups differ by more than chance; unsure where fewer than two groups have rows enough.
    sentence : str
        One sentence. Names in it stand between U+2068 and U+2069; see `fairtransport._text.isolated`.
    points : tuple of str
        More sentences, each an answer of its own.
    """

    standing: str
    sentence: str
    points: tuple[str, ...]


def audit_verdict(audit: Audit, what_if: WhatIf | None = None) -> AuditVerdict:
    """Say how far apart the groups are, how sure that is, and what repair would cost.

    Parameters
    ----------
    audit : Audit
    what_if : WhatIf, optional
        Brings the sentence about repair.

    Returns
    -------
    AuditVerdict

    Notes
    -----
    Groups are called apart when the interval of the sum over all pairs does not reach 0. It does reach it where a
    permutation test sees no difference, so fewer than 40 permutations never find one at 95% confidence.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from fairtransport._text import plain
    >>> rng = np.random.default_rng(0)
    >>> scores = np.r_[rng.beta(2, 4, 500), rng.beta(4, 2, 500)]
    >>> found = ft.audit(scores, sensitive_features=np.repeat(["a", "b"], 500), random_state=0)
    >>> print(plain(audit_verdict(found).sentence))
    The two groups are scored differently: averaged over all thresholds, the shares of a and b above the threshold lie
    32.8 percentage points apart (95% interval 30.7 to 35.0).
    """
    sure = sum(not group.unsure for group in audit.groups)
    reading = audit.readings[PAIRS]
    if sure < 2:
        standing, sentence = "unsure", _too_few(audit, sure)
    elif reading.low <= 0:
        standing, sentence = "alike", _alike(audit, reading)
    else:
        standing, sentence = "apart", _apart(audit, reading)
    return AuditVerdict(standing, sentence, tuple(_points(audit, what_if)))


def n_pairs(audit: Audit) -> int:
    """Return how many pairs of groups there are: the sum of all distances, over this, is their mean."""
    return len(audit.groups) * (len(audit.groups) - 1) // 2


def gap_points(audit: Audit, reading: Reading) -> tuple[float, float, float]:
    """Return the mean distance of two groups in percentage points, without bias, and its interval; at most 100."""
    points = 100 / n_pairs(audit)
    middle, low, high = (min(100.0, points * value) for value in (reading.corrected, reading.low, reading.high))
    return middle, low, high


def four_fifths_words(at: ThresholdSummary) -> str:
    """Return how the ratio of a threshold stands to four fifths, in words."""
    if at.four_fifths is None:
        return "nobody is selected"
    if not at.sure:
        return "not surely above or below four fifths"
    return "at least four fifths" if at.four_fifths else "below four fifths"


def _groups(audit: Audit) -> str:
    return f"{count_word(len(audit.groups))} groups"


def _gap(audit: Audit, reading: Reading) -> str:
    """Return the mean distance of two groups, without what small groups add to it, and its interval."""
    middle, low, high = gap_points(audit, reading)
    interval = f"{low:.1f} to {high:.1f}"
    apart = f"{middle:.1f} percentage points apart"
    mean = " on average" if len(audit.groups) > 2 else ""
    return f"{apart}{mean} ({audit.settings.confidence:.0%} interval {interval})"


def _apart(audit: Audit, reading: Reading) -> str:
    pair = audit.farthest
    lower, higher = isolated(pair.lower), isolated(pair.higher)
    told = f"The {_groups(audit)} are scored differently: averaged over all thresholds, the shares of"
    if len(audit.groups) == 2:
        return f"{told} {lower} and {higher} above the threshold lie {_gap(audit, reading)}."
    return (
        f"{told} two groups above the threshold lie {_gap(audit, reading)}, and those of {lower} and {higher}, the two "
        f"farthest apart, {100 * pair.distance:.1f}."
    )


def _alike(audit: Audit, reading: Reading) -> str:
    coarse = reading.high / n_pairs(audit) >= _COARSE
    return (
        f"The {_groups(audit)} are scored no more differently than chance would have it: averaged over all thresholds, "
        f"the shares of two groups above the threshold lie {_gap(audit, reading)}"
        f"{', so with this few rows a difference is not ruled out either' if coarse else ''}."
    )


def _too_few(audit: Audit, sure: int) -> str:
    have = "no group has" if sure == 0 else "only one group has"
    return (
        f"Too few rows to judge: {have} {audit.settings.unsure_below} rows or more; the shares of two groups above a "
        f"threshold lie {_gap(audit, audit.readings[PAIRS])}."
    )


def _points(audit: Audit, what_if: WhatIf | None) -> Iterator[str]:
    first = audit.thresholds[0]
    low, high = (isolated(audit.groups[place].name) for place in (first.lowest, first.highest))
    if first.four_fifths is None:
        yield f"Above {first.threshold:g} nobody is selected."
    elif first.lowest == first.highest:
        yield f"Above {first.threshold:g}, {percent(first.rates[first.lowest].value)} of every group are selected."
    else:
        yield (
            f"Above {first.threshold:g}, {percent(first.rates[first.lowest].value)} of {low} and "
            f"{percent(first.rates[first.highest].value)} of {high} are selected: a ratio of {first.ratio.value:.2f} "
            f"({first.ratio.low:.2f} to {first.ratio.high:.2f}), {four_fifths_words(first)}."
        )
    if what_if is not None and what_if.reduced.can_repair:
        yield _repair(audit, what_if)
    if audit.unsure:
        yield _unsure(audit)


def _repair(audit: Audit, what_if: WhatIf) -> str:
    cut = audit.thresholds[0].threshold
    before, after = what_if.at(cut), what_if.at(cut, amount=1.0)
    left = 100 * after.disparity / n_pairs(audit)
    told = f"Full repair of these scores would leave {left:.1f} percentage points between two groups on average"
    if before.error is None or after.error is None:
        return f"{told}."
    change = 100 * (after.error - before.error)
    if abs(change) < 0.05:
        return f"{told} and as many wrong decisions at that threshold."
    return (
        f"{told}, with {abs(change):.1f} {'more' if change > 0 else 'fewer'} wrong decisions per 100 people at that "
        "threshold."
    )


def _unsure(audit: Audit) -> str:
    names = [isolated(name) for name in audit.unsure[:_FEW]]
    more = f" and {len(audit.unsure) - _FEW} more" if len(audit.unsure) > _FEW else ""
    count = len(audit.unsure)
    told = "One group has" if count == 1 else f"{count_word(count).capitalize()} groups have"
    return (
        f"{told} fewer than {audit.settings.unsure_below} rows, too few to say much, and "
        f"{'is' if count == 1 else 'are'} not judged: {', '.join(names)}{more}."
    )
