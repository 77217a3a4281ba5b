"""Base of the transport classifiers and regressors: parameters in, fitted attributes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from fairtransport._sklearn import RowScoring, fitted_summary_html
from fairtransport._validation import check_choice, check_length, check_real
from fairtransport._warnings import warn_caller
from fairtransport.criteria import MAX_PAIRED_GROUPS
from fairtransport.groups import UNKNOWN_GROUPS, Groups
from fairtransport.linear._training import (
    FitResult,
    group_predictors,
    prepare_trainer,
    train_lbfgs,
    train_lbfgs_path,
    train_sgd,
)
from fairtransport.linear._training_data import TrainingData, TrainingOptions, validate_training_data
from fairtransport.linear.online import widened_weights
from fairtransport.strata import Strata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.linear._problem import InitialModel
    from fairtransport.linear._sgd_solver import Trainer
    from fairtransport.linear._training_data import TransportDistance
    from fairtransport.training.responses import Response


class LinearTransportModel(RowScoring, BaseEstimator, ABC):
    """Base of the transport classifiers and regressors.

    They differ in the distance that they penalise and in the response that they predict. ``fit`` runs in stages, each
    of which returns a frozen value: ``TrainingOptions`` and ``TrainingData`` (validated), ``InitialModel``,
    ``GroupComparisons``, the solver, and ``FitResult``; see `fairtransport.linear.training`.
    """

    groups_: Groups
    group_sizes_: NDArray[np.int64]
    strata_: Strata | None

    @abstractmethod
    def _distance(self) -> TransportDistance:
        """Return the distance, with its parameters checked."""

    @abstractmethod
    def _validate_y(self, y: Any) -> NDArray[Any]:
        """Return y as a vector; ValueError where it cannot be learned."""

    @abstractmethod
    def _make_response(self, y: NDArray[Any], weights: NDArray[np.float64] | None) -> Response:
        """Return the response of a validated y with row weights; ValueError where it cannot be learned."""

    @property
    @abstractmethod
    def _response(self) -> Response:
        """The response of the fitted model."""

    @abstractmethod
    def _store_response(self, response: Response) -> None:
        """Store what `_response` is made from."""

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train the initial model, then move it towards the criterion."""
        options = self._options()
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        result = train_lbfgs(data, options) if options.sgd is None else train_sgd(data, options, options.sgd)
        self._store(result)
        return self

    def fit_path(
        self,
        X: Any,
        y: Any,
        parity_weights: Sequence[float],
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Train with each of several weights, each fit started from the one before."""
        weights = [check_real(weight, name="parity_weights") for weight in parity_weights]
        if weights != sorted(weights):
            raise ValueError("parity_weights must ascend: each fit starts from the one before.")
        template = copy(self).set_params(parity_weight="auto", max_disparity=None)
        options = template._options()  # noqa: SLF001
        if options.sgd is not None:
            raise ValueError("fit_path needs solver='lbfgs'.")
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        models = []
        for result in train_lbfgs_path(data, options, weights):
            model = copy(self).set_params(parity_weight=result.parity_weight, max_disparity=None)
            model._store(result)  # noqa: SLF001
            models.append(model)
        return models

    def make_trainer(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Trainer:
        """Do everything that ``fit`` with ``solver="sgd"`` does before the first update, to follow every step."""
        options = self._options()
        if options.sgd is None:
            raise ValueError("make_trainer is for solver='sgd', which moves in small steps.")
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        prepared = prepare_trainer(data, options, options.sgd)
        target = data.response.scores_as_given(prepared.target)
        self._store_start(data.response, prepared.initial, data.groups, target)
        self.strata_ = None if data.strata is None else Strata.from_spec(data.strata.to_spec())
        return prepared.trainer

    def at(
        self,
        *,
        max_disparity: float | None = None,
        max_rank_disparity: float | None = None,
        weight: float | None = None,
    ) -> Self:
        """Return the model of another point of ``path_``, without training again."""
        check_is_fitted(self)
        limits = {"disparity": max_disparity, "rank_disparity": max_rank_disparity, "weight": weight}
        named = [name for name, value in limits.items() if value is not None]
        if len(named) != 1:
            raise ValueError("Give exactly one of max_disparity, max_rank_disparity and weight.")
        limit = check_real(limits[named[0]], name=named[0] if weight is not None else f"max_{named[0]}")
        if not self.path_["weight"].size:
            raise ValueError("This model has no path: solver='sgd' trains with one weight.")
        if weight is not None:
            index = int(np.abs(np.log1p(self.path_["weight"]) - np.log1p(limit)).argmin())
        else:
            below = np.flatnonzero(self.path_[named[0]] <= limit)
            if not below.size:
                raise ValueError(
                    f"No point of the path has a {named[0].replace('_', ' ')} of {limit:g} or less; the lowest is "
                    f"{self.path_[named[0]].min():.4g}."
                )
            index = int(below[0])
        model = copy(self)
        theta = self.path_["theta"][index]
        # Groups that a stream has brought since are not on the path.
        model._store_weights(widened_weights(theta[:-1], len(self.groups_)), theta[-1])  # noqa: SLF001
        model.parity_weight_ = float(self.path_["weight"][index])
        model.information_kept_ = float(self.path_["information_kept"][index])
        model.spread_ = self.path_["spread"][index]
        model.outcome_ = f"weight {model.parity_weight_:g} of the path"
        for name in ("adjusting_", "before_after_"):
            if hasattr(model, name):
                delattr(model, name)
        return model

    # ---------------------------------------------------------------- predicting

    def _initial_predictors(self, X: Any) -> NDArray[np.float64]:
        model = self.initial_estimator_
        return np.asarray(X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0], dtype=np.float64)

    def _trained_predictors(self, X: Any, sensitive_features: Any, unknown_group: str) -> NDArray[np.float64]:
        check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        if len(self.coef_) == 1:
            return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)
        if sensitive_features is None:
            raise ValueError("This model has weights for each group (group_specific=True): pass sensitive_features.")
        groups = self.groups_.encode(sensitive_features, unknown_group=unknown_group, sizes=self.group_sizes_)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        return group_predictors(X, self._theta, np.append(self.common_coef_, self.common_intercept_), groups)

    @property
    def compared_with_(self) -> str:
        """What each group is compared with: ``"each_other"``, ``"everyone"`` (beyond 20 groups) or ``"target"``."""
        check_is_fitted(self)
        if not self._options().each_other:
            return "target"
        return "each_other" if len(self.groups_) <= MAX_PAIRED_GROUPS else "everyone"

    @property
    def _theta(self) -> NDArray[np.float64]:
        return np.column_stack((self.coef_, self.intercept_))

    # ---------------------------------------------------------------- validating and storing

    def _options(self) -> TrainingOptions:
        return TrainingOptions.validated(self.get_params(deep=False), self._distance())

    def _training_data(self, X: Any, y: Any, *, options: TrainingOptions, **columns: Any) -> TrainingData:
        y = self._validate_y(y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        return validate_training_data(
            X,
            y,
            make_response=self._make_response,
            options=options,
            feature_names=getattr(self, "feature_names_in_", None),
            **columns,
        )

    def _features(self, X: Any, *, reset: bool = False) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)

    def _store(self, result: FitResult) -> None:
        """Store the result of a training, and emit its warnings."""
        result = result.in_units_of_y()
        self._store_start(result.response, result.initial, result.groups, result.target, result.group_sizes)
        self.strata_ = result.strata
        self._store_weights(result.theta, result.common)
        self.parity_weight_, self.n_iter_ = result.parity_weight, result.n_iter
        self.information_kept_, self.before_after_ = result.information_kept, result.before_after
        self.history_, self.path_, self.spread_ = result.history, result.path, result.spread
        if result.duals is not None:
            self.duals_ = result.duals
        self.adjusting_ = result.memory
        self.outcome_ = result.outcome.text
        for message, category in result.outcome.warnings:
            warn_caller(message, category)

    def _store_start(
        self,
        response: Response,
        initial: InitialModel,
        groups: Groups,
        target: NDArray[np.float64],
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self._store_response(response)
        self.initial_estimator_, self.target_ = initial.model, target
        self.groups_ = Groups.from_spec(groups.to_spec())
        self.group_sizes_ = groups.counts if sizes is None else sizes

    def _store_weights(self, theta: NDArray[np.float64], common: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        self.common_coef_, self.common_intercept_ = common[:-1].copy(), float(common[-1])

    # ---------------------------------------------------------------- scikit-learn

    def _summary(self) -> list[str]:
        """Return what training gained and kept, and how it ended."""
        metrics = vars(self).get("before_after_")
        if metrics is None:
            return [str(self.outcome_)]
        changes = [
            f"{name.replace('_', ' ')} {metrics[name][0]:.3f} to {metrics[name][1]:.3f}"
            for name in self._response.summary_metrics
        ]
        kept = f"{self.information_kept_:.0%} of the information kept"
        return [f"{', '.join(changes)} on training rows; {kept}", str(self.outcome_)]

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), self._summary)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
