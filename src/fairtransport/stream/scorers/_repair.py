"""Quantile repairs in a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._sklearn.estimator_calls import model_scores
from fairtransport.criteria import needs_labels
from fairtransport.histograms import Grid
from fairtransport.stream.scorers._base import Scorer
from fairtransport.transport.line import QuantileMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["RepairScorer"]

_ROWS_AFTER_ALARM = 500.0  # total weight of the counts of a repair after an alarm


class RepairScorer(Scorer):
    """Scorer of `QuantileRepair`, for a column of scores, and of the classifier and the regressor with a repair.

    Notes
    -----
    `distance` is the mean absolute change of the repaired scores over the counted rows, relative to the range of the
    scores, in the group where it is largest. `project` mixes the repaired scores with those of the center.
    """

    default_radius = 0.2

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        _check_criterion(self.repair)
        self._center: RepairScorer | None = None
        self._weight = 1.0  # of the model against the center

    @property
    def repair(self) -> Any:
        """The `QuantileRepair`."""
        return getattr(self.model, "repair_", self.model)

    @property
    def has_histograms(self) -> bool:
        """Whether the repair has learned from a stream since `fit` or `frozen`."""
        return hasattr(self.repair, "counted_")

    @property
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""
        return self.repair.groups_

    @property
    def grid(self) -> Grid:
        """Range of the scores; of one that is learned, that on which a stream is counted."""
        if self.repair.grid_ is not None:
            return self.repair.grid_
        return self.repair.online_state().histograms.grid if self.repair.extrapolates else Grid(*self.repair.range_)

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Training rows of each group."""
        return np.asarray(self.repair.group_sizes_)

    def _score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        return self._repaired(self._raw_scores(X), groups)

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch; any number of updates above 0 has the same effect."""
        if updates:
            self.repair.partial_fit(self._raw_scores(X), sensitive_features=groups)

    def learn_new_groups(self, X: Any, groups: Groups) -> None:
        """Learn from a batch with new groups."""
        self.learn(X, groups, 1)

    def discount_past(self) -> None:
        """Reduce the weight of rows before an alarm."""
        if self.has_histograms:
            state = self.repair.online_state()
            share = min(1.0, _ROWS_AFTER_ALARM / float(state.histograms.weights.sum()))
            self.repair.resume(state.forget(share))

    def add_groups(self, groups: Groups) -> None:
        """Add the groups that the model does not know, without learning from rows."""
        if len(groups) == len(self.groups):
            return
        if self.has_histograms:
            self.repair.resume(self.repair.online_state().add_groups(groups))
        else:
            self.repair.use_maps(self.repair.group_maps().with_identity_maps(groups, self.grid))

    def distance(self, other: RepairScorer) -> float:
        """Return the distance to another state of the same model."""
        if not self.has_histograms:
            return 0.0
        histograms = self.repair.counted_
        n_groups, nodes = len(self.groups), histograms.grid.nodes
        codes = np.repeat(np.arange(n_groups, dtype=np.uint16), nodes.size)
        groups = replace(self.groups, memberships=(codes,))
        scores = np.tile(nodes, n_groups)
        change = np.abs(self._repaired(scores, groups) - other._repaired(scores, groups))
        shares = histograms.by_group / histograms.by_group.sum(axis=1, keepdims=True)
        means = (change.reshape(n_groups, -1) * shares).sum(axis=1)
        return float(means.max() / (histograms.grid.high - histograms.grid.low))

    def project(self, center: RepairScorer, radius: float) -> bool:
        """Move the model into the trust region; return whether it was outside."""
        self._center, self._weight = None, 1.0
        distance = self.distance(center)
        if distance <= radius:
            return False
        self._center, self._weight = center, radius / distance
        return True

    def target(self) -> None:
        """Return None: the target of a repair follows the groups."""

    def restore_projection(self, center: RepairScorer, radius: float) -> None:
        """Repeat the last `project`: a file does not store the mixture."""
        self.project(center, radius)

    def frozen(self) -> RepairScorer:
        """Return a copy with the same scores that does not learn."""
        frozen, maps = self.copy(), self.repair.group_maps()
        if self._center is not None:
            maps = replace(maps, maps=tuple(self._mixed_map(group) for group in range(len(self.groups))))
        frozen.repair.use_maps(maps)
        return frozen

    def _mixed_map(self, group: int) -> QuantileMap:
        """Return the map of a group from raw scores to the mixture."""
        knots = self.repair.maps_[group].knots
        codes = np.full(knots.size, group, dtype=np.uint16)
        amount = float(self.repair.amount)
        mixed = self._repaired(knots, replace(self.groups, memberships=(codes,)))
        images = knots if amount == 0.0 else (mixed - (1.0 - amount) * knots) / amount
        return QuantileMap(knots, np.maximum.accumulate(images)).prepare()

    @classmethod
    def unpack(cls, content: bytes) -> Self:
        """Invert `pack`."""
        scorer = super().unpack(content)
        if scorer.has_histograms:  # a file stores summaries of the maps; those of the counts are exact
            scorer.repair.resume(scorer.repair.online_state().refit())
        return scorer

    def _parts(self) -> tuple[Any, ...]:
        return self, self.model, self.repair

    def _raw_scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores before repair."""
        if self.model is self.repair:
            return np.asarray(X, dtype=np.float64).reshape(-1)
        return model_scores(self.model.estimator_, X)

    def _repaired(self, scores: NDArray[np.float64], groups: Groups) -> NDArray[np.float64]:
        repaired = np.asarray(self.repair.transform(scores, sensitive_features=groups, unknown_group="pooled"))
        if self._center is None:
            return repaired
        return self._weight * repaired + (1.0 - self._weight) * self._center._repaired(scores, groups)  # noqa: SLF001


def _check_criterion(repair: Any) -> None:
    """Raise for a repair that a stream without labels and strata cannot keep up to date."""
    if needs_labels(repair.criterion):
        raise ValueError(
            f"A stream has no labels, and a repair with criterion={repair.criterion!r} learns from them: call "
            "partial_fit with y when labels arrive, or use criterion='demographic_parity'."
        )
    if repair.strata_ is not None:
        raise ValueError("A stream has no strata, and this repair was fitted within strata; fit one without them.")
