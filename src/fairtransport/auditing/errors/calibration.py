"""Calibration by group: reliability curves, intercept and slope, and the expected calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing.errors.separation import interval_of_norm, rate_noise
from fairtransport.auditing.options import Options
from fairtransport.auditing.proportions import Estimate, Tally, share
from fairtransport.histograms import SLACK
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors.separation import CorrectedEstimate

# Logistic recalibration: the intercept and slope of a logistic model of labels on the logits of scores.

#: Scores are clipped to [CLIP, 1 - CLIP], since the logits of 0 and 1 are infinite.
CLIP = 1e-4

_MAX_VALUES = 1 << 12  # of each class; longer samples are averaged in as many slices
_MAX_ITER = 50
_MAX_HALVINGS = 40
_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Logits of the scores with one label."""

    logits: Floats
    weights: Floats
    design: float

    @classmethod
    def of(cls, sample: Sample, total: float, squares: float) -> WeightedSample:
        """Return the logits of a sample of scores on [0, 1], given its sums of weights and of squared weights."""
        inside, weights = np.clip(sample.values, CLIP, 1 - CLIP), sample.weights * total
        logits: Floats = np.log(inside / (1 - inside))
        if logits.size > _MAX_VALUES:
            starts = np.arange(_MAX_VALUES) * logits.size // _MAX_VALUES
            masses = np.add.reduceat(weights, starts)
            logits, weights = np.add.reduceat(logits * weights, starts) / masses, masses
        return cls(logits, weights, squares / total)


def _wald(value: float, variance: float, confidence: float) -> Estimate:
    half = NormalDist().inv_cdf((1 + confidence) / 2) * float(np.sqrt(variance))
    return Estimate(float(value), float(value) - half, float(value) + half)


def _fit(negatives: WeightedSample, positives: WeightedSample, *, n_parameters: int) -> tuple[Floats, Floats] | None:
    """Fit (intercept, slope), or the intercept alone, by Newton's method; return them with their covariance."""
    samples = (negatives, positives)
    x = np.concatenate([sample.logits for sample in samples])
    weights = np.concatenate([sample.weights for sample in samples])
    designs = np.concatenate([np.full(sample.logits.size, sample.design) for sample in samples])
    labels = np.concatenate([np.zeros(negatives.logits.size), np.ones(positives.logits.size)])
    columns = np.stack([np.ones_like(x), x])[:n_parameters]
    offset = x if n_parameters == 1 else np.zeros_like(x)
    signs = 1 - 2 * labels

    def loss_and_shares(parameters: Floats) -> tuple[float, Floats]:
        margins = offset + parameters @ columns
        decay = np.exp(-np.abs(margins))
        loss = float(weights @ (np.log1p(decay) + np.maximum(signs * margins, 0.0)))
        return loss, np.where(margins < 0, decay, 1.0) / (1 + decay)

    parameters = np.array([0.0, 1.0])[:n_parameters]
    now, shares = loss_and_shares(parameters)
    for _ in range(_MAX_ITER):
        information = (columns * (weights * shares * (1 - shares))) @ columns.T
        try:
            step = np.linalg.solve(information, columns @ (weights * (labels - shares)))
        except np.linalg.LinAlgError:
            return None
        for _ in range(_MAX_HALVINGS):
            new, shares = loss_and_shares(parameters + step)
            if new <= now or not np.any(step):
                break
            step /= 2
        parameters, now = parameters + step, new
        if not np.all(np.isfinite(parameters)):
            return None
        if np.abs(step).max() <= _TOL * (1 + np.abs(parameters).max()):
            break
    else:
        return None
    variances = weights * shares * (1 - shares)
    try:
        inverse = np.linalg.inv((columns * variances) @ columns.T)
    except np.linalg.LinAlgError:
        return None
    covariance = inverse @ ((columns * (variances * designs)) @ columns.T) @ inverse
    return parameters, covariance


_MAX_BINS = 10
_MIN_ROWS = 20  # effective rows of a bin, about
_UNKNOWN = Estimate(math.nan, math.nan, math.nan)
_MIN_COMPARED = 100  # effective rows of a group whose error is compared, for five bins; all where no group has as many


@dataclass(frozen=True)
class ReliabilityBin:
    """One point of a reliability curve.

    Parameters
    ----------
    low, high : float
        Range of the scores: above ``low`` (from it, in the first bin) up to ``high``.
    mean_score, rate : float, Estimate
        Mean score and share of positive rows.
    weight : float
        Total weight; the number of rows where there are no weights.
    """

    low: float
    high: float
    mean_score: float
    rate: Estimate
    weight: float


