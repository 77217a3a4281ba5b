"""The disparities within strata."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.auditing._disparity_norms import METRICS
from fairtransport.auditing._disparity_readings import disparity_readings, make_stratum
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing._multiple_tests import holm
from fairtransport.auditing._permutation_test import PAIRS_TEST, noise_floors
from fairtransport.auditing.records import StratumSummary
from fairtransport.metrics import NoiseFloor
from fairtransport.transport.line import wasserstein
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairtransport.auditing._confidence_intervals import Stratum
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.records import Reading

__all__ = ["conditional_disparities"]


class _Measured(NamedTuple):
    """A stratum whose groups can be compared."""

    stratum: Stratum
    total_weight: float
    values: dict[str, float]
    floors: dict[str, NoiseFloor]


def conditional_disparities(
    strata: Iterable[tuple[str, Evidence]], n_strata: int, options: Options, rng: np.random.Generator
) -> tuple[tuple[StratumSummary, ...], dict[str, Reading]]:
    """Return the disparities within each stratum, and their mean over strata.

    Parameters
    ----------
    strata : iterable of (name, Evidence)
    n_strata : int
        Number of strata.
    options : Options
    rng : numpy.random.Generator

    Returns
    -------
    summaries : tuple of StratumSummary
    readings : dict of str to Reading
        The mean over strata, by weight; empty where no stratum can be compared. Rows are resampled and groups permuted
        within each stratum.

    Notes
    -----
    Within a stratum, the groups with enough rows to be judged are compared. A stratum with fewer than two of them, or
    without the group that is the target, is listed but set aside. Where no stratum has two groups that are judged, all
    groups are compared.
    """
    parts = []
    for name, evidence in strata:
        histograms = evidence.histograms
        sizes = histograms.effective_sizes
        present = np.flatnonzero(histograms.weights > 0)
        judged = np.flatnonzero(sizes >= options.min_judged_rows)
        summary = StratumSummary(name, int(histograms.rows.sum()), 0.0, present.size, judged.size, {}, {}, {})
        parts.append((summary, evidence, present, judged))
    any_judged = any(judged.size >= 2 for *_, judged in parts)
    results: list[tuple[StratumSummary, _Measured | None]] = []
    for summary, evidence, present, judged in parts:
        compared = judged if any_judged else present
        enough = compared.size >= 2
        results.append((summary, _measure(evidence.only(compared), options, n_strata, rng) if enough else None))
    measured = [each for _, each in results if each is not None]
    adjusted = iter(holm([each.floors[PAIRS_TEST].p_value for each in measured]).tolist())
    total = sum(each.total_weight for each in measured)
    summaries = tuple(
        summary if each is None else _fill(summary, each, each.total_weight / total, next(adjusted))
        for summary, each in results
    )
    if not measured:
        return summaries, {}
    weighted = [replace(each.stratum, weight=each.total_weight / total) for each in measured]
    weights = [stratum.weight for stratum in weighted]
    floors = {name: _combine_floors(weights, [each.floors[name] for each in measured]) for name in METRICS}
    return summaries, disparity_readings(
        weighted, [each.values for each in measured], floors, options, rng, p_value=floors[METRICS[2]].p_value
    )


def _measure(evidence: Evidence, options: Options, n_strata: int, rng: np.random.Generator) -> _Measured | None:
    """Return the disparities of a stratum; None where the group that is the target has no rows."""
    try:
        stratum = make_stratum(evidence.histograms, options.target, n_strata=n_strata)
    except ValueError:
        return None
    values = _disparities(evidence, options.target)
    floors = noise_floors(stratum, options.n_permutations, rng)
    return _Measured(stratum, float(evidence.histograms.everyone.sum()), values, floors)


def _fill(summary: StratumSummary, measured: _Measured, share: float, p_value: float) -> StratumSummary:
    floors = {name: measured.floors[name].mean for name in METRICS}
    p_values = dict.fromkeys(METRICS, p_value)
    return replace(summary, share=share, metrics=measured.values, floors=floors, p_values=p_values)


def _combine_floors(weights: Sequence[float], floors: Sequence[NoiseFloor]) -> NoiseFloor:
    """Return the weighted sum of noise floors; permutations of different strata are independent."""
    observed = sum(weight * floor.observed for weight, floor in zip(weights, floors, strict=True))
    return NoiseFloor(observed, np.tensordot(weights, [floor.values for floor in floors], 1))


def _disparities(evidence: Evidence, target: Any) -> dict[str, float]:
    """Return the three disparities of the groups that have rows."""
    histograms = evidence.histograms
    weights = histograms.weights
    present = np.flatnonzero(weights > 0).tolist()
    samples, everyone = [evidence.sample(group) for group in present], evidence.sample(EVERYONE)
    resolved = resolve_target(
        histograms.unit_target(target),
        samples,
        weights[present],
        labels=[histograms.groups.labels[group] for group in present],
        names=[histograms.groups.names[group] for group in present],
        everyone=everyone,
    )
    return {
        METRICS[0]: sum(wasserstein(sample, resolved) for sample in samples),
        METRICS[1]: sum(wasserstein(sample, everyone) for sample in samples),
        METRICS[2]: sum(wasserstein(one, other) for one, other in combinations(samples, 2)),
    }
