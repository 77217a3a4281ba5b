"""What another threshold, and some repair, would do: the figures that the page computes as its sliders move.

The page's script (``templates/audit/what_if.js``) is the twin of this file, line by line; the tests in a browser hold
the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_real
from fairtransport.auditing.proportions import Estimate, Tally, ratio, share
from fairtransport.report.pages._reduced_histograms import Filled, Reduced, reduce_histograms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing import Audit

__all__ = ["Outcome", "WhatIf"]

_SLACK = 1e-9  # a score this little above a threshold is on it: what rounding makes


@dataclass(frozen=True)
class Outcome:
    """What a threshold and an amount of repair do.

    Parameters
    ----------
    threshold, amount : float
        As asked.
    rates : tuple of Estimate
        Share selected, by group.
    overall : float
        Of everyone.
    errors : tuple of float, or None
        Share decided wrongly, by group, where there are labels.
    error : float or None
        Of everyone.
    lowest, highest : int
        Groups of the extreme rates, of those chosen that are sure (of all chosen, where fewer than two are).
    ratio : Estimate
        Of these two rates.
    disparity : float
        Sum of the distances between all pairs of the groups chosen.
    """

    threshold: float
    amount: float
    rates: tuple[Estimate, ...]
    overall: float
    errors: tuple[float, ...] | None
    error: float | None
    lowest: int
    highest: int
    ratio: Estimate
    disparity: float


@dataclass(frozen=True, eq=False)
class WhatIf:
    """An audit whose threshold and repair can be moved.

    Parameters
    ----------
    audit : Audit
    reduced : Reduced
        Its histograms, on the page's nodes.

    Notes
    -----
    A threshold is taken to the next node that is not below it: exact for thresholds on nodes, and for scores with few
    decimals. Repair is `QuantileRepair`, fitted to these very rows, with the ``min_group_size`` of the audit. Intervals
    take the effective number of rows of each group.

    Examples
    --------
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.6, 0.4, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> found = ft.audit(scores, labels, sensitive_features=group, n_bootstrap=99, min_group_size=1)
    >>> what_if = WhatIf.of(found)
    >>> as_is, repaired = what_if.at(0.7), what_if.at(0.7, amount=1.0)
    >>> [rate.value for rate in as_is.rates], [rate.value for rate in repaired.rates]
    ([0.0, 0.5], [0.5, 0.5])
    >>> round(as_is.disparity, 3), round(repaired.disparity, 3)
    (0.3, 0.0)
    """

    audit: Audit
    reduced: Reduced

    @classmethod
    def of(cls, audit: Audit, *, repair_target: Any = "barycenter_w2") -> WhatIf:
        """Reduce the histograms of an audit."""
        least = audit.settings.small_groups.min_group_size
        return cls(audit, reduce_histograms(audit.histograms, repair_target=repair_target, min_group_size=least))

    def at(self, threshold: float, amount: float = 0.0, *, chosen: Sequence[int] | None = None) -> Outcome:
        """Return the figures.

        Parameters
        ----------
        threshold : float
            In units of the scores; scores strictly above are selected.
        amount : float, default 0
            Of repair, from 0 to 1.
        chosen : sequence of int, optional
            Places of the groups that ratio and disparity are about; all by default.
        """
        grid = self.audit.histograms.grid
        cut = self.next_node(float(grid.to_unit(grid.check([threshold], name="threshold")[0])))
        part = check_real(amount, name="amount", most=1.0)
        if part and not self.reduced.can_repair:
            raise ValueError("No repair is known here: groups overlap, or all scores are one; use amount=0.")
        places = list(range(len(self.reduced.groups))) if chosen is None else list(chosen)
        rates = tuple(self._rate(place, cut, part) for place in range(len(self.reduced.groups)))
        judged = self._judged(places)
        values = np.array([rates[place].value for place in judged])
        lowest, highest = judged[int(values.argmin())], judged[int(values.argmax())]
        labelled = self.reduced.has_labels
        wrong = [_wrong(one, self._moved(one, part), cut) for one in self.reduced.groups] if labelled else []
        return Outcome(
            threshold=threshold,
            amount=part,
            rates=rates,
            overall=self._overall(cut, part),
            errors=tuple(one / _total(group) for one, group in zip(wrong, self.reduced.groups, strict=True))
            if labelled
            else None,
            error=self._error(cut, wrong) if labelled else None,
            lowest=lowest,
            highest=highest,
            ratio=ratio(rates[lowest], rates[highest]),
            disparity=self.disparity(part, chosen=places),
        )

    def next_node(self, cut: float) -> float:
        """Return the page's first node that is not below the threshold, both on [0, 1]."""
        nodes = self.reduced.nodes
        return float(nodes[min(int(np.searchsorted(nodes, cut - _SLACK)), nodes.size - 1)])

    def disparity(self, amount: float, *, chosen: Sequence[int]) -> float:
        """Return the sum of the distances between all pairs of groups, counted on the page's bins."""
        n_bins = self.reduced.n_bins
        functions = []
        for place in chosen:
            group = self.reduced.groups[place]
            nodes = np.ceil(self._moved(group, amount) * n_bins - _SLACK * n_bins).astype(np.int64)
            held = np.bincount(nodes, weights=group.masses.sum(axis=0), minlength=n_bins + 1)
            functions.append(np.cumsum(held)[:-1] / held.sum())
        ordered = np.sort(functions, axis=0)
        factors = 2 * np.arange(len(chosen)) - (len(chosen) - 1)
        return float((factors @ ordered).sum() / n_bins)

    # ------------------------------------------------------------------------------------------------------- parts

    def _moved(self, group: Filled, amount: float) -> NDArray[np.float64]:
        """Scores of the group's nodes after repair, on [0, 1]."""
        scores = self.reduced.nodes[group.at]
        return scores if group.images is None else (1 - amount) * scores + amount * group.images

    def _rate(self, place: int, cut: float, amount: float) -> Estimate:
        group, audit = self.reduced.groups[place], self.audit
        value = _above(group, self._moved(group, amount), cut) / _total(group)
        size = audit.groups[place].effective_rows
        inside, outside = value * size, (1 - value) * size
        return share(Tally(inside, outside, inside, outside), audit.settings.confidence)

    def _judged(self, chosen: list[int]) -> list[int]:
        sure = [place for place in chosen if not self.audit.groups[place].unsure]
        return sure if len(sure) >= 2 else chosen

    def _overall(self, cut: float, amount: float) -> float:
        everyone = self.reduced.everyone
        if not self.reduced.can_repair:
            return _above(everyone, self._moved(everyone, 0.0), cut) / _total(everyone)
        above = sum(_above(group, self._moved(group, amount), cut) for group in self.reduced.groups)
        return above / _total(everyone)

    def _error(self, cut: float, wrong: list[float]) -> float:
        everyone = self.reduced.everyone
        total = sum(wrong) if self.reduced.can_repair else _wrong(everyone, self._moved(everyone, 0.0), cut)
        return total / _total(everyone)


def _total(group: Filled) -> float:
    return float(group.masses.sum())


def _above(group: Filled, scores: NDArray[np.float64], cut: float) -> float:
    """Weight strictly above a threshold."""
    return float(group.masses[:, scores > cut + _SLACK].sum())


def _wrong(group: Filled, scores: NDArray[np.float64], cut: float) -> float:
    """Weight of label 0 above and of label 1 at or below a threshold."""
    selected = scores > cut + _SLACK
    return float(group.masses[0, selected].sum() + group.masses[1, ~selected].sum())
