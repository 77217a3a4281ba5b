"""How models of raw tables are stored: what becomes of each column, and the classifier behind."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np

from fairtransport.persistence._values import add_value_type
from fairtransport.persistence.recipes._registry import (
    COLUMNS,
    Recipe,
    add_recipe,
    count,
    labels,
    list_of,
    numbers,
    of_type,
)
from fairtransport.tabular.column_plans import ColumnPlan
from fairtransport.tabular.value_parsing import DATE_PATTERNS

__all__: list[str] = []

_KINDS = ("number", "date", "words")
_PARTS = {"", "days", "month", "weekday", "hour"}


def _plan_of(parts: dict[str, Any]) -> ColumnPlan:
    plan = ColumnPlan(**parts)
    texts = (plan.name, plan.kind, plan.pattern, *plan.parts, *plan.words)
    if not all(isinstance(text, str) for text in texts) or plan.kind not in _KINDS or plan.pattern not in DATE_PATTERNS:
        raise ValueError("a column needs a name, and a kind that is known")
    if not isinstance(plan.parts, tuple) or not isinstance(plan.words, tuple) or not set(plan.parts) <= _PARTS:
        raise ValueError("a column has parts that are not known")
    if not isinstance(plan.other, bool) or not isinstance(plan.missing, bool) or not plan.width:
        raise ValueError("a column must become at least one")
    if len(set(plan.words)) < len(plan.words) or bool(plan.words) != (plan.kind == "words"):
        raise ValueError("words of a column that are not all different, or of one that has none")
    held = (plan.centre, plan.scale)
    if not all(numbers(1)(one) and one.shape == (len(plan.parts),) for one in held) or (plan.scale <= 0).any():
        raise ValueError("a column needs a mean and a scale for each part")
    return plan


def _is_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and count(v) for k, v in value.items())


def _are_reasons(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items())


def _is_encoder_whole(encoder: Any) -> bool:
    names = [plan.name for plan in encoder.plans_]
    if hasattr(encoder, "feature_names_in_"):
        held = encoder.feature_names_in_.tolist()
        named = set(names) <= set(held) and len(held) == encoder.n_features_in_
    else:  # a matrix: x0, x1, ...
        named = all(re.fullmatch(r"x\d{1,9}", name) and int(name[1:]) < encoder.n_features_in_ for name in names)
    return bool(
        names
        and named
        and len(set(names)) == len(names)
        and encoder.decimal in {".", ","}
        and encoder.sparse_output in {True, False}
    )


def _is_model_whole(model: Any) -> bool:
    names = (model.label, *model.sensitive_features)
    if isinstance(model.sensitive_features, str) or not all(isinstance(name, str) for name in names):
        return False
    two = model.classes_.size == 2 and all(isinstance(word, str) for word in model.classes_.tolist())
    width = sum(plan.width for plan in model.encoder_.plans_) if hasattr(model.encoder_, "plans_") else -1
    known = getattr(getattr(model.estimator_, "repair_", model.estimator_), "groups_", None)
    fits = known is None or tuple(known.columns) == tuple(model.sensitive_features)
    return bool(two and fits and model.missing in {"set_aside", "group"} and model.estimator_.n_features_in_ == width)


def _has_scores(value: Any) -> bool:
    return hasattr(value, "predict_proba") and np.size(getattr(value, "classes_", ())) == 2


add_value_type(
    "column",
    ColumnPlan,
    lambda plan: {one.name: getattr(plan, one.name) for one in fields(ColumnPlan)},
    _plan_of,
)
add_recipe(
    Recipe(
        "fairtransport.tabular.TableEncoder",
        {**COLUMNS, "left_out_": _are_reasons, "plans_": list_of(of_type(ColumnPlan)), "unreadable_": _is_counts},
        ("n_features_in_", "plans_"),
        _is_encoder_whole,
    )
)
add_recipe(
    Recipe(
        "fairtransport.tabular.TableModel",
        {
            "classes_": labels(1),
            "encoder_": lambda value: type(value).__name__ == "TableEncoder",
            "estimator_": _has_scores,
            "set_aside_": _is_counts,
        },
        ("classes_", "encoder_", "estimator_"),
        _is_model_whole,
        stored_names={"sensitive_features": "sensitive"},
    )
)
