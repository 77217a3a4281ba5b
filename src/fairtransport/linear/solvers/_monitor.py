"""Progress of a stochastic run, measured on a fixed sample of the training rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.line import Sample, wasserstein

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.linear.solvers.sgd_problem import TrainingProblem

__all__ = ["History", "Monitor"]

_ROWS_PER_CELL = 1000


class Monitor:
    """Disparity and loss of a model on up to 1,000 training rows of each cell.

    Parameters
    ----------
    problem : TrainingProblem
    rng : numpy.random.Generator
        Draws the rows.
    """

    def __init__(self, problem: TrainingProblem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rows = [
            rows if len(rows) <= _ROWS_PER_CELL else np.sort(rng.choice(rows, _ROWS_PER_CELL, replace=False))
            for rows in problem.cells.rows
        ]
        self.features = [problem.X[rows] for rows in self.rows]
        self.weights = [self._row_weights(rows) for rows in self.rows]
        self.targets = [Sample.from_values(target) for target in problem.targets]

    def _row_weights(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
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

    def _predictors(self, theta: NDArray[Any]) -> list[NDArray[np.float64]]:
        models = [theta[group if len(theta) > 1 else 0].astype(np.float64) for group in self.problem.cells.groups]
        return [
            np.asarray(X @ model[:-1], dtype=np.float64) + model[-1]
            for X, model in zip(self.features, models, strict=True)
        ]


@dataclass(eq=False)
class History:
    """Records of a run, and the best model among them.

    Attributes
    ----------
    monitor : Monitor
    objective : callable
        Maps disparity and loss to the value that is minimised.
    records : list of (update, disparity, loss)
    best : float
        The lowest value so far.
    theta, snapshot : object
        The model that had it, and the solver's state then.
    """

    monitor: Monitor
    objective: Callable[[float, float], float]
    records: list[tuple[int, float, float]] = field(default_factory=list)
    best: float = np.inf
    theta: Any = None
    snapshot: Any = None

    def add(self, update: int, theta: NDArray[np.float64], snapshot: Any) -> None:
        """Measure a model, record it, and keep it if it is the best so far."""
        disparity, loss = self.monitor.measure(theta)
        self.records.append((update, disparity, loss))
        value = self.objective(disparity, loss)
        if value < self.best:
            self.best, self.theta, self.snapshot = value, theta.copy(), snapshot

    @property
    def initial_value(self) -> float:
        """The value of the first record."""
        return self.objective(*self.records[0][1:])

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the records as arrays."""
        columns = np.array(self.records, dtype=np.float64).T
        return dict(zip(("update", "disparity", "loss"), columns, strict=True))
