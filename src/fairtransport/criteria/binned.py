"""A penalty on binned scores: its value, and its derivatives for every cell and group.

The derivative of a penalty with respect to a row's score depends on the row's group and score only. On binned scores it
is therefore a table, and a learner that uses all rows at once needs to count them and to look up each one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairtransport._arrays import Floats
from fairtransport.criteria.comparisons import Comparisons, sums_over_pairs
from fairtransport.criteria.penalty import TransportPenalty
from fairtransport.transport.kernels.binned import slices_and_levels, slopes_between_edges
from fairtransport.transport.line import slice_means

_CLOSE = 0.02  # scores closer than this have the curvature of scores this far apart


@dataclass(frozen=True, eq=False)
class CellTables:
    """A penalty on binned scores: its value, and slope and curvature for each sample of rows and cell."""

    value: float
    derivatives: Floats

    @property
    def slopes(self) -> Floats:
        """First derivatives with respect to a score in each cell, for unit mass."""
        return self.derivatives[..., 0]

    @property
    def curvatures(self) -> Floats:
        """Those of parabolas above the penalty."""
        return self.derivatives[..., 1]


class BinnedPenalty:
    r"""A penalty of groups whose scores are counted at the edges of equal cells of [0, 1], or of another interval.

    Notes
    -----
    For a score at distance g from the one it is coupled with, :math:`|g'| \le g'^2 / 2|g| + |g| / 2` for any new
    distance :math:`g'`, with equality at :math:`g' = g`. So a transport cost lies below a parabola of curvature
    :math:`1/|g|` that touches it. The sum of these over a group's pairs is ``curvatures``, with
    :math:`g = s - F_b^{-1}(F_a(s))` for each slice of the group, at least 0.02.
    """

    def __init__(self, penalty: TransportPenalty, comparisons: Comparisons, n_groups: int, n_cells: int) -> None:
        self.penalty, self.comparisons, self.n_cells = penalty, comparisons, n_cells
        # Mass at an edge is spread evenly around it, which preserves its mean.
        self._borders = (np.arange(n_cells + 2) - 0.5) / n_cells
        strata = comparisons.strata or (0,) * len(comparisons.cells)
        self._rows = [_rows_of(*cell, n_groups) for cell in zip(comparisons.names, strata, strict=True)]
        own = [members.start for members in self._rows if members.stop - members.start == 1]
        self._own = np.array(own) if len(own) == len(set(own)) == len(self._rows) else None  # each cell is a group
        n_samples = len(comparisons.cells) + len(comparisons.targets)
        self._pairs, weights = comparisons.pairs[comparisons.active], comparisons.weights[comparisons.active]
        self._sums = sums_over_pairs(self._pairs, (weights, weights), n_samples)

    def read(self, masses: Floats, interval: tuple[float, float] = (0.0, 1.0)) -> CellTables:
        """Return the value and the derivatives."""
        by_group = self._own is not None
        table = masses[self._own] if by_group else np.array([masses[members].sum(axis=0) for members in self._rows])
        edges = interval[0] + (interval[1] - interval[0]) * self._borders
        slices = np.zeros((len(table), self.penalty.n_slices or self.n_cells))
        levels = np.zeros((len(table), self.n_cells + 2))
        slices_and_levels(table, edges, slices, levels)
        terms = self.penalty.slice_terms(slices, table.sum(axis=1), self.comparisons)
        inside = np.zeros((len(table), self.n_cells, 2))
        slopes_between_edges(np.stack((terms.slopes, self._curvatures(slices)[: len(table)]), axis=-1), levels, inside)
        derivatives = np.zeros((len(masses), self.n_cells, 2))
        if by_group:
            derivatives[self._own] = inside
            return CellTables(terms.value, derivatives)
        for members, derivative in zip(self._rows, inside, strict=True):
            # Convert a row's share of several groups to its share of its own.
            share = masses[members].sum(axis=1) / masses[members].sum()
            derivatives[members] += share[:, None, None] * derivative
        return CellTables(terms.value, derivatives)

    def _curvatures(self, slices: Floats) -> Floats:
        n, unit = slices.shape[1], self.penalty.unit  # of standardized scores, whose distances are in these
        targets = [slice_means(t, np.ones(t.size), n) for t in self.comparisons.targets]
        points = np.array([*slices, *targets]) if targets else slices
        one, other = self._pairs.T
        distances = np.maximum(np.abs(points[one] - points[other]), _CLOSE * unit)
        return np.asarray(self._sums @ (1.0 / (distances * unit)))


def _rows_of(group: int | None, stratum: int, n_groups: int) -> slice:
    """Return where the masses of a group in a stratum are, or of all its groups."""
    first = stratum * n_groups
    return slice(first, first + n_groups) if group is None else slice(first + group, first + group + 1)
