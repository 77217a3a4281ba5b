"""Models that can follow a stream: linear models and repairs learn, any other model is only scored."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Floats, Ints
from fairtransport._columns import short_type
from fairtransport._sklearn import last_step, model_scores, needs_groups, policy_of
from fairtransport.criteria.criterion import criterion_name, needs_labels
from fairtransport.groups import Groups
from fairtransport.histograms import Grid
from fairtransport.linear import TransportClassifier, TransportRegressor
from fairtransport.linear.online import OnlineState
from fairtransport.persistence import pack_model, unpack_model
from fairtransport.repair import QuantileRepair, QuantileRepairClassifier, QuantileRepairRegressor
from fairtransport.tabular import RowScorer
from fairtransport.transport.line import QuantileMap

_UNNAMED = ("sensitive_feature_0",)
_NAMES_OF_SCALE = (("y_mean_", "y_center_"), ("y_std_", "y_scale_"))  # of linear models, and of boosted trees
_DEVIATIONS = 4.0


class Scorer:
    """A model as the adjuster uses it; this class scores any model, monitors the groups it knows, and learns nothing.

    Rows without a known group are scored where the model does not need the group, and belong to no histogram. A model
    that was trained without groups has none to monitor; neither has a regressor whose range is unknown.
    """

    #: Default radius of the trust region, in the unit of `distance`.
    default_radius = 1.0
    #: Whether the model learns from the stream.
    learns = False
    #: Whether a file stores the result of `project`; of a repair it does not store the mixture.
    stores_projection = True

    def __init__(self, model: Any) -> None:
        self.model = model
        self._last = last_step(model)[1]
        self._repair = vars(self._last).get("repair_")
        #: Whether a row without a known group cannot be scored.
        self.needs_groups = needs_groups(model)
        self._check()

    def _check(self) -> None:
        """Raise for a model that a stream cannot score, or cannot keep up to date."""
        repair = self._last if hasattr(self._last, "potentials_") else self._repair
        if getattr(repair, "strata_", None) is not None:
            raise ValueError(_NO_STRATA)

    @cached_property
    def _range(self) -> Grid | None:
        """Range in which a regressor's predictions are counted; None where it is unknown."""
        model = self._last
        if not is_regressor(model):
            return None
        if hasattr(model, "potentials_"):
            return Grid(float(model.potentials_.nodes[0]), float(model.potentials_.nodes[-1]))
        if self._repair is not None:
            return Grid(*self._repair.range_)
        center, scale = (vars(model).get(one, vars(model).get(other)) for one, other in _NAMES_OF_SCALE)
        if center is None or scale is None:
            return None
        return Grid(float(center - _DEVIATIONS * scale), float(center + _DEVIATIONS * scale))

    @property
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""
        known = vars(self._last).get("groups_") or getattr(self._repair, "groups_", None)
        if isinstance(known, Groups) and (not is_regressor(self._last) or self._range is not None):
            return known
        return Groups((), (), (np.empty(0, dtype=short_type(0)),), _UNNAMED, "crossed", "error")

    @property
    def grid(self) -> Grid:
        """Range of the scores: of a regressor that of most of the training rows, where it is known."""
        return Grid() if self._range is None else self._range

    @property
    def group_sizes(self) -> Ints:
        """Training rows of each group; equal numbers where the model does not have them."""
        sizes = getattr(self._repair, "group_sizes_", vars(self._last).get("group_sizes_"))
        return np.ones(len(self.groups), dtype=np.int64) if sizes is None else np.asarray(sizes)

    def encode(self, sensitive_features: Any, unknown_group: str = "error") -> Groups:
        """Return the groups of new rows.

        Unknown ones are appended with ``new="adopt"``; otherwise they, and rows without a group in any case,
        are treated as ``unknown_group`` says. A model that does not need the group assigns them to none.
        """
        if sensitive_features is None:
            raise ValueError("sensitive_features is needed: the column or columns that define groups.")
        policy = "pooled" if unknown_group == "error" and not self.needs_groups else unknown_group
        find = self.groups.adopt if self.adopts_groups else self.groups.encode
        return find(sensitive_features, unknown_group=policy, sizes=self.group_sizes)

    @property
    def adopts_groups(self) -> bool:
        """True if groups that the model does not know are added to it."""
        return self.learns and policy_of(self.model).new == "adopt"

    def score(self, X: Any, groups: Groups) -> Floats:
        """Return the scores of rows of known groups; raise ValueError if one of them is not a finite number."""
        scores = self._score(X, groups)
        n_invalid = scores.size - np.count_nonzero(np.isfinite(scores))
        if n_invalid:
            raise ValueError(f"{n_invalid} of {scores.size} scores are not finite numbers: features are too large.")
        return scores

    def _score(self, X: Any, groups: Groups) -> Floats:
        given = groups if self.needs_groups else None
        return model_scores(self.model, X, sensitive_features=given, unknown_group="pooled")

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch by so many updates; 0 leaves the scores unchanged."""

    @property
    def n_skipped(self) -> int:
        """Updates so far for which no step was found."""
        return 0

    def learn_new_groups(self, X: Any, groups: Groups) -> None:
        """Learn from a batch with new groups, changing the scores as little as possible."""
        self.learn(X, groups, 0)

    def discount_past(self) -> None:
        """Reduce the weight of rows before an alarm."""

    def add_groups(self, groups: Groups) -> None:
        """Add the groups that the model does not know, without learning from rows."""

    def distance(self, other: Self) -> float:  # noqa: ARG002 - of models that learn
        """Return the distance to another state of the same model."""
        return 0.0

    def project(self, center: Self, radius: float) -> bool:  # noqa: ARG002
        """Move the model into the trust region; return whether it was outside."""
        return False

    def target(self) -> Floats | None:
        """Return the fixed target as points of equal mass in [0, 1]; None without one."""
        return None

    def duals(self, points: Floats) -> Floats | None:  # noqa: ARG002
        """Return each group's dual potential at these points; None for a model without."""
        return None

    def save_point(self) -> Callable[[], None]:
        """Return a function that undoes all changes of the model since this call; arrays are never changed in place."""
        saved = [(part, dict(vars(part))) for part in (self, self.model, self._repair) if part is not None]

        def undo() -> None:
            for part, attributes in saved:
                vars(part).clear()
                vars(part).update(attributes)

        return undo

    def copy(self) -> Self:
        return type(self)(copy.deepcopy(self.model) if self.learns else self.model)

    def frozen(self) -> Self:
        """Return a copy with the same scores that does not learn."""
        return self.copy()

    def pack(self) -> bytes:
        """Return the content of a model file."""
        return pack_model(self.model)[0]

    @classmethod
    def unpack(cls, content: bytes) -> Self:
        return cls(unpack_model(content))


