"""Groups compared among people who are alike: with the same label, or in the same stratum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.auditing._disparity_readings import make_stratum
from fairtransport.auditing._group_comparison import (
    ComparedPart,
    compare_parts,
    rank_part,
)
from fairtransport.auditing._multiple_tests import holm
from fairtransport.auditing._permutation_test import PAIRS_TEST, joint_noise_floors
from fairtransport.auditing._score_distances import disparities_of, score_readings
from fairtransport.auditing.records import StratumSummary, WithinStrata
from fairtransport.criteria import needs_labels
from fairtransport.strata import stratum_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing._group_comparison import GroupComparison
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.records import Reading

__all__ = ["LABEL_NAMES", "AlikeRows", "compare_within"]

#: Names of the rows with label 0 and label 1.
LABEL_NAMES = ("negative", "positive")


class AlikeRows(NamedTuple):
    """The rows with one label, of one stratum, or both.

    Parameters
    ----------
    label : int or None
        0 or 1; None where labels do not matter.
    stratum : str or None
        Name of the stratum; None without strata.
    evidence : Evidence
    """

    label: int | None
    stratum: str | None
    evidence: Evidence

    @property
    def name(self) -> str:
        """Name for tables, such as ``"positive, north"``."""
        label = None if self.label is None else LABEL_NAMES[self.label]
        return ", ".join(part for part in (label, self.stratum) if part is not None)


def compare_within(
    rows: Iterable[AlikeRows],
    group_labels: Sequence[Any],
    options: Options,
    rng: np.random.Generator,
    *,
    whole: Evidence | None = None,
) -> WithinStrata:
    """Compare groups among people who are alike, and average over labels and strata.

    Parameters
    ----------
    rows : iterable of AlikeRows
    group_labels : sequence
        Labels of the groups of the audit, in its order.
    options : Options
    rng : numpy.random.Generator
    whole : Evidence, optional
        Of all rows, where scores have no known bounds.

    Returns
    -------
    WithinStrata
        Rows are resampled and groups permuted within each part.

    Raises
    ------
    ValueError
        Where no part has rows of two groups.

    Notes
    -----
    Within a part, the groups with enough rows to be judged are compared. A part with fewer than two of them, or without
    the group that is the target, is listed but set aside. Where no part has two groups that are judged, all groups are
    compared. Weights are those of `fairtransport.strata.stratum_weights`.
    """
    known = list(rows)
    index = {label: number for number, label in enumerate(group_labels)}
    sizes = [each.evidence.histograms.effective_sizes for each in known]
    present = [np.flatnonzero(each.evidence.histograms.weights > 0) for each in known]
    judged = [np.flatnonzero(size >= options.min_judged_rows) for size in sizes]
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
    total, floors = joint_noise_floors([part.stratum for part in parts], options.n_permutations, rng)
    adjusted = holm([each[PAIRS_TEST].p_value for each in floors]).tolist()
    for (number, part), weight, floor, p_value in zip(measured, weights, floors, adjusted, strict=True):
        summaries[number] = replace(
            summaries[number],
            weight=weight,
            metrics=dict(part.values),
            floors={name: floor[name].mean for name in part.values},
            p_values=dict.fromkeys(part.values, p_value),
        )
    comparison = compare_parts(parts, total, len(group_labels), options, rng)
    if whole is not None:
        p_value = total[PAIRS_TEST].p_value
        readings = _with_scores(parts, comparison, options, rng, p_value=p_value, whole=whole)
        comparison = replace(comparison, readings=readings)
    return WithinStrata(
        strata=tuple(summaries),
        readings=comparison.readings,
        distances=_mean_distances(parts, len(group_labels)),
        pair_p_values=comparison.pair_p_values,
        farthest=comparison.farthest,
        largest_distance=comparison.largest_distance,
        groups=tuple(sorted({group for part in parts for group in part.groups})),
        n_pairs=sum(w * len(part.groups) * (len(part.groups) - 1) / 2 for w, part in zip(weights, parts, strict=True)),
        judged=any_judged,
    )


def _measure(evidence: Evidence, index: dict[Any, int], options: Options, n_parts: int) -> ComparedPart | None:
    """Return the disparities of some rows; None where the group that is the target has none of them."""
    groups = tuple(index[label] for label in evidence.histograms.groups.labels)
    if evidence.rank_scale is not None:
        return rank_part(evidence, groups, n_parts=n_parts)
    try:
        stratum = make_stratum(evidence.histograms, options.target, n_strata=n_parts)
    except ValueError:
        return None
    return ComparedPart(evidence, replace(stratum, groups=groups), disparities_of(evidence, options.target))


def _with_scores(
    parts: Sequence[ComparedPart],
    comparison: GroupComparison,
    options: Options,
    rng: np.random.Generator,
    *,
    p_value: float,
    whole: Evidence,
) -> dict[str, Reading]:
    """Return the disparities of ranks, with those of the scores in their units beside them."""
    scores = [(part.scores, part.stratum.weight) for part in parts if part.scores is not None]
    try:
        distances = score_readings(scores, options, rng, p_value=p_value, whole=whole)
    except ValueError:  # some part has no rows of the group that is the target
        distances = {}
    return {**distances, **comparison.readings}


def _mean_distances(parts: Sequence[ComparedPart], n_groups: int) -> NDArray[np.float64]:
    """Return the distance of each pair, averaged over the parts with both groups; NaN where there is none."""
    total, weights = np.zeros((n_groups, n_groups)), np.zeros((n_groups, n_groups))
    for part in parts:
        at = np.ix_(part.groups, part.groups)
        grid = None if part.scores is None else part.scores.histograms.grid
        distances = part.evidence.distances() if part.scores is None else part.scores.distances()
        total[at] += part.stratum.weight * distances * (1.0 if grid is None else grid.high - grid.low)
        weights[at] += part.stratum.weight
    return np.divide(total, weights, out=np.full_like(total, np.nan), where=weights > 0)
