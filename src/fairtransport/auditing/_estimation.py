"""Evidence -> Audit: every figure, estimated with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats
from fairtransport.auditing._confidence_intervals import PAIRS_TEST, RANK_METRICS, joint_noise_floors, make_norms
from fairtransport.auditing._disparity_readings import make_stratum, score_readings
from fairtransport.auditing._evidence import EVERYONE, groups_to_compare
from fairtransport.auditing._group_comparison import ComparedPart, compare_groups, compare_parts, rank_part
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
    share,
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
from fairtransport.strata import stratum_weights
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors.regression import ResidualMoments

# Summaries of groups, of thresholds and of the farthest pair of groups.


def summarise_group(evidence: Evidence, group: int, options: Options, *, judged: bool) -> GroupSummary:
    """Return the size, scores and errors of the group with this index."""
    histograms = evidence.histograms
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
        ratios=tuple(float(rate.value / top) if top > 0 else None for rate in outcomes),
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
    judged = histograms.effective_sizes >= options.groups.min_size
    compared, _ = groups_to_compare(histograms.effective_sizes, options.groups.min_size)
    reference = resolve_reference(options.reference, evidence, judged)
    target = make_norms(histograms, options.target)[0].group
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
        distances=unit * evidence.distances(),
        pair_p_values=comparison.pair_p_values,
        farthest=comparison.farthest,
        clearest=comparison.clearest,
        largest_distance=comparison.largest_distance,
        metrics_all_groups={name: unit * value for name, value in evidence.disparities(options.target).items()},
        auc=estimate_auc(evidence, EVERYONE, options) if histograms.has_labels else None,
        **errors,
        within=within,
        histograms=histograms,
        rank_distances=None if evidence.rank_scale is None else evidence.ranked().distances(),
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
        distances = part.evidence.distances() if part.scores is None else part.scores.distances()
        total[at] += part.stratum.weight * distances * (1.0 if grid is None else grid.high - grid.low)
        weights[at] += part.stratum.weight
    return np.divide(total, weights, out=np.full_like(total, np.nan), where=weights > 0)
