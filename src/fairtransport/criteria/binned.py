"""A penalty on binned scores: its value, and its derivatives for every cell and group.

The derivative of a penalty with respect to a row's score depends on the row's group and score only. On binned scores it
is therefore a table, and a learner that uses all rows at once needs to count them and to look up each one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairtransport._arrays import Floats
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.penalty import TransportPenalty
from fairtransport.transport.line import histogram_slices, quantiles

_MIN_DISTANCE = 0.02  # scores closer than this have the curvature of scores this far apart


@dataclass(frozen=True, eq=False)
class CellTables:
    """A penalty on binned scores."""

    value: float
    slopes: Floats
    curvatures: Floats


class BinnedPenalty:
    r"""A penalty of groups whose scores are counted at the edges of equal cells of [0, 1], or of another interval.

    Notes
    -----
    For a score at distance g from the one it is coupled with, :math:`|g'| \le g'^2 / 2|g| + |g| / 2` for any new
    distance :math:`g'`, with equality at :math:`g' = g`. So a transport cost lies below a parabola of curvature
    :math:`1/|g|` that touches it. The sum of these over a group's pairs is ``curvatures``, with
    :math:`g = s - F_b^{-1}(F_a(s))`, at least 0.02.
    """

    def __init__(self, penalty: TransportPenalty, comparisons: Comparisons, n_groups: int, n_cells: int) -> None:
        self.penalty, self.comparisons, self.n_groups, self.n_cells = penalty, comparisons, n_groups, n_cells
        # Mass at an edge is spread evenly around it, which preserves its mean.
        self._borders = (np.arange(n_cells + 2) - 0.5) / n_cells

    def _counted(self, target: Floats) -> Floats:
        at = np.clip(target, 0.0, 1.0) * self.n_cells
        low = np.minimum(at.astype(np.int64), self.n_cells - 1)
        lower, upper = (
            np.bincount(low + k, share, self.n_cells + 1) for k, share in enumerate((1.0 - at + low, at - low))
        )
        return np.asarray(lower + upper, dtype=np.float64)

    def read(self, masses: Floats, interval: tuple[float, float] = (0.0, 1.0)) -> CellTables:
        """Return the value and the derivatives."""
        names, strata = self.comparisons.names, self.comparisons.strata or (0,) * len(self.comparisons.cells)
        rows = [self._rows_of(*cell) for cell in zip(names, strata, strict=True)]
        table = np.array([masses[members].sum(axis=0) for members in rows])
        low, width = interval[0], interval[1] - interval[0]
        slices = histogram_slices(table, low + width * self._borders, self.penalty.n_slices or self.n_cells)
        terms = self.penalty.slice_terms(slices, table.sum(axis=1), self.comparisons)
        slopes, curvatures = np.zeros((2, len(masses), self.n_cells))
        inside = [_between_edges(*one) for one in zip(terms.slopes, table, strict=True)]
        fixed = [self._counted((target - low) / width) for target in self.comparisons.targets]
        cell_curvatures = self._curvatures(np.vstack((table, *fixed)), width)
        for members, slope, curvature in zip(rows, inside, cell_curvatures, strict=True):
            # Convert a row's share of several groups to its share of its own.
            share = (masses[members].sum(axis=1) / masses[members].sum())[:, None]
            slopes[members] += share * slope
            curvatures[members] += share * curvature
        return CellTables(terms.value, slopes, curvatures)

    def _rows_of(self, group: int | None, stratum: int) -> slice:
        """Return where the masses of a group in a stratum are, or of all its groups."""
        first = stratum * self.n_groups
        return slice(first, first + self.n_groups) if group is None else slice(first + group, first + group + 1)

    def _curvatures(self, table: Floats, width: float) -> Floats:
        unit = self.penalty.unit  # of standardized scores, whose distances are in these
        width /= unit
        shares = table / table.sum(axis=1, keepdims=True)
        middles, levels = self._borders[1:-1], np.cumsum(shares, axis=1)[:, :-1]
        curvatures = np.zeros((len(self.comparisons.cells), self.n_cells))
        for pair, weight in zip(self.comparisons.pairs, self.comparisons.weights, strict=True):
            for one, other in (pair, pair[::-1]):
                if one < len(curvatures) and weight > 0.0:
                    gap = width * (middles - quantiles(shares[other], levels[one]))
                    curvatures[one] += weight / np.maximum(np.abs(gap), _MIN_DISTANCE)
        return curvatures / unit**2


def _between_edges(slopes: Floats, masses: Floats) -> Floats:
    """Return the change by moving unit mass from each edge to the next, in the unit of a cell: shape (n_cells,).

    The distribution function falls by a triangle around both edges, so the slope is weighted with it.
    """
    n_slices = len(slopes)
    levels = np.concatenate(([0.0], np.cumsum(masses)))
    levels *= n_slices / levels[-1]
    pieces = np.sort(np.concatenate((levels, np.arange(1.0, n_slices))))
    middle, length = 0.5 * (pieces[1:] + pieces[:-1]), np.diff(pieces)
    middle, length = middle[length > 0.0], length[length > 0.0]
    edge, rise = np.searchsorted(levels, middle) - 1, slopes[middle.astype(np.int64)]
    width = np.diff(levels)
    share, height = length / width[edge], (middle - levels[edge]) / width[edge]
    upward = np.bincount(edge, rise * share * height, len(width))
    downward = np.bincount(edge, rise * share * (1.0 - height), len(width))
    empty = width == 0.0
    upward[empty] = downward[empty] = 0.5 * slopes[np.minimum(levels[:-1][empty].astype(np.int64), n_slices - 1)]
    return np.asarray(upward[:-1] + downward[1:], dtype=np.float64)
