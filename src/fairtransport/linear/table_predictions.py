"""Two linear models of a table whose rows stay in parts, of the label and of the groups, and what they predict.

Both are those of scikit-learn, fitted by passes over the rows. Their predictions and group probabilities are counted in
boxes of a grid, whose counts and means are returned: what blind repair is fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._sklearn import few_threads
from fairtransport.criteria.criterion import needs_labels
from fairtransport.groups import Groups
from fairtransport.linear._constants import CORRECTIONS, N_FOLDS
from fairtransport.linear._lbfgs_solver import unwhiten, whiten_gradient
from fairtransport.linear._partitions import (
    Grid,
    LossModel,
    PredictionCounts,
    RawParts,
    count_predictions,
    prediction_moments,
)
from fairtransport.linear._problem import minimise_loss
from fairtransport.linear._table_problem import TableLoss, encode_loss, given_model
from fairtransport.linear._table_reading import TableColumns, TableReading, read_cells
from fairtransport.linear.estimators import TransportClassifier, TransportRegressor
from fairtransport.strata import Strata
from fairtransport.training.responses import BinaryResponse

_MOST_BOXES = 1 << 16  # of the grid in which predictions are counted
_WIDTH = 2.0**-11  # of a box before any are joined, in standard deviations
_NARROWER = 2.0  # boxes along scores than along probabilities
_LEAST_VARIANCE = 1e-6  # of an axis of the grid
_TOL, _MAX_ITER = 1e-6, 500
_DIGITS = 7  # of weights, so that the rounding of sums does not reach the map, which is sensitive to it
_C = 0.1  # of the default model of the groups, of columns in units of their standard deviations


@dataclass(frozen=True, eq=False)
class TablePredictions:
    """Fitted models of label and groups, and rows of known groups by predictions of models that have not seen them.

    Where rows are counted, ``counts`` are of equal rows, of which each ``half`` has some.
    """

    model: Any
    group_model: LogisticRegression
    predicted: Floats
    outcomes: Floats
    probabilities: Floats
    groups: Groups
    strata: Strata | None
    counts: Floats | None
    half: Ints | None


def predict_parts(
    source: RawParts, columns: TableColumns, *, estimator: Any, group_estimator: Any, criterion: Any, groups: Any,
    owner: str,
) -> TablePredictions:  # fmt: skip
    """Fit both models to rows that stay where they are, and count their predictions.

    With fewer than 200 rows for each feature, predictions are those of models fitted without the fold of a row.
    """
    kind: Any = TransportClassifier if columns.classifies else TransportRegressor
    base = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    _check(base, (LogisticRegression,) if columns.classifies else (LinearRegression, Ridge), "estimator")
    if group_estimator is not None:
        _check(group_estimator, (LogisticRegression,), "group_estimator")
    if not columns.classifies and needs_labels(criterion):
        raise ValueError("Blind repair of numbers within ranges of y needs all rows in memory.")
    options = kind(estimator=base, criterion=criterion, groups=groups)._options()  # noqa: SLF001
    with few_threads(None):
        reading = read_cells(source, columns, options, kind._response_class, owner)  # noqa: SLF001
        if reading.data.groups.overlapping:
            raise ValueError("Blind repair needs groups that do not overlap: use crossed=True.")
        loss = encode_loss(source, columns, reading)
        try:
            return _predict(reading, loss, (base, group_estimator), 2 if needs_labels(criterion) else 1)
        finally:
            loss.rows.close()


def _check(model: Any, kinds: tuple[type, ...], name: str) -> None:
    """Raise unless a model is one of those that passes over rows can fit."""
    named = " or ".join(kind.__name__ for kind in kinds)
    is_fitted = hasattr(model, "coef_")  # else it is fitted here, and those that choose their penalty cannot be
    if not isinstance(model, kinds) or (type(model) not in kinds and not is_fitted):
        raise TypeError(
            f"Of a table that is not in memory, {name} must be a {named} of scikit-learn; got a {type(model).__name__}."
        )
    has_l1 = getattr(model, "penalty", "l2") in {"l1", "elasticnet"} or getattr(model, "l1_ratio", None)
    weighs = getattr(model, "class_weight", None) is not None
    if has_l1 or weighs or getattr(model, "positive", False) or not getattr(model, "fit_intercept", True):
        raise ValueError(
            f"Of a table that is not in memory, {name} is fitted with an intercept, with an L2 penalty or none, and "
            "without class weights; other settings need all rows in memory."
        )


def _predict(reading: TableReading, loss: TableLoss, models: tuple[Any, Any], n_labels: int) -> TablePredictions:
    """Fit the models to all rows and, where these are few, without each fold; count their predictions."""
    cells, data, scaling, response = reading.cells, reading.data, reading.scaling, reading.data.response
    groups, unit, (base, group_base) = data.groups.select(cells.first), scaling.unit, models
    classes = groups.codes * n_labels + (loss.cell_outcomes.astype(np.int64) if n_labels > 1 else 0)
    known = (groups.codes < len(groups)) & (cells.weights > 0.0)
    present = np.unique(classes[known])
    numbers = np.where(known, np.searchsorted(present, classes), 0)
    loss = replace(loss, ridge=np.full(unit.size, response.ridge_of(base, float(cells.weights.sum()))) / unit**2)
    total = float(cells.weights[known].sum())
    ridge = (reading.deviation / unit) ** 2 / (_C * total)
    if group_base is not None:
        ridge = BinaryResponse(present[:2]).ridge_of(group_base, total) / unit**2

    coarse = loss.thinned(groups)
    loss = loss if coarse is loss else replace(loss, sample=coarse)
    if hasattr(base, "coef_"):
        theta, fitted = scaling.to_scaled(given_model(base, scaling, data, 1.0).theta)[None], base
    else:
        theta, fitted = np.zeros(loss.shape), clone(base)
        theta[0, -1] = response.loss.best_constant(data.outcomes, data.shares)[0]
        theta = np.round(minimise_loss(loss, theta if coarse is loss else minimise_loss(coarse, theta)), _DIGITS)
        for name, value in vars(response.estimator_with(response.to_given(scaling.to_raw(theta[0])))).items():
            if name.endswith("_"):
                setattr(fitted, name, value)
        if data.feature_names is not None:
            fitted.feature_names_in_ = data.feature_names
    factors = loss.whitening(theta)
    of_classes = np.zeros((present.size, unit.size + 1))
    for one in (loss,) if coarse is loss else (coarse, loss):
        of_classes = _minimise_classes(_kept(one, known), numbers, ridge, factors, of_classes)
    thetas, by_fold, owners = theta, of_classes[None], np.zeros(len(cells.keys), dtype=np.int64)
    if reading.keys.folds is not None:
        owners = np.array([key[0] for key in cells.keys])
        kept = [owners != fold for fold in range(N_FOLDS)]
        if not hasattr(base, "coef_"):
            thetas = np.vstack([minimise_loss(_kept(loss, one), theta) for one in kept]).round(_DIGITS)
        by_fold = np.array(
            [_minimise_classes(_kept(loss, one & known), numbers, ridge, factors, of_classes) for one in kept]
        )
    predictor = replace(_kept(loss, known), cell_models=owners).model(
        np.resize(thetas, (len(by_fold), thetas.shape[1]))
    )

    strata = None if data.strata is None else data.strata.select(cells.first)
    labels = loss.cell_outcomes if hasattr(response, "classes") else 0
    columns = groups.codes, 0 if strata is None else strata.codes, labels
    _, first, classes_of = np.unique(
        np.column_stack([np.broadcast_to(one, owners.shape) for one in columns]), axis=0, return_index=True,
        return_inverse=True,
    )  # fmt: skip
    kinds, means, counts, half = _in_halves(_counted(loss, predictor, loss.stored.to_raw(by_fold), classes_of))
    index = first[kinds]
    probabilities = np.zeros((len(index), len(groups) * n_labels))
    probabilities[:, present] = means[:, 1:-2]
    return TablePredictions(
        fitted,
        _class_model(group_base, scaling.to_raw(of_classes), present, fitted),
        response.scores_as_given(means[:, 0]),
        response.to_given(means[:, -2:-1])[:, 0],
        probabilities, groups.select(index), None if strata is None else strata.select(index), counts, half,
    )  # fmt: skip


def _counted(loss: TableLoss, predictor: LossModel, by_fold: Floats, classes: Ints) -> PredictionCounts:
    """Return counts of predictions, on a grid along the principal axes of scores and probabilities."""
    weight, total, products = loss.rows.total(prediction_moments, predictor, by_fold)
    covariance = products / weight - np.outer(total, total) / weight**2
    unit = np.sqrt(np.maximum(covariance.diagonal(), 1e-24))
    unit[0] /= _NARROWER
    variances, axes = np.linalg.eigh(np.round(covariance / np.outer(unit, unit), _DIGITS))
    axes = axes[:, variances > _LEAST_VARIANCE][:, ::-1] / (_WIDTH * unit[:, None])
    grid = Grid(classes, total / weight, axes, _MOST_BOXES)
    found: PredictionCounts = loss.rows.total(count_predictions, predictor, by_fold, grid)[0]
    return found


def _in_halves(found: PredictionCounts) -> tuple[NDArray[Any], Floats, Floats | None, Ints | None]:
    """Return class and means of boxes and, where they have several rows, how many are in which of two halves.

    Rows of a box are equal, so that chance divides them; outcomes of a box in both halves keep its mean and variance.
    """
    kinds, counts = found.boxes[:, 0], np.rint(found.sums[:, 0]).astype(np.int64)
    means = found.sums[:, 1:] / counts[:, None]
    if (counts == 1).all():
        return kinds, means, None, None
    drawn = np.random.default_rng(0).binomial(counts, 0.5)
    deviation = np.sqrt(np.maximum(means[:, -1] - means[:, -2] ** 2, 0.0))
    sizes, half = np.stack((drawn, counts - drawn)), np.repeat(np.arange(2), len(kinds))
    ratio = np.where(sizes.all(axis=0), np.sqrt(sizes[::-1] / np.maximum(sizes, 1)), 1.0)
    means, kinds, counts = np.vstack((means, means)), np.append(kinds, kinds), sizes.ravel()
    means[:, -2] += (ratio * deviation * [[1.0], [-1.0]]).ravel()
    kept = counts > 0
    return kinds[kept], means[kept], counts[kept].astype(np.float64), half[kept]


def _kept(loss: TableLoss, kept: Bools) -> TableLoss:
    """Return the loss of some cells."""
    return replace(loss, kept=np.flatnonzero(kept), cell_factors=loss.cell_factors * kept, known={})


def _minimise_classes(loss: TableLoss, classes: Ints, ridge: Floats, factors: list[Floats], start: Floats) -> Floats:
    """Return the weights of each class at which logarithmic loss and ridge are least; of two, those of the first are 0.

    Coordinates are those in which the loss of the label model has unit curvature, which is similar here.
    """
    free = start[1:] if len(start) == 2 else start

    def thetas_at(coordinates: Floats) -> Floats:
        moved = free + unwhiten(factors * len(free), coordinates.reshape(free.shape))
        return np.vstack((start[:1], moved)) if len(start) == 2 else moved

    def objective(coordinates: Floats) -> tuple[float, Floats]:
        thetas = thetas_at(coordinates)
        value, gradient = loss.class_terms(thetas, classes)
        penalty = ridge * thetas[:, :-1]
        gradient[:, :-1] += penalty
        gradient = gradient[-len(free) :]
        return value + 0.5 * float((penalty * thetas[:, :-1]).sum()), whiten_gradient(
            factors * len(free), gradient
        ).ravel()

    options = {"maxiter": _MAX_ITER, "maxcor": CORRECTIONS, "gtol": _TOL, "ftol": 1e-3 * _TOL}
    found = minimize(objective, np.zeros(free.size), jac=True, method="L-BFGS-B", options=options)
    return np.round(thetas_at(found.x), _DIGITS)


def _class_model(base: Any, thetas: Floats, classes: Ints, fitted: Any) -> LogisticRegression:
    """Return logistic regression with these weights of classes."""
    model = LogisticRegression(C=_C) if base is None else clone(base)
    rows = thetas[1:] - thetas[:1] if len(thetas) == 2 else thetas
    model.classes_, model.coef_, model.intercept_ = classes, rows[:, :-1].copy(), rows[:, -1].copy()
    model.n_iter_, model.n_features_in_ = np.ones(1, dtype=np.int32), rows.shape[1] - 1
    if hasattr(fitted, "feature_names_in_"):
        model.feature_names_in_ = fitted.feature_names_in_
    return model
