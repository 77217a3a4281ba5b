"""Two audits in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import isolated
from fairtransport.report.pages.audit_verdict import PAIRS, AuditVerdict, n_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing import AuditComparison, Change

__all__ = ["comparison_verdict"]

_MINUS = "\N{MINUS SIGN}"


def comparison_verdict(found: AuditComparison) -> AuditVerdict:
    r"""Say whether the disparity has changed, by how much, and how sure that is.

    Parameters
    ----------
    found : AuditComparison

    Returns
    -------
    AuditVerdict
        Its standing is ``"smaller"``, ``"larger"`` or ``"same"``.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from fairtransport._text import plain
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 500)
    >>> scores = np.r_[rng.beta(2, 4, 500), rng.beta(4, 2, 500)]
    >>> repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=group)
    >>> found = [ft.audit(one, sensitive_features=group, random_state=0) for one in (scores, repaired)]
    >>> print(plain(comparison_verdict(ft.compare(*found)).sentence).replace("\N{MINUS SIGN}", "-"))
    The groups are closer together: averaged over all thresholds, the shares of two groups above the threshold lie 32.8
    percentage points apart in Before and 0.0 in After, a change of -32.8 (95% interval -35.0 to -29.1), beyond noise.
    """
    change = found.changes[PAIRS]
    standing = "same" if not change.beyond_noise else "smaller" if change.value < 0 else "larger"
    opening = {
        "smaller": "The groups are closer together",
        "larger": "The groups are farther apart",
        "same": "No change that is more than noise",
    }[standing]
    one, other = (isolated(name, 24) for name in found.names)
    points = 100 / n_pairs(found.before)
    mean = " on average" if len(found.before.groups) > 2 else ""
    sentence = (
        f"{opening}: averaged over all thresholds, the shares of two groups above the threshold lie "
        f"{points * change.before:.1f} percentage points apart{mean} in {one} and {points * change.after:.1f} in "
        f"{other}, a change of {_signed(points * change.value, 1)} ({_interval(found, change, points, 1)}), "
        f"{_noise(change)}."
    )
    return AuditVerdict(standing, sentence, tuple(_points(found)))


def _points(found: AuditComparison) -> Iterator[str]:
    if "error_rate" in found.changes:
        error = found.changes["error_rate"]
        yield (
            f"Wrong decisions: {100 * error.before:.1f}% and {100 * error.after:.1f}%, a change of "
            f"{_signed(100 * error.value, 1)} percentage points ({_interval(found, error, 100.0, 1)}), {_noise(error)}."
        )
    for threshold in found.thresholds[:1]:
        ratios = [f"{ratio:.2f}" if ratio is not None else "none" for ratio in threshold.ratios]
        told = f"Lowest over highest rate above {threshold.threshold:g}: {ratios[0]} and {ratios[1]}"
        yield f"{told}; four fifths is 0.80."


def _noise(change: Change) -> str:
    return "beyond noise" if change.beyond_noise else "within noise"


def _interval(found: AuditComparison, change: Change, factor: float, digits: int) -> str:
    low, high = _signed(factor * change.low, digits), _signed(factor * change.high, digits)
    return f"{found.before.settings.confidence:.0%} interval {low} to {high}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", _MINUS)
