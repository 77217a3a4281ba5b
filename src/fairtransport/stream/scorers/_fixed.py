"""Models in a stream that need no group to score and learn nothing from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import is_regressor

from fairtransport._sklearn.estimator_calls import model_scores
from fairtransport.histograms import Grid
from fairtransport.stream.scorers._base import Scorer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["FixedScorer"]


class FixedScorer(Scorer):
    """Scorer of blind repair: it scores rows without their groups, and groups that are known are monitored.

    Rows without a group, and those of a group that training did not see, are scored and belong to no histogram.
    """

    default_radius = 1.0
    learns = False
    needs_groups = False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if model.strata_ is not None:
            raise ValueError("A stream has no strata, and this repair was fitted within strata; fit one without them.")

    @property
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""
        return self.model.groups_

    @property
    def grid(self) -> Grid:
        """Range of the scores: of a regressor that of most of the training rows."""
        if not is_regressor(self.model):
            return Grid()
        return Grid(float(self.model.potentials_.nodes[0]), float(self.model.potentials_.nodes[-1]))

    def encode(self, sensitive_features: Any) -> Groups:
        """Return the groups of new rows; rows without a known one belong to none."""
        return self.groups.encode(sensitive_features, unknown_group="pooled")

    def _score(self, X: Any, groups: Groups) -> NDArray[np.float64]:  # noqa: ARG002
        return model_scores(self.model, X)

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Do nothing."""

    def add_groups(self, groups: Groups) -> None:
        """Do nothing: there are no new groups."""

    def distance(self, other: FixedScorer) -> float:  # noqa: ARG002
        """Return 0: the model does not change."""
        return 0.0

    def project(self, center: FixedScorer, radius: float) -> bool:  # noqa: ARG002
        """Return False: the model is where it was."""
        return False

    def target(self) -> None:
        """Return None: there is no fixed target."""

    def copy(self) -> FixedScorer:
        """Return a scorer of the same model, which nobody changes."""
        return type(self)(self.model)

    def frozen(self) -> FixedScorer:
        """Return a scorer of the same model."""
        return self.copy()
