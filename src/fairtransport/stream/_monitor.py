r"""What is watched: each group's scores in histograms that forget, the disparity in them, and what adjusting changed.

**Disparity** is the sum over groups of the Wasserstein-1 distance to the target: the model's, if it has a fixed one;
otherwise the barycenter of the groups, as in `fairtransport.metrics.wasserstein_disparity`. For two groups that is the
distance between them.

**Noise floor**: what it would read if all groups had one distribution. With n rows remembered, the error of
a distribution function F is a Brownian bridge, :math:`B(F) / \sqrt n`; the floor is the mean over 64 fixed sets
of bridges, so it costs little, needs no chance, and knows the sizes and the number of the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["MONITOR_BINS", "Monitor"]

#: Bins of a histogram; distances are off by at most 1 / 200 of the range.
MONITOR_BINS = 200

_AFTER_ALARM = 50.0  # rows that a group's histogram is worth after an alarm
_BRIDGES, _STEPS = 64, 256


@dataclass(frozen=True, eq=False)
class Monitor:
    """Histograms that forget; `after` gives the next state. Its size does not depend on the length of the stream.

    Attributes
    ----------
    half_life : float
        After so many rows of its group a row counts half.
    given, untouched : ndarray of shape (n_groups, 200)
        Scores as they were given out, and as the original model would have given them.
    weights, squares : ndarray of shape (n_groups,)
        Sums of the rows' weights and of their squares.
    change, agreement : ndarray of shape (2,)
        Sum over rows of what adjusting changed (distance of the two scores; whether both are on one side of the
        middle), and of the weights.
    """

    half_life: float
    given: NDArray[np.float64]
    untouched: NDArray[np.float64]
    weights: NDArray[np.float64]
    squares: NDArray[np.float64]
    change: NDArray[np.float64]
    agreement: NDArray[np.float64]

    @classmethod
    def new(cls, n_groups: int, half_life: float) -> Monitor:
        """Return a monitor that has seen nothing."""
        wide, each = np.zeros((n_groups, MONITOR_BINS)), np.zeros(n_groups)
        return cls(half_life, wide, wide, each, each, np.zeros(2), np.zeros(2))

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return what a checkpoint holds beside the half-life."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "half_life"}

    def widened(self, n_groups: int) -> Monitor:
        """Make room for new groups."""
        more = Monitor.new(n_groups - len(self.weights), self.half_life)
        names = ("given", "untouched", "weights", "squares")
        wider: dict[str, Any] = {n: np.concatenate((getattr(self, n), getattr(more, n))) for n in names}
        return replace(self, **wider)

    def after(self, given: NDArray[np.float64], untouched: NDArray[np.float64], groups: Groups) -> Monitor:
        """Return the monitor after a batch: scores of both models, as shares of the range."""
        held, original = self.given.copy(), self.untouched.copy()
        weights, squares = self.weights.copy(), self.squares.copy()
        for a, rows in enumerate(groups.rows):
            if not len(rows):
                continue
            keep = 0.5 ** (len(rows) / self.half_life)
            held[a] = keep * held[a] + _counted(given[rows])
            original[a] = keep * original[a] + _counted(untouched[rows])
            weights[a] = keep * weights[a] + len(rows)
            squares[a] = keep**2 * squares[a] + len(rows)
        keep, size = 0.5 ** (len(given) / self.half_life), len(given)
        same = float(np.count_nonzero((given > 0.5) == (untouched > 0.5)))
        return replace(
            self,
            given=held,
            untouched=original,
            weights=weights,
            squares=squares,
            change=keep * self.change + np.array([np.abs(given - untouched).sum(), size]),
            agreement=keep * self.agreement + np.array([same, size]),
        )

    def shortened(self) -> Monitor:
        """Let what came before an alarm count no more than a few rows."""
        share = np.minimum(1.0, _AFTER_ALARM / np.maximum(self.weights, 1.0))
        return replace(
            self,
            given=share[:, None] * self.given,
            untouched=share[:, None] * self.untouched,
            weights=share * self.weights,
            squares=share**2 * self.squares,
        )

    # ---------------------------------------------------------------- reading

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Rows that each group's histogram is worth."""
        return np.divide(self.weights**2, self.squares, out=np.zeros_like(self.weights), where=self.squares > 0)

    @property
    def mean_change(self) -> float:
        """Mean distance between a score as given out and the original model's."""
        return _ratio(self.change)

    @property
    def mean_agreement(self) -> float:
        """Share of rows that both models put on the same side of the middle of the range."""
        return _ratio(self.agreement)

    def distances(self, target: NDArray[np.float64] | None, *, untouched: bool = False) -> NDArray[np.float64]:
        """Distance of each group to the target (its distribution function at the edges), NaN for an absent group."""
        cdf = _cdf(self.untouched if untouched else self.given)
        found, seen = np.full(len(cdf), np.nan), self.weights > 0
        if seen.any():
            found[seen] = _to_target(cdf[None, seen], target)[0]
        return found

    def noise_floor(self, target: NDArray[np.float64] | None) -> float:
        """Return what the disparity would read, in the mean, if groups were drawn from one distribution."""
        seen = self.weights > 0
        if not seen.any():
            return 0.0
        common = _cdf(self.given[seen].sum(axis=0, keepdims=True))[0] if target is None else target
        n_groups = int(seen.sum())
        place = np.minimum((common * _STEPS).round().astype(np.int64), _STEPS)
        errors = _bridges(n_groups)[:, :, place] / np.sqrt(self.sizes[seen])[None, :, None]
        around = None if target is None else np.zeros(MONITOR_BINS + 1)
        return float(_to_target(errors, around).sum(axis=1).mean())

    def shares(self, n_bins: int) -> NDArray[np.float64]:
        """Share of each group's scores in wider bins."""
        wide = self.given.reshape(len(self.given), n_bins, -1).sum(axis=2)
        total = wide.sum(axis=1, keepdims=True)
        return np.divide(wide, total, out=np.zeros_like(wide), where=total > 0)


def _counted(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    bins = np.minimum((scores * MONITOR_BINS).astype(np.int64), MONITOR_BINS - 1)
    return np.bincount(bins, minlength=MONITOR_BINS).astype(np.float64)


def _cdf(masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distribution functions at the 201 edges; 0 throughout for nobody."""
    total = np.concatenate((np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)), axis=1)
    return np.divide(total, total[:, -1:], out=np.zeros_like(total), where=total[:, -1:] > 0)


def _to_target(cdf: NDArray[np.float64], target: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Areas between distribution functions (sets, groups, edges) and the target, or their pointwise median."""
    if target is None:
        middle = np.mean if cdf.shape[1] <= 2 else np.median  # the same for two, and quicker
        target = middle(cdf, axis=1, keepdims=True)
    return np.asarray(np.abs(cdf - target).sum(axis=2) / MONITOR_BINS)


def _ratio(pair: NDArray[np.float64]) -> float:
    return float(pair[0] / pair[1]) if pair[1] > 0 else 0.0


@cache
def _bridges(n_groups: int) -> NDArray[np.float64]:
    """Draw Brownian bridges, always the same: shape (64, n_groups, 257)."""
    steps = np.random.default_rng(0).normal(size=(_BRIDGES, n_groups, _STEPS)) / np.sqrt(_STEPS)
    walk = np.concatenate((np.zeros((_BRIDGES, n_groups, 1)), np.cumsum(steps, axis=2)), axis=2)
    return walk - np.linspace(0.0, 1.0, _STEPS + 1) * walk[:, :, -1:]
