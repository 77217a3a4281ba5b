"""The options of an audit, validated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairtransport._validation import check_choice, check_count, check_real, check_vector
from fairtransport.criteria.criterion import CRITERIA
from fairtransport.groups import MATERIALITY, GroupPolicy, check_policy
from fairtransport.histograms import Grid, GroupHistograms

#: Shares of rows with the highest scores that are selected by default, where scores have no known bounds.
TOP_SHARES = (0.1, 0.25, 0.5)

#: Which scores are to a person's advantage.
FAVOURABLE = ("high", "low")


@dataclass(frozen=True)
class Inference:
    """Settings of intervals, noise floors and p-values.

    Parameters
    ----------
    confidence : float, default 0.95
        Confidence level of all intervals.
    n_bootstrap, n_permutations : int, default 1000
        Bootstrap replicates for the intervals, and permutations of the groups for noise floors and p-values; at least
        20 in audits of scores.
    random_state : int, Generator or None, default 0
        Seed of the bootstrap and of the permutations, so that an audit that is repeated has the same figures; None
        draws anew each time.

    Examples
    --------
    >>> import fairtransport as ft
    >>> quick = ft.auditing.Inference(n_bootstrap=100, n_permutations=100)
    >>> ft.audit([0.2, 0.4, 0.6, 0.8], sensitive_features=["a", "b", "a", "b"], inference=quick).settings.n_bootstrap
    100
    """

    confidence: float = 0.95
    n_bootstrap: int = 1000
    n_permutations: int = 1000
    random_state: int | np.random.Generator | None = 0


def check_inference(inference: Inference | None, *, default: Inference | None = None, least: int = 0) -> Inference:
    """Return validated settings; ``least`` is the smallest number of replicates and of permutations."""
    chosen = inference or default or Inference()
    if not isinstance(chosen, Inference):
        raise TypeError(f"inference must be a fairtransport.auditing.Inference; got {type(chosen).__name__}.")
    level = check_real(chosen.confidence, name="confidence", strict=True)
    if level >= 1:
        raise ValueError(f"confidence must be below 1; got {level:g}. For 95%, pass 0.95.")
    return Inference(
        level,
        check_count(chosen.n_bootstrap, name="n_bootstrap", least=least),
        check_count(chosen.n_permutations, name="n_permutations", least=least),
        chosen.random_state,
    )


@dataclass(frozen=True)
class TopShare:
    """A threshold above which a share of all rows lies."""

    share: float


@dataclass(frozen=True, eq=False)
class Options:
    """Validated options of `fairtransport.audit`.

    ``requested`` are thresholds as users give them, the others those of the scores at hand: see `place_thresholds`.
    ``unit_thresholds`` are rescaled to [0, 1]; ``top_shares`` has the share of rows that each was chosen for, if any.
    """

    requested: tuple[float | TopShare, ...]
    inference: Inference
    groups: GroupPolicy
    target: Any = "barycenter"
    materiality: float = MATERIALITY
    favourable: str = "high"
    reference: Any = None
    criterion: str = "demographic_parity"
    thresholds: tuple[float, ...] = ()
    unit_thresholds: tuple[float, ...] = ()
    top_shares: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        check_real(self.materiality, name="materiality", most=1.0)
        check_choice(self.favourable, FAVOURABLE, name="favourable")
        check_choice(self.criterion, CRITERIA, name="criterion")


def check_options(
    grid: Grid | None = None,
    *,
    thresholds: Any = None,
    inference: Inference | None = None,
    groups: GroupPolicy | None = None,
    **others: Any,
) -> Options:
    """Validate the options of an audit; thresholds must lie within the range of scores, where it is known."""
    requested = () if thresholds is None else _parse_thresholds(thresholds, grid)
    return Options(requested, check_inference(inference, least=20), check_policy(groups), **others)


def _parse_thresholds(thresholds: Any, grid: Grid | None) -> tuple[float | TopShare, ...]:
    """Return thresholds: numbers, or shares of rows such as ``"top 10%"``."""
    given = [thresholds] if isinstance(thresholds, str) or np.ndim(thresholds) == 0 else list(thresholds)
    if not given:
        raise ValueError("thresholds is empty; leave it out for the default.")
    parsed = [_parse_top_share(each) if isinstance(each, str) else each for each in given]
    numbers = [each for each in parsed if not isinstance(each, TopShare)]
    if numbers:
        checked = check_vector(numbers, name="thresholds") if grid is None else grid.check(numbers, name="thresholds")
        values = iter(checked.tolist())
        parsed = [each if isinstance(each, TopShare) else next(values) for each in parsed]
    return tuple(parsed)


def _parse_top_share(text: str) -> float | TopShare:
    """Return the share of ``"top 10%"``, or the number that a text is."""
    match = re.fullmatch(r"\s*top\s+([0-9]*\.?[0-9]+)\s*%\s*", text, re.IGNORECASE)
    if match is not None and 0 < float(match[1]) < 100:
        return TopShare(float(match[1]) / 100)
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            'A threshold must be a score, or a share of the rows such as "top 10%", between 0 and 100%.'
        ) from None


def requested_nodes(thresholds: Any) -> list[float]:
    """Return the thresholds that are scores, for a grid with nodes at them."""
    parsed = () if thresholds is None else _parse_thresholds(thresholds, None)
    return [each for each in parsed if isinstance(each, float)]


def place_thresholds(options: Options, histograms: GroupHistograms) -> Options:
    """Return the options with thresholds for the scores at hand."""
    grid = histograms.grid
    requested: Sequence[float | TopShare] = options.requested
    if not requested:
        requested = ((grid.low + grid.high) / 2,)
        if grid.positions:
            requested = [TopShare(share) for share in (TOP_SHARES[::-1] if histograms.has_labels else TOP_SHARES)]
    placed: dict[float, float | None] = {}
    for each in requested:
        cut = _threshold_of(histograms, each.share) if isinstance(each, TopShare) else each
        placed.setdefault(cut, each.share if isinstance(each, TopShare) else None)
    if not grid.positions:
        grid.check(list(placed), name="thresholds")
    return replace(
        options,
        thresholds=tuple(placed),
        unit_thresholds=tuple(grid.to_unit(list(placed)).tolist()),
        top_shares=tuple(placed.values()),
    )


def _threshold_of(histograms: GroupHistograms, share: float) -> float:
    """Return the score above which the share of rows is closest to ``share``, and not 0."""
    occupied = np.flatnonzero(histograms.everyone)
    above = 1 - histograms.cdf_of_everyone[occupied]
    above[-1] = 0.0
    candidates = np.flatnonzero(above > 0)
    if not candidates.size:  # all scores are equal
        return float(histograms.grid.nodes[occupied[-1]])
    return float(histograms.grid.nodes[occupied[candidates[np.argmin(np.abs(above[candidates] - share))]]])
