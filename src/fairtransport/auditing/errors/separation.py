"""Equalized odds over all thresholds: distances between groups among the rows with the same label."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport.auditing._confidence_intervals import (
    METRICS,
    PAIRS_TEST,
    DisparityNorm,
    Stratum,
    joint_noise_floors,
    largest_roots,
    smooth_deviations,
)
from fairtransport.auditing._disparity_readings import disparity_readings
from fairtransport.auditing._evidence import coarsen, groups_to_compare, with_label
from fairtransport.auditing.options import Options
from fairtransport.auditing.proportions import Estimate
from fairtransport.histograms import GroupHistograms

if TYPE_CHECKING:
    Norm = Callable[[Floats], Floats]
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.records import Reading

# Confidence intervals of norms of deviations, such as the largest difference between the rates of several groups.

#: Draws of the errors of rates: so cheap that they need not be as few as bootstrap replicates.
N_DRAWS = 2000

_STEP = 1e-6  # of the directional derivative
_TIED = 2.0  # standard errors: groups that are closer are treated as equal
_FLAT = 1.0  # standard errors: differences at two thresholds that are treated as equal
_EQUAL = 1e-12  # a norm that is 0 but for rounding


@dataclass(frozen=True)
class CorrectedEstimate(Estimate):
    """An estimate that is biased upward, with an interval and a ``corrected`` value that account for the bias."""

    corrected: float


def rate_noise(values: Floats, sizes: Floats, rng: np.random.Generator, n_draws: int = N_DRAWS) -> Floats:
    """Draw the errors of observed proportions: observed minus true, with the true ones from Jeffreys' posterior."""
    shape = (n_draws, *values.shape)
    return values - rng.beta(values * sizes + 0.5, (1 - values) * sizes + 0.5, size=shape)


def tied_deviations(curves: Floats, noise: Floats, *, flat: bool = False) -> Floats:
    """Return the figures of groups, with those indistinguishable from the highest or the lowest one set equal to it."""
    tied = curves - curves.mean(axis=0)
    top, bottom = np.argmax(tied, axis=0), np.argmin(tied, axis=0)
    at = np.arange(tied.shape[1])
    distances, near = [], []
    for extreme in (bottom, top):
        distance = np.abs(tied - tied[extreme, at])
        error = (noise - noise[:, extreme, at][:, None]).std(axis=0)
        distances.append(distance)
        near.append(distance <= _TIED * error)
    to_bottom = near[0] & (distances[0] <= distances[1])
    to_top = near[1] & ~to_bottom & (distances[1] <= distances[0])
    tied = np.where(to_bottom, tied[bottom, at], np.where(to_top, tied[top, at], tied))
    if flat:
        spread = np.ptp(tied, axis=0)
        error = (noise[:, top, at] - noise[:, bottom, at]).std(axis=0)
        largest = spread.max()
        near_largest = (spread > 0) & (largest - spread <= _FLAT * error)
        tied = tied * np.where(near_largest, largest / np.where(spread > 0, spread, 1.0), 1.0)
    return tied


def interval_of_norm(
    deviations: Floats,
    noise: Floats,
    norm: Norm,
    confidence: float,
    *,
    tied: Callable[[], Floats] | None = None,
    smooth: Floats | None = None,
) -> CorrectedEstimate:
    """Return the norm of observed deviations with its confidence interval; ``tied`` is called where 0 is excluded."""
    observed = float(norm(deviations))
    direction = deviations
    if observed <= _EQUAL:  # all equal: any direction will do
        direction = np.where(np.arange(deviations.size) % 2, 1e-3, -1e-3)
    chance, tail = norm(noise), (1 - confidence) / 2
    middle = float(np.median(chance))
    values = _largest_norms(norm, direction, noise, chance, observed)
    upper = values if observed >= middle else _largest_norms(norm, direction, noise, chance, middle)
    if smooth is not None and float(norm(smooth)) > _EQUAL:
        least = float(np.quantile(upper, 1 - tail, method="lower"))
        upper = np.maximum(upper, _largest_norms(norm, smooth, noise, chance, max(observed, middle), above=least))
    linear = observed - (norm(deviations + _STEP * noise) - observed) / _STEP
    low, p_value = 0.0, (1 + np.count_nonzero(chance >= observed)) / (1 + len(chance))
    if p_value <= tail:
        lower, other = values, None if tied is None else tied()
        if other is not None and float(norm(other)) > _EQUAL:
            most = float(np.quantile(values, tail, method="higher"))
            lower = np.minimum(values, _largest_norms(norm, other, noise, chance, observed, below=most))
        low = float(np.quantile(lower, tail, method="weibull"))
    high = max(float(np.quantile(each, 1 - tail, method="weibull")) for each in (upper, linear))
    return CorrectedEstimate(observed, low, high, corrected=float(np.median(values)))


