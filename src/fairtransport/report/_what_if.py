"""Selection rates, errors and disparity of an audit at any threshold and amount of repair.

The script of the audit page (``pages/templates/audit/what_if.js``) computes the same as the sliders move; the browser
tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_real
from fairtransport.auditing import Audit
from fairtransport.auditing.proportions import Estimate, complement, extremes_confidence, ratio, share, wilson
from fairtransport.auditing.records import Decisions
from fairtransport.auditing.tables import RATE_NAMES
from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.histograms import Grid, GroupHistograms, display_range, regrid
from fairtransport.repair.group_maps import GroupMaps, MapOptions
from fairtransport.transport.targets import TARGET_WORDS

# Histograms on as many nodes as a page needs, and the scores that repair would give them.

MAX_BINS = 1 << 14
_MAX_NUMBERS = 1 << 17  # groups times labels times bins: a few megabytes at most
_MIN_BINS = 64
_IMAGE_DIGITS = 7


@dataclass(frozen=True, eq=False)
class NodeMasses:
    """Nodes at which a group has rows."""

    indices: Ints
    masses: Floats
    images: Floats | None = None


@dataclass(frozen=True, eq=False)
class ReducedHistograms:
    """Histograms of an audit, reduced to the bins of a page."""

    n_bins: int
    full_bins: int
    groups: tuple[NodeMasses, ...]
    everyone: NodeMasses

    @property
    def nodes(self) -> Floats:
        """Positions of the nodes on [0, 1]."""
        return _node_indices(self.full_bins, self.n_bins) / self.full_bins

    @property
    def has_labels(self) -> bool:
        """True if the masses are separated by label."""
        return self.everyone.masses.shape[0] == 2

    @property
    def can_repair(self) -> bool:
        """True if the scores after repair are known."""
        return self.groups[0].images is not None


def reduce_histograms(
    histograms: GroupHistograms, *, repair_target: Any = "barycenter_w2", min_size: int = MIN_GROUP_SIZE
) -> ReducedHistograms:
    """Merge neighbouring bins until the page is small, and compute the scores of the nodes after repair."""
    by_class = histograms.by_class
    n_classes, n_groups, _ = by_class.shape
    full_bins = histograms.grid.n_bins
    n_bins = choose_bins(full_bins, n_classes * n_groups)
    starts = np.append(0, _node_indices(full_bins, n_bins)[:-1] + 1)  # node k holds the scores above node k - 1
    merged = np.add.reduceat(by_class, starts, axis=2)
    everyone = np.add.reduceat(histograms.masses.sum(axis=1), starts, axis=1)
    occupied = [np.flatnonzero(masses.sum(axis=0)) for masses in merged.swapaxes(0, 1)]
    images = None
    if repair_target is not None and not histograms.groups.overlapping:
        options = MapOptions(_resolve_target(repair_target, histograms), min_size=min_size)
        images = _repaired_scores(histograms, starts, occupied, options)
    groups = tuple(
        NodeMasses(indices, merged[:, group, indices], None if images is None else images[group])
        for group, indices in enumerate(occupied)
    )
    indices = np.flatnonzero(everyone.sum(axis=0))
    return ReducedHistograms(n_bins, full_bins, groups, NodeMasses(indices, everyone[:, indices]))


def choose_bins(full_bins: int, n_curves: int) -> int:
    """Return the number of bins of a page: a divisor of ``full_bins`` if that costs less than half of them."""
    most = min(full_bins, MAX_BINS, max(_MIN_BINS, _MAX_NUMBERS // n_curves))
    divisors = (number for number in range(most, most // 2, -1) if full_bins % number == 0)
    return next(divisors, most)


def _node_indices(full_bins: int, n_bins: int) -> Ints:
    """Return the nodes of the full histograms that remain."""
    return np.arange(n_bins + 1, dtype=np.int64) * full_bins // n_bins


def _resolve_target(target: Any, histograms: GroupHistograms) -> Any:
    """Return the target with a group as its label, and scores on [0, 1]."""
    if isinstance(target, str) and target in TARGET_WORDS:
        return target
    if isinstance(target, tuple) or np.ndim(target) == 0:
        return histograms.groups.labels[histograms.groups.index_of(target)]
    return histograms.unit_target(np.asarray(target, dtype=np.float64))


def _repaired_scores(
    histograms: GroupHistograms, starts: Ints, occupied: list[Ints], options: MapOptions
) -> list[Floats] | None:
    """Fit the maps to all bins; return the mean repaired score of the rows at each node of the page."""
    if np.count_nonzero(histograms.everyone) < 2:
        return None
    unit = replace(histograms, grid=Grid(n_bins=histograms.grid.n_bins))
    filled = np.flatnonzero(histograms.weights > 0)  # the others are withheld
    maps = GroupMaps.from_histograms(unit.only(filled), options).maps
    images = [np.empty(0)] * len(occupied)
    for group, transport_map in zip(filled.tolist(), maps, strict=True):
        masses, indices = histograms.by_group[group], occupied[group]
        total = np.add.reduceat(masses * transport_map(unit.grid.nodes), starts)[indices]
        images[group] = (total / np.add.reduceat(masses, starts)[indices]).clip(0.0, 1.0).round(_IMAGE_DIGITS)
    return images


# Audits as figures and pages show them: scores without known bounds on equally spaced nodes over most of them.

_N_BINS = 1 << 12


def shown_histograms(histograms: GroupHistograms, *others: GroupHistograms) -> GroupHistograms:
    """Return histograms on equally spaced nodes; those of scores without known bounds over `display_range`."""
    grid = histograms.grid
    if not grid.positions:
        return histograms
    ranges = [display_range(each) for each in (histograms, *others)]
    low, high = min(each[0] for each in ranges), max(each[1] for each in ranges)
    n_bins = _N_BINS
    occupied = np.concatenate([each.grid.nodes[np.flatnonzero(each.everyone)] for each in (histograms, *others)])
    if np.array_equal(occupied, np.rint(occupied)) and high - low <= _N_BINS:
        low, high = float(np.floor(low)), float(np.ceil(high))
        n_bins = int(high - low) * max(1, _N_BINS // int(high - low))
    return regrid(histograms, Grid(low, high, n_bins))


def shown_audit(audit: Audit, *others: Audit) -> Audit:
    """Return an audit whose histograms have equally spaced nodes, as those of other audits; figures are unchanged."""
    if audit.settings.bounded:
        return audit
    histograms = shown_histograms(audit.histograms, *(other.histograms for other in others))
    settings = replace(audit.settings, range=(histograms.grid.low, histograms.grid.high))
    return replace(audit, histograms=histograms, settings=settings)


def score_title(audit: Audit) -> str:
    """Return the label of an axis of scores: ``"Score"``, or ``"Prediction"`` of a regression."""
    return "Prediction" if audit.settings.task == "regression" else "Score"


#: The rates that need labels, in the order of the page's columns.
ERROR_RATES = tuple(RATE_NAMES)

_SLACK = 1e-9  # rounding error by which a score may exceed a threshold that it equals


@dataclass(frozen=True)
class Outcome:
    """Result of a threshold and an amount of repair."""

    threshold: float
    amount: float
    rates: tuple[Estimate, ...]
    overall: float
    errors: tuple[float, ...] | None
    error: float | None
    lowest: int
    highest: int
    ratio: Estimate
    worse_off: int
    better_off: int
    error_rates: tuple[dict[str, Estimate | None], ...] | None
    overall_rates: dict[str, float | None] | None
    disparity: float
    gaps: dict[str, float | None] | None = None


_NO_ERRORS = dict.fromkeys(("errors", "error", "error_rates", "overall_rates"))


@dataclass(frozen=True, eq=False)
class WhatIf:
    """An audit whose threshold and amount of repair can be changed. Use `of` to create one.

    Notes
    -----
    At the thresholds of the audit, without repair, the figures are those of the audit. Any other threshold is rounded
    up to the next node: exact for thresholds on nodes and for scores with few decimals. The repair is a
    `QuantileRepair` fitted to the rows of the audit, with its ``min_size``. Confidence intervals use the effective
    number of rows of each group.
    """

    audit: Audit
    reduced: ReducedHistograms

    @classmethod
    def of(cls, audit: Audit, *others: Audit, repair_target: Any = "barycenter_w2") -> WhatIf:
        """Reduce the histograms of an audit."""
        size = audit.settings.small_groups.min_size
        shown = shown_audit(audit, *others)
        return cls(shown, reduce_histograms(shown.histograms, repair_target=repair_target, min_size=size))

    def at(self, threshold: float, amount: float = 0.0, *, chosen: Sequence[int] | None = None) -> Outcome:
        """Return the result of a threshold and an amount of repair."""
        grid = self.audit.histograms.grid
        value = threshold if self.audit.settings.bounded else float(np.clip(threshold, grid.low, grid.high))
        cut = self.next_node(float(grid.to_unit(grid.check([value], name="threshold")[0])))
        part = check_real(amount, name="amount", most=1.0)
        if part and not self.reduced.can_repair:
            raise ValueError(
                "The scores cannot be repaired: there is no repair target, groups overlap, or all scores are equal."
            )
        tables = [self._decisions(index, cut, part) for index in range(len(self.reduced.groups))]
        asked = {} if part else {at.threshold: number for number, at in enumerate(self.audit.thresholds)}
        figures = self._counted(tables, cut) if threshold not in asked else self._audited(asked[threshold])
        rates, confidence = figures["rates"], self.audit.settings.confidence
        shown = [index for index, group in enumerate(self.audit.groups) if not group.withheld] or [*range(len(tables))]
        indices = shown if chosen is None else chosen
        judged = [index for index in indices if self.audit.groups[index].judged]
        judged = judged if len(judged) >= 2 else [index for index in indices if index in shown]
        lowest, highest = (pick(judged, key=lambda index: rates[index].value) for pick in (min, max))
        high_is_favourable = self.audit.settings.favourable == "high"
        worse, better = (lowest, highest) if high_is_favourable else (highest, lowest)
        of_favourable = self.audit.thresholds[asked[threshold]].ratio if threshold in asked else None
        if of_favourable is None or len(indices) < len(shown) or np.isnan(of_favourable.value):
            level = extremes_confidence([rates[index] for index in judged], confidence)
            groups = self.audit.groups
            extremes = [wilson(rates[at].value, groups[at].effective_rows, level) for at in (worse, better)]
            of_favourable = ratio(*(extremes if high_is_favourable else map(complement, extremes)))
        return Outcome(
            threshold=threshold,
            amount=part,
            lowest=lowest,
            highest=highest,
            ratio=of_favourable,
            worse_off=worse,
            better_off=better,
            disparity=self.disparity(part, chosen=judged)
            if part or len(indices) < len(shown)
            else self.audit.mean_readings[self.audit.settings.pairs_metric].value,
            **figures,
        )

    def _audited(self, number: int) -> dict[str, Any]:
        """Return the figures of the audit at one of its thresholds, which are exact between nodes, too."""
        at = self.audit.thresholds[number]
        figures: dict[str, Any] = {"rates": at.rates, "overall": at.overall}
        if not self.reduced.has_labels:
            return {**figures, **_NO_ERRORS}
        errors = self.audit.error_rates[number]
        overall = {rate: None if one is None else one.value for rate, one in errors.overall.items()}
        return figures | {
            "errors": tuple(error.value for error in at.errors or ()),
            "error": overall["error_rate"],
            "error_rates": tuple({rate: group.rates[rate] for rate in ERROR_RATES} for group in errors.groups),
            "overall_rates": {rate: overall[rate] for rate in ERROR_RATES},
            "gaps": {rate: None if gap is None else gap.difference.value for rate, gap in errors.gaps.items()},
        }

    def _counted(self, tables: list[Decisions], cut: float) -> dict[str, Any]:
        """Return the figures at any threshold and amount of repair, counted on the bins of the page."""
        everyone, confidence = self._decisions_on_everyone(tables, cut), self.audit.settings.confidence
        rates = tuple(share(table.tally("selection_rate"), confidence) for table in tables)
        figures: dict[str, Any] = {"rates": rates, "overall": everyone.tally("selection_rate").value}
        if not self.reduced.has_labels:
            return {**figures, **_NO_ERRORS}
        totals = {rate: everyone.tally(rate) for rate in ERROR_RATES}
        return figures | {
            "errors": tuple(table.tally("error_rate").value for table in tables),
            "error": everyone.tally("error_rate").value,
            "error_rates": tuple(self._error_rates(table) for table in tables),
            "overall_rates": {rate: tally.value if tally.total > 0 else None for rate, tally in totals.items()},
        }

    def next_node(self, cut: float) -> float:
        """Return the first node that is not below the threshold, both on [0, 1]."""
        nodes = self.reduced.nodes
        return float(nodes[min(int(np.searchsorted(nodes, cut - _SLACK)), nodes.size - 1)])

    def disparity(self, amount: float, *, chosen: Sequence[int]) -> float:
        """Return the mean distance between two of the chosen groups, computed on the bins of the page.

        Of scores without known bounds, the distances between ranks.
        """
        n_bins = self.reduced.n_bins
        functions, pooled = [], np.zeros(n_bins + 1)
        for index in chosen:
            group = self.reduced.groups[index]
            nodes = np.ceil(self._repaired(group, amount) * n_bins - _SLACK * n_bins).astype(np.int64)
            masses = np.bincount(nodes, weights=group.masses.sum(axis=0), minlength=n_bins + 1)
            pooled += masses
            functions.append(np.cumsum(masses)[:-1] / masses.sum())
        # At each node the sum of all pairwise differences is a weighted sum of the ordered values.
        ordered = np.sort(functions, axis=0)
        factors = (2 * np.arange(len(chosen)) - (len(chosen) - 1)) / max(comb(len(chosen), 2), 1)
        if self.audit.settings.bounded:
            return float((factors @ ordered).sum() / n_bins)
        # The distance between ranks: a bin counts by the share of people around it.
        return float((factors @ ordered) @ (pooled[:-1] + pooled[1:]) / (2 * pooled.sum()))

    def _repaired(self, group: NodeMasses, amount: float) -> Floats:
        """Return the scores of the nodes of a group after repair, on [0, 1]."""
        scores = self.reduced.nodes[group.indices]
        return scores if group.images is None else (1 - amount) * scores + amount * group.images

    def _decisions(self, index: int, cut: float, amount: float) -> Decisions:
        """Return the decisions on a group; the sums of squares follow from its effective number of rows."""
        group = self.reduced.groups[index]
        weights = _weights_by_decision(group, self._repaired(group, amount), cut)
        return Decisions(weights, weights * group.masses.sum() / self.audit.groups[index].effective_rows)

    def _decisions_on_everyone(self, tables: list[Decisions], cut: float) -> Decisions:
        """Return the decisions on all people, to whom overlapping groups do not add up."""
        everyone = self.reduced.everyone
        weights = np.sum([table.weights for table in tables], axis=0)
        if not self.reduced.can_repair:
            weights = _weights_by_decision(everyone, self._repaired(everyone, 0.0), cut)
        return Decisions(weights, weights)

    def _error_rates(self, table: Decisions) -> dict[str, Estimate | None]:
        tallies = {rate: table.tally(rate) for rate in ERROR_RATES}
        confidence = self.audit.settings.confidence
        return {rate: share(tally, confidence) if tally.total > 0 else None for rate, tally in tallies.items()}


def _weights_by_decision(group: NodeMasses, scores: Floats, cut: float) -> Floats:
    """Return the weight at or below and above a threshold, by label."""
    selected = scores > cut + _SLACK
    return np.stack([group.masses[:, ~selected].sum(axis=1), group.masses[:, selected].sum(axis=1)], axis=1)
