"""COT and DOT in a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.linear.online.state import widened_weights
from fairtransport.stream.scorers._base import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["LinearScorer"]


class LinearScorer(Scorer):
    """COT and DOT.

    Notes
    -----
    `distance` is the Euclidean length of the change of the weights, as a share of the length of the other's weights
    (of 1, where that is shorter). A weight counts in the unit of its column, which is the standard deviation or the
    largest value; the intercept is that of the mean row.
    """

    radius = 0.5

    @property
    def groups(self) -> Groups:
        """Those of the model."""
        return self.model.groups_

    def score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Return the scores."""
        own = {"sensitive_features": groups} if len(self.model.coef_) > 1 else {}
        return np.asarray(self.model.predict_proba(X, **own)[:, 1])

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Take a batch up."""
        self.model.partial_fit(X, sensitive_features=groups, updates=updates)

    def hurry(self) -> None:
        """Do nothing: its sketches notice by themselves, and it spends more updates."""

    def widen(self, groups: Groups) -> None:
        """Know these groups, too."""
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
        """How far it is from another state."""
        base = self._in_units(other._theta)[:, :-1]
        change = self._in_units(self._theta - other._theta)
        return float(np.linalg.norm(change)) / max(1.0, float(np.linalg.norm(base)))

    def hold(self, centre: LinearScorer, radius: float) -> bool:
        """Go back into the trust region."""
        far = self.distance(centre)
        if far <= radius:
            return False
        step = (radius / far - 1.0) * (self._theta - centre._theta)
        theta, state = self._theta + step, self.model.adjusting_
        state = replace(state, sketches=state.sketches.moved(step))
        self.model._take_over(state, theta, self.groups, 0)  # noqa: SLF001 - no public name
        return True

    def frozen(self) -> Any:
        """Return a copy that will not learn."""
        made = self.copy()
        vars(made.model).pop("adjusting_", None)
        return made

    def target(self) -> NDArray[np.float64] | None:
        """Return the fixed target, if there is one."""
        return None if self.model._each_other else np.asarray(self.model.target_)  # noqa: SLF001 - no public name

    def duals(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the dual variables at these points."""
        held = getattr(self.model, "duals_", None)
        return None if held is None else held(points)

    @property
    def _theta(self) -> NDArray[np.float64]:
        return np.column_stack((self.model.coef_, self.model.intercept_))

    def _in_units(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        state = vars(self.model).get("adjusting_")
        if state is None:
            return theta
        return np.column_stack((theta[:, :-1] * state.unit, theta[:, -1] + theta[:, :-1] @ state.origin))
