"""Recipes of models of raw tables: the encoding of each column, and the classifier or regressor."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import Recipe, record
from fairtransport.tabular.column_plans import DATE_PATTERNS, ColumnPlan


def _is_plan(plan: ColumnPlan) -> bool:
    """Return whether the parts of a column are those of its kind, each with a mean and a positive scale."""
    fitting = {"number": plan.parts == ("",), "date": "" not in plan.parts, "words": plan.parts == ()}
    return bool(
        plan.width
        and fitting[plan.kind]
        and len({*plan.parts}) == len(plan.parts)
        and len({*plan.words}) == len(plan.words)
        and bool(plan.words) == (plan.kind == "words")
        and (not plan.other or plan.kind == "words")
        and plan.centre.shape == plan.scale.shape == (len(plan.parts),)
        and (plan.scale > 0).all()
    )


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
        binary = hasattr(model.estimator_, "predict_proba") and np.size(getattr(model.estimator_, "classes_", ())) == 2
        labelled = binary and [*map(type, words)] == [str, str]
    width = sum(plan.width for plan in model.encoder_.plans_) if hasattr(model.encoder_, "plans_") else -1
    groups = getattr(getattr(model.estimator_, "repair_", model.estimator_), "groups_", None)
    fits = groups is None or tuple(groups.columns) == tuple(model.sensitive_features)
    strata = model.known_strata
    fits &= strata is None or tuple(strata.columns) == tuple(model.strata)
    fits &= {*model.numeric_strata_} <= {*model.strata} and {*model.strata}.isdisjoint(names)
    return bool(labelled and fits and model.estimator_.n_features_in_ == width)


VALUE_TYPES = (
    record(
        "column",
        ColumnPlan,
        _is_plan,
        name=check.text,
        kind=check.one_of("number", "date", "words"),
        pattern=check.one_of(*DATE_PATTERNS),
        parts=check.tuple_of(check.one_of("", "days", "month", "weekday", "hour")),
        words=check.tuple_of(check.text),
        centre=check.array(1),
        scale=check.array(1),
        other=check.boolean,
        missing=check.boolean,
    ),
)

RECIPES = (
    Recipe(
        "fairtransport.tabular.TableEncoder",
        fitted={**check.COLUMNS, "plans_": check.list_of(check.instance_of(ColumnPlan))},
        optional={
            **check.COLUMN_NAMES,
            "left_out_": check.dict_of(check.text),
            "unreadable_": check.dict_of(check.count),
        },
        params={
            "categorical": check.names,
            "decimal": check.word,
            "max_categories": check.count,
            "min_frequency": check.count,
            "sparse_output": check.boolean,
        },
        is_consistent=_is_consistent_encoder,
    ),
    Recipe(
        "fairtransport.tabular.TableModel",
        fitted={
            "encoder_": check.class_named("TableEncoder"),
            "estimator_": check.estimator,
            "numeric_strata_": check.list_of(check.text),
        },
        optional={
            "classes_": check.labels(1),
            "leaking_columns_": check.list_of(check.text),
            "set_aside_": check.dict_of(check.count),
        },
        params={
            "aware": check.boolean,
            "categorical": check.names,
            "decimal": check.word,
            "drop": check.names,
            "estimator": check.estimator,
            "groups": check.policy,
            "label": check.text,
            "max_disparity": check.or_none(check.amount),
            "pos_label": check.plain,
            "sensitive_features": check.any_of(check.text, check.names),
            "strata": check.names,
        },
        not_stored=("verbose",),
        is_consistent=_is_consistent_model,
    ),
)
