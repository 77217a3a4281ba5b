"""Recipes of the boosted trees of this package, around trees as arrays of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.criteria import ContinuousDistance, DiscreteDistance
from fairtransport.criteria.penalty import SCALES
from fairtransport.groups import Groups
from fairtransport.persistence.recipes._registry import (
    GROUP_PARAMS,
    Recipe,
    any_of,
    dict_of,
    instance_of,
    is_bool,
    is_count,
    is_criterion,
    is_estimator,
    is_finite,
    is_none,
    is_seed,
    is_text,
    is_word,
    label_array,
    number_array,
    number_in,
    one_of,
    summarize_target,
)
from fairtransport.persistence.trees import TreeClassifier, TreeRegressor
from fairtransport.repair import QuantileRepair
from fairtransport.strata import Strata

if TYPE_CHECKING:
    from fairtransport.persistence._values import ValueType
    from fairtransport.persistence.recipes._registry import Check

_AMOUNT = number_in(0.0, 1e300)
_LOSSES = ("squared_error", "absolute_error", "poisson", "tweedie")


def _fitted_trees(kind: type) -> Check:
    return lambda value: isinstance(value, kind) and hasattr(value, "trees_")


def _is_fitted_repair_or_none(value: Any) -> bool:
    return value is None or (type(value).__name__ == "QuantileRepair" and hasattr(value, "maps_"))


def _is_pair_of_numbers(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(is_finite, value))


def _is_increasing_map(value: Any) -> bool:
    """Whether an array has knots, which ascend, and their images."""
    if not number_array(2)(value) or value.shape[0] != 2 or value.shape[1] < 2:
        return False
    return bool((np.diff(value) >= 0.0).all())


def _is_consistent(model: Any) -> bool:
    repair = model.repair_
    columns = {model.estimator_.n_features_in_, model.initial_estimator_.n_features_in_}
    return len(columns) == 1 and (repair is None or repair.groups_.labels == model.groups_.labels)


def _is_consistent_classifier(model: Any) -> bool:
    inside = model.spread_.min() >= 0.0 and model.spread_.max() <= 1.0
    return bool(inside and model.classes_.size == 2 and _is_consistent(model))


VALUE_TYPES: tuple[ValueType, ...] = ()
_ATTRIBUTES: dict[str, Check] = {
    "before_after_": dict_of(_is_pair_of_numbers),
    "group_sizes_": number_array(1),
    "groups_": instance_of(Groups),
    "history_": dict_of(number_array(1, finite=False)),
    "n_iter_": is_count,
    "information_kept_": is_finite,
    "outcome_": is_text,
    "parity_weight_": _AMOUNT,
    "path_": dict_of(number_array(1)),
    "repair_": _is_fitted_repair_or_none,
    "spread_": _is_increasing_map,
    "strata_": any_of(is_none, instance_of(Strata)),
    "unit_": instance_of(float),
}
_REQUIRED = ("estimator_", "groups_", "initial_estimator_", "repair_", "spread_", "strata_")
_PARAMS: dict[str, Check] = {
    **GROUP_PARAMS,
    "amount": number_in(0.0, 1.0),
    "criterion": is_criterion,
    "estimator": any_of(is_none, is_estimator),
    "distance": any_of(is_word, instance_of((ContinuousDistance, DiscreteDistance))),
    "max_disparity": any_of(is_none, _AMOUNT),
    "n_iter_no_change": any_of(is_none, is_count, one_of("auto")),
    "parity_weight": any_of(_AMOUNT, one_of("auto")),
    "random_state": is_seed,
    "repair": any_of(is_none, instance_of(QuantileRepair)),
    "scale": one_of(*SCALES),
    "smooth_groups": is_bool,
    "spread": one_of("trained", "initial"),
    "validation_fraction": any_of(is_none, number_in(0.0, 1.0)),
}

RECIPES = (
    Recipe(
        "fairtransport.boosting.TransportBoostingClassifier",
        attributes={
            **_ATTRIBUTES,
            "classes_": label_array(1),
            "estimator_": _fitted_trees(TreeClassifier),
            "initial_estimator_": _fitted_trees(TreeClassifier),
        },
        required=("classes_", *_REQUIRED),
        params=_PARAMS,
        is_consistent=_is_consistent_classifier,
        summarize=summarize_target,
    ),
    Recipe(
        "fairtransport.boosting.TransportBoostingRegressor",
        attributes={
            **_ATTRIBUTES,
            "estimator_": _fitted_trees(TreeRegressor),
            "initial_estimator_": _fitted_trees(TreeRegressor),
            "loss_": one_of(*_LOSSES),
            "y_center_": is_finite,
            "y_scale_": number_in(0.0, 1e300),
        },
        required=("loss_", "y_center_", "y_scale_", *_REQUIRED),
        params=_PARAMS,
        is_consistent=_is_consistent,
        summarize=summarize_target,
    ),
)