@dataclass(frozen=True)
class GroupCalibration:
    """Calibration of one group's scores, or of everyone's.

    Parameters
    ----------
    name : str
    positive_rate : Estimate
        Share of positive rows.
    bins : tuple of ReliabilityBin
        Reliability curve: bins of about equal size, or one for each score where there are no more than 10.
    expected_error : CorrectedEstimate or None
        Expected calibration error: the mean over rows of the difference between the mean score and the share of
        positive rows in their bin. None where scores are not probabilities, like the next two.
    intercept, slope : Estimate or None
        Of a logistic model of the labels on the logits of the scores: the intercept with slope 1, above 0 where scores
        are too low, and the slope, below 1 where scores are too extreme. None where they do not exist.
    """

    name: str
    positive_rate: Estimate
    bins: tuple[ReliabilityBin, ...]
    expected_error: CorrectedEstimate | None
    intercept: Estimate | None
    slope: Estimate | None


@dataclass(frozen=True)
class Calibration:
    """Calibration of the scores, by group.

    Parameters
    ----------
    probabilities : bool
        Whether the range of the scores is [0, 1]. Otherwise there are reliability curves only.
    overall, groups : GroupCalibration, tuple of GroupCalibration
        Of all rows, and of each group.
    largest_error, worst : CorrectedEstimate, int or None
        The largest expected calibration error of the groups in ``compared``, with an interval that accounts for the
        selection, and the index of that group.
    n_bins, compared : int, tuple of int
        Number of bins, at most 10, and the indices of the groups with enough rows for as many: those of the judged
        groups (of all, where fewer than two are judged) with 100 rows or more, if any. Others have fewer bins.

    Notes
    -----
    Errors grow with the number of bins, so only those with the same number are compared. They are biased upward, for
    which ``corrected`` and the interval account. Intervals of intercept and slope are Wald's. Scores are clipped to
    [0.0001, 0.9999] before their logits are taken.

    References
    ----------
    Van Calster, McLernon, van Smeden, Wynants and Steyerberg (2019), "Calibration: the Achilles heel of predictive
    analytics": intercept and slope.
    """

    probabilities: bool
    overall: GroupCalibration
    groups: tuple[GroupCalibration, ...]
    largest_error: CorrectedEstimate | None
    worst: int | None
    n_bins: int
    compared: tuple[int, ...]


