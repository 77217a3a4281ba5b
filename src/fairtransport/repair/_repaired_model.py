"""Parts that models with a repair of their scores share, with the group at prediction or without it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport._arrays import Floats
from fairtransport._labels import real_targets, two_classes
from fairtransport._sklearn import RowScoring, fitted_summary_html, last_step, n_rows
from fairtransport.criteria import Criterion
from fairtransport.criteria.criterion import criterion_name
from fairtransport.groups import GroupPolicy

_ROWS_OF_WEIGHT = 50  # rows for each weight of a linear model, from which its scores are as those of new rows


class RepairedModel(RowScoring, MetaEstimatorMixin, BaseEstimator):
    """A fitted model, ``estimator_``, whose scores are repaired as the parameter ``repair`` says."""

    estimator: Any
    estimator_: Any
    repair: Any
    outcome_: str
    classes_: NDArray[Any]
    predict: Any
    _settings_class: ClassVar[Any]

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model and the repair of its scores.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the model accepts.
        y : array-like of shape (n,)
            Two classes, of which the larger label is class 1; or finite numbers, for a regressor.
        sensitive_features : column, table or Groups
            At least two groups; several columns are crossed. They need not be among the features.
        strata : column or table, optional
            Groups are compared within these strata only (conditional parity). Predictions need them, too.
        sample_weight : array-like of shape (n,), optional
            Weights for the model (for a pipeline: for its last step) and for the repair.

        Returns
        -------
        self
        """
        return self._fit(X, y, sensitive_features, strata, sample_weight)

    @abstractmethod
    def _fit(self, X: Any, y: ArrayLike, sensitive_features: Any, strata: Any, sample_weight: ArrayLike | None) -> Self:
        """Fit the model and the repair of its scores."""

    @property
    def criterion(self) -> str | Criterion:
        """The criterion of the repair."""
        return self._settings().criterion

    @property
    def groups(self) -> GroupPolicy | None:
        """The rule by which the repair makes groups of sensitive columns."""
        return self._settings().groups

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen in ``fit``."""
        return np.asarray(self.estimator_.feature_names_in_)

    def _settings(self) -> Any:
        """Return ``repair``, or the default one."""
        kind = self._settings_class
        if self.repair is not None and not isinstance(self.repair, kind):
            raise TypeError(f"repair must be a {kind.__name__} or None; got a {type(self.repair).__name__}.")
        return kind() if self.repair is None else self.repair

    @property
    def _classifies(self) -> bool:
        return isinstance(self, ClassifierMixin)

    def _targets(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return what the model is fitted to, and the classes of a classifier."""
        if self._classifies:
            return two_classes(y, type(self).__name__)
        if criterion_name(self.criterion) == "equal_opportunity":
            raise ValueError(
                "criterion='equal_opportunity' compares people with the positive label, which a regression does not "
                "have. Use 'equalized_odds', which compares people with similar y, or 'demographic_parity'."
            )
        if n_rows(X) == 1:
            raise ValueError("X has 1 sample; groups can be compared only where each has rows.")
        return real_targets(y, type(self).__name__), None

    def _classify(self, probabilities: Floats) -> NDArray[Any]:
        """Return class 1 where its probability is above one half."""
        return np.asarray(self.classes_[(probabilities[:, 1] > 0.5).astype(int)])

    def _quality(self, y: Any, predicted: NDArray[Any], weights: Any) -> float:
        """Return the accuracy, or the coefficient of determination."""
        metric = accuracy_score if self._classifies else r2_score
        return float(metric(y, predicted, sample_weight=weights))

    @abstractmethod
    def _describe(self) -> list[str]:
        """Return statements about the fitted repair."""

    def _html_repr(self) -> str:
        groups = vars(vars(self).get("repair_", self)).get("groups_")
        outcome = [vars(self)["outcome_"]] if "outcome_" in vars(self) else []  # which a model file may lack
        return str(super()._html_repr()) + fitted_summary_html(groups, lambda: [*self._describe(), *outcome])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):  # it takes what the model takes
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def weight_options(model: Any, weights: Floats | None, remedy: str) -> dict[str, Any]:
    """Return the weights under the name by which ``fit`` takes them; a pipeline takes them for its last step."""
    if weights is None:
        return {}
    prefix, last = last_step(model)
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(f"{type(last).__name__} cannot be fitted with sample_weight{remedy}")
    return {f"{prefix}sample_weight": weights}


def cannot_memorise(model: Any, n_rows: int) -> bool:
    """Return whether a fitted model has too few weights to know its rows: linear, and after steps that see no y."""
    steps = []
    while isinstance(model, Pipeline):
        steps += [step for _, step in model.steps[:-1]]
        model = model.steps[-1][1]
    blind = not any(get_tags(step).target_tags.required for step in steps if hasattr(step, "fit"))
    return blind and hasattr(model, "coef_") and np.size(model.coef_) * _ROWS_OF_WEIGHT <= n_rows
