"""The stochastic algorithm of the paper: alternating steps, their sizes, and its convergence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fairtransport._arrays import Floats, Ints
from fairtransport._progress import progress
from fairtransport._validation import check_count
from fairtransport._warnings import warn_caller
from fairtransport.criteria.criterion import ComparedStrata
from fairtransport.groups import Groups
from fairtransport.linear._constants import RARE_SHARE, RECOVERIES, SMALLER_STEPS, STABLE_FRACTION, STEP_DECAY, WORSE
from fairtransport.training.responses import LOSSES, Loss
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels import sgd as updates
from fairtransport.transport.kernels.rows import Population, Rows, fill_alias
from fairtransport.transport.kernels.sgd import DISCRETE, Batches, Transport, make_workspace
from fairtransport.transport.line import Sample, wasserstein


@dataclass(frozen=True, eq=False)
class Cells:
    """The samples that the stochastic solver draws from, and what each is compared with."""

    rows: tuple[Ints, ...]
    groups: Ints
    targets: Ints
    weights: Floats

    @classmethod
    def of(cls, groups: Groups, strata: ComparedStrata | None) -> Cells:
        """Return the groups or, with strata, the groups' rows in each, which have the target of their stratum."""
        n = len(groups)
        if strata is None or strata.is_everywhere:
            return cls(groups.rows, np.arange(n), np.zeros(n, dtype=np.int64), np.ones(n))
        rest = [np.ones(members.size, dtype=bool) for members in groups.rows]
        compared = []
        for number, stratum in enumerate(strata.compared):
            for group, members in zip(stratum.groups, stratum.rows, strict=True):
                rest[group][np.searchsorted(groups.rows[group], members)] = False
                compared.append((members, group, number, stratum.weight))
        others = [
            (members[left], group, -1, 0.0)
            for group, (members, left) in enumerate(zip(groups.rows, rest, strict=True))
            if left.any()
        ]
        rows, owners, targets, weights = zip(*others, *compared, strict=True)
        return cls(tuple(rows), np.array(owners), np.array(targets), np.array(weights, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, outcomes and groups, laid out for the compiled loop."""

    X: Any
    loss: Loss
    outcomes: NDArray[Any]
    groups: Groups
    cells: Cells
    share: Floats
    weights: Floats | None
    targets: NDArray[Any]
    accept: NDArray[np.uint64]
    alias: Ints

    @classmethod
    def build(
        cls,
        X: Any,
        outcomes: NDArray[Any],
        groups: Groups,
        target: Floats,
        weights: Floats | None,
        *,
        strata: ComparedStrata | None = None,
        loss: Loss = LOSSES["logistic"],
    ) -> TrainingProblem:
        """Make the tables for drawing weighted rows; ``target`` has one row for each of the strata, if any."""
        cells = Cells.of(groups, strata)
        mass = np.array([rows.size if weights is None else weights[rows].sum() for rows in cells.rows], dtype=float)
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = _cell_starts(cells)
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(cells.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        return cls(
            X=X,
            loss=loss,
            outcomes=outcomes.astype(X.dtype),
            groups=groups,
            cells=cells,
            share=mass / mass.sum(),
            weights=weights,
            # Dual potentials are defined on [0, 1], and the loop takes scores beyond it as at its ends.
            targets=np.clip(np.atleast_2d(target), 0.0, 1.0).astype(X.dtype),
            accept=accept,
            alias=alias,
        )

    @property
    def target(self) -> NDArray[Any]:
        """The first target: for demographic parity the only one."""
        return np.asarray(self.targets[0])

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def batches(self, seed: int, size: int) -> Batches:
        """Return what the compiled loop draws its batches from."""
        cells = self.cells
        order = np.concatenate(cells.rows)  # cell by cell, so that a draw is the number of a row
        population = Population(_cell_starts(cells), self.accept, self.alias)
        rows, outcomes = flat_rows(self.X[order]), self.outcomes[order]
        return Batches(seed, size, rows, outcomes, population, cells.groups, self.targets, cells.targets)


def flat_rows(X: Any) -> Rows:
    """Return a matrix as the compiled loop reads it."""
    if not sparse.issparse(X):
        return Rows(np.ascontiguousarray(X), np.zeros(0, X.dtype), np.zeros(0, np.uint32), np.zeros(1, np.uint64))
    X = sparse.csr_matrix(X)
    return Rows(np.zeros((0, 0), X.dtype), X.data, X.indices.astype(np.uint32), X.indptr.astype(np.uint64))


def _cell_starts(cells: Cells) -> Ints:
    return np.concatenate(([0], np.cumsum([rows.size for rows in cells.rows]))).astype(np.int64)


# Progress of a stochastic run, measured on a fixed sample of the training rows.

_ROWS_PER_CELL = 1000


class Monitor:
    """Disparity and loss of a model on up to 1,000 training rows of each cell."""

    def __init__(self, problem: TrainingProblem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rows = [
            rows if len(rows) <= _ROWS_PER_CELL else np.sort(rng.choice(rows, _ROWS_PER_CELL, replace=False))
            for rows in problem.cells.rows
        ]
        self.features = [problem.X[rows] for rows in self.rows]
        self.weights = [self._row_weights(rows) for rows in self.rows]
        self.targets = [Sample.from_values(target) for target in problem.targets]

    def _row_weights(self, rows: Ints) -> Floats | None:
        if self.problem.weights is None or not self.problem.weights[rows].sum() > 0:
            return None
        return self.problem.weights[rows]

    def measure(self, theta: NDArray[Any]) -> tuple[float, float]:
        """Return the weighted sum of the Wasserstein-1 distances to the targets, and the loss."""
        predictors, loss = self._predictors(theta), self.problem.loss
        scores = map(loss.scores, predictors)
        samples = [Sample.from_values(s, weights) for s, weights in zip(scores, self.weights, strict=True)]
        cells = self.problem.cells
        disparity = sum(
            float(weight) * wasserstein(sample, self.targets[target])
            for sample, target, weight in zip(samples, cells.targets, cells.weights, strict=True)
            if target >= 0
        )
        each = [loss.losses(eta, self.problem.outcomes[rows]) for eta, rows in zip(predictors, self.rows, strict=True)]
        parts = zip(self.problem.share, each, self.weights, strict=True)
        return disparity, float(sum(share * np.average(losses, weights=weights) for share, losses, weights in parts))

    def _predictors(self, theta: NDArray[Any]) -> list[Floats]:
        models = [theta[group if len(theta) > 1 else 0].astype(np.float64) for group in self.problem.cells.groups]
        return [
            np.asarray(X @ model[:-1], dtype=np.float64) + model[-1]
            for X, model in zip(self.features, models, strict=True)
        ]


@dataclass(eq=False)
class History:
    """Records of a run, and the best model among them."""

    monitor: Monitor
    objective: Callable[[float, float], float]
    records: list[tuple[int, float, float]] = field(default_factory=list)
    best: float = np.inf
    theta: Any = None
    snapshot: Any = None

    def add(self, update: int, theta: Floats, snapshot: Any) -> None:
        """Measure a model, record it, and keep it if it is the best so far."""
        disparity, loss = self.monitor.measure(theta)
        self.records.append((update, disparity, loss))
        value = self.objective(disparity, loss)
        if value < self.best:
            self.best, self.theta, self.snapshot = value, theta.copy(), snapshot

    def columns(self) -> dict[str, Floats]:
        """Return the records as arrays."""
        columns = np.array(self.records, dtype=np.float64).T
        return dict(zip(("update", "disparity", "loss"), columns, strict=True))


_RECORDS = 100
_INTERRUPT_WITHIN = 0.2  # seconds

_UNUSED = np.random.default_rng(0)  # discrete transport has no features, but the loop needs a table of some


@dataclass(frozen=True, eq=False)
class Objective:
    """The function that is minimised: anchor * loss + parity * weighted sum of distances."""

    parity: float
    anchor: float
    ridge: float
    dual: DualProblem | None
    dual_step: float

    def total(self, disparity: float, loss: float) -> float:
        """Return the value of the objective, without the ridge."""
        return self.parity * disparity + self.anchor * loss


@dataclass(eq=False)
class Result:
    """Result of a run."""

    theta: Floats
    features: Any
    duals: Floats
    target_duals: Floats
    n_updates: int
    outcome: str
    history: dict[str, Floats]


class Trainer:
    """A run of the paper's stochastic algorithm.

    `advance` does updates; `run` goes to the end and adds a history, a progress bar, a prompt response to Ctrl-C and
    recovery from divergence.

    Parameters
    ----------
    problem, objective, steps : TrainingProblem, Objective, ParameterSteps
        Rows, what is minimised on them, and step sizes of the parameters.
    theta : ndarray of shape (n_models, n_columns + 1)
        Parameters of the initial model, the intercept last: one row, or one for each group.
    batch_size : int
        Rows drawn of each cell, and scores of each target, in each update.
    seed : int
        Seed of the draws.
    budget : int, default=0
        Updates that the steps were chosen for.

    Attributes
    ----------
    done, summed : int
        Updates done, and iterates in the average.

    Notes
    -----
    The algorithm is written out in `fairtransport.transport.reference`; the loop is
    `fairtransport.transport.kernels.sgd.run_updates`.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, COT Algorithm.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        objective: Objective,
        steps: ParameterSteps,
        *,
        theta: Floats,
        batch_size: int,
        seed: int,
        budget: int = 0,
    ) -> None:
        self.objective, self.steps = objective, steps
        self.batch_size, self.seed, self.done, self.summed, self.budget = batch_size, seed, 0, 0, budget
        self._chunk = 16  # updates between two looks at the clock
        dtype, n_cells = problem.X.dtype, len(problem.cells)
        features = objective.dual.features if objective.dual else draw_features(1, 1.0, _UNUSED)
        table = features.tabulate(dtype)
        self._transport = _transport(objective.dual, table)
        self._workspace = make_workspace(theta.shape, table.basis.shape, batch=batch_size, dtype=dtype)
        duals, target_duals = (np.zeros((n_cells, table.basis.shape[1]), dtype) for _ in range(2))
        self._state = updates.State(np.array(theta, dtype), np.zeros(theta.shape), duals, target_duals)
        self._scale = steps.scale.astype(dtype)
        self._load(problem)

    def _load(self, problem: TrainingProblem) -> None:
        self.problem, self._batches = problem, problem.batches(self.seed, self.batch_size)

    def advance(self, n_updates: int, *, average_from: int = 0) -> None:
        """Do ``n_updates`` updates; iterates from update ``average_from`` on are averaged."""
        n_updates = check_count(n_updates, name="n_updates", least=0)
        average_from = check_count(average_from, name="average_from", least=0)
        objective, steps = self.objective, self.steps
        updates.run_updates(
            self.done,
            n_updates,
            average_from,
            self._batches,
            updates.Objective(
                float(objective.parity),
                float(objective.anchor),
                float(objective.ridge),
                self.problem.loss.link,
                self.problem.share,
                self.problem.cells.weights,
                self._transport,
            ),
            updates.Steps(float(objective.dual_step), float(steps.size), float(steps.decay), self._scale),
            self._state,
            self._workspace,
        )
        self.summed += max(0, self.done + n_updates - max(average_from, self.done))
        self.done += n_updates

    def switch(self, problem: TrainingProblem) -> None:
        """Continue with other rows of the same columns and groups; parameters, dual variables and draws go on."""
        same = problem.n_columns == self.problem.n_columns and problem.X.dtype == self.problem.X.dtype
        same = same and np.array_equal(problem.cells.targets, self.problem.cells.targets)
        if not same or problem.groups.labels != self.problem.groups.labels:
            raise ValueError("switch needs the same columns, dtype, groups and strata as before.")
        self._load(problem)

    @property
    def theta(self) -> Floats:
        """The current parameters, the intercept last."""
        return self._state.theta.astype(np.float64)

    @property
    def duals(self) -> Floats:
        """Coefficients of the cells' dual variables."""
        return self._state.duals[:, : self._n_features].astype(np.float64)

    @property
    def target_duals(self) -> Floats:
        """Coefficients of the target's dual variables, one row for each cell."""
        if self.objective.dual and self.objective.dual.opposite:
            return -self.duals
        return self._state.target_duals[:, : self._n_features].astype(np.float64)

    @property
    def _n_features(self) -> int:
        return len(self.objective.dual.features) if self.objective.dual else 0

    def averaged(self) -> Floats:
        """Return the mean of the averaged iterates, or the current one where there are none."""
        return self._state.theta_sum / self.summed if self.summed else self.theta

    def forget_average(self) -> None:
        """Start the average of iterates anew."""
        self._state.theta_sum[:] = 0.0
        self.summed = 0

    def run(self, n_updates: int, *, average: bool, verbose: bool, title: str) -> Result:
        """Run ``n_updates`` updates, or until Ctrl-C; ``average`` returns the mean of the second half of the iterates.

        A run that diverged for good, was interrupted or ended worse than it began returns the best model so far, with a
        ConvergenceWarning.
        """
        history = History(Monitor(self.problem, np.random.default_rng(self.seed)), self.objective.total)
        history.add(0, self.theta, self._snapshot())
        try:
            with progress(title, n_updates, show=verbose) as bar:
                theta, outcome = self._run_with_recovery(n_updates, history, bar, average=average)
        except KeyboardInterrupt:
            theta = history.theta
            outcome = f"interrupted after {self.done} of {n_updates} updates; the best model so far is kept"
            warn_caller(f"Training was {outcome}.", ConvergenceWarning)
        return Result(
            theta,
            self.objective.dual.features if self.objective.dual else None,
            self._by_group(self.duals),
            self._by_group(self.target_duals),
            self.done,
            outcome,
            history.columns(),
        )

    def _by_group(self, duals: Floats) -> Floats:
        """Return the finite sum over the cells of each group."""
        cells = self.problem.cells
        sums = np.zeros((len(self.problem.groups), duals.shape[1]))
        np.add.at(sums, cells.groups, cells.weights[:, None] * np.nan_to_num(duals, nan=0.0, posinf=0.0, neginf=0.0))
        return sums

    def _run_with_recovery(self, n_updates: int, history: History, bar: Any, *, average: bool) -> tuple[Floats, str]:
        """Return the parameters at the end, and the outcome."""
        record_every = max(1, -(-n_updates // _RECORDS))
        average_from = n_updates // 2 if average else n_updates
        n_divergences = last_divergence = 0
        while self.done < n_updates:
            self._advance_to(min(self.done + record_every, n_updates), average_from=average_from)
            if self._is_finite():
                history.add(self.done, self.averaged(), self._snapshot())
                bar.advance(self.done, f"disparity {history.records[-1][1]:.4f}")
                continue
            last_divergence, n_divergences = self.done, n_divergences + 1
            if n_divergences > RECOVERIES:
                return history.theta, self._warn_of_failure(f"diverged near update {self.done}")
            self._restart(history.snapshot)
            self._warn_of_recovery()
        theta = self.averaged()
        initial, value = history.records[0][1:], self.objective.total(*history.monitor.measure(theta))
        if value > self.objective.total(*initial) + WORSE * (self.objective.anchor + self.objective.parity):
            return history.theta, self._warn_of_failure("ended worse than it began")
        outcome = f"ran all {n_updates} updates"
        if n_divergences:
            outcome = f"diverged near update {last_divergence}, went back and on with smaller steps; {outcome}"
        return theta, outcome

    def _advance_to(self, end: int, *, average_from: int) -> None:
        # Chunks are short enough for a prompt response to Ctrl-C, and so long that the calls cost nothing.
        while self.done < end:
            began, size = time.perf_counter(), min(self._chunk, end - self.done)
            self.advance(size, average_from=average_from)
            elapsed = time.perf_counter() - began
            if elapsed < 0.5 * _INTERRUPT_WITHIN and size == self._chunk:
                self._chunk *= 2
            elif elapsed > _INTERRUPT_WITHIN:
                self._chunk = max(1, self._chunk // 2)

    def _is_finite(self) -> bool:
        state = self._state
        return all(np.isfinite(part).all() for part in (state.theta, state.duals, state.target_duals))

    def _snapshot(self) -> tuple[NDArray[Any], ...]:
        return self._state.theta.copy(), self._state.duals.copy(), self._state.target_duals.copy()

    def _restart(self, snapshot: tuple[NDArray[Any], ...]) -> None:
        """Go back to a snapshot and on with smaller steps."""
        self._state.theta[:], self._state.duals[:], self._state.target_duals[:] = snapshot
        self.steps = replace(self.steps, size=self.steps.size * SMALLER_STEPS)
        self.objective = replace(self.objective, dual_step=self.objective.dual_step * SMALLER_STEPS)
        self.forget_average()

    @staticmethod
    def _warn_of_recovery() -> None:
        warn_caller(
            f"Training diverged; it went back to the best model so far and on with steps {1 / SMALLER_STEPS:.0f} times "
            "smaller.",
            ConvergenceWarning,
        )

    @staticmethod
    def _warn_of_failure(event: str) -> str:
        outcome = f"{event}; the best model so far is kept"
        warn_caller(
            f"Training {outcome}. Leave dual_step and parameter_step at None or make them smaller; l2 with a strength "
            "near 0.1 and a kernel_variance near 0.1 is safest.",
            ConvergenceWarning,
        )
        return outcome


def _transport(dual: DualProblem | None, table: Any) -> Transport:
    """Return the distance as the compiled loop reads it."""
    if dual is None:
        return Transport(DISCRETE, 1.0, opposite=False, all_pairs=False, table=table)
    return Transport(
        dual.regularizer.code,
        float(dual.strength),
        opposite=bool(dual.opposite),
        all_pairs=dual.pairs == "all",
        table=table,
    )


# Step sizes of the stochastic solver and of online updates.

_ROWS_PER_GROUP = 5_000  # enough for the largest eigenvalue
_BLOCK = 50_000  # rows


@dataclass(frozen=True, eq=False)
class ParameterSteps:
    """Step sizes of the parameters."""

    size: float
    scale: Floats
    decay: float = 0.0
    matrix: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))
    noise: float = 0.0

    def without_intercept(self) -> ParameterSteps:
        """Return steps that do not move the intercept."""
        scale, matrix = self.scale.copy(), self.matrix.copy()
        scale[-1:], matrix[:, -1:, :], matrix[:, :, -1:] = 0.0, 0.0, 0.0
        return replace(self, scale=scale, matrix=matrix)


def plain_steps(size: float, n_columns: int) -> ParameterSteps:
    """Return the paper's step: the same for every parameter."""
    return ParameterSteps(size, np.ones(n_columns + 1))


def automatic_steps(
    X: Any,
    group_rows: Sequence[Ints],
    *,
    batch_size: int,
    n_updates: int,
    weight: float,
    ridge: float | Floats,
    rng: np.random.Generator,
) -> ParameterSteps:
    """Return step sizes that follow from the scale of the features, the batch size and the weight of the objective.

    Notes
    -----
    In units where every column has mean square near 1 (in the group where it is largest), gradient descent on
    a loss of curvature c is stable for steps below 2 / (c * L), L the largest eigenvalue of the columns'
    second moments, groups weighing equally; drawing batches of N rows adds trace / N to L. The step is a fixed
    fraction of that bound, so that the trajectory of the scores does not depend on the scale of a column. It
    decreases linearly to a twentieth, which averages out the noise of small batches.
    """
    moments = [_squares(X, rows) for rows in group_rows]
    largest_mean = np.append(np.max([mean for mean, _ in moments], axis=0), 1.0)
    mean = np.append(np.mean([mean for mean, _ in moments], axis=0), 1.0)
    peak = np.append(np.max([peak for _, peak in moments], axis=0), 1.0)
    present = largest_mean > 0
    scale = np.zeros(len(mean))
    damping = RARE_SHARE * peak + np.append(np.broadcast_to(ridge, X.shape[1]), np.min(ridge)) / weight
    scale[present] = 1.0 / (largest_mean[present] + damping[present])
    bound = _largest_eigenvalue(X, group_rows, scale, rng) + float(scale @ mean) / batch_size
    return ParameterSteps(STABLE_FRACTION / (weight * bound), scale, STEP_DECAY / n_updates)


def whitened_steps(
    X: Any, group_rows: Sequence[Ints], *, batch_size: int, weight: float, ridge: Floats, rng: np.random.Generator
) -> ParameterSteps:
    """Return steps that also undo the correlation of the columns, which must be standardized."""
    each = (_second_moments(X, rows, rng) for rows in group_rows)
    # Summed one at a time: sixty groups of 800 columns would fill 300 MB.
    moments = (sum(each, start=np.zeros(())) / len(group_rows))[None]
    damping = np.diag(RARE_SHARE + np.append(ridge, 0.0) / weight)
    matrix = np.asarray(np.linalg.inv(moments + damping), dtype=np.float64)
    noise = float(np.einsum("mij,mji->m", matrix, moments).max()) / batch_size
    return ParameterSteps(STABLE_FRACTION / (weight * (1.0 + noise)), np.ones(X.shape[1] + 1), 0.0, matrix, noise)


def _draw(rows: Ints, rng: np.random.Generator) -> Ints:
    return rows if len(rows) <= _ROWS_PER_GROUP else np.sort(rng.choice(rows, _ROWS_PER_GROUP, replace=False))


def _second_moments(X: Any, rows: Ints, rng: np.random.Generator) -> Floats:
    """Return the second moments of the columns and a one, estimated from some of the rows."""
    drawn = _draw(rows, rng)
    part = X[drawn].astype(np.float64)
    square = part.T @ part
    total = np.asarray(part.sum(axis=0)).ravel()
    moments = np.empty((len(total) + 1, len(total) + 1))
    moments[:-1, :-1] = square.toarray() if sparse.issparse(square) else square
    moments[-1, :-1] = moments[:-1, -1] = total
    moments[-1, -1] = len(drawn)
    return moments / len(drawn)


def _squares(X: Any, rows: Ints) -> tuple[Floats, Floats]:
    """Return the mean and the largest square of each column over some rows."""
    total, peak = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for first in range(0, len(rows), _BLOCK):
        part = X[rows[first : first + _BLOCK]]
        square = part.multiply(part).tocsc() if sparse.issparse(part) else np.square(part, dtype=np.float64)
        total += np.asarray(square.sum(axis=0)).ravel()
        most = square.max(axis=0)
        peak = np.maximum(peak, np.asarray(most.todense() if sparse.issparse(most) else most).ravel())
    return total / len(rows), peak


def _largest_eigenvalue(X: Any, group_rows: Sequence[Ints], scale: Floats, rng: np.random.Generator) -> float:
    """Return the largest eigenvalue of the scaled second moments, groups weighing equally, by power iteration."""
    drawn = [_draw(rows, rng) for rows in group_rows]
    share = np.concatenate([np.full(len(rows), 1.0 / (len(rows) * len(drawn))) for rows in drawn])
    part = X[np.concatenate(drawn)].astype(np.float64)
    root = np.sqrt(scale)
    direction, largest = rng.normal(size=len(scale)), 0.0
    for _ in range(12):
        scaled = root * direction / np.linalg.norm(direction)
        logits = share * (part @ scaled[:-1] + scaled[-1])
        direction = root * np.append(part.T @ logits, logits.sum())
        largest = float(np.linalg.norm(direction))
    return largest
