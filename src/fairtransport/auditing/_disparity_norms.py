"""The disparities as norms of curves, evaluated for thousands of resampled histograms at once.

A curve is a distribution function averaged over bins, or a quantile function at equally spaced levels. An array of
curves has the shape (n_groups + 1, n_replicates, n_bins): the groups come first, the curve of all rows is the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._coarse_histograms import CoarseHistograms
    from fairtransport.histograms import GroupHistograms

__all__ = ["METRICS", "RANK_METRICS", "DisparityNorm", "make_norms", "make_rank_norms"]

METRICS = ("wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")
#: Disparities that do not change under increasing maps of the scores.
RANK_METRICS = ("rank_disparity", "kolmogorov_smirnov_disparity")

Kind = Literal["pairs", "median", "everyone", "group", "fixed", "mean", "largest"]

_N_LEVELS = 128  # of the quantile functions
_MAX_COMPARED = 8


@dataclass(frozen=True, eq=False)
class DisparityNorm:
    """A disparity as a sum of areas between curves.

    Parameters
    ----------
    name : str
        Name of the metric.
    kind : {"pairs", "median", "everyone", "group", "fixed", "mean", "largest"}
        What is compared: all pairs of groups, or each group with the pointwise median of the groups' curves (the
        Wasserstein-1 barycenter), with all rows, with one group, with a fixed distribution, or with the mean of the
        groups' quantile functions (the Wasserstein-2 barycenter). ``"largest"`` is the largest difference between two
        curves, not an area (Kolmogorov-Smirnov).
    group : int
        Index of the group, for "group".
    target : Sample, optional
        The fixed distribution on [0, 1], for "fixed".
    """

    name: str
    kind: Kind
    group: int = -1
    target: Sample | None = None

    def total(self, curves: NDArray[np.float64], widths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the disparity of each replicate: a norm of the centred ``curves``."""
        groups = curves[:-1]
        if self.kind == "largest":
            largest: NDArray[np.float64] = (groups.max(axis=0) - groups.min(axis=0)).max(axis=-1)
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

    def prepare(self, curves: NDArray[np.float64], histograms: CoarseHistograms) -> NDArray[np.float64]:
        """Return the curves to compare: the distribution functions themselves, or their quantile functions."""
        if self.kind != "mean":
            return curves
        levels = (np.arange(_N_LEVELS) + 0.5) / _N_LEVELS
        flat = np.maximum.accumulate(curves[:-1].reshape(-1, curves.shape[-1]), axis=-1)  # replicates are rescaled
        indices = np.array([np.searchsorted(cdf, levels - 1e-12) for cdf in flat])
        quantiles = histograms.centres[np.maximum(indices - 1, 0)].reshape(*curves[:-1].shape[:2], _N_LEVELS)
        return np.concatenate([quantiles, np.tensordot(histograms.group_shares, quantiles, 1)[None]])

    def widths(self, histograms: CoarseHistograms) -> NDArray[np.float64]:
        """Return the weight of each entry of a curve: the width of a bin, or the spacing of the levels."""
        return np.full(_N_LEVELS, 1 / _N_LEVELS) if self.kind == "mean" else histograms.widths

    def centre(self, curves: NDArray[np.float64], histograms: CoarseHistograms) -> NDArray[np.float64]:
        """Return the curve that all groups have at disparity 0: that of the target, if any, or that of all rows."""
        return curves[-1] if self.target is None else histograms.average_cdf(self.target)[None]


def make_rank_norms() -> tuple[DisparityNorm, ...]:
    """Return the norms of the disparities of ranks."""
    return DisparityNorm(RANK_METRICS[0], "pairs"), DisparityNorm(RANK_METRICS[1], "largest")


def make_norms(histograms: GroupHistograms, target: Any, *, scale: float = 1.0) -> tuple[DisparityNorm, ...]:
    """Return the norms of the three disparities, the first with respect to a target as users specify it.

    Parameters
    ----------
    histograms : GroupHistograms
    target : str, label, array-like or Sample
    scale : float, default 1
        Length of the range, as in `coarsen`.

    Returns
    -------
    tuple of DisparityNorm
    """
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
    if isinstance(target, tuple) and target in histograms.groups.labels:
        return False
    if np.ndim(target) == 0:
        return False
    return np.asarray(target).dtype.kind in "biuf"


def _sort_curves(curves: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Sort curves pointwise; few of them by comparing whole curves, which is several times faster."""
    if len(curves) > _MAX_COMPARED:
        return list(np.sort(curves, axis=0))
    ordered = list(curves)
    for last in range(len(ordered) - 1, 0, -1):
        for index in range(last):
            one, other = ordered[index], ordered[index + 1]
            ordered[index], ordered[index + 1] = np.minimum(one, other), np.maximum(one, other)
    return ordered


def _sum(parts: Any) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.sum(list(parts), axis=0)
    return total
