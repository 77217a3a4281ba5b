"""Two audits in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import isolated
from fairtransport.auditing.units import threshold_heading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing import AuditComparison, Change

__all__ = ["comparison_verdict"]


@dataclass(frozen=True)
class ComparisonVerdict:
    """Verdict on two audits.

    Parameters
    ----------
    status : {"smaller", "larger", "same"}
        Whether the disparity has changed.
    sentence : str
        The verdict in words. Names are enclosed in U+2068 and U+2069.
    points : tuple of str
        Further sentences.
    """

    status: str
    sentence: str
    points: tuple[str, ...]


def comparison_verdict(comparison: AuditComparison) -> ComparisonVerdict:
    r"""State whether the disparity has changed, by how much, and with what uncertainty.

    Parameters
    ----------
    comparison : AuditComparison
        Result of `fairtransport.compare`.

    Returns
    -------
    ComparisonVerdict

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from fairtransport._text import plain
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 500)
    >>> scores = np.r_[rng.beta(2, 4, 500), rng.beta(4, 2, 500)]
    >>> repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=group)
    >>> audits = [ft.audit(s, sensitive_features=group, random_state=0) for s in (scores, repaired)]
    >>> print(plain(comparison_verdict(ft.compare(*audits)).sentence).replace("\N{MINUS SIGN}", "-"))
    The groups are closer together: averaged over all thresholds, the shares of two groups above the threshold lie 32.8
    percentage points apart in Before and 0.0 in After, a change of -32.8 (95% interval -35... to -29...), beyond noise.
    """
    settings = comparison.before.settings
    change = comparison.changes[settings.pairs_metric]
    status = "same" if not change.beyond_noise else "smaller" if change.value < 0 else "larger"
    opening = {
        "smaller": "The groups are closer together",
        "larger": "The groups are farther apart",
        "same": "No change beyond noise",
    }[status]
    one, other = (isolated(name, 24) for name in comparison.names)
    points = 100 / comparison.before.verdict.n_pairs
    mean = " on average" if comparison.before.verdict.n_pairs > 1 else ""
    over = "all thresholds" if settings.bounded else "all shares of people selected"
    sentence = (
        f"{opening}: averaged over {over}, the shares of two groups above the threshold lie "
        f"{points * change.before:.1f} percentage points apart{mean} in {one} and {points * change.after:.1f} in "
        f"{other}, a change of {_signed(points * change.value)} ({_interval(comparison, change, points)}), "
        f"{_noise(change)}."
    )
    return ComparisonVerdict(status, sentence, tuple(_points(comparison)))


def _points(comparison: AuditComparison) -> Iterator[str]:
    if "error_rate" in comparison.changes:
        error = comparison.changes["error_rate"]
        yield (
            f"Wrong decisions: {100 * error.before:.1f}% and {100 * error.after:.1f}%, a change of "
            f"{_signed(100 * error.value)} percentage points ({_interval(comparison, error, 100.0)}), {_noise(error)}."
        )
    for threshold in comparison.thresholds[:1]:
        ratios = [f"{ratio:.2f}" if ratio is not None else "none" for ratio in threshold.ratios]
        where = threshold_heading(comparison.before, comparison.before.thresholds[0])
        yield f"Lowest over highest rate, {where}: {ratios[0]} and {ratios[1]}; four fifths is 0.80."


def _noise(change: Change) -> str:
    return "beyond noise" if change.beyond_noise else "within noise"


def _interval(comparison: AuditComparison, change: Change, factor: float) -> str:
    low, high = _signed(factor * change.low), _signed(factor * change.high)
    return f"{comparison.before.settings.confidence:.0%} interval {low} to {high}"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")
