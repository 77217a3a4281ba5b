"""Selection rates, errors and disparity of an audit at any threshold and amount of repair.

The script of the audit page (``pages/templates/audit/what_if.js``) computes the same as the sliders move; the browser
tests compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_real
from fairtransport.auditing.proportions import Estimate, Tally, ratio, share
from fairtransport.report._reduced_histograms import NodeMasses, ReducedHistograms, reduce_histograms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing import Audit

__all__ = ["Outcome", "WhatIf"]

_SLACK = 1e-9  # rounding error by which a score may exceed a threshold that it equals


@dataclass(frozen=True)
class Outcome:
    """Result of a threshold and an amount of repair.

    Parameters
    ----------
    threshold, amount : float
        Arguments of `WhatIf.at`.
    rates : tuple of Estimate
        Selection rate of each group.
    overall : float
        Selection rate of everyone.
    errors : tuple of float, or None
        Error rate of each group, if there are labels.
    error : float or None
        Error rate of everyone.
    lowest, highest : int
        Indices of the groups with the extreme rates among the chosen groups that are judged (among all chosen groups,
        if fewer than two are).
    ratio : Estimate
        Lowest over highest rate.
    disparity : float
        Sum of the distances between all pairs of these groups.
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
    """An audit whose threshold and amount of repair can be changed. Use `of` to create one.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    reduced : ReducedHistograms
        Its histograms, on the nodes of the page.

    See Also
    --------
    fairtransport.Audit.to_html : The page whose sliders show these figures.
    fairtransport.QuantileRepair : The repair.

    Notes
    -----
    A threshold is rounded up to the next node: exact for thresholds on nodes and for scores with few decimals. The
    repair is a `QuantileRepair` fitted to the rows of the audit, with its ``min_group_size``. Confidence intervals use
    the effective number of rows of each group.

    Examples
    --------
    >>> import fairtransport as ft
    >>> scores, labels, group = [0.1, 0.6, 0.4, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> audit = ft.audit(scores, labels, sensitive_features=group, n_bootstrap=99, min_group_size=1)
    >>> what_if = WhatIf.of(audit)
    >>> as_is, repaired = what_if.at(0.7), what_if.at(0.7, amount=1.0)
    >>> [rate.value for rate in as_is.rates], [rate.value for rate in repaired.rates]
    ([0.0, 0.5], [0.5, 0.5])
    >>> round(as_is.disparity, 3), round(repaired.disparity, 3)
    (0.3, 0.0)
    """

    audit: Audit
    reduced: ReducedHistograms

    @classmethod
    def of(cls, audit: Audit, *, repair_target: Any = "barycenter_w2") -> WhatIf:
        """Reduce the histograms of an audit.

        Parameters
        ----------
        audit : Audit
            Result of `fairtransport.audit`.
        repair_target : str, label, array or None, default="barycenter_w2"
            Target as in `fairtransport.QuantileRepair`; None for no repair.

        Returns
        -------
        WhatIf
        """
        size = audit.settings.small_groups.min_group_size
        return cls(audit, reduce_histograms(audit.histograms, repair_target=repair_target, min_group_size=size))

    def at(self, threshold: float, amount: float = 0.0, *, chosen: Sequence[int] | None = None) -> Outcome:
        """Return the result of a threshold and an amount of repair.

        Parameters
        ----------
        threshold : float
            Scores strictly above it are selected.
        amount : float, default=0
            Amount of repair, from 0 to 1.
        chosen : sequence of int, default=None
            Indices of the groups that ratio and disparity refer to; if None, all.

        Returns
        -------
        Outcome
        """
        grid = self.audit.histograms.grid
        cut = self.next_node(float(grid.to_unit(grid.check([threshold], name="threshold")[0])))
        part = check_real(amount, name="amount", most=1.0)
        if part and not self.reduced.can_repair:
            raise ValueError(
                "The scores cannot be repaired: there is no repair target, groups overlap, or all scores are equal."
            )
        groups = self.reduced.groups
        indices = list(range(len(groups))) if chosen is None else list(chosen)
        rates = tuple(self._rate(index, cut, part) for index in range(len(groups)))
        judged = self._judged(indices)
        values = np.array([rates[index].value for index in judged])
        lowest, highest = judged[int(values.argmin())], judged[int(values.argmax())]
        labelled = self.reduced.has_labels
        wrong = [_weight_wrong(group, self._repaired(group, part), cut) for group in groups] if labelled else []
        errors = (
            tuple(weight / _total(group) for weight, group in zip(wrong, groups, strict=True)) if labelled else None
        )
        return Outcome(
            threshold=threshold,
            amount=part,
            rates=rates,
            overall=self._overall(cut, part),
            errors=errors,
            error=self._error(cut, wrong) if labelled else None,
            lowest=lowest,
            highest=highest,
            ratio=ratio(rates[lowest], rates[highest]),
            disparity=self.disparity(part, chosen=judged),
        )

    def next_node(self, cut: float) -> float:
        """Return the first node that is not below the threshold, both on [0, 1]."""
        nodes = self.reduced.nodes
        return float(nodes[min(int(np.searchsorted(nodes, cut - _SLACK)), nodes.size - 1)])

    def disparity(self, amount: float, *, chosen: Sequence[int]) -> float:
        """Return the sum of the distances between all pairs of chosen groups, computed on the bins of the page."""
        n_bins = self.reduced.n_bins
        functions = []
        for index in chosen:
            group = self.reduced.groups[index]
            nodes = np.ceil(self._repaired(group, amount) * n_bins - _SLACK * n_bins).astype(np.int64)
            masses = np.bincount(nodes, weights=group.masses.sum(axis=0), minlength=n_bins + 1)
            functions.append(np.cumsum(masses)[:-1] / masses.sum())
        # At each node the sum of all pairwise differences is a weighted sum of the ordered values.
        ordered = np.sort(functions, axis=0)
        factors = 2 * np.arange(len(chosen)) - (len(chosen) - 1)
        return float((factors @ ordered).sum() / n_bins)

    def _repaired(self, group: NodeMasses, amount: float) -> NDArray[np.float64]:
        """Return the scores of the nodes of a group after repair, on [0, 1]."""
        scores = self.reduced.nodes[group.indices]
        return scores if group.images is None else (1 - amount) * scores + amount * group.images

    def _rate(self, index: int, cut: float, amount: float) -> Estimate:
        group, audit = self.reduced.groups[index], self.audit
        value = _weight_above(group, self._repaired(group, amount), cut) / _total(group)
        size = audit.groups[index].effective_rows
        inside, outside = value * size, (1 - value) * size
        return share(Tally(inside, outside, inside, outside), audit.settings.confidence)

    def _judged(self, chosen: list[int]) -> list[int]:
        judged = [index for index in chosen if self.audit.groups[index].judged]
        return judged if len(judged) >= 2 else chosen

    def _overall(self, cut: float, amount: float) -> float:
        everyone = self.reduced.everyone
        if not self.reduced.can_repair:
            return _weight_above(everyone, self._repaired(everyone, 0.0), cut) / _total(everyone)
        above = sum(_weight_above(group, self._repaired(group, amount), cut) for group in self.reduced.groups)
        return above / _total(everyone)

    def _error(self, cut: float, wrong: list[float]) -> float:
        everyone = self.reduced.everyone
        if not self.reduced.can_repair:
            return _weight_wrong(everyone, self._repaired(everyone, 0.0), cut) / _total(everyone)
        return sum(wrong) / _total(everyone)


def _total(group: NodeMasses) -> float:
    return float(group.masses.sum())


def _weight_above(group: NodeMasses, scores: NDArray[np.float64], cut: float) -> float:
    """Return the weight strictly above a threshold."""
    return float(group.masses[:, scores > cut + _SLACK].sum())


def _weight_wrong(group: NodeMasses, scores: NDArray[np.float64], cut: float) -> float:
    """Return the weight of label 0 above a threshold and of label 1 at or below it."""
    selected = scores > cut + _SLACK
    return float(group.masses[0, selected].sum() + group.masses[1, ~selected].sum())
