"""Recipes of the repairs: quantile maps as summaries and not as scores of individuals, and blind repair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from fairtransport._arrays import Ints
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.persistence._summaries import NO_CHANGE, Change, summarise_map
from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import Recipe, ValueType, named_recipe, record, summarize_target
from fairtransport.repair import BlindRepair, QuantileRepair
from fairtransport.repair.blind.group_model import MOST_LOGIT, Calibration, GroupModelReport
from fairtransport.repair.blind.potentials import LOSSES, Cells, Potentials
from fairtransport.repair.group_maps import resolve_range
from fairtransport.repair.randomized_maps import RandomizedMaps
from fairtransport.repair.stratum_maps import StratumMaps
from fairtransport.strata import Strata
from fairtransport.transport.line import QuantileMap

Summarise = Callable[..., tuple[QuantileMap, Ints, Change]]


_ROUNDING = 1e-12  # of a range, by which a knot or an image may lie outside


def _summarize_repair(repair: Any, people: int) -> dict[str, tuple[Any, Change]]:
    summaries = summarize_target(repair, people)
    if not hasattr(repair, "maps_"):
        return summaries
    randomized = getattr(repair, "randomized_maps_", None)
    if randomized is not None:
        least = min(_rows_of_classes(rows) for rows in repair.rows_at_knots_)
        if people > least:
            raise ValueError(
                f"A randomised repair has points of {least} or more rows, so people_per_point can be at most {least}; "
                f"got {people}."
            )
        target, change = summaries["target_"]
        return {**summaries, "randomized_maps_": (replace(randomized, target=target), change)}
    rows_at_knots = getattr(repair, "rows_at_knots_", None)
    if rows_at_knots is None:  # each knot may be the score of one person
        rows_at_knots = tuple(np.ones(one.knots.size, dtype=np.int64) for one in repair.maps_)
    summarise = partial(
        summarise_map, people=people, grid=repair.grid_, score_range=None if repair.extrapolates else repair.range_
    )
    maps, rows, change = _joined([*map(summarise, repair.maps_, rows_at_knots)])
    summaries |= {"maps_": (maps, change), "rows_at_knots_": (rows, NO_CHANGE)}
    within = getattr(repair, "stratum_maps_", None)
    if within is not None:
        # The lowest and highest scores of a learned range are those of people; the ends of an identity may be any.
        ends = (0.0, 1.0) if repair.extrapolates else repair.range_
        summaries["stratum_maps_"] = _summarize_strata(within, people, ends, summarise)
    return summaries


def _rows_of_classes(rows: Ints) -> int:
    """Return the fewest rows of a class of scores; expected maps have a knot on both sides of every cut."""
    inner = rows[1:-1].reshape(-1, 2).sum(axis=1) if rows.size > 1 else rows[:0]
    return int(min(rows[0], rows[-1], *inner))


def _joined(
    summaries: Sequence[tuple[QuantileMap, Ints, Change]],
) -> tuple[tuple[QuantileMap, ...], tuple[Ints, ...], Change]:
    """Return the maps of summaries, their rows, and the largest changes."""
    maps, rows, changes = zip(*summaries, strict=True)
    return maps, rows, Change(max(one.largest for one in changes), max(one.mean for one in changes))


def _summarize_strata(
    within: StratumMaps, people: int, ends: tuple[float, float], summarise: Summarise
) -> tuple[StratumMaps, Change]:
    """Return the maps of strata as summaries; cells with fewer people than a point needs use the map of their group."""
    nobody = QuantileMap(np.array(ends), np.array(ends)), np.zeros(2, dtype=np.int64), NO_CHANGE
    cells = zip(within.maps, within.rows_at_knots, within.sizes.ravel().tolist(), strict=True)
    parts = [nobody if size < people or not rows.any() else summarise(carry, rows) for carry, rows, size in cells]
    maps, rows, change = _joined(parts)
    sizes = np.where(within.sizes < people, 0, within.sizes)
    return replace(within, maps=maps, rows_at_knots=rows, sizes=sizes), change


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


def _is_range(value: Any) -> bool:
    try:
        resolve_range(value)
    except (TypeError, ValueError):
        return False
    return True


def _histograms_from_parts(parts: dict[str, Any]) -> GroupHistograms:
    histograms = GroupHistograms.from_arrays(parts)
    arrays = (histograms.masses, histograms.squares_by_class)
    valid = all(np.isfinite(array).all() and (array >= 0.0).all() for array in arrays)
    if not valid or not (histograms.weights > 0.0).all():
        raise ValueError("The weights of histograms must be finite and not negative, and positive for every group.")
    return histograms


def _are_cells(cells: Cells) -> bool:
    """Return whether cells are of groups, labels and strata that there are, and have positive shares."""
    of_cells = (cells.strata, cells.labels, cells.groups)
    return bool(
        len({one.size for one in (*of_cells, cells.shares, cells.totals)}) == 1
        and 0 < cells.groups.size <= _MOST_CELLS
        and cells.stratum_shares.shape == cells.priors.shape
        and all((one < most).all() for one, most in zip(of_cells, cells.priors.shape, strict=True))
        and all((one >= 1.0 / _MOST_SCORE).all() for one in (cells.shares, cells.totals, cells.priors))
    )


def _are_potentials(potentials: Potentials) -> bool:
    """Return whether nodes ascend, between 0 and 1 where the loss is logarithmic, with a slope between each two."""
    nodes = potentials.nodes
    inside = potentials.loss != "log" or (nodes[0] > 0.0 and nodes[-1] < 1.0)
    slopes = nodes.size >= 2 and potentials.slopes.shape[1] == nodes.size - 1
    usable = all((np.abs(one) <= _MOST_SCORE).all() for one in (nodes, potentials.slopes))
    return bool(slopes and usable and (np.diff(nodes) > 0.0).all() and inside)


def _is_calibration(one: Calibration) -> bool:
    """Return whether there is an offset and a slope for each class, all within the bounds of the fit."""
    largest = np.abs([one.factor, one.change, *one.offsets, *one.slopes]).max(initial=0.0)
    return bool(one.slopes.size == one.offsets.size >= 2 and largest <= MOST_LOGIT)


def _is_consistent_blind(model: Any) -> bool:
    cells, n_classes = model.cells_, model.group_calibration_.offsets.size
    n_strata, n_labels, n_groups = cells.priors.shape
    coded = np.asarray(model.group_estimator_.classes_)
    widths = {getattr(one, "n_features_in_", None) for one in (model.group_estimator_, model.estimator_)} - {None}
    return bool(
        n_strata == (1 if model.strata_ is None else len(model.strata_))
        and n_groups == len(model.groups_)
        and n_labels * n_groups == n_classes
        and len(widths) < 2
        and len(model.potentials_.slopes) == len(cells)
        and (model.strata_ is not None or (cells.strata < 0).all())
        and (coded.dtype.kind in "iu" and coded.size and (coded >= 0).all() and (coded < n_classes).all())
    )


def _is_consistent_blind_classifier(model: Any) -> bool:
    nodes = model.potentials_.nodes
    return _is_consistent_blind(model) and model.classes_.size == 2 and nodes[0] >= 0.0 and nodes[-1] <= 1.0


_MOST_CELLS = 1 << 20
_MOST_SCORE = 1e100  # squares and products of three are finite
_MAPS = check.tuple_of(check.instance_of(QuantileMap))
_ROWS_OF_CELL = check.integers(1, least=0)

VALUE_TYPES = (
    record("grid", Grid)._replace(to_parts=lambda grid: {"low": grid.low, "high": grid.high, "n_bins": grid.n_bins}),
    ValueType(
        "histograms",
        GroupHistograms,
        lambda histograms: {**histograms.to_arrays(), "spec": str(histograms.to_arrays()["spec"])},
        _histograms_from_parts,
    ),
    record(
        "map",
        QuantileMap,
        make=lambda **parts: QuantileMap(**parts).prepare(),
        knots=check.floats(1),
        images=check.floats(1),
    ),
    record(
        "stratum_maps",
        StratumMaps,
        strata=check.instance_of(Strata),
        maps=_MAPS,
        rows_at_knots=check.tuple_of(_ROWS_OF_CELL),
        sizes=check.integers(2),
        min_size=check.count,
    ),
    record(
        "randomized_maps",
        RandomizedMaps,
        cuts=check.tuple_of(check.floats(1)),
        kernels=check.tuple_of(check.floats(2)),
        levels=check.floats(1),
        target=check.floats(1),
        map_of_group=check.integers(1),
    ),
    record(
        "cells",
        Cells,
        _are_cells,
        **dict.fromkeys(("groups", "labels"), check.array(1, dtype=np.int64, least=0)),
        strata=check.array(1, dtype=np.int64, least=-1),
        **dict.fromkeys(("shares", "totals"), check.floats(1)),
        **dict.fromkeys(("priors", "stratum_shares"), check.floats(3, least=0.0)),
    ),
    record(
        "potentials",
        Potentials,
        _are_potentials,
        nodes=check.floats(1),
        slopes=check.floats(2),
        loss=check.one_of(*LOSSES),
    ),
    record(
        "group_calibration",
        Calibration,
        _is_calibration,
        **dict.fromkeys(("factor", "change", "center"), check.finite),
        **dict.fromkeys(("offsets", "slopes"), check.floats(1)),
        scale=check.weight,
    ),
    record(
        "group_report",
        GroupModelReport,
        n_rows=check.count,
        n_groups=check.count,
        **dict.fromkeys([one.name for one in fields(GroupModelReport)][2:-1], check.finite),
        is_predictable=check.boolean,
    ),
)

_CHECKS = {
    **check.SHARED,
    **check.by_name(
        {
            _MAPS: "maps_",
            _is_range: "range",
            check.any_of(check.one_of("auto"), check.share): "slack",
            check.array(1): "target_",
            check.boolean: "randomize",
            check.dict_of(check.count): "set_aside_",
            check.text: "outcome_",
            check.tuple_of(check.number, 3): "unexplained_",
            check.having("predict_proba", "classes_"): "group_estimator_",
            check.instance_of(Calibration): "group_calibration_",
            check.instance_of(Cells): "cells_",
            check.instance_of(GroupHistograms): "counted_",
            check.instance_of(GroupModelReport): "report_",
            check.instance_of(Potentials): "potentials_",
            check.instance_of(QuantileRepair): "repair_",
            check.instance_of(RandomizedMaps): "randomized_maps_",
            check.instance_of(StratumMaps): "stratum_maps_",
            check.one_of(*LOSSES): "loss",
            check.or_none(check.count_up_to(1000), check.class_named("KFold", "StratifiedKFold")): "cv",
            check.or_none(check.estimator): "group_estimator",
            check.or_none(check.instance_of(Grid)): "grid_",
            check.tuple_of(lambda rows: _ROWS_OF_CELL(rows) and bool(rows.any())): "rows_at_knots_",
            lambda value: check.labels(1)(value) and value.dtype == np.bool_: "own_map_",
        }
    ),
}
_recipe = partial(named_recipe, _CHECKS)


def _repaired(
    kind: str, fitted: str, predict: str, *, quantiles: check.Check, blind: check.Check
) -> tuple[Recipe, ...]:
    """Return the recipes of a classifier or regressor with a repair of quantiles, and with a blind one."""
    estimator = {"estimator_": check.having(predict)}
    return (
        _recipe(
            f"fairtransport.QuantileRepair{kind}",
            f"{fitted} estimator_ repair_",
            "outcome_ unexplained_",
            "amount cv estimator repair",
            other=estimator,
            is_consistent=lambda model: hasattr(model.repair_, "maps_") and quantiles(model),
        ),
        _recipe(
            f"fairtransport.BlindRepair{kind}",
            f"{fitted} cells_ estimator_ group_calibration_ group_estimator_ groups_ potentials_ report_ strata_",
            "outcome_",
            "amount cv estimator group_estimator repair slack",
            other={**estimator, "repair": check.or_none(check.instance_of(BlindRepair))},
            is_consistent=blind,
        ),
    )


RECIPES = (
    _recipe(
        "fairtransport.QuantileRepair",
        "grid_ groups_ maps_ n_features_in_ own_map_ rows_at_knots_",
        "counted_ group_sizes_ randomized_maps_ set_aside_ stratum_maps_ target_",
        "amount criterion groups online random_state randomize range target",
        is_consistent=_is_consistent_repair,
        summarize=_summarize_repair,
    ),
    _recipe("fairtransport.repair.BlindRepair", params="criterion groups loss max_disparity random_state"),
    *_repaired(
        "Classifier",
        "classes_",
        "predict_proba",
        quantiles=lambda model: model.classes_.size == 2,
        blind=_is_consistent_blind_classifier,
    ),
    *_repaired("Regressor", "", "predict", quantiles=lambda one: one.repair_.extrapolates, blind=_is_consistent_blind),
)
