"""Disparities as scorers of scikit-learn."""

from __future__ import annotations

import inspect
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["disparity_scorer"]


def disparity_scorer(metric: Callable[..., float], *, response_method: Any = "predict_proba", **options: Any) -> Any:
    """Return a disparity as a scorer for cross-validation and model selection.

    Parameters
    ----------
    metric : callable
        A disparity of this package, such as `separation_disparity`. It may take labels before the scores.
    response_method : str or list of str, default "predict_proba"
        Method of the estimator that returns scores; ``"predict"`` for regressors.
    **options
        Arguments of the metric that are the same for all rows, such as ``reduce="mean"``.

    Returns
    -------
    scorer
        As `sklearn.metrics.make_scorer` returns it: minus the disparity, so that greater is better. Call
        ``set_score_request`` for the arguments that have one value for each row: ``sensitive_features=True``, and
        ``strata=True`` or ``sample_weight=True`` where they are used.

    Notes
    -----
    Metadata routing must be enabled (``sklearn.set_config(enable_metadata_routing=True)``). The constant model has a
    disparity of 0, so a search that minimises a disparity alone finds the least useful model; combine it with a scorer
    of accuracy, or look at both.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from fairtransport.metrics import separation_disparity
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], 200)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer = disparity_scorer(separation_disparity).set_score_request(sensitive_features=True)
    ...     result = cross_validate(LogisticRegression(), X, y, scoring=scorer, params={"sensitive_features": sex})
    >>> bool(np.all(result["test_score"] <= 0))
    True
    """
    from sklearn.metrics import make_scorer  # noqa: PLC0415 - takes a while

    takes_labels = next(iter(inspect.signature(metric).parameters)) == "y_true"
    function = metric if takes_labels else update_wrapper(partial(_without_labels, metric), metric)
    return make_scorer(function, response_method=response_method, greater_is_better=False, **options)


def _without_labels(metric: Callable[..., float], y_true: Any, scores: Any, **options: Any) -> float:
    del y_true
    return metric(scores, **options)