_NO_STRATA = "A stream has no strata, and this repair was fitted within strata; fit one without them."


# Linear transport classifiers and regressors in a stream.


class LinearScorer(Scorer):
    """Scorer of classifiers and regressors by continuous and discrete optimal transport (COT, DOT).

    Notes
    -----
    `distance` is the Euclidean norm of the change of the weights, relative to the norm of the other model's weights, or
    to 1 if that is larger. A weight is measured in the unit of its column, the standard deviation or the largest value,
    and the intercept at the mean row; of a regressor for a standardised y.
    """

    default_radius = 0.5
    learns = True

    def _check(self) -> None:
        criterion, needed = criterion_name(self.model.criterion), "labels"
        if getattr(self.model, "strata_", None) is not None and not needs_labels(criterion):
            criterion, needed = "conditional parity", "strata"
        elif not needs_labels(criterion):
            return
        raise ValueError(
            f"A stream without {needed} cannot maintain {criterion.replace('_', ' ')}, which this model was trained "
            f"for. Update it with partial_fit, which takes {needed}, or train a model for demographic parity."
        )

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch by so many updates; 0 leaves the scores unchanged."""
        self.model.partial_fit(X, sensitive_features=groups, updates=updates)
        if not np.isfinite(self._state.theta).all():
            raise ValueError("The weights are not finite numbers after this batch: features are too large.")

    @property
    def n_skipped(self) -> int:
        memory = self._state.memory
        return 0 if memory is None else memory.n_skipped

    def add_groups(self, groups: Groups) -> None:
        if len(groups) > len(self.groups):
            self.model.set_online_state(self._state.widened(groups))

    def distance(self, other: LinearScorer) -> float:
        theta, reference = self._state.theta, other._state.theta
        base, change = self._in_units(reference)[:, :-1], self._in_units(theta - reference)
        return float(np.linalg.norm(change)) / max(1.0, float(np.linalg.norm(base)))

    def project(self, center: LinearScorer, radius: float) -> bool:
        distance = self.distance(center)
        if distance <= radius:
            return False
        state = self._state
        change = (radius / distance - 1.0) * (state.theta - center._state.theta)
        self.model.set_online_state(state.moved(change))
        return True

    def frozen(self) -> LinearScorer:
        frozen = self.copy()
        frozen.model.set_online_state(self._state.without_memory())
        return frozen

    def target(self) -> Floats | None:
        return None if self._state.rule.each_other else self.grid.to_unit(self.model.target_)

    def duals(self, points: Floats) -> Floats | None:
        duals = getattr(self.model, "duals_", None)
        return None if duals is None else np.asarray(duals(self.grid.from_unit(points)))

    @property
    def _state(self) -> OnlineState:
        return self.model.online_state()

    def _in_units(self, theta: Floats) -> Floats:
        memory = self._state.memory
        return theta if memory is None else memory.to_scaled(theta)


# Quantile repairs in a stream.

_ROWS_AFTER_ALARM = 500.0  # total weight of the counts of a repair after an alarm


class RepairScorer(Scorer):
    """Scorer of `QuantileRepair`, for a column of scores, and of the classifier and the regressor with a repair.

    Notes
    -----
    `distance` is the mean absolute change of the repaired scores over the counted rows, relative to the range of the
    scores, in the group where it is largest. `project` mixes the repaired scores with those of the center.
    """

    default_radius = 0.2
    learns = True
    stores_projection = False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._center: RepairScorer | None = None
        self._weight = 1.0  # of the model against the center

    def _check(self) -> None:
        if needs_labels(self.repair.criterion):
            raise ValueError(
                f"A stream has no labels, and a repair with criterion={criterion_name(self.repair.criterion)!r} learns "
                "from them: call partial_fit with y when labels arrive, or use criterion='demographic_parity'."
            )
        if self.repair.strata_ is not None:
            raise ValueError(_NO_STRATA)

    @property
    def repair(self) -> Any:
        return getattr(self.model, "repair_", self.model)

    @property
    def has_histograms(self) -> bool:
        return hasattr(self.repair, "counted_")

    @property
    def groups(self) -> Groups:
        return self.repair.groups_

    @property
    def grid(self) -> Grid:
        if self.repair.grid_ is not None:
            return self.repair.grid_
        return self.repair.online_state().histograms.grid if self.repair.extrapolates else Grid(*self.repair.range_)

    def _score(self, X: Any, groups: Groups) -> Floats:
        return self._repaired(self._raw_scores(X), groups)

    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch; any number of updates above 0 has the same effect."""
        if updates:
            self.repair.partial_fit(self._raw_scores(X), sensitive_features=groups)

    def learn_new_groups(self, X: Any, groups: Groups) -> None:
        self.learn(X, groups, 1)

    def discount_past(self) -> None:
        """Reduce the weight of rows before an alarm."""
        if self.has_histograms:
            state = self.repair.online_state()
            share = min(1.0, _ROWS_AFTER_ALARM / float(state.histograms.weights.sum()))
            self.repair.resume(state.forget(share))

    def add_groups(self, groups: Groups) -> None:
        if len(groups) == len(self.groups):
            return
        if self.has_histograms:
            self.repair.resume(self.repair.online_state().add_groups(groups))
        else:
            self.repair.use_maps(self.repair.group_maps().with_identity_maps(groups, self.grid))

    def distance(self, other: RepairScorer) -> float:
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
        self._center, self._weight = None, 1.0
        distance = self.distance(center)
        if distance <= radius:
            return False
        self._center, self._weight = center, radius / distance
        return True

    def frozen(self) -> RepairScorer:
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
        scorer = super().unpack(content)
        if scorer.has_histograms:  # a file stores summaries of the maps; those of the counts are exact
            scorer.repair.resume(scorer.repair.online_state().refit())
        return scorer

    def _raw_scores(self, X: Any) -> Floats:
        if self.model is self.repair:
            return np.asarray(X, dtype=np.float64).reshape(-1)
        return model_scores(self.model.estimator_, X)

    def _repaired(self, scores: Floats, groups: Groups) -> Floats:
        repaired = np.asarray(self.repair.transform(scores, sensitive_features=groups, unknown_group="pooled"))
        if self._center is None:
            return repaired
        return self._weight * repaired + (1.0 - self._weight) * self._center._repaired(scores, groups)  # noqa: SLF001


_SCORERS: dict[tuple[type, ...], type[Scorer]] = {
    (TransportClassifier, TransportRegressor): LinearScorer,
    (QuantileRepair, QuantileRepairClassifier, QuantileRepairRegressor): RepairScorer,
}


def scorer_for(model: Any) -> Scorer:
    """Return the scorer of a fitted model; raise a TypeError for a model that has no scores.

    Linear models and repairs learn from the stream, others do not.
    """
    try:
        check_is_fitted(model)
    except TypeError:
        raise TypeError(f"A stream needs a fitted model; got a {type(model).__name__}.") from None
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; call fit first.") from None
    for kinds, scorer in _SCORERS.items():
        if isinstance(model, kinds):
            return scorer(model)
    return Scorer(RowScorer(model).estimator_)
