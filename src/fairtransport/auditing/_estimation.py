"""Evidence -> Audit: every figure, estimated with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from fairtransport.auditing._evidence import EVERYONE, groups_to_compare, variance_precision
from fairtransport.auditing.errors.calibration import estimate_calibration
from fairtransport.auditing.errors.rates import estimate_error_rates, resolve_reference
from fairtransport.auditing.errors.regression import estimate_regression
from fairtransport.auditing.errors.separation import estimate_separation
from fairtransport.auditing.errors.summary import estimate_cross_auc
from fairtransport.auditing.options import Options, place_thresholds
from fairtransport.auditing.proportions import (
    Estimate,
    area_under_curve,
    complement,
    difference,
    extremes_confidence,
    holm,
    ratio,
    selection_factor,
    share,
    student_quantile,
)
from fairtransport.auditing.records import (
    QUANTILE_LEVELS,
    GroupSummary,
    Reading,
    Settings,
    SmallGroups,
    StratumSummary,
    ThresholdSummary,
    WithinStrata,
)
from fairtransport.auditing.result import Audit
from fairtransport.criteria.criterion import needs_labels
from fairtransport.groups import MIN_SHOWN_ROWS
from fairtransport.histograms import GroupHistograms
from fairtransport.metrics import NoiseFloor
from fairtransport.strata import stratum_weights
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from fairtransport.auditing._confidence_intervals import DisparityNorm, PairTests, Stratum
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors.regression import ResidualMoments
    from fairtransport.auditing.records import PairSummary


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
    values = dict(zip(RANK_METRICS, (float(np.triu(ranked.distances, 1).sum()), evidence.largest_gap()), strict=True))
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
    each = (part.evidence.distances[np.triu_indices(len(part.groups), 1)][:, None] for part in parts)
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
        distance = sum(weight * float(each.distances[0, 1]) for weight, each in zip(weights, alone, strict=True))
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
            weight * float(each.distances[0, 1]) * (grid.high - grid.low)
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
    half = factor * student_quantile(welch, (1 + confidence) / 2) * float(np.sqrt(variance))
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half))


# Summaries of groups, of thresholds and of the farthest pair of groups.


def summarise_group(evidence: Evidence, group: int, options: Options, *, judged: bool) -> GroupSummary:
    """Return the size, scores and errors of the group with this index."""
    histograms = evidence.histograms
    if not histograms.weights[group] > 0:
        return _withheld_group(histograms.groups.names[group], int(histograms.group_rows[group]))
    sample = evidence.sample(group)
    grid, error = histograms.grid, None
    if histograms.has_labels:
        error = share(evidence.wrong(options.unit_thresholds[0], group), options.inference.confidence)
    unit = grid.high - grid.low if grid.positions else 1.0
    return GroupSummary(
        name=histograms.groups.names[group],
        rows=int(histograms.group_rows[group]),
        weight=float(histograms.weights[group]),
        effective_rows=float(histograms.effective_sizes[group]),
        judged=judged,
        mean=float(grid.from_unit(sample.mean)),
        quantiles=tuple(grid.from_unit(sample.quantile(QUANTILE_LEVELS)).tolist()),
        distance_to_everyone=unit * wasserstein(sample, evidence.sample(EVERYONE)),
        error=error,
        auc=estimate_auc(evidence, group, options) if histograms.has_labels else None,
    )


def _withheld_group(name: str, rows: int) -> GroupSummary:
    """Return the summary of a group whose rows no figure depends on."""
    unknown = (math.nan,) * len(QUANTILE_LEVELS)
    return GroupSummary(name, rows, float(rows), float(rows), False, math.nan, unknown, math.nan)


def estimate_auc(evidence: Evidence, group: int, options: Options) -> Estimate | None:
    """Return the area under the ROC curve of a group, or of all rows; None unless both classes are present."""
    weights, squares = (sums.sum(axis=1) for sums in evidence.masses(group))
    sizes = np.divide(weights**2, squares, out=np.zeros(2), where=squares > 0)
    negatives, positives = evidence.class_sample(0, group), evidence.class_sample(1, group)
    return area_under_curve(negatives, positives, (float(sizes[0]), float(sizes[1])), options.inference.confidence)


def summarise_threshold(
    evidence: Evidence, threshold: float, options: Options, compared: NDArray[np.intp]
) -> ThresholdSummary:
    """Return selection rates and errors at a threshold, with the extremes of some groups."""
    at = float(evidence.histograms.grid.to_unit(threshold))
    groups = range(len(evidence.histograms.groups))
    rates = tuple(share(evidence.selected(at, group), options.inference.confidence) for group in groups)
    values = np.array([rate.value for rate in rates])
    lowest, highest = int(compared[np.argmin(values[compared])]), int(compared[np.argmax(values[compared])])
    high_is_favourable = options.favourable == "high"
    outcomes = rates if high_is_favourable else tuple(complement(rate) for rate in rates)
    top = outcomes[highest if high_is_favourable else lowest].value
    level = extremes_confidence([rates[i] for i in compared], options.inference.confidence)
    lower, higher = (share(evidence.selected(at, group), level) for group in (lowest, highest))
    rate_ratio = ratio(lower, higher) if high_is_favourable else ratio(complement(higher), complement(lower))
    errors = None
    if evidence.histograms.has_labels:
        errors = tuple(share(evidence.wrong(at, group), options.inference.confidence) for group in groups)
    return ThresholdSummary(
        threshold=float(threshold),
        rates=rates,
        overall=evidence.selected(at, EVERYONE).value,
        ratios=tuple(float(rate.value / top) if top > 0 and rate.value >= 0 else None for rate in outcomes),
        lowest=lowest,
        highest=highest,
        difference=difference(higher, lower),
        ratio=rate_ratio,
        four_fifths=bool(rate_ratio.value >= 0.8) if top > 0 else None,
        conclusive=bool(top > 0 and (rate_ratio.low >= 0.8 or rate_ratio.high < 0.8)),
        errors=errors,
        favourable=options.favourable,
    )


_TARGETS = ("the groups' Wasserstein-1 barycenter", "the groups' Wasserstein-2 barycenter", "everyone")


def estimate_audit(
    evidence: Evidence,
    options: Options,
    alike: Iterable[AlikeRows] | None = None,
    *,
    strata: tuple[str, ...] = (),
    set_aside: Mapping[str, int] | None = None,
    small_groups: SmallGroups | None = None,
    residuals: ResidualMoments | None = None,
) -> Audit:
    """Estimate all figures of an audit; ``alike`` are the rows within which its criterion compares groups."""
    histograms, confidence = evidence.histograms, options.inference.confidence
    rng = np.random.default_rng(options.inference.random_state)
    options = place_thresholds(options, histograms)
    within = None if alike is None else compare_within(alike, evidence, options, rng)
    filled = np.flatnonzero(histograms.weights > 0)  # figures of the others are withheld
    judged = histograms.effective_sizes >= options.groups.min_size
    compared, _ = groups_to_compare(histograms.effective_sizes, options.groups.min_size)
    reference = resolve_reference(options.reference, evidence, judged)
    target = make_norms(histograms, options.target)[0].group
    if target >= 0 and target not in filled:
        raise ValueError(
            f"The group that is the target has fewer than {MIN_SHOWN_ROWS} rows: distances to it would be figures of "
            "single people. Name a larger group."
        )
    comparison = compare_groups(evidence, compared, target, options, rng)
    readings = comparison.readings
    grid = histograms.grid
    unit = grid.high - grid.low if grid.positions else 1.0
    regression = None
    if residuals is not None:
        ends, names = (grid.low, grid.high), histograms.groups.names
        regression = estimate_regression(residuals, names, judged, reference, confidence=confidence, score_range=ends)
    errors: dict[str, Any] = {"error_rates": (), "separation": None, "calibration": None, "cross_auc": None}
    if histograms.has_labels:
        readings = {"error_rate": _error_reading(evidence, options), **readings}
        known = _known_separation(within, options, strata)
        errors = {
            "error_rates": tuple(
                estimate_error_rates(evidence, cut, options, reference, rng) for cut in options.thresholds
            ),
            "separation": estimate_separation(evidence, options, rng, known=known),
            "calibration": estimate_calibration(evidence, options, compared.tolist(), rng),
            "cross_auc": estimate_cross_auc(evidence, options, rng),
        }
    return Audit(
        groups=tuple(summarise_group(evidence, i, options, judged=bool(judged[i])) for i in range(judged.size)),
        readings=readings,
        thresholds=tuple(
            replace(summarise_threshold(evidence, cut, options, compared), top_share=share)
            for cut, share in zip(options.thresholds, options.top_shares, strict=True)
        ),
        distances=unit * _distances(evidence, filled),
        pair_p_values=comparison.pair_p_values,
        farthest=comparison.farthest,
        clearest=comparison.clearest,
        largest_distance=comparison.largest_distance,
        metrics_all_groups={}
        if filled.size < len(histograms.groups)
        else {name: unit * value for name, value in evidence.disparities(options.target).items()},
        auc=estimate_auc(evidence, EVERYONE, options) if histograms.has_labels else None,
        **errors,
        within=within,
        histograms=histograms,
        rank_distances=None if evidence.rank_scale is None else _distances(evidence.ranked(), filled),
        regression=regression,
        settings=Settings(
            target=_describe_target(options.target, histograms.groups.names, target),
            confidence=confidence,
            n_bootstrap=options.inference.n_bootstrap,
            n_permutations=options.inference.n_permutations,
            exact=evidence.exact,
            n_bins=grid.n_bins,
            range=(grid.low, grid.high),
            columns=histograms.groups.columns,
            weighted=histograms.squares is not None,
            null="permuted" if comparison.permuted else "resampled",
            n_nodes=comparison.n_nodes,
            materiality=float(options.materiality),
            set_aside=dict(set_aside or {}),
            small_groups=small_groups or SmallGroups(),
            favourable=options.favourable,
            criterion=options.criterion,
            strata=strata,
            bounded=not grid.positions,
            task="regression" if residuals is not None else "classification" if histograms.has_labels else None,
        ),
    )


def _distances(evidence: Evidence, groups: NDArray[np.intp]) -> Floats:
    """Return the distances between every two of some groups; NaN for the others."""
    if groups.size == len(evidence.histograms.groups):
        return evidence.distances
    distances = np.full((len(evidence.histograms.groups),) * 2, np.nan)
    distances[np.ix_(groups, groups)] = evidence.only(groups).distances
    return distances


def _known_separation(
    within: WithinStrata | None, options: Options, strata: tuple[str, ...]
) -> dict[int | None, Reading]:
    """Return the disparities within labels that the criterion has had estimated, by label; None for both labels."""
    if within is None or strata or not within.judged or within.set_aside:
        return {}
    key = {"equalized_odds": None, "equal_opportunity": 1}[options.criterion]
    readings = within.mean_readings
    return {key: readings["rank_disparity" if "rank_disparity" in readings else "strong_pairwise_disparity"]}


def _error_reading(evidence: Evidence, options: Options) -> Reading:
    tally = evidence.wrong(options.unit_thresholds[0], EVERYONE)
    error = share(tally, options.inference.confidence)
    size = tally.total**2 / (tally.inside_squares + tally.outside_squares)
    margin = float(np.sqrt(np.log(2 / (1 - options.inference.confidence)) / (2 * size)))
    return Reading(error.value, error.low, error.high, corrected=error.value, margin=margin)


def _describe_target(target: Any, names: Sequence[str], group: int) -> str:
    if isinstance(target, str) and target in TARGET_WORDS:
        return _TARGETS[TARGET_WORDS.index(target)]
    if group >= 0:
        return f"the scores of {names[group]}"
    if isinstance(target, (Sample, list, np.ndarray)):
        return f"a distribution of {len(target)} values"
    return "given"


# Groups compared among people who are alike: with the same label, or in the same stratum.

#: Names of the rows with label 0 and label 1.
LABEL_NAMES = ("negative", "positive")


class AlikeRows(NamedTuple):
    """The rows with one label, of one stratum, or both."""

    label: int | None
    stratum: str | None
    evidence: Evidence

    @property
    def name(self) -> str:
        """Name for tables, such as ``"positive, north"``."""
        label = None if self.label is None else LABEL_NAMES[self.label]
        return ", ".join(part for part in (label, self.stratum) if part is not None)


def compare_within(
    rows: Iterable[AlikeRows], whole: Evidence, options: Options, rng: np.random.Generator
) -> WithinStrata:
    """Compare groups among people who are alike, and average over labels and strata.

    A part with fewer than two judged groups, or without the group that is the target, is listed but set aside. Where no
    part has two groups that are judged, all groups are compared.
    """
    known = list(rows)
    index = {label: number for number, label in enumerate(whole.histograms.groups.labels)}
    sizes = [each.evidence.histograms.effective_sizes for each in known]
    present = [np.flatnonzero(each.evidence.histograms.weights > 0) for each in known]
    judged = [np.flatnonzero(size >= options.groups.min_size) for size in sizes]
    any_judged = any(groups.size >= 2 for groups in judged)
    summaries = [
        StratumSummary(each.name, each.label, int(each.evidence.histograms.rows.sum()), 0.0, n.size, m.size, {}, {}, {})
        for each, n, m in zip(known, present, judged, strict=True)
    ]
    measured: list[tuple[int, ComparedPart]] = []
    for number, (each, groups) in enumerate(zip(known, judged if any_judged else present, strict=True)):
        part = _measure(each.evidence.only(groups), index, options, len(known)) if groups.size >= 2 else None
        if part is not None:
            measured.append((number, part))
    if not measured:
        where = (
            "label" if needs_labels(options.criterion) and all(each.stratum is None for each in known) else "stratum"
        )
        raise ValueError(f"There is nothing to compare: no {where} has rows of two groups.")
    masses = [float(part.evidence.histograms.everyone.sum()) for _, part in measured]
    weights = stratum_weights([known[number].label for number, _ in measured], masses).tolist()
    parts = [
        part._replace(stratum=replace(part.stratum, weight=weight))
        for (_, part), weight in zip(measured, weights, strict=True)
    ]
    total, floors = joint_noise_floors([part.stratum for part in parts], options.inference.n_permutations, rng)
    adjusted = holm([each[PAIRS_TEST].p_value for each in floors]).tolist()
    for (number, part), weight, floor, p_value in zip(measured, weights, floors, adjusted, strict=True):
        n_pairs = {RANK_METRICS[0]: comb(len(part.groups), 2)}  # the others are the paper's sums, or a maximum
        summaries[number] = replace(
            summaries[number],
            weight=weight,
            metrics={name: value / n_pairs.get(name, 1) for name, value in part.values.items()},
            floors={name: floor[name].mean / n_pairs.get(name, 1) for name in part.values},
            p_values=dict.fromkeys(part.values, p_value),
            withheld=bool(part.evidence.histograms.group_rows.min() < MIN_SHOWN_ROWS),
        )
    comparison = compare_parts(parts, total, len(index), options, rng)
    readings = comparison.readings
    if whole.rank_scale is not None:
        in_units = _score_readings(parts, options, rng, p_value=total[PAIRS_TEST].p_value, whole=whole)
        readings = {**in_units, **readings}
    return WithinStrata(
        strata=tuple(summaries),
        readings=readings,
        distances=_mean_distances(parts, len(index)),
        pair_p_values=comparison.pair_p_values,
        farthest=comparison.farthest,
        clearest=comparison.clearest,
        largest_distance=comparison.largest_distance,
        groups=tuple(sorted({group for part in parts for group in part.groups})),
        judged=any_judged,
    )


def _measure(evidence: Evidence, index: dict[Any, int], options: Options, n_parts: int) -> ComparedPart | None:
    """Return the disparities of some rows; None where the group that is the target has none of them."""
    groups = tuple(index[label] for label in evidence.histograms.groups.labels)
    if evidence.rank_scale is not None:
        return rank_part(evidence, groups, n_parts=n_parts)
    try:
        norms = make_norms(evidence.histograms, options.target)
    except ValueError:
        return None
    stratum = make_stratum(evidence.histograms, norms, n_strata=n_parts, groups=groups)
    return ComparedPart(evidence, stratum, evidence.disparities(options.target))


def _score_readings(
    parts: Sequence[ComparedPart], options: Options, rng: np.random.Generator, *, p_value: float, whole: Evidence
) -> dict[str, Reading]:
    """Return the disparities of the scores in their units; none where a part has no rows of the target's group."""
    scores = [(part.scores, part.stratum.weight) for part in parts if part.scores is not None]
    try:
        return score_readings(scores, options, rng, p_value=p_value, whole=whole)
    except ValueError:
        return {}


def _mean_distances(parts: Sequence[ComparedPart], n_groups: int) -> Floats:
    """Return the distance of each pair, averaged over the parts with both groups; NaN where there is none."""
    total, weights = np.zeros((n_groups, n_groups)), np.zeros((n_groups, n_groups))
    for part in parts:
        at = np.ix_(part.groups, part.groups)
        grid = None if part.scores is None else part.scores.histograms.grid
        distances = part.evidence.distances if part.scores is None else part.scores.distances
        total[at] += part.stratum.weight * distances * (1.0 if grid is None else grid.high - grid.low)
        weights[at] += part.stratum.weight
    return np.divide(total, weights, out=np.full_like(total, np.nan), where=weights > 0)
