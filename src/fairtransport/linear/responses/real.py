"""The response of regressors: a real number, which is standardised for training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.linear_model import Ridge, RidgeCV

from fairtransport._columns import read_columns
from fairtransport.linear.losses import LOSSES
from fairtransport.linear.responses.base import Response
from fairtransport.strata import cross_strata, make_strata

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.strata import Strata

__all__ = ["Y_COLUMN", "RealResponse"]

# Standardised values of y are rounded to multiples of it, so that rounding errors of an affine map of y are gone before
# training and do not grow from one iteration of a solver to the next.
_GRID = 2.0**-30
#: Name of the column of y among strata.
Y_COLUMN = "y"

_CONSTANT = 1e-14  # of the largest value: a deviation that consists of rounding errors


@dataclass(frozen=True, eq=False)
class RealResponse(Response):
    """A real number, standardised for training.

    Attributes
    ----------
    mean, deviation : float
        Of y, weighted.

    Examples
    --------
    >>> response = RealResponse.of(np.array([10.0, 20.0, 30.0]), np.full(3, 1 / 3))
    >>> response.outcomes(np.array([20.0, 30.0])).round(3).tolist()
    [0.0, 1.225]
    """

    loss = LOSSES["squared"]
    loss_name = "mean_squared_error"
    quality_name = "r2"
    quality_text = "R2"
    summary_metrics = ("standardized_disparity", "rank_disparity", "r2")
    repair = "QuantileRepairRegressor"
    needed_attributes = ("predict",)
    needed_estimator = "a linear regression with coef_ and intercept_, such as LinearRegression or Ridge"

    mean: float
    deviation: float

    @classmethod
    def of(cls, y: NDArray[np.float64], shares: NDArray[np.float64]) -> Self:
        """Return the response with the mean and the standard deviation of y; ValueError where it is constant."""
        peak = float(np.abs(y).max())
        unit = peak if peak > 0.0 else 1.0  # in units of the largest value squares neither overflow nor vanish
        mean = float(shares @ (y / unit))
        deviation = float(np.sqrt(shares @ (y / unit - mean) ** 2))
        if deviation <= _CONSTANT or not deviation * unit > 0.0:
            raise ValueError(
                "y has the same value in every row, so there is nothing to learn and nothing to transport."
            )
        return cls(mean * unit, deviation * unit)

    @property
    def score_unit(self) -> float:
        """A score of 1, in units of y."""
        return float(self.deviation / self.loss.score_slopes(np.zeros(1)))

    @property
    def loss_unit(self) -> float:
        """Half of a squared standardised error of 1, in squared units of y."""
        return 2.0 * self.deviation**2

    def outcomes(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return standardised values."""
        return np.asarray(np.round((y - self.mean) / self.deviation / _GRID) * _GRID)

    def to_given(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights, the intercept last, for predictions in units of y."""
        given = self.deviation * theta
        given[..., -1] += self.mean
        return np.asarray(given)

    def to_standard(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights for standardised predictions."""
        standard = np.array(theta, dtype=np.float64)
        standard[..., -1] -= self.mean
        return standard / self.deviation

    def scores_as_given(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predictions in units of y."""
        return self.mean + self.deviation * self.loss.predictors(scores)

    def scores_of_given(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of predictions in units of y."""
        return self.loss.scores((predictions - self.mean) / self.deviation)

    def quality(self, scores: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        """Return the coefficient of determination."""
        return 1.0 - self.loss.mean(scores, outcomes, shares) / self.loss.best_constant(outcomes, shares)[1]

    def fold_columns(self, outcomes: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:  # noqa: ARG002
        """Return nothing: rows are in canonical order, whose remainders are as good as random."""
        return ()

    def further_disparities(self, pair: tuple[float, float]) -> dict[str, tuple[float, float]]:
        """Return a pair of disparities in standard deviations of y."""
        return {"standardized_disparity": (pair[0] / self.deviation, pair[1] / self.deviation)}

    def criterion_within_strata(self, criterion: str) -> str:  # noqa: ARG002
        """Return demographic parity: people with about the same y are a stratum."""
        return "demographic_parity"

    def compared_strata(self, y: NDArray[Any], strata: Strata | None, criterion: str, n_groups: int) -> Strata | None:
        """Return the strata of the user, crossed with ranges of y where the criterion compares people of the same y."""
        if criterion == "demographic_parity":
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
        columns = {} if strata is None else read_columns(strata)
        return {Y_COLUMN: y, **{name.replace("sensitive_feature_", "stratum_"): c for name, c in columns.items()}}

    # ---------------------------------------------------------------- initial models

    def default_estimator(self) -> Ridge:
        """Return ridge regression."""
        return Ridge()

    def estimator_with(self, theta: NDArray[np.float64]) -> Ridge:
        """Return ridge regression with these weights."""
        model = Ridge()
        model.n_features_in_ = len(theta) - 1
        model.coef_, model.intercept_ = theta[:-1].copy(), float(theta[-1])
        return model

    def check_estimator(self, estimator: Any) -> None:
        """Raise TypeError for a classifier."""
        if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
            raise TypeError(
                f"estimator must be {self.needed_estimator}; {type(estimator).__name__} is a classifier, which "
                "ContinuousTransportClassifier and DiscreteTransportClassifier take."
            )

    def check_shape(self, model: Any, coef: NDArray[np.float64], n_features: int) -> None:  # noqa: ARG002
        """Raise ValueError unless a model has these columns and one output."""
        if coef.shape != (1, n_features):
            raise ValueError(
                f"estimator was fitted on {coef.shape[1]} features and {coef.shape[0]} outputs; X has {n_features} "
                "features and 1 output is needed."
            )
        if not self.deviation > 0.0:
            raise ValueError("estimator predicts the same for every row, so there is nothing to transport.")

    def check_predictions(self, model: Any, X: Any, predictors: NDArray[np.float64]) -> None:
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
