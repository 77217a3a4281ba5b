"""Calls of ``fit`` and of predictions with ``sensitive_features``, for estimators and for pipelines of them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from sklearn import config_context
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from fairtransport.groups import Groups

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "fit_model",
    "last_step",
    "model_scores",
    "n_rows",
    "positive_scores",
    "take_rows",
    "takes_groups",
    "takes_strata",
]


def last_step(model: Any) -> tuple[str, Any]:
    """Return the prefix of the parameters of a pipeline's last step, and that step; ``""`` and the model for others."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix, model


def fit_model(
    model: Any, X: Any, y: Any, *, sensitive_features: Any, strata: Any = None, sample_weight: Any = None
) -> Any:
    """Fit a model with the groups and, if given, strata and weights; a pipeline passes them to its last step."""
    prefix, last = last_step(model)
    if not _has_parameter(last.fit, "sensitive_features", default=True):
        raise TypeError(
            f"{type(last).__name__}.fit takes no sensitive_features, so it cannot be trained towards parity; use an "
            "estimator of this package, or wrap it in QuantileRepairClassifier."
        )
    options = {f"{prefix}sensitive_features": sensitive_features}
    if strata is not None:
        if not _has_parameter(last.fit, "strata", default=True):
            raise TypeError(
                f"{type(last).__name__}.fit takes no strata, so it cannot be trained for conditional parity."
            )
        options[f"{prefix}strata"] = strata
    if sample_weight is not None:
        options[f"{prefix}sample_weight"] = sample_weight
    with config_context(enable_metadata_routing=False):  # options are passed by step name
        return model.fit(X, y, **options)


def takes_groups(model: Any) -> bool:
    """Return whether a model takes ``sensitive_features`` at prediction."""
    return _takes(model, "sensitive_features")


def takes_strata(model: Any) -> bool:
    """Return whether a model takes ``strata`` at prediction."""
    return _takes(model, "strata")


def _takes(model: Any, name: str) -> bool:
    last = last_step(model)[1]
    return _has_parameter(last.predict if is_regressor(last) else last.predict_proba, name)


def model_scores(
    model: Any, X: Any, *, sensitive_features: Any = None, strata: Any = None, unknown_group: str = "error"
) -> NDArray[np.float64]:
    """Return a regressor's predictions, or a classifier's probabilities of class 1, with groups and strata where given.

    ``unknown_group`` is passed where groups are, unless it is ``"error"``. See `positive_scores` for what probabilities
    have to be.
    """
    given = {"sensitive_features": sensitive_features, "strata": strata}
    options = {name: value for name, value in given.items() if value is not None}
    if sensitive_features is not None and unknown_group != "error":
        options["unknown_group"] = unknown_group
    with config_context(enable_metadata_routing=False):
        if is_regressor(last_step(model)[1]):
            return np.asarray(model.predict(X, **options), dtype=np.float64)
        return positive_scores(model.predict_proba(X, **options))


def positive_scores(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities of class 1, of two; values that rounding moved out of [0, 1] are clipped."""
    table = np.asarray(probabilities, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"predict_proba must return probabilities of two classes; it returned shape {table.shape}.")
    clipped = np.clip(table[:, 1], 0.0, 1.0)
    return np.where(np.abs(table[:, 1] - clipped) < 1e-5, clipped, table[:, 1])


def n_rows(X: Any) -> int:
    """Return the number of rows of a matrix or table."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X if hasattr(X, "__len__") else np.asarray(X))


def take_rows(data: Any, rows: NDArray[np.int64]) -> Any:
    """Select rows of a matrix, a table of any library, a dict of columns, a list, or Groups."""
    if isinstance(data, np.ndarray):
        return data[rows]
    if isinstance(data, Groups):
        return data.select(rows)
    if isinstance(data, dict):
        return {name: take_rows(column, rows) for name, column in data.items()}
    if isinstance(data, (list, tuple)):
        return [data[row] for row in rows.tolist()]
    frame = nw.from_native(data, pass_through=True, allow_series=True, eager_only=False)
    if isinstance(frame, (nw.DataFrame, nw.Series)):
        return frame[rows].to_native()
    matrix = data.tocsr() if hasattr(data, "tocsr") else data
    return matrix[rows] if hasattr(matrix, "shape") else np.asarray(matrix)[rows]


def _has_parameter(method: Any, name: str, *, default: bool = False) -> bool:
    """Return whether a method has a parameter; ``default`` where its signature does not tell."""
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):  # compiled methods may have no signature
        return default
    return name in parameters or (default and any(p.kind is p.VAR_KEYWORD for p in parameters.values()))
