"""``compare``: two audits of the same groups, and which differences are more than noise."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairtransport._extras import render
from fairtransport.auditing._audit_text import TITLES, one_line, short, wrap
from fairtransport.auditing.result import Audit, plain_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.result import Reading

__all__ = ["AuditComparison", "Change", "ThresholdChange", "compare"]

_MOST_GROUPS = 40


@dataclass(frozen=True)
class Change:
    """A figure before and after.

    Parameters
    ----------
    before, after : float
        As read.
    value : float
        ``after`` less ``before``.
    low, high : float
        Interval of the difference of the truths, with the confidence of the audits. For disparities it allows for
        what small groups add to them, so ``value`` may lie outside.
    beyond_noise : bool
        Whether the interval is on one side of 0.
    """

    before: float
    after: float
    value: float
    low: float
    high: float
    beyond_noise: bool


@dataclass(frozen=True)
class ThresholdChange:
    """What happened at a threshold that both audits have.

    Parameters
    ----------
    threshold : float
    rates : tuple of Change
        Share selected, by group.
    ratios : pair of float or None
        Lowest over highest rate, before and after; None where nobody is selected.
    errors : tuple of Change, or None
        Share decided wrongly, by group, where both have labels.
    """

    threshold: float
    rates: tuple[Change, ...]
    ratios: tuple[float | None, float | None]
    errors: tuple[Change, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class AuditComparison:
    """Two audits side by side, made by `compare`. ``print(comparison)`` shows it.

    Parameters
    ----------
    before, after : Audit
    names : pair of str
        What the two are called.
    places : tuple of int
        Where each group of ``before`` stands in ``after``.
    changes : dict of str to Change
        The metrics that both have and that mean the same.
    auc : Change or None
        Of everyone, where both have labels.
    thresholds : tuple of ThresholdChange
        Those that both have.
    """

    before: Audit
    after: Audit
    names: tuple[str, str]
    places: tuple[int, ...]
    changes: dict[str, Change]
    auc: Change | None
    thresholds: tuple[ThresholdChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return both audits and their differences as plain values that JSON can hold."""
        return plain_values(
            {
                "names": self.names,
                "changes": {name: asdict(change) for name, change in self.changes.items()},
                "auc": None if self.auc is None else asdict(self.auc),
                "thresholds": [asdict(threshold) for threshold in self.thresholds],
                "groups": [group.name for group in self.before.groups],
                "before": self.before.to_dict(),
                "after": self.after.to_dict(),
            }
        )

    def to_html(self, path: Any = None, **options: Any) -> Any:
        """Write both as one page; needs the extra ``report``. Options as in `Audit.to_html`."""
        return render("comparison_to_html", self, path=path, **options)

    def __repr__(self) -> str:
        change = self.changes["strong_pairwise_disparity"]
        told = f"{len(self.before.groups)} groups, pairwise disparity {change.before:.3f} to {change.after:.3f}"
        return f"AuditComparison({told}, {'beyond' if change.beyond_noise else 'within'} noise)"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def compare(before: Audit, after: Audit, *, names: tuple[str, str] = ("Before", "After")) -> AuditComparison:
    r"""Put two audits of the same groups side by side.

    Parameters
    ----------
    before, after : Audit
        Of the same groups and the same range of scores: one model before and after repair, two models, two months.
    names : pair of str, default ("Before", "After")
        What to call them.

    Returns
    -------
    AuditComparison

    Notes
    -----
    The interval of a difference is what the intervals of the two figures imply when their noise is independent (Donner
    and Zou's MOVER): with estimates e and intervals [l, u],

    .. math:: e_2 - e_1 - \sqrt{(e_2 - l_2)^2 + (u_1 - e_1)^2}
              \quad\text{to}\quad e_2 - e_1 + \sqrt{(u_2 - e_2)^2 + (e_1 - l_1)^2} .

    Scores of the same rows before and after mostly err in the same direction; then the interval is wider than it need
    be, and what is called beyond noise is so all the more. Differences are judged one by one: of many groups, a few may
    seem to change by chance.

    The distance to the target is left out where the two audits have different targets.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 500)
    >>> scores = np.r_[rng.beta(2, 4, 500), rng.beta(4, 2, 500)]
    >>> repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=group)
    >>> found = [ft.audit(one, sensitive_features=group, random_state=0) for one in (scores, repaired)]
    >>> ft.compare(*found)
    AuditComparison(2 groups, pairwise disparity 0.328 to 0.000, beyond noise)
    """
    for audit, name in ((before, "before"), (after, "after")):
        if not isinstance(audit, Audit):
            raise TypeError(f"{name} must be an Audit, as fairtransport.audit makes it; got a {type(audit).__name__}.")
    told = tuple(names)
    if len(told) != 2 or not all(isinstance(name, str) for name in told):
        raise TypeError("names must be two texts, such as ('Before', 'After').")
    places = _places(before, after)
    changes = {
        name: _reading_change(reading, after.readings[name])
        for name, reading in before.readings.items()
        if name in after.readings
    }
    if before.settings.target != after.settings.target:
        del changes["wasserstein_disparity"]
    auc = None
    if before.auc is not None and after.auc is not None:
        auc = _estimate_change(before.auc, after.auc)
    return AuditComparison(before, after, told, places, changes, auc, tuple(_thresholds(before, after, places)))


