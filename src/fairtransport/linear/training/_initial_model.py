"""Second stage of ``fit``: the linear model that training starts from."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport.linear.solvers._lbfgs import LbfgsSolver
from fairtransport.linear.solvers._linear_problem import LinearProblem
from fairtransport.penalties import Comparisons, DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.losses import Loss
    from fairtransport.linear.responses import Response
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._scaling import Scaling

__all__ = ["InitialModel", "check_scores_vary", "fit_default_model", "minimise_loss", "prepare_initial_model"]


@dataclass(frozen=True, eq=False)
class InitialModel:
    """The initial model.

    Attributes
    ----------
    model : estimator
        Fitted.
    loss : Loss
    theta : ndarray of shape (n_columns + 1,)
        Its weights, the intercept last; for standardised predictions, where y is real.
    ridge : float
        Ridge of its own training, for the mean loss.
    has_intercept : bool
    """

    model: Any
    loss: Loss
    theta: NDArray[np.float64]
    ridge: float
    has_intercept: bool

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows."""
        return self.loss.scores(np.asarray(X @ self.theta[:-1], dtype=np.float64) + self.theta[-1])


def prepare_initial_model(
    estimator: Any,
    X: Any,
    y: NDArray[Any] | None,
    sample_weight: NDArray[np.float64] | None,
    *,
    response: Response,
    feature_names: NDArray[Any] | None = None,
) -> InitialModel:
    """Return a fitted model as it is, or a fitted clone of an unfitted one.

    Parameters
    ----------
    estimator : estimator or None
        None: the default model of the response.
    X, y, sample_weight
        Rows of ``fit``; ``y`` may be None where the model is fitted.
    response : Response
    feature_names : ndarray, optional

    Raises
    ------
    TypeError, ValueError
        When the model is not linear: its predictions must be those of ``X @ coef_.T + intercept_``, its columns those
        of ``X`` and its classes, if any, those of ``y``.
    """
    response.check_estimator(estimator)
    if estimator is None:
        estimator = response.default_estimator()
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
    theta = response.to_standard(_validated_theta(model, X, response, feature_names))
    total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    intercept = bool(getattr(model, "fit_intercept", True))
    return InitialModel(model, response.loss, theta, response.ridge_of(model, total), intercept)


def fit_default_model(rows: TrainingData, scaling: Scaling) -> InitialModel:
    """Fit logistic or ridge regression with the ridge of scikit-learn's default, on standardized columns.

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
    n_columns, response = rows.X.shape[1], rows.response
    total = float(len(rows.shares)) if rows.weights is None else float(rows.weights.sum())
    ridge = np.full(n_columns, 1.0 / total)
    problem = LinearProblem((rows.X,), response.loss, rows.outcomes, rows.shares, ridge, has_intercept=True)
    start = np.zeros(problem.shape)
    start[0, -1] = response.loss.best_constant(rows.outcomes, rows.shares)[0]
    theta = scaling.to_raw(minimise_loss(problem, start)[0])
    model = response.estimator_with(response.to_given(theta))
    if rows.feature_names is not None:
        model.feature_names_in_ = rows.feature_names
    return InitialModel(model, response.loss, theta, 1.0 / total, has_intercept=True)


def minimise_loss(problem: LinearProblem, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the parameters that minimise loss and ridge, without a penalty."""
    no_pairs = Comparisons.of_cells(len(problem.outcomes), [], [])
    solver = LbfgsSolver(problem, DiscretePenalty(), no_pairs, initial=start, unit=0.0, tol=1e-6, max_iter=500)
    return solver.run(0.0, start).parameters


def check_scores_vary(scores: NDArray[np.float64]) -> None:
    """Raise where the initial model gives every row the same score."""
    if np.ptp(scores) == 0.0:
        raise ValueError(
            "The initial model gives every row the same score, so there is nothing to transport: "
            "check that the features vary and that the model was able to learn."
        )


def _validated_theta(model: Any, X: Any, response: Response, names: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return the weights of a fitted model, once it is known to be linear on these columns."""
    for needed in ("coef_", "intercept_", *response.needed_attributes):
        if not hasattr(model, needed):
            raise TypeError(f"estimator must be {response.needed_estimator}; {type(model).__name__} has no {needed}.")
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    response.check_shape(model, coef, X.shape[1])
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and not np.array_equal(known, names):
        raise ValueError(
            "estimator was fitted on columns of other names, or in another order, than those of X; "
            f"give X the columns {', '.join(map(repr, known[:5]))}{', ...' if len(known) > 5 else ''}."
        )
    theta = np.append(coef.ravel(), np.asarray(model.intercept_, dtype=np.float64).ravel()[:1])
    few = X[: min(32, X.shape[0])]
    nameless = copy(model)
    if known is not None:  # or scikit-learn would warn that these rows have no feature names
        del nameless.feature_names_in_
    response.check_predictions(nameless, few, np.asarray(few @ theta[:-1], dtype=np.float64) + theta[-1])
    return theta
