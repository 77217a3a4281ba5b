"""The grid of nodes on which scores are binned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import OTHER_RANGES, check_count, check_vector

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

__all__ = ["DEFAULT_BINS", "MOST_BINS", "SLACK", "Grid"]

DEFAULT_BINS = 1 << 14
MOST_BINS = 1 << 20

#: Tolerance, in bin widths, for scores slightly above a node: 0.07 * 100 is slightly above 7 in floating point.
SLACK = 1e-9


@dataclass(frozen=True)
class Grid:
    r"""Equally spaced nodes over a range of scores; a score is counted at the first node that is not below it.

    Parameters
    ----------
    low, high : float, default 0 and 1
        The range of the scores.
    n_bins : int, default 16384
        Number of bins, at most 2**20; there are ``n_bins + 1`` nodes.

    Notes
    -----
    Node k lies at low + k (high - low) / n_bins and represents the scores in
    :math:`(\text{node}_{k-1}, \text{node}_k]`; node 0 represents the scores equal to ``low``. The index of the node of
    a score s is

    .. math:: \lceil (s - low) \cdot scale - slack \rceil, \qquad scale = n_{bins} / (high - low),

    which any table engine can compute; with the default range and bins the product is exact in floating point. Hence

    - distribution functions are exact at every node, and so is the share of scores above a threshold on a node;
    - quantiles and means are at most one bin width too high, never too low;
    - the error of a Wasserstein-1 distance is at most one bin width, since every score moves up by less than that;
    - everything is exact for scores on nodes.

    The slack of 1e-9 bins keeps scores on their node when the product is rounded.

    Examples
    --------
    >>> grid = Grid(n_bins=4)
    >>> grid.nodes
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> grid.places([0.0, 0.25, 0.26, 1.0])
    array([0, 1, 2, 4])
    """

    low: float = 0.0
    high: float = 1.0
    n_bins: int = DEFAULT_BINS

    def __post_init__(self) -> None:
        low, high = _finite(self.low), _finite(self.high)
        bins = check_count(self.n_bins, name="n_bins")
        if bins > MOST_BINS:
            raise ValueError(f"n_bins must be at most {MOST_BINS}; got {bins}.")
        if not low < high or not math.isfinite(high - low):
            raise ValueError(f"range must be two numbers, the lower one first; got ({low:g}, {high:g}).")
        for name, value in (("low", low), ("high", high), ("n_bins", bins)):
            object.__setattr__(self, name, value)

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
        """Distance between consecutive nodes, in units of the score."""
        return (self.high - self.low) / self.n_bins

    @property
    def scale(self) -> float:
        """Number of bins per unit of the score."""
        return self.n_bins / (self.high - self.low)

    @property
    def resolution(self) -> float:
        """Largest error of a distance, as a share of the range: 1 / n_bins."""
        return 1.0 / self.n_bins

    @property
    def nodes(self) -> NDArray[np.float64]:
        """Positions of the nodes, in units of the score."""
        return self.low + (self.high - self.low) * (np.arange(self.n_nodes) / self.n_bins)

    def places(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Return the index of the node of each score; raise ValueError for scores outside the range.

        Examples
        --------
        >>> Grid(300, 850, 550).places([300, 301, 850])
        array([  0,   1, 550])
        """
        return self.place_checked(self.check(scores))

    def place_checked(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return what `places` returns, for scores already validated by `check`."""
        return np.ceil((values - self.low) * self.scale - SLACK).astype(np.int64)

    def check(self, scores: ArrayLike, *, name: str = "scores") -> NDArray[np.float64]:
        """Return scores as a finite vector; raise ValueError for scores outside the range."""
        values = check_vector(scores, name=name)
        outside = int(np.count_nonzero((values < self.low) | (values > self.high)))
        if outside:
            raise ValueError(
                f"{name} has {outside} of {values.size} values outside [{self.low:g}, {self.high:g}]. {OTHER_RANGES}"
            )
        return values

    def to_unit(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return values as shares of the range, 0 at ``low`` and 1 at ``high``."""
        array = np.asarray(values, dtype=np.float64)
        if (self.low, self.high) == (0.0, 1.0):
            return array
        return np.clip((array - self.low) / (self.high - self.low), 0.0, 1.0)

    def from_unit(self, shares: ArrayLike) -> NDArray[np.float64]:
        """Return shares of the range as scores, the inverse of `to_unit`."""
        array = np.asarray(shares, dtype=np.float64)
        return array if (self.low, self.high) == (0.0, 1.0) else self.low + array * (self.high - self.low)


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"range must be two numbers; got a {type(value).__name__}.")
    if not math.isfinite(value):
        raise ValueError("range must be two finite numbers.")
    return float(value)
