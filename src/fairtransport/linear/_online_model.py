"""Base of the transport models with ``partial_fit``: a fitted model as a value that batches of a stream update."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn import encode_batch_groups
from fairtransport._validation import check_count, check_length, check_weights
from fairtransport.criteria import criterion_text, needs_labels
from fairtransport.linear._problem import prepare_initial_model, stored_target
from fairtransport.linear._training_data import check_target, make_training_groups, make_training_strata
from fairtransport.linear.base import LinearTransportModel
from fairtransport.linear.online import (
    Batch,
    OnlineState,
    UpdateRule,
    default_parity_weight,
    memory_from_batch,
    row_masses,
)
from fairtransport.strata import Strata
from fairtransport.training.evaluation import spread_points
from fairtransport.training.weight_path import empty_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear._training_data import TrainingOptions
    from fairtransport.training.responses import Response


_N_UPDATES = 3  # of `partial_fit`, for each batch


class OnlineTransportModel(LinearTransportModel):
    """A transport model that batches of a stream adjust."""

    _all_of_y = ""  # what y must have in the first batch, in words

    @abstractmethod
    def _response_of(self, estimator: Any, X: Any, masses: NDArray[np.float64]) -> Response:
        """Return the response of a fitted initial model, without any y."""

    @abstractmethod
    def _batch_outcomes(self, y: Any, n_rows: int) -> NDArray[Any]:
        """Return the y of a batch as a vector; ValueError where it is not like that of ``fit``."""

    def _adjust(
        self, X: Any, y: Any, *, sensitive_features: Any, strata: Any, sample_weight: Any, updates: int | None
    ) -> Self:
        """Adjust the model to one batch; see ``partial_fit``."""
        options = self._options()
        if y is None and needs_labels(options.criterion):
            raise ValueError(
                f"partial_fit without labels cannot hold {criterion_text(options.criterion, has_strata=False)}, which "
                "compares people with the same label: pass y, for rows whose labels have arrived."
            )
        n_updates = _N_UPDATES if updates is None else check_count(updates, name="updates", least=0)
        columns = {"sensitive_features": sensitive_features, "strata": strata, "sample_weight": sample_weight}
        if not hasattr(self, "coef_"):
            if y is not None:
                return self.fit(X, y, **columns)
            return self._start_without_labels(X, options=options, **columns)
        X = self._features(X)
        masses = row_masses(check_weights(sample_weight, size=X.shape[0]), X.shape[0])
        groups = encode_batch_groups(self.groups_, sensitive_features, self.new_groups)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        given = None if y is None else self._batch_outcomes(y, X.shape[0])
        known = self._batch_strata(given, strata, X.shape[0])
        labels = None if given is None else self._response.outcomes(given)
        batch = Batch(X, groups, masses, labels, None if known is None else known.codes)
        state = self.online_state(updates=n_updates).widened(groups)
        if state.memory is None:
            state = replace(state, memory=self._memory_from(batch, state.theta, options, known))
        self.set_online_state(state.update(batch))
        self.n_iter_ += n_updates
        return self

    def _batch_strata(self, y: NDArray[Any] | None, strata: Any, n_rows: int) -> Strata | None:
        """Return the strata of a batch as in ``fit``; None where the model has none."""
        known = vars(self).get("strata_")
        n_given = 0 if known is None else len(known.columns) - self._response.n_y_columns(known)
        if (n_given == 0) != (strata is None):
            raise ValueError("strata must be given to partial_fit exactly where they were given to fit.")
        if known is None:
            return None
        encoded = known.encode(self._response.stratum_columns(y, strata, known))
        check_length(range(encoded.n_rows), size=n_rows, name="strata")
        return encoded

    def online_state(self, *, updates: int | None = None) -> OnlineState:
        """Return the fitted model as a value that batches update."""
        check_is_fitted(self)
        options = self._options()
        n_updates = _N_UPDATES if updates is None else check_count(updates, name="updates", least=0)
        rule = UpdateRule(options.distance, options.scale, options.each_other, options.half_life, n_updates)
        common = np.append(self.common_coef_, self.common_intercept_)
        theta, common = (self._response.to_standard(weights) for weights in (self._theta, common))
        state = vars(self)
        duals = None if state.get("duals_") is None else self._response.duals_of_given(state["duals_"])
        return OnlineState(rule, theta, common, self.groups_, state.get("adjusting_"), duals)

    def set_online_state(self, state: OnlineState) -> Self:
        """Store a state that was made from `online_state`."""
        n_new = len(state.groups) - len(self.groups_)
        if n_new > 0:
            self.groups_ = state.groups
            self.group_sizes_ = np.append(self.group_sizes_, np.zeros(n_new, dtype=self.group_sizes_.dtype))
        response = self._response
        if not np.array_equal(state.theta, response.to_standard(self._theta)):  # or a change of units would round them
            self._store_weights(response.to_given(state.theta), response.to_given(state.common))
        duals = None if state.duals is None else response.duals_as_given(state.duals)
        for name, value in {"adjusting_": state.memory, "duals_": duals}.items():
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)
        return self

    def _start_without_labels(
        self, X: Any, *, sensitive_features: Any, strata: Any, sample_weight: Any, options: TrainingOptions
    ) -> Self:
        try:
            check_is_fitted(self.estimator)
        except (NotFittedError, TypeError):
            raise ValueError(
                f"{type(self).__name__} has no model yet: pass y{self._all_of_y} in the first call of partial_fit, "
                "call fit before it, or give a fitted linear model as estimator."
            ) from None
        X = self._features(X, reset=True)
        masses = row_masses(check_weights(sample_weight, size=X.shape[0]), X.shape[0])
        response = self._response_of(self.estimator, X, masses)
        groups = make_training_groups(sensitive_features, X.shape[0], options)
        check_target(groups, masses, options, response)
        parts = make_training_strata(strata, groups)
        names = getattr(self, "feature_names_in_", None)
        initial = prepare_initial_model(self.estimator, X, None, None, response=response, feature_names=names)
        scores = initial.scores(X)
        target = response.scores_as_given(stored_target(options, scores, groups, masses, response=response))
        self._store_start(response, initial, groups, target)
        theta = np.tile(initial.theta, (len(groups) if options.group_specific else 1, 1))
        self._store_weights(response.to_given(theta), response.to_given(theta.mean(axis=0)))
        self.history_ = {name: np.zeros(0) for name in ("update", "disparity", "loss")}
        self.outcome_, self.n_iter_ = "started from the estimator as it was given, without labels", 0
        self.parity_weight_, self.information_kept_ = default_parity_weight(options), 1.0
        self.path_ = empty_path(response)
        points = spread_points(scores, scores, groups.rows, masses, response.loss.bounds)
        self.spread_ = response.scores_as_given(points)
        self.strata_ = None if parts is None else Strata.from_spec(parts.to_spec())
        batch = Batch(X, groups, masses, strata=None if parts is None else parts.codes)
        self.adjusting_ = self._memory_from(batch, theta, options, parts)
        return self

    def _memory_from(
        self, batch: Batch, theta: NDArray[np.float64], options: TrainingOptions, strata: Strata | None
    ) -> Any:
        model, response = self.initial_estimator_, self._response
        return memory_from_batch(
            batch,
            theta,
            response.loss.scores(self._initial_in_units_of_training(batch.X)),
            target=response.scores_of_given(self.target_),
            group_sizes=self.group_sizes_,
            has_intercept=bool(getattr(model, "fit_intercept", True)),
            options=options,
            response=response,
            strata=strata,
        )

    def _initial_in_units_of_training(self, X: Any) -> NDArray[np.float64]:
        model = self.initial_estimator_
        theta = self._response.to_standard(np.append(np.ravel(model.coef_), np.ravel(model.intercept_)[0]))
        return np.asarray(X @ theta[:-1] + theta[-1], dtype=np.float64)
