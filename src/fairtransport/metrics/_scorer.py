"""A metric as a scorer of scikit-learn that gives a model the groups it needs at prediction."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED, get_routing_for_object

from fairtransport._arrays import Floats


class GroupScorer(BaseEstimator):
    """What `group_scorer` returns; scikit-learn asks it for its requests, and calls it."""

    __metadata_request__score: ClassVar = {"estimator": UNUSED}

    def __init__(
        self,
        metric: Callable[..., float],
        response_method: str | tuple[str, ...] = "predict_proba",
        greater_is_better: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.metric = metric
        self.response_method = response_method
        self.greater_is_better = greater_is_better
        self.options = options

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the metric of the estimator's scores, or minus it where less is better."""
        named = {"sensitive_features": sensitive_features, "strata": strata, "sample_weight": sample_weight}
        columns = {name: column for name, column in named.items() if column is not None}
        scores = self._scores(estimator, X, columns)
        known = inspect.signature(self.metric).parameters
        if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
            columns = {name: column for name, column in columns.items() if name in {*known, "sample_weight"}}
        labels = (y,) if next(iter(known)) == "y_true" else ()
        value = float(self.metric(*labels, scores, **(self.options or {}), **columns))
        return value if self.greater_is_better else -value

    __call__ = score

    def _scores(self, estimator: Any, X: Any, columns: dict[str, Any]) -> Floats:
        named = self.response_method
        methods = (named,) if isinstance(named, str) else tuple(named)
        method = next((one for one in methods if hasattr(estimator, one)), None)
        if method is None:
            raise AttributeError(f"{type(estimator).__name__} has none of the methods {', '.join(methods)}.")
        predict = getattr(estimator, method)
        taken = set(inspect.signature(predict).parameters)
        if hasattr(estimator, "get_metadata_routing"):  # a pipeline hands on what its steps ask for
            taken |= set(get_routing_for_object(estimator).consumes(method, columns.keys()))
        given = {name: columns[name] for name in ("sensitive_features", "strata") if name in columns and name in taken}
        scores = np.asarray(predict(X, **given))
        return scores[:, 1] if method == "predict_proba" and scores.shape[1:] == (2,) else scores
