"""How the transport classifiers, COT and DOT, are stored."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_vector
from fairtransport.groups import Groups
from fairtransport.histograms import Grid
from fairtransport.linear.duals import Duals
from fairtransport.linear.online.memory import OnlineMemory
from fairtransport.linear.online.sketches import POINTS, Sketches
from fairtransport.linear.solvers.settings import SgdSettings
from fairtransport.linear.training.weight_path import PATH_COLUMNS
from fairtransport.persistence._summaries import Change, summarise_quantiles
from fairtransport.persistence._values import add_value_type
from fairtransport.persistence.recipes._registry import (
    COLUMNS,
    Recipe,
    add_recipe,
    count,
    labels,
    numbers,
    of_type,
    text,
)
from fairtransport.transport.fourier import FourierFeatures
from fairtransport.transport.line import QuantileMap, Sample
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["is_array_of_scores", "is_history", "summarised_target"]


def is_array_of_scores(target: Any, groups: Groups | None) -> bool:
    """Whether the parameter ``target`` holds scores; words, and labels of groups, do not."""
    if isinstance(target, Sample):
        return True
    if isinstance(target, tuple) and groups is not None and target in groups.labels:
        return False
    if isinstance(target, (list, tuple)):
        return not any(isinstance(part, str) or part is None for part in target)
    return np.ndim(target) > 0


def summarised_target(model: Any, people: int) -> dict[str, tuple[Any, Change]]:
    """Return summaries of ``target_`` and, where it is an array of scores, of ``target``."""
    sizes = getattr(model, "group_sizes_", None)
    told: dict[str, tuple[Any, Change]] = {}
    if hasattr(model, "target_"):
        n_rows = 0.0 if sizes is None else float(np.min(sizes))
        told["target_"] = summarise_quantiles(model.target_, people, n_rows)
    if is_array_of_scores(model.target, getattr(model, "groups_", None)):
        given = _ascending(model.target)
        # Distinct scores are one person's each, unless they occur more than once in what was given.
        n_rows = float(given.size) if given.size <= TARGET_SIZE else 0.0
        held = given if given.size <= TARGET_SIZE else Sample.from_values(given).equal_mass(TARGET_SIZE)
        told["target"] = summarise_quantiles(held, people, n_rows)
    return told


def _ascending(target: Any) -> NDArray[np.float64]:
    if isinstance(target, Sample):
        return target.equal_mass(TARGET_SIZE)
    return np.sort(check_vector(target, name="target"))


def _fits_together(model: Any) -> bool:
    """Whether weights, groups and columns of a loaded classifier agree."""
    n_rows = len(model.coef_)
    shaped = model.coef_.shape[1] == model.n_features_in_ and model.intercept_.shape == (n_rows,)
    shared = n_rows == 1 or n_rows == len(model.groups_)
    start = model.initial_estimator_  # it predicts, too, where amount is below 1
    shared = shared and (np.size(start.coef_), np.size(start.intercept_)) == (model.n_features_in_, 1)
    common = getattr(model, "common_coef_", None)
    shared = shared and (n_rows == 1 if common is None else common.shape == (model.n_features_in_,))
    shared = shared and (n_rows == 1 or hasattr(model, "common_intercept_"))
    named = getattr(model, "feature_names_in_", None)
    state = getattr(model, "adjusting_", None)
    shaped = shaped and (state is None or _is_of(state, model))
    spread = getattr(model, "spread_", None)
    shaped = shaped and (spread is None or _is_rising_map(spread)) and _is_path_of(model)
    return bool(
        shaped and shared and model.classes_.shape == (2,) and (named is None or len(named) == model.n_features_in_)
    )


def _is_path_of(model: Any) -> bool:
    """Whether the models of a path have this model's columns, and no more groups than it has now."""
    path = getattr(model, "path_", None)
    if path is None or not len(path["weight"]):
        return True
    if set(path) != set(PATH_COLUMNS):
        return False
    theta, spread = path["theta"], path["spread"]
    n_models = len(model.coef_)
    return bool(
        theta.ndim == 3
        and theta.shape[2] == model.n_features_in_ + 1
        and (theta.shape[1] == 2 if n_models == 1 else 2 < theta.shape[1] <= n_models + 1)
        and spread.ndim == 3
        and all(map(_is_rising_map, spread))
    )


def _is_rising_map(points: Any) -> bool:
    return bool(
        points.shape[0] == 2
        and points.shape[1] >= 2
        and (np.diff(points) >= 0.0).all()
        and points.min() >= 0.0
        and points.max() <= 1.0
    )


def _is_of(state: OnlineMemory, model: Any) -> bool:
    """Whether what a stream goes on from is of this model's groups and columns."""
    n_groups, n_features = len(model.groups_), model.n_features_in_
    return state.centre.shape == (len(model.coef_), n_features + 1) and state.sketches.means.shape == (
        n_groups,
        n_features,
    )


def is_history(value: Any) -> bool:
    """Whether this is a table of numbers, by column."""
    return isinstance(value, dict) and all(isinstance(k, str) and numbers(1, finite=False)(v) for k, v in value.items())


def real(value: Any) -> bool:
    """Whether this is a finite number."""
    return isinstance(value, float) and bool(np.isfinite(value))


def _is_figures(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(pair, tuple) and len(pair) == 2 and all(map(real, pair))
        for name, pair in value.items()
    )


def _is_path(value: Any) -> bool:
    """Whether these are columns of equal length, one of them the weights."""
    if not isinstance(value, dict) or not numbers(1)(value.get("weight")):
        return False
    return all(
        isinstance(name, str)
        and numbers(3 if len(column) and name in {"theta", "spread"} else 1)(column)
        and len(column) == len(value["weight"])
        for name, column in value.items()
    )


