"""Second stage of ``fit``: the linear logistic model that training starts from."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport.linear.solvers._lbfgs import LbfgsSolver
from fairtransport.linear.solvers._logistic_problem import LogisticProblem
from fairtransport.penalties import Comparisons, DiscretePenalty
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._scaling import Scaling

__all__ = ["InitialModel", "check_scores_vary", "fit_logistic_regression", "minimise_loss", "prepare_initial_model"]


@dataclass(frozen=True, eq=False)
class InitialModel:
    """The initial model.

    Attributes
    ----------
    model : estimator
        Fitted.
    theta : ndarray of shape (n_columns + 1,)
        Its weights, the intercept last.
    ridge : float
        Ridge of its own training, for the mean loss.
    has_intercept : bool
    """

    model: Any
    theta: NDArray[np.float64]
    ridge: float
    has_intercept: bool

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of class 1."""
        return sigmoid(np.asarray(X @ self.theta[:-1], dtype=np.float64) + self.theta[-1])


def prepare_initial_model(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    sample_weight: NDArray[np.float64] | None,
    *,
    feature_names: NDArray[Any] | None = None,
) -> InitialModel:
    """Return a fitted model as it is, or a fitted clone of an unfitted one.

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
        if feature_names is not None:  # it was fitted on an array
            model.feature_names_in_ = feature_names
    theta = _validated_theta(model, X, y, feature_names)
    total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    return InitialModel(model, theta, _ridge(model, total), bool(getattr(model, "fit_intercept", True)))


def fit_logistic_regression(rows: TrainingData, scaling: Scaling) -> InitialModel:
    """Fit logistic regression with the ridge of scikit-learn's default, on standardized columns.

    Parameters
    ----------
    rows : TrainingData
        With scaled columns.
    scaling : Scaling
        Their units.

    Returns
    -------
    InitialModel
        For the columns as given.
    """
    n_columns = rows.X.shape[1]
    total = float(len(rows.shares)) if rows.weights is None else float(rows.weights.sum())
    ridge = np.full(n_columns, 1.0 / total)
    problem = LogisticProblem((rows.X,), rows.positive, rows.shares, ridge, has_intercept=True)
    rate = float(rows.shares @ rows.positive)
    start = np.zeros(problem.shape)
    start[0, -1] = np.log(rate / (1.0 - rate))
    theta = scaling.to_raw(minimise_loss(problem, start)[0])
    model = LogisticRegression()
    model.classes_, model.n_features_in_ = rows.classes, n_columns
    model.coef_, model.intercept_ = theta[None, :-1].copy(), theta[-1:].copy()
    model.n_iter_ = np.ones(1, dtype=np.int32)
    if rows.feature_names is not None:
        model.feature_names_in_ = rows.feature_names
    return InitialModel(model, theta, 1.0 / total, has_intercept=True)


def minimise_loss(problem: LogisticProblem, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the parameters that minimise loss and ridge, without a penalty."""
    no_pairs = Comparisons.of_cells(len(problem.labels), [], [])
    solver = LbfgsSolver(problem, DiscretePenalty(), no_pairs, initial=start, unit=0.0, tol=1e-6, max_iter=500)
    return solver.run(0.0, start).parameters


def check_scores_vary(scores: NDArray[np.float64]) -> None:
    """Raise where the initial model gives every row the same score."""
    if np.ptp(scores) == 0.0:
        raise ValueError(
            "The initial model gives every row the same score, so there is nothing to transport: "
            "check that the features vary and that the model was able to learn."
        )


def _validated_theta(model: Any, X: Any, y: NDArray[Any], names: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return the weights of a fitted model, once it is known to be linear logistic on these columns and classes."""
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
    expected = sigmoid(np.asarray(few @ theta[:-1], dtype=np.float64) + theta[-1])
    nameless = copy(model)
    if known is not None:  # or scikit-learn would warn that these rows have no feature names
        del nameless.feature_names_in_
    if not np.allclose(expected, np.asarray(nameless.predict_proba(few))[:, 1], atol=1e-3):
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
