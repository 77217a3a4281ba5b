"""Linear transport classifiers in a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport.linear.online.state import widened_weights
from fairtransport.stream.scorers._base import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["LinearScorer"]


class LinearScorer(Scorer):
    """Scorer of continuous and discrete optimal transport classifiers (COT, DOT).

    Notes
    -----
    `distance` is the Euclidean norm of the change of the weights, relative to the norm of the other model's weights, or
    to 1 if that is larger. A weight is measured in the unit of its column, the standard deviation or the largest value,
    and the intercept at the mean row.
    """

    default_radius = 0.5

    @property
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""
        return self.model.groups_

    def score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Return the scores of rows of known groups."""
        group_aware = {"sensitive_features": groups} if needs_groups(self.model) else {}
        return np.asarray(self.model.predict_proba(X, **group_aware)[:, 1])

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch by so many updates; 0 leaves the scores unchanged."""
        self.model.partial_fit(X, sensitive_features=groups, updates=updates)

    def add_groups(self, groups: Groups) -> None:
        """Add the groups that the model does not know, without learning from rows."""
        n_new, theta = len(groups) - len(self.groups), widened_weights(self._theta, len(groups))
        if n_new == 0:
            return
        state = vars(self.model).get("adjusting_")
        if state is not None:
            wider = state.widened(len(groups), each_other=self.model._each_other)  # noqa: SLF001 - no public name
            self.model._take_over(wider, theta, groups, n_new)  # noqa: SLF001
            return
        self.model.coef_, self.model.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        self.model.groups_ = groups

    def distance(self, other: LinearScorer) -> float:
        """Return the distance to another state of the same model."""
        base = self._in_units(other._theta)[:, :-1]
        change = self._in_units(self._theta - other._theta)
        return float(np.linalg.norm(change)) / max(1.0, float(np.linalg.norm(base)))

    def project(self, center: LinearScorer, radius: float) -> bool:
        """Move the model into the trust region; return whether it was outside."""
        distance = self.distance(center)
        if distance <= radius:
            return False
        step = (radius / distance - 1.0) * (self._theta - center._theta)
        theta, state = self._theta + step, self.model.adjusting_
        state = replace(state, sketches=state.sketches.moved(step))
        self.model._take_over(state, theta, self.groups, 0)  # noqa: SLF001 - no public name
        return True

    def frozen(self) -> LinearScorer:
        """Return a copy with the same scores that does not learn."""
        frozen = self.copy()
        vars(frozen.model).pop("adjusting_", None)
        return frozen

    def target(self) -> NDArray[np.float64] | None:
        """Return the fixed target as points of equal mass in [0, 1]; None without one."""
        return None if self.model._each_other else np.asarray(self.model.target_)  # noqa: SLF001 - no public name

    def duals(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return each group's dual potential at these points; None for a model without."""
        duals = getattr(self.model, "duals_", None)
        return None if duals is None else np.asarray(duals(points))

    @property
    def _theta(self) -> NDArray[np.float64]:
        return np.column_stack((self.model.coef_, self.model.intercept_))

    def _in_units(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        state = vars(self.model).get("adjusting_")
        if state is None:
            return theta
        return np.column_stack((theta[:, :-1] * state.unit, theta[:, -1] + theta[:, :-1] @ state.origin))
