"""Responses, one of two classes or a real number: loss, units, and initial models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d

from fairtransport._arrays import Floats
from fairtransport._columns import read_columns
from fairtransport._labels import real_targets, two_classes
from fairtransport._validation import check_length
from fairtransport.criteria import Criterion, DemographicParity
from fairtransport.criteria.penalty import Duals
from fairtransport.strata import Strata, cross_strata, make_strata
from fairtransport.transport.kernels.functions import logistic_loss
from fairtransport.transport.line import FEW_SCORES
from fairtransport.transport.regularizers import AFFINE, AFFINE_SLOPE, LOGISTIC, affine_score, sigmoid


class ScoredResponse(ABC):
    """The properties of a response that the evaluation of scores and the outcome depend on."""

    loss_name: ClassVar[str]
    quality_name: ClassVar[str]
    quality_text: ClassVar[str]
    repair: ClassVar[str]
    own_weights: ClassVar[str] = "own weights for each group (group_specific=True)"

    @property
    def aware_remedies(self) -> tuple[str, ...]:
        """The estimator that goes further with the group at hand."""
        return self.own_weights, f"repair with the group at hand ({self.repair})"

    @property
    def shrinkage_remedies(self) -> tuple[str, ...]:
        """The setting that equalises the order of people instead of shrinking scores."""
        return "scale='standardized'", *self.aware_remedies

    @property
    def score_unit(self) -> float:
        """A score of 1, in units of y."""
        return 1.0

    @property
    def loss_unit(self) -> float:
        """A loss of 1, in (squared) units of y."""
        return 1.0

    @abstractmethod
    def mean_loss(self, scores: Floats, outcomes: Floats, shares: Floats) -> float:
        """Return the mean loss of scores."""

    @abstractmethod
    def constant_loss(self, outcomes: Floats, shares: Floats) -> float:
        """Return the mean loss of the best constant."""

    def as_outcomes(self, scores: Floats) -> Floats:
        """Return scores in the units of the outcomes that training sees."""
        return scores

    def explained(self, scores: Floats, outcomes: Floats, shares: Floats) -> float:
        """Return the share of the variance of the outcomes that scores explain; of 0 and 1, the Brier skill score."""
        variance = float(shares @ (outcomes - shares @ outcomes) ** 2)
        return 1.0 - float(shares @ (self.as_outcomes(scores) - outcomes) ** 2) / variance

    def quality(self, scores: Floats, ranks: Floats, outcomes: Floats, shares: Floats) -> float:  # noqa: ARG002
        """Return the measure of quality, of scores and their ranks."""
        return self.explained(scores, outcomes, shares)

    def further_disparities(self, pair: tuple[float, float]) -> dict[str, tuple[float, float]]:  # noqa: ARG002
        """Return a pair of disparities in other units, by name."""
        return {}


class ScoredClasses(ScoredResponse):
    """One of two classes, whose scores are probabilities."""

    loss_name = "log_loss"
    quality_name = "auc"
    quality_text = "AUC"
    repair = "QuantileRepairClassifier"

    @staticmethod
    def quality(scores: Floats, ranks: Floats, outcomes: Floats, shares: Floats) -> float:  # noqa: ARG004
        """Return the area under the ROC curve, from the mean rank of the positive rows."""
        rate = float(shares @ outcomes)
        mean = float((shares * outcomes) @ ranks) / rate
        return (mean - 0.5 * rate) / (1.0 - rate)


class ScoredNumbers(ScoredResponse):
    """A number; subclasses have the standard deviation of y."""

    quality_name = "r2"
    quality_text = "R2"
    repair = "QuantileRepairRegressor"
    deviation: float

    def further_disparities(self, pair: tuple[float, float]) -> dict[str, tuple[float, float]]:
        """Return a pair of disparities in standard deviations of y."""
        return {"standardized_disparity": (pair[0] / self.deviation, pair[1] / self.deviation)}


class _LinearResponse(ScoredResponse):
    """The response of a linear model: its loss, and the map between y as given and the outcomes that training sees."""

    loss: ClassVar[Loss]
    summary_metrics: ClassVar[tuple[str, ...]]
    needed_attributes: ClassVar[tuple[str, ...]]
    needed_estimator: ClassVar[str]
    other_kind: ClassVar[str]

    def mean_loss(self, scores: Floats, outcomes: Floats, shares: Floats) -> float:
        """Return the mean loss of scores."""
        return self.loss.mean(scores, outcomes, shares)

    def constant_loss(self, outcomes: Floats, shares: Floats) -> float:
        """Return the mean loss of the best constant."""
        return self.loss.best_constant(outcomes, shares)[1]

    def to_given(self, theta: Floats) -> Floats:
        """Return weights, the intercept last, for predictions in units of y."""
        return theta

    def to_standard(self, theta: Floats) -> Floats:
        """Return weights for standardised predictions: the inverse of `to_given`."""
        return theta

    def scores_as_given(self, scores: Floats) -> Floats:
        """Return scores in units of y."""
        return scores

    def scores_of_given(self, predictions: Floats) -> Floats:
        """Return the scores of predictions in units of y: the inverse of `scores_as_given`."""
        return predictions

    def duals_as_given(self, duals: Duals) -> Duals:
        """Return dual potentials as functions of predictions in units of y."""
        low = float(self.scores_as_given(np.zeros(1))[0])
        return replace(duals, center=low + self.score_unit * duals.center, unit=self.score_unit * duals.unit)

    def duals_of_given(self, duals: Duals) -> Duals:
        """Return dual potentials as functions of scores: the inverse of `duals_as_given`."""
        low = float(self.scores_as_given(np.zeros(1))[0])
        return replace(duals, center=(duals.center - low) / self.score_unit, unit=duals.unit / self.score_unit)

    def fold_columns(self, outcomes: Floats) -> tuple[NDArray[Any], ...]:  # noqa: ARG002
        """Return columns within whose values folds are balanced; rows in canonical order are as good as random."""
        return ()

    def criterion_within_strata(self, criterion: Criterion) -> Criterion:
        """Return the criterion that remains to be met within the strata of `compared_strata`."""
        return criterion

    def compared_strata(
        self,
        y: NDArray[Any],  # noqa: ARG002
        strata: Strata | None,
        criterion: Criterion,  # noqa: ARG002
        n_groups: int,  # noqa: ARG002
    ) -> Strata | None:
        """Return the strata within which groups are compared: those of the user and, where y is cut, its ranges."""
        return strata

    def n_y_columns(self, strata: Strata) -> int:  # noqa: ARG002
        """Return how many columns of the strata of a fitted model are ranges of y."""
        return 0

    def stratum_columns(self, y: NDArray[Any] | None, strata: Any, known: Strata) -> Any:  # noqa: ARG002
        """Return the columns of new rows from which the strata of a fitted model are read."""
        return strata

    def check_estimator(self, estimator: Any) -> None:
        """Raise TypeError for a model of the other kind, with the name of the class that takes it."""
        kind = get_tags(estimator).estimator_type if hasattr(estimator, "__sklearn_tags__") else None
        if kind == self.other_kind:
            raise TypeError(
                f"estimator must be {self.needed_estimator}; {type(estimator).__name__} is a {kind}, which "
                f"Transport{kind.title()} takes."
            )


# Losses of linear models: logistic for classifiers, squared for regressors.


class LogisticLoss:
    """Log-loss of labels 0 and 1, and the map of the linear predictor to the score, a probability."""

    name = "logistic"
    link = LOGISTIC
    max_curvature = 0.25
    bounds = (0.0, 1.0)

    def terms(
        self, predictors: Floats, outcomes: Floats, shares: Floats, *, equal_shares: bool
    ) -> tuple[float, Floats, Floats]:
        """Return the mean loss, the scores, and the derivative of the former with respect to each predictor."""
        if predictors.size <= FEW_SCORES:
            scores = self.scores(predictors)
            return float(shares @ self.losses(predictors, outcomes)), scores, shares * (scores - outcomes)
        scores, slopes = np.empty_like(predictors), np.empty_like(predictors)
        return logistic_loss(predictors, outcomes, shares, equal_shares, scores, slopes), scores, slopes

    def losses(self, predictors: Floats, outcomes: Floats) -> Floats:
        """Return the loss of each row."""
        return np.asarray(np.logaddexp(0.0, predictors) - outcomes * predictors)

    def residuals(self, predictors: Floats, outcomes: Floats) -> Floats:
        """Return the derivative of each row's loss with respect to its predictor: probability less label."""
        return np.asarray(sigmoid(predictors) - outcomes)

    def scores(self, predictors: NDArray[Any]) -> Floats:
        """Return probabilities."""
        return np.asarray(sigmoid(predictors))

    def predictors(self, scores: Floats) -> Floats:
        """Return the logits of scores; of scores at a bound, that of a score next to it."""
        inside = np.clip(scores, 1e-6, 1.0 - 1e-6)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def score_slopes(self, scores: Floats) -> Floats:
        """Return s (1 - s)."""
        return scores * (1.0 - scores)

    curvature = score_slopes  # of each row's loss, with respect to its predictor

    def mean(self, scores: Floats, outcomes: Floats, shares: Floats) -> float:
        """Return the mean log-loss."""
        inside = np.clip(scores, 1e-15, 1.0 - 1e-15)
        logs = np.log1p(-inside)
        np.log(inside, out=logs, where=outcomes > 0.0)
        return float(-(shares @ logs))

    def best_constant(self, outcomes: Floats, shares: Floats) -> tuple[float, float]:
        """Return the logit of the share of positive labels, and its entropy."""
        rate = float(shares @ outcomes)
        return float(np.log(rate / (1.0 - rate))), float(_entropy(rate))

    def expected_gain(self, scores: Floats, shares: Floats) -> tuple[float, float]:
        """Return the entropy of the mean score less the mean entropy of the scores, and the former."""
        rate = np.clip(shares @ scores, 1e-12, 1.0 - 1e-12)
        constant = float(_entropy(rate))
        return constant - float(shares @ _entropy(np.clip(scores, 1e-12, 1.0 - 1e-12))), constant


