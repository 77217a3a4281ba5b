"""Recipes of boosted trees: parameters, and the trees in the text format of their library, without pickle."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import Groups
from fairtransport.persistence._tree_texts import check_lightgbm, check_xgboost, clean_lightgbm, n_columns_of_lightgbm
from fairtransport.persistence._values import ValueType
from fairtransport.persistence.recipes._checks import (
    dict_of,
    instance_of,
    is_count,
    is_text,
    label_array,
    number_array,
)
from fairtransport.persistence.recipes._registry import Recipe
from fairtransport.persistence.recipes._targets import summarize_target
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BOOSTER", "RECIPES", "VALUE_TYPES"]

#: Name of the part of a file with the trees.
BOOSTER = "booster"
_CLASSIFIERS = {"LGBMClassifier", "XGBClassifier"}


def _import_library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ModelFileError(
            f'The file contains a model of {name}, which is not installed: pip install "fairtransport[boosting]"'
        ) from None


def _as_bytes(content: str) -> NDArray[np.uint8]:
    return np.frombuffer(content.encode(), dtype=np.uint8)


def _as_text(content: Any) -> str:
    if not (isinstance(content, np.ndarray) and content.dtype == np.uint8 and content.ndim == 1):
        raise TypeError("The trees of a file must be text.")
    return content.tobytes().decode()


def _checked_bytes(check: Any, content: str, name: str) -> NDArray[np.uint8]:
    try:
        check(content)
    except (KeyError, ValueError):
        raise TypeError(
            f"A model file cannot store this {name}: only trees of two classes with the logistic objective, without "
            "linear leaves, are supported. Save others in the format of their library."
        ) from None
    return _as_bytes(content)


# ---------------------------------------------------------------------------------------------------------- LightGBM


def _lightgbm_to_parts(estimator: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {"params": estimator.get_params(deep=False), BOOSTER: None}
    if estimator.__sklearn_is_fitted__():
        content = clean_lightgbm(estimator.booster_.model_to_string())
        parts[BOOSTER] = _checked_bytes(check_lightgbm, content, "LGBMClassifier")
        parts["classes"], parts["named"] = estimator.classes_, hasattr(estimator, "feature_names_in_")
    return parts


def _lightgbm_from_parts(parts: dict[str, Any]) -> Any:
    lightgbm = _import_library("lightgbm")
    if parts[BOOSTER] is None:
        return lightgbm.LGBMClassifier(**parts["params"])
    content, classes = _as_text(parts[BOOSTER]), parts["classes"]
    check_lightgbm(content)
    if not label_array(1)(classes) or classes.size != 2:
        raise ValueError("Boosted trees must have two classes.")
    # LightGBM has no public way to set the booster of an estimator: fit a minimal one, and replace its booster.
    rows: Any = np.zeros((2, n_columns_of_lightgbm(content)))
    if parts["named"]:
        booster = lightgbm.Booster(model_str=content)
        rows = _import_library("pandas").DataFrame(rows, columns=booster.feature_name())
    estimator = lightgbm.LGBMClassifier(n_estimators=1, min_child_samples=1, n_jobs=1, verbose=-1).fit(rows, classes)
    estimator.booster_.model_from_string(content)
    return estimator.set_params(**parts["params"])


# ----------------------------------------------------------------------------------------------------------- XGBoost


def _xgboost_to_parts(estimator: Any) -> dict[str, Any]:
    params = {name: value for name, value in estimator.get_params(deep=False).items() if value is not None}
    parts: dict[str, Any] = {"params": params, BOOSTER: None}
    if estimator.__sklearn_is_fitted__():
        content = estimator.get_booster().save_raw("json").decode()
        parts[BOOSTER] = _checked_bytes(check_xgboost, content, "XGBClassifier")
    return parts


def _xgboost_from_parts(parts: dict[str, Any]) -> Any:
    estimator = _import_library("xgboost").XGBClassifier(**parts["params"])
    if parts[BOOSTER] is not None:
        content = _as_text(parts[BOOSTER])
        check_xgboost(content)
        estimator.load_model(bytearray(content.encode()))  # also sets parameters, which are reset below
        unset = {name: None for name, value in estimator.get_params(deep=False).items() if value is not None}
        estimator.set_params(**{**unset, **parts["params"]})
    return estimator


# -------------------------------------------------------------------------------------------------------- classifier


def _is_fitted_trees(value: Any) -> bool:
    return type(value).__name__ in _CLASSIFIERS and value.__sklearn_is_fitted__()


def _is_fitted_repair_or_none(value: Any) -> bool:
    return value is None or (type(value).__name__ == "QuantileRepair" and hasattr(value, "maps_"))


def _is_consistent(model: Any) -> bool:
    repair = model.repair_
    return model.classes_.size == 2 and (repair is None or repair.groups_.labels == model.groups_.labels)


VALUE_TYPES = (
    ValueType("lightgbm", "lightgbm.sklearn.LGBMClassifier", _lightgbm_to_parts, _lightgbm_from_parts),
    ValueType("xgboost", "xgboost.sklearn.XGBClassifier", _xgboost_to_parts, _xgboost_from_parts),
)

RECIPES = (
    Recipe(
        "fairtransport.boosting.TransportBoostingClassifier",
        attributes={
            "classes_": label_array(1),
            "estimator_": _is_fitted_trees,
            "groups_": instance_of(Groups),
            "history_": dict_of(number_array(1, finite=False)),
            "n_iter_": is_count,
            "outcome_": is_text,
            "repair_": _is_fitted_repair_or_none,
            "unit_": instance_of(float),
        },
        required=("classes_", "estimator_", "groups_", "repair_"),
        is_consistent=_is_consistent,
        summarize=summarize_target,
    ),
)
