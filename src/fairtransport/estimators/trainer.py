"""Running the fused loop: pieces, history, progress, interruption and divergence."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairtransport._progress import progress
from fairtransport.estimators.problem import TrainingProblem, sigmoid
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import DISCRETE, run_updates
from fairtransport.transport.line import wasserstein

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.steps import ParameterSteps
    from fairtransport.transport.dual import DualProblem

__all__ = ["Objective", "Result", "Trainer"]

_RECORDS = 100
_WATCHED_PER_GROUP = 1000
_ANSWER_WITHIN = 0.2  # seconds
_WORSE = 0.01  # of the objective on the watched rows: more than their noise
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
class _Watch:
    """A fixed part of the training rows on which the run is followed."""

    problem: TrainingProblem
    rng: np.random.Generator
    rows: list[NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        chosen = []
        for rows in self.problem.groups.rows:
            few = rows
            if len(rows) > _WATCHED_PER_GROUP:
                few = np.sort(self.rng.choice(rows, _WATCHED_PER_GROUP, replace=False))
            chosen.append(few)
        self.rows = chosen
        self.features = [self.problem.X[rows] for rows in chosen]
        weights = self.problem.weights
        self.weights = [None if weights is None else weights[rows] for rows in chosen]
        self.target = np.asarray(self.problem.target, dtype=np.float64)

    def measure(self, theta: NDArray[Any]) -> tuple[float, float]:
        """Disparity (sum of W1 to the target) and log-loss."""
        disparity = loss = 0.0
        for a, (X, rows) in enumerate(zip(self.features, self.rows, strict=True)):
            own = theta[a if len(theta) > 1 else 0].astype(np.float64)
            logits = np.asarray(X @ own[:-1], dtype=np.float64) + own[-1]
            weight = self.weights[a]
            if weight is not None and not weight.sum() > 0:
                weight = None
            disparity += wasserstein(sigmoid(logits), self.target, x_weights=weight)
            losses = np.logaddexp(0.0, logits) - self.problem.labels[rows] * logits
            loss += self.problem.share[a] * float(np.average(losses, weights=weight))
        return disparity, loss


def _workspace(
    shape: tuple[int, ...], batch: int, n_cells: int, width: int, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], ...]:
    # Everything the loop writes to on the way, in the order of its parameters, so that it allocates nothing.
    def room(*size: int) -> NDArray[Any]:
        return np.zeros(size, dtype)

    def places(size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    return (
        room(*shape), places(batch), room(batch), room(batch),  # gradient, rows, scores, target scores
        places(batch), room(batch), places(batch), room(batch), places(n_cells), places(n_cells),  # cells
        room(n_cells, 6), room(n_cells, 6), room(n_cells, 6), room(n_cells, 6), room(width), room(6, width),  # duals
        room(batch), room(batch), room(batch), room(batch),  # pairs
        places(batch), places(batch), places(batch), places(batch), places(256),  # sorting
    )  # fmt: skip


class Trainer:
    """The state of one run; ``advance`` moves it, ``run`` moves it to the end with care."""

    def __init__(
        self,
        problem: TrainingProblem,
        objective: Objective,
        steps: ParameterSteps,
        *,
        theta: NDArray[np.float64],
        batch_size: int,
        seed: int,
    ) -> None:
        self.problem, self.objective, self.steps = problem, objective, steps
        self.batch_size, self.seed, self.done, self.summed = batch_size, seed, 0, 0
        self._piece = 16
        dtype, n_groups = problem.X.dtype, len(problem.groups)
        # Columns in the packed order, the intercept last; `theta` and `averaged` give them back as they were.
        self._order = np.append(problem.rows.order, problem.n_columns)
        self._theta = np.ascontiguousarray(theta[:, self._order], dtype=dtype)
        self._theta_sum = np.zeros(theta.shape)
        self._scale = steps.scale[self._order].astype(dtype)
        self._groups = problem.group_arrays()
        table = objective.dual.features.tabulate() if objective.dual else draw_features(1, 1.0, _ANY).tabulate()
        self._table = (table.steps, *(part.astype(dtype) for part in (table.powers, table.cosines, table.sines)))
        self._duals = np.zeros((n_groups, table.width), dtype)
        self._target_duals = np.zeros((n_groups, table.width), dtype)
        self._room = _workspace(theta.shape, batch_size, table.steps + 1, table.width, dtype)

    def advance(self, n_updates: int, *, average_from: int = 0) -> None:
        """Run ``n_updates`` updates; iterates from update ``average_from`` on enter the average."""
        problem, objective, dual = self.problem, self.objective, self.objective.dual
        run_updates(
            self.done, n_updates, average_from, self.seed, self.batch_size,
            *problem.rows.arrays(), problem.labels,
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

    def forget_average(self) -> None:
        """Start the average of iterates anew."""
        self._theta_sum[:] = 0.0
        self.summed = 0

    @property
    def theta(self) -> NDArray[np.float64]:
        """The present parameters, columns in the user's order, the intercept last."""
        return self._restore(self._theta)

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

    def _restore(self, packed: NDArray[Any]) -> NDArray[np.float64]:
        theta = np.empty(packed.shape)
        theta[:, self._order] = packed
        return theta

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

    def averaged(self) -> NDArray[np.float64]:
        """Mean of the summed iterates, or the present one before any was summed."""
        return self._restore(self._theta_sum) / self.summed if self.summed else self.theta

    def run(self, n_updates: int, *, average: bool, verbose: bool, title: str) -> Result:
        """Run to the end, to Ctrl-C, or to the first sign of divergence, and say which."""
        watch = _Watch(self.problem, np.random.default_rng(self.seed))
        piece = max(1, -(-n_updates // _RECORDS))
        average_from = n_updates // 2 if average else n_updates
        disparity, loss = watch.measure(self.theta)
        records = [(0, disparity, loss)]
        best, best_theta = self._total(disparity, loss), self.theta
        outcome = f"ran all {n_updates} updates"
        final: NDArray[np.float64] | None = None
        try:
            with progress(title, n_updates, show=verbose) as bar:
                while self.done < n_updates:
                    self._advance_to(min(self.done + piece, n_updates), average_from=average_from)
                    if not (np.isfinite(self._theta).all() and np.isfinite(self._duals).all()):
                        final, outcome = best_theta, self._went_wrong(f"diverged near update {self.done}")
                        break
                    theta = self.averaged()
                    disparity, loss = watch.measure(theta)
                    records.append((self.done, disparity, loss))
                    if self._total(disparity, loss) < best:
                        best, best_theta = self._total(disparity, loss), theta.copy()
                    bar.advance(self.done, f"disparity {disparity:.4f}")
        except KeyboardInterrupt:
            final = best_theta
            outcome = f"interrupted after {self.done} of {n_updates} updates; the best model so far is kept"
            warnings.warn(f"Training was {outcome}.", ConvergenceWarning, stacklevel=2)
        if final is None and self._total(*watch.measure(self.averaged())) > self._total(*records[0][1:]) + _WORSE:
            final, outcome = best_theta, self._went_wrong("ended worse than it began")
        columns = np.array(records, dtype=np.float64).T
        history = dict(zip(("update", "disparity", "loss"), columns, strict=True))
        return Result(
            self.averaged() if final is None else final,
            self.objective.dual.features if self.objective.dual else None,
            np.nan_to_num(self.duals, nan=0.0, posinf=0.0, neginf=0.0),
            np.nan_to_num(self.target_duals, nan=0.0, posinf=0.0, neginf=0.0),
            self.done,
            outcome,
            history,
        )

    def _total(self, disparity: float, loss: float) -> float:
        return self.objective.parity * disparity + self.objective.anchor * loss

    def _went_wrong(self, what: str) -> str:
        outcome = f"{what}; the best model so far is kept"
        warnings.warn(
            f"Training {outcome}. Leave dual_step and parameter_step at None or make them smaller; l2 with a strength "
            "near 0.1 and a kernel_variance near 0.1 is safest.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return outcome
