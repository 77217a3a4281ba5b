"""Base of the transport regressors: a real y in any unit, predictions, R2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn import real_targets
from fairtransport._validation import check_choice, check_length, check_real
from fairtransport.linear._online_model import OnlineTransportModel
from fairtransport.linear._training_data import SPREADS, TrainingOptions
from fairtransport.training.evaluation import spread_scores
from fairtransport.training.responses import RealResponse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.training.responses import Response


class LinearTransportRegressor(RegressorMixin, OnlineTransportModel):
    """Base of the transport regressors, which differ in the distance that they penalise."""

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        updates: int | None = None,
    ) -> Self:
        """Adjust the model to one batch of a stream; demographic parity needs no y.

        Notes
        -----
        As `ContinuousTransportClassifier.partial_fit`, with predictions in the place of logits. The anchor, the
        expansion of the squared loss around the model of the last ``fit``, is exact.

        Nothing is drawn at random: equal batches in equal order give equal models to the last bit, whether in one
        process or through `fairtransport.save` and `fairtransport.load`.
        """
        return self._adjust(
            X, y, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight, updates=updates
        )

    # ---------------------------------------------------------------- predicting

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> NDArray[np.float64]:
        """Return predictions, in units of y."""
        check_is_fitted(self)
        amount = check_real(self.amount, name="amount", most=1.0)
        X = self._features(X)
        trained = self._trained_predictors(X, sensitive_features, unknown_group)
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            trained = spread_scores(trained, self.spread_)
        return trained if amount == 1.0 else (1.0 - amount) * self._initial_predictors(X) + amount * trained

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination (R2) of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    # ---------------------------------------------------------------- outcomes

    def _options(self) -> TrainingOptions:
        options = super()._options()
        if options.criterion == "equal_opportunity":
            raise ValueError(
                "criterion='equal_opportunity' compares people with the positive label, and a real y has none. Use "
                "'equalized_odds', which compares people with about the same y, or a classifier."
            )
        return options

    def _validate_y(self, y: Any) -> NDArray[np.float64]:
        return real_targets(y, type(self).__name__, constant=True)  # the response says where it is

    def _make_response(self, y: NDArray[Any], weights: NDArray[np.float64] | None) -> RealResponse:
        return RealResponse.of(y, np.full(len(y), 1.0 / len(y)) if weights is None else weights / weights.sum())

    def _response_of(self, estimator: Any, X: Any, masses: NDArray[np.float64]) -> RealResponse:
        if not (hasattr(estimator, "coef_") and np.size(estimator.coef_) == X.shape[1]):
            return RealResponse(0.0, 1.0)  # the initial model's own checks say what is wrong with it
        predicted = X @ np.ravel(estimator.coef_) + np.ravel(estimator.intercept_)[0]
        return self._make_response(np.asarray(predicted, dtype=np.float64), masses)

    def _batch_outcomes(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        values = real_targets(y, type(self).__name__, constant=True)
        check_length(values, size=n_rows, name="y")
        return values

    @property
    def _response(self) -> RealResponse:
        return RealResponse(self.y_mean_, self.y_std_)

    def _store_response(self, response: Response) -> None:
        if isinstance(response, RealResponse):
            self.y_mean_, self.y_std_ = response.mean, response.deviation
