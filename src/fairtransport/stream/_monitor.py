r"""Monitor of the disparity of a stream, with an alarm of stated rate.

Each group's scores are counted in histograms with exponential forgetting.

**Disparity** is the mean over pairs of groups of the Wasserstein-1 distance between their scores, as in
`fairtransport.metrics.pairwise_disparity`. The distance of each group is that to the target: the model's fixed target
if it has one, and otherwise the Wasserstein-1 barycenter of the groups.

**Noise floor** is the expected disparity of groups that all have the same distribution. With an effective sample size
n, the error of an empirical distribution function F is asymptotically a Brownian bridge, :math:`B(F) / \sqrt n`. The
noise floor is the mean disparity over up to 64 sets of bridges that are drawn once with a fixed seed, so it is
deterministic and takes the number and the sizes of the groups into account.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport.groups import Groups

#: Bins of a histogram; the error of a distance is at most 1 / 200 of the range.
MONITOR_BINS = 200

_ROWS_AFTER_ALARM = 50.0  # weight of a group's histogram after an alarm
_N_SETS, _N_STEPS = 64, 256
_MAX_BRIDGES = 1024  # of all sets: 2 MiB


@dataclass(frozen=True, eq=False)
class _GroupArrays:
    """Arrays of which a checkpoint stores all, and the first axis of those of ``_by_group`` is that of the groups."""

    _by_group: ClassVar[tuple[str, ...]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a checkpoint stores."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    def widened(self, n_groups: int) -> Self:
        """Return the same with zeros for groups that are new."""
        parts = {name: getattr(self, name) for name in self._by_group}
        more = {name: np.zeros((n_groups - len(one), *one.shape[1:]), one.dtype) for name, one in parts.items()}
        wider: dict[str, Any] = {name: np.concatenate((parts[name], more[name])) for name in parts}
        return replace(self, **wider)


@dataclass(frozen=True, eq=False)
class Monitor(_GroupArrays):
    """Histograms with exponential forgetting, of a size that does not depend on the length of the stream."""

    half_life: float
    adjusted: Floats
    original: Floats
    weights: Floats
    squares: Floats
    change: Floats  # sum of absolute differences between returned and original scores, and of rows
    agreement: Floats  # sum of rows whose scores lie on the same side of the middle, and of rows

    _by_group = ("adjusted", "original", "weights", "squares")

    @classmethod
    def new(cls, n_groups: int, half_life: float) -> Monitor:
        """Return a monitor before the first batch."""
        histograms, sums = np.zeros((n_groups, MONITOR_BINS)), np.zeros(n_groups)
        return cls(half_life, histograms, histograms, sums, sums, np.zeros(2), np.zeros(2))

    def after(self, adjusted: Floats, original: Floats, groups: Groups) -> Monitor:
        """Return the monitor after a batch of scores of both models, scaled to [0, 1]."""
        sums = {name: getattr(self, name).copy() for name in self._by_group}
        for a, rows in enumerate(groups.rows):
            decay, size = 0.5 ** (len(rows) / self.half_life), len(rows)
            sums["adjusted"][a] = decay * sums["adjusted"][a] + _histogram(adjusted[rows], MONITOR_BINS)
            sums["original"][a] = decay * sums["original"][a] + _histogram(original[rows], MONITOR_BINS)
            sums["weights"][a] = decay * sums["weights"][a] + size
            sums["squares"][a] = decay**2 * sums["squares"][a] + size
        decay, size = 0.5 ** (len(adjusted) / self.half_life), len(adjusted)
        agreeing = float(np.count_nonzero((adjusted > 0.5) == (original > 0.5)))
        return replace(
            self,
            **sums,
            change=decay * self.change + np.array([np.abs(adjusted - original).sum(), size]),
            agreement=decay * self.agreement + np.array([agreeing, size]),
        )

    def shortened(self) -> Monitor:
        """Return a monitor in which the rows before an alarm have the weight of a few."""
        share = np.minimum(1.0, _ROWS_AFTER_ALARM / np.maximum(self.weights, 1.0))
        return replace(
            self,
            adjusted=share[:, None] * self.adjusted,
            original=share[:, None] * self.original,
            weights=share * self.weights,
            squares=share**2 * self.squares,
        )

    @property
    def sizes(self) -> Floats:
        """Effective sample size of each group's histogram."""
        return np.divide(self.weights**2, self.squares, out=np.zeros_like(self.weights), where=self.squares > 0)

    def distances(self, target: Floats | None, *, original: bool = False) -> Floats:
        """Return the distance of each group to the target."""
        cdf = _cdf(self.original if original else self.adjusted)
        distances, seen = np.full(len(cdf), np.nan), self.weights > 0
        if seen.any():
            distances[seen] = _distances_to_target(cdf[None, seen], target)[0]
        return distances

    def disparity(self, *, original: bool = False) -> float:
        """Return the mean distance between two of the groups that were seen; 0 for fewer than two."""
        return float(_mean_over_pairs(_cdf(self.original if original else self.adjusted)[None, self.weights > 0])[0])

    def noise_floor(self) -> float:
        """Return the expected disparity of groups of these sizes that all have the same distribution."""
        seen = self.weights > 0
        common = _cdf(self.adjusted[seen].sum(axis=0, keepdims=True))[0]
        step = np.minimum((common * _N_STEPS).round().astype(np.int64), _N_STEPS)
        errors = _brownian_bridges(int(seen.sum()))[:, :, step] / np.sqrt(self.sizes[seen])[None, :, None]
        return float(_mean_over_pairs(errors).mean())

    def shares(self, n_bins: int) -> Floats:
        """Return the share of each group's scores in ``n_bins`` wider bins."""
        wide = self.adjusted.reshape(len(self.adjusted), n_bins, MONITOR_BINS // n_bins).sum(axis=2)
        total = wide.sum(axis=1, keepdims=True)
        return np.divide(wide, total, out=np.zeros_like(wide), where=total > 0)


def _bins_of(scores: Floats, n_bins: int) -> Ints:
    return np.minimum((scores * n_bins).astype(np.int64), n_bins - 1)


def _histogram(scores: Floats, n_bins: int) -> Floats:
    return np.bincount(_bins_of(scores, n_bins), minlength=n_bins).astype(np.float64)


def _cdf(masses: Floats) -> Floats:
    """Return the distribution functions at the bin edges; 0 everywhere for an empty histogram."""
    total = np.concatenate((np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)), axis=1)
    return np.divide(total, total[:, -1:], out=np.zeros_like(total), where=total[:, -1:] > 0)