def _places(before: Audit, after: Audit) -> tuple[int, ...]:
    """Return where the groups of the first audit stand in the second."""
    if before.settings.range != after.settings.range:
        one, other = (f"[{audit.settings.range[0]:g}, {audit.settings.range[1]:g}]" for audit in (before, after))
        raise ValueError(f"The audits have scores of different ranges, {one} and {other}; bring them to one range.")
    if before.settings.confidence != after.settings.confidence:
        raise ValueError(
            f"The audits have intervals of different confidence, {before.settings.confidence:g} and "
            f"{after.settings.confidence:g}; make them with one confidence=."
        )
    ours, theirs = before.histograms.groups.labels, after.histograms.groups.labels
    shared = set(ours) & set(theirs)
    if len(shared) < len(ours) or len(shared) < len(theirs):
        raise ValueError(
            f"The audits have {len(ours)} and {len(theirs)} groups, {len(shared)} of them in both. Sums over groups "
            "can only be compared for the same groups: leave the others' rows out, or merge them, in both audits."
        )
    return tuple(theirs.index(label) for label in ours)


def _reading_change(one: Reading, other: Reading) -> Change:
    return _change(
        (one.value, other.value), (one.corrected, one.low, one.high), (other.corrected, other.low, other.high)
    )


def _estimate_change(one: Estimate, other: Estimate) -> Change:
    return _change((one.value, other.value), (one.value, one.low, one.high), (other.value, other.low, other.high))


def _change(values: tuple[float, float], one: tuple[float, float, float], other: tuple[float, float, float]) -> Change:
    middle = other[0] - one[0]
    low = middle - math.hypot(max(0.0, other[0] - other[1]), max(0.0, one[2] - one[0]))
    high = middle + math.hypot(max(0.0, other[2] - other[0]), max(0.0, one[0] - one[1]))
    return Change(values[0], values[1], values[1] - values[0], low, high, low > 0 or high < 0)


def _thresholds(before: Audit, after: Audit, places: tuple[int, ...]) -> Iterator[ThresholdChange]:
    known = {threshold.threshold: threshold for threshold in after.thresholds}
    for one in before.thresholds:
        other = known.get(one.threshold)
        if other is None:
            continue
        errors = None
        if one.errors is not None and other.errors is not None:
            wrong = [other.errors[place] for place in places]
            errors = tuple(_estimate_change(*pair) for pair in zip(one.errors, wrong, strict=True))
        rates = [other.rates[place] for place in places]
        yield ThresholdChange(
            threshold=one.threshold,
            rates=tuple(_estimate_change(*pair) for pair in zip(one.rates, rates, strict=True)),
            ratios=(_ratio(one), _ratio(other)),
            errors=errors,
        )


def _ratio(threshold: Any) -> float | None:
    return None if threshold.four_fifths is None else float(threshold.ratio.value)


# ---------------------------------------------------------------------------------------------------------- as text


def _lines(found: AuditComparison) -> Iterator[str]:
    one, other = (short(name, 10) for name in found.names)
    yield from wrap(
        f"{one_line(found.names[0])}: {found.before.rows:,} rows; {one_line(found.names[1])}: {found.after.rows:,} "
        f"rows; {len(found.before.groups)} groups ({', '.join(map(one_line, found.before.settings.columns))})"
    )
    yield ""
    interval = f"{found.before.settings.confidence:.0%} interval"
    yield f"{'':<23}{one:>10}{other:>10}{'change':>9}{interval:>18}"
    for name, change in found.changes.items():
        yield _row(TITLES[name], 23, change)
    if found.auc is not None:
        yield _row("AUC", 23, found.auc)
    for threshold in found.thresholds:
        yield ""
        ratios = " to ".join("none" if ratio is None else f"{ratio:.2f}" for ratio in threshold.ratios)
        yield from wrap(f"Selected above {threshold.threshold:g}; lowest over highest rate {ratios}")
        for group, change in list(zip(found.before.groups, threshold.rates, strict=True))[:_MOST_GROUPS]:
            yield _row(short(group.name, 23), 23, change) + (" ?" if group.unsure else "")
        if len(threshold.rates) > _MOST_GROUPS:
            yield f"... and {len(threshold.rates) - _MOST_GROUPS} more groups"
    yield ""
    yield "* beyond noise: the interval of the change does not hold 0."


def _row(title: str, width: int, change: Change) -> str:
    interval = f"{change.low:+.3f} to {change.high:+.3f}"
    line = f"{title:<{width}}{change.before:>10.3f}{change.after:>10.3f}{change.value:>+9.3f}{interval:>18}"
    return line + (" *" if change.beyond_noise else "")
