"""Recipes of the quantile repairs, whose maps are stored as summaries and not as scores of individuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtransport.groups import Groups
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.persistence._summaries import NO_CHANGE, Change, summarise_map
from fairtransport.persistence._values import ValueType, attributes_of
from fairtransport.persistence.recipes._checks import (
    GROUP_PARAMS,
    any_of,
    count_up_to,
    dict_of,
    instance_of,
    is_count,
    is_estimator,
    is_none,
    is_word,
    label_array,
    number_array,
    number_in,
    tuple_of,
)
from fairtransport.persistence.recipes._registry import Recipe
from fairtransport.persistence.recipes._targets import summarize_target
from fairtransport.transport.line import QuantileMap

__all__ = ["RECIPES", "VALUE_TYPES"]


_ROUNDING = 1e-12  # of a range, by which a knot or an image may lie outside


def _summarize_repair(repair: Any, people: int) -> dict[str, tuple[Any, Change]]:
    summaries = summarize_target(repair, people)
    if not hasattr(repair, "maps_"):
        return summaries
    rows_at_knots = getattr(repair, "rows_at_knots_", None)
    if rows_at_knots is None:  # each knot may be the score of one person
        rows_at_knots = tuple(np.ones(one.knots.size, dtype=np.int64) for one in repair.maps_)
    pairs = zip(repair.maps_, rows_at_knots, strict=True)
    maps, rows, changes = zip(*(summarise_map(*pair, people, repair.grid_) for pair in pairs), strict=True)
    change = Change(max(one.largest for one in changes), max(one.mean for one in changes))
    return {**summaries, "maps_": (maps, change), "rows_at_knots_": (rows, NO_CHANGE)}


def _is_consistent_repair(repair: Any) -> bool:
    histograms, n_groups = getattr(repair, "counted_", None), len(repair.groups_)
    if histograms is not None and (histograms.groups.labels, histograms.grid) != (repair.groups_.labels, repair.grid_):
        return False
    low, high = (0.0, 1.0) if repair.grid_ is None else (repair.grid_.low, repair.grid_.high)
    slack = _ROUNDING * (high - low)
    if not all(
        low - slack <= ends[0] and ends[-1] <= high + slack for one in repair.maps_ for ends in (one.knots, one.images)
    ):
        return False
    knots, rows = [one.knots.size for one in repair.maps_], [one.size for one in repair.rows_at_knots_]
    return knots == rows and len(knots) == repair.own_map_.size == n_groups and repair.n_features_in_ == 1


def _is_consistent_classifier(model: Any) -> bool:
    return hasattr(model.repair_, "maps_") and hasattr(model.estimator_, "predict_proba") and model.classes_.size == 2


def _is_rows_of_map(value: Any) -> bool:
    return bool(number_array(1)(value) and value.dtype.kind == "i" and (value >= 0).all() and value.any())


def _is_bool_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim == 1


def _histograms_to_parts(histograms: GroupHistograms) -> dict[str, Any]:
    arrays = histograms.to_arrays()
    return {**arrays, "spec": str(arrays["spec"])}


def _histograms_from_parts(parts: dict[str, Any]) -> GroupHistograms:
    histograms = GroupHistograms.from_arrays(parts)
    arrays = (histograms.masses, histograms.squares_by_class)
    valid = all(np.isfinite(array).all() and (array >= 0.0).all() for array in arrays)
    if not valid or not (histograms.weights > 0.0).all():
        raise ValueError("The weights of histograms must be finite and not negative, and positive for every group.")
    return histograms


def _map_from_parts(parts: dict[str, Any]) -> QuantileMap:
    if not all(number_array(1)(array) and array.dtype == np.float64 for array in parts.values()):
        raise TypeError("The knots and images of a map must be floats of 64 bits.")
    return QuantileMap(**parts).prepare()


def _is_splitter(value: Any) -> bool:
    return type(value).__name__ in {"KFold", "StratifiedKFold"}


_PARAMS = {
    **GROUP_PARAMS,
    "amount": number_in(0.0, 1.0),
    "new_groups": is_word,
    "stream_half_life": number_in(0.0, 1e300),
}

VALUE_TYPES = (
    ValueType("grid", Grid, attributes_of("low", "high", "n_bins"), lambda parts: Grid(**parts)),
    ValueType("map", QuantileMap, attributes_of("knots", "images"), _map_from_parts),
    ValueType("histograms", GroupHistograms, _histograms_to_parts, _histograms_from_parts),
)

RECIPES = (
    Recipe(
        "fairtransport.QuantileRepair",
        attributes={
            "counted_": instance_of(GroupHistograms),
            "grid_": any_of(is_none, instance_of(Grid)),
            "group_sizes_": number_array(1),
            "groups_": instance_of(Groups),
            "maps_": tuple_of(instance_of(QuantileMap)),
            "n_features_in_": is_count,
            "own_map_": _is_bool_array,
            "rows_at_knots_": tuple_of(_is_rows_of_map),
            "set_aside_": dict_of(is_count),
            "target_": number_array(1),
        },
        required=("grid_", "groups_", "maps_", "n_features_in_", "own_map_", "rows_at_knots_"),
        params=_PARAMS,
        is_consistent=_is_consistent_repair,
        summarize=_summarize_repair,
    ),
    Recipe(
        "fairtransport.QuantileRepairClassifier",
        attributes={
            "classes_": label_array(1),
            "estimator_": lambda value: hasattr(value, "predict_proba"),
            "repair_": lambda value: type(value).__name__ == "QuantileRepair",
        },
        required=("classes_", "estimator_", "repair_"),
        params={
            **_PARAMS,
            "cv": any_of(is_none, count_up_to(1000), _is_splitter),
            "estimator": is_estimator,
        },
        is_consistent=_is_consistent_classifier,
        summarize=summarize_target,
    ),
)
