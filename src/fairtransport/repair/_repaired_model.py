"""What models with a repair of their scores share: parameters of the repair, and calls with groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn.estimator_calls import model_scores
from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.row_scoring import RowScoring
from fairtransport._validation import check_real
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.repair.summary import describe_repair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["RepairedModel"]

_SHARED = (
    "target",
    "amount",
    "criterion",
    "stratum_weight",
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
