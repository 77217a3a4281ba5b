"""A fixed part of the training rows on which a run is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.solvers.sgd_problem import TrainingProblem

__all__ = ["Watch"]

_PER_GROUP = 1000


class Watch:
    """Measures models on up to 1,000 rows of each group."""

    def __init__(self, problem: TrainingProblem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rows = [
            rows if len(rows) <= _PER_GROUP else np.sort(rng.choice(rows, _PER_GROUP, replace=False))
            for rows in problem.groups.rows
        ]
        self.features = [problem.X[rows] for rows in self.rows]
        self.weights = [self._weights_of(rows) for rows in self.rows]
        self.target = Sample.from_values(problem.target)

    def _weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        if self.problem.weights is None or not self.problem.weights[rows].sum() > 0:
            return None
        return self.problem.weights[rows]

    def measure(self, theta: NDArray[Any]) -> tuple[float, float]:
        """Return the sum of the Wasserstein-1 distances to the target, and the log-loss."""
        logits = self._logits(theta)
        samples = [Sample.from_values(sigmoid(own), mass) for own, mass in zip(logits, self.weights, strict=True)]
        disparity = sum(wasserstein(own, self.target) for own in samples)
        losses = zip(self.problem.share, self._losses(logits), self.weights, strict=True)
        return disparity, float(sum(share * np.average(loss, weights=weight) for share, loss, weight in losses))

    def _logits(self, theta: NDArray[Any]) -> list[NDArray[np.float64]]:
        own = [theta[a if len(theta) > 1 else 0].astype(np.float64) for a in range(len(self.rows))]
        return [
            np.asarray(X @ mine[:-1], dtype=np.float64) + mine[-1] for X, mine in zip(self.features, own, strict=True)
        ]

    def _losses(self, logits: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        labels = self.problem.labels
        return [np.logaddexp(0.0, z) - labels[rows] * z for z, rows in zip(logits, self.rows, strict=True)]
