"""Base of the transport classifiers: labels of two classes, probabilities, accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fairtransport._sklearn import check_classes, two_classes
from fairtransport._validation import check_choice, check_length, check_real
from fairtransport.linear._online_model import OnlineTransportModel
from fairtransport.linear._training_data import SPREADS
from fairtransport.training.evaluation import spread_logits
from fairtransport.training.responses import BinaryResponse
from fairtransport.transport.regularizers import mixed_logits, sigmoid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.training.responses import Response


class LinearTransportClassifier(ClassifierMixin, OnlineTransportModel):
    """Base of the transport classifiers, which differ in the distance that they penalise."""

    _all_of_y = ", with both classes,"

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        updates: int | None = None,
    ) -> Self:
        """Adjust the model to one batch of a stream; demographic parity needs no labels.

        Notes
        -----
        Of each group (with a criterion that needs labels, or strata: of its rows in each of them) a sketch is kept: a
        histogram of its logits, its mean features and their covariance with the
        logit, in which a row of ``half_life`` rows of its group ago counts half. When the scores of its last hundred
        rows or so differ from it by more than chance, what is older is dropped. A batch enters the sketches; then
        theta follows the gradient of the penalty on their quantiles, not on the batch, so that a batch of one row is as
        good as any; the sketches move along with theta. The target stays that of ``fit``; groups that are compared with
        each other continue to be.

        Unless the loss is left out (``parity_weight=inf``, the paper's rule), an anchor keeps theta from drifting along
        the set of fair models: the second-order expansion of the logistic loss around the model of the last ``fit``. It
        has no noise and needs no labels. Labels that are given teach that model by a step of online logistic
        regression, and theta goes along.

        Nothing is drawn at random: equal batches in equal order give equal models to the last bit, whether in one
        process or through `fairtransport.save` and `fairtransport.load`.
        """
        if hasattr(self, "coef_"):
            check_classes(classes, self.classes_)
        elif y is not None:
            check_classes(classes, two_classes(y, type(self).__name__)[1])
        return self._adjust(
            X, y, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight, updates=updates
        )

    def decision_function(
        self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error"
    ) -> NDArray[np.float64]:
        """Return the logit of class 1's probability."""
        check_is_fitted(self)
        amount = check_real(self.amount, name="amount", most=1.0)
        X = self._features(X)
        trained = self._trained_predictors(X, sensitive_features, unknown_group)
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            trained = spread_logits(trained, self.spread_)
        return trained if amount == 1.0 else mixed_logits(self._initial_predictors(X), trained, amount)

    def predict_proba(
        self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error"
    ) -> NDArray[np.float64]:
        """Return the probabilities of the two classes; see ``decision_function`` for the parameters."""
        options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
        positive = sigmoid(self.decision_function(X, **options))
        return np.column_stack((1.0 - positive, positive))

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> NDArray[Any]:
        """Return class 1 where its probability is above one half; see ``decision_function`` for the parameters."""
        options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
        above = self.decision_function(X, **options) > 0.0
        return np.asarray(self.classes_[above.astype(int)])

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    # ---------------------------------------------------------------- labels

    def _validate_y(self, y: Any) -> NDArray[Any]:
        return two_classes(y, type(self).__name__)[0]

    def _make_response(self, y: NDArray[Any], weights: NDArray[np.float64] | None) -> BinaryResponse:
        classes = two_classes(y, type(self).__name__)[1]
        if weights is not None and not all(weights[y == label].any() for label in classes):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
        return BinaryResponse(classes)

    def _response_of(self, estimator: Any, X: Any, masses: NDArray[np.float64]) -> BinaryResponse:  # noqa: ARG002
        return BinaryResponse(np.asarray(getattr(estimator, "classes_", ())))

    def _batch_outcomes(self, y: Any, n_rows: int) -> NDArray[Any]:
        labels = column_or_1d(y)
        check_length(labels, size=n_rows, name="y")
        unknown = int(np.count_nonzero(~np.isin(labels, self.classes_)))
        if unknown:
            raise ValueError(
                f"y has {unknown} of {n_rows} labels that are none of the two classes of the first fit. Leave y out "
                "where labels are not known."
            )
        return np.asarray(labels)

    @property
    def _response(self) -> BinaryResponse:
        return BinaryResponse(self.classes_)

    def _store_response(self, response: Response) -> None:
        if isinstance(response, BinaryResponse):
            self.classes_ = response.classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
