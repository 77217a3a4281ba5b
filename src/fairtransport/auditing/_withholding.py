"""Audits without the figures of groups of a few rows, which would be those of single people."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport.groups import MIN_SHOWN_ROWS
from fairtransport.histograms import Grid, GroupHistograms

if TYPE_CHECKING:
    from fairtransport.auditing.errors import ErrorRates, RegressionErrors, Separation
    from fairtransport.auditing.records import AuditData, PairSummary, Reading, ThresholdSummary, WithinStrata

    AuditT = TypeVar("AuditT", bound=AuditData)


def withheld_groups(rows: ArrayLike) -> tuple[int, ...]:
    """Return the indices of the groups whose rows no figure depends on; none unless two other groups are left.

    Figures of all rows minus those of the other groups would be those of single people.
    """
    few = np.asarray(rows) < MIN_SHOWN_ROWS
    return tuple(np.flatnonzero(few).tolist()) if np.count_nonzero(~few) >= 2 else ()


def without_scores_of(
    histograms: GroupHistograms, groups: Collection[int], grid: Grid | None = None
) -> GroupHistograms:
    """Return histograms without the weight of some groups, whose numbers of rows stay.

    Nodes that are scores of others are kept, or those of ``grid``.
    """
    hidden = np.isin(np.arange(len(histograms.groups)), list(groups))
    cells = np.asarray(hidden if histograms.members is None else histograms.members[hidden].any(axis=0))
    old = histograms.grid
    nodes = np.ones(old.n_nodes, dtype=np.bool_)
    if old.positions and grid is not None:
        nodes = np.isin(old.nodes, grid.nodes)
    elif old.positions:
        occupied = np.asarray(histograms.masses[:, ~cells].any(axis=(0, 1)))
        nodes = occupied if np.count_nonzero(occupied) > 1 else nodes
        grid = Grid.at(old.nodes[nodes])

    def kept(masses: Floats) -> Floats:
        return np.where(cells[:, None], 0.0, masses)[..., nodes]

    squares = None if histograms.squares is None else kept(histograms.squares)
    return replace(histograms, masses=kept(histograms.masses), squares=squares, grid=grid or old)


def withhold_small_groups(audit: AuditT) -> AuditT:
    """Return an audit in which the figures of groups with fewer than `MIN_SHOWN_ROWS` rows are NaN or None.

    So are figures of all people where fewer than two groups are left.
    """
    hidden = {index for index, group in enumerate(audit.groups) if group.withheld}
    if audit.within is not None and any(stratum.withheld for stratum in audit.within.strata):
        audit = replace(audit, within=_within(audit.within))
    if not hidden:
        return audit
    names = {audit.groups[index].name for index in hidden}
    audit = _without_figures_of_everyone(audit) if any(not math.isnan(audit.groups[i].mean) for i in hidden) else audit

    def by_group(figures: Any) -> Any:
        return tuple(_blank(figure) if index in hidden else figure for index, figure in enumerate(figures))

    def pair(summary: PairSummary) -> PairSummary:
        return _blank(summary) if names & {summary.lower, summary.higher} else summary

    def largest(estimate: Any, farthest: PairSummary) -> Any:
        return _blank(estimate) if names & {farthest.lower, farthest.higher} else estimate

    known = ("rows", "weight", "effective_rows", "judged")
    within, calibration, crossed = audit.within, audit.calibration, audit.cross_auc
    if within is not None:
        within = replace(
            within,
            distances=_matrix(within.distances, hidden),
            pair_p_values=_matrix(within.pair_p_values, hidden),
            farthest=pair(within.farthest),
            clearest=pair(within.clearest),
            largest_distance=largest(within.largest_distance, within.farthest),
        )
    if calibration is not None:
        groups = tuple(
            replace(_blank(group), bins=()) if index in hidden else group
            for index, group in enumerate(calibration.groups)
        )
        calibration = replace(calibration, groups=groups)
        if calibration.worst in hidden:
            calibration = replace(calibration, largest_error=None, worst=None)
    if crossed is not None:
        kept = [group not in hidden for group in crossed.groups]
        areas = tuple(
            tuple(area if one and other else None for area, other in zip(row, kept, strict=True))
            for row, one in zip(crossed.areas, kept, strict=True)
        )
        crossed = replace(crossed, areas=areas)
    return replace(
        audit,
        groups=tuple(
            replace(_blank(group), **{name: getattr(group, name) for name in known}) if index in hidden else group
            for index, group in enumerate(audit.groups)
        ),
        thresholds=tuple(_threshold(at, hidden, by_group) for at in audit.thresholds),
        metrics_all_groups={},  # also those that earlier releases stored
        distances=_matrix(audit.distances, hidden),
        pair_p_values=_matrix(audit.pair_p_values, hidden),
        rank_distances=None if audit.rank_distances is None else _matrix(audit.rank_distances, hidden),
        farthest=pair(audit.farthest),
        clearest=pair(audit.clearest),
        largest_distance=largest(audit.largest_distance, audit.farthest),
        error_rates=tuple(_error_rates(at, hidden, names) for at in audit.error_rates),
        separation=None if audit.separation is None else _separation(audit.separation, hidden),
        calibration=calibration,
        cross_auc=crossed,
        within=within,
        regression=None if audit.regression is None else _regression(audit.regression, hidden, names),
        histograms=without_scores_of(audit.histograms, hidden),
    )


def _without_figures_of_everyone(audit: AuditT) -> AuditT:
    """Withhold what two groups or more are compared by, and what is said of all people."""
    hidden = next(index for index, group in enumerate(audit.groups) if group.withheld)
    within, calibration, regression, separation = audit.within, audit.calibration, audit.regression, audit.separation
    if within is not None and not within.judged:
        within = _within(within)
    if calibration is not None:
        overall = replace(_blank(calibration.overall), bins=())
        calibration = replace(calibration, overall=overall, largest_error=None, worst=None)
    if regression is not None:
        regression = replace(
            regression,
            overall=dict.fromkeys(regression.overall),
            deciles=(),
            label_mean=math.nan,
            label_deviation=math.nan,
        )
    if separation is not None:
        separation = replace(separation, disparity=None, equalized_odds=None, negatives=None, positives=None)
    return replace(
        audit,
        groups=tuple(replace(group, distance_to_everyone=math.nan) for group in audit.groups),
        readings=_blank_readings(audit.readings),
        thresholds=tuple(
            replace(at, overall=math.nan, ratios=(None,) * len(at.ratios), lowest=hidden, highest=hidden)
            for at in audit.thresholds
        ),
        largest_distance=_blank(audit.largest_distance),
        farthest=_unordered(audit.farthest),
        clearest=_unordered(audit.clearest),
        metrics_all_groups={},
        auc=None,
        error_rates=tuple(replace(at, overall=dict.fromkeys(at.overall)) for at in audit.error_rates),
        separation=separation,
        calibration=calibration,
        within=within,
        regression=regression,
    )


def _blank_readings(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    return {name: replace(_blank(reading), p_value=None) for name, reading in readings.items()}


def _unordered(pair: PairSummary) -> PairSummary:
    """Withhold the figures of two groups, and which of them has the lower scores."""
    return replace(_blank(pair), lower=min(pair.lower, pair.higher), higher=max(pair.lower, pair.higher))


def _within(within: WithinStrata) -> WithinStrata:
    return replace(
        within,
        strata=tuple(replace(stratum, metrics={}, floors={}, p_values={}) for stratum in within.strata),
        readings=_blank_readings(within.readings),
        distances=np.full_like(within.distances, np.nan),
        pair_p_values=np.full_like(within.pair_p_values, np.nan),
        farthest=_unordered(within.farthest),
        clearest=_unordered(within.clearest),
        largest_distance=_blank(within.largest_distance),
    )


def _blank(value: Any) -> Any:
    """Return a record with its numbers withheld; names and counts stay."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _blank(getattr(value, part.name)) for part in fields(value)})
    if isinstance(value, Mapping):
        return dict.fromkeys(value)
    if isinstance(value, tuple):
        return tuple(map(_blank, value))
    return math.nan if isinstance(value, float) else value


