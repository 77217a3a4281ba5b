"""The response of classifiers: one of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression

from fairtransport.linear.losses import LOSSES
from fairtransport.linear.responses.base import Response
from fairtransport.metrics.ranks import pooled_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BinaryResponse"]


@dataclass(frozen=True, eq=False)
class BinaryResponse(Response):
    """One of two classes; the second is positive."""

    loss = LOSSES["logistic"]
    loss_name = "log_loss"
    quality_name = "auc"
    quality_text = "AUC"
    summary_metrics = ("disparity", "rank_disparity", "auc")
    repair = "QuantileRepairClassifier"
    needed_attributes = ("predict_proba", "classes_")
    needed_estimator = "a linear logistic model with coef_, intercept_ and predict_proba, such as LogisticRegression"

    classes: NDArray[Any]

    def outcomes(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return 1 for the second class and 0 for the first."""
        return (y == self.classes[1]).astype(np.float64)

    def to_given(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights unchanged."""
        return theta

    def to_standard(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights unchanged."""
        return theta

    def scores_as_given(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores unchanged."""
        return scores

    def scores_of_given(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores unchanged."""
        return predictions

    def quality(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the area under the ROC curve, from the mean rank of the positive rows."""
        rate = float(shares @ outcomes)
        mean = float((shares * outcomes) @ pooled_ranks(scores, shares)) / rate
        return (mean - 0.5 * rate) / (1.0 - rate)

    def fold_columns(self, outcomes: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
        """Return the labels."""
        return (outcomes,)

    # ---------------------------------------------------------------- initial models

    def default_estimator(self) -> LogisticRegression:
        """Return logistic regression."""
        return LogisticRegression(max_iter=1000)

    def estimator_with(self, theta: NDArray[np.float64]) -> LogisticRegression:
        """Return logistic regression with these weights."""
        model = LogisticRegression()
        model.classes_, model.n_features_in_ = self.classes, len(theta) - 1
        model.coef_, model.intercept_ = theta[None, :-1].copy(), theta[-1:].copy()
        model.n_iter_ = np.ones(1, dtype=np.int32)
        return model

    def check_estimator(self, estimator: Any) -> None:
        """Raise TypeError for a regressor."""
        if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
            raise TypeError(
                f"estimator must be {self.needed_estimator}; {type(estimator).__name__} is a regressor, which "
                "ContinuousTransportRegressor and DiscreteTransportRegressor take."
            )

    def check_shape(self, model: Any, coef: NDArray[np.float64], n_features: int) -> None:
        """Raise ValueError unless a model has these columns, and the classes of y."""
        if coef.shape != (1, n_features):
            raise ValueError(
                f"estimator was fitted on {coef.shape[1]} features and {len(model.classes_)} classes; "
                f"X has {n_features} features and 2 classes are needed."
            )
        if not np.array_equal(np.asarray(model.classes_), self.classes):
            raise ValueError("estimator was fitted on other class labels than those of y.")

    def check_predictions(self, model: Any, X: Any, predictors: NDArray[np.float64]) -> None:
        """Raise TypeError unless the probabilities are the logistic function of the logits."""
        if not np.allclose(self.loss.scores(predictors), np.asarray(model.predict_proba(X))[:, 1], atol=1e-3):
            raise TypeError(
                f"{type(model).__name__} is not a linear logistic model: its probabilities are not the logistic "
                "function of coef_ and intercept_. Use LogisticRegression or SGDClassifier(loss='log_loss')."
            )

    def ridge_of(self, model: Any, total: float) -> float:
        """Return the ridge of scikit-learn's models, which minimise C * sum of losses + |w|^2 / 2."""
        if getattr(model, "penalty", "l2") in (None, "l1", "elasticnet") or getattr(model, "l1_ratio", None):
            return 0.0
        inverse = getattr(model, "C_", getattr(model, "C", None))
        if inverse is None:
            return 0.0
        strength = float(np.ravel(inverse)[0])
        return 1.0 / (strength * total) if np.isfinite(strength) and strength > 0 else 0.0
