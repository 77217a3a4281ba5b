"""Bins for scores without known bounds: found from quantiles of the column, counted on the engine.

A range of equal bins would put all rows into one where a single score lies far from all others. Between the quantiles
of the column, bins are equally spaced. The node of a bin is the largest score in it, so distribution functions are
exact at the nodes, and scores with few different values, such as deciles, are counted exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport.tables._strata_cuts import column_quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ScoreBins", "find_score_bins"]

_N_RANGES = 24
_TAILS = (1 / 64, 1 / 256, 1 / 1024, 1 / 8192)  # shares of the rows beyond further quantiles, on both sides
_BELOW_ONE = 1 - 1e-12  # the highest score of a range is in its last bin


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Equal bins between ascending points.

    Parameters
    ----------
    points : array of shape (n_ranges + 1,)
        From the lowest to the highest score; one point where all scores are equal.
    bins_each : int
        Number of bins between two points.
    """

    points: NDArray[np.float64]
    bins_each: int

    @property
    def low(self) -> float:
        """The lowest score."""
        return float(self.points[0])

    @property
    def high(self) -> float:
        """The highest score."""
        return float(self.points[-1])

    def bin_of(self, score: nw.Expr) -> nw.Expr:
        """Return the number of the bin of scores within the range; that of other scores is arbitrary."""
        number = nw.lit(0, nw.Int64)
        for index, (low, high) in enumerate(pairwise(self.points.tolist())):
            scale = self.bins_each / (high - low) * _BELOW_ONE
            within = nw.when((score >= low) & (score <= high)).then(score).otherwise(nw.lit(low))
            place = ((within - low) * scale).floor().cast(nw.Int64) + (index * self.bins_each + 1)
            number = nw.when(score > low).then(place).otherwise(number)
        return number


def find_score_bins(
    table: nw.LazyFrame[Any], key: str, n_bins: int, *, extra: Sequence[float] = ()
) -> ScoreBins | None:
    """Find bins for the finite scores of a column; None where it has none.

    Parameters
    ----------
    table : LazyFrame
    key : str
        Name of the column.
    n_bins : int
        Largest number of bins, about.
    extra : sequence of float
        Thresholds at which no bin may have scores on both sides.

    Returns
    -------
    ScoreBins or None
    """
    tails = np.array(_TAILS)
    levels = np.unique(np.concatenate([np.arange(1, _N_RANGES) / _N_RANGES, tails, 1 - tails]))
    found = column_quantiles(table, key, levels)
    if found is None:
        return None
    inside = [cut for cut in extra if found.low < cut < found.high]
    points = np.unique([found.low, *found.points.tolist(), *inside, found.high])
    return ScoreBins(points, max(1, n_bins // max(1, points.size - 1)))