def _groups(groups: tuple[Any, ...], hidden: Collection[int], compared: Collection[str]) -> tuple[Any, ...]:
    """Withhold groups, and what the others are compared by where the reference is one of them."""
    return tuple(
        _blank(group)
        if index in hidden
        else replace(group, **{name: _blank(getattr(group, name)) for name in compared})
        for index, group in enumerate(groups)
    )


def _matrix(values: Floats, hidden: Collection[int]) -> Floats:
    shown = values.copy()
    shown[list(hidden)] = shown[:, list(hidden)] = np.nan
    return shown


def _threshold(at: ThresholdSummary, hidden: Collection[int], by_group: Any) -> ThresholdSummary:
    extremes: dict[str, Any] = {}
    if at.lowest in hidden or at.highest in hidden:
        extremes = {"difference": _blank(at.difference), "ratio": _blank(at.ratio)}
        extremes |= {"four_fifths": False, "conclusive": False}
    ratios = tuple(None if index in hidden else ratio for index, ratio in enumerate(at.ratios))
    errors = None if at.errors is None else by_group(at.errors)
    return replace(at, rates=by_group(at.rates), ratios=ratios, errors=errors, **extremes)


def _error_rates(at: ErrorRates, hidden: Collection[int], names: Collection[str]) -> ErrorRates:
    changes: dict[str, Any] = {
        "groups": _groups(at.groups, hidden, ("differences", "ratios") if at.reference in names else ()),
        "gaps": {
            rate: None if gap is not None and {gap.lowest, gap.highest} & {*hidden} else gap
            for rate, gap in at.gaps.items()
        },
    }
    undefined = {rate: tuple(name for name in each if name not in names) for rate, each in at.undefined.items()}
    changes["undefined"] = {rate: each for rate, each in undefined.items() if each}
    for figure in ("equalized_odds", "equal_opportunity"):
        if None in (changes["gaps"]["true_positive_rate"], changes["gaps"]["false_positive_rate"]):
            changes[figure] = None
    return replace(at, **changes)


def _separation(separation: Separation, hidden: Collection[int]) -> Separation:
    """Withhold distances, and differences over thresholds that such a group may decide."""
    parts: dict[str, Any] = {}
    for name in ("negatives", "positives"):
        part = getattr(separation, name)
        if part is not None:
            distances = tuple(
                tuple(None if {row, column} & {*hidden} else one for column, one in enumerate(each))
                for row, each in enumerate(part.distances)
            )
            differences = part.differences if part.judged else _blank(part.differences)
            parts[name] = replace(part, distances=distances, differences=differences)
    if not all(part.judged for part in parts.values()):
        parts["equalized_odds"] = None
    return replace(separation, **parts)


def _regression(errors: RegressionErrors, hidden: Collection[int], names: Collection[str]) -> RegressionErrors:
    groups = _groups(errors.groups, hidden, ("differences", "p_values") if errors.reference in names else ())
    deciles = tuple(
        replace(decile, groups=tuple(None if index in hidden else one for index, one in enumerate(decile.groups)))
        for decile in errors.deciles
    )
    return replace(errors, groups=groups, deciles=deciles)
