"""Recipes of models of raw tables: the encoding of each column, and the classifier or regressor."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fairtransport.groups import GroupPolicy
from fairtransport.persistence._values import ValueType, attributes_of
from fairtransport.persistence.recipes._registry import (
    FEATURE_NAMES,
    Recipe,
    any_of,
    dict_of,
    instance_of,
    is_bool,
    is_count,
    is_estimator,
    is_none,
    is_plain,
    is_text,
    is_word,
    label_array,
    list_of,
    number_array,
    number_in,
    tuple_of,
)
from fairtransport.tabular.column_plans import DATE_PATTERNS, ColumnPlan

_KINDS = ("number", "date", "words")
_PARTS = {"", "days", "month", "weekday", "hour"}


def _plan_from_parts(parts: dict[str, Any]) -> ColumnPlan:
    plan = ColumnPlan(**parts)
    texts = (plan.name, plan.kind, plan.pattern, *plan.parts, *plan.words)
    if not all(isinstance(text, str) for text in texts) or plan.kind not in _KINDS or plan.pattern not in DATE_PATTERNS:
        raise ValueError("A column must have a name and a known kind.")
    if not isinstance(plan.parts, tuple) or not isinstance(plan.words, tuple) or not set(plan.parts) <= _PARTS:
        raise ValueError("The parts of a column must be known ones.")
    if not isinstance(plan.other, bool) or not isinstance(plan.missing, bool) or not plan.width:
        raise ValueError("A column must be encoded as at least one.")
    fitting = {"number": plan.parts == ("",), "date": "" not in plan.parts, "words": plan.parts == ()}
    if not fitting[plan.kind] or len(set(plan.parts)) < len(plan.parts) or (plan.other and plan.kind != "words"):
        raise ValueError("The parts of a column must be those of its kind.")
    if len(set(plan.words)) < len(plan.words) or bool(plan.words) != (plan.kind == "words"):
        raise ValueError("The words of a column of words must be distinct; other columns have none.")
    arrays = (plan.centre, plan.scale)
    if not all(number_array(1)(one) and one.shape == (len(plan.parts),) for one in arrays) or (plan.scale <= 0).any():
        raise ValueError("A column must have a mean and a positive scale for each part.")
    return plan


def _is_consistent_encoder(encoder: Any) -> bool:
    names = [plan.name for plan in encoder.plans_]
    if hasattr(encoder, "feature_names_in_"):
        columns = encoder.feature_names_in_.tolist()
        named = set(names) <= set(columns) and len(columns) == encoder.n_features_in_
    else:  # a matrix: x0, x1, ...
        named = all(re.fullmatch(r"x\d{1,9}", name) and int(name[1:]) < encoder.n_features_in_ for name in names)
    return bool(
        names
        and named
        and len(set(names)) == len(names)
        and encoder.decimal in {".", ","}
        and encoder.sparse_output in {True, False}
    )


def _is_consistent_model(model: Any) -> bool:
    names = (model.label, *model.sensitive_features)
    if isinstance(model.sensitive_features, str) or not all(isinstance(name, str) for name in names):
        return False
    if is_regressor(model.estimator):
        labelled = is_regressor(model.estimator_) and not hasattr(model, "classes_")
    else:
        words = getattr(model, "classes_", np.empty(0)).tolist()
        labelled = _is_binary_classifier(model.estimator_) and [*map(type, words)] == [str, str]
    width = sum(plan.width for plan in model.encoder_.plans_) if hasattr(model.encoder_, "plans_") else -1
    groups = getattr(getattr(model.estimator_, "repair_", model.estimator_), "groups_", None)
    fits = groups is None or tuple(groups.columns) == tuple(model.sensitive_features)
    strata = model.known_strata
    fits &= strata is None or tuple(strata.columns) == tuple(model.strata)
    fits &= {*model.numeric_strata_} <= {*model.strata} and {*model.strata}.isdisjoint(names)
    return bool(labelled and fits and model.estimator_.n_features_in_ == width)


def _is_binary_classifier(value: Any) -> bool:
    return hasattr(value, "predict_proba") and np.size(getattr(value, "classes_", ())) == 2


_NAMES = any_of(list_of(is_text), tuple_of(is_text))

VALUE_TYPES = (
    ValueType("column", ColumnPlan, attributes_of(*(one.name for one in fields(ColumnPlan))), _plan_from_parts),
)

RECIPES = (
    Recipe(
        "fairtransport.tabular.TableEncoder",
        attributes={
            **FEATURE_NAMES,
            "left_out_": dict_of(is_text),
            "plans_": list_of(instance_of(ColumnPlan)),
            "unreadable_": dict_of(is_count),
        },
        required=("n_features_in_", "plans_"),
        params={
            "categorical": _NAMES,
            "decimal": is_word,
            "max_categories": is_count,
            "min_frequency": is_count,
            "sparse_output": is_bool,
        },
        is_consistent=_is_consistent_encoder,
    ),
    Recipe(
        "fairtransport.tabular.TableModel",
        attributes={
            "classes_": label_array(1),
            "encoder_": lambda value: type(value).__name__ == "TableEncoder",
            "estimator_": is_estimator,
            "leaking_columns_": list_of(is_text),
            "numeric_strata_": list_of(is_text),
            "set_aside_": dict_of(is_count),
        },
        required=("encoder_", "estimator_", "numeric_strata_"),
        params={
            "aware": is_bool,
            "categorical": _NAMES,
            "decimal": is_word,
            "drop": _NAMES,
            "estimator": is_estimator,
            "label": is_text,
            "max_disparity": any_of(is_none, number_in(0.0, 1e300)),
            "groups": any_of(is_none, instance_of(GroupPolicy)),
            "positive": is_plain,
            "sensitive_features": any_of(is_text, _NAMES),
            "strata": _NAMES,
        },
        not_stored=("verbose",),
        is_consistent=_is_consistent_model,
    ),
)
