"""The continuous penalty: regularized transport through dual variables that learn along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_count, check_scores
from fairtransport.penalties.base import Cell, PenaltyTerms, cells, check_targets
from fairtransport.transport.dual import DualProblem, DualState, ascend, evaluate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["ContinuousPenalty"]


class ContinuousPenalty:
    r"""Sum over groups of the dual objective of regularized transport to the target.

    The dual variables of every cell (stratum x group) are state: ``ascend`` moves them one step uphill,
    ``value_and_gradient`` reads them. A learner calls the first, then the second, on each batch.

    Parameters
    ----------
    target : array-like, or list of array-likes
        Target scores; with strata, one vector for each.
    n_groups : int
        Number of groups, so that each has its duals from the start.
    problem : DualProblem
        Features, regularizer, strength, constraint and pairing.
    random_state : int or Generator, optional
        Draws the target scores that batches are paired with.

    Notes
    -----
    With :math:`\alpha = \phi^{*\prime}(v)`, the derivative with respect to a score is
    :math:`\tfrac1N[(1-\alpha) f'(s) + \alpha\,\mathrm{sign}(s-t)]` (paper, "Model Parameters Update").

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.groups import make_groups
    >>> from fairtransport.transport.fourier import draw_features
    >>> from fairtransport.transport.regularizers import get_regularizer
    >>> rng = np.random.default_rng(0)
    >>> problem = DualProblem(draw_features(50, 0.1, rng), get_regularizer("l2"), 0.1, opposite=True)
    >>> scores = np.r_[rng.beta(2, 5, 200), rng.beta(5, 2, 200)]
    >>> groups = make_groups(np.repeat(["a", "b"], 200))
    >>> penalty = ContinuousPenalty(rng.beta(2, 5, 500), 2, problem, random_state=0)
    >>> for _ in range(200):
    ...     penalty.ascend(scores, groups)
    >>> terms = penalty.value_and_gradient(scores, groups)
    >>> bool(terms.by_group[0, 1] > 0.3 > terms.by_group[0, 0])
    True
    """

    def __init__(
        self,
        target: ArrayLike | list[ArrayLike],
        n_groups: int,
        problem: DualProblem,
        *,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.targets = check_targets(target)
        self.n_groups = check_count(n_groups, name="n_groups")
        self.problem = problem
        self.duals = {
            (stratum, group): DualState.zeros(problem)
            for stratum in range(len(self.targets))
            for group in range(n_groups)
        }
        self._rng = np.random.default_rng(random_state)

    def _pair(self, cell: Cell) -> NDArray[np.float64]:
        target = self.targets[cell.stratum]
        return target[self._rng.integers(len(target), size=len(cell.rows))]

    def _walk(
        self, scores: ArrayLike, groups: Groups, strata: ArrayLike | None
    ) -> tuple[NDArray[np.float64], list[Cell]]:
        if len(groups) != self.n_groups:
            raise ValueError(f"this penalty was made for {self.n_groups} groups; got {len(groups)}.")
        s = check_scores(scores)
        return s, list(cells(s, groups, strata, len(self.targets)))

    def ascend(
        self, scores: ArrayLike, groups: Groups, *, strata: ArrayLike | None = None, step: float | None = None
    ) -> None:
        """Move the duals of the groups in this batch one step uphill."""
        s, present = self._walk(scores, groups, strata)
        size = self.problem.default_step if step is None else step
        for cell in present:
            key = (cell.stratum, cell.group)
            terms = evaluate(self.problem, self.duals[key], s[cell.rows], self._pair(cell))
            self.duals[key] = ascend(self.problem, self.duals[key], terms, size)

    def value_and_gradient(self, scores: ArrayLike, groups: Groups, *, strata: ArrayLike | None = None) -> PenaltyTerms:
        """Dual objective at the present duals and its derivative with respect to the scores."""
        s, present = self._walk(scores, groups, strata)
        gradient = np.zeros_like(s)
        by_group = np.full((len(self.targets), self.n_groups), np.nan)
        value = 0.0
        for cell in present:
            terms = evaluate(self.problem, self.duals[cell.stratum, cell.group], s[cell.rows], self._pair(cell))
            by_group[cell.stratum, cell.group] = terms.value
            value += cell.share * terms.value
            gradient[cell.rows] += cell.share * terms.point_gradient
        return PenaltyTerms(float(value), gradient, by_group)
