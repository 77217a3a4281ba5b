"""Limits of an audit, such as ``spdd=.1``, so that the command can stand in a pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing import Audit, Estimate, Reading

__all__ = ["ABOVE", "BELOW", "EXCEEDED", "Limit", "parse_limits"]

#: Exit status when a limit is exceeded. Nothing else ends with it.
EXCEEDED = 2

#: Short names of what may not be above a limit, and of what may not be below one.
ABOVE = {
    "spdd": "strong_pairwise_disparity",
    "sdd": "strong_demographic_disparity",
    "wass1": "wasserstein_disparity",
    "err": "error_rate",
    "difference": "rate_difference",
}
BELOW = {"ratio": "rate_ratio"}


@dataclass(frozen=True)
class Limit:
    """A bound on one figure of an audit.

    Parameters
    ----------
    given : str
        What the user calls it.
    name : str
        Its full name.
    bound : float
    above : bool
        Whether the figure may not be above the bound; below it otherwise.
    """

    given: str
    name: str
    bound: float
    above: bool

    def exceeded(self, audit: Audit, *, surely: bool = False) -> str | None:
        """Return a line about a limit that is exceeded, and None for one that is kept.

        With ``surely`` it counts as exceeded only if the whole interval lies beyond the bound.
        """
        value, low, high = self._figure(audit)
        nearest = (low if self.above else high) if surely else value
        if not (nearest > self.bound if self.above else nearest < self.bound):
            return None
        sign = ">" if self.above else "<"
        told = f"{self.given} is {value:.4g} ({low:.4g} to {high:.4g})"
        return f"limit exceeded: {told} {sign} {self.bound:g}"

    def _figure(self, audit: Audit) -> tuple[float, float, float]:
        """Return the figure and its interval; of thresholds, the worst one's."""
        found: Reading | Estimate
        if self.name == "rate_difference":
            found = max((at.difference for at in audit.thresholds), key=lambda estimate: estimate.value)
        elif self.name == "rate_ratio":
            judged = [at.ratio for at in audit.thresholds if at.four_fifths is not None]
            if not judged:  # nobody is selected: all rates are equal
                return 1.0, 1.0, 1.0
            found = min(judged, key=lambda estimate: estimate.value)
        else:
            found = audit.readings[self.name]
        return found.value, found.low, found.high


def parse_limits(above: Sequence[str], below: Sequence[str], *, labelled: bool) -> list[Limit]:
    """Return the limits that options give as ``NAME=NUMBER``.

    Examples
    --------
    >>> parse_limits(["spdd=.1"], [], labelled=False)
    [Limit(given='spdd', name='strong_pairwise_disparity', bound=0.1, above=True)]
    """
    limits = [_parse(text, ABOVE, option="--fail-above", is_above=True) for text in above]
    limits += [_parse(text, BELOW, option="--fail-below", is_above=False) for text in below]
    for limit in limits:
        if limit.name == "error_rate" and not labelled:
            raise ValueError(f"A limit on {limit.given} needs --label.")
    return limits


def _parse(text: str, known: dict[str, str], *, option: str, is_above: bool) -> Limit:
    given, _, number = text.partition("=")
    name = known.get(given.strip(), given.strip())
    if name not in known.values():
        words = ", ".join(f"{short} ({full})" for short, full in known.items())
        raise ValueError(f"{option} knows nothing called {given!r}; it knows {words}.")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise ValueError(f"{option} must be NAME=NUMBER, such as {next(iter(known))}=.1; got {text!r}.")
    return Limit(given.strip(), name, bound, is_above)
