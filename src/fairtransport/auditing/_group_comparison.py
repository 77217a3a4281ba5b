"""The groups that are judged, compared: disparities, all pairs, and the pair that stands for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from fairtransport._arrays import Floats
from fairtransport.auditing._confidence_intervals import (
    METRICS,
    PAIRS_TEST,
    RANK_METRICS,
    RANK_NORMS,
    compare_pairs,
    index_pairs,
    joint_noise_floors,
    make_norms,
)
from fairtransport.auditing._disparity_readings import (
    disparity_readings,
    make_stratum,
    pair_estimate,
    score_readings,
    summarise_pair,
)
from fairtransport.auditing._evidence import variance_precision
from fairtransport.auditing.options import Options
from fairtransport.auditing.proportions import Estimate, selection_factor
from fairtransport.histograms import GroupHistograms
from fairtransport.metrics import NoiseFloor

if TYPE_CHECKING:
    from fairtransport.auditing._confidence_intervals import DisparityNorm, PairTests, Stratum
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.records import PairSummary, Reading

# Distribution-free bounds on disparities: Dvoretzky, Kiefer and Wolfowitz, with Massart's constant.


def distribution_free_margins(
    norms: Sequence[DisparityNorm], sizes: Floats, weights: Floats, confidence: float
) -> dict[str, float]:
    r"""Bound the difference between each disparity and its true value, for any distributions.

    With confidence :math:`1 - \alpha`, all of G empirical distribution functions are uniformly within
    :math:`\varepsilon_a = \min(1, \sqrt{\log(2 G / \alpha) / (2 n_a)})` of the true ones, so the error of a distance is
    at most the sum of two such bounds; of that to the Wasserstein-1 barycenter, a minimum, the sum over groups.
    """
    n_groups = sizes.size
    radius = np.minimum(1.0, np.sqrt(np.log(2 * n_groups / (1 - confidence)) / (2 * np.maximum(sizes, 1e-9))))
    total, pooled = float(radius.sum()), float(weights @ radius / weights.sum())
    margins = {
        "pairs": (n_groups - 1) * total,
        "everyone": total + n_groups * pooled,
        "mean": total + n_groups * pooled,
        "largest": float(np.sort(radius)[-2:].sum()),
    }
    return {
        norm.name: total + (n_groups - 2) * float(radius[norm.group])
        if norm.kind == "group"
        else margins.get(norm.kind, total)
        for norm in norms
    }


class ComparedPart(NamedTuple):
    """Rows within which groups are compared with each other: all rows, or those of one label or stratum."""

    evidence: Evidence
    stratum: Stratum
    values: Mapping[str, float]
    scores: Evidence | None = None

    @property
    def groups(self) -> tuple[int, ...]:
        """Indices of the groups in the audit."""
        return self.stratum.groups or ()


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """The differences between some groups of an audit."""

    readings: dict[str, Reading]
    pair_p_values: Floats
    farthest: PairSummary
    clearest: PairSummary
    largest_distance: Estimate
    n_nodes: int
    permuted: bool


def compare_groups(
    evidence: Evidence, groups: NDArray[np.intp], target: int, options: Options, rng: np.random.Generator
) -> GroupComparison:
    """Compare some groups with each other; rows that belong to none of them are left out.

    A target that is not among them is added for the distance to it. Without known bounds, ranks are compared.
    """
    n_groups = len(evidence.histograms.groups)
    compared = evidence if groups.size == n_groups else evidence.only(groups)
    wider, own_options = None, options
    if target >= 0 and target not in groups:
        wider, own_options = evidence.only(np.append(groups, target)), replace(options, target="barycenter")
    beside: dict[str, Reading] = {}
    to_target: dict[str, Reading] = {}
    if evidence.rank_scale is None:
        if wider is not None:
            to_target = _compare(wider, range(n_groups), options, rng, n_groups)[0].readings
        comparison, _ = _compare(compared, groups.tolist(), own_options, rng, n_groups)
    else:
        comparison, p_value = _compare(compared, groups.tolist(), own_options, rng, n_groups)
        beside = score_readings([(compared, 1.0)], own_options, rng, p_value=p_value, whole=evidence)
        if wider is not None:
            to_target = score_readings([(wider, 1.0)], options, rng, p_value=p_value, whole=evidence)
    readings = {**beside, **comparison.readings}
    return replace(comparison, readings=readings | {name: to_target[name] for name in METRICS[:1] if name in to_target})


def _compare(
    evidence: Evidence, groups: Sequence[int], options: Options, rng: np.random.Generator, n_groups: int
) -> tuple[GroupComparison, float]:
    """Compare groups among all of their rows, with distribution-free margins; return the p-value, too."""
    histograms = evidence.histograms
    own = tuple(groups[: len(histograms.groups)])
    resolution: Mapping[str, float] = {}
    if evidence.rank_scale is not None:
        part = rank_part(evidence, own)
    else:
        stratum = make_stratum(histograms, make_norms(histograms, options.target), groups=own)
        part = ComparedPart(evidence, stratum, evidence.disparities(options.target))
        resolution = {} if evidence.exact else histograms.bounds()
    floors, _ = joint_noise_floors([part.stratum], options.inference.n_permutations, rng)
    comparison = compare_parts([part], floors, n_groups, options, rng)
    margins = distribution_free_margins(
        part.stratum.norms, histograms.effective_sizes, histograms.weights, options.inference.confidence
    )
    margins[RANK_METRICS[0]] = math.inf  # ranks depend on the scores of everyone
    readings = {
        name: replace(reading, margin=margins[name], resolution=resolution.get(name, 0.0))
        for name, reading in comparison.readings.items()
    }
    return replace(comparison, readings=readings), floors[PAIRS_TEST].p_value


def rank_part(evidence: Evidence, groups: tuple[int, ...], *, n_parts: int = 1) -> ComparedPart:
    """Return the rows of groups with ranks instead of scores, and the disparities of the ranks."""
    ranked = evidence.ranked()
    stratum = make_stratum(ranked.histograms, RANK_NORMS, n_strata=n_parts, groups=groups)
    values = dict(zip(RANK_METRICS, (float(np.triu(ranked.distances(), 1).sum()), evidence.largest_gap()), strict=True))
    return ComparedPart(ranked, stratum, values, evidence)


def compare_parts(
    parts: Sequence[ComparedPart],
    floors: Mapping[str, NoiseFloor],
    n_groups: int,
    options: Options,
    rng: np.random.Generator,
) -> GroupComparison:
    """Compare groups within each part of the rows, and average over parts by weight."""
    strata = [part.stratum for part in parts]
    p_value = floors[PAIRS_TEST].p_value
    readings = disparity_readings(strata, [part.values for part in parts], floors, options, rng, p_value=p_value)
    tests = compare_pairs(strata, p_value, options.inference.confidence, options.inference.n_bootstrap, rng)
    each = (part.evidence.distances()[np.triu_indices(len(part.groups), 1)][:, None] for part in parts)
    observed = index_pairs(strata).mean(strata, each)[:, 0]
    chosen = {
        index: _summarise(parts, tests, index, options, rng, readings=readings)
        for index in (tests.main_pair(1 - options.inference.confidence), int(np.argmax(observed)))
    }
    if RANK_METRICS[0] in readings:
        n_pairs = sum(part.stratum.weight * math.comb(len(part.groups), 2) for part in parts)
        readings[RANK_METRICS[0]] = readings[RANK_METRICS[0]].scaled(1 / n_pairs)
    return GroupComparison(
        readings=readings,
        pair_p_values=tests.matrix(n_groups),
        farthest=chosen[int(np.argmax(observed))],
        clearest=max(chosen.values(), key=attrgetter("estimate.low", "estimate.high")),
        largest_distance=_largest_distance(chosen, tests, options.inference.confidence),
        n_nodes=max(stratum.histograms.nodes.size for stratum in strata),
        permuted=all(stratum.histograms.can_permute for stratum in strata),
    )


def _largest_distance(chosen: Mapping[int, PairSummary], tests: PairTests, confidence: float) -> Estimate:
    """Return the largest distance of all pairs, from the estimates of the clearest and of the farthest one."""
    estimates = [pair.estimate for pair in chosen.values()]
    value, low, high = (max(getattr(one, part) for one in estimates) for part in ("value", "low", "high"))
    if low > 0 and len(tests.pairs) > len(chosen):
        factor = selection_factor(len(tests.pairs), np.unique(tests.pairs).size, confidence)
        high = max(high, float(np.delete(tests.distances + factor * tests.noise, list(chosen)).max()))
    return Estimate(value, low, min(high, 1.0))


def _summarise(
    parts: Sequence[ComparedPart],
    tests: PairTests,
    index: int,
    options: Options,
    rng: np.random.Generator,
    *,
    readings: Mapping[str, Reading],
) -> PairSummary:
    """Return a pair of groups with its interval."""
    pair = tests.pairs[index].tolist()
    shared = [part for part in parts if {*pair} <= {*part.groups}]
    total = sum(part.stratum.weight for part in shared)
    weights = [part.stratum.weight / total for part in shared]
    places = [np.array([part.groups.index(group) for group in pair]) for part in shared]
    alone = [part.evidence.only(at) for part, at in zip(shared, places, strict=True)]
    histograms = [each.histograms for each in alone]
    p_value = float(tests.p_values[index])
    factor = 1.0
    if len(tests.pairs) == 1:
        reading = readings[RANK_METRICS[0] if RANK_METRICS[0] in readings else METRICS[2]]
        distance, estimate = reading.value, reading.estimate
        p_value = float(reading.p_value or 0.0)
    else:
        factor = selection_factor(tests.n_rivals(index), np.unique(tests.pairs).size, options.inference.confidence)
        distance = sum(weight * float(each.distances()[0, 1]) for weight, each in zip(weights, alone, strict=True))
        estimate = pair_estimate(
            histograms, options, rng, distance=distance, p_value=p_value, noise_factor=factor, weights=weights
        )
    summary = summarise_pair(_standardised(histograms, weights), 0, 1, distance)
    higher = 0 if summary.higher == histograms[0].groups.names[0] else 1
    difference = mean_difference(histograms, weights, higher, options.inference.confidence, factor)
    summary = replace(summary, estimate=estimate, p_value=p_value, mean_difference=difference)
    scores = [part.scores for part in shared if part.scores is not None]
    if not scores or (scale := scores[0].rank_scale) is None:
        return summary
    two = (each.only(at) for each, at in zip(scores, places, strict=True))
    grid = scores[0].histograms.grid
    return replace(
        summary,
        most_between=tuple(scale.to_scores(summary.most_between).tolist()),
        threshold=float(scale.to_scores(summary.threshold)),
        score_distance=sum(
            weight * float(each.distances()[0, 1]) * (grid.high - grid.low)
            for weight, each in zip(weights, two, strict=True)
        ),
    )


def _standardised(histograms: Sequence[GroupHistograms], weights: Sequence[float]) -> GroupHistograms:
    """Return the mean of the groups' distributions over parts of the rows: as if all groups had the same parts."""
    first = histograms[0]
    if len(histograms) == 1:
        return first
    masses = np.zeros_like(first.by_group)
    for each, weight in zip(histograms, weights, strict=True):
        masses += weight * each.by_group / each.by_group.sum(axis=1, keepdims=True)
    return replace(first, masses=masses[None], squares=None, rows=first.group_rows, members=None)


def mean_difference(
    histograms: Sequence[GroupHistograms], weights: Sequence[float], higher: int, confidence: float, factor: float = 1.0
) -> Estimate:
    """Return the mean score of one of two groups minus that of the other, as a share of the range of scores."""
    value, variance, squared = 0.0, 0.0, 0.0
    for each, weight in zip(histograms, weights, strict=True):
        nodes = each.grid.unit_nodes
        masses, squares = each.by_group, each.squares_by_class.sum(axis=0)
        totals = masses.sum(axis=1)
        means = masses @ nodes / totals
        factors, degrees = variance_precision(each)
        variances = weight**2 * factors * (squares * (nodes - means[:, None]) ** 2).sum(axis=1) / totals**2
        value += weight * float(means[higher] - means[1 - higher])
        variance += float(variances.sum())
        # Half of the degrees of freedom: skewed weights make a mean less certain than its variance tells.
        squared += float(np.sum(variances**2 / (degrees / 2)))
    welch = variance**2 / squared if variance > 0 else 4.0
    half = factor * float(stdtrit(welch, (1 + confidence) / 2)) * float(np.sqrt(variance))
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half))
