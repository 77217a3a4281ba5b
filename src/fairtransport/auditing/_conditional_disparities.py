"""The disparities within strata: among people who are alike in something that may count."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._disparity_norms import METRICS, make_yardsticks
from fairtransport.auditing._estimation import make_block, read_blocks
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing._permutation_test import noise_floors
from fairtransport.auditing.result import Reading, StratumSummary
from fairtransport.metrics import NoiseFloor
from fairtransport.transport.line import wasserstein
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairtransport.auditing._confidence_intervals import Block
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.options import Options

__all__ = ["read_strata"]


def read_strata(
    strata: Iterable[tuple[str, Evidence]], n_strata: int, options: Options, rng: np.random.Generator
) -> tuple[tuple[StratumSummary, ...], dict[str, Reading]]:
    """Measure each stratum, and their mean.

    Parameters
    ----------
    strata : iterable of (name, Evidence)
        Groups without rows may be among theirs; they are left out.
    n_strata : int
        How many there are.
    options : Options
    rng : numpy.random.Generator

    Returns
    -------
    summaries : tuple of StratumSummary
    readings : dict of str to Reading
        The mean over strata, by weight; empty where none can be compared. Noise is drawn and groups are shuffled
        within each stratum.

    Notes
    -----
    A stratum with fewer than two groups, or without the group that is the target, says nothing about differences
    between groups. It is listed and set aside.
    """
    seen: list[tuple[StratumSummary, float, Block | None, dict[str, float], dict[str, NoiseFloor]]] = []
    for name, evidence in strata:
        histograms = evidence.histograms
        here = histograms.effective_sizes[histograms.weights > 0]
        blank = StratumSummary(
            name, int(histograms.rows.sum()), 0.0, here.size, int((here < options.unsure_below).sum()), {}, {}, {}
        )
        block = _block(evidence, options, n_strata) if here.size >= 2 else None
        if block is None:
            seen.append((blank, 0.0, None, {}, {}))
            continue
        values = _disparities(evidence, options.target)
        floors = noise_floors([block], options.n_permutations, rng)
        seen.append((blank, float(histograms.everyone.sum()), block, values, floors))
    total = sum(weight for _, weight, *_ in seen)
    summaries, blocks, all_values, all_floors = [], [], [], []
    for blank, weight, block, values, floors in seen:
        if block is None:
            summaries.append(blank)
            continue
        blocks.append(replace(block, weight=weight / total))
        all_values.append(values)
        all_floors.append(floors)
        means, p_values = ({name: getattr(floors[name], word) for name in METRICS} for word in ("mean", "p_value"))
        summaries.append(
            replace(blank, share=weight / total, metrics=values, floors=means, p_values=p_values),
        )
    if not blocks:
        return tuple(summaries), {}
    weights = [block.weight for block in blocks]
    floors = {name: _sum_floors(weights, [one[name] for one in all_floors]) for name in METRICS}
    return tuple(summaries), read_blocks(blocks, all_values, floors, options, rng)


def _sum_floors(weights: Sequence[float], floors: Sequence[NoiseFloor]) -> NoiseFloor:
    """Add up what was read and what the shuffles read; shuffles of different strata are independent."""
    observed = sum(weight * floor.observed for weight, floor in zip(weights, floors, strict=True))
    return NoiseFloor(observed, np.tensordot(weights, [floor.values for floor in floors], 1))


def _block(evidence: Evidence, options: Options, n_strata: int) -> Block | None:
    """Return the block of a stratum; None where the group that is the target has no rows."""
    histograms = evidence.histograms.filled()
    try:
        yardsticks = make_yardsticks(histograms, options.target)
    except ValueError:
        return None
    return make_block(histograms, yardsticks, n_blocks=n_strata)


def _disparities(evidence: Evidence, target: Any) -> dict[str, float]:
    """Return the three disparities of the groups that have rows, from their distributions one by one."""
    histograms = evidence.histograms
    weights = histograms.weights
    places = np.flatnonzero(weights > 0)
    samples, everyone = [evidence.sample(place) for place in places.tolist()], evidence.sample(EVERYONE)
    aim = resolve_target(
        histograms.unit_target(target),
        samples,
        weights[places],
        labels=[histograms.groups.labels[place] for place in places],
        names=[histograms.groups.names[place] for place in places],
        everyone=everyone,
    )
    return {
        METRICS[0]: sum(wasserstein(sample, aim) for sample in samples),
        METRICS[1]: sum(wasserstein(sample, everyone) for sample in samples),
        METRICS[2]: sum(wasserstein(one, other) for one, other in combinations(samples, 2)),
    }
