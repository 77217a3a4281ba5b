"""What pulls at a group's scores: dual variables or couplings of pictures -> a table of slopes for each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.slopes import FREE, OPPOSITE, SAME, add_slopes, climb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.transport.dual import DualProblem

__all__ = ["CLIMBS", "FIRST_CLIMBS", "NODES", "Pulls", "problems_of"]

#: Where slopes are tabulated, unless others are named.
NODES = np.linspace(0.0, 1.0, 257)

#: Steps of the duals for each picture, and for the first.
CLIMBS, FIRST_CLIMBS = 5, 50

_REST = 0.02  # scores closer than this pull on each other in proportion
_HARDEST = 2.0  # pull of one problem; unregularized transport pulls with 1 at most


def problems_of(n_groups: int, *, each_other: bool) -> list[tuple[int, int]]:
    """Return the transport problems: all pairs of groups, or each group and the target, which is number n_groups."""
    groups = range(n_groups)
    return [(a, b) for a in groups for b in (groups[a + 1 :] if each_other else (n_groups,))]


class Pulls:
    """The transport problems between groups, or of groups and a target, and their dual variables.

    Parameters
    ----------
    n_groups : int
    dual : DualProblem or None
        Features, regularizer, strength and constraint; None for DOT.
    each_other : bool
        Whether groups are moved to each other, not to a target.
    nodes : ndarray, optional
        Where slopes are tabulated.

    Attributes
    ----------
    problems : list of pairs
        As `problems_of` gives them.
    f, h : ndarray of shape (n_problems, n_fourier_features)
        Coefficients of the two dual variables of each problem; they go on from call to call. None for DOT.
    selves : ndarray of shape (n_groups, n_fourier_features)
        Those of each group and itself.
    """

    def __init__(
        self, n_groups: int, dual: DualProblem | None, *, each_other: bool, nodes: NDArray[np.float64] = NODES
    ) -> None:
        self.n_groups, self.dual, self.each_other, self.nodes = n_groups, dual, each_other, nodes
        self.problems = problems_of(n_groups, each_other=each_other)
        width = 0 if dual is None else len(dual.features)
        self.f, self.h = np.zeros((len(self.problems), width)), np.zeros((len(self.problems), width))
        self.selves = np.zeros((n_groups, width))
        if dual is not None:
            self._on_nodes = dual.features(nodes), dual.features.slope(nodes)

    def coupled(self, pictures: list[NDArray[np.float64]], target: NDArray[np.float64]) -> NDArray[np.float64]:
        """Slopes of the optimal couplings: the i-th quantile is drawn to the other's i-th."""
        pull = np.zeros((len(pictures), len(target)))
        pictures = [*pictures, target]
        for a, b in self.problems:
            gap = np.clip((pictures[a] - pictures[b]) / _REST, -1.0, 1.0)
            pull[a] += gap
            if self.each_other:
                pull[b] -= gap
        return np.array([np.interp(self.nodes, own, force) for own, force in zip(pictures, pull, strict=False)])

    def climbed(
        self,
        pictures: list[NDArray[np.float64]],
        target: NDArray[np.float64],
        *,
        dual: DualProblem,
        step: float,
        n_climbs: int,
    ) -> NDArray[np.float64]:
        """Tabulate slopes of the duals after a few steps uphill on the pictures, less those to oneself.

        The regularized distance of a distribution to itself is not zero, and not least where two distributions
        agree. Taking half of each one's distance to itself away mends both.
        """
        kind, strength, n_groups = dual.regularizer.code, dual.strength, len(pictures)
        if not self.each_other:
            pictures = [*pictures, target]
        psi = [dual.features(points) for points in pictures]
        selves = []
        for a in range(n_groups):
            own = self.selves[a]
            if not dual.opposite:  # otherwise zero is the best dual of a distribution and itself
                climb(pictures[a], pictures[a], psi[a], psi[a], own, own, n_climbs, step, strength, kind, SAME)
            selves.append(self._slope(dual, own, pictures[a], psi[a] @ own))
        slopes = np.zeros((n_groups, len(self.nodes)))
        for i, (a, b) in enumerate(self.problems):
            f, h = self.f[i], self.h[i]
            tie = OPPOSITE if dual.opposite else FREE
            climb(pictures[a], pictures[b], psi[a], psi[b], f, h, n_climbs, step, strength, kind, tie)
            for one, other, own, its in ((a, b, f, h), (b, a, h, f)):
                if one < n_groups:
                    pull = self._slope(dual, own, pictures[other], psi[other] @ its) - selves[one]
                    slopes[one] += np.clip(pull, -_HARDEST, _HARDEST)
        return slopes

    def _slope(
        self,
        dual: DualProblem,
        own: NDArray[np.float64],
        points: NDArray[np.float64],
        values: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        table = np.zeros(len(self.nodes))
        value, rise = (part @ own for part in self._on_nodes)
        add_slopes(self.nodes, value, rise, points, values, dual.strength, dual.regularizer.code, table)
        return table

    def sum_of_duals(self, side: int) -> NDArray[np.float64]:
        """Coefficients of each group's dual variable (0), or of those on the other side of its problems (1)."""
        total = np.zeros_like(self.selves)
        for (a, b), *pair in zip(self.problems, self.f, self.h, strict=True):
            total[a] += pair[side]
            if b < self.n_groups:
                total[b] += pair[1 - side]
        return total
