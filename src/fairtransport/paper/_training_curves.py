"""Training curves: Wass1 to the fixed target and Err-.5 on held-out rows during training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import Groups, make_groups
from fairtransport.metrics import error_rate
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear import Trainer
    from fairtransport.paper._cached_parts import Result, Stop

__all__ = ["Evaluator", "record_training"]


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Held-out rows, their groups and the fixed target."""

    X: Any
    y: NDArray[Any]
    groups: Groups
    target: Sample

    @classmethod
    def build(cls, X: Any, y: Any, sensitive_features: Any, target: Any, *, grouping: str = "crossed") -> Evaluator:
        """Prepare rows, labels, groups and the target's scores."""
        groups = make_groups(sensitive_features, grouping=grouping)
        return cls(X, np.asarray(y), groups, target if isinstance(target, Sample) else Sample.from_values(target))

    def scores(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of a parameter vector that all groups share, the intercept last."""
        shared = np.ravel(theta)
        return sigmoid(np.asarray(self.X @ shared[:-1], dtype=np.float64) + shared[-1])

    def measure(self, theta: NDArray[np.float64]) -> tuple[float, float]:
        """Return Wass1 to the fixed target, and Err-.5."""
        scores = self.scores(theta)
        wass1 = sum(wasserstein(scores[rows], self.target) for rows in self.groups.rows)
        return float(wass1), error_rate(self.y, scores)


def record_training(trainer: Trainer, evaluator: Evaluator, *, n_updates: int, every: int, stop: Stop) -> Result:
    """Run ``n_updates`` updates and measure after every ``every`` of them.

    Each record measures the mean of the iterates since the record before, which is less noisy than single iterates.
    ``final`` measures the mean of the second half of all iterates, which the estimators return.

    Returns
    -------
    dict of ndarray
        ``update``, ``wass1``, ``error`` (the first record is the start) and ``final_wass1``,
        ``final_error``, ``final_theta``.
    """
    records = [(trainer.done, *evaluator.measure(trainer.theta))]
    half, total, summed = trainer.done + n_updates // 2, np.zeros_like(trainer.theta), 0
    end = trainer.done + n_updates
    while trainer.done < end:
        stop.check()
        trainer.forget_average()
        size = min(every, end - trainer.done)
        trainer.advance(size, average_from=trainer.done)
        mean = trainer.averaged()
        records.append((trainer.done, *evaluator.measure(mean)))
        if trainer.done > half:
            total, summed = total + size * mean, summed + size
    theta = total / summed
    update, wass1, error = np.array(records).T
    final = evaluator.measure(theta)
    return {
        "update": update,
        "wass1": wass1,
        "error": error,
        "final_wass1": np.array(final[0]),
        "final_error": np.array(final[1]),
        "final_theta": theta,
    }
