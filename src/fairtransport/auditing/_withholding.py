"""Audits without the figures of groups of a few rows, which would be those of single people."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairtransport._arrays import Floats

if TYPE_CHECKING:
    from fairtransport.auditing.errors import ErrorRates, RegressionErrors, Separation
    from fairtransport.auditing.records import AuditData, PairSummary, ThresholdSummary

    AuditT = TypeVar("AuditT", bound=AuditData)


def withhold_small_groups(audit: AuditT) -> AuditT:
    """Return an audit in which the figures of groups with fewer than `MIN_SHOWN_ROWS` rows are NaN or None."""
    hidden = {index for index, group in enumerate(audit.groups) if group.withheld}
    if not hidden:
        return audit
    names = {audit.groups[index].name for index in hidden}

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
        histograms=audit.histograms.without_scores_of(hidden),
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
    extremes = {}
    if at.lowest in hidden or at.highest in hidden:
        extremes = {"difference": _blank(at.difference), "ratio": _blank(at.ratio), "conclusive": False}
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
