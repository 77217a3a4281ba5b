"""How boosted trees are stored: settings, and the model in its library's own text; never a pickle."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import Groups
from fairtransport.persistence._tree_texts import check_lightgbm, check_xgboost, clean_lightgbm, n_columns_of_lightgbm
from fairtransport.persistence._values import add_value_type
from fairtransport.persistence.recipes._registry import Recipe, add_recipe, count, labels, of_type, text
from fairtransport.persistence.recipes._transport_models import is_array_of_scores, is_history, summarised_target
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.persistence._summaries import Change

__all__ = ["BOOSTER"]

#: The part of a file that holds trees.
BOOSTER = "booster"
_TREES = {"LGBMClassifier", "XGBClassifier"}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ModelFileError(
            f'The file holds a model of {name}, which is not installed: pip install "fairtransport[boosting]"'
        ) from None


def _as_bytes(content: str) -> NDArray[np.uint8]:
    return np.frombuffer(content.encode(), dtype=np.uint8)


def _as_text(held: Any) -> str:
    if not (isinstance(held, np.ndarray) and held.dtype == np.uint8 and held.ndim == 1):
        raise TypeError("trees that are no text")
    return held.tobytes().decode()


def _writable(check: Any, content: str, name: str) -> NDArray[np.uint8]:
    try:
        check(content)
    except (KeyError, ValueError):
        raise TypeError(
            f"This {name} is of a kind that a model file cannot hold: it holds trees of two classes with the logistic "
            "objective, without linear leaves. Keep others with their own library's files."
        ) from None
    return _as_bytes(content)


# ---------------------------------------------------------------------------------------------------------- LightGBM


def _lightgbm_parts(estimator: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {"params": estimator.get_params(deep=False), BOOSTER: None}
    if estimator.__sklearn_is_fitted__():
        content = clean_lightgbm(estimator.booster_.model_to_string())
        parts[BOOSTER] = _writable(check_lightgbm, content, "LGBMClassifier")
        parts["classes"], parts["named"] = estimator.classes_, hasattr(estimator, "feature_names_in_")
    return parts


def _lightgbm_of(parts: dict[str, Any]) -> Any:
    lightgbm = _library("lightgbm")
    if parts[BOOSTER] is None:
        return lightgbm.LGBMClassifier(**parts["params"])
    content, classes = _as_text(parts[BOOSTER]), parts["classes"]
    check_lightgbm(content)
    if not labels(1)(classes) or classes.size != 2:
        raise ValueError("trees need two classes")
    # There is no public way to give an estimator a booster: a smallest one is fitted, and its booster replaced.
    rows: Any = np.zeros((2, n_columns_of_lightgbm(content)))
    if parts["named"]:
        booster = lightgbm.Booster(model_str=content)
        rows = _library("pandas").DataFrame(rows, columns=booster.feature_name())
    estimator = lightgbm.LGBMClassifier(n_estimators=1, min_child_samples=1, n_jobs=1, verbose=-1).fit(rows, classes)
    estimator.booster_.model_from_string(content)
    return estimator.set_params(**parts["params"])


# ----------------------------------------------------------------------------------------------------------- XGBoost


def _xgboost_parts(estimator: Any) -> dict[str, Any]:
    given = {name: value for name, value in estimator.get_params(deep=False).items() if value is not None}
    parts: dict[str, Any] = {"params": given, BOOSTER: None}
    if estimator.__sklearn_is_fitted__():
        content = estimator.get_booster().save_raw("json").decode()
        parts[BOOSTER] = _writable(check_xgboost, content, "XGBClassifier")
    return parts


def _xgboost_of(parts: dict[str, Any]) -> Any:
    estimator = _library("xgboost").XGBClassifier(**parts["params"])
    if parts[BOOSTER] is not None:
        content = _as_text(parts[BOOSTER])
        check_xgboost(content)
        estimator.load_model(bytearray(content.encode()))  # sets a parameter that was not set
        unset = {name: None for name, value in estimator.get_params(deep=False).items() if value is not None}
        estimator.set_params(**{**unset, **parts["params"]})
    return estimator


# -------------------------------------------------------------------------------------------------------- classifier


def _summarised(model: Any, people: int) -> dict[str, tuple[Any, Change]]:
    """Return a summary of the parameter ``target``, where that is an array of scores."""
    return summarised_target(model, people) if is_array_of_scores(model.target, model.groups_) else {}


def _is_trees(value: Any) -> bool:
    return type(value).__name__ in _TREES and value.__sklearn_is_fitted__()


def _is_repair(value: Any) -> bool:
    return value is None or (type(value).__name__ == "QuantileRepair" and hasattr(value, "maps_"))


def _is_whole(model: Any) -> bool:
    repair = model.repair_
    return model.classes_.size == 2 and (repair is None or repair.groups_.labels == model.groups_.labels)


add_value_type("lightgbm", "lightgbm.sklearn.LGBMClassifier", _lightgbm_parts, _lightgbm_of)
add_value_type("xgboost", "xgboost.sklearn.XGBClassifier", _xgboost_parts, _xgboost_of)
add_recipe(
    Recipe(
        "fairtransport.boosting.TransportBoostingClassifier",
        {
            "classes_": labels(1),
            "estimator_": _is_trees,
            "groups_": of_type(Groups),
            "history_": is_history,
            "n_iter_": count,
            "outcome_": text,
            "repair_": _is_repair,
            "unit_": of_type(float),
        },
        ("classes_", "estimator_", "groups_", "repair_"),
        _is_whole,
        _summarised,
        stored_names={"repair_amount": "repair"},
    )
)