class SquaredLoss:
    r"""Half of the squared error of a standardised y.

    Scores are the linear predictor in units in which three standard deviations of y to both sides of its mean are
    [0, 1], so that a strength, a kernel variance and a Huber width mean what they mean for probabilities.
    """

    name = "squared"
    link = AFFINE
    max_curvature = 1.0
    bounds = None

    def terms(
        self,
        predictors: Floats,
        outcomes: Floats,
        shares: Floats,
        *,
        equal_shares: bool,  # noqa: ARG002
    ) -> tuple[float, Floats, Floats]:
        """Return the mean loss, the scores, and the derivative of the former with respect to each predictor."""
        residuals = predictors - outcomes
        slopes = shares * residuals
        return 0.5 * float(slopes @ residuals), affine_score(predictors), slopes

    def losses(self, predictors: Floats, outcomes: Floats) -> Floats:
        """Return half of the squared error of each row."""
        return np.asarray(0.5 * (predictors - outcomes) ** 2)

    def residuals(self, predictors: Floats, outcomes: Floats) -> Floats:
        """Return prediction less outcome."""
        return np.asarray(predictors - outcomes)

    def scores(self, predictors: NDArray[Any]) -> Floats:
        """Return the predictors in units of scores."""
        return np.asarray(affine_score(predictors))

    def predictors(self, scores: Floats) -> Floats:
        """Return the predictors."""
        return np.asarray((scores - 0.5) / AFFINE_SLOPE)

    def score_slopes(self, scores: Floats) -> float:  # noqa: ARG002
        """Return the constant slope."""
        return AFFINE_SLOPE

    def curvature(self, scores: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(scores)

    def mean(self, scores: Floats, outcomes: Floats, shares: Floats) -> float:
        """Return half of the mean squared error."""
        return float(shares @ self.losses(self.predictors(scores), outcomes))

    def best_constant(self, outcomes: Floats, shares: Floats) -> tuple[float, float]:
        """Return the mean, and half of the variance."""
        mean = float(shares @ outcomes)
        return mean, 0.5 * float(shares @ (outcomes - mean) ** 2)

    def expected_gain(self, scores: Floats, shares: Floats) -> tuple[float, float]:
        """Return half of the variance of the predictions, twice: nothing is known of the noise around them."""
        gain = self.best_constant(self.predictors(scores), shares)[1]
        return gain, gain


def _entropy(p: Any) -> Any:
    return -(p * np.log(p) + (1.0 - p) * np.log1p(-p))


Loss = LogisticLoss | SquaredLoss

#: Losses by name.
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (LogisticLoss(), SquaredLoss())}


