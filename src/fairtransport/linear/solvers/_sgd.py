"""The paper's stochastic algorithm: batches of each group and of the target move the duals and theta."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairtransport._progress import progress
from fairtransport.linear.solvers._monitor import Watch
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import DISCRETE, run_updates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.solvers._step_sizes import ParameterSteps
    from fairtransport.linear.solvers.sgd_problem import TrainingProblem
    from fairtransport.transport.dual import DualProblem

__all__ = ["Objective", "Result", "Trainer"]

_RECORDS = 100
_ANSWER_WITHIN = 0.2  # seconds
_WORSE = 0.01  # times the objective's weights: more than the noise of the watched rows
_RECOVERIES = 4
_SOFTER = 0.125

_LINE = 64  # bytes of a cache line
_ANY = np.random.default_rng(0)  # discrete transport has no features, but the loop wants a table


@dataclass(frozen=True, eq=False)
class Objective:
    """What is minimised: anchor * loss + parity * sum of distances; the paper has anchor 0, parity 1.

    ``dual`` is None for discrete transport.
    """

    parity: float
    anchor: float
    ridge: float
    dual: DualProblem | None
    dual_step: float

    def total(self, disparity: float, loss: float) -> float:
        """Value of the objective, without the ridge."""
        return self.parity * disparity + self.anchor * loss


@dataclass(eq=False)
class Result:
    """What a run leaves behind."""

    theta: NDArray[np.float64]
    features: Any
    duals: NDArray[np.float64]
    target_duals: NDArray[np.float64]
    n_updates: int
    outcome: str
    history: dict[str, NDArray[np.float64]]


@dataclass(eq=False)
class _Log:
    """Records of a run and the best model among them."""

    watch: Watch
    objective: Objective
    records: list[tuple[int, float, float]] = field(default_factory=list)
    best: float = np.inf
    theta: Any = None
    state: Any = None

    def add(self, update: int, theta: NDArray[np.float64], state: Any) -> float:
        disparity, loss = self.watch.measure(theta)
        self.records.append((update, disparity, loss))
        total = self.objective.total(disparity, loss)
        if total < self.best:
            self.best, self.theta, self.state = total, theta.copy(), state
        return total

    @property
    def began(self) -> float:
        return self.objective.total(*self.records[0][1:])

    def history(self) -> dict[str, NDArray[np.float64]]:
        columns = np.array(self.records, dtype=np.float64).T
        return dict(zip(("update", "disparity", "loss"), columns, strict=True))


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


class Trainer:
    """A run of the paper's algorithm: ``advance`` moves it, ``run`` moves it to the end with care.

    ``advance`` draws batches, whose pairs move the duals and theta; ``run`` adds history, progress, a clean answer to
    Ctrl-C and recovery from divergence.
    """

    _piece = 16  # updates between two looks at the clock

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

    # ---------------------------------------------------------------- reading

    @property
    def theta(self) -> NDArray[np.float64]:
        """The present parameters, columns in the user's order, the intercept last."""
        return self._restore(self._theta)

    def averaged(self) -> NDArray[np.float64]:
        """Mean of the summed iterates, or the present one before any was summed."""
        return self._restore(self._theta_sum / self.summed) if self.summed else self.theta

    def forget_average(self) -> None:
        """Start the average of iterates anew."""
        self._theta_sum[:] = 0.0
        self.summed = 0

    def _restore(self, packed: NDArray[Any]) -> NDArray[np.float64]:
        """Put columns back in the user's order."""
        theta = np.empty(packed.shape)
        theta[:, self._order] = packed
        return theta

    # ---------------------------------------------------------------- running

    def run(self, n_updates: int, *, average: bool, verbose: bool, title: str) -> Result:
        """Run to convergence, to the end of the budget or to Ctrl-C, back from any divergence, and say which."""
        watch = Watch(self.problem, np.random.default_rng(self.seed))
        log = _Log(watch, self.objective)
        log.add(0, self.theta, self._state())
        try:
            with progress(title, n_updates, show=verbose) as bar:
                theta, outcome = self._follow(n_updates, log, bar, average=average)
        except KeyboardInterrupt:
            theta = log.theta
            outcome = f"interrupted after {self.done} of {n_updates} updates; the best model so far is kept"
            warnings.warn(f"Training was {outcome}.", ConvergenceWarning, stacklevel=2)
        return Result(
            theta,
            self.objective.dual.features if self.objective.dual else None,
            np.nan_to_num(self.duals, nan=0.0, posinf=0.0, neginf=0.0),
            np.nan_to_num(self.target_duals, nan=0.0, posinf=0.0, neginf=0.0),
            self.done,
            outcome,
            log.history(),
        )

    def _follow(self, n_updates: int, log: _Log, bar: Any, *, average: bool) -> tuple[NDArray[np.float64], str]:
        piece, went_back = max(1, -(-n_updates // _RECORDS)), 0
        average_from = n_updates // 2 if average else n_updates
        diverged = 0
        while self.done < n_updates:
            self._advance_to(min(self.done + piece, n_updates), average_from=average_from)
            if self._is_finite():
                log.add(self.done, self.averaged(), self._state())
                bar.advance(self.done, f"disparity {log.records[-1][1]:.4f}")
                continue
            went_back, diverged = self.done, diverged + 1
            if diverged > _RECOVERIES:
                return log.theta, self._went_wrong(f"diverged near update {self.done}")
            self._go_back(log.state, _SOFTER, _SOFTER)
            self._warn_of_recovery()
        theta = self.averaged()
        total = self.objective.total(*log.watch.measure(theta))
        if total > log.began + _WORSE * (self.objective.anchor + self.objective.parity):
            return log.theta, self._went_wrong("ended worse than it began")
        outcome = f"ran all {n_updates} updates"
        if diverged:
            outcome = f"diverged near update {went_back}, went back and on with smaller steps; {outcome}"
        return theta, outcome

    def _advance_to(self, end: int, *, average_from: int) -> None:
        # Short enough that Ctrl-C is answered at once, long enough that calls cost nothing.
        while self.done < end:
            began, size = time.perf_counter(), min(self._piece, end - self.done)
            self.advance(size, average_from=average_from)
            taken = time.perf_counter() - began
            if taken < 0.5 * _ANSWER_WITHIN and size == self._piece:
                self._piece *= 2
            elif taken > _ANSWER_WITHIN:
                self._piece = max(1, self._piece // 2)

    @staticmethod
    def _warn_of_recovery() -> None:
        warnings.warn(
            f"Training diverged; it went back to the best model so far and on with steps {1 / _SOFTER:.0f} times "
            "smaller.",
            ConvergenceWarning,
            stacklevel=4,
        )

    @staticmethod
    def _went_wrong(what: str) -> str:
        outcome = f"{what}; the best model so far is kept"
        warnings.warn(
            f"Training {outcome}. Leave dual_step and parameter_step at None or make them smaller; l2 with a strength "
            "near 0.1 and a kernel_variance near 0.1 is safest.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return outcome

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
