"""How the repairs are stored: their maps as summaries, not as people's scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtransport.groups import Groups
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.persistence._summaries import NO_CHANGE, Change, summarise_map
from fairtransport.persistence._values import add_value_type
from fairtransport.persistence.recipes._registry import Recipe, add_recipe, count, labels, numbers, of_type
from fairtransport.persistence.recipes._transport_models import is_array_of_scores, summarised_target
from fairtransport.transport.line import QuantileMap

__all__: list[str] = []


def _summarised_repair(repair: Any, people: int) -> dict[str, tuple[Any, Change]]:
    told = summarised_target(repair, people)
    if not hasattr(repair, "maps_"):
        return told
    known = getattr(repair, "rows_at_knots_", None)
    if known is None:  # as if each knot were one person's score
        known = tuple(np.ones(carry.knots.size, dtype=np.int64) for carry in repair.maps_)
    made = [summarise_map(*pair, people, repair.grid_) for pair in zip(repair.maps_, known, strict=True)]
    maps, rows, changes = zip(*made, strict=True)
    change = Change(max(one.largest for one in changes), max(one.mean for one in changes))
    return {**told, "maps_": (maps, change), "rows_at_knots_": (rows, NO_CHANGE)}


def _summarised_parameter(model: Any, people: int) -> dict[str, tuple[Any, Change]]:
    """Return a summary of the parameter ``target``, where that is an array of scores."""
    groups = model.repair_.groups_ if hasattr(model, "repair_") else None
    return summarised_target(model, people) if is_array_of_scores(model.target, groups) else {}


def _is_repair_whole(repair: Any) -> bool:
    knots, rows = [carry.knots.size for carry in repair.maps_], [one.size for one in repair.rows_at_knots_]
    counted = getattr(repair, "counted_", None)
    if counted is not None and (counted.groups.labels, counted.grid) != (repair.groups_.labels, repair.grid_):
        return False
    n_groups = len(repair.groups_)
    return knots == rows and len(knots) == repair.own_map_.size == n_groups and repair.n_features_in_ == 1


def _is_classifier_whole(model: Any) -> bool:
    return hasattr(model.repair_, "maps_") and hasattr(model.estimator_, "predict_proba") and model.classes_.size == 2


def _are_maps(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, QuantileMap) for one in value)


def _are_rows(value: Any) -> bool:
    whole = isinstance(value, tuple) and all(numbers(1)(one) and one.dtype.kind == "i" for one in value)
    return whole and all((one >= 0).all() and one.any() for one in value)


def _are_flags(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim == 1


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and count(v) for k, v in value.items())


def _is_repair(value: Any) -> bool:
    return type(value).__name__ == "QuantileRepair"


def _histograms_of(parts: dict[str, Any]) -> GroupHistograms:
    counted = GroupHistograms.from_arrays(parts)
    held = (counted.masses, counted.squares_by_class)
    if not all(np.isfinite(one).all() and (one >= 0.0).all() for one in held) or not (counted.weights > 0.0).all():
        raise ValueError("histograms need finite weights that are not negative, and some for every group")
    return counted


def _histograms_parts(counted: GroupHistograms) -> dict[str, Any]:
    arrays = counted.to_arrays()
    return {**arrays, "spec": str(arrays["spec"])}


add_value_type("histograms", GroupHistograms, _histograms_parts, _histograms_of)
add_recipe(
    Recipe(
        "fairtransport.QuantileRepair",
        {
            "counted_": of_type(GroupHistograms),
            "grid_": of_type(Grid, or_none=True),
            "group_sizes_": numbers(1),
            "groups_": of_type(Groups),
            "maps_": _are_maps,
            "n_features_in_": count,
            "own_map_": _are_flags,
            "rows_at_knots_": _are_rows,
            "set_aside_": _are_counts,
            "target_": numbers(1),
        },
        ("grid_", "groups_", "maps_", "n_features_in_", "own_map_", "rows_at_knots_"),
        _is_repair_whole,
        _summarised_repair,
    )
)
add_recipe(
    Recipe(
        "fairtransport.QuantileRepairClassifier",
        {"classes_": labels(1), "estimator_": lambda value: hasattr(value, "predict_proba"), "repair_": _is_repair},
        ("classes_", "estimator_", "repair_"),
        _is_classifier_whole,
        _summarised_parameter,
    )
)
