"""Error rates at a threshold: by group, compared with a reference group, and the largest differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._arrays import Bools, Floats
from fairtransport._columns import say_columns
from fairtransport.auditing._evidence import EVERYONE, groups_to_compare
from fairtransport.auditing.errors.separation import interval_of_norm, rate_noise
from fairtransport.auditing.options import Options
from fairtransport.auditing.proportions import Estimate, Tally, difference, ratio, share
from fairtransport.auditing.records import RATES

if TYPE_CHECKING:
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors.separation import CorrectedEstimate
    from fairtransport.auditing.records import Decisions


# One minus the other: the same difference between groups, with the groups exchanged.
_COMPLEMENTS = {"false_negative_rate": "true_positive_rate", "error_rate": "accuracy"}


@dataclass(frozen=True)
class GroupRates:
    """The rates of one group at one threshold.

    Parameters
    ----------
    name : str
    counts : dict of str to float
        Weight of the ``true_positives``, ``false_positives``, ``false_negatives`` and ``true_negatives``.
    rates : dict of str to Estimate or None
        By the names in `RATES`; None where a rate's denominator has no rows.
    differences, ratios : dict of str to Estimate or None
        Each rate minus that of the reference group, and divided by it; None where it is not defined, and for the
        reference group itself.
    """

    name: str
    counts: Mapping[str, float]
    rates: Mapping[str, Estimate | None]
    differences: Mapping[str, Estimate | None]
    ratios: Mapping[str, Estimate | None]


@dataclass(frozen=True)
class RateGap:
    """The largest difference between the rates of two groups.

    Parameters
    ----------
    difference : CorrectedEstimate
        Its interval accounts for the selection of the groups.
    ratio : Estimate or None
        The lowest rate divided by the highest; None where that is 0. The interval is that of these two groups.
    lowest, highest : int
        Indices of the groups.
    groups, judged : tuple of int, bool
        Indices of the groups that were compared, and whether they have enough rows for the rate; all whose rate is
        defined are compared where fewer than two have.
    """

    difference: CorrectedEstimate
    ratio: Estimate | None
    lowest: int
    highest: int
    groups: tuple[int, ...]
    judged: bool

    def judges(self, group: int) -> bool:
        """Return whether a group has enough rows for the rate to be judged."""
        return self.judged and group in self.groups


@dataclass(frozen=True)
class ErrorRates:
    """Selection and error rates at one threshold.

    Parameters
    ----------
    threshold : float
        Scores strictly above it are selected.
    reference : str
        Name of the group that the others are compared with.
    overall : dict of str to Estimate or None
        The rates of all rows.
    groups : tuple of GroupRates
    gaps : dict of str to RateGap or None
        For each rate, the largest difference between two groups; None where fewer than two groups have the rate.
    equalized_odds, equal_opportunity : CorrectedEstimate or None
        The larger of the largest differences of true and false positive rates, and that of true positive rates (of
        false ones where low scores are favourable: those who deserve the favourable outcome are then the negative
        rows).
    undefined : dict of str to tuple of str
        For each rate that is not defined in some groups, their names.

    Notes
    -----
    Rates have Wilson's intervals, differences to the reference group Newcombe's and ratios Donner and Zou's. The
    intervals of the largest differences are obtained by inversion; their lower limit is 0 where chance may explain the
    difference.

    References
    ----------
    Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning".
    """

    threshold: float
    reference: str
    overall: Mapping[str, Estimate | None]
    groups: tuple[GroupRates, ...]
    gaps: Mapping[str, RateGap | None]
    equalized_odds: CorrectedEstimate | None
    equal_opportunity: CorrectedEstimate | None
    undefined: Mapping[str, tuple[str, ...]]


def resolve_reference(reference: Any, evidence: Evidence, judged: Bools) -> int:
    """Return the index of the reference group: the one with this label or name, or the largest of those judged."""
    histograms = evidence.histograms
    if reference is not None:
        try:
            return histograms.groups.index_of(reference)
        except ValueError:
            raise ValueError(
                f"reference must be the label or name of one of the {len(histograms.groups)} groups of "
                f"{say_columns(histograms.groups.columns)}; it is that of none of them."
            ) from None
    sizes = np.where(judged | ~judged.any(), histograms.effective_sizes, -1.0)
    return int(np.argmax(sizes))


def estimate_error_rates(
    evidence: Evidence, threshold: float, options: Options, reference: int, rng: np.random.Generator
) -> ErrorRates:
    """Estimate the rates at a threshold, in units of the scores, of evidence with labels."""
    names = evidence.histograms.groups.names
    at = float(evidence.histograms.grid.to_unit(threshold))
    tables = [evidence.decisions(at, group) for group in range(len(names))]
    tallies = {rate: [table.tally(rate) for table in tables] for rate in RATES}
    rates = {rate: [_estimate(tally, options.inference.confidence) for tally in tallies[rate]] for rate in RATES}
    comparison = _Comparison(tallies, rates, options, rng)
    gaps = {rate: comparison.gap(rate) for rate in RATES if rate not in _COMPLEMENTS}
    gaps |= {rate: _exchanged(gaps[other], rates[rate]) for rate, other in _COMPLEMENTS.items()}
    opportunity = gaps["true_positive_rate" if options.favourable == "high" else "false_positive_rate"]
    everyone = evidence.decisions(at, EVERYONE)
    return ErrorRates(
        threshold=float(threshold),
        reference=names[reference],
        overall={rate: _estimate(everyone.tally(rate), options.inference.confidence) for rate in RATES},
        groups=tuple(
            _group_rates(names[group], table, {rate: each[group] for rate, each in rates.items()}, others)
            for group, table in enumerate(tables)
            for others in [{rate: each[reference] if group != reference else None for rate, each in rates.items()}]
        ),
        gaps={rate: gaps[rate] for rate in RATES},
        equalized_odds=comparison.equalized_odds(),
        equal_opportunity=None if opportunity is None else opportunity.difference,
        undefined={
            rate: tuple(name for name, one in zip(names, each, strict=True) if one is None)
            for rate, each in rates.items()
            if None in each
        },
    )


def _estimate(tally: Tally, confidence: float) -> Estimate | None:
    return share(tally, confidence) if tally.total > 0 else None


def _group_rates(
    name: str, table: Decisions, rates: dict[str, Estimate | None], reference: dict[str, Estimate | None]
) -> GroupRates:
    names = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    pairs = {rate: (one, reference[rate]) for rate, one in rates.items()}
    return GroupRates(
        name=name,
        counts=dict(zip(names, table.weights.ravel()[[3, 1, 2, 0]].tolist(), strict=True)),
        rates=rates,
        differences={
            rate: None if one is None or other is None else difference(one, other)
            for rate, (one, other) in pairs.items()
        },
        ratios={rate: _ratio(one, other) for rate, (one, other) in pairs.items()},
    )


def _ratio(one: Estimate | None, other: Estimate | None) -> Estimate | None:
    return ratio(one, other) if one is not None and other is not None and other.value > 0 else None


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The rates of all groups, for their largest differences."""

    tallies: Mapping[str, Sequence[Tally]]
    rates: Mapping[str, Sequence[Estimate | None]]
    options: Options
    rng: np.random.Generator

    def gap(self, rate: str) -> RateGap | None:
        drawn = self._drawn(rate)
        if drawn is None:
            return None
        groups, judged, values, noise = drawn
        lowest, highest = groups[int(np.argmin(values))], groups[int(np.argmax(values))]
        return RateGap(
            difference=interval_of_norm(values, noise, _spread, self.options.inference.confidence),
            ratio=_ratio(self.rates[rate][lowest], self.rates[rate][highest]),
            lowest=lowest,
            highest=highest,
            groups=tuple(groups),
            judged=judged,
        )

    def equalized_odds(self) -> CorrectedEstimate | None:
        one, other = (self._drawn(rate) for rate in ("true_positive_rate", "false_positive_rate"))
        if one is None or other is None:
            return None
        n_first = len(one[0])

        def larger_spread(array: Floats) -> Floats:
            return np.maximum(_spread(array[..., :n_first]), _spread(array[..., n_first:]))

        values, noise = np.append(one[2], other[2]), np.concatenate([one[3], other[3]], axis=1)
        return interval_of_norm(values, noise, larger_spread, self.options.inference.confidence)

    def _drawn(self, rate: str) -> tuple[list[int], bool, Floats, Floats] | None:
        """Return the groups to compare, whether they have enough rows, their rates and draws of their errors."""
        sizes = np.array([tally.effective_size for tally in self.tallies[rate]])
        groups, enough = groups_to_compare(sizes, self.options.groups.min_size)
        if groups.size < 2:
            return None
        tallies = [self.tallies[rate][group] for group in groups]
        values, counts = (np.array([getattr(tally, name) for tally in tallies]) for name in ("value", "binomial_size"))
        return groups.tolist(), enough, values, rate_noise(values, counts, self.rng)


_spread = partial(np.ptp, axis=-1)


def _exchanged(gap: RateGap | None, rates: Sequence[Estimate | None]) -> RateGap | None:
    """Return the gap of the complements of rates."""
    if gap is None:
        return None
    lowest, highest = gap.highest, gap.lowest
    return replace(gap, lowest=lowest, highest=highest, ratio=_ratio(rates[lowest], rates[highest]))
