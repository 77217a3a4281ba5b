"""Repairs in a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.streaming import NEW_GROUP_ROWS
from fairtransport.histograms import Grid
from fairtransport.repair import QuantileRepairClassifier
from fairtransport.repair.online import widened_counts
from fairtransport.stream.scorers._base import Scorer
from fairtransport.transport.line import QuantileMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["RepairScorer"]

_SHORTENED = 500.0  # rows that the memory of a repair is worth after an alarm


class RepairScorer(Scorer):
    """`QuantileRepair` on a column of scores, and `QuantileRepairClassifier`.

    Notes
    -----
    `distance` is the mean change of the repaired scores of the rows remembered, as a share of the range, in the group
    where it is largest. At the border of the trust region scores are mixed with those of the centre.
    """

    radius = 0.2

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._centre: RepairScorer | None = None
        self._share = 1.0

    @property
    def repair(self) -> Any:
        """The repair itself."""
        return self.model.repair_ if isinstance(self.model, QuantileRepairClassifier) else self.model

    @property
    def groups(self) -> Groups:
        """Those of the model."""
        return self.repair.groups_

    @property
    def grid(self) -> Grid:
        """The range of the scores."""
        return Grid() if self.repair.grid_ is None else self.repair.grid_

    def score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Return the scores."""
        return self._carried(self._given(X), groups)

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Take a batch up."""
        if updates:
            self.repair.partial_fit(self._given(X), sensitive_features=groups)

    def take_up(self, X: Any, groups: Groups) -> None:
        """Learn a batch that brings new groups."""
        self.learn(X, groups, 1)

    def hurry(self) -> None:
        """Forget faster, once."""
        counted = vars(self.repair).get("counted_")
        if counted is not None:
            share = min(1.0, _SHORTENED / float(counted.weights.sum()))
            self.repair.follow_counts(counted.forget(share))

    def widen(self, groups: Groups) -> None:
        """Know these groups, too."""
        n_new = len(groups) - len(self.groups)
        if n_new == 0:
            return
        counted = vars(self.repair).get("counted_")
        if counted is not None:
            self.repair.follow_counts(widened_counts(counted, groups, self.repair.target_))
            return
        ends = np.array([self.grid.low, self.grid.high])
        stay = QuantileMap(ends, ends).prepare()
        self.repair.maps_ = (*self.repair.maps_, *(stay for _ in range(n_new)))
        # Nobody is behind these knots; a file wants some rows behind each.
        behind = np.full(2, int(NEW_GROUP_ROWS), dtype=np.int64)
        self.repair.rows_at_knots_ = (*self.repair.rows_at_knots_, *(behind for _ in range(n_new)))
        self.repair.own_map_ = np.append(self.repair.own_map_, np.zeros(n_new, dtype=np.bool_))
        self.repair.group_sizes_ = np.append(self.repair.group_sizes_, np.zeros(n_new, dtype=np.int64))
        self.repair.groups_ = groups

    def distance(self, other: RepairScorer) -> float:
        """How far it is from another state."""
        counted = vars(self.repair).get("counted_")
        if counted is None:
            return 0.0
        n_groups, nodes = len(self.groups), counted.grid.nodes
        codes = np.repeat(np.arange(n_groups, dtype=np.uint16), nodes.size)
        groups = replace(self.groups, memberships=(codes,))
        scores = np.tile(nodes, n_groups)
        change = np.abs(self._carried(scores, groups) - other._carried(scores, groups))
        shares = counted.by_group / counted.by_group.sum(axis=1, keepdims=True)
        means = (change.reshape(n_groups, -1) * shares).sum(axis=1)
        return float(means.max() / (counted.grid.high - counted.grid.low))

    def hold(self, centre: RepairScorer, radius: float) -> bool:
        """Go back into the trust region."""
        self._centre, self._share = None, 1.0
        far = self.distance(centre)
        if far <= radius:
            return False
        self._centre, self._share = centre, radius / far
        return True

    def target(self) -> None:
        """Return the fixed target, if there is one."""
        return  # it follows the groups

    def settle(self, centre: RepairScorer, radius: float) -> None:
        """Mix as `hold` did."""
        self.hold(centre, radius)

    def frozen(self) -> Any:
        """Return a copy that will not learn."""
        made = self.copy()
        vars(made.repair).pop("counted_", None)
        if self._centre is not None:  # what is mixed becomes one map
            made.repair.maps_ = tuple(self._mixed_map(place) for place in range(len(self.groups)))
        return made

    def _mixed_map(self, place: int) -> QuantileMap:
        knots = self.repair.maps_[place].knots
        codes = np.full(knots.size, place, dtype=np.uint16)
        amount = float(self.repair.amount)
        mixed = self._carried(knots, replace(self.groups, memberships=(codes,)))
        images = knots if amount == 0.0 else (mixed - (1.0 - amount) * knots) / amount
        return QuantileMap(knots, np.maximum.accumulate(images)).prepare()

    @classmethod
    def unpack(cls, content: bytes) -> Any:
        """Undo `pack`."""
        made = super().unpack(content)
        counted = vars(made.repair).get("counted_")
        if counted is not None:  # a file holds maps summed up; those of the counts are exact
            made.repair.follow_counts(counted)
        return made

    def _given(self, X: Any) -> NDArray[np.float64]:
        """Return the scores before repair."""
        if self.model is self.repair:
            return np.asarray(X, dtype=np.float64).reshape(-1)
        return np.asarray(self.model.estimator_.predict_proba(X)[:, 1], dtype=np.float64)

    def _carried(self, scores: NDArray[np.float64], groups: Groups) -> NDArray[np.float64]:
        own = np.asarray(self.repair.transform(scores, sensitive_features=groups))
        if self._centre is None:
            return own
        return self._share * own + (1.0 - self._share) * self._centre._carried(scores, groups)  # noqa: SLF001 - its own class