def _is_linear_model(value: Any) -> bool:
    return hasattr(value, "coef_") and hasattr(value, "intercept_")


_FITTED = {
    **COLUMNS,
    "adjusting_": of_type(OnlineMemory),
    "before_after_": _is_figures,
    "classes_": labels(1),
    "coef_": numbers(2),
    "common_coef_": numbers(1),
    "common_intercept_": real,
    "group_sizes_": numbers(1),
    "groups_": of_type(Groups),
    "history_": is_history,
    "information_kept_": real,
    "initial_estimator_": _is_linear_model,
    "intercept_": numbers(1),
    "n_iter_": count,
    "outcome_": text,
    "parity_weight_": lambda value: isinstance(value, float) and value >= 0.0,
    "path_": _is_path,
    "spread_": numbers(2),
    "target_": numbers(1),
}
_NEEDED = ("classes_", "coef_", "groups_", "initial_estimator_", "intercept_", "n_features_in_")


def _duals_of(parts: dict[str, Any]) -> Duals:
    features, own, target = parts["features"], parts["group_weights"], parts["target_weights"]
    groups = parts["groups"]
    if not isinstance(features, FourierFeatures) or not isinstance(groups, Groups):
        raise TypeError("dual variables need features and groups")
    if not all(numbers(2)(one) and one.shape == (len(groups), len(features)) for one in (own, target)):
        raise ValueError("dual variables of another shape than their groups and features")
    if not real(parts["center"]) or not real(parts["unit"]) or not parts["unit"] > 0.0:
        raise ValueError("dual variables need a center and a positive unit of the scores")
    return Duals(features, own, target, groups, parts["center"], parts["unit"])


def _features_of(parts: dict[str, Any]) -> FourierFeatures:
    frequency, phase = parts["frequency"], parts["phase"]
    if not numbers(1)(frequency) or not numbers(1)(phase) or frequency.shape != phase.shape:
        raise ValueError("features need frequencies and as many phases")
    return FourierFeatures(frequency, phase)


def _sketches_of(parts: dict[str, Any]) -> Sketches:
    n_groups = len(parts["masses"])
    wide = Sketches.empty(n_groups, parts["means"].shape[-1])
    for name, held in vars(wide).items():
        if not numbers(1, 2)(parts[name]) or parts[name].shape != held.shape:
            raise ValueError("sketches of groups whose parts do not fit together")
    positive = all((parts[name] >= 0.0).all() for name in ("masses", "recent", "weights", "variances"))
    if not positive or not (parts["stretches"] > 0.0).all() or not parts["masses"].any(axis=1).all():
        raise ValueError("sketches with negative or empty parts")
    return Sketches(**parts)


def _adjustment_of(parts: dict[str, Any]) -> OnlineMemory:
    state = OnlineMemory(**parts)
    if not isinstance(state.sketches, Sketches) or not all(map(count, (state.n_batches, state.n_rows))):
        raise TypeError("what a stream goes on from needs sketches and counts")
    floats = (state.parity, state.anchor, state.curvature, state.size, state.trace)
    if not all(isinstance(one, float) and 0.0 <= one < np.inf for one in floats):
        raise ValueError("what a stream goes on from needs finite weights")
    n_columns = state.sketches.means.shape[1]
    shapes: dict[str, set[tuple[int, ...]]] = {
        "origin": {(n_columns,)},
        "unit": {(n_columns,)},
        "scale": {(n_columns + 1,)},
        "matrix": {(0, 0), (n_columns + 1, n_columns + 1)},
        "target": {(POINTS,)},
    }
    arrays = [getattr(state, name) for name in (*shapes, "centre")]
    if not all(numbers(1, 2)(one) for one in arrays):
        raise ValueError("what a stream goes on from needs arrays of finite numbers")
    if not all(getattr(state, name).shape in allowed for name, allowed in shapes.items()) or (state.unit == 0).any():
        raise ValueError("what a stream goes on from has arrays of the wrong shape")
    return state


def _parts(*names: str) -> Any:
    return lambda value: {name: getattr(value, name) for name in names}


add_value_type(
    "groups",
    Groups,
    lambda groups: {"spec": groups.to_spec()},
    lambda parts: Groups.from_spec(parts["spec"]),
)
add_value_type("sketches", Sketches, _parts(*(one.name for one in fields(Sketches))), _sketches_of)
add_value_type("adjustment", OnlineMemory, _parts(*(one.name for one in fields(OnlineMemory))), _adjustment_of)
add_value_type(
    "sgd", SgdSettings, _parts(*(one.name for one in fields(SgdSettings))), lambda parts: SgdSettings(**parts)
)
add_value_type("grid", Grid, _parts("low", "high", "n_bins"), lambda parts: Grid(**parts))
add_value_type("map", QuantileMap, _parts("knots", "images"), lambda parts: QuantileMap(**parts).prepare())
add_value_type("fourier", FourierFeatures, _parts("frequency", "phase"), _features_of)
add_value_type(
    "duals", Duals, _parts("features", "group_weights", "target_weights", "groups", "center", "unit"), _duals_of
)

add_recipe(
    Recipe(
        "fairtransport.ContinuousTransportClassifier",
        {**_FITTED, "duals_": of_type(Duals)},
        _NEEDED,
        _fits_together,
        summarised_target,
    )
)
add_recipe(Recipe("fairtransport.DiscreteTransportClassifier", _FITTED, _NEEDED, _fits_together, summarised_target))
