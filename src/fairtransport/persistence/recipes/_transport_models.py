"""Recipes of the classifiers and regressors by continuous and discrete optimal transport (COT, DOT)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from fairtransport.criteria import (
    ContinuousDistance,
    DemographicParity,
    DiscreteDistance,
    EqualizedOdds,
    EqualOpportunity,
)
from fairtransport.criteria.penalty import Duals
from fairtransport.groups import GroupPolicy, Groups
from fairtransport.linear.online import OnlineMemory
from fairtransport.linear.settings import OnlineSettings, SgdSettings
from fairtransport.linear.sketches import POINTS, Sketches
from fairtransport.persistence._values import ValueType, attributes_of
from fairtransport.persistence.recipes._registry import (
    FEATURE_NAMES,
    GROUP_PARAMS,
    Check,
    Recipe,
    any_of,
    count_up_to,
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
    summarize_target,
    tuple_of,
)
from fairtransport.strata import Strata
from fairtransport.training.responses import LOSSES, BinaryResponse, RealResponse, Response
from fairtransport.training.weight_path import PATH_COLUMNS
from fairtransport.transport.fourier import FourierFeatures


def _is_consistent_classifier(model: Any) -> bool:
    """Return whether the parts of a classifier agree, and its maps are of probabilities."""
    spreads = [getattr(model, "spread_", np.zeros(0)), *getattr(model, "path_", {}).get("spread", ())]
    inside = all(not spread.size or (spread.min() >= 0.0 and spread.max() <= 1.0) for spread in spreads)
    return bool(inside and model.classes_.shape == (2,) and _is_consistent(model, BinaryResponse))


def _is_consistent_regressor(model: Any) -> bool:
    """Return whether the parts of a regressor agree."""
    return bool(model.y_std_ > 0.0 and _is_consistent(model, RealResponse))


def _is_consistent(model: Any, response: type[Response]) -> bool:
    """Return whether weights, groups and columns of a model agree."""
    n_rows = len(model.coef_)
    shaped = model.coef_.shape[1] == model.n_features_in_ and model.intercept_.shape == (n_rows,)
    shared = n_rows == 1 or n_rows == len(model.groups_)
    start = model.initial_estimator_  # it predicts, too, if amount is below 1
    shared = shared and (np.size(start.coef_), np.size(start.intercept_)) == (model.n_features_in_, 1)
    common = getattr(model, "common_coef_", None)
    shared = shared and (n_rows == 1 if common is None else common.shape == (model.n_features_in_,))
    shared = shared and (n_rows == 1 or hasattr(model, "common_intercept_"))
    named = getattr(model, "feature_names_in_", None)
    state = getattr(model, "adjusting_", None)
    shaped = shaped and (state is None or (_is_memory_of(state, model) and state.loss is response.loss))
    spread = getattr(model, "spread_", None)
    shaped = shaped and (spread is None or _is_increasing_map(spread))
    shaped = shaped and _is_consistent_path(model, response.loss_name)
    return bool(shaped and shared and (named is None or len(named) == model.n_features_in_))


def _is_consistent_path(model: Any, loss_name: str) -> bool:
    """Return whether the models of a path have the columns of the model, and no more groups than it."""
    path = getattr(model, "path_", None)
    if path is None or not len(path["weight"]):
        return True
    if set(path) != {*PATH_COLUMNS, loss_name}:
        return False
    theta, spread = path["theta"], path["spread"]
    n_models = len(model.coef_)
    return bool(
        theta.ndim == 3
        and theta.shape[2] == model.n_features_in_ + 1
        and (theta.shape[1] == 2 if n_models == 1 else 2 < theta.shape[1] <= n_models + 1)
        and spread.ndim == 3
        and all(map(_is_increasing_map, spread))
    )


def _is_increasing_map(points: Any) -> bool:
    return bool(points.shape[0] == 2 and points.shape[1] >= 2 and (np.diff(points) >= 0.0).all())


def _is_memory_of(state: OnlineMemory, model: Any) -> bool:
    """Return whether the memory of a stream has the groups, strata and columns of the model."""
    n_groups, n_features = len(model.groups_), model.n_features_in_
    strata = getattr(model, "strata_", None)
    return bool(
        state.centre.shape == (len(model.coef_), n_features + 1)
        and state.sketches.means.shape == (len(state.blocks) * n_groups, n_features)
        and state.blocks[:, 1].max() < (0 if strata is None else len(strata))
    )


def _is_pair(value: Any) -> bool:
    return tuple_of(is_finite)(value) and len(value) == 2


def _is_path(value: Any) -> bool:
    """Return whether these are columns of equal length, one of them the weights."""
    if not isinstance(value, dict) or not number_array(1)(value.get("weight")):
        return False
    return all(
        isinstance(name, str)
        and number_array(3 if len(column) and name in {"theta", "spread"} else 1)(column)
        and len(column) == len(value["weight"])
        for name, column in value.items()
    )


def _is_linear_model(value: Any) -> bool:
    return hasattr(value, "coef_") and hasattr(value, "intercept_")


_ATTRIBUTES = {
    **FEATURE_NAMES,
    "duals_": instance_of(Duals),
    "adjusting_": instance_of(OnlineMemory),
    "before_after_": dict_of(_is_pair),
    "coef_": number_array(2),
    "common_coef_": number_array(1),
    "common_intercept_": is_finite,
    "group_sizes_": number_array(1),
    "groups_": instance_of(Groups),
    "history_": dict_of(number_array(1, finite=False)),
    "information_kept_": is_finite,
    "initial_estimator_": _is_linear_model,
    "intercept_": number_array(1),
    "n_iter_": is_count,
    "outcome_": is_text,
    "parity_weight_": lambda value: isinstance(value, float) and value >= 0.0,
    "path_": _is_path,
    "spread_": number_array(2),
    "strata_": any_of(is_none, instance_of(Strata)),
    "target_": number_array(1),
}
_CLASSIFIER_ATTRIBUTES = {**_ATTRIBUTES, "classes_": label_array(1)}
_REGRESSOR_ATTRIBUTES = {**_ATTRIBUTES, "y_mean_": is_finite, "y_std_": is_finite}
_AMOUNT = number_in(0.0, 1e300)
_PARAMS = {
    **GROUP_PARAMS,
    "amount": number_in(0.0, 1.0),
    "criterion": is_criterion,
    "distance": any_of(is_word, instance_of((ContinuousDistance, DiscreteDistance))),
    "estimator": any_of(is_none, is_estimator),
    "group_specific": is_bool,
    "max_disparity": any_of(is_none, _AMOUNT),
    "max_iter": count_up_to(1_000_000_000),
    "online": any_of(is_none, instance_of(OnlineSettings)),
    "parity_weight": any_of(is_word, _AMOUNT),
    "scale": is_word,
    "solver": any_of(is_word, instance_of(SgdSettings)),
    "spread": is_word,
    "tol": _AMOUNT,
}
_MOST = (1_000_000_000, 1_000_000)  # updates of the stochastic solver, and rows of each
_MOST_FEATURES = 100_000
_REQUIRED = ("coef_", "groups_", "initial_estimator_", "intercept_", "n_features_in_")


def _duals_from_parts(parts: dict[str, Any]) -> Duals:
    features, own, target = parts["features"], parts["group_weights"], parts["target_weights"]
    groups = parts["groups"]
    if not isinstance(features, FourierFeatures) or not isinstance(groups, Groups):
        raise TypeError("Dual potentials must have features and groups.")
    if not all(number_array(2)(one) and one.shape == (len(groups), len(features)) for one in (own, target)):
        raise ValueError("Dual potentials must have the shape of their groups and features.")
    if not is_finite(parts["center"]) or not is_finite(parts["unit"]) or not parts["unit"] > 0.0:
        raise ValueError("Dual potentials must have a center and a positive unit of the scores.")
    return Duals(features, own, target, groups, parts["center"], parts["unit"])


def _features_from_parts(parts: dict[str, Any]) -> FourierFeatures:
    frequency, phase = parts["frequency"], parts["phase"]
    if not number_array(1)(frequency) or not number_array(1)(phase) or frequency.shape != phase.shape:
        raise ValueError("Fourier features must have as many phases as frequencies.")
    return FourierFeatures(frequency, phase)


def _sgd_from_parts(parts: dict[str, Any]) -> SgdSettings:
    settings = SgdSettings(**parts)
    sizes = zip((settings.n_updates, settings.batch_size or 0), _MOST, strict=True)
    if not is_seed(settings.random_state) or any(size > most for size, most in sizes):
        raise ValueError("The settings of the stochastic solver must be within limits.")
    return settings


def _distance_from_parts(parts: dict[str, Any]) -> ContinuousDistance:
    distance = ContinuousDistance(**parts)
    if distance.n_fourier_features > _MOST_FEATURES:
        raise ValueError("The number of Fourier features must be within limits.")
    return distance


def _sketches_from_parts(parts: dict[str, Any]) -> Sketches:
    n_groups, means = len(parts["masses"]), parts["means"]
    if not number_array(2)(means) or len(means) != n_groups:  # before arrays of the same shape are allocated
        raise ValueError("The parts of sketches must agree in shape.")
    empty = Sketches.empty(n_groups, means.shape[1])
    for name, array in vars(empty).items():
        if not number_array(1, 2)(parts[name]) or parts[name].shape != array.shape:
            raise ValueError("The parts of sketches must agree in shape.")
    positive = all((parts[name] >= 0.0).all() for name in ("masses", "recent", "weights", "variances"))
    if not positive or not (parts["stretches"] > 0.0).all() or not parts["masses"].any(axis=1).all():
        raise ValueError("The parts of sketches must be neither negative nor empty.")
    return Sketches(**parts)


def _memory_from_parts(parts: dict[str, Any]) -> OnlineMemory:
    state = OnlineMemory(**parts)
    if state.loss_name not in LOSSES:
        raise ValueError("The memory of a stream must name a known loss.")
    if not isinstance(state.sketches, Sketches) or not all(map(is_count, (state.n_batches, state.n_rows))):
        raise TypeError("The memory of a stream must have sketches and counts.")
    floats = (state.parity, state.anchor, state.curvature, state.size, state.trace)
    if not all(isinstance(one, float) and 0.0 <= one < np.inf for one in floats):
        raise ValueError("The memory of a stream must have finite weights.")
    if not number_array(2)(state.blocks) or state.blocks.shape[1:] != (3,) or not len(state.blocks):
        raise ValueError("The memory of a stream must say where groups are compared.")
    labels, strata, weights = state.blocks.T
    if not np.isin(labels, (-1, 0, 1)).all() or (strata < -1).any() or (strata % 1).any() or not (weights > 0).all():
        raise ValueError("The memory of a stream must have labels, strata and weights.")
    n_columns = state.sketches.means.shape[1]
    shapes: dict[str, set[tuple[int, ...]]] = {
        "origin": {(n_columns,)},
        "unit": {(n_columns,)},
        "scale": {(n_columns + 1,)},
        "matrix": {(0, 0), (n_columns + 1, n_columns + 1)},
        "target": {(len(state.blocks), POINTS)},
    }
    arrays = [getattr(state, name) for name in (*shapes, "centre")]
    if not all(number_array(1, 2)(one) for one in arrays):
        raise ValueError("The memory of a stream must have arrays of finite numbers.")
    if not all(getattr(state, name).shape in allowed for name, allowed in shapes.items()) or (state.unit == 0).any():
        raise ValueError("The arrays of the memory of a stream must agree in shape.")
    return state


def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _settings_type(tag: str, kind: Any) -> ValueType:
    """Return the value type of a dataclass that checks its own fields."""
    return ValueType(tag, kind, attributes_of(*_field_names(kind)), lambda parts: kind(**parts))


VALUE_TYPES = (
    ValueType(
        "groups", Groups, lambda groups: {"spec": groups.to_spec()}, lambda parts: Groups.from_spec(parts["spec"])
    ),
    ValueType(
        "group_policy",
        GroupPolicy,
        attributes_of(*(one.name for one in fields(GroupPolicy))),
        lambda parts: GroupPolicy(**parts),
    ),
    ValueType(
        "strata", Strata, lambda strata: {"spec": strata.to_spec()}, lambda parts: Strata.from_spec(parts["spec"])
    ),
    ValueType("sketches", Sketches, attributes_of(*_field_names(Sketches)), _sketches_from_parts),
    ValueType("adjustment", OnlineMemory, attributes_of(*_field_names(OnlineMemory)), _memory_from_parts),
    ValueType("sgd", SgdSettings, attributes_of(*_field_names(SgdSettings)), _sgd_from_parts),
    *(_settings_type(one.name, one) for one in (DemographicParity, EqualizedOdds, EqualOpportunity)),
    _settings_type("online", OnlineSettings),
    _settings_type("discrete", DiscreteDistance),
    ValueType("continuous", ContinuousDistance, attributes_of(*_field_names(ContinuousDistance)), _distance_from_parts),
    ValueType("fourier", FourierFeatures, attributes_of("frequency", "phase"), _features_from_parts),
    ValueType(
        "duals",
        Duals,
        attributes_of("features", "group_weights", "target_weights", "groups", "center", "unit"),
        _duals_from_parts,
    ),
)

_KINDS: tuple[tuple[str, dict[str, Check], tuple[str, ...], Check], ...] = (
    ("Classifier", _CLASSIFIER_ATTRIBUTES, ("classes_",), _is_consistent_classifier),
    ("Regressor", _REGRESSOR_ATTRIBUTES, ("y_mean_", "y_std_"), _is_consistent_regressor),
)
RECIPES = tuple(
    Recipe(
        f"fairtransport.Transport{kind}",
        attributes=attributes,
        required=(*_REQUIRED, *required),
        params=_PARAMS,
        not_stored=("verbose",),
        is_consistent=is_consistent,
        summarize=summarize_target,
    )
    for kind, attributes, required, is_consistent in _KINDS
)
