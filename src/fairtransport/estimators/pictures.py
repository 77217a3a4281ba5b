"""Training on pictures: what past batches taught about each group's scores moves the duals, not one batch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.estimators.course import Course, Objective
from fairtransport.transport.kernels import draw_rows
from fairtransport.transport.slopes import FREE, OPPOSITE, SAME, add_slopes, climb, follow_slopes, scores_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.problem import TrainingProblem
    from fairtransport.estimators.scaling import Scaling
    from fairtransport.estimators.steps import ParameterSteps

__all__ = ["PictureTrainer"]

_ROWS = 2048  # of a group, looked at for each picture
_QUANTILES = 64  # of a picture for dual variables, which are smooth
_FINE = 256  # of a picture for couplings
_NODES = np.linspace(0.0, 1.0, 257)  # where slopes are tabulated
_CLIMBS = 5  # steps of the duals for each picture
_FIRST_CLIMBS = 50
_REST = 0.02  # scores closer than this pull on each other in proportion
_NEW = 0.1  # share of the newest coupling in the slopes that are followed
_HARDEST = 2.0  # pull of one problem; unregularized transport pulls with 1 at most
_FEWEST = 6  # updates between pictures when batches have no noise
_DRAWN = 2000  # rows of a group drawn between pictures, at least
_PICTURES = 1000  # at most, when the user names no number of updates
_LEAST_PICTURES = 200  # whatever the number of updates
_FALL = 0.95
_GENTLE, _WARMING = 0.1, 0.3  # share of a step that a run begins with, and of its first cycle until steps are full
_SMALLEST_CYCLES = 700
_UNREST = 0.05  # of the objective's weight: what single iterates of small batches may be worse by


class PictureTrainer(Course):
    """A run that looks at every group's scores every few updates and follows the slopes of that picture.

    The transport problems are those between each group and the target or, with ``objective.each_other``, between
    all pairs of groups. Cycles of 1/7, 2/7 and 4/7 of the budget end the run when one brings no gain.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        objective: Objective,
        steps: ParameterSteps,
        *,
        theta: NDArray[np.float64],
        batch_size: int,
        seed: int,
        n_updates: int | None,
        scaling: Scaling,
        ridge: NDArray[np.float64],
        origin: NDArray[np.float64],
        hold: NDArray[np.float64] | None = None,
    ) -> None:
        self.problem, self.objective, self.steps, self.scaling = problem, objective, steps, scaling
        self.batch_size, self.seed, self.done, self.summed = batch_size, seed, 0, 0
        self._order = np.append(problem.rows.order, problem.n_columns)
        self._theta = np.ascontiguousarray(scaling.to_scaled(theta)[:, self._order])
        self._theta_sum = np.zeros_like(self._theta)
        self._ridge = ridge[problem.rows.order]
        self._origin = scaling.to_scaled(origin)[self._order]
        self._hold = np.zeros((0, 0)) if hold is None else np.ascontiguousarray(hold[self._order][:, self._order])
        self._scale = steps.scale[self._order]
        self._matrix = steps.matrix
        if len(steps.matrix):
            self._matrix = np.ascontiguousarray(steps.matrix[:, self._order][:, :, self._order])
        self._labels, self._rows, self._starts = problem.group_arrays()
        dtype = problem.X.dtype
        wide = (len(theta), theta.shape[1] + 1)
        self._room = (
            np.zeros(wide, dtype), np.zeros(wide, dtype), np.zeros(batch_size, np.int64),
            *(np.zeros(batch_size, dtype) for _ in range(3)),
        )  # fmt: skip
        # Slopes may lag behind theta by so many full steps; more updates between pictures must each be shorter.
        stable = max(1, round(_FEWEST * (1.0 + steps.noise)))
        self._every = max(stable, -(-_DRAWN // batch_size))
        if n_updates is not None:
            self._every = min(self._every, max(1, n_updates // _LEAST_PICTURES))
        self.budget = _PICTURES * self._every if n_updates is None else n_updates
        self._size = steps.size * min(1.0, stable / self._every)
        self._cycle, self._pictures = (0, 0), 0
        groups = range(len(problem.groups))
        fixed = len(problem.groups)
        self._problems = [(a, b) for a in groups for b in (groups[a + 1 :] if objective.each_other else (fixed,))]
        self._slopes = np.zeros((len(problem.groups), len(_NODES)))
        self._features: Any = objective.dual.features if objective.dual else None
        if self._features is not None:
            self._on_nodes = self._features(_NODES), self._features.slope(_NODES)
            shape = (len(self._problems), len(self._features))
            self._f, self._h = np.zeros(shape), np.zeros(shape)
            self._selves = np.zeros((len(groups), len(self._features)))

    # ---------------------------------------------------------------- pictures

    def _look(self) -> None:
        """Take a picture of every group, move the duals on it and tabulate the slopes."""
        size = _FINE if self._features is None else _QUANTILES
        pictures = [self._picture_of(a, size) for a in range(len(self.problem.groups))]
        if self._features is None:
            slopes = self._coupled(pictures)
            self._slopes = slopes if self._pictures == 0 else (1.0 - _NEW) * self._slopes + _NEW * slopes
        else:
            self._slopes = self._climbed(pictures)
        self._pictures += 1

    def _picture_of(self, a: int, n_quantiles: int) -> NDArray[np.float64]:
        problem, first = self.problem, int(self._starts[a])
        size = int(self._starts[a + 1]) - first
        weights = None
        if size > _ROWS:
            picked = np.empty(_ROWS, np.int64)
            place = np.uint64((self._pictures * len(problem.groups) + a) * _ROWS)
            # Another stream than the one the updates draw from.
            seed = np.uint64(self.seed ^ 0x5DEECE66D)
            draw_rows(seed, place, first, np.uint64(size), problem.accept, problem.alias, self._rows, _ROWS, picked)
        else:
            picked = np.arange(first, first + size) if len(self._rows) == 0 else self._rows[first : first + size]
            weights = None if problem.weights is None else problem.weights[problem.groups.rows[a]]
        logits, scores = np.empty((2, len(picked)), problem.X.dtype)
        scores_of(problem.rows.arrays(), picked, self._weights(), a if len(self._theta) > 1 else 0, logits, scores)
        return _quantiles(scores.astype(np.float64), n_quantiles, weights)

    def _weights(self) -> NDArray[Any]:
        """Theta as the compiled loops read it, with a zero for empty slots."""
        return np.pad(self._theta, ((0, 0), (0, 1))).astype(self.problem.X.dtype)

    def _coupled(self, pictures: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Slopes of the optimal couplings: the i-th quantile is drawn to the other's i-th."""
        pull = np.zeros((len(pictures), _FINE))
        pictures = [*pictures, _quantiles(np.asarray(self.problem.target, dtype=np.float64), _FINE)]
        for a, b in self._problems:
            gap = np.clip((pictures[a] - pictures[b]) / _REST, -1.0, 1.0)
            pull[a] += gap
            if self.objective.each_other:
                pull[b] -= gap
        return np.array([np.interp(_NODES, own, force) for own, force in zip(pictures, pull, strict=False)])

    def _climbed(self, pictures: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Tabulate slopes of the duals after a few steps uphill on the pictures, less those to oneself.

        The regularized distance of a distribution to itself is not zero, and not least where two distributions
        agree. Taking half of each one's distance to itself away mends both.
        """
        dual = self.objective.dual
        if dual is None:
            return self._slopes
        kind, strength, step = dual.regularizer.code, dual.strength, self.objective.dual_step
        n_groups, n_climbs = len(pictures), _CLIMBS if self._pictures else _FIRST_CLIMBS
        if not self.objective.each_other:
            pictures = [*pictures, _quantiles(np.asarray(self.problem.target, dtype=np.float64), _QUANTILES)]
        psi = [self._features(points) for points in pictures]
        selves = [self._slope_to_itself(a, pictures[a], psi[a], n_climbs) for a in range(n_groups)]
        slopes = np.zeros((n_groups, len(_NODES)))
        for i, (a, b) in enumerate(self._problems):
            f, h = self._f[i], self._h[i]
            tie = OPPOSITE if dual.opposite else FREE
            climb(pictures[a], pictures[b], psi[a], psi[b], f, h, n_climbs, step, strength, kind, tie)
            for one, other, own, its in ((a, b, f, h), (b, a, h, f)):
                if one < n_groups:
                    pull = self._slope(own, pictures[other], psi[other] @ its) - selves[one]
                    slopes[one] += np.clip(pull, -_HARDEST, _HARDEST)
        return slopes

    def _slope_to_itself(
        self, a: int, points: NDArray[np.float64], psi: NDArray[np.float64], n_climbs: int
    ) -> NDArray[np.float64]:
        dual, own = self.objective.dual, self._selves[a]
        if dual is not None and not dual.opposite:  # otherwise zero is the best dual of a distribution and itself
            kind, step = dual.regularizer.code, self.objective.dual_step
            climb(points, points, psi, psi, own, own, n_climbs, step, dual.strength, kind, SAME)
        return self._slope(own, points, psi @ own)

    def _slope(
        self, own: NDArray[np.float64], points: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        dual, table = self.objective.dual, np.zeros(len(_NODES))
        if dual is not None:
            value, rise = (part @ own for part in self._on_nodes)
            add_slopes(_NODES, value, rise, points, values, dual.strength, dual.regularizer.code, table)
        return table

    # ---------------------------------------------------------------- moving

    def advance(self, n_updates: int, *, average_from: int = 0) -> None:
        """Run ``n_updates`` updates; iterates from update ``average_from`` on enter the average."""
        problem, objective = self.problem, self.objective
        end = self.done + n_updates
        while self.done < end:
            since = (self.done - self._cycle[0]) % self._every
            if since == 0:
                self._look()
            taken = self.done - since  # when the picture was
            stop = min(end, taken + self._every)
            summing = self.done >= average_from
            if not summing:
                stop = min(stop, average_from)
            follow_slopes(
                self.done, stop - self.done, self.seed,
                problem.rows.arrays(), self._labels, self._rows, self._starts,
                problem.share, problem.accept, problem.alias,
                self._slopes, objective.parity, objective.anchor, self._ridge, self._hold, self._origin,
                self._step_at(taken), self._step_at(taken + self._every), since, self._every,
                self._scale, self._matrix,
                self._theta, self._theta_sum, summing,
                *self._room,
            )  # fmt: skip
            if summing:
                self.summed += stop - self.done
            self.done = stop

    def _step_at(self, update: int) -> float:
        begun, end = self._cycle
        if end <= begun:
            return self._size
        passed = min(1.0, (update - begun) / (end - begun))
        # The duals of the first pictures pull with full force at once; theta gives way slowly at first.
        gently = min(1.0, _GENTLE + passed / _WARMING) if begun == 0 else 1.0
        return self._size * gently * (1.0 - _FALL * passed)

    def _cycles(self, n_updates: int) -> list[int]:
        if n_updates < _SMALLEST_CYCLES:
            return [n_updates]
        return [n_updates // 7, 3 * n_updates // 7, n_updates]

    def _begin(self, end: int) -> None:
        if self.summed:
            self._theta = self._theta_sum / self.summed
        self.forget_average()
        self._cycle = (self.done, end)

    # ---------------------------------------------------------------- reading

    def _restore(self, packed: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.scaling.to_raw(super()._restore(packed))

    @property
    def duals(self) -> NDArray[np.float64]:
        """Coefficients of each group's dual variable; between groups, the sum of those it has with the others."""
        return self._sum_of_duals(0)

    @property
    def target_duals(self) -> NDArray[np.float64]:
        """Coefficients of the dual variables on the other side of each group's problems."""
        return self._sum_of_duals(1)

    def _sum_of_duals(self, side: int) -> NDArray[np.float64]:
        n_groups = len(self.problem.groups)
        if self._features is None:
            return np.zeros((n_groups, 0))
        total = np.zeros((n_groups, len(self._features)))
        for (a, b), *pair in zip(self._problems, self._f, self._h, strict=True):
            total[a] += pair[side]
            if b < n_groups:
                total[b] += pair[1 - side]
        return total

    # ---------------------------------------------------------------- care

    def _is_finite(self) -> bool:
        return bool(np.isfinite(self._theta).all() and np.isfinite(self._slopes).all())

    def _leeway(self) -> float:
        return max(self.objective.worth, _UNREST * self.objective.weight(len(self.problem.groups)))

    def _state(self) -> Any:
        duals = None if self._features is None else (self._f.copy(), self._h.copy(), self._selves.copy())
        return self._theta.copy(), self._slopes.copy(), duals

    def _go_back(self, state: Any, softer: float, dual_softer: float) -> None:
        theta, slopes, duals = state
        self._theta, self._slopes = theta.copy(), slopes.copy()
        if duals is not None:
            self._f, self._h, self._selves = (part.copy() for part in duals)
        self._size *= softer
        self.objective = replace(self.objective, dual_step=self.objective.dual_step * dual_softer)
        self.forget_average()


def _quantiles(values: NDArray[np.float64], n: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Middle quantiles of n parts of equal mass."""
    levels = (np.arange(n) + 0.5) / n
    if weights is None:
        return np.sort(values)[(levels * len(values)).astype(np.int64)]
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return values[order[np.searchsorted(mass, levels * mass[-1], side="right").clip(max=len(values) - 1)]]