def estimate_calibration(
    evidence: Evidence, options: Options, compared: Sequence[int], rng: np.random.Generator
) -> Calibration:
    """Estimate the calibration of evidence with labels."""
    names = evidence.histograms.groups.names
    grid = evidence.histograms.grid
    probabilities = (grid.low, grid.high) == (0.0, 1.0) and not grid.positions
    sizes = evidence.histograms.effective_sizes
    compared = [group for group in compared if sizes[group] >= _MIN_COMPARED] or compared
    n_bins = int(np.clip(min(sizes[group] for group in compared) // _MIN_ROWS, 1, _MAX_BINS))
    filled = evidence.histograms.weights > 0  # figures of the others are withheld
    rows = [_LabelledRows.of(evidence, group, n_bins) if filled[group] else None for group in range(len(names))]
    noise = [None if each is None else each.noise(rng) for each in rows]
    everyone = _LabelledRows.of(evidence, EVERYONE, n_bins)
    largest, worst = None, None
    if probabilities:
        parts = [part for group in compared if (part := rows[group]) is not None]
        drawn = [draws for group in compared if (draws := noise[group]) is not None]
        largest = _largest_error(parts, drawn, options.inference.confidence)
        worst = int(compared[int(np.argmax([part.error(part.deviations) for part in parts]))])
    return Calibration(
        probabilities=probabilities,
        overall=everyone.calibration(
            "everyone", evidence, everyone.noise(rng), options.inference.confidence, probabilities
        ),
        groups=tuple(
            GroupCalibration(name, _UNKNOWN, (), None, None, None)
            if each is None or one is None
            else each.calibration(name, evidence, one, options.inference.confidence, probabilities)
            for name, each, one in zip(names, rows, noise, strict=True)
        ),
        largest_error=largest,
        worst=worst,
        n_bins=n_bins,
        compared=tuple(compared),
    )


@dataclass(frozen=True, eq=False)
class _LabelledRows:
    """The rows of a group in bins, on [0, 1]."""

    samples: tuple[Sample | None, Sample | None]
    totals: Floats
    squares: Floats
    edges: Floats
    weights: Floats
    sums: Floats

    @classmethod
    def of(cls, evidence: Evidence, group: int, n_bins: int) -> _LabelledRows:
        masses, squares = evidence.masses(group)
        samples = evidence.class_sample(0, group), evidence.class_sample(1, group)
        totals, squared = masses.sum(axis=1), squares.sum(axis=1)
        grid = evidence.histograms.grid
        size = float(totals.sum() ** 2 / squared.sum())
        edges = grid.unit_nodes[_quantile_edges(masses.sum(axis=0), size, n_bins)]
        binned = [
            _bin(sample, float(total), edges, 0.0 if grid.positions else SLACK * grid.resolution)
            for sample, total in zip(samples, totals, strict=True)
        ]
        weights, sums = (np.array(each) for each in zip(*binned, strict=True))
        return cls(samples, totals, squared, edges, weights, sums)

    @property
    def _tallies(self) -> list[Tally]:
        designs = np.divide(self.squares, self.totals, out=np.zeros(2), where=self.totals > 0)
        return [
            Tally(float(one), float(zero), float(one * designs[1]), float(zero * designs[0]))
            for zero, one in self.weights.T
        ]

    @property
    def mean_scores(self) -> Floats:
        means: Floats = self.sums.sum(axis=0) / self.weights.sum(axis=0)
        return means

    @property
    def deviations(self) -> Floats:
        return np.array([tally.value for tally in self._tallies]) - self.mean_scores

    def error(self, deviations: Floats) -> Floats:
        """Return the expected calibration error of deviations, ``(..., n_bins) -> (...)``."""
        weights = self.weights.sum(axis=0)
        error: Floats = np.abs(deviations) @ (weights / weights.sum())
        return error

    def noise(self, rng: np.random.Generator) -> Floats:
        values, sizes = ([getattr(each, name) for each in self._tallies] for name in ("value", "binomial_size"))
        return rate_noise(np.array(values), np.array(sizes), rng)

    def calibration(
        self, name: str, evidence: Evidence, noise: Floats, confidence: float, probabilities: bool
    ) -> GroupCalibration:
        scores, means = evidence.histograms.grid.from_unit(self.edges), self.mean_scores
        total = Tally(float(self.totals[1]), float(self.totals[0]), float(self.squares[1]), float(self.squares[0]))
        intercept, slope = self._logistic(confidence) if probabilities else (None, None)
        return GroupCalibration(
            name=name,
            positive_rate=share(total, confidence),
            bins=tuple(
                ReliabilityBin(
                    low=float(scores[at]),
                    high=float(scores[at + 1]),
                    mean_score=float(evidence.histograms.grid.from_unit(means[at])),
                    rate=share(tally, confidence),
                    weight=tally.total,
                )
                for at, tally in enumerate(self._tallies)
            ),
            expected_error=interval_of_norm(self.deviations, noise, self.error, confidence) if probabilities else None,
            intercept=intercept,
            slope=slope,
        )

    def _logistic(self, confidence: float) -> tuple[Estimate | None, Estimate | None]:
        """Return intercept (with slope 1) and slope; None where they do not exist: scores are constant or separated."""
        negatives, positives = self.samples
        if negatives is None or positives is None:
            return None, None
        sums = zip((negatives, positives), self.totals.tolist(), self.squares.tolist(), strict=True)
        classes = [WeightedSample.of(*each) for each in sums]
        (low, high), (start, end) = ((each.logits[0], each.logits[-1]) for each in classes)
        free = _fit(*classes, n_parameters=2) if high > start and end > low else None
        intercept, slope = (
            None if fitted is None else _wald(fitted[0][-1], fitted[1][-1, -1], confidence)
            for fitted in (_fit(*classes, n_parameters=1), free)
        )
        return intercept, slope


def _quantile_edges(masses: Floats, size: float, most: int) -> Ints:
    """Return the nodes that are edges of bins of about equal weight; bins with few of the effective rows are merged."""
    occupied = np.flatnonzero(masses)
    cumulative = np.cumsum(masses[occupied])
    shares = cumulative / cumulative[-1]
    n_bins = int(np.clip(size // _MIN_ROWS, 1, most))
    ends = np.arange(occupied.size)  # few scores, such as deciles: one bin for each
    if occupied.size > _MAX_BINS:
        ends = np.unique(np.searchsorted(shares, np.arange(1, n_bins + 1) / n_bins * (1 - 1e-12)))
    kept: list[int] = []
    for end in ends.tolist():
        before = shares[kept[-1]] if kept else 0.0
        if kept and (shares[end] - before) * size < _MIN_ROWS / 2:
            kept[-1] = end
        else:
            kept.append(end)
    if len(kept) > 1 and shares[kept[0]] * size < _MIN_ROWS / 2:
        del kept[0]
    return np.append(occupied[0], occupied[kept])


def _bin(sample: Sample | None, total: float, edges: Floats, slack: float) -> tuple[Floats, Floats]:
    """Return the sums of weights and of weighted scores in each bin; the last one has all that is above the others."""
    if sample is None:
        return np.zeros(edges.size - 1), np.zeros(edges.size - 1)
    ends = np.append(np.searchsorted(sample.values, edges[1:-1] + slack, side="right"), sample.values.size)
    cumulative = np.append(0.0, np.cumsum(sample.values * sample.weights))
    levels = np.append(0.0, sample.levels)
    return np.diff(levels[ends], prepend=0.0) * total, np.diff(cumulative[ends], prepend=0.0) * total


def _largest_error(parts: Sequence[_LabelledRows], noise: Sequence[Floats], confidence: float) -> CorrectedEstimate:
    deviations = [part.deviations for part in parts]
    ends = np.cumsum([each.size for each in deviations])[:-1]

    def largest(array: Floats) -> Floats:
        errors = [part.error(each) for part, each in zip(parts, np.split(array, ends, axis=-1), strict=True)]
        maximum: Floats = np.max(errors, axis=0)
        return maximum

    return interval_of_norm(np.concatenate(deviations), np.concatenate(noise, axis=1), largest, confidence)
