"""A run of the paper's algorithm: pieces, history, progress, interruption and divergence."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairtransport._progress import progress
from fairtransport.estimators.watch import Watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.problem import TrainingProblem
    from fairtransport.transport.dual import DualProblem

__all__ = ["Course", "Objective", "Result"]

_RECORDS = 100
_ANSWER_WITHIN = 0.2  # seconds
_WORSE = 0.01  # times the objective's weights: more than the noise of the watched rows
_RECOVERIES = 4
_SOFTER = 0.125


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


class Course(ABC):
    """The state of one run; ``advance`` moves it, ``run`` moves it to the end with care."""

    problem: TrainingProblem
    objective: Objective
    seed: int
    budget: int
    done: int = 0
    summed: int = 0
    _theta: NDArray[Any]  # columns in the packed order, the intercept last
    _theta_sum: NDArray[np.float64]
    _order: NDArray[np.int64]
    _piece: int = 16

    # ---------------------------------------------------------------- what subclasses say

    @property
    @abstractmethod
    def duals(self) -> NDArray[np.float64]:
        """Coefficients of the groups' dual variables."""

    @property
    @abstractmethod
    def target_duals(self) -> NDArray[np.float64]:
        """Coefficients of the target's dual variables, one row for each group."""

    @abstractmethod
    def advance(self, n_updates: int, *, average_from: int = 0) -> None:
        """Run ``n_updates`` updates; iterates from update ``average_from`` on enter the average."""

    @abstractmethod
    def _state(self) -> Any:
        """Copy everything that moves."""

    @abstractmethod
    def _go_back(self, state: Any, softer: float, dual_softer: float) -> None:
        """Return to a state with steps of theta and of the duals that are smaller by a factor each."""

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

    @abstractmethod
    def _is_finite(self) -> bool:
        """Whether everything that moves is a number."""

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
