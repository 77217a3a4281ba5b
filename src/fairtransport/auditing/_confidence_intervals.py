r"""Confidence intervals of disparities, by inversion of the bootstrap.

A disparity of samples is biased upward: two samples of one distribution never agree exactly. Percentile bootstrap
intervals double this bias and have poor coverage, in the extreme none. The intervals here are obtained by inversion
instead: they consist of the true disparities under which the observed one would not be unusual.

Let D be the observed deviations of the groups' curves from their common curve, h the noise of a bootstrap replicate and
:math:`\|\cdot\|` the disparity, which is a norm of such deviations. The true deviations are taken to be a multiple
:math:`\lambda D` of the observed ones, from no difference (0) through the observed difference (1) and beyond. With the
noise h they would be observed as :math:`\|\lambda D + h\|`. For each replicate, the equation

.. math:: \|\lambda_b D + h_b\| = \|D\|, \qquad \theta_b = \lambda_b \|D\|,

is solved for the true disparity :math:`\theta_b` that would have been observed as it was. The quantiles of the
:math:`\theta_b` are the confidence limits. Where noise alone exceeds the observed disparity, :math:`\theta_b` is 0, so
the interval includes 0 when the data show no difference; an audit ensures this with the test of no difference.

D itself contains noise. The part of it that is not a shift of the scores is shrunk (James and Stein) by the share that
noise explains. The limits do not rely on that direction alone: the lower one is also computed for a sparse direction,
with only the deviations of more than two standard errors, where noise adds most, and the upper one for a smooth
direction, nearly a shift, whose size is the least certain. The lower limit is the smaller of the two; the upper one
lies halfway between its two, of which one covers too rarely where the groups' true differences are hidden by noise, and
the other too often where they are not (`benchmarks/coverage.py`). If the observed disparity is below the
median under the null hypothesis, the upper limit is that of an observation at this median.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._secant import largest_roots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._coarse_histograms import CoarseHistograms
    from fairtransport.auditing._disparity_norms import DisparityNorm

__all__ = ["ConfidenceDistribution", "Stratum", "confidence_distributions", "smooth_direction"]

_NORMAL = NormalDist()
_SMALL_P_VALUE = 25  # permutations resolve no p-values much below 1 - confidence divided by this
_MAX_CURVE_ENTRIES = 1 << 21  # in memory at a time
_SMOOTHING = 3.0  # shrinkage of the direction of the upper limit, relative to James and Stein's
_THRESHOLD = 4.0  # deviations of less than two standard errors are left out of the direction of the lower limit
_UPPER_CORRECTION = 0.8
_NEGLIGIBLE = 0.02  # share of noise
_EQUAL = 1e-9  # a disparity that is 0 but for rounding
_CACHE_ENTRIES = 1 << 16  # of the curves that are solved at a time


@dataclass(frozen=True, eq=False)
class Stratum:
    """Histograms whose disparities count with a weight: one stratum of several, or all rows with weight 1.

    Parameters
    ----------
    histograms : CoarseHistograms
    norms : tuple of DisparityNorm
        The disparities to measure; the same names in all strata.
    weight : float
    noise_factor : float
        Factor of the noise: above 1 for intervals that account for the selection of a pair.
    groups : tuple of int
        Index of each group in the audit, where strata have different groups; by default its index here.
    """

    histograms: CoarseHistograms
    norms: tuple[DisparityNorm, ...]
    weight: float = 1.0
    noise_factor: float = 1.0
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class ConfidenceDistribution:
    """The true disparities that solve each replicate; their quantiles are confidence limits.

    Parameters
    ----------
    values : array of shape (n_replicates,)
        For the observed disparity.
    lower : array of shape (n_replicates,)
        The same for the lower limit, also with a sparse direction.
    upper : array of shape (n_replicates,)
        The same for the upper limit, halfway to a smooth direction, and for an observed disparity of at least the
        median under the null hypothesis.
    """

    values: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def median(self) -> float:
        """The median: the observed disparity after correction for its bias."""
        return float(np.median(self.values))

    @property
    def p_value(self) -> float:
        """The share of replicates whose noise alone reaches the observed disparity."""
        return float((1 + np.count_nonzero(self.values == 0)) / (1 + self.values.size))

    def interval(self, confidence: float, p_value: float) -> tuple[float, float]:
        """Return the confidence interval, which includes 0 if and only if a test of no difference does not reject.

        Parameters
        ----------
        confidence : float
        p_value : float
            Of the test.
        """
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

    Parameters
    ----------
    p_value : float
        Of the test that the quantity is 0.
    confidence : float

    Returns
    -------
    float
        From :math:`1 - c` at that p-value to :math:`(1 - c) / 2` for small ones, with c the confidence level.

    Notes
    -----
    A central interval excludes 0 only if :math:`p \le (1 - c) / 2`. The unified intervals of Feldman and Cousins
    exclude it if and only if :math:`p \le 1 - c`, and have the same coverage. This is the tail of their lower limit for
    a normal observation with that p-value.

    References
    ----------
    Feldman and Cousins (1998), "Unified approach to the classical statistical analysis of small signals".

    Examples
    --------
    >>> round(lower_tail(0.05, 0.95), 4), round(lower_tail(0.02, 0.95), 4), round(lower_tail(1e-6, 0.95), 4)
    (0.05, 0.0498, 0.025)
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
    """One norm on one stratum: its observed deviations, and the directions of the true ones that limits assume."""

    norm: DisparityNorm
    stratum: Stratum
    widths: NDArray[np.float64]
    observed: NDArray[np.float64]
    direction: NDArray[np.float64]
    smooth_direction: NDArray[np.float64]
    sparse_direction: NDArray[np.float64]

    def total(self, curves: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.stratum.weight * self.norm.total(curves, self.widths)

    def noise(self, drawn: NDArray[np.float64], source: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the deviations of replicates from their source."""
        prepare, histograms = self.norm.prepare, self.stratum.histograms
        return self.stratum.noise_factor * (prepare(drawn, histograms) - prepare(source, histograms))


