"""Equalized odds over all thresholds: distances between groups among the rows with the same label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._coarse_histograms import coarsen
from fairtransport.auditing._confidence_intervals import Stratum
from fairtransport.auditing._disparity_norms import METRICS, DisparityNorm
from fairtransport.auditing._disparity_readings import disparity_readings
from fairtransport.auditing._evidence import with_label
from fairtransport.auditing._permutation_test import PAIRS_TEST, joint_noise_floors
from fairtransport.auditing.errors._norm_intervals import interval_of_norm, smooth_deviations, tied_deviations
from fairtransport.groups import make_groups
from fairtransport.transport.line import wasserstein

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from fairtransport.auditing._coarse_histograms import CoarseHistograms
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors._norm_intervals import CorrectedEstimate
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.records import Reading
    from fairtransport.histograms import GroupHistograms

__all__ = ["LabelSeparation", "Separation", "ThresholdDifferences", "estimate_separation"]

_MAX_ENTRIES = 1 << 10  # groups and labels times nodes
_MIN_NODES, _MAX_NODES = 16, 64


@dataclass(frozen=True)
class ThresholdDifferences:
    """The largest difference between the rates of two groups, as a function of the threshold.

    Parameters
    ----------
    maximum, mean : CorrectedEstimate
        Over all thresholds in the range of the scores.
    threshold : float
        Where the maximum is reached.
    """

    maximum: CorrectedEstimate
    mean: CorrectedEstimate
    threshold: float


@dataclass(frozen=True)
class LabelSeparation:
    """The differences between groups among the rows with one label.

    Parameters
    ----------
    label : int
        0 for the negative rows, 1 for the positive rows.
    distances : tuple of tuple of float or None
        Wasserstein-1 distance between every two groups, as a share of the range of scores: the mean difference, over
        all thresholds, of their false positive rates (label 0) or true positive rates (label 1). Of scores without
        known bounds, the distance between ranks, an average over all shares of rows selected. None where a group has no
        such rows.
    disparity : Reading
        Sum of the distances between all pairs of compared groups, with noise floor and p-value.
    differences : ThresholdDifferences
        The largest difference between two compared groups.
    n_groups : int
        Number of compared groups: those with enough rows of this label to be judged or, where fewer than two have
        enough, all with such rows.
    judged : bool
        Whether the compared groups have enough rows.
    """

    label: int
    distances: tuple[tuple[float | None, ...], ...]
    disparity: Reading
    differences: ThresholdDifferences
    n_groups: int
    judged: bool


@dataclass(frozen=True)
class Separation:
    r"""Equalized odds over all thresholds.

    Parameters
    ----------
    negatives, positives : LabelSeparation or None
        Among the rows with label 0 and label 1; None where fewer than two groups have such rows.
    disparity : Reading or None
        Mean of the disparities of both labels: `fairtransport.metrics.separation_disparity` of the compared groups.
        Groups are permuted within labels. None unless both labels can be compared.
    equalized_odds : ThresholdDifferences or None
        The larger of the largest differences of true positive rates and of false positive rates. None unless both
        labels can be compared.

    Notes
    -----
    Scores satisfy separation, equalized odds at every threshold, if groups have the same distribution of scores among
    the rows with the same label. For two groups the mean difference of true positive rates is the Wasserstein-1
    distance between the positive rows' scores.

    Distances are exact where the audit is; maxima and means are evaluated at the nodes of the histograms.
    """

    negatives: LabelSeparation | None
    positives: LabelSeparation | None
    disparity: Reading | None
    equalized_odds: ThresholdDifferences | None


def estimate_separation(
    evidence: Evidence, options: Options, rng: np.random.Generator, *, known: Mapping[int | None, Reading] | None = None
) -> Separation:
    """Estimate the differences over all thresholds of evidence with labels.

    Parameters
    ----------
    evidence : Evidence
    options : Options
    rng : numpy.random.Generator
    known : dict of int or None to Reading, optional
        Disparities that were estimated before, by label; None stands for both labels.

    Returns
    -------
    Separation
    """
    scale = evidence.rank_scale
    if scale is not None:
        evidence = evidence.ranked()
    histograms = evidence.histograms
    thresholds = histograms.grid.nodes if scale is None else scale.to_scores(histograms.grid.nodes)
    weights, squares = (sums.sum(axis=2) for sums in (histograms.by_class, histograms.squares_by_class))
    sizes = np.divide(weights**2, squares, out=np.zeros_like(weights), where=squares > 0)
    compared = [np.flatnonzero(row >= options.min_judged_rows) for row in sizes]
    judged = [groups.size >= 2 for groups in compared]
    compared = [
        groups if enough else np.flatnonzero(row > 0)
        for groups, enough, row in zip(compared, judged, sizes, strict=True)
    ]
    labels = [label for label in (0, 1) if compared[label].size >= 2]
    if not labels:
        return Separation(None, None, None, None)
    curves = _Curves.of(histograms, [(label, compared[label]) for label in labels], options, rng, thresholds)
    distances = {label: _distances(evidence, label) for label in labels}
    totals = {label: float(np.triu(distances[label][np.ix_(*[compared[label]] * 2)], 1).sum()) for label in labels}
    readings = {**_disparities(histograms, {label: compared[label] for label in labels}, totals, options, rng)}
    readings |= known or {}
    parts: dict[int, LabelSeparation | None] = {0: None, 1: None}
    for label in labels:
        parts[label] = LabelSeparation(
            label=label,
            distances=tuple(tuple(None if np.isnan(one) else float(one) for one in row) for row in distances[label]),
            disparity=readings[label],
            differences=curves.differences([label]),
            n_groups=int(compared[label].size),
            judged=bool(judged[label]),
        )
    both = curves.differences([0, 1]) if len(labels) == 2 else None
    return Separation(parts[0], parts[1], readings.get(None), both)


def _disparities(
    histograms: GroupHistograms,
    compared: Mapping[int, NDArray[np.intp]],
    totals: Mapping[int, float],
    options: Options,
    rng: np.random.Generator,
) -> dict[int | None, Reading]:
    """Return the disparity within each label and, by None, the mean of both, with groups permuted within labels."""
    norm = DisparityNorm(METRICS[2], "pairs")
    strata = [
        Stratum(
            coarsen(with_label(histograms, label).only(groups)),
            (norm,),
            weight=1 / len(compared),
            groups=tuple(groups.tolist()),
        )
        for label, groups in compared.items()
    ]
    values = [{norm.name: totals[label]} for label in compared]
    both, floors = joint_noise_floors(strata, options.n_permutations, rng)
    readings: dict[int | None, Reading] = {}
    for label, stratum, value, floor in zip(compared, strata, values, floors, strict=True):
        p_value = floor[PAIRS_TEST].p_value
        alone = [replace(stratum, weight=1.0)]
        readings[label] = disparity_readings(alone, [value], floor, options, rng, p_value=p_value)[norm.name]
    if len(strata) == 2:
        p_value = both[PAIRS_TEST].p_value
        readings[None] = disparity_readings(strata, values, both, options, rng, p_value=p_value)[norm.name]
    return readings


def _distances(evidence: Evidence, label: int) -> NDArray[np.float64]:
    """Return the distances between the groups among the rows with a label; NaN where a group has none."""
    samples = [evidence.class_sample(label, group) for group in range(len(evidence.histograms.groups))]
    distances = np.full((len(samples), len(samples)), np.nan)
    for one, sample in enumerate(samples):
        if sample is None:
            continue
        distances[one, one] = 0.0
        for other in range(one):
            another = samples[other]
            if another is not None:
                distances[one, other] = distances[other, one] = wasserstein(sample, another)
    return distances


# A norm of the distribution functions of the compared groups, (n_draws, n_groups, n_nodes), one array for each label.
_CurveNorm = "Callable[[list[NDArray[np.float64]], NDArray[np.float64]], NDArray[np.float64]]"


@dataclass(frozen=True, eq=False)
class _Curves:
    """The distribution functions of the compared groups by label: at all nodes, and resampled on a few."""

    full: dict[int, NDArray[np.float64]]
    coarse: CoarseHistograms
    places: dict[int, slice]
    observed: NDArray[np.float64]
    noise: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    unit_widths: NDArray[np.float64] | float
    confidence: float

    @classmethod
    def of(
        cls,
        histograms: GroupHistograms,
        compared: list[tuple[int, NDArray[np.intp]]],
        options: Options,
        rng: np.random.Generator,
        thresholds: NDArray[np.float64],
    ) -> _Curves:
        full, places, start = {}, {}, 0
        for label, groups in compared:
            cumulative = np.cumsum(histograms.by_class[label, groups], axis=1)
            full[label] = cumulative / cumulative[:, -1:]
            places[label] = slice(start, start + groups.size)
            start += groups.size
        n_nodes = int(np.clip(_MAX_ENTRIES // start, _MIN_NODES, _MAX_NODES))
        coarse = coarsen(_label_cells(histograms, compared), n_nodes)
        drawn, source = coarse.bootstrap(rng, options.n_bootstrap)
        noise = (drawn - source)[:-1].swapaxes(0, 1)
        sizes = np.maximum(coarse.effective_sizes, 4.0)
        noise = noise * np.sqrt(sizes / (sizes - 3))[:, None]
        observed = coarse.curves()[:-1, 0]
        widths = histograms.grid.unit_widths
        return cls(full, coarse, places, observed, noise, thresholds, widths, options.confidence)

    def differences(self, labels: list[int]) -> ThresholdDifferences:
        spreads = np.max([np.ptp(self.full[label], axis=0) for label in labels], axis=0)
        widest = int(np.argmax(spreads))
        return ThresholdDifferences(
            maximum=self.estimate(_maximum, labels, float(spreads[widest])),
            mean=self.estimate(_mean, labels, float((spreads[:-1] * self.unit_widths).sum())),
            threshold=float(self.thresholds[widest]),
        )

    def estimate(self, norm: Callable[..., NDArray[np.float64]], labels: list[int], value: float) -> CorrectedEstimate:
        """Return a norm of the curves with its interval; ``value`` is the norm at all nodes."""
        rows = np.concatenate([np.arange(*self.places[label].indices(len(self.observed))) for label in labels])
        ends = np.cumsum([self.full[label].shape[0] for label in labels])[:-1]
        observed, noise = self.observed[rows], self.noise[:, rows]
        shape, widths = observed.shape, self.coarse.widths

        def of_flat(flat: NDArray[np.float64]) -> NDArray[np.float64]:
            return norm(np.split(flat.reshape(*flat.shape[:-1], *shape), ends, axis=-2), widths)

        parts = [(self.observed[at], self.noise[:, at]) for at in (self.places[label] for label in labels)]
        estimate = interval_of_norm(
            observed.ravel(),
            noise.reshape(len(noise), -1),
            of_flat,
            self.confidence,
            tied=np.concatenate([tied_deviations(*part, flat=norm is _maximum) for part in parts]).ravel(),
            smooth=np.concatenate([smooth_deviations(*part, widths) for part in parts]).ravel(),
        )
        error = value - estimate.value  # of the few nodes
        most = 1.0 if norm is _maximum else np.inf  # differences of rates are at most 1, their sampling noise is not
        low, high, corrected = (
            min(max(0.0, limit + error), most) if limit > 0 else 0.0
            for limit in (estimate.low, estimate.high, estimate.corrected)
        )
        return replace(estimate, value=value, low=low, high=high, corrected=corrected)


def _label_cells(histograms: GroupHistograms, compared: list[tuple[int, NDArray[np.intp]]]) -> GroupHistograms:
    """Return the histograms with a group for each label and compared group."""
    masses = np.concatenate([histograms.by_class[label, groups] for label, groups in compared])
    squares = None
    if histograms.squares is not None:
        squares = np.concatenate([histograms.squares_by_class[label, groups] for label, groups in compared])[None]
    cells = make_groups(np.arange(len(masses)), max_groups=len(masses))
    rows = np.rint(masses.sum(axis=1)).astype(np.int64)
    return replace(histograms, groups=cells, masses=masses[None], squares=squares, rows=rows, members=None)


def _spreads(curves: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the largest difference between two groups at each node, the larger one of all labels."""
    spreads = [label.max(axis=-2) - label.min(axis=-2) for label in curves]
    return spreads[0] if len(spreads) == 1 else np.maximum(*spreads)


def _maximum(curves: list[NDArray[np.float64]], widths: NDArray[np.float64]) -> NDArray[np.float64]:
    del widths
    maximum: NDArray[np.float64] = _spreads(curves).max(axis=-1)
    return maximum


def _mean(curves: list[NDArray[np.float64]], widths: NDArray[np.float64]) -> NDArray[np.float64]:
    return _spreads(curves) @ widths
