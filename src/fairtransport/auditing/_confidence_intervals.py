r"""Confidence intervals of disparities, by inversion of the bootstrap.

A disparity of samples is biased upward, and percentile bootstrap intervals double the bias. The intervals here consist
of the true disparities under which the observed one would not be unusual.

Let D be the observed deviations of the groups' curves from their common curve, h the noise of a bootstrap replicate and
:math:`\|\cdot\|` the disparity, a norm of such deviations. The true deviations are taken to be a multiple
:math:`\lambda D`. For each replicate, the equation

.. math:: \|\lambda_b D + h_b\| = \|D\|, \qquad \theta_b = \lambda_b \|D\|,

is solved for the true disparity :math:`\theta_b` that would have been observed as it was; the quantiles of the
:math:`\theta_b` are the confidence limits. Where noise alone exceeds the observed disparity, :math:`\theta_b` is 0.

D itself contains noise. The part of it that is not a shift of the scores is shrunk (James and Stein) by the share that
noise explains. The lower limit is also computed for a sparse direction, with only the deviations of more than two
standard errors, where noise adds most, and is the smaller of the two.

A multiple of D moves all groups in proportion, but a small group that is observed between two others may truly lie
outside them. The upper limit is therefore the larger one of two: that of the :math:`\theta_b`, and that of
:math:`\|\hat\lambda D - s_b\|`, where :math:`s_b` is the part of the noise that shifts groups, each on its own, and
:math:`\hat\lambda` the median, less half of what this noise adds (`benchmarks/coverage.py`). If the observed disparity
is below the median under the null hypothesis, the upper limit is that of an observation at this median.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport.auditing.proportions import holm
from fairtransport.histograms import GroupHistograms
from fairtransport.metrics import NoiseFloor
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from fairtransport.auditing._evidence import CoarseHistograms

# The largest roots of convex functions, for many functions at once.

_MAX_ITER = 12
_TOL = 1e-3  # relative to the observed norm; far below the spread of the replicates


def largest_roots(
    measure: Callable[[Floats, Ints], Floats],
    observed: float,
    at_0: Floats,
    slope: float,
    n_entries: int,
    *,
    above: float = 0.0,
    below: float = np.inf,
) -> Floats:
    """Return where convex functions take a value for the last time, right of 0, by secants; 0 where they do not.

    ``slope`` is the largest one, that of large arguments. Roots up to ``above`` may be returned as 0, those from
    ``below`` on as infinite.
    """
    step = max(1, _CACHE_ENTRIES // n_entries)  # arrays that fit into the cache are several times faster

    def excess_of(at: Floats, index: Ints) -> Floats:
        parts = (slice(first, first + step) for first in range(0, index.size, step))
        return np.concatenate([measure(at[part], index[part]) for part in parts]) - observed

    roots, index = np.zeros(at_0.size), np.arange(at_0.size)
    if above > 0:  # a convex function that is not less than at 0 increases from there on
        index = np.flatnonzero(excess_of(np.full(at_0.size, above), index) < np.maximum(at_0 - observed, 0.0))
    elif below < np.inf:
        excess = excess_of(np.full(at_0.size, below), index)
        roots[excess < 0], index = np.inf, np.flatnonzero(excess >= 0)
    at = (observed + at_0[index]) / slope  # right of the root, by the triangle inequality
    if not index.size:
        return roots
    excess, slopes = excess_of(at, index), np.full(at.size, slope)
    for _ in range(_MAX_ITER):
        new = np.maximum(at - excess / slopes, 0.0)
        new_excess = excess_of(new, index)
        step_back = at - new
        moved = step_back > 1e-12 * (1 + at)
        secant = np.divide(excess - new_excess, step_back, out=np.zeros_like(at), where=moved)
        slopes = np.where(secant > 0, np.minimum(secant, slopes), np.where(moved, 1e-6 * slope, slopes))
        roots[index] = new
        left = (new > 0) & (np.abs(new_excess) > _TOL * observed)
        index, at, excess, slopes = index[left], new[left], new_excess[left], slopes[left]
        if not index.size:
            break
    return roots


_NORMAL = NormalDist()
_SMALL_P_VALUE = 25  # permutations resolve no p-values much below 1 - confidence divided by this
_MAX_CURVE_ENTRIES = 1 << 21  # in memory at a time
_SMOOTHING = 3.0  # shrinkage of a smooth direction, relative to James and Stein's
_THRESHOLD = 4.0  # deviations of less than two standard errors are left out of the direction of the lower limit
_BIAS = 0.5  # share of what noise of the shifts adds to a disparity that is taken off; chosen on worlds of known truth
_NEGLIGIBLE = 0.02  # share of noise
_EQUAL = 1e-9  # a disparity that is 0 but for rounding
_CACHE_ENTRIES = 1 << 18  # of the curves that are solved at a time


@dataclass(frozen=True, eq=False)
class Stratum:
    """Histograms whose disparities count with a weight: one stratum of several, or all rows with weight 1."""

    histograms: CoarseHistograms
    norms: tuple[DisparityNorm, ...]
    weight: float = 1.0
    noise_factor: float = 1.0
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class ConfidenceDistribution:
    """The true disparities that solve each replicate; their quantiles are confidence limits."""

    values: Floats
    lower: Floats
    upper: Floats

    @property
    def median(self) -> float:
        """The median: the observed disparity after correction for its bias."""
        return float(np.median(self.values))

    @property
    def p_value(self) -> float:
        """The share of replicates whose noise alone reaches the observed disparity."""
        return float((1 + np.count_nonzero(self.values == 0)) / (1 + self.values.size))

    def interval(self, confidence: float, p_value: float) -> tuple[float, float]:
        """Return the confidence interval, which includes 0 if and only if a test of no difference does not reject."""
        upper_tail = (1 - confidence) / 2
        high = float(np.quantile(self.upper, 1 - upper_tail, method="weibull"))
        if p_value > 1 - confidence:
            return 0.0, high
        resolved = p_value > 1.5 / (1 + self.values.size)
        tail = lower_tail(p_value, confidence) if resolved else upper_tail
        low = float(np.quantile(self.lower, tail, method="weibull"))
        if not low > 0:  # the test, which uses another statistic or null distribution, is more certain
            positive = self.values[self.values > 0]
            low = float(positive.min()) if positive.size else high
        return min(low, high), high


@lru_cache(maxsize=256)
def lower_tail(p_value: float, confidence: float) -> float:
    r"""Return the probability in the lower tail of an interval for a quantity that cannot be negative.

    A central interval excludes 0 only if :math:`p \le (1 - c) / 2`. The unified intervals of Feldman and Cousins (1998)
    exclude it if and only if :math:`p \le 1 - c`, and have the same coverage. This is the tail of their lower limit for
    a normal observation with that p-value.
    """
    if p_value <= (1 - confidence) / _SMALL_P_VALUE:
        return (1 - confidence) / 2
    observed = -_NORMAL.inv_cdf(min(p_value, 1 - 1e-12))
    central = _NORMAL.inv_cdf((1 + confidence) / 2)

    def upper_end(mean: float) -> float:
        """Return the largest observation that is accepted for a mean, by the order of likelihood ratios."""
        low, high = mean + _NORMAL.inv_cdf(confidence), mean + central
        for _ in range(40):
            end = (low + high) / 2
            start = (mean**2 - (end - mean) ** 2) / (2 * mean) if mean > 0 else -np.inf
            inside = _NORMAL.cdf(end - mean) - (_NORMAL.cdf(start - mean) if np.isfinite(start) else 0.0)
            low, high = (end, high) if inside < confidence else (low, end)
        return (low + high) / 2

    low, high = 0.0, central
    for _ in range(40):
        mean = (low + high) / 2
        low, high = (mean, high) if upper_end(mean) < observed else (low, mean)
    tail = 1 - _NORMAL.cdf(observed - (low + high) / 2)
    return float(min(max(tail, (1 - confidence) / 2), 1 - confidence))


@dataclass(frozen=True, eq=False)
class _Component:
    """One norm on one stratum: its observed deviations, and directions of the true ones: direct and sparse."""

    norm: DisparityNorm
    stratum: Stratum
    widths: Floats
    shift: Floats
    observed: Floats
    directions: tuple[Floats, Floats]

    def total(self, curves: Floats) -> Floats:
        return self.stratum.weight * self.norm.total(curves, self.widths.astype(curves.dtype))

    def shifted(self, curves: Floats) -> Floats:
        """Return the part of curves that shifts groups; all of it where no score can move."""
        return _split_shift(curves, self.shift, self.widths)[0] if self.shift @ self.widths > 0 else curves


def confidence_distributions(
    strata: Sequence[Stratum], n_replicates: int, rng: np.random.Generator, *, tail: float = 0.5
) -> dict[str, ConfidenceDistribution]:
    """Solve bootstrap replicates for the true disparities behind the observed ones.

    Quantiles of ``lower`` are exact up to level ``tail``, which is 0 where no lower limit is needed.
    """
    size = sum(stratum.histograms.masses.size for stratum in strata)
    chunk = max(1, min(n_replicates, _MAX_CURVE_ENTRIES // size))
    chunks = [chunk] * (n_replicates // chunk) + [n_replicates % chunk] * (n_replicates % chunk > 0)
    components: dict[str, list[_Component]] = {}
    largest: dict[str, float] = {}  # of the observed disparity, and its median under the null hypothesis
    parts: defaultdict[str, list[tuple[Floats, Floats, Floats]]] = defaultdict(list)
    for n_drawn in chunks:
        draw = attrgetter("replicates" if n_drawn == n_replicates else "bootstrap")  # each chunk needs its own
        draws = [draw(stratum.histograms)(rng, n_drawn) for stratum in strata]
        noises: dict[bool, list[Floats]] = {}  # of distribution functions, and of quantile functions
        for norms in zip(*(stratum.norms for stratum in strata), strict=True):
            name, of_quantiles = norms[0].name, norms[0].kind == "mean"
            if of_quantiles not in noises:
                noises[of_quantiles] = [_noise(*each) for each in zip(norms, strata, draws, strict=True)]
            noise = noises[of_quantiles]
            if name not in components:
                components[name] = [_make_component(*each) for each in zip(norms, strata, noise, strict=True)]
            terms = components[name]
            direct, sparse = zip(*(term.directions for term in terms), strict=True)
            observed = sum(float(term.total(term.observed)[0]) for term in terms)
            chance = _measure(terms, direct, noise, np.zeros(n_drawn))
            largest.setdefault(name, max(observed, float(np.median(chance))))
            lower = values = _solve(terms, direct, noise, chance, observed)
            if tail > 0 and any(one is not other for one, other in zip(direct, sparse, strict=True)):
                below = float(np.quantile(values, tail, method="higher")) if n_drawn == n_replicates else np.inf
                lower = np.minimum(lower, _solve(terms, sparse, noise, chance, observed, below=below))
            upper = values if observed == largest[name] else _solve(terms, direct, noise, chance, largest[name])
            scale = sum(float(term.total(direction)[0]) for term, direction in zip(terms, direct, strict=True))
            middle = float(np.median(upper))
            shifts = [-term.shifted(one) for term, one in zip(terms, noise, strict=True)]
            moved = _measure(terms, direct, shifts, np.full(n_drawn, middle / scale if scale > 0 else 0.0))
            moved = moved - _BIAS * max(0.0, float(np.median(moved)) - middle)
            # Of two sorted samples, the larger values have the larger one of each two quantiles.
            upper = np.maximum(np.sort(upper), np.sort(moved))
            parts[name].append((values, lower, upper))
    return {name: ConfidenceDistribution(*map(np.concatenate, zip(*each, strict=True))) for name, each in parts.items()}


def _noise(norm: DisparityNorm, stratum: Stratum, draw: tuple[Floats, Floats]) -> Floats:
    """Return the deviations of replicates from their source."""
    drawn, source = (norm.prepare(curves, stratum.histograms) for curves in draw)
    return np.float32(stratum.noise_factor) * np.subtract(drawn, source, dtype=np.float32)


def _make_component(norm: DisparityNorm, stratum: Stratum, noise: Floats) -> _Component:
    histograms = stratum.histograms
    curves = norm.prepare(histograms.curves(), histograms)
    deviations = curves - norm.centre(curves, histograms)
    widths = norm.widths(histograms)
    pooled = histograms.curves()[-1, 0]
    # The effect of a small shift of the scores on a curve: largest where scores are dense; constant on quantiles.
    shift = np.ones(widths.size) if norm.kind == "mean" else pooled * (1 - pooled)
    component = _Component(norm, stratum, widths, shift, deviations, (deviations,) * 2)
    if norm.target is None:
        noise = noise - noise[-1]
    if not shift @ widths > 0:
        return component
    shifted, remainder = _split_shift(deviations, shift, widths)
    explained = _explained_share(remainder[:-1], noise[:-1], shift, widths)
    sparse = direction = shifted + (1.0 - explained) * remainder
    if float(component.total(direction)[0]) <= _EQUAL:
        sparse = direction = _alternating_shift(len(deviations), histograms.group_shares, shift)
    if explained >= _NEGLIGIBLE:
        sparse = _threshold(deviations, noise)
        sparse = sparse if float(component.total(sparse)[0]) > _EQUAL else direction
    return replace(component, directions=(direction, sparse))


def smooth_deviations(curves: Floats, noise: Floats, widths: Floats) -> Floats:
    """Return the groups' deviations from their mean; what is no shift is shrunk by three times what noise explains."""
    mean = curves.mean(axis=0)
    shift, deviations = mean * (1 - mean), curves - mean
    if not shift @ widths > 0:
        return deviations
    errors = (noise - noise.mean(axis=1, keepdims=True)).swapaxes(0, 1)
    shifted, remainder = _split_shift(deviations, shift, widths)
    explained = _explained_share(remainder, errors, shift, widths)
    return shifted + max(0.0, 1.0 - _SMOOTHING * explained) * remainder


