"""The grid of nodes on which scores are binned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import OTHER_RANGES, check_count, check_vector

DEFAULT_BINS = 1 << 14
MOST_BINS = 1 << 20

#: Tolerance, in bin widths, for scores slightly above a node: 0.07 * 100 is slightly above 7 in floating point.
SLACK = 1e-9


@dataclass(frozen=True)
class Grid:
    r"""Nodes over a range of scores; a score is counted at the first node that is not below it.

    Notes
    -----
    Unless ``positions`` are given, node k lies at low + k (high - low) / n_bins and represents the scores in
    :math:`(\text{node}_{k-1}, \text{node}_k]`; node 0 represents the scores equal to ``low``. The index of the node of
    a score s is

    .. math:: \lceil (s - low) \cdot scale - slack \rceil, \qquad scale = n_{bins} / (high - low),

    which any table engine can compute; a slack of 1e-9 bins keeps scores on their node when the product is rounded. So
    distribution functions are exact at every node, quantiles and means are at most one bin width too high, never too
    low, and the error of a Wasserstein-1 distance is at most one bin width. Everything is exact for scores on nodes.

    Scores without known bounds, some of which may lie far from all others, are counted at nodes of their own: the
    scores that occur, or some of them. A unit is the range in either case: `to_unit` is linear.
    """

    low: float = 0.0
    high: float = 1.0
    n_bins: int = DEFAULT_BINS
    positions: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        low, high = _finite(self.low), _finite(self.high)
        bins = check_count(self.n_bins, name="n_bins")
        if bins > MOST_BINS:
            raise ValueError(f"n_bins must be at most {MOST_BINS}; got {bins}.")
        if not low < high or not math.isfinite(high - low):
            raise ValueError(f"range must be two numbers, the lower one first; got ({low:g}, {high:g}).")
        if self.positions and (
            len(self.positions) != bins + 1
            or (self.positions[0], self.positions[-1]) != (low, high)
            or not np.all(np.diff(self.positions) > 0)
        ):
            raise ValueError(f"positions must be {bins + 1} ascending numbers from low to high.")
        for name, value in (("low", low), ("high", high), ("n_bins", bins)):
            object.__setattr__(self, name, value)

    @classmethod
    def at(cls, nodes: ArrayLike) -> Self:
        """Return the grid with these nodes, at least two ascending numbers."""
        array = np.asarray(nodes, dtype=np.float64)
        if array.ndim != 1 or array.size < 2 or not np.isfinite(array).all() or not (np.diff(array) > 0.0).all():
            raise ValueError("nodes must be at least two finite numbers that ascend.")
        values = array.tolist()
        return cls(values[0], values[-1], len(values) - 1, tuple(values))

    @classmethod
    def covering(cls, values: ArrayLike, n_bins: int = DEFAULT_BINS, *, extra: ArrayLike = ()) -> Self:
        """Return a grid whose nodes are values that occur: all, or extremes and quantiles of many."""
        ascending = np.sort(np.asarray(values, dtype=np.float64))
        distinct = ascending[np.append(True, ascending[1:] != ascending[:-1])]
        if distinct.size > n_bins + 1:
            n_ends = (n_bins + 1) // 8
            inner = np.linspace(0, ascending.size - 1, n_bins + 1 - 2 * n_ends).round().astype(np.int64)
            distinct = np.concatenate([distinct[:n_ends], ascending[inner], distinct[-n_ends:]])
        further = np.asarray(extra, dtype=np.float64)
        inside = further[(further > ascending[0]) & (further < ascending[-1])]
        nodes = np.union1d(distinct, inside)
        if nodes.size == 1:
            step = max(abs(float(nodes[0])), 1.0)
            nodes = np.array([nodes[0] - step, nodes[0]])
        return cls.at(nodes)

    @classmethod
    def over(cls, score_range: Sequence[float] | None = None, n_bins: int = DEFAULT_BINS) -> Self:
        """Return the grid of the public parameters ``range=`` and ``n_bins=``; [0, 1] by default."""
        if score_range is None:
            return cls(n_bins=n_bins)
        try:
            low, high = score_range
        except (TypeError, ValueError):
            raise ValueError("range must be two numbers, such as (300, 850).") from None
        return cls(low, high, n_bins)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.n_bins + 1

    @property
    def width(self) -> float:
        """Mean distance between consecutive nodes, in units of the score."""
        return (self.high - self.low) / self.n_bins

    @property
    def scale(self) -> float:
        """Mean number of bins per unit of the score."""
        return self.n_bins / (self.high - self.low)

    @property
    def resolution(self) -> float:
        """Largest error of a distance, as a share of the range: 1 / n_bins."""
        return 1.0 / self.n_bins

    @cached_property
    def nodes(self) -> Floats:
        """Positions of the nodes, in units of the score."""
        if self.positions:
            return np.array(self.positions)
        return self.low + (self.high - self.low) * (np.arange(self.n_nodes) / self.n_bins)

    @cached_property
    def unit_nodes(self) -> Floats:
        """Positions of the nodes, as shares of the range."""
        if self.positions:
            return self.to_unit(self.nodes)
        return np.arange(self.n_nodes) / self.n_bins

    @property
    def unit_widths(self) -> Floats | float:
        """Distances between consecutive nodes, as shares of the range; one number where they are equal."""
        return np.diff(self.unit_nodes) if self.positions else self.resolution

    def place_checked(self, values: Floats) -> Ints:
        """Return the index of the node of each score, validated by `check`."""
        if self.positions:
            return np.searchsorted(self.nodes, values).astype(np.int64)
        return np.ceil((values - self.low) * self.scale - SLACK).astype(np.int64)

    def check(self, scores: ArrayLike, *, name: str = "scores") -> Floats:
        """Return scores as a finite vector; raise ValueError for scores outside the range."""
        values = check_vector(scores, name=name)
        outside = int(np.count_nonzero((values < self.low) | (values > self.high)))
        if outside:
            raise ValueError(
                f"{name} has {outside} of {values.size} values outside [{self.low:g}, {self.high:g}]. {OTHER_RANGES}"
            )
        return values

    def last_node_below(self, thresholds: ArrayLike) -> Ints:
        """Return the index of the last node that is not above each threshold; scores up to that node are not above."""
        cuts = np.asarray(thresholds, dtype=np.float64)
        if self.positions:
            return np.maximum(np.searchsorted(self.nodes, cuts, side="right") - 1, 0).astype(np.int64)
        return np.floor((cuts - self.low) * self.scale + SLACK).astype(np.int64)

    def to_unit(self, values: ArrayLike) -> Floats:
        """Return values as shares of the range, 0 at ``low`` and 1 at ``high``."""
        array = np.asarray(values, dtype=np.float64)
        if (self.low, self.high) == (0.0, 1.0):
            return array
        return np.clip((array - self.low) / (self.high - self.low), 0.0, 1.0)

    def from_unit(self, shares: ArrayLike) -> Floats:
        """Return shares of the range as scores, the inverse of `to_unit`."""
        array = np.asarray(shares, dtype=np.float64)
        if (self.low, self.high) == (0.0, 1.0):
            return array
        # The highest score itself, and not one that rounding puts above it.
        return np.where(array == 1.0, self.high, self.low + array * (self.high - self.low))


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"range must be two numbers; got a {type(value).__name__}.")
    if not math.isfinite(value):
        raise ValueError("range must be two finite numbers.")
    return float(value)