def _largest_norms(
    norm: Norm, direction: Floats, noise: Floats, chance: Floats, observed: float, **limits: float
) -> Floats:
    r"""Return the true norm at the largest root :math:`\lambda \ge 0` for each draw; 0 where there is none."""
    scale = float(norm(direction))
    if not scale > 0:
        return np.zeros(len(noise))
    path = direction.astype(noise.dtype)

    def measure(multiples: Floats, index: Ints) -> Floats:
        deviations = noise[index]
        deviations += multiples.astype(noise.dtype)[:, None] * path
        return norm(deviations)

    limits = {name: limit / scale for name, limit in limits.items()}
    return scale * largest_roots(measure, observed, chance, scale, noise.shape[1], **limits)


_MAX_ENTRIES = 1 << 10  # groups and labels times nodes
_MIN_NODES, _MAX_NODES = 16, 64
_NORM = DisparityNorm(METRICS[2], "pairs")


@dataclass(frozen=True)
class ThresholdDifferences:
    """The largest difference between the rates of two groups over all thresholds: maximum, mean, and where it is."""

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
        Wasserstein-1 distance between every two groups as a share of the range of scores (between ranks without known
        bounds): the mean difference of their false (label 0) or true positive rates over all thresholds. None where a
        group has no such rows.
    disparity : Reading
        Mean of the distances between all pairs of compared groups, with noise floor and p-value.
    differences : ThresholdDifferences
        The largest difference between two compared groups.
    n_groups, judged : int, bool
        Number of compared groups, and whether they have enough rows of this label; all are compared where fewer than
        two have.
    """

    label: int
    distances: tuple[tuple[float | None, ...], ...]
    disparity: Reading
    differences: ThresholdDifferences
    n_groups: int
    judged: bool


@dataclass(frozen=True)
class Separation:
    """Equalized odds over all thresholds.

    Parameters
    ----------
    negatives, positives : LabelSeparation or None
        Among the rows with label 0 and label 1; None where fewer than two groups have such rows.
    disparity : Reading or None
        Mean of the disparities of both labels: `fairtransport.metrics.separation_disparity` of the compared groups.
        Groups are permuted within labels. None unless both labels can be compared, like the next.
    equalized_odds : ThresholdDifferences or None
        The larger of the largest differences of true positive rates and of false positive rates.

    Notes
    -----
    Scores satisfy equalized odds at every threshold if groups have the same distribution of scores among the rows with
    the same label. Distances are exact where the audit is; maxima and means are those at the nodes of the histograms.
    """

    negatives: LabelSeparation | None
    positives: LabelSeparation | None
    disparity: Reading | None
    equalized_odds: ThresholdDifferences | None


def estimate_separation(
    evidence: Evidence, options: Options, rng: np.random.Generator, *, known: Mapping[int | None, Reading] | None = None
) -> Separation:
    """Estimate the differences over all thresholds of evidence with labels."""
    scale = evidence.rank_scale
    if scale is not None:
        evidence = evidence.ranked()
    histograms = evidence.histograms
    thresholds = histograms.grid.nodes if scale is None else scale.to_scores(histograms.grid.nodes)
    found = [groups_to_compare(sizes, options.groups.min_size) for sizes in evidence.class_sizes]
    compared, judged = zip(*found, strict=True)
    labels = [label for label in (0, 1) if compared[label].size >= 2]
    if not labels:
        return Separation(None, None, None, None)
    strata = _label_strata(histograms, {label: compared[label] for label in labels})
    curves = _Curves.of(histograms, strata, options, rng, thresholds)
    distances = {label: _distances(evidence, label) for label in labels}
    totals = {label: float(np.triu(distances[label][np.ix_(*[compared[label]] * 2)], 1).sum()) for label in labels}
    readings = {**_disparities(strata, totals, options, rng)}
    readings |= known or {}
    parts: dict[int, LabelSeparation | None] = {0: None, 1: None}
    for label in labels:
        parts[label] = LabelSeparation(
            label=label,
            distances=tuple(tuple(None if np.isnan(one) else float(one) for one in row) for row in distances[label]),
            disparity=readings[label],
            differences=curves.differences([label]),
            n_groups=int(compared[label].size),
            judged=judged[label],
        )
    both = curves.differences([0, 1]) if len(labels) == 2 else None
    return Separation(parts[0], parts[1], readings.get(None), both)


def _label_strata(histograms: GroupHistograms, compared: Mapping[int, NDArray[np.intp]]) -> dict[int, Stratum]:
    """Return the compared groups by label, with the same nodes for both labels."""
    parts = {label: with_label(histograms, label).only(groups) for label, groups in compared.items()}
    n_nodes = int(np.clip(_MAX_ENTRIES // sum(map(len, compared.values())), _MIN_NODES, _MAX_NODES))
    everyone = np.sum([part.everyone for part in parts.values()], axis=0)
    return {
        label: Stratum(
            coarsen(part, n_nodes, everyone=everyone), (_NORM,), 1 / len(parts), groups=tuple(compared[label].tolist())
        )
        for label, part in parts.items()
    }


def _disparities(
    by_label: Mapping[int, Stratum], totals: Mapping[int, float], options: Options, rng: np.random.Generator
) -> dict[int | None, Reading]:
    """Return the disparity within each label and, by None, the mean of both, with groups permuted within labels."""
    strata = list(by_label.values())
    values = [{_NORM.name: totals[label]} for label in by_label]
    n_pairs = {label: comb(len(stratum.groups or ()), 2) for label, stratum in by_label.items()}
    both, floors = joint_noise_floors(strata, options.inference.n_permutations, rng)
    readings: dict[int | None, Reading] = {}
    for label, stratum, value, floor in zip(by_label, strata, values, floors, strict=True):
        p_value = floor[PAIRS_TEST].p_value
        alone = [replace(stratum, weight=1.0)]
        total = disparity_readings(alone, [value], floor, options, rng, p_value=p_value)[_NORM.name]
        readings[label] = total.scaled(1 / n_pairs[label])
    if len(strata) == 2:
        p_value = both[PAIRS_TEST].p_value
        total = disparity_readings(strata, values, both, options, rng, p_value=p_value)[_NORM.name]
        readings[None] = total.scaled(2 / sum(n_pairs.values()))
    return readings


def _distances(evidence: Evidence, label: int) -> Floats:
    """Return the distances between the groups among the rows with a label; NaN where a group has none."""
    part = evidence.labelled(label)
    present = np.flatnonzero(part.histograms.weights > 0)
    distances = np.full((len(part.histograms.groups),) * 2, np.nan)
    distances[np.ix_(present, present)] = part.only(present).distances
    return distances


@dataclass(frozen=True, eq=False)
class _Curves:
    """The distribution functions of the compared groups by label: at all nodes, and resampled on a few."""

    full: dict[int, Floats]
    widths: Floats
    places: dict[int, slice]
    observed: Floats
    noise: Floats
    smooth: Floats
    thresholds: Floats
    unit_widths: Floats | float
    confidence: float

    @classmethod
    def of(
        cls,
        histograms: GroupHistograms,
        strata: Mapping[int, Stratum],
        options: Options,
        rng: np.random.Generator,
        thresholds: Floats,
    ) -> _Curves:
        full, places = {}, {}
        observed, errors = list[Floats](), list[Any]()
        for label, stratum in strata.items():
            cumulative = np.cumsum(histograms.by_class[label, list(stratum.groups or ())], axis=1)
            full[label] = cumulative / cumulative[:, -1:]
            start = sum(each.shape[0] for each in observed)
            places[label] = slice(start, start + len(cumulative))
            drawn, source = stratum.histograms.replicates(rng, options.inference.n_bootstrap)
            sizes = np.maximum(stratum.histograms.effective_sizes, 4.0)
            noise = (drawn - source)[:-1] * np.sqrt(sizes / (sizes - 3))[:, None, None]
            errors.append(noise.swapaxes(0, 1).astype(np.float32))
            observed.append(stratum.histograms.curves()[:-1, 0])
        widths, unit_widths = stratum.histograms.widths, histograms.grid.unit_widths  # the same for both labels
        smooth = [smooth_deviations(*each, widths) for each in zip(observed, errors, strict=True)]
        curves = np.concatenate(observed), np.concatenate(errors, axis=1), np.concatenate(smooth)
        return cls(full, widths, places, *curves, thresholds, unit_widths, options.inference.confidence)

    def differences(self, labels: list[int]) -> ThresholdDifferences:
        spreads = np.max([np.ptp(self.full[label], axis=0) for label in labels], axis=0)
        widest = int(np.argmax(spreads))
        return ThresholdDifferences(
            maximum=self.estimate(_maximum, labels, float(spreads[widest])),
            mean=self.estimate(_mean, labels, float((spreads[:-1] * self.unit_widths).sum())),
            threshold=float(self.thresholds[widest]),
        )

    def estimate(self, norm: Callable[..., Floats], labels: list[int], value: float) -> CorrectedEstimate:
        """Return a norm of the curves with its interval; ``value`` is the norm at all nodes."""
        rows = np.concatenate([np.arange(*self.places[label].indices(len(self.observed))) for label in labels])
        ends = np.cumsum([self.full[label].shape[0] for label in labels])[:-1]
        observed, noise = self.observed[rows], self.noise[:, rows]
        shape, widths = observed.shape, self.widths

        def of_flat(flat: Floats) -> Floats:
            return norm(np.split(flat.reshape(*flat.shape[:-1], *shape), ends, axis=-2), widths)

        parts = [(self.observed[at], self.noise[:, at]) for at in (self.places[label] for label in labels)]
        estimate = interval_of_norm(
            observed.ravel(),
            noise.reshape(len(noise), -1),
            of_flat,
            self.confidence,
            tied=lambda: np.concatenate([tied_deviations(*part, flat=norm is _maximum) for part in parts]).ravel(),
            smooth=self.smooth[rows].ravel(),
        )
        error = value - estimate.value  # of the few nodes
        most = 1.0 if norm is _maximum else np.inf  # differences of rates are at most 1, their sampling noise is not
        low, high, corrected = (
            min(max(0.0, limit + error), most) if limit > 0 else 0.0
            for limit in (estimate.low, estimate.high, estimate.corrected)
        )
        return replace(estimate, value=value, low=low, high=high, corrected=corrected)


def _mean(curves: list[Floats], widths: Floats | None) -> Floats:
    """Return the mean over nodes of the largest difference between two groups, of all labels; the maximum if None."""
    spreads = reduce(np.maximum, (label.max(axis=-2) - label.min(axis=-2) for label in curves))
    result: Floats = spreads.max(axis=-1) if widths is None else spreads @ widths
    return result


def _maximum(curves: list[Floats], _: Floats) -> Floats:
    return _mean(curves, None)