def _threshold(deviations: Floats, noise: Floats) -> Floats:
    """Shrink deviations towards 0, to 0 where they are less than two standard errors."""
    variance = np.mean(noise**2, axis=1, keepdims=True)
    squares = deviations**2
    share = np.divide(variance, squares, out=np.ones_like(squares), where=squares > 0)
    sparse: Floats = deviations * np.maximum(0.0, 1.0 - _THRESHOLD * share)
    return sparse


def _explained_share(remainder: Floats, noise: Floats, shift: Floats, widths: Floats) -> float:
    """Return the share of what is no shift in groups that noise, (n_groups, n_draws, n_nodes), explains, in squares."""
    energy = float(np.sum(remainder**2 @ widths))
    areas = noise @ widths / (shift @ widths)
    squares = noise**2 @ widths - 2 * areas * (noise @ (shift * widths)) + areas**2 * (shift**2 @ widths)
    return min(1.0, float(np.sum(squares.mean(axis=1))) / energy) if energy > 0 else 1.0


def _split_shift(curves: Floats, shift: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Split each curve into a multiple of ``shift`` with the same area, and the remainder."""
    shifted = (curves @ widths / (shift @ widths))[..., None] * shift
    return shifted, curves - shifted


def _alternating_shift(n_curves: int, shares: Floats, shift: Floats) -> Floats:
    """Return deviations that shift every other group, as the direction where the groups are observed to be equal."""
    signs = np.where(np.arange(n_curves - 1) % 2, 1.0, -1.0)
    signs -= shares @ signs
    direction = np.zeros((n_curves, 1, shift.size))
    direction[:-1, 0] = 1e-3 * signs[:, None] * shift
    return direction


def _measure(
    terms: Sequence[_Component], directions: Sequence[Floats], noise: Sequence[Floats], multiples: Floats
) -> Floats:
    """Return the disparity of each replicate at its multiple of the direction."""
    factors = multiples.astype(np.float32)[None, :, None]
    parts = (factors * direction.astype(np.float32) + one for direction, one in zip(directions, noise, strict=True))
    return _sum(term.total(part) for term, part in zip(terms, parts, strict=True))


def _solve(
    terms: Sequence[_Component], directions: Sequence[Floats], noise: Sequence[Floats], chance: Floats, observed: float,
    *, below: float = np.inf,
) -> Floats:  # fmt: skip
    r"""Return the true disparity at the largest root :math:`\lambda \ge 0` of each replicate; ``chance`` is at 0."""
    scale = sum(float(term.total(direction)[0]) for term, direction in zip(terms, directions, strict=True))
    if not scale > 0:
        return np.zeros(chance.size)

    def measure(multiples: Floats, index: Ints) -> Floats:
        return _measure(terms, directions, [one[:, index] for one in noise], multiples)

    n_entries = sum(one[:, 0].size for one in noise)
    return scale * largest_roots(measure, observed, chance, scale, n_entries, below=below / scale)


# The disparities as norms of curves, evaluated for thousands of resampled histograms at once.

METRICS = ("wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")
#: Disparities that do not change under increasing maps of the scores.
RANK_METRICS = ("rank_disparity", "kolmogorov_smirnov_disparity")

Kind = Literal["pairs", "median", "everyone", "group", "fixed", "mean", "largest"]

_N_LEVELS = 128  # of the quantile functions
_MAX_COMPARED = 16


@dataclass(frozen=True, eq=False)
class DisparityNorm:
    """A disparity as a sum of areas between curves."""

    name: str
    kind: Kind
    group: int = -1
    target: Sample | None = None

    def total(self, curves: Floats, widths: Floats) -> Floats:
        """Return the disparity of each replicate: a norm of the centred ``curves``."""
        groups = curves[:-1]
        if self.kind == "largest":
            largest: Floats = (groups.max(axis=0) - groups.min(axis=0)).max(axis=-1)
            return largest
        if self.kind in {"pairs", "median"}:
            # The k-th lowest of n curves is the upper one in k pairs and the lower one in n - 1 - k.
            coefficients = 2.0 * np.arange(len(groups)) - len(groups) + 1
            coefficients = coefficients if self.kind == "pairs" else np.sign(coefficients)
            ordered = _sort_curves(groups)
            return _sum(
                factor * (curve @ widths) for factor, curve in zip(coefficients, ordered, strict=True) if factor
            )
        if self.kind == "fixed":
            return _sum(abs(curve) @ widths for curve in groups)
        centre = curves[self.group] if self.kind == "group" else curves[-1]
        return _sum(abs(curve - centre) @ widths for curve in groups)

    def prepare(self, curves: Floats, histograms: CoarseHistograms) -> Floats:
        """Return the curves to compare: the distribution functions themselves, or their quantile functions."""
        if self.kind != "mean":
            return curves
        levels = (np.arange(_N_LEVELS) + 0.5) / _N_LEVELS
        flat = np.maximum.accumulate(curves[:-1].reshape(-1, curves.shape[-1]), axis=-1)  # replicates are rescaled
        indices = np.array([np.searchsorted(cdf, levels - 1e-12) for cdf in flat])
        quantiles = histograms.centres[np.maximum(indices - 1, 0)].reshape(*curves[:-1].shape[:2], _N_LEVELS)
        return np.concatenate([quantiles, np.tensordot(histograms.group_shares, quantiles, 1)[None]])

    def widths(self, histograms: CoarseHistograms) -> Floats:
        """Return the weight of each entry of a curve: the width of a bin, or the spacing of the levels."""
        return np.full(_N_LEVELS, 1 / _N_LEVELS) if self.kind == "mean" else histograms.widths

    def centre(self, curves: Floats, histograms: CoarseHistograms) -> Floats:
        """Return the curve that all groups have at disparity 0: that of the target, if any, or that of all rows."""
        return curves[-1] if self.target is None else histograms.average_cdf(self.target)[None]


#: The norms of the disparities of ranks.
RANK_NORMS = DisparityNorm(RANK_METRICS[0], "pairs"), DisparityNorm(RANK_METRICS[1], "largest")


def make_norms(histograms: GroupHistograms, target: Any, *, scale: float = 1.0) -> tuple[DisparityNorm, ...]:
    """Return the norms of the three disparities, the first with respect to a target as users specify it."""
    first = METRICS[0]
    kinds: dict[str, Kind] = dict(zip(TARGET_WORDS, ("median", "mean", "everyone"), strict=True))
    if isinstance(target, str) and target in kinds:
        to_target = DisparityNorm(first, kinds[target])
    elif isinstance(target, (Sample, np.ndarray)) or _is_scores(target, histograms):
        sample = target if isinstance(target, Sample) else Sample.from_values(target)
        unit = Sample(scale * histograms.grid.to_unit(sample.values), sample.levels)
        to_target = DisparityNorm(first, "fixed", target=unit)
    else:
        to_target = DisparityNorm(first, "group", group=histograms.groups.index_of(target))
    return to_target, DisparityNorm(METRICS[1], "everyone"), DisparityNorm(METRICS[2], "pairs")


def _is_scores(target: Any, histograms: GroupHistograms) -> bool:
    """Return whether a target is a list of scores rather than the label of a group."""
    is_label = isinstance(target, tuple) and target in histograms.groups.labels
    return not is_label and np.ndim(target) > 0 and np.asarray(target).dtype.kind in "biuf"


def _sort_curves(curves: Floats) -> list[Floats]:
    """Sort curves pointwise; few of them by comparing whole curves, which is several times faster."""
    if len(curves) > _MAX_COMPARED:
        return list(np.sort(curves, axis=0))
    ordered, span = list(curves), 1
    while span < len(ordered):  # Batcher's odd-even merge of runs of this length
        for step in (span >> shift for shift in range(span.bit_length())):
            for low in range(step % span, len(ordered) - step):
                high = low + step
                if (low - step % span) // step % 2 == 0 and low // (2 * span) == high // (2 * span):
                    one, other = ordered[low], ordered[high]
                    ordered[low], ordered[high] = np.minimum(one, other), np.maximum(one, other)
        span *= 2
    return ordered


def _sum(parts: Any) -> Floats:
    total: Floats = np.sum(list(parts), axis=0)
    return total


# Tests of the differences between pairs of groups.

_MAX_ENTRIES = 1 << 15  # pairs times blocks
_MIN_BLOCKS = 16
_MAX_REPLICATES_TIMES_PAIRS = 1 << 21
_MIN_EXCEEDING = 10  # below this many replicates, a p-value is that of a fitted distribution


@dataclass(frozen=True, eq=False)
class PairTests:
    """The pairs of groups, tested one by one."""

    pairs: NDArray[np.intp]
    distances: Floats
    noise: Floats
    p_values: Floats

    def matrix(self, n_groups: int) -> Floats:
        """Return the p-values as a symmetric matrix; NaN on the diagonal."""
        matrix = np.full((n_groups, n_groups), np.nan)
        rows, columns = self.pairs.T
        matrix[rows, columns] = matrix[columns, rows] = self.p_values
        return matrix

    def main_pair(self, level: float) -> int:
        """Return the pair whose distance is certain to be largest or, without any difference, the least certain one."""
        established = self.p_values <= level
        if established.any():
            return int(np.argmax(np.where(established, self.distances - self.noise, -np.inf)))
        return int(np.argmax(self.distances + self.noise))

    def n_rivals(self, pair: int) -> int:
        """Return the number of pairs, with this one, whose true distance may be as large."""
        least = self.distances[pair] - self.noise[pair]
        rivals = self.distances + self.noise >= least
        rivals[pair] = True
        return int(rivals.sum())


@dataclass(frozen=True, eq=False)
class PairIndex:
    """The pairs of groups that some stratum has rows of."""

    pairs: NDArray[np.intp]
    positions: tuple[NDArray[np.intp], ...]
    weights: Floats

    def mean(self, strata: Sequence[Stratum], distances: Iterable[Floats]) -> Floats:
        """Return the mean distance of each pair over its strata, from the distances in each stratum."""
        parts = list(distances)
        total = np.zeros((len(self.pairs), *parts[0].shape[1:]))
        for stratum, positions, each in zip(strata, self.positions, parts, strict=True):
            total[positions] += stratum.weight * each
        return total / self.weights[:, None]

    def scales(self, strata: Sequence[Stratum]) -> Floats:
        r"""Return what the sum of each pair's distances over strata is proportional to without any difference.

        With weights w, group sizes n and the distribution function F of all rows of a stratum,
        :math:`\sum w \sqrt{1/n_i + 1/n_j} \int \sqrt{F (1 - F)}`. Permutations within strata do not change it.
        """
        total = np.zeros(len(self.pairs))
        for stratum, positions in zip(strata, self.positions, strict=True):
            histograms = stratum.histograms
            everyone = histograms.curves()[-1, 0]
            spread = float(np.sqrt(np.maximum(everyone * (1 - everyone), 0.0)) @ histograms.widths)
            total[positions] += stratum.weight * max(spread, 1e-12) * pair_scales(histograms.effective_sizes)
        return total


def index_pairs(strata: Sequence[Stratum]) -> PairIndex:
    """Return the pairs of groups that several strata have, numbered."""
    numbered: dict[tuple[int, int], int] = {}
    positions = []
    for stratum in strata:
        n_groups = stratum.histograms.effective_sizes.size
        groups = range(n_groups) if stratum.groups is None else stratum.groups
        own = [(groups[i], groups[j]) for i, j in zip(*np.triu_indices(n_groups, 1), strict=True)]
        positions.append(np.array([numbered.setdefault(pair, len(numbered)) for pair in own], dtype=np.intp))
    weights = np.zeros(len(numbered))
    for stratum, at in zip(strata, positions, strict=True):
        weights[at] += stratum.weight
    return PairIndex(np.array(list(numbered), dtype=np.intp), tuple(positions), weights)


def compare_pairs(
    strata: Sequence[Stratum], p_value: float, confidence: float, n_replicates: int, rng: np.random.Generator
) -> PairTests:
    """Test the difference between every two groups, averaged over strata, by Holm's method.

    The pair with the largest distance relative to its noise has the p-value of the test of all groups, which uses it.
    """
    index = index_pairs(strata)
    pairs = index.pairs
    histograms = [stratum.histograms for stratum in strata]
    distances = index.mean(strata, (pair_distances(each.curves()[:-1], each.widths) for each in histograms))[:, 0]
    most = n_replicates if len(pairs) == 1 else _MAX_REPLICATES_TIMES_PAIRS // len(pairs)
    count = int(np.clip(most, min(200, n_replicates), n_replicates))
    noise = [np.subtract(*each.replicates(rng, count))[:-1] for each in histograms]
    drawn = index.mean(strata, map(pair_distances, noise, (each.widths for each in histograms)))
    limits = np.quantile(drawn, confidence, axis=1)
    if len(pairs) == 1:
        return PairTests(pairs, distances, limits, np.array([p_value]))
    raw = np.array([_p_value(distance, noise) for distance, noise in zip(distances, drawn, strict=True)])
    adjusted = np.maximum(holm(raw), p_value)
    adjusted[np.argmax(index.weights * distances / index.scales(strata))] = p_value
    return PairTests(pairs, distances, limits, adjusted)


def pair_distances(curves: Floats, widths: Floats) -> Floats:
    """Return the areas between every two curves."""
    n_groups = len(curves)
    n_pairs = n_groups * (n_groups - 1) // 2
    n_blocks = max(_MIN_BLOCKS, _MAX_ENTRIES // max(n_pairs, 1))
    areas = curves * widths
    if n_blocks < widths.size:
        areas = np.add.reduceat(areas, np.linspace(0, widths.size, n_blocks, endpoint=False).astype(np.intp), axis=-1)
    result = np.empty((n_pairs, curves.shape[1]))
    step = max(1, _CACHE_ENTRIES // (n_groups * areas.shape[2]))
    for first in range(0, areas.shape[1], step):
        at, start = slice(first, first + step), 0
        part = areas[:, at]
        for group in range(n_groups - 1):
            stop = start + n_groups - 1 - group
            result[start:stop, at] = np.abs(part[group + 1 :] - part[group]).sum(axis=-1)
            start = stop
    return result


def pair_scales(sizes: Floats) -> Floats:
    """Return the standard error of each pair's difference relative to the spread of the scores."""
    rows, columns = np.triu_indices(sizes.size, 1)
    inverse = 1 / np.maximum(sizes, 1e-9)
    scales: Floats = np.sqrt(inverse[rows] + inverse[columns])
    return scales


def _p_value(distance: float, noise: Floats) -> float:
    """Return the probability that noise reaches a distance; where that is rare, by a gamma fit to its square."""
    n_exceeding = int(np.count_nonzero(noise >= distance * (1 - 1e-12)))
    p_value = (1 + n_exceeding) / (1 + noise.size)
    if n_exceeding >= _MIN_EXCEEDING or not noise.any():
        return p_value
    squares = noise**2
    mean, variance = float(squares.mean()), float(squares.var())
    if not variance > 0:
        return p_value
    return min(p_value, max(_gamma_tail(mean**2 / variance, distance**2 * mean / variance), 1e-12))


def _gamma_tail(shape: float, value: float) -> float:
    """Return the probability that a gamma variable exceeds a value, by a continued fraction; 1 near its mean."""
    if value <= shape + 1:
        return 1.0
    fraction = 0.0
    for n in range(200, 0, -1):
        fraction = n * (n - shape) / (value + 2 * n + 1 - shape - fraction)
    return math.exp(shape * math.log(value) - value - math.lgamma(shape)) / (value + 1 - shape - fraction)


# The permutation test of no difference between groups, on histograms.

#: Key of the statistic that the groups are tested with: the largest distance of a pair relative to its standard error.
PAIRS_TEST = "largest_ratio"


def joint_noise_floors(
    strata: Sequence[Stratum], n_permutations: int, rng: np.random.Generator
) -> tuple[dict[str, NoiseFloor], list[dict[str, NoiseFloor]]]:
    """Measure disparities, of all strata and of each, after each permutation of group membership within strata.

    Counts are drawn without replacement, which has the distribution of permuted rows at a cost that does not grow with
    them.
    """
    index = index_pairs(strata)
    scales = index.scales(strata)
    names = [norm.name for norm in strata[0].norms]
    total = {name: np.zeros(n_permutations + 1) for name in (*names, PAIRS_TEST)}
    parts = [{name: np.empty(n_permutations + 1) for name in total} for _ in strata]
    chunk = max(1, _MAX_CURVE_ENTRIES // sum(stratum.histograms.masses.size for stratum in strata))
    starts = [*range(0, n_permutations, chunk), n_permutations]
    for start, stop in zip(starts, [*starts[1:], n_permutations + 1], strict=True):
        at = slice(start, stop)
        distances = np.zeros((len(index.pairs), stop - start))
        for stratum, part, positions in zip(strata, parts, index.positions, strict=True):
            histograms = stratum.histograms
            # The observed groups come last, after all permutations.
            curves = histograms.curves() if start == n_permutations else histograms.null_curves(rng, stop - start)
            for norm in stratum.norms:
                part[norm.name][at] = _measure_permutations(norm, stratum, curves)
                total[norm.name][at] += stratum.weight * part[norm.name][at]
            between = pair_distances(curves[:-1], histograms.widths)
            part[PAIRS_TEST][at] = (between / pair_scales(histograms.effective_sizes)[:, None]).max(axis=0)
            distances[positions] += stratum.weight * between
        total[PAIRS_TEST][at] = (distances / scales[:, None]).max(axis=0)
    return _floors(total), [_floors(part) for part in parts]


def _floors(values: Mapping[str, Floats]) -> dict[str, NoiseFloor]:
    return {name: NoiseFloor(float(each[-1]), each[:-1]) for name, each in values.items()}


def _measure_permutations(norm: DisparityNorm, stratum: Stratum, curves: Floats) -> Floats:
    histograms = stratum.histograms
    prepared = norm.prepare(curves, histograms)
    if norm.target is not None:
        prepared = prepared - histograms.average_cdf(norm.target)
    return norm.total(prepared, norm.widths(histograms))
