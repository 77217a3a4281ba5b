"""Checks of the parameters of a `TableModel`, and of its training table."""

from __future__ import annotations

import inspect
from typing import Any

from fairtransport._columns import say_columns
from fairtransport._validation import check_choice, check_flag, check_real

__all__ = ["check_columns", "check_parameters", "trains_for_parity"]


def trains_for_parity(estimator: Any) -> bool:
    """Return whether ``fit`` takes groups; a method without a signature to tell does not."""
    return "sensitive_features" in inspect.signature(estimator.fit).parameters


def check_parameters(model: Any) -> None:
    """Raise for parameters that are not allowed."""
    if not isinstance(model.label, str):
        raise TypeError(f"label must be the name of a column; got a {type(model.label).__name__}.")
    if (
        isinstance(model.sensitive_features, str)
        or not model.sensitive_features
        or len({*model.sensitive_features}) < len(model.sensitive_features)
    ):
        raise ValueError("sensitive_features must name at least one column, and each once, in a list.")
    if model.label in model.sensitive_features:
        raise ValueError(f"Column {model.label!r} is the label and cannot be a group as well.")
    _check_strata(model)
    check_flag(model.aware, name="aware")
    if model.positive is not None and model.task == "regression":
        raise ValueError("positive is the label of a class; a regressor predicts numbers.")
    check_choice(model.missing, ("set_aside", "group"), name="missing")
    if model.max_disparity is not None:
        check_real(model.max_disparity, name="max_disparity")
        if not trains_for_parity(model.estimator):
            raise ValueError(f"max_disparity needs a method with an amount; {type(model.estimator).__name__} is none.")


def _check_strata(model: Any) -> None:
    if isinstance(model.strata, str) or len({*model.strata}) < len(model.strata):
        raise ValueError("strata must be a list that names each column once.")
    if model.label in model.strata:
        raise ValueError(
            f"Column {model.label!r} is the label and cannot be a stratum as well; to compare people with the same "
            "label, use criterion='equalized_odds'."
        )
    both = [name for name in model.strata if name in model.sensitive_features]
    if both:
        raise ValueError(
            f"{say_columns(both).capitalize()}: a stratum that is a group as well has people of one group only, so "
            "there is nothing to compare."
        )


def check_columns(model: Any, columns: dict[str, Any]) -> None:
    """Raise unless a training table has all columns that the parameters name."""
    roles = {
        "label": [model.label],
        "sensitive_features": model.sensitive_features,
        "strata": model.strata,
        "drop": model.drop,
        "categorical": model.categorical,
    }
    for role, names in roles.items():
        absent = [name for name in names if name not in columns]
        if absent:
            raise ValueError(f"The table has no {say_columns(absent)} ({role}).")
