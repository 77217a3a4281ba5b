"""Where theta starts: a linear logistic model, fitted or not."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Start", "starting_point"]


@dataclass(frozen=True, eq=False)
class Start:
    """The initial model: theta (intercept last), the ridge of its own training, whether it has an intercept."""

    model: Any
    theta: NDArray[np.float64]
    ridge: float
    has_intercept: bool


def starting_point(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    sample_weight: NDArray[np.float64] | None,
    *,
    names: NDArray[Any] | None = None,
) -> Start:
    """Take theta from a fitted model, or fit a clone of an unfitted one.

    ``names`` are those of the columns, where they have some.

    Raises
    ------
    TypeError, ValueError
        When the model is not linear logistic: its probabilities must be the logistic function of
        ``X @ coef_.T + intercept_``, its columns those of ``X`` and its classes those of ``y``.
    """
    if estimator is None:
        estimator = LogisticRegression(max_iter=1000)
    try:
        check_is_fitted(estimator)
        model = estimator
    except NotFittedError:
        model = clone(estimator)
        if sample_weight is None:
            model.fit(X, y)
        elif has_fit_parameter(model, "sample_weight"):
            model.fit(X, y, sample_weight=sample_weight)
        else:
            raise ValueError(f"{type(model).__name__} cannot be fitted with sample_weight.") from None
        if names is not None:  # it was fitted on the bare numbers
            model.feature_names_in_ = names
    theta = _theta_of(model, X, y, names)
    total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    return Start(model, theta, _ridge(model, total), bool(getattr(model, "fit_intercept", True)))


def _theta_of(model: Any, X: Any, y: NDArray[Any], names: NDArray[Any] | None) -> NDArray[np.float64]:
    """Read theta from a fitted model, once it is sure that it is one of these columns and classes."""
    for needed in ("coef_", "intercept_", "predict_proba", "classes_"):
        if not hasattr(model, needed):
            raise TypeError(
                f"estimator must be a linear logistic model with coef_, intercept_ and predict_proba, such as "
                f"LogisticRegression; {type(model).__name__} has no {needed}."
            )
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    if coef.shape != (1, X.shape[1]):
        raise ValueError(
            f"estimator was fitted on {coef.shape[1]} features and {len(model.classes_)} classes; "
            f"X has {X.shape[1]} features and 2 classes are needed."
        )
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and not np.array_equal(known, names):
        raise ValueError(
            "estimator was fitted on columns of other names, or in another order, than those of X; "
            f"give X the columns {', '.join(map(repr, known[:5]))}{', ...' if len(known) > 5 else ''}."
        )
    if not np.array_equal(np.asarray(model.classes_), np.unique(y)):
        raise ValueError("estimator was fitted on other class labels than those of y.")
    theta = np.append(coef.ravel(), np.asarray(model.intercept_, dtype=np.float64).ravel()[:1])
    few = X[: min(32, X.shape[0])]
    ours = sigmoid(np.asarray(few @ theta[:-1], dtype=np.float64) + theta[-1])
    nameless = copy(model)
    if known is not None:  # or it would warn that these rows have no names
        del nameless.feature_names_in_
    if not np.allclose(ours, np.asarray(nameless.predict_proba(few))[:, 1], atol=1e-3):
        raise TypeError(
            f"{type(model).__name__} is not a linear logistic model: its probabilities are not the logistic "
            "function of coef_ and intercept_. Use LogisticRegression or SGDClassifier(loss='log_loss')."
        )
    return theta


def _ridge(model: Any, total: float) -> float:
    # scikit-learn's logistic regression minimises C * sum of losses + |w|^2 / 2.
    if getattr(model, "penalty", "l2") in (None, "l1", "elasticnet") or getattr(model, "l1_ratio", None):
        return 0.0
    inverse = getattr(model, "C_", getattr(model, "C", None))
    if inverse is None:
        return 0.0
    strength = float(np.ravel(inverse)[0])
    return 1.0 / (strength * total) if np.isfinite(strength) and strength > 0 else 0.0
