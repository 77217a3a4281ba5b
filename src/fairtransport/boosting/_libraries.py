"""Which library an estimator is of, and the estimator that is used by default."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from fairtransport._extras import load_extra
from fairtransport.boosting._lightgbm import LightGBM
from fairtransport.boosting._table_size import is_small
from fairtransport.boosting._xgboost import XGBoost

if TYPE_CHECKING:
    from fairtransport.boosting._library import Library
    from fairtransport.boosting._penalty_settings import Settings
    from fairtransport.boosting._training_data import TrainingData

__all__ = ["default_estimator", "library_of", "sized_settings"]

_PATIENCE = 2.0  # learning rate times the rounds without improvement after which training stops
_LIBRARIES: tuple[type[Library], ...] = (LightGBM, XGBoost)
_REPAIR = {"classification": "QuantileRepairClassifier", "regression": "QuantileRepairRegressor"}


def default_estimator(task: str, random_state: int | None) -> Any:
    """Return LightGBM's estimator."""
    return getattr(load_extra("lightgbm"), LightGBM.class_names[task])(random_state=random_state, verbose=-1)


def sized_settings(
    settings: Settings, rows: TrainingData, n_iter_no_change: int | str | None, *, is_default: bool
) -> Settings:
    """Return the settings with those that the user left at the library's default chosen by the size of the table.

    The number of rounds and the learning rate belong together: both are chosen, or none. ``is_default`` says that the
    user gave no estimator.
    """
    library, estimator = settings.library, settings.estimator
    n_columns = getattr(rows.X, "shape", (0, 0))[1]
    chosen, unset = library.settings_by_size(rows.groups.n_rows, n_columns), library.unset_params(estimator)
    rounds = {"n_estimators", "learning_rate"}
    if not is_default:
        open_names = set(rounds) if rounds <= unset else set()
        if library.size_params <= unset:
            open_names |= library.size_params
        chosen = {name: value for name, value in chosen.items() if name in open_names}
    if is_small(rows.groups.n_rows) and "n_jobs" in unset:
        chosen["n_jobs"] = 1
    estimator = clone(estimator).set_params(**chosen)
    patience: int | None = None
    if isinstance(n_iter_no_change, int):
        patience = n_iter_no_change
    elif n_iter_no_change is not None and (is_default or "n_estimators" in unset):
        patience = math.ceil(_PATIENCE / library.learning_rate(estimator))
    return replace(settings, estimator=estimator, patience=patience)


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
