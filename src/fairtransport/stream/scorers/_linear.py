"""Linear transport classifiers and regressors in a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor

from fairtransport._sklearn.estimator_calls import model_scores
from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport.criteria import needs_labels
from fairtransport.histograms import Grid
from fairtransport.stream.scorers._base import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.online.state import OnlineState

__all__ = ["LinearScorer"]

_DEVIATIONS = 4.0  # predictions farther from the mean of y are counted there


class LinearScorer(Scorer):
    """Scorer of classifiers and regressors by continuous and discrete optimal transport (COT, DOT).

    Notes
    -----
    `distance` is the Euclidean norm of the change of the weights, relative to the norm of the other model's weights, or
    to 1 if that is larger. A weight is measured in the unit of its column, the standard deviation or the largest value,
    and the intercept at the mean row; of a regressor for a standardised y.
    """

    default_radius = 0.5

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.needs_groups = needs_groups(model)
        if needs_labels(model.criterion) or getattr(model, "strata_", None) is not None:
            criterion = model.criterion.replace("_", " ") if needs_labels(model.criterion) else "conditional parity"
            needed = "labels" if needs_labels(model.criterion) else "strata"
            raise ValueError(
                f"A stream without {needed} cannot maintain {criterion}, which this model was trained for. Update it "
                f"with partial_fit, which takes {needed}, or train a model for demographic parity."
            )

    @property
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""
        return self.model.groups_

    @property
    def grid(self) -> Grid:
        """Range of the scores: of a regressor four standard deviations of y to both sides of its mean."""
        if not is_regressor(self.model):
            return Grid()
        width = _DEVIATIONS * self.model.y_std_
        return Grid(self.model.y_mean_ - width, self.model.y_mean_ + width)

    def _score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        given = groups if self.needs_groups else None
        return model_scores(self.model, X, sensitive_features=given, unknown_group="pooled")

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch by so many updates; 0 leaves the scores unchanged."""
        self.model.partial_fit(X, sensitive_features=groups, updates=updates)
        if not np.isfinite(self._state.theta).all():
            raise ValueError("The weights are not finite numbers after this batch: features are too large.")

    def add_groups(self, groups: Groups) -> None:
        """Add the groups that the model does not know, without learning from rows."""
        if len(groups) > len(self.groups):
            self.model.set_online_state(self._state.widened(groups))

    def distance(self, other: LinearScorer) -> float:
        """Return the distance to another state of the same model."""
        theta, reference = self._state.theta, other._state.theta
        base, change = self._in_units(reference)[:, :-1], self._in_units(theta - reference)
        return float(np.linalg.norm(change)) / max(1.0, float(np.linalg.norm(base)))

    def project(self, center: LinearScorer, radius: float) -> bool:
        """Move the model into the trust region; return whether it was outside."""
        distance = self.distance(center)
        if distance <= radius:
            return False
        state = self._state
        change = (radius / distance - 1.0) * (state.theta - center._state.theta)
        self.model.set_online_state(state.moved(change))
        return True

    def frozen(self) -> LinearScorer:
        """Return a copy with the same scores that does not learn."""
        frozen = self.copy()
        frozen.model.set_online_state(self._state.without_memory())
        return frozen

    def target(self) -> NDArray[np.float64] | None:
        """Return the fixed target as points of equal mass in [0, 1]; None without one."""
        return None if self._state.rule.each_other else self.grid.to_unit(self.model.target_)

    def duals(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return each group's dual potential at these points; None for a model without."""
        duals = getattr(self.model, "duals_", None)
        return None if duals is None else np.asarray(duals(self.grid.from_unit(points)))

    @property
    def _state(self) -> OnlineState:
        return self.model.online_state()

    def _in_units(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        memory = self._state.memory
        return theta if memory is None else memory.to_scaled(theta)
