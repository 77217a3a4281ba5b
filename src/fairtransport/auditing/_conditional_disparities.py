"""The disparities within strata."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.auditing._disparity_norms import METRICS
from fairtransport.auditing._disparity_readings import disparity_readings, make_stratum
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing._permutation_test import noise_floors
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
        Groups without rows in a stratum are ignored.
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
    A stratum with fewer than two groups, or without the group that is the target, has no information about differences
    between groups. It is listed but set aside.
    """
    results: list[tuple[StratumSummary, _Measured | None]] = []
    for name, evidence in strata:
        histograms = evidence.histograms
        sizes = histograms.effective_sizes[histograms.weights > 0]
        n_judged = int((sizes >= options.min_judged_rows).sum())
        summary = StratumSummary(name, int(histograms.rows.sum()), 0.0, sizes.size, n_judged, {}, {}, {})
        results.append((summary, _measure(evidence, options, n_strata, rng) if sizes.size >= 2 else None))
    measured = [each for _, each in results if each is not None]
    total = sum(each.total_weight for each in measured)
    summaries = tuple(
        summary if each is None else _fill(summary, each, each.total_weight / total) for summary, each in results
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
        stratum = make_stratum(evidence.histograms.filled(), options.target, n_strata=n_strata)
    except ValueError:
        return None
    values = _disparities(evidence, options.target)
    floors = noise_floors(stratum, options.n_permutations, rng)
    return _Measured(stratum, float(evidence.histograms.everyone.sum()), values, floors)


def _fill(summary: StratumSummary, measured: _Measured, share: float) -> StratumSummary:
    floors = {name: measured.floors[name].mean for name in METRICS}
    p_values = {name: measured.floors[name].p_value for name in METRICS}
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
