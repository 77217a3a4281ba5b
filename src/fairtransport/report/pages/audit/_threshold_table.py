"""The table that follows the sliders, as it is before the reader moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.report._what_if import Outcome, WhatIf

__all__ = ["ThresholdRow", "collect_threshold_rows"]


@dataclass(frozen=True)
class ThresholdRow:
    """The row of a group, which the script keeps up to date.

    Parameters
    ----------
    group : int
        Index of the group in the first audit.
    rates, intervals, ratios, errors : tuple of str
        One for each audit; ``errors`` is empty without labels.
    """

    group: int
    rates: tuple[str, ...]
    intervals: tuple[str, ...]
    ratios: tuple[str, ...]
    errors: tuple[str, ...]


def collect_threshold_rows(what_ifs: Sequence[WhatIf], indices: Sequence[Sequence[int]]) -> list[ThresholdRow]:
    """Return the rows at the first threshold, without repair.

    Parameters
    ----------
    what_ifs : sequence of WhatIf
        One audit or two.
    indices : sequence of sequence of int
        For each audit, the index of each group of the first audit.

    Returns
    -------
    list of ThresholdRow
    """
    threshold = what_ifs[0].audit.thresholds[0].threshold
    outcomes = [what_if.at(threshold) for what_if in what_ifs]
    high_is_favourable = what_ifs[0].audit.settings.favourable == "high"
    rows = []
    for group in range(len(indices[0])):
        pairs = [(outcome, order[group]) for outcome, order in zip(outcomes, indices, strict=True)]
        rows.append(
            ThresholdRow(
                group=group,
                rates=tuple(percent(outcome.rates[index].value) for outcome, index in pairs),
                intervals=tuple(_interval(outcome, index) for outcome, index in pairs),
                ratios=tuple(_ratio(outcome, index, high_is_favourable=high_is_favourable) for outcome, index in pairs),
                errors=tuple(percent(outcome.errors[index]) for outcome, index in pairs if outcome.errors is not None),
            )
        )
    return rows


def _interval(outcome: Outcome, index: int) -> str:
    rate = outcome.rates[index]
    return f"{percent(rate.low)} to {percent(rate.high)}"


def _ratio(outcome: Outcome, index: int, *, high_is_favourable: bool) -> str:
    """Return the rate of the favourable outcome divided by the highest."""
    values = (outcome.rates[at].value for at in (index, outcome.better_off))
    value, highest = values if high_is_favourable else (1 - each for each in values)
    return f"{value / highest:.2f}" if highest > 0 else "\N{EN DASH}"