# The response of classifiers: one of two classes.


@dataclass(frozen=True, eq=False)
class BinaryResponse(ScoredClasses, _LinearResponse):
    """One of two classes; the second is positive."""

    loss = LOSSES["logistic"]
    summary_metrics = ("disparity", "rank_disparity", "auc")
    needed_attributes = ("predict_proba", "classes_")
    needed_estimator = "a linear logistic model with coef_, intercept_ and predict_proba, such as LogisticRegression"
    other_kind = "regressor"

    classes: NDArray[Any]

    @classmethod
    def of(cls, y: NDArray[Any], weights: Floats | None, owner: str) -> Self:
        """Return the two classes of y; ValueError where one of them has no weight."""
        classes = two_classes(y, owner)[1]
        if weights is not None and not all(weights[y == label].any() for label in classes):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
        return cls(classes)

    @classmethod
    def of_linear_model(cls, model: Any, X: Any, masses: Floats, owner: str) -> Self:  # noqa: ARG003
        """Return the classes of a fitted initial model, without any y."""
        return cls(np.asarray(getattr(model, "classes_", ())))

    @classmethod
    def of_fitted(cls, model: Any) -> Self:
        """Return the response of a fitted estimator."""
        return cls(model.classes_)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of a fitted estimator that `of_fitted` reads."""
        return {"classes_": self.classes}

    @staticmethod
    def read(y: Any, owner: str) -> NDArray[Any]:
        """Return y as a vector; ValueError where it cannot be learned."""
        return two_classes(y, owner)[0]

    def read_batch(self, y: Any, n_rows: int, owner: str) -> NDArray[Any]:  # noqa: ARG002
        """Return the y of a batch as a vector; ValueError where it has other classes."""
        labels = column_or_1d(y)
        check_length(labels, size=n_rows, name="y")
        unknown = int(np.count_nonzero(~np.isin(labels, self.classes)))
        if unknown:
            raise ValueError(
                f"y has {unknown} of {n_rows} labels that are none of the two classes of the first fit. Leave y out "
                "where labels are not known."
            )
        return np.asarray(labels)

    def outcomes(self, y: NDArray[Any]) -> Floats:
        """Return 1 for the second class and 0 for the first."""
        return (y == self.classes[1]).astype(np.float64)

    def fold_columns(self, outcomes: Floats) -> tuple[NDArray[Any], ...]:
        """Return the labels."""
        return (outcomes,)

    def default_estimator(self) -> LogisticRegression:
        """Return logistic regression."""
        return LogisticRegression(max_iter=1000)

    def estimator_with(self, theta: Floats) -> LogisticRegression:
        """Return logistic regression with these weights."""
        model = LogisticRegression()
        model.classes_, model.n_features_in_ = self.classes, len(theta) - 1
        model.coef_, model.intercept_ = theta[None, :-1].copy(), theta[-1:].copy()
        model.n_iter_ = np.ones(1, dtype=np.int32)
        return model

    def check_shape(self, model: Any, coef: Floats, n_features: int) -> None:
        """Raise ValueError unless a model has these columns, and the classes of y."""
        if coef.shape != (1, n_features):
            raise ValueError(
                f"estimator was fitted on {coef.shape[1]} features and {len(model.classes_)} classes; "
                f"X has {n_features} features and 2 classes are needed."
            )
        if not np.array_equal(np.asarray(model.classes_), self.classes):
            raise ValueError("estimator was fitted on other class labels than those of y.")

    def check_predictions(self, model: Any, X: Any, predictors: Floats) -> None:
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


# The response of regressors: a real number, which is standardised for training.

# Standardised values of y are rounded to multiples of it, so that rounding errors of an affine map of y are gone before
# training and do not grow from one iteration of a solver to the next.
_GRID = 2.0**-30
#: Name of the column of y among strata.
Y_COLUMN = "y"

_CONSTANT = 1e-14  # of the largest value: a deviation that consists of rounding errors


@dataclass(frozen=True, eq=False)
class RealResponse(ScoredNumbers, _LinearResponse):
    """A real number, standardised for training."""

    loss = LOSSES["squared"]
    loss_name = "mean_squared_error"
    summary_metrics = ("standardized_disparity", "rank_disparity", "r2")
    needed_attributes = ("predict",)
    needed_estimator = "a linear regression with coef_ and intercept_, such as LinearRegression or Ridge"
    other_kind = "classifier"

    mean: float
    deviation: float

    @classmethod
    def of(cls, y: NDArray[Any], weights: Floats | None, owner: str) -> Self:  # noqa: ARG003
        """Return the response with the mean and the standard deviation of y; ValueError where it is constant."""
        shares = np.full(len(y), 1.0 / len(y)) if weights is None else weights / weights.sum()
        peak = float(np.abs(y).max())
        unit = peak if peak > 0.0 else 1.0  # in units of the largest value squares neither overflow nor vanish
        mean = float(shares @ (y / unit))
        deviation = float(np.sqrt(shares @ (y / unit - mean) ** 2))
        if deviation <= _CONSTANT or not deviation * unit > 0.0:
            raise ValueError(
                "y has the same value in every row, so there is nothing to learn and nothing to transport."
            )
        return cls(mean * unit, deviation * unit)

    @classmethod
    def of_linear_model(cls, model: Any, X: Any, masses: Floats, owner: str) -> Self:
        """Return mean and standard deviation of the predictions of a fitted initial model, without any y."""
        if not (hasattr(model, "coef_") and np.size(model.coef_) == X.shape[1]):
            return cls(0.0, 1.0)  # the initial model's own checks say what is wrong with it
        predicted = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
        return cls.of(np.asarray(predicted, dtype=np.float64), masses, owner)

    @classmethod
    def of_fitted(cls, model: Any) -> Self:
        """Return the response of a fitted estimator."""
        return cls(model.y_mean_, model.y_std_)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of a fitted estimator that `of_fitted` reads."""
        return {"y_mean_": self.mean, "y_std_": self.deviation}

    @staticmethod
    def read(y: Any, owner: str) -> Floats:
        """Return y as numbers; `of` says where they are all the same."""
        return real_targets(y, owner, constant=True)

    def read_batch(self, y: Any, n_rows: int, owner: str) -> Floats:
        """Return the y of a batch as numbers."""
        values = self.read(y, owner)
        check_length(values, size=n_rows, name="y")
        return values

    @property
    def score_unit(self) -> float:
        """A score of 1, in units of y."""
        return float(self.deviation / self.loss.score_slopes(np.zeros(1)))

    @property
    def loss_unit(self) -> float:
        """Half of a squared standardised error of 1, in squared units of y."""
        return 2.0 * self.deviation**2

    def outcomes(self, y: NDArray[Any]) -> Floats:
        """Return standardised values."""
        return np.asarray(np.round((y - self.mean) / self.deviation / _GRID) * _GRID)

    def to_given(self, theta: Floats) -> Floats:
        """Return weights, the intercept last, for predictions in units of y."""
        given = self.deviation * theta
        given[..., -1] += self.mean
        return np.asarray(given)

    def to_standard(self, theta: Floats) -> Floats:
        """Return weights for standardised predictions."""
        standard = np.array(theta, dtype=np.float64)
        standard[..., -1] -= self.mean
        return standard / self.deviation

    def scores_as_given(self, scores: Floats) -> Floats:
        """Return predictions in units of y."""
        return self.mean + self.deviation * self.loss.predictors(scores)

    def scores_of_given(self, predictions: Floats) -> Floats:
        """Return the scores of predictions in units of y."""
        return self.loss.scores((predictions - self.mean) / self.deviation)

    def as_outcomes(self, scores: Floats) -> Floats:
        """Return standardised predictions."""
        return self.loss.predictors(scores)

    def criterion_within_strata(self, criterion: Criterion) -> Criterion:
        """Return demographic parity: people with about the same y are a stratum."""
        return DemographicParity(criterion.stratum_weight)

    def compared_strata(
        self, y: NDArray[Any], strata: Strata | None, criterion: Criterion, n_groups: int
    ) -> Strata | None:
        """Return the strata of the user, crossed with ranges of y where the criterion compares people of the same y."""
        if criterion.name == "demographic_parity":
            return strata
        # Cut where it is standardised, so that ranges do not depend on the rounding errors of another unit.
        cells = n_groups * (1 if strata is None else len(strata))
        ranges = make_strata({Y_COLUMN: self.outcomes(y)}, n_groups=cells)
        cuts = tuple(None if points is None else self.mean + self.deviation * points for points in ranges.cuts)
        # Values of a y that has few are strata themselves.
        ranges = make_strata({Y_COLUMN: y}) if cuts[0] is None else replace(ranges, cuts=cuts)
        return ranges if strata is None else cross_strata(ranges, strata)

    def n_y_columns(self, strata: Strata) -> int:
        """Return 1 where y is among the strata."""
        return int(strata.columns[0] == Y_COLUMN)

    def stratum_columns(self, y: NDArray[Any] | None, strata: Any, known: Strata) -> Any:
        """Return the columns of the user, after y where it is among the strata."""
        if not self.n_y_columns(known):
            return strata
        return {Y_COLUMN: y, **({} if strata is None else read_columns(strata, of="strata"))}

    def default_estimator(self) -> Ridge:
        """Return ridge regression."""
        return Ridge()

    def estimator_with(self, theta: Floats) -> Ridge:
        """Return ridge regression with these weights."""
        model = Ridge()
        model.n_features_in_ = len(theta) - 1
        model.coef_, model.intercept_ = theta[:-1].copy(), float(theta[-1])
        return model

    def check_shape(self, model: Any, coef: Floats, n_features: int) -> None:  # noqa: ARG002
        """Raise ValueError unless a model has these columns and one output."""
        if coef.shape != (1, n_features):
            raise ValueError(
                f"estimator was fitted on {coef.shape[1]} features and {coef.shape[0]} outputs; X has {n_features} "
                "features and 1 output is needed."
            )
        if not self.deviation > 0.0:
            raise ValueError("estimator predicts the same for every row, so there is nothing to transport.")

    def check_predictions(self, model: Any, X: Any, predictors: Floats) -> None:
        """Raise TypeError unless predictions are the linear predictors."""
        predicted = np.asarray(model.predict(X), dtype=np.float64).ravel()
        if not np.allclose(predictors, predicted, rtol=1e-6, atol=1e-3 * self.deviation):
            raise TypeError(
                f"{type(model).__name__} is not a linear model: its predictions are not those of coef_ and intercept_. "
                "Use LinearRegression or Ridge."
            )

    def ridge_of(self, model: Any, total: float) -> float:
        """Return the ridge of scikit-learn's ridge regression, which minimises sum of squares + alpha |w|^2."""
        if not isinstance(model, (Ridge, RidgeCV)):
            return 0.0
        return float(np.ravel(getattr(model, "alpha_", model.alpha if isinstance(model, Ridge) else 0.0))[0]) / total


Response = BinaryResponse | RealResponse
