"""Evidence -> Audit: every figure, estimated with its interval."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._disparity_norms import make_norms
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing._group_comparison import compare_groups
from fairtransport.auditing._group_summaries import (
    compared_groups,
    estimate_auc,
    summarise_group,
    summarise_threshold,
)
from fairtransport.auditing._small_groups import SmallGroups
from fairtransport.auditing.errors.calibration import estimate_calibration
from fairtransport.auditing.errors.cross_auc import estimate_cross_auc
from fairtransport.auditing.errors.rates import estimate_error_rates, resolve_reference
from fairtransport.auditing.errors.regression import estimate_regression
from fairtransport.auditing.errors.separation import estimate_separation
from fairtransport.auditing.proportions import share
from fairtransport.auditing.records import Reading, Settings
from fairtransport.auditing.result import Audit
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing._group_comparison import GroupComparison
    from fairtransport.auditing.errors._residual_moments import ResidualMoments
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.records import WithinStrata

__all__ = ["estimate_audit"]

_TARGET_DESCRIPTIONS = dict(
    zip(
        TARGET_WORDS,
        ("the groups' Wasserstein-1 barycenter", "the groups' Wasserstein-2 barycenter", "everyone"),
        strict=True,
    )
)


def estimate_audit(
    evidence: Evidence,
    options: Options,
    rng: np.random.Generator,
    *,
    within: WithinStrata | None = None,
    strata: tuple[str, ...] = (),
    set_aside: Mapping[str, int] | None = None,
    small_groups: SmallGroups | None = None,
    residuals: ResidualMoments | None = None,
) -> Audit:
    """Estimate all figures of an audit.

    Parameters
    ----------
    evidence : Evidence
    options : Options
    rng : numpy.random.Generator
    within : WithinStrata, optional
        Groups compared within labels or strata; see `compare_within`.
    strata : tuple of str, default ()
        Names of the columns of the strata.
    set_aside : dict of str to int, optional
        Number of rows left out, by reason.
    small_groups : SmallGroups, optional
        How small groups were treated.
    residuals : ResidualMoments, optional
        Of real-valued labels.

    Returns
    -------
    Audit
    """
    histograms = evidence.histograms
    judged = histograms.effective_sizes >= options.min_judged_rows
    reference = resolve_reference(options.reference, evidence, judged)
    target = make_norms(histograms, options.target)[0].group
    comparison = compare_groups(evidence, compared_groups(judged), target, options, rng)
    readings = comparison.readings
    grid = histograms.grid
    unit = grid.high - grid.low if grid.positions else 1.0
    if histograms.has_labels:
        readings = {"error_rate": _error_reading(evidence, options), **readings}
    return Audit(
        groups=tuple(summarise_group(evidence, i, options, judged=bool(judged[i])) for i in range(judged.size)),
        readings=readings,
        thresholds=tuple(
            replace(summarise_threshold(evidence, cut, options, judged), top_share=share)
            for cut, share in zip(options.thresholds, options.top_shares, strict=True)
        ),
        distances=unit * evidence.distances(),
        pair_p_values=comparison.pair_p_values,
        farthest=comparison.farthest,
        largest_distance=comparison.largest_distance,
        metrics_all_groups={name: unit * value for name, value in evidence.disparities(options.target).items()},
        auc=estimate_auc(evidence, EVERYONE, options) if histograms.has_labels else None,
        **_errors(evidence, options, judged, reference, rng, known=_known_separation(within, options, strata)),
        within=within,
        histograms=histograms,
        rank_distances=None if evidence.rank_scale is None else evidence.ranked().distances(),
        regression=None
        if residuals is None
        else estimate_regression(
            residuals,
            histograms.groups.names,
            judged,
            reference,
            confidence=options.confidence,
            score_range=(grid.low, grid.high),
        ),
        settings=_settings(
            evidence,
            options,
            target,
            comparison,
            strata=strata,
            set_aside=set_aside or {},
            small_groups=small_groups or SmallGroups(),
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
    ranks = "rank_disparity" in within.readings
    return {key: within.readings["rank_disparity" if ranks else "strong_pairwise_disparity"]}


def _errors(
    evidence: Evidence,
    options: Options,
    judged: NDArray[np.bool_],
    reference: int,
    rng: np.random.Generator,
    *,
    known: dict[int | None, Reading],
) -> dict[str, Any]:
    """Return the figures that need labels."""
    if not evidence.histograms.has_labels:
        return {"error_rates": (), "separation": None, "calibration": None, "cross_auc": None}
    compared = compared_groups(judged).tolist()
    return {
        "error_rates": tuple(
            estimate_error_rates(evidence, cut, options, reference, rng) for cut in options.thresholds
        ),
        "separation": estimate_separation(evidence, options, rng, known=known),
        "calibration": estimate_calibration(evidence, options, compared, rng),
        "cross_auc": estimate_cross_auc(evidence, options, rng),
    }


def _error_reading(evidence: Evidence, options: Options) -> Reading:
    tally = evidence.wrong(options.unit_thresholds[0], EVERYONE)
    error = share(tally, options.confidence)
    size = tally.total**2 / (tally.inside_squares + tally.outside_squares)
    margin = float(np.sqrt(np.log(2 / (1 - options.confidence)) / (2 * size)))
    return Reading(error.value, error.low, error.high, corrected=error.value, margin=margin)


def _settings(
    evidence: Evidence,
    options: Options,
    target: int,
    comparison: GroupComparison,
    *,
    strata: tuple[str, ...],
    set_aside: Mapping[str, int],
    small_groups: SmallGroups,
    task: str | None,
) -> Settings:
    histograms = evidence.histograms
    return Settings(
        target=_describe_target(options.target, histograms.groups.names, target),
        confidence=options.confidence,
        n_bootstrap=options.n_bootstrap,
        n_permutations=options.n_permutations,
        exact=evidence.exact,
        n_bins=histograms.grid.n_bins,
        range=(histograms.grid.low, histograms.grid.high),
        columns=histograms.groups.columns,
        weighted=histograms.squares is not None,
        null="permuted" if comparison.permuted else "resampled",
        n_nodes=comparison.n_nodes,
        min_judged_rows=options.min_judged_rows,
        materiality=options.materiality,
        set_aside=dict(set_aside),
        small_groups=small_groups,
        favourable=options.favourable,
        criterion=options.criterion,
        strata=strata,
        bounded=not histograms.grid.positions,
        task=task,
    )


def _describe_target(target: Any, names: Sequence[str], group: int) -> str:
    if isinstance(target, str) and target in _TARGET_DESCRIPTIONS:
        return _TARGET_DESCRIPTIONS[target]
    if group >= 0:
        return f"the scores of {names[group]}"
    if isinstance(target, (Sample, list, np.ndarray)):
        return f"a distribution of {len(target)} values"
    return "given"
