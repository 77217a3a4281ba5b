"""Models in a stream that learn nothing from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor

from fairtransport._columns import short_type
from fairtransport._sklearn.estimator_calls import last_step, model_scores
from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport.groups import Groups
from fairtransport.histograms import Grid
from fairtransport.stream.scorers._base import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FixedScorer"]

_UNNAMED = ("sensitive_feature_0",)
_NAMES_OF_SCALE = (("y_mean_", "y_center_"), ("y_std_", "y_scale_"))  # of linear models, and of boosted trees
_DEVIATIONS = 4.0


class FixedScorer(Scorer):
    """Scorer of any model that has scores: groups that it knows are monitored, and it is not adjusted.

    Rows without a known group are scored where the model does not need the group, and belong to no histogram. A model
    that was trained without groups has none to monitor; neither has a regressor whose range is unknown.
    """

    default_radius = 1.0
    learns = False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.needs_groups = needs_groups(model)
        self._last = last_step(model)[1]
        self._repair = vars(self._last).get("repair_")
        self._range = _range_of_predictions(self._last, self._repair)
        repair = self._last if hasattr(self._last, "potentials_") else self._repair
        if getattr(repair, "strata_", None) is not None:
            raise ValueError("A stream has no strata, and this repair was fitted within strata; fit one without them.")

    @property
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""
        known = vars(self._last).get("groups_") or getattr(self._repair, "groups_", None)
        if isinstance(known, Groups) and (not is_regressor(self._last) or self._range is not None):
            return known
        return Groups((), (), (np.empty(0, dtype=short_type(0)),), _UNNAMED, "crossed", "error")

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Training rows of each group; equal numbers where the model does not have them."""
        sizes = getattr(self._repair, "group_sizes_", vars(self._last).get("group_sizes_"))
        return np.ones(len(self.groups), dtype=np.int64) if sizes is None else np.asarray(sizes)

    @property
    def adopts_groups(self) -> bool:
        """Whether groups that the model does not know are added to it: they are not."""
        return False

    @property
    def grid(self) -> Grid:
        """Range of the scores: of a regressor that of most of the training rows, where it is known."""
        return Grid() if self._range is None else self._range

    def _score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        given = groups if self.needs_groups else None
        return model_scores(self.model, X, sensitive_features=given, unknown_group="pooled")

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
        """Return a scorer of the same model, which does not change."""
        return type(self)(self.model)

    def frozen(self) -> FixedScorer:
        """Return a scorer of the same model."""
        return self.copy()


def _range_of_predictions(model: Any, repair: Any) -> Grid | None:
    """Return the range in which a regressor's predictions are counted; None where it is unknown."""
    if not is_regressor(model):
        return None
    if hasattr(model, "potentials_"):
        return Grid(float(model.potentials_.nodes[0]), float(model.potentials_.nodes[-1]))
    if repair is not None:
        return Grid(*repair.range_)
    center, scale = (vars(model).get(one, vars(model).get(other)) for one, other in _NAMES_OF_SCALE)
    if center is None or scale is None:
        return None
    return Grid(float(center - _DEVIATIONS * scale), float(center + _DEVIATIONS * scale))
