"""Recipes of blind repair: two models, the calibration, the cells and the potentials; no row of the training data."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from fairtransport.groups import Groups
from fairtransport.persistence._values import ValueType, attributes_of
from fairtransport.persistence.recipes._registry import (
    GROUP_PARAMS,
    Recipe,
    any_of,
    count_up_to,
    instance_of,
    is_bool,
    is_count,
    is_criterion,
    is_estimator,
    is_finite,
    is_none,
    is_seed,
    label_array,
    number_array,
    number_in,
    one_of,
)
from fairtransport.repair.blind.group_model import Calibration, GroupModelReport
from fairtransport.repair.blind.potentials import LOSSES, Cells, Potentials
from fairtransport.strata import Strata

_MOST_CELLS = 1 << 20


def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _is_floats(value: Any, n_axes: int) -> bool:
    return bool(number_array(n_axes)(value) and value.dtype == np.float64)


def _cells_from_parts(parts: dict[str, Any]) -> Cells:
    indices = [parts[name] for name in ("groups", "labels", "strata")]
    shares = [parts[name] for name in ("shares", "totals")]
    if not all(number_array(1)(one) and one.dtype == np.int64 for one in indices):
        raise TypeError("Cells have whole numbers for their groups, labels and strata.")
    by_stratum = [parts[name] for name in ("priors", "stratum_shares")]
    if not all(_is_floats(one, 1) for one in shares) or not all(_is_floats(one, 3) for one in by_stratum):
        raise TypeError("The shares of cells must be floats of 64 bits.")
    if len({one.size for one in (*indices, *shares)}) != 1 or not 0 < indices[0].size <= _MOST_CELLS:
        raise ValueError("The parts of cells must agree in shape.")
    if by_stratum[0].shape != by_stratum[1].shape or (by_stratum[1] < 0.0).any():
        raise ValueError("The shares of strata must be those of the same groups, and not negative.")
    limits = (parts["priors"].shape[2], parts["priors"].shape[1], parts["priors"].shape[0])
    lowest = (0, 0, -1)
    for index, least, limit in zip(indices, lowest, limits, strict=True):
        if (index < least).any() or (index >= limit).any():
            raise ValueError("Cells must be of groups, labels and strata that there are.")
    if any((one <= 0.0).any() for one in shares) or (parts["priors"] <= 0.0).any():
        raise ValueError("The shares of cells must be positive.")
    return Cells(**parts)


def _potentials_from_parts(parts: dict[str, Any]) -> Potentials:
    nodes, slopes = parts["nodes"], parts["slopes"]
    if not _is_floats(nodes, 1) or not _is_floats(slopes, 2) or parts["loss"] not in LOSSES:
        raise TypeError("Potentials consist of nodes, slopes and a loss.")
    if nodes.size < 2 or slopes.shape[1] != nodes.size - 1 or (np.diff(nodes) <= 0.0).any():
        raise ValueError("The nodes of potentials must ascend, with a slope between each two.")
    if parts["loss"] == "log" and not (nodes[0] > 0.0 and nodes[-1] < 1.0):
        raise ValueError("The nodes of potentials must lie between 0 and 1 where the loss is logarithmic.")
    return Potentials(**parts)


def _calibration_from_parts(parts: dict[str, Any]) -> Calibration:
    numbers, offsets = [parts[name] for name in ("factor", "change", "center", "scale")], parts["offsets"]
    if not all(map(is_finite, numbers)) or not _is_floats(offsets, 1) or not _is_floats(parts["slopes"], 1):
        raise TypeError("A calibration consists of numbers, and of an offset and a slope for each class.")
    if offsets.size < 2 or parts["slopes"].size != offsets.size or parts["scale"] < 0.0:
        raise ValueError("A calibration has an offset and a slope for each of two or more classes, and a scale.")
    return Calibration(**parts)


def _report_from_parts(parts: dict[str, Any]) -> GroupModelReport:
    report = GroupModelReport(**parts)
    counts = (report.n_rows, report.n_groups)
    figures = [getattr(report, name) for name in _names(GroupModelReport)[2:-1]]
    valid = all(map(is_count, counts)) and all(map(is_finite, figures)) and is_bool(report.is_predictable)
    if not valid:
        raise TypeError("The report of a blind repair consists of counts and finite numbers.")
    return report


def _is_consistent(model: Any) -> bool:
    cells, priors, n_classes = model.cells_, model.cells_.priors, model.group_calibration_.offsets.size
    n_strata = 1 if model.strata_ is None else len(model.strata_)
    coded = np.asarray(model.group_estimator_.classes_)
    if priors.shape[0] != n_strata or priors.shape[2] != len(model.groups_):
        return False
    if priors.shape[1] * priors.shape[2] != n_classes or len(model.potentials_.slopes) != len(cells):
        return False
    if (model.strata_ is None) and (cells.strata >= 0).any():
        return False
    return bool(coded.dtype.kind in "iu" and coded.size and (coded >= 0).all() and (coded < n_classes).all())


def _is_consistent_classifier(model: Any) -> bool:
    nodes = model.potentials_.nodes
    return _is_consistent(model) and model.classes_.size == 2 and nodes[0] >= 0.0 and nodes[-1] <= 1.0


_ATTRIBUTES = {
    "cells_": instance_of(Cells),
    "group_calibration_": instance_of(Calibration),
    "group_estimator_": lambda value: hasattr(value, "predict_proba") and hasattr(value, "classes_"),
    "groups_": instance_of(Groups),
    "potentials_": instance_of(Potentials),
    "report_": instance_of(GroupModelReport),
    "strata_": any_of(is_none, instance_of(Strata)),
}
_PARAMS = {
    **{name: check for name, check in GROUP_PARAMS.items() if name != "target"},
    "amount": number_in(0.0, 1.0),
    "criterion": is_criterion,
    "cv": any_of(count_up_to(1000), lambda value: type(value).__name__ in {"KFold", "StratifiedKFold"}),
    "estimator": is_estimator,
    "group_estimator": any_of(is_none, is_estimator),
    "max_disparity": any_of(is_none, number_in(0.0, 1e300)),
    "random_state": is_seed,
    "slack": any_of(one_of("auto"), number_in(0.0, 1.0)),
}

VALUE_TYPES = (
    ValueType("cells", Cells, attributes_of(*_names(Cells)), _cells_from_parts),
    ValueType("potentials", Potentials, attributes_of(*_names(Potentials)), _potentials_from_parts),
    ValueType("group_calibration", Calibration, attributes_of(*_names(Calibration)), _calibration_from_parts),
    ValueType("group_report", GroupModelReport, attributes_of(*_names(GroupModelReport)), _report_from_parts),
)

RECIPES = (
    Recipe(
        "fairtransport.BlindRepairClassifier",
        attributes={
            **_ATTRIBUTES,
            "classes_": label_array(1),
            "estimator_": lambda value: hasattr(value, "predict_proba"),
        },
        required=("classes_", "estimator_", *_ATTRIBUTES),
        params={**_PARAMS, "loss": one_of(*LOSSES)},
        is_consistent=_is_consistent_classifier,
    ),
    Recipe(
        "fairtransport.BlindRepairRegressor",
        attributes={**_ATTRIBUTES, "estimator_": lambda value: hasattr(value, "predict")},
        required=("estimator_", *_ATTRIBUTES),
        params=_PARAMS,
        is_consistent=_is_consistent,
    ),
)
