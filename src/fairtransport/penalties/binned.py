"""Transport between groups whose scores were counted in cells: a value, and derivatives for every cell.

What a penalty says about one row depends on its group and its score only. On binned scores it is therefore a table, and
a learner that sees all rows at once pays for counting them and for one look into the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.penalties.pulls import CLIMBS, FIRST_CLIMBS, Pulls, problems_of
from fairtransport.transport.binned import quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.transport.dual import DualProblem

__all__ = ["BinnedPenalty", "CellTables", "ContinuousBinnedPenalty", "DiscreteBinnedPenalty"]

_SOFT = 0.5  # of what chance shows between two samples: differences below it pull in proportion
_REST = 0.02  # scores closer than this bend as if they were this far apart
_PICTURE = (np.arange(64) + 0.5) / 64  # levels of the quantiles that duals climb on


@dataclass(frozen=True, eq=False)
class CellTables:
    """A penalty on binned scores.

    Attributes
    ----------
    value : float
        Sum over the transport problems.
    slopes : ndarray of shape (n_groups, n_cells)
        Derivative with respect to the scores in a cell. That of one row's score is this times the row's share of its
        group's mass.
    bends : ndarray of shape (n_groups, n_cells)
        A positive approximation of the second derivative, likewise.
    """

    value: float
    slopes: NDArray[np.float64]
    bends: NDArray[np.float64]


class BinnedPenalty:
    r"""What both kinds share: the problems, and how much their sum bends.

    Parameters
    ----------
    sizes : sequence of float
        Rows of each group (with weights: as many equal rows as tell as much).
    n_cells : int
        Cells of [0, 1].
    fixed : ndarray of shape (n_cells + 1,), optional
        Masses of a distribution that every group is moved to. By default groups are moved to each other.

    Notes
    -----
    Scores at distance g from those they are coupled with: :math:`|g'| \le g'^2 / 2|g| + |g| / 2` for any new distance
    :math:`g'`, with equality at :math:`g' = g`. So a transport cost lies below a parabola of curvature
    :math:`1/|g|` that touches it. Its sum over a group's problems is ``bends``, with
    :math:`g = s - F_b^{-1}(F_a(s))`, at least 0.02.
    """

    def __init__(self, sizes: Sequence[float], n_cells: int, fixed: NDArray[np.float64] | None = None) -> None:
        self.n_groups, self.n_cells, self.fixed = len(sizes), n_cells, fixed
        self.pairs = problems_of(self.n_groups, each_other=fixed is None)
        spread = np.append(1.0 / np.maximum(sizes, 1.0), 0.0)
        self.softness = [_SOFT * float(np.sqrt(spread[a] + spread[b])) for a, b in self.pairs]

    def look(self, masses: NDArray[np.float64]) -> None:
        """Learn from the groups' present masses, of shape (n_groups, n_cells + 1)."""

    def read(self, masses: NDArray[np.float64]) -> CellTables:
        """Return the value at these masses and its derivatives; changes nothing."""
        raise NotImplementedError

    def _shares(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = masses if self.fixed is None else np.vstack((masses, self.fixed))
        return rows / rows.sum(axis=1, keepdims=True)

    def _bends(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        middles = (np.arange(self.n_cells) + 0.5) / self.n_cells
        levels = np.cumsum(shares, axis=1)[:, :-1]
        bends = np.zeros((self.n_groups, self.n_cells))
        for pair in self.pairs:
            for one, other in (pair, pair[::-1]):
                if one < self.n_groups:
                    gap = middles - quantiles(shares[other], levels[one])
                    bends[one] += 1.0 / np.maximum(np.abs(gap), _REST)
        return bends


class DiscreteBinnedPenalty(BinnedPenalty):
    r"""Sum of the Wasserstein-1 distances, exact for binned scores but for a soft middle.

    Notes
    -----
    On the line the distance is the area between the distribution functions, and a score in cell k lowers its group's
    function in that cell only. With :math:`D_k = F_{a,k} - F_{b,k}`, m cells and the Huber function,

    .. math:: \frac1m \sum_k \rho(D_k), \qquad \rho(D) = |D| - \epsilon/2 \text{ or } D^2 / 2\epsilon
              \text{ where } |D| < \epsilon,

    the derivative with respect to a score of group a is :math:`-\rho'(D_k)` times the row's share of the group.
    :math:`\epsilon = \tfrac12 \sqrt{1/n_a + 1/n_b}`, half of what chance shows: differences that mean nothing do not
    pull with full force.

    Examples
    --------
    >>> masses = np.zeros((2, 11))
    >>> masses[0, 2] = masses[1, 7] = 1000.0  # all of one group at 0.2, all of the other at 0.7
    >>> tables = DiscreteBinnedPenalty([1e9, 1e9], 10).read(masses)
    >>> round(tables.value, 3), tables.slopes[:, 4].tolist()
    (0.5, [-1.0, 1.0])
    """

    def read(self, masses: NDArray[np.float64]) -> CellTables:
        """Return the value at these masses and its derivatives."""
        shares = self._shares(masses)
        below = np.cumsum(shares, axis=1)[:, :-1]
        slopes, value = np.zeros((self.n_groups, self.n_cells)), 0.0
        for (a, b), soft in zip(self.pairs, self.softness, strict=True):
            ahead = below[a] - below[b]
            pull = np.clip(ahead / soft, -1.0, 1.0)
            value += float((pull * (ahead - 0.5 * soft * pull)).sum()) / self.n_cells
            slopes[a] -= pull
            if b < self.n_groups:
                slopes[b] += pull
        return CellTables(value, slopes, self._bends(shares))


class ContinuousBinnedPenalty(BinnedPenalty):
    """Sum of regularized distances, through dual variables that climb on pictures of the binned scores.

    Parameters
    ----------
    sizes, n_cells, fixed
        As in `BinnedPenalty`.
    problem : DualProblem
        Features, regularizer, strength and constraint.
    dual_step : float
        Size of a step of the duals.

    Notes
    -----
    ``look`` moves the duals; ``read`` keeps them and the pictures as they are. The value is then a sum over rows of a
    function of each row's score, whose slope in a cell is that of the dual objective in the cell's middle, less the
    group's slope to itself; a constant is left out.
    """

    def __init__(
        self,
        sizes: Sequence[float],
        n_cells: int,
        fixed: NDArray[np.float64] | None = None,
        *,
        problem: DualProblem,
        dual_step: float,
    ) -> None:
        super().__init__(sizes, n_cells, fixed)
        self.problem, self.dual_step, self.looks = problem, dual_step, 0
        middles = (np.arange(n_cells) + 0.5) / n_cells
        self.pulls = Pulls(self.n_groups, problem, each_other=fixed is None, nodes=middles)
        self._slopes = np.zeros((self.n_groups, n_cells))

    def look(self, masses: NDArray[np.float64]) -> None:
        """Step the duals uphill on quantiles of these masses."""
        pictures = [quantiles(own, _PICTURE) for own in self._shares(masses)]
        self._slopes = self.pulls.climbed(
            pictures[: self.n_groups],
            pictures[-1],  # the target, where there is one
            dual=self.problem,
            step=self.dual_step,
            n_climbs=CLIMBS if self.looks else FIRST_CLIMBS,
        )
        self.looks += 1

    def read(self, masses: NDArray[np.float64]) -> CellTables:
        """Return the value at these masses and the present duals, and its derivatives."""
        shares = self._shares(masses)
        heights = np.pad(np.cumsum(self._slopes, axis=1), ((0, 0), (1, 0))) / self.n_cells
        value = float((shares[: self.n_groups] * heights).sum())
        return CellTables(value, self._slopes, self._bends(shares))