def _distances_to_target(cdf: Floats, target: Floats | None) -> Floats:
    """Return the areas between distribution functions (sets, groups, edges) and the target, or their median."""
    if target is None:
        center = np.mean if cdf.shape[1] <= 2 else np.median  # equal for two groups, and faster
        target = center(cdf, axis=1, keepdims=True)
    return np.asarray(np.abs(cdf - target).sum(axis=2) / MONITOR_BINS)


def _mean_over_pairs(cdf: Floats) -> Floats:
    r"""Return the mean area between two of the distribution functions (sets, groups, edges) of each set.

    With :math:`F_{(1)} \le \dots \le F_{(G)}` sorted at each edge, the sum over pairs is
    :math:`\sum_k (2k - G - 1) F_{(k)}`.
    """
    n_groups = cdf.shape[1]
    coefficients = 2.0 * np.arange(n_groups) - n_groups + 1.0
    total = np.einsum("k,ske->s", coefficients, np.sort(cdf, axis=1)) / MONITOR_BINS
    return np.asarray(total / max(n_groups * (n_groups - 1) // 2, 1))


def weighted_mean(sums: Floats) -> float:
    """Return a mean from the sum of values and that of their weights; 0 before the first row."""
    return float(sums[0] / sums[1]) if sums[1] > 0 else 0.0


@lru_cache(maxsize=4)
def _brownian_bridges(n_groups: int) -> Floats:
    """Return Brownian bridges of shape (n_sets, n_groups, 257), drawn with a fixed seed; fewer sets of many groups."""
    n_sets = min(_N_SETS, max(1, _MAX_BRIDGES // max(n_groups, 1)))
    steps = np.random.default_rng(0).normal(size=(n_sets, n_groups, _N_STEPS)) / np.sqrt(_N_STEPS)
    walk = np.concatenate((np.zeros((n_sets, n_groups, 1)), np.cumsum(steps, axis=2)), axis=2)
    return walk - np.linspace(0.0, 1.0, _N_STEPS + 1) * walk[:, :, -1:]


# Drift alarm with a bounded rate of false alarms.

#: Bins in which scores are ranked; scores of the same bin are ties.
ALARM_BINS = 128

_FREQUENCIES = np.repeat([1.0, 2.0, 3.0], 4)
_STAKES = np.tile([0.4, -0.4, 0.8, -0.8], 3)
_CHUNK = 4096  # rows that are ranked at once
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class DriftAlarm(_GroupArrays):
    """State of the alarm between two batches."""

    rate: float
    counts: Floats
    capitals: Floats
    drawn: Ints

    _by_group = ("counts", "capitals", "drawn")

    @classmethod
    def new(cls, n_groups: int, rate: float) -> DriftAlarm:
        """Return an alarm before the first batch."""
        capitals = np.zeros((n_groups, len(_FREQUENCIES)))
        return cls(rate, np.zeros((n_groups, ALARM_BINS)), capitals, np.zeros(n_groups, dtype=np.int64))

    @property
    def evidence(self) -> float:
        """Mean capital, as a share of what raises the alarm."""
        return float(np.exp(self.capitals).mean() * self.rate) if self.capitals.size else 0.0

    def after(self, scores: Floats, groups: Groups) -> tuple[DriftAlarm, bool]:
        """Return the alarm after a batch of scores in [0, 1], and whether the batch raised it."""
        counts, capitals, drawn = self.counts.copy(), self.capitals.copy(), self.drawn.copy()
        for a, rows in enumerate(groups.rows):
            if not len(rows):
                continue
            gains = np.zeros(len(_FREQUENCIES))
            for start in range(0, len(rows), _CHUNK):
                bins = _bins_of(scores[rows[start : start + _CHUNK]], ALARM_BINS)
                ranks = _ranks(bins, counts[a], uniform_at(a, int(drawn[a]), len(bins)))
                gains += np.log1p(_STAKES * np.cos(np.pi * ranks[:, None] * _FREQUENCIES)).sum(axis=0)
                counts[a] += np.bincount(bins, minlength=ALARM_BINS)
                drawn[a] += len(bins)
            capitals[a] = np.maximum(capitals[a], 0.0) + gains
        after = replace(self, counts=counts, capitals=capitals, drawn=drawn)
        if after.evidence < 1.0:
            return after, False
        return replace(after, counts=np.zeros_like(counts), capitals=np.zeros_like(capitals)), True


def uniform_at(stream: int, start: int, size: int) -> Floats:
    """Return random numbers in [0, 1) as a function of stream and position: SplitMix64 over a counter."""
    with np.errstate(over="ignore"):
        z = np.arange(start + 1, start + size + 1, dtype=np.uint64) + (np.uint64(stream) << np.uint64(40))
        z = z * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _ranks(bins: Ints, counts: Floats, uniform: Floats) -> Floats:
    """Return the rank of each row among the counts and the rows before it, as a share, with ties broken at random."""
    index = np.arange(len(bins))
    seen = np.zeros((len(bins), ALARM_BINS))
    seen[index, bins] = 1.0
    before = np.cumsum(seen, axis=0) - seen + counts
    below = np.cumsum(before, axis=1)
    ties = before[index, bins]
    return (below[index, bins] - ties + uniform * (ties + 1.0)) / (below[:, -1] + 1.0)
