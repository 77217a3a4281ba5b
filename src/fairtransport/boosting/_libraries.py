"""Which library an estimator is of, and the estimator that is used by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.boosting._lightgbm import LightGBM
from fairtransport.boosting._xgboost import XGBoost

if TYPE_CHECKING:
    from fairtransport.boosting._library import Library

__all__ = ["default_estimator", "library_of"]

_ROUNDS, _COLUMN_SHARE = 200, 0.5
_LIBRARIES: tuple[type[Library], ...] = (LightGBM, XGBoost)
_REPAIR = {"classification": "QuantileRepairClassifier", "regression": "QuantileRepairRegressor"}


def default_estimator(task: str, random_state: int | None) -> Any:
    """Return LightGBM's estimator with 200 rounds, each on a random half of the columns."""
    return getattr(load_extra("lightgbm"), LightGBM.class_names[task])(
        n_estimators=_ROUNDS, colsample_bytree=_COLUMN_SHARE, random_state=random_state, verbose=-1
    )


def library_of(estimator: Any, task: str) -> Library:
    """Return the library of an estimator; raise TypeError unless it is LightGBM's or XGBoost's for the task."""
    for cls in type(estimator).__mro__:  # a user's class may derive from a library's, whose own subclasses are refused
        for library in _LIBRARIES:
            if cls.__module__.partition(".")[0] == library.module:
                if cls.__name__ == library.class_names[task]:
                    return library(task)
                break
        else:
            continue
        break
    received = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
    first, second = (f"{library.module}.{library.class_names[task]}" for library in _LIBRARIES)
    other = "regression" if task == "classification" else "classification"
    hint = f"Other models can be wrapped in {_REPAIR[task]}."
    if any(type(estimator).__name__ == library.class_names[other] for library in _LIBRARIES):
        hint = f"For {other} use TransportBoosting{'Regressor' if other == 'regression' else 'Classifier'}."
    raise TypeError(f"estimator must be a {first} or an {second}; got {received}. {hint}")
