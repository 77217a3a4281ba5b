"""Fits of the two models of blind repair, on all rows and without each fold, and their predictions."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from fairtransport._sklearn.estimator_calls import last_step, model_scores, take_rows
from fairtransport._sklearn.group_awareness import needs_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport._sklearn.folds import Fold

__all__ = ["check_base_estimator", "check_group_estimator", "cross_fit", "group_probabilities", "predictions"]


def check_base_estimator(estimator: Any, *, regression: bool) -> None:
    """Raise unless the model predicts what is asked for, from features alone."""
    kind, method = ("regressor", "predict") if regression else ("classifier", "predict_proba")
    last = last_step(estimator)[1] if hasattr(estimator, "fit") else estimator
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, method):
        hint = "" if regression else " Wrap it in sklearn.calibration.CalibratedClassifierCV, which adds it."
        raise TypeError(f"estimator must be a {kind} with fit and {method}; got a {_name(estimator)}.{hint}")
    if is_regressor(last) is not regression and (regression or is_regressor(last)):
        raise TypeError(f"estimator must be a {kind}; got a {_name(last)}.")
    if _needs_groups(last):
        model = last.estimator if isinstance(last, FrozenEstimator) else last
        raise TypeError(
            f"estimator must be a model of the features alone, and {type(model).__name__} needs sensitive_features. "
            "Repair a plain model, or use that estimator as it is."
        )


def _needs_groups(model: Any) -> bool:
    """Return whether a model needs groups: one to be fitted in ``fit``, a frozen one at prediction."""
    if isinstance(model, FrozenEstimator):
        return needs_groups(model.estimator)
    try:
        groups = inspect.signature(model.fit).parameters.get("sensitive_features")
    except (TypeError, ValueError):  # compiled methods may have no signature
        return False
    return groups is not None and groups.default is inspect.Parameter.empty


def check_group_estimator(estimator: Any) -> None:
    """Raise unless the model of the groups gives probabilities."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"group_estimator must be a classifier with predict_proba; got a {_name(estimator)}. Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, which adds it."
        )


def cross_fit(
    estimator: Any,
    X: Any,
    target: NDArray[Any],
    folds: Sequence[Fold],
    predict: Callable[[Any, Any], NDArray[np.float64]],
    *,
    rows: NDArray[np.bool_] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> tuple[Any, NDArray[np.float64]]:
    """Return the model fitted on all rows, and predictions of each row by models that have not seen it.

    Parameters
    ----------
    estimator : estimator
        Cloned. A ``FrozenEstimator`` stays as it is, and the model in it is returned.
    X, target
    folds : sequence of Fold
    predict : callable
        Takes a fitted model and features.
    rows : ndarray of bool, optional
        Rows to train on.
    weights : ndarray, optional

    Returns
    -------
    model : estimator
    predicted : ndarray of shape (n, ...)
        NaN for rows that no fold holds out; the mean where several do.
    """
    use = np.ones(len(target), dtype=bool) if rows is None else rows
    total, times = None, np.zeros(len(target))
    for fold in folds:
        training = fold.training[use[fold.training]]
        model = _fit(clone(estimator), take_rows(X, training), target[training], _take(weights, training))
        part = predict(model, take_rows(X, fold.held_out))
        total = np.zeros((len(target), *part.shape[1:])) if total is None else total
        total[fold.held_out] += part
        times[fold.held_out] += 1
    everyone = np.flatnonzero(use)
    features = X if use.all() else take_rows(X, everyone)
    model = _fit(clone(estimator), features, target[everyone], _take(weights, everyone))
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    assert total is not None
    with np.errstate(invalid="ignore"):
        return model, total / times.reshape(-1, *[1] * (total.ndim - 1))


def _fit(model: Any, X: Any, target: NDArray[Any], weights: NDArray[np.float64] | None) -> Any:
    options = {}
    if weights is not None:
        prefix, last = last_step(model)
        if not has_fit_parameter(last, "sample_weight"):
            raise ValueError(f"{type(last).__name__} cannot be fitted with sample_weight; leave the weights out.")
        options[f"{prefix}sample_weight"] = weights
    with config_context(enable_metadata_routing=False):  # weights are passed by step name
        return model.fit(X, target, **options)


def predictions(model: Any, X: Any) -> NDArray[np.float64]:
    """Return finite predictions of a regressor, or probabilities of class 1."""
    found = model_scores(model, X)
    if found.ndim != 1:
        raise ValueError(f"estimator must predict one number for each row; it predicted shape {found.shape}.")
    n_bad = int(np.count_nonzero(~np.isfinite(found)))
    if n_bad:
        raise ValueError(f"estimator predicts {n_bad} of {found.size} rows as NaN or infinite.")
    return found


def group_probabilities(model: Any, X: Any, n_classes: int) -> NDArray[np.float64]:
    """Return the probabilities of the classes 0, 1, ..., n_classes - 1."""
    with config_context(enable_metadata_routing=False):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
    classes = np.asarray(model.classes_)
    if classes.dtype.kind not in "iuf" or not np.isin(classes, np.arange(n_classes)).all():
        raise ValueError(
            f"group_estimator predicts other classes than the {n_classes} codes of the groups. Give it unfitted, or "
            "fit it to make_groups(...).codes before it is frozen."
        )
    if found.ndim != 2 or found.shape[1] != classes.size:
        raise ValueError(f"group_estimator must give a probability for each class; it gave shape {found.shape}.")
    if not np.isfinite(found).all() or (found < -1e-6).any():
        raise ValueError("group_estimator gives probabilities that are NaN, infinite or negative.")
    table = np.zeros((len(found), n_classes))
    table[:, classes.astype(np.int64)] = np.maximum(found, 0.0)
    return table


def _take(weights: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
    return None if weights is None else weights[rows]


def _name(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
