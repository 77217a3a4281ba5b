"""The table that follows the sliders, as it stands before anyone moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.report.pages._what_if import Outcome, WhatIf

__all__ = ["LiveRow", "live_rows"]


@dataclass(frozen=True)
class LiveRow:
    """One group: what the script will keep up to date.

    Parameters
    ----------
    place : int
        Of the group in the first audit.
    rates, intervals, ratios, errors : tuple of str
        One for each audit; errors empty without labels.
    """

    place: int
    rates: tuple[str, ...]
    intervals: tuple[str, ...]
    ratios: tuple[str, ...]
    errors: tuple[str, ...]


def live_rows(parts: Sequence[WhatIf], places: Sequence[Sequence[int]]) -> list[LiveRow]:
    """Return the table at the first threshold, without repair.

    Parameters
    ----------
    parts : sequence of WhatIf
        One audit or two.
    places : sequence of sequence of int
        Where each group of the first audit stands in each audit.

    Returns
    -------
    list of LiveRow
    """
    cut = parts[0].audit.thresholds[0].threshold
    outcomes = [part.at(cut) for part in parts]
    return [
        LiveRow(
            place=place,
            rates=tuple(percent(one.rates[at[place]].value) for one, at in zip(outcomes, places, strict=True)),
            intervals=tuple(_interval(one, at[place]) for one, at in zip(outcomes, places, strict=True)),
            ratios=tuple(_ratio(one, at[place]) for one, at in zip(outcomes, places, strict=True)),
            errors=tuple(
                percent(one.errors[at[place]])
                for one, at in zip(outcomes, places, strict=True)
                if one.errors is not None
            ),
        )
        for place in range(len(places[0]))
    ]


def _interval(outcome: Outcome, place: int) -> str:
    rate = outcome.rates[place]
    return f"{percent(rate.low)} to {percent(rate.high)}"


def _ratio(outcome: Outcome, place: int) -> str:
    top = outcome.rates[outcome.highest].value
    return f"{outcome.rates[place].value / top:.2f}" if top > 0 else "\N{EN DASH}"
