"""What is measured, as a norm of curves, so that thousands of resampled histograms can be measured at once.

A curve is a distribution function averaged over a few bins, or a quantile function at a few levels. An array of curves
has the groups first and everyone last, then replicates, then bins: shape (n_groups + 1, n_replicates, n_bins).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._coarse_histograms import Thinned
    from fairtransport.histograms import GroupHistograms

__all__ = ["METRICS", "Yardstick", "make_yardsticks"]

METRICS = ("wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")

Kind = Literal["pairs", "median", "everyone", "group", "fixed", "mean"]

_LEVELS = 128  # at which quantile functions are read


@dataclass(frozen=True, eq=False)
class Yardstick:
    """A disparity: a sum of areas between curves.

    Parameters
    ----------
    name : str
        Its key among the metrics.
    kind : {"pairs", "median", "everyone", "group", "fixed", "mean"}
        Between every two groups; of the groups to their pointwise median (the Wasserstein-1 barycenter), to
        everyone, to one group, to a distribution that does not change, to the mean of their quantile functions (the
        Wasserstein-2 barycenter).
    group : int
        Which group, for "group".
    target : Sample, optional
        The distribution on [0, 1], for "fixed".
    """

    name: str
    kind: Kind
    group: int = -1
    target: Sample | None = None

    def total(self, curves: NDArray[np.float64], widths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the disparity of each replicate; a norm of ``curves``, once they are centred."""
        groups = curves[:-1]
        if self.kind in {"pairs", "median"}:
            # The k-th lowest curve counts as often as it is the higher one of a pair, less as the lower one.
            times = 2.0 * np.arange(len(groups)) - len(groups) + 1
            times = times if self.kind == "pairs" else np.sign(times)
            total: NDArray[np.float64] = times @ (np.sort(groups, axis=0) @ widths)
            return total
        if self.kind == "fixed":
            return _sum(abs(one) @ widths for one in groups)
        middle = curves[self.group] if self.kind == "group" else curves[-1]
        return _sum(abs(one - middle) @ widths for one in groups)

    def prepare(self, curves: NDArray[np.float64], thinned: Thinned) -> NDArray[np.float64]:
        """Turn distribution functions into the curves that are compared: themselves, or quantile functions."""
        if self.kind != "mean":
            return curves
        levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
        flat = curves[:-1].reshape(-1, curves.shape[-1])
        places = np.array([np.searchsorted(one, levels - 1e-12) for one in flat])
        quantiles = thinned.centres[np.maximum(places - 1, 0)].reshape(*curves[:-1].shape[:2], _LEVELS)
        return np.concatenate([quantiles, np.tensordot(thinned.group_shares, quantiles, 1)[None]])

    def widths(self, thinned: Thinned) -> NDArray[np.float64]:
        """Return what each entry of a curve stands for: a bin's width, or a share of the levels."""
        return np.full(_LEVELS, 1 / _LEVELS) if self.kind == "mean" else thinned.widths

    def centre(self, curves: NDArray[np.float64], thinned: Thinned) -> NDArray[np.float64]:
        """Return the curve that all groups would have at disparity 0: the target where one is given, or everyone's."""
        return curves[-1] if self.target is None else thinned.average_cdf(self.target)[None]


def make_yardsticks(histograms: GroupHistograms, target: Any) -> tuple[Yardstick, ...]:
    """Return the three disparities, with the first one measured to what the user calls a target."""
    first = METRICS[0]
    words: dict[str, Kind] = dict(zip(TARGET_WORDS, ("median", "mean", "everyone"), strict=True))
    if isinstance(target, str) and target in words:
        to_target = Yardstick(first, words[target])
    elif isinstance(target, (Sample, np.ndarray)) or _is_scores(target, histograms):
        sample = target if isinstance(target, Sample) else Sample.from_values(target)
        unit = Sample(histograms.grid.to_unit(sample.values), sample.levels)
        to_target = Yardstick(first, "fixed", target=unit)
    else:
        to_target = Yardstick(first, "group", group=histograms.groups.index_of(target))
    return to_target, Yardstick(METRICS[1], "everyone"), Yardstick(METRICS[2], "pairs")


def _is_scores(target: Any, histograms: GroupHistograms) -> bool:
    """Whether a target is a list of scores: not a label, and numbers throughout."""
    if isinstance(target, tuple) and target in histograms.groups.labels:
        return False
    if np.ndim(target) == 0:
        return False
    return np.asarray(target).dtype.kind in "biuf"


def _sum(parts: Any) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.sum(list(parts), axis=0)
    return total
