"""Training on pictures: what past batches taught about each group's scores moves the duals, not one batch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.estimators.course import Course, Objective
from fairtransport.penalties.pulls import CLIMBS, FIRST_CLIMBS, NODES, Pulls
from fairtransport.transport.kernels import draw_rows
from fairtransport.transport.slopes import follow_slopes, scores_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.problem import TrainingProblem
    from fairtransport.estimators.scaling import Scaling
    from fairtransport.estimators.steps import ParameterSteps

__all__ = ["PictureTrainer"]

_ROWS = 2048  # of a group, looked at for each picture
_QUANTILES = 64  # of a picture for dual variables, which are smooth
_FINE = 256  # of a picture for couplings
_NEW = 0.1  # share of the newest coupling in the slopes that are followed
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
        self._slopes = np.zeros((len(problem.groups), len(NODES)))
        self.pulls = Pulls(len(problem.groups), objective.dual, each_other=objective.each_other)

    # ---------------------------------------------------------------- pictures

    def _look(self) -> None:
        """Take a picture of every group, move the duals on it and tabulate the slopes."""
        dual, step = self.objective.dual, self.objective.dual_step
        size = _FINE if dual is None else _QUANTILES
        pictures = [self._picture_of(a, size) for a in range(len(self.problem.groups))]
        target = _quantiles(np.asarray(self.problem.target, dtype=np.float64), size)
        if dual is None:
            slopes = self.pulls.coupled(pictures, target)
            self._slopes = slopes if self._pictures == 0 else (1.0 - _NEW) * self._slopes + _NEW * slopes
        else:
            n_climbs = CLIMBS if self._pictures else FIRST_CLIMBS
            self._slopes = self.pulls.climbed(pictures, target, dual=dual, step=step, n_climbs=n_climbs)
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
        return self.pulls.sum_of_duals(0)

    @property
    def target_duals(self) -> NDArray[np.float64]:
        """Coefficients of the dual variables on the other side of each group's problems."""
        return self.pulls.sum_of_duals(1)

    # ---------------------------------------------------------------- care

    def _is_finite(self) -> bool:
        return bool(np.isfinite(self._theta).all() and np.isfinite(self._slopes).all())

    def _leeway(self) -> float:
        return max(self.objective.worth, _UNREST * self.objective.weight(len(self.problem.groups)))

    def _state(self) -> Any:
        pulls = self.pulls
        return self._theta.copy(), self._slopes.copy(), (pulls.f.copy(), pulls.h.copy(), pulls.selves.copy())

    def _go_back(self, state: Any, softer: float, dual_softer: float) -> None:
        theta, slopes, duals = state
        self._theta, self._slopes = theta.copy(), slopes.copy()
        self.pulls.f, self.pulls.h, self.pulls.selves = (part.copy() for part in duals)
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
