"""Summaries of groups, of thresholds and of the farthest pair of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing.proportions import (
    area_under_curve,
    complement,
    difference,
    extremes_confidence,
    ratio,
    share,
)
from fairtransport.auditing.records import QUANTILE_LEVELS, GroupSummary, ThresholdSummary
from fairtransport.transport.line import wasserstein

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.proportions import Estimate

__all__ = ["compared_groups", "estimate_auc", "summarise_group", "summarise_threshold"]


def summarise_group(evidence: Evidence, group: int, options: Options, *, judged: bool) -> GroupSummary:
    """Return the size, scores and errors of the group with this index."""
    histograms = evidence.histograms
    sample = evidence.sample(group)
    has_labels, grid = histograms.has_labels, histograms.grid
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
        error=share(evidence.wrong(options.unit_thresholds[0], group), options.confidence) if has_labels else None,
        auc=estimate_auc(evidence, group, options) if has_labels else None,
    )


def estimate_auc(evidence: Evidence, group: int, options: Options) -> Estimate | None:
    """Return the area under the ROC curve of a group, or of all rows; None unless both classes are present."""
    histograms = evidence.histograms
    if group == EVERYONE:
        squares_by_cell = histograms.masses if histograms.squares is None else histograms.squares
        weights, squares = histograms.masses.sum(axis=(1, 2)), squares_by_cell.sum(axis=(1, 2))
    else:
        weights = histograms.by_class[:, group].sum(axis=1)
        squares = histograms.squares_by_class[:, group].sum(axis=1)
    sizes = np.divide(weights**2, squares, out=np.zeros(2), where=squares > 0)
    negatives, positives = evidence.class_sample(0, group), evidence.class_sample(1, group)
    return area_under_curve(negatives, positives, (float(sizes[0]), float(sizes[1])), options.confidence)


def summarise_threshold(
    evidence: Evidence, threshold: float, options: Options, judged: NDArray[np.bool_]
) -> ThresholdSummary:
    """Return selection rates and errors at a threshold, given which groups have enough rows to be judged."""
    at = float(evidence.histograms.grid.to_unit(threshold))
    groups = range(judged.size)
    rates = tuple(share(evidence.selected(at, group), options.confidence) for group in groups)
    values = np.array([rate.value for rate in rates])
    compared = compared_groups(judged)
    lowest, highest = int(compared[np.argmin(values[compared])]), int(compared[np.argmax(values[compared])])
    high_is_favourable = options.favourable == "high"
    outcomes = rates if high_is_favourable else tuple(complement(rate) for rate in rates)
    top = outcomes[highest if high_is_favourable else lowest].value
    level = extremes_confidence([rates[i] for i in compared], options.confidence)
    lower, higher = (share(evidence.selected(at, group), level) for group in (lowest, highest))
    rate_ratio = ratio(lower, higher) if high_is_favourable else ratio(complement(higher), complement(lower))
    errors = None
    if evidence.histograms.has_labels:
        errors = tuple(share(evidence.wrong(at, group), options.confidence) for group in groups)
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


def compared_groups(judged: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the indices of the groups with enough rows to be judged, or of all where fewer than two have."""
    enough = np.flatnonzero(judged)
    return enough if enough.size >= 2 else np.arange(judged.size)
