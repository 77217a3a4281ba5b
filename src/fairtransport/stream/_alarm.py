r"""Drift alarm with a bounded rate of false alarms.

The alarm monitors each group's scores by a model that does not change. As long as their distribution does not change,
scores are exchangeable, so the rank of a new score among all before it, with ties broken at random, is uniform on
[0, 1] and independent of earlier ranks (a conformal p-value). The bets

.. math:: b(p) = 1 + \varepsilon \cos(k \pi p), \qquad \int_0^1 b = 1,

multiply to a martingale :math:`e_t` of mean 1 whatever the distribution of the scores. Each bet has a capital
:math:`M_t = \max(M_{t-1}, 1) \, e_t`, and the alarm is raised when the mean of all capitals reaches 1 / rate. Then the
reference and the capitals are reset.

**Rate of false alarms.** :math:`M_t \le R_t` with :math:`R_t = (R_{t-1} + 1) e_t`, and R grows by 1 per batch in
expectation. An alarm resets at least 1 / rate, so at most rate x N alarms are expected in N batches: for every N, every
distribution and every number of groups, without approximation. Such sums are known as e-detectors [1]_.

The detectors of river were not suitable: ADWIN and Page-Hinkley monitor a mean, whereas disparity concerns whole
distributions. KSWIN compares distributions, but its tests overlap in time, so that its ``alpha`` is not a rate of
alarms, and it stores scores of individuals, which a checkpoint must not contain. Here only counts are stored.

References
----------
.. [1] J. Shin, A. Ramdas and A. Rinaldo, E-detectors: a nonparametric framework for sequential change detection,
   arXiv:2203.03532, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["ALARM_BINS", "DriftAlarm", "uniform_at"]

#: Bins in which scores are ranked; scores of the same bin are ties.
ALARM_BINS = 128

_FREQUENCIES = np.repeat([1.0, 2.0, 3.0], 4)
_STAKES = np.tile([0.4, -0.4, 0.8, -0.8], 3)
_CHUNK = 4096  # rows that are ranked at once
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class DriftAlarm:
    """State of the alarm between two batches.

    Attributes
    ----------
    rate : float
        Largest expected number of false alarms per batch.
    counts : ndarray of shape (n_groups, 128)
        Histograms of the scores since the last alarm, the reference.
    capitals : ndarray of shape (n_groups, 12)
        Logarithm of the capital of each bet.
    drawn : ndarray of shape (n_groups,)
        Number of random numbers used so far; each is a function of the group and its index.
    """

    rate: float
    counts: NDArray[np.float64]
    capitals: NDArray[np.float64]
    drawn: NDArray[np.int64]

    @classmethod
    def new(cls, n_groups: int, rate: float) -> DriftAlarm:
        """Return an alarm before the first batch."""
        return cls(
            rate,
            np.zeros((n_groups, ALARM_BINS)),
            np.zeros((n_groups, len(_FREQUENCIES))),
            np.zeros(n_groups, dtype=np.int64),
        )

    @property
    def evidence(self) -> float:
        """Mean capital, as a share of what raises the alarm."""
        return float(np.exp(self.capitals).mean() * self.rate) if self.capitals.size else 0.0

    def widened(self, n_groups: int) -> DriftAlarm:
        """Return an alarm with empty histograms for groups that are new."""
        new = DriftAlarm.new(n_groups - len(self.counts), self.rate)
        parts: dict[str, Any] = {
            name: np.concatenate((array, getattr(new, name))) for name, array in self.arrays().items()
        }
        return replace(self, **parts)

    def after(self, scores: NDArray[np.float64], groups: Groups) -> tuple[DriftAlarm, bool]:
        """Return the alarm after a batch of scores in [0, 1], and whether the batch raised it.

        Examples
        --------
        >>> from fairtransport import make_groups
        >>> rng, alarm = np.random.default_rng(0), DriftAlarm.new(1, rate=0.001)
        >>> everyone = make_groups(["a"] * 100)
        >>> raised = [False] * 10
        >>> for batch in range(10):
        ...     alarm, raised[batch] = alarm.after(rng.uniform(0.0, 0.5, 100), everyone)
        >>> any(raised), alarm.after(rng.uniform(0.3, 0.8, 100), everyone)[1]
        (False, True)
        """
        counts, capitals, drawn = self.counts.copy(), self.capitals.copy(), self.drawn.copy()
        for a, rows in enumerate(groups.rows):
            if not len(rows):
                continue
            gains = np.zeros(len(_FREQUENCIES))
            for start in range(0, len(rows), _CHUNK):
                bins = _bins_of(scores[rows[start : start + _CHUNK]])
                ranks = _ranks(bins, counts[a], uniform_at(a, int(drawn[a]), len(bins)))
                gains += np.log1p(_STAKES * np.cos(np.pi * ranks[:, None] * _FREQUENCIES)).sum(axis=0)
                counts[a] += np.bincount(bins, minlength=ALARM_BINS)
                drawn[a] += len(bins)
            capitals[a] = np.maximum(capitals[a], 0.0) + gains
        after = replace(self, counts=counts, capitals=capitals, drawn=drawn)
        if after.evidence < 1.0:
            return after, False
        return replace(after, counts=np.zeros_like(counts), capitals=np.zeros_like(capitals)), True

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a checkpoint stores."""
        return {"counts": self.counts, "capitals": self.capitals, "drawn": self.drawn}


def uniform_at(stream: int, start: int, size: int) -> NDArray[np.float64]:
    """Return random numbers in [0, 1) as a function of stream and position: SplitMix64 over a counter.

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


def _ranks(bins: NDArray[np.int64], counts: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each row among the counts and the rows before it, as a share, with ties broken at random."""
    index = np.arange(len(bins))
    seen = np.zeros((len(bins), ALARM_BINS))
    seen[index, bins] = 1.0
    before = np.cumsum(seen, axis=0) - seen + counts
    below = np.cumsum(before, axis=1)
    ties = before[index, bins]
    return (below[index, bins] - ties + uniform * (ties + 1.0)) / (below[:, -1] + 1.0)
