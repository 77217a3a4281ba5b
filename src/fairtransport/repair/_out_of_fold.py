"""A model and the scores that its repair is computed from: of the rows of fit, or out of fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, check_cv, cross_val_predict
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport._sklearn.estimator_calls import last_step, model_scores, positive_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit_and_score", "is_fitted"]


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def fit_and_score(
    estimator: Any, X: Any, y: NDArray[Any], *, cv: Any, weights: NDArray[np.float64] | None, classifies: bool
) -> tuple[Any, NDArray[np.float64]]:
    """Return a fitted model and the scores to compute maps from.

    Parameters
    ----------
    estimator : estimator
        A fitted one is used as it is; of an unfitted one, a clone is fitted.
    X : table or matrix
    y : ndarray of shape (n,)
    cv : int, splitter, iterable of splits or None
        None: the scores of the fitted model. Otherwise those of models fitted without the rows.
    weights : ndarray of shape (n,) or None
    classifies : bool
        Whether scores are probabilities or predictions.

    Returns
    -------
    model : estimator
    scores : ndarray of shape (n,)
    """
    if is_fitted(estimator):
        if cv is not None:
            raise ValueError(
                "cv needs an estimator that is not fitted, to fit it without the rows it scores. Pass an unfitted "
                "one, or set cv=None and fit the repair on rows that the fitted estimator has not seen."
            )
        return estimator, model_scores(estimator, X)
    splits = None if cv is None else check_cv(cv, y, classifier=classifies)
    if not classifies and isinstance(cv, (int, np.integer)):  # rows may be sorted by y or by group
        splits = KFold(int(cv), shuffle=True, random_state=0)
    model = clone(estimator)
    options = {} if weights is None else {_weight_option(model): weights}
    with config_context(enable_metadata_routing=False):  # weights are passed by step name
        model.fit(X, y, **options)
        if splits is None:
            return model, model_scores(model, X)
        method = "predict_proba" if classifies else "predict"
        out_of_fold = cross_val_predict(estimator, X, y, cv=splits, method=method, params=options or None)
    return model, positive_scores(out_of_fold) if classifies else np.asarray(out_of_fold, dtype=np.float64)


def _weight_option(model: Any) -> str:
    """Return the name under which ``fit`` takes weights; a pipeline takes them for its last step."""
    prefix, last = last_step(model)
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"{type(last).__name__} cannot be fitted with sample_weight. Fit it first, and pass it fitted: then "
            "the weights are used for the repair only."
        )
    return f"{prefix}sample_weight"
