r"""A drift alarm that says how often it may be wrong.

Each group's scores by a model that does not change are watched. While the world stays as it is they are
exchangeable, so the rank of a new score among all before it, ties drawn by lot, is uniform on [0, 1] and independent of
what came before (a conformal p-value). Bets against that,

.. math:: b(p) = 1 + \varepsilon \cos(k \pi p), \qquad \int_0^1 b = 1,

multiply to a martingale :math:`e_t` of mean 1 whatever the distribution of the scores is. For every bet a capital is
kept, :math:`M_t = \max(M_{t-1}, 1) \, e_t`, and the alarm rings when the mean of all capitals reaches 1 / rate. Then
everything begins anew.

**The rate.** :math:`M_t \le R_t` with :math:`R_t = (R_{t-1} + 1) e_t`, and R grows by 1 a batch in the mean. An
alarm takes at least 1 / rate away, so in N batches no more than rate x N alarms are expected: for every N, every
distribution and every number of groups, without approximation. (Such sums are known as e-detectors.)

Why not one of river's detectors: ADWIN and Page-Hinkley watch a mean, and disparity is about whole distributions. KSWIN
compares distributions, but its tests overlap in time, so its ``alpha`` is no rate of alarms; and it keeps people's
scores, which a checkpoint must not hold. What is kept here are counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["ALARM_BINS", "DriftAlarm", "uniform_at"]

#: Bins that scores are ranked in; scores of one bin are ties.
ALARM_BINS = 128

_WAVES = np.repeat([1.0, 2.0, 3.0], 4)
_STAKES = np.tile([0.4, -0.4, 0.8, -0.8], 3)
_PIECE = 4096  # rows that are ranked at once
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class DriftAlarm:
    """What the alarm remembers; `after` gives the next state.

    Attributes
    ----------
    rate : float
        At most so many false alarms a batch are expected.
    counts : ndarray of shape (n_groups, 128)
        Scores since the last alarm: the reference.
    capitals : ndarray of shape (n_groups, 12)
        Logarithm of what each bet has won.
    drawn : ndarray of shape (n_groups,)
        Lots drawn so far; they are a function of the group and this number.
    """

    rate: float
    counts: NDArray[np.float64]
    capitals: NDArray[np.float64]
    drawn: NDArray[np.int64]

    @classmethod
    def new(cls, n_groups: int, rate: float) -> DriftAlarm:
        """Return an alarm that has seen nothing."""
        return cls(
            rate,
            np.zeros((n_groups, ALARM_BINS)),
            np.zeros((n_groups, len(_WAVES))),
            np.zeros(n_groups, dtype=np.int64),
        )

    @property
    def evidence(self) -> float:
        """Mean capital, as a share of what rings the alarm."""
        return float(np.exp(self.capitals).mean() * self.rate)

    def widened(self, n_groups: int) -> DriftAlarm:
        """Make room for new groups."""
        more = DriftAlarm.new(n_groups - len(self.counts), self.rate)
        parts: dict[str, Any] = {
            name: np.concatenate((held, getattr(more, name))) for name, held in self.arrays().items()
        }
        return replace(self, **parts)

    def after(self, scores: NDArray[np.float64], groups: Groups) -> tuple[DriftAlarm, bool]:
        """Return the alarm after a batch of scores within [0, 1], and whether it rings.

        Examples
        --------
        >>> from fairtransport import make_groups
        >>> rng, alarm = np.random.default_rng(0), DriftAlarm.new(1, rate=0.001)
        >>> everyone = make_groups(["a"] * 100)
        >>> quiet = [False] * 10
        >>> for batch in range(10):
        ...     alarm, quiet[batch] = alarm.after(rng.uniform(0.0, 0.5, 100), everyone)
        >>> any(quiet), alarm.after(rng.uniform(0.3, 0.8, 100), everyone)[1]
        (False, True)
        """
        counts, capitals, drawn = self.counts.copy(), self.capitals.copy(), self.drawn.copy()
        for a, rows in enumerate(groups.rows):
            if not len(rows):
                continue
            won = np.zeros(len(_WAVES))
            for begin in range(0, len(rows), _PIECE):
                bins = _bins_of(scores[rows[begin : begin + _PIECE]])
                ranks = _ranks(bins, counts[a], uniform_at(a, int(drawn[a]), len(bins)))
                won += np.log1p(_STAKES * np.cos(np.pi * ranks[:, None] * _WAVES)).sum(axis=0)
                counts[a] += np.bincount(bins, minlength=ALARM_BINS)
                drawn[a] += len(bins)
            capitals[a] = np.maximum(capitals[a], 0.0) + won
        after = replace(self, counts=counts, capitals=capitals, drawn=drawn)
        if after.evidence < 1.0:
            return after, False
        return replace(after, counts=np.zeros_like(counts), capitals=np.zeros_like(capitals)), True

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a checkpoint holds beside the rate."""
        return {"counts": self.counts, "capitals": self.capitals, "drawn": self.drawn}


def uniform_at(stream: int, start: int, size: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) as a function of stream and position: SplitMix64 over a counter.

    Examples
    --------
    >>> bool((uniform_at(1, 0, 5)[2:] == uniform_at(1, 2, 3)).all())
    True
    """
    with np.errstate(over="ignore"):
        z = np.arange(start + 1, start + size + 1, dtype=np.uint64) + (np.uint64(stream) << np.uint64(40))
        z = z * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _bins_of(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((scores * ALARM_BINS).astype(np.int64), ALARM_BINS - 1)


def _ranks(bins: NDArray[np.int64], counts: NDArray[np.float64], lots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank of each row among the counts and the rows before it, ties drawn by lot, as a share."""
    places = np.arange(len(bins))
    seen = np.zeros((len(bins), ALARM_BINS))
    seen[places, bins] = 1.0
    before = np.cumsum(seen, axis=0) - seen + counts
    below = np.cumsum(before, axis=1)
    ties = before[places, bins]
    return (below[places, bins] - ties + lots * (ties + 1.0)) / (below[:, -1] + 1.0)
