"""What models with a repair of their scores share: out-of-fold scores, and calls with groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, check_cv, cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairtransport._sklearn import RowScoring, fitted_summary_html, last_step, model_scores, positive_scores
from fairtransport._validation import check_real
from fairtransport.repair.quantile import QuantileRepair, describe_repair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SHARED = (
    "target",
    "amount",
    "criterion",
    "grouping",
    "missing",
    "small_groups",
    "min_group_size",
    "stream_half_life",
    "new_groups",
)


class RepairedModel(RowScoring, MetaEstimatorMixin, BaseEstimator):
    """A fitted model, ``estimator_``, and the repair of its scores, ``repair_``."""

    estimator: Any
    estimator_: Any
    repair_: QuantileRepair
    stream_half_life: float
    new_groups: str

    @property
    def amount(self) -> float:
        """How much to repair; setting it also changes a fitted repair."""
        return self.__dict__["amount"]

    @amount.setter
    def amount(self, amount: float) -> None:
        repair = vars(self).get("repair_")
        if repair is not None:
            repair.amount = check_real(amount, name="amount", most=1.0)
        self.__dict__["amount"] = amount

    @property
    def small_groups_(self) -> tuple[Any, ...]:
        """Labels of the groups without a map of their own."""
        check_is_fitted(self)
        return self.repair_.small_groups_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen in ``fit``."""
        return np.asarray(self.estimator_.feature_names_in_)

    def _make_repair(self, **options: Any) -> QuantileRepair:
        """Return an unfitted repair with the parameters of this model."""
        return QuantileRepair(**{name: getattr(self, name) for name in _SHARED}, **options)

    def _repaired(self, X: Any, sensitive_features: Any, strata: Any, **options: Any) -> NDArray[np.float64]:
        """Return the repaired scores of the fitted model."""
        check_is_fitted(self)
        if sensitive_features is None:
            raise ValueError(
                f"{type(self).__name__} needs sensitive_features at prediction, too: the repair of a score depends on "
                "the group. Pass sensitive_features=, with the columns used in fit."
            )
        scores = model_scores(self.estimator_, X)
        repaired = self.repair_.transform(scores, sensitive_features=sensitive_features, strata=strata, **options)
        return np.asarray(repaired).ravel()

    def _learn(self, X: Any, y: Any, sensitive_features: Any, sample_weight: ArrayLike | None) -> None:
        """Update the fitted repair with one batch."""
        scores = model_scores(self.estimator_, X)
        self.repair_.set_params(stream_half_life=self.stream_half_life, new_groups=self.new_groups)
        self.repair_.partial_fit(scores, y, sensitive_features=sensitive_features, sample_weight=sample_weight)

    def _html_repr(self) -> str:
        groups = self.repair_.groups_ if hasattr(self, "repair_") else None
        return str(super()._html_repr()) + fitted_summary_html(groups, lambda: describe_repair(self.repair_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):  # it takes what the model takes
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


# A model and the scores that its repair is computed from: of the rows of fit, or out of fold.


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
    """Return a fitted model and the scores to compute maps from."""
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