def confidence_distributions(
    strata: Sequence[Stratum], n_replicates: int, rng: np.random.Generator, *, significant: bool = True
) -> dict[str, ConfidenceDistribution]:
    """Solve bootstrap replicates for the true disparities behind the observed ones.

    Parameters
    ----------
    strata : sequence of Stratum
        Disparities are summed over strata, by weight.
    n_replicates : int
    rng : numpy.random.Generator
    significant : bool, default True
        Whether the lower limits are needed: whether the test of no difference rejects.

    Returns
    -------
    dict of str to ConfidenceDistribution
        By the names of the norms.
    """
    size = sum(stratum.histograms.masses.size for stratum in strata)
    chunk = max(1, min(n_replicates, _MAX_CURVE_ENTRIES // size))
    chunks = [chunk] * (n_replicates // chunk) + [n_replicates % chunk] * (n_replicates % chunk > 0)
    components: dict[str, list[_Component]] = {}
    nulls: dict[str, tuple[float, float]] = {}  # the observed disparity, and its median under the null hypothesis
    parts: defaultdict[str, list[ConfidenceDistribution]] = defaultdict(list)
    for n_drawn in chunks:
        draws = [stratum.histograms.bootstrap(rng, n_drawn) for stratum in strata]
        for norms in zip(*(stratum.norms for stratum in strata), strict=True):
            name = norms[0].name
            if name not in components:
                components[name] = [_make_component(*each) for each in zip(norms, strata, draws, strict=True)]
            terms = components[name]
            noise = [term.noise(*draw) for term, draw in zip(terms, draws, strict=True)]
            observed = sum(float(term.total(term.observed)[0]) for term in terms)
            if name not in nulls:
                under_null = _measure(terms, noise)
                nulls[name] = observed, float(np.median(under_null))
            values = _solve(terms, noise, observed)
            largest = max(nulls[name])
            upper = values if observed == largest else _solve(terms, noise, largest)
            lower = values
            if any(term.smooth_direction is not term.direction for term in terms):
                smooth = [replace(term, direction=term.smooth_direction) for term in terms]
                upper = (upper + np.maximum(upper, _solve(smooth, noise, largest))) / 2
                if significant:
                    sparse = [replace(term, direction=term.sparse_direction) for term in terms]
                    lower = np.minimum(lower, _solve(sparse, noise, observed))
            parts[name].append(ConfidenceDistribution(values, lower, upper))
    n_groups = max(len(stratum.histograms.group_shares) for stratum in strata)
    return {
        name: _join(each, *nulls[name], correction=_UPPER_CORRECTION if n_groups > 2 else 0.0)
        for name, each in parts.items()
    }


def _join(
    parts: Sequence[ConfidenceDistribution], observed: float, null_median: float, *, correction: float
) -> ConfidenceDistribution:
    """Join the replicates of several chunks, and take back some of the upper limit's correction for bias.

    The bias is that of groups which lie as the observed ones do. It is smaller where the true groups are spread more
    evenly than the observed ones, some of which come close to each other by chance.
    """
    values, lower, upper = (
        np.concatenate([getattr(part, limit) for part in parts]) for limit in ("values", "lower", "upper")
    )
    if observed > null_median > 0:
        bias = max(0.0, observed - float(np.median(values)))
        upper = upper + correction * (1 - null_median / observed) * bias
    return ConfidenceDistribution(values, lower, upper)


def _make_component(
    norm: DisparityNorm, stratum: Stratum, draw: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> _Component:
    histograms = stratum.histograms
    curves = norm.prepare(histograms.curves(), histograms)
    deviations = curves - norm.centre(curves, histograms)
    widths = norm.widths(histograms)
    component = _Component(norm, stratum, widths, deviations, deviations, deviations, deviations)
    noise = component.noise(*draw)
    if norm.target is None:
        noise = noise - noise[-1]
    pooled = histograms.curves()[-1, 0]
    # The effect of a small shift of the scores on a curve: largest where scores are dense; constant on quantiles.
    shift = np.ones(widths.size) if norm.kind == "mean" else pooled * (1 - pooled)
    if not shift @ widths > 0:
        return component
    shifted, remainder = _split_shift(deviations, shift, widths)
    explained = _explained_share(remainder, _split_shift(noise, shift, widths)[1], widths)
    direction, smooth = (shifted + max(0.0, 1.0 - strength * explained) * remainder for strength in (1.0, _SMOOTHING))
    if float(component.total(smooth)[0]) <= _EQUAL:
        smooth = _alternating_shift(len(deviations), histograms.group_shares, shift)
    if float(component.total(direction)[0]) <= _EQUAL:
        direction = smooth
    if explained < _NEGLIGIBLE:
        smooth = direction
    sparse = _threshold(deviations, noise)
    if float(component.total(sparse)[0]) <= _EQUAL:
        sparse = direction
    return _Component(norm, stratum, widths, deviations, direction, smooth, sparse)


def smooth_direction(
    deviations: NDArray[np.float64],
    noise: NDArray[np.float64],
    shift: NDArray[np.float64],
    widths: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return deviations of groups, of which what is not a shift is shrunk by three times what noise explains."""
    if not shift @ widths > 0:
        return deviations
    shifted, remainder = _split_shift(deviations, shift, widths)
    energy = float(np.sum(remainder**2 @ widths))
    noise_energy = float(np.sum((_split_shift(noise, shift, widths)[1] ** 2 @ widths).mean(axis=0)))
    explained = min(1.0, noise_energy / energy) if energy > 0 else 1.0
    return shifted + max(0.0, 1.0 - _SMOOTHING * explained) * remainder


def _threshold(deviations: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shrink deviations towards 0, to 0 where they are less than two standard errors."""
    variance = np.mean(noise**2, axis=1, keepdims=True)
    squares = deviations**2
    share = np.divide(variance, squares, out=np.ones_like(squares), where=squares > 0)
    sparse: NDArray[np.float64] = deviations * np.maximum(0.0, 1.0 - _THRESHOLD * share)
    return sparse


def _explained_share(remainder: NDArray[np.float64], noise: NDArray[np.float64], widths: NDArray[np.float64]) -> float:
    """Return the share of the squared deviations that noise explains."""
    energy = float(np.sum((remainder[:-1] ** 2) @ widths))
    noise_energy = float(np.sum(((noise[:-1] ** 2) @ widths).mean(axis=1)))
    return min(1.0, noise_energy / energy) if energy > 0 else 1.0


def _split_shift(
    curves: NDArray[np.float64], shift: NDArray[np.float64], widths: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split each curve into a multiple of ``shift`` with the same area, and the remainder."""
    shifted = (curves @ widths / (shift @ widths))[..., None] * shift
    return shifted, curves - shifted


def _alternating_shift(n_curves: int, shares: NDArray[np.float64], shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return deviations that shift every other group, as the direction where the groups are observed to be equal."""
    signs = np.where(np.arange(n_curves - 1) % 2, 1.0, -1.0)
    signs -= shares @ signs
    direction = np.zeros((n_curves, 1, shift.size))
    direction[:-1, 0] = 1e-3 * signs[:, None] * shift
    return direction


def _measure(
    components: Sequence[_Component],
    noise: Sequence[NDArray[np.float64]],
    multiples: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the disparity of each replicate at its multiple of the direction; None for noise alone."""
    if multiples is None:
        parts = [component.total(one) for component, one in zip(components, noise, strict=True)]
    else:
        factors = multiples[None, :, None]
        parts = [
            component.total(factors * component.direction + one)
            for component, one in zip(components, noise, strict=True)
        ]
    total: NDArray[np.float64] = np.sum(parts, axis=0)
    return total


def _solve(
    components: Sequence[_Component], noise: Sequence[NDArray[np.float64]], observed: float
) -> NDArray[np.float64]:
    r"""Return the true disparity at the largest root :math:`\lambda \ge 0` for each replicate; 0 where there is none.

    The disparity is a convex function of lambda whose slope is at most the norm of the direction.
    """
    scale = sum(float(component.total(component.direction)[0]) for component in components)
    size = noise[0].shape[1]
    if not scale > 0:
        return np.zeros(size)
    # Few replicates at a time: arrays that fit into the processor's cache are several times faster.
    step = max(1, _CACHE_ENTRIES // sum(one.shape[0] * one.shape[2] for one in noise))
    slices = [slice(start, start + step) for start in range(0, size, step)]
    roots = []
    for at in slices:
        part = [one[:, at] for one in noise]
        start = (observed + _measure(components, part)) / scale  # right of the root, by the triangle inequality
        roots.append(largest_roots(partial(_measure, components, part), observed, start, scale))
    return scale * np.concatenate(roots)
