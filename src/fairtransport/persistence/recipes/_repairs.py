"""Recipes of the quantile repairs, whose maps are stored as summaries and not as scores of individuals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import Groups
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.persistence._summaries import NO_CHANGE, Change, summarise_map
from fairtransport.persistence._values import ValueType, attributes_of
from fairtransport.persistence.recipes._registry import (
    GROUP_PARAMS,
    Recipe,
    any_of,
    count_up_to,
    dict_of,
    instance_of,
    is_bool,
    is_count,
    is_criterion,
    is_estimator,
    is_none,
    is_seed,
    label_array,
    number_array,
    number_in,
    summarize_target,
    tuple_of,
)
from fairtransport.repair import QuantileRepair
from fairtransport.repair.group_maps import resolve_range
from fairtransport.repair.randomized_maps import MIN_CLASS_ROWS, RandomizedMaps
from fairtransport.repair.stratum_maps import StratumMaps
from fairtransport.strata import Strata
from fairtransport.transport.line import QuantileMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.persistence.recipes._registry import Check

    Summarise = Callable[..., tuple[QuantileMap, NDArray[np.int64], Change]]


_ROUNDING = 1e-12  # of a range, by which a knot or an image may lie outside


def _summarize_repair(repair: Any, people: int) -> dict[str, tuple[Any, Change]]:
    summaries = summarize_target(repair, people)
    if not hasattr(repair, "maps_"):
        return summaries
    randomized = getattr(repair, "randomized_maps_", None)
    if randomized is not None:
        if people > MIN_CLASS_ROWS:
            raise ValueError(
                f"A randomised repair has points of {MIN_CLASS_ROWS} or more rows, so people_per_point can be at most "
                f"{MIN_CLASS_ROWS}; got {people}."
            )
        target, change = summaries["target_"]
        return {**summaries, "randomized_maps_": (replace(randomized, target=target), change)}
    rows_at_knots = getattr(repair, "rows_at_knots_", None)
    if rows_at_knots is None:  # each knot may be the score of one person
        rows_at_knots = tuple(np.ones(one.knots.size, dtype=np.int64) for one in repair.maps_)
    summarise = partial(
        summarise_map, people=people, grid=repair.grid_, score_range=None if repair.extrapolates else repair.range_
    )
    maps, rows, change = _summarize_maps(repair.maps_, rows_at_knots, summarise)
    summaries |= {"maps_": (maps, change), "rows_at_knots_": (rows, NO_CHANGE)}
    within = getattr(repair, "stratum_maps_", None)
    if within is not None:
        # The lowest and highest scores of a learned range are those of people; the ends of an identity may be any.
        ends = (0.0, 1.0) if repair.extrapolates else repair.range_
        summaries["stratum_maps_"] = _summarize_strata(within, people, ends, summarise)
    return summaries


def _summarize_maps(
    maps: Sequence[QuantileMap], rows: Sequence[NDArray[np.int64]], summarise: Summarise
) -> tuple[tuple[QuantileMap, ...], tuple[NDArray[np.int64], ...], Change]:
    pairs = zip(maps, rows, strict=True)
    short, behind, changes = zip(*(summarise(*pair) for pair in pairs), strict=True)
    return short, behind, Change(max(one.largest for one in changes), max(one.mean for one in changes))


def _summarize_strata(
    within: StratumMaps, people: int, ends: tuple[float, float], summarise: Summarise
) -> tuple[StratumMaps, Change]:
    """Return the maps of strata as summaries; cells with fewer people than a point needs use the map of their group."""
    nobody = QuantileMap(np.array(ends), np.array(ends)), np.zeros(2, dtype=np.int64), NO_CHANGE
    cells = zip(within.maps, within.rows_at_knots, within.sizes.ravel().tolist(), strict=True)
    parts = [nobody if size < people or not rows.any() else summarise(carry, rows) for carry, rows, size in cells]
    maps, rows, changes = zip(*parts, strict=True)
    summary = replace(within, maps=maps, rows_at_knots=rows, sizes=np.where(within.sizes < people, 0, within.sizes))
    return summary, Change(max(one.largest for one in changes), max(one.mean for one in changes))


def _is_consistent_repair(repair: Any) -> bool:
    histograms, n_groups = getattr(repair, "counted_", None), len(repair.groups_)
    if histograms is not None and (histograms.groups.labels, histograms.grid) != (repair.groups_.labels, repair.grid_):
        return False
    low, high = (-np.inf, np.inf) if repair.extrapolates else repair.range_
    within, randomized = (getattr(repair, name, None) for name in ("stratum_maps_", "randomized_maps_"))
    if within is not None and within.sizes.shape[1] != n_groups:
        return False
    if randomized is not None and randomized.map_of_group.size != n_groups:
        return False
    ends = [(one.knots, one.images) for one in (*repair.maps_, *(() if within is None else within.maps))]
    ends += [] if randomized is None else [(randomized.target, randomized.target)]
    slack = 0.0 if repair.extrapolates else _ROUNDING * (high - low)
    if not all(low - slack <= array[0] and array[-1] <= high + slack for pair in ends for array in pair):
        return False
    knots, rows = [one.knots.size for one in repair.maps_], [one.size for one in repair.rows_at_knots_]
    return knots == rows and len(knots) == repair.own_map_.size == n_groups and repair.n_features_in_ == 1


def _is_consistent_classifier(model: Any) -> bool:
    return hasattr(model.repair_, "maps_") and hasattr(model.estimator_, "predict_proba") and model.classes_.size == 2


def _is_consistent_regressor(model: Any) -> bool:
    return hasattr(model.repair_, "maps_") and model.repair_.extrapolates and hasattr(model.estimator_, "predict")


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


def _stratum_maps_from_parts(parts: dict[str, Any]) -> StratumMaps:
    valid = tuple_of(instance_of(QuantileMap))(parts["maps"]) and tuple_of(_is_rows_of_cell)(parts["rows_at_knots"])
    valid = valid and isinstance(parts["strata"], Strata) and is_count(parts["min_size"])
    if not valid or not number_array(2)(parts["sizes"]) or parts["sizes"].dtype.kind != "i":
        raise TypeError("The maps of strata need strata, maps and counts of rows.")
    return StratumMaps(**parts)


def _is_rows_of_cell(value: Any) -> bool:
    return bool(number_array(1)(value) and value.dtype.kind == "i" and (value >= 0).all())


def _randomized_from_parts(parts: dict[str, Any]) -> RandomizedMaps:
    def floats(n_axes: int) -> Check:
        return lambda value: number_array(n_axes)(value) and value.dtype == np.float64

    vectors = all(floats(1)(parts[name]) for name in ("levels", "target"))
    valid = vectors and tuple_of(floats(1))(parts["cuts"]) and tuple_of(floats(2))(parts["kernels"])
    if not valid or not number_array(1)(parts["map_of_group"]) or parts["map_of_group"].dtype.kind != "i":
        raise TypeError("Randomised maps consist of floats of 64 bits, and of the number of each group's map.")
    return RandomizedMaps(**parts)


def _is_splitter(value: Any) -> bool:
    return type(value).__name__ in {"KFold", "StratifiedKFold"}


def _is_range(value: Any) -> bool:
    try:
        resolve_range(value)
    except (TypeError, ValueError):
        return False
    return True


_PARAMS = {
    **GROUP_PARAMS,
    "amount": number_in(0.0, 1.0),
    "criterion": is_criterion,
    "random_state": is_seed,
    "randomize": is_bool,
    "stream_half_life": number_in(0.0, 1e300),
}

VALUE_TYPES = (
    ValueType("grid", Grid, attributes_of("low", "high", "n_bins"), lambda parts: Grid(**parts)),
    ValueType("map", QuantileMap, attributes_of("knots", "images"), _map_from_parts),
    ValueType("histograms", GroupHistograms, _histograms_to_parts, _histograms_from_parts),
    ValueType(
        "stratum_maps",
        StratumMaps,
        attributes_of("strata", "maps", "rows_at_knots", "sizes", "min_size"),
        _stratum_maps_from_parts,
    ),
    ValueType(
        "randomized_maps",
        RandomizedMaps,
        attributes_of("cuts", "kernels", "levels", "target", "map_of_group"),
        _randomized_from_parts,
    ),
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
            "randomized_maps_": instance_of(RandomizedMaps),
            "rows_at_knots_": tuple_of(_is_rows_of_map),
            "set_aside_": dict_of(is_count),
            "stratum_maps_": instance_of(StratumMaps),
            "target_": number_array(1),
        },
        required=("grid_", "groups_", "maps_", "n_features_in_", "own_map_", "rows_at_knots_"),
        params={**_PARAMS, "range": _is_range},
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
            "amount": number_in(0.0, 1.0),
            "cv": any_of(is_none, count_up_to(1000), _is_splitter),
            "estimator": is_estimator,
            "repair": any_of(is_none, instance_of(QuantileRepair)),
        },
        is_consistent=_is_consistent_classifier,
    ),
    Recipe(
        "fairtransport.QuantileRepairRegressor",
        attributes={
            "estimator_": lambda value: hasattr(value, "predict"),
            "repair_": lambda value: type(value).__name__ == "QuantileRepair",
        },
        required=("estimator_", "repair_"),
        params={
            "amount": number_in(0.0, 1.0),
            "cv": any_of(is_none, count_up_to(1000), _is_splitter),
            "estimator": is_estimator,
            "repair": any_of(is_none, instance_of(QuantileRepair)),
        },
        is_consistent=_is_consistent_regressor,
    ),
)
