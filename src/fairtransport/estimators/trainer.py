"""The paper's loop as a run: batches of each group and of the target move the duals and theta."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.estimators.course import Course, Objective
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import DISCRETE, run_updates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.problem import TrainingProblem
    from fairtransport.estimators.steps import ParameterSteps

__all__ = ["Trainer"]

_LINE = 64  # bytes of a cache line
_ANY = np.random.default_rng(0)  # discrete transport has no features, but the loop wants a table


def _workspace(
    shape: tuple[int, ...], batch: int, degrees: int, width: int, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], ...]:
    # Everything the loop writes to on the way, in the order of its parameters, so that it allocates nothing. A batch
    # is padded to whole vectors of 64 bytes, and every array begins at a cache line.
    padded = -(-batch * dtype.itemsize // _LINE) * _LINE // dtype.itemsize

    def room(*size: int) -> NDArray[Any]:
        n_bytes = math.prod(size) * dtype.itemsize
        raw = np.zeros(n_bytes + _LINE, np.uint8)
        return raw[-raw.ctypes.data % _LINE :][:n_bytes].view(dtype).reshape(size)

    def places(size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    columns = shape[0], shape[1] + 1  # one more, for slots without a column
    return (
        room(*columns), room(*columns), places(batch), room(padded), room(padded), room(padded),  # weights to scores
        room(degrees, padded), room(degrees, padded), room(degrees), room(degrees), room(degrees),
        room(width), room(width),  # duals
        *(room(padded) for _ in range(7)),  # pairs
        places(batch), places(batch), places(batch), places(batch), places(256),  # sorting
    )  # fmt: skip


class Trainer(Course):
    """A run of the paper's loop: the pairs of each batch move the duals and theta."""

    def __init__(
        self,
        problem: TrainingProblem,
        objective: Objective,
        steps: ParameterSteps,
        *,
        theta: NDArray[np.float64],
        batch_size: int,
        seed: int,
        budget: int = 0,
    ) -> None:
        self.problem, self.objective, self.steps = problem, objective, steps
        self.batch_size, self.seed, self.done, self.summed, self.budget = batch_size, seed, 0, 0, budget
        dtype, n_groups = problem.X.dtype, len(problem.groups)
        # Columns in the packed order, the intercept last; `theta` and `averaged` give them back as they were.
        self._order = np.append(problem.rows.order, problem.n_columns)
        self._theta = np.ascontiguousarray(theta[:, self._order], dtype=dtype)
        self._theta_sum = np.zeros(theta.shape)
        self._scale = steps.scale[self._order].astype(dtype)
        self._groups = problem.group_arrays()
        features = objective.dual.features if objective.dual else draw_features(1, 1.0, _ANY)
        table = features.tabulate(dtype)
        self._table = table.basis, table.slopes
        degrees, width = table.basis.shape
        self._duals = np.zeros((n_groups, width), dtype)
        self._target_duals = np.zeros((n_groups, width), dtype)
        self._room = _workspace(theta.shape, batch_size, degrees, width, dtype)

    def advance(self, n_updates: int, *, average_from: int = 0) -> None:
        """Run ``n_updates`` updates; iterates from update ``average_from`` on enter the average."""
        problem, objective, dual = self.problem, self.objective, self.objective.dual
        run_updates(
            self.done, n_updates, average_from, self.seed, self.batch_size,
            problem.rows.arrays(),
            *self._groups, problem.share, problem.accept, problem.alias,
            problem.target,
            dual.regularizer.code if dual else DISCRETE,
            dual.strength if dual else 1.0,
            bool(dual and dual.opposite),
            bool(dual and dual.pairs == "all"),
            *self._table,
            objective.parity, objective.anchor, objective.ridge,
            objective.dual_step, self.steps.size, self.steps.decay, self._scale,
            self._theta, self._theta_sum, self._duals, self._target_duals,
            *self._room,
        )  # fmt: skip
        self.summed += max(0, self.done + n_updates - max(average_from, self.done))
        self.done += n_updates

    def switch(self, problem: TrainingProblem) -> None:
        """Go on with other rows of the same columns and groups; theta, duals and the draws continue."""
        same = problem.n_columns == self.problem.n_columns and problem.X.dtype == self.problem.X.dtype
        if not same or problem.groups.labels != self.problem.groups.labels:
            raise ValueError("switch needs the same columns, number type and groups as before.")
        theta, total, scale = self.theta, self._restore(self._theta_sum), np.empty_like(self._scale)
        scale[self._order] = self._scale
        self.problem, self._groups = problem, problem.group_arrays()
        self._order = np.append(problem.rows.order, problem.n_columns)
        self._theta = np.ascontiguousarray(theta[:, self._order], dtype=problem.X.dtype)
        self._theta_sum = np.ascontiguousarray(total[:, self._order])
        self._scale = scale[self._order]

    @property
    def duals(self) -> NDArray[np.float64]:
        """Coefficients of the groups' dual variables."""
        return self._duals[:, : self._n_features].astype(np.float64)

    @property
    def target_duals(self) -> NDArray[np.float64]:
        """Coefficients of the target's dual variables, one row for each group."""
        if self.objective.dual and self.objective.dual.opposite:
            return -self.duals
        return self._target_duals[:, : self._n_features].astype(np.float64)

    @property
    def _n_features(self) -> int:
        return len(self.objective.dual.features) if self.objective.dual else 0

    # ---------------------------------------------------------------- care

    def _is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in (self._theta, self._duals, self._target_duals))

    def _state(self) -> Any:
        return self._theta.copy(), self._duals.copy(), self._target_duals.copy()

    def _go_back(self, state: Any, softer: float, dual_softer: float) -> None:
        self._theta[:], self._duals[:], self._target_duals[:] = state
        self.steps = replace(self.steps, size=self.steps.size * softer)
        self.objective = replace(self.objective, dual_step=self.objective.dual_step * dual_softer)
        self.forget_average()
