"""The model of the groups given the features: cross-fitted, calibrated, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, logit, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fairtransport._arrays import Floats, Ints
from fairtransport._sklearn import as_features, few_threads, last_step, n_rows, row_block, take_rows

# Histogram gradient boosting of scikit-learn that takes sparse matrices, too, such as encoders return.


class _DenseFeatures:
    """Fit to sparse features as to dense ones."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; see scikit-learn."""
        X = _dense(X)
        with few_threads(X, openmp=True):
            return super().fit(X, y, sample_weight=sample_weight)  # type: ignore[misc]


class DenseBoostingClassifier(_DenseFeatures, HistGradientBoostingClassifier):
    """Histogram gradient boosting of classes, of dense and sparse features."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes."""
        X = _dense(X)
        with few_threads(X, openmp=True):
            return np.asarray(super().predict_proba(X))


class DenseBoostingRegressor(_DenseFeatures, HistGradientBoostingRegressor):
    """Histogram gradient boosting of numbers, of dense and sparse features."""

    def predict(self, X: Any) -> Floats:
        """Return the predictions."""
        X = _dense(X)
        with few_threads(X, openmp=True):
            return np.asarray(super().predict(X))


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


MOST_LOGIT = 20.0  # of an offset or slope of the calibration
_FLOOR = 1e-6  # least probability of a class before calibration
_EDGE = 0.01  # beyond it, log-odds of predictions are constant
_N_BINS = 10
_MOST_DEVIATIONS = 3.0  # of a prediction from the mean, in standard deviations
_BLOCK = 8_192  # rows at a time
_MANY_ROWS = 10_000  # with fewer, trees of more than a few leaves tell less about the groups of new rows


def default_group_estimators(base: Any, X: Any, random_state: int | None) -> list[Any]:
    """Return gradient boosting, beside a linear model after logistic regression; both after its preprocessing."""
    trees = DenseBoostingClassifier(
        max_iter=100, max_leaf_nodes=15 if n_rows(X) >= _MANY_ROWS else 4, max_features=0.5, max_bins=64,
        l2_regularization=1.0, early_stopping=False, random_state=random_state,
    )  # fmt: skip
    steps, shown, name = [], take_rows(X, np.arange(1)), "groups"
    if isinstance(base, Pipeline) and len(base.steps) > 1:
        steps, shown, name = base.steps[:-1], base[:-1].transform(as_features(shown)), base.steps[-1][0]
    models = [clone(Pipeline([*steps, (name, trees)])) if steps else trees]
    if hasattr(last_step(base)[1], "coef_"):
        scaler = StandardScaler(with_mean=not sparse.issparse(shown))
        linear = LogisticRegression(C=0.1, tol=1e-3, max_iter=1000)
        scaled = " ".join(["scaled", *(own for own, _ in steps), name])  # longer than any of their names
        models.insert(0, clone(Pipeline([*steps, (scaled, scaler), (name, linear)])))
    return models


def is_scaled_regression(model: Any) -> bool:
    """Return whether a model is the linear one of `default_group_estimators`."""
    return isinstance(model, Pipeline) and isinstance(last_step(model)[1], LogisticRegression)


def fit_scaled_regression(model: Pipeline, X: Any, codes: Ints, weights: Floats | None) -> Pipeline:
    """Fit the linear model of the groups as its steps fit themselves, but in blocks of rows.

    Scikit-learn would need a scaled copy of the rows, and three numbers for each row and group.
    """
    *steps, (scaled, scaler), (name, linear) = model.steps
    X = as_features(X)
    if steps:
        X = Pipeline(steps).fit_transform(X, codes)
    present = np.bincount(codes) > 0
    classes, numbers = np.flatnonzero(present), np.cumsum(present) - 1
    has_blocks = isinstance(X, np.ndarray) or (sparse.issparse(X) and X.format == "csr")
    if not has_blocks or X.dtype.kind not in "biuf" or classes.size < 2:
        options = {} if weights is None else {f"{name}__sample_weight": weights}
        with config_context(enable_metadata_routing=False):
            Pipeline([(scaled, scaler), (name, linear)]).fit(X, codes, **options)
        return model
    n, width = X.shape
    for first in range(0, n, _BLOCK):
        scaler.partial_fit(row_block(X, first, min(first + _BLOCK, n)))
    total, is_sparse = float(n if weights is None else weights.sum()), sparse.issparse(X)
    # Sparse rows are not centred; their intercept is that of centred ones, without which the solver ends too early.
    center = scaler.mean_ / scaler.scale_ if is_sparse else np.zeros(width)
    ridge = 1.0 / (linear.C * total)
    blocks = [(row_block(X, s, min(s + _BLOCK, n)), slice(s, s + _BLOCK)) for s in range(0, n, _BLOCK)]

    n_free = classes.size if classes.size > 2 else 1  # of two classes, the first has weights 0

    def objective(flat: Floats) -> tuple[float, Floats]:
        theta, gradient = np.zeros((2, classes.size, width + 1))
        theta[-n_free:] = flat.reshape(n_free, width + 1)
        coef, value = theta[:, :-1] / scaler.scale_ if is_sparse else theta[:, :-1], 0.0
        for part, rows in blocks:
            features = part if is_sparse else part - scaler.mean_
            if not is_sparse:
                features /= scaler.scale_
            own, table = numbers[codes[rows]], features @ coef.T + (theta[:, -1] - theta[:, :-1] @ center)
            at, mass = np.arange(own.size), np.ones(own.size) if weights is None else weights[rows]
            table -= table.max(axis=1, keepdims=True)
            of_own = table[at, own]
            np.exp(table, out=table)
            sums = table.sum(axis=1)
            value += float(mass @ (np.log(sums) - of_own))
            table /= sums[:, None]
            table[at, own] -= 1.0
            table *= mass[:, None]
            gradient[:, :-1] += table.T @ features
            gradient[:, -1] += table.sum(axis=0)
        if is_sparse:
            gradient[:, :-1] = gradient[:, :-1] / scaler.scale_ - np.outer(gradient[:, -1], center)
        gradient /= total
        gradient[:, :-1] += ridge * theta[:, :-1]
        return value / total + 0.5 * ridge * float((theta[:, :-1] ** 2).sum()), gradient[-n_free:].ravel()

    start = np.zeros((n_free, width + 1))
    if linear.warm_start and hasattr(linear, "coef_"):
        start = np.column_stack((linear.coef_, linear.intercept_ + linear.coef_ @ center))
    found = minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": linear.max_iter, "maxls": 50, "gtol": linear.tol, "ftol": 64.0 * np.finfo(float).eps},
    )  # fmt: skip
    theta = found.x.reshape(start.shape)
    linear.classes_, linear.n_features_in_, linear.n_iter_ = classes, width, np.array([found.nit], dtype=np.int32)
    linear.coef_, linear.intercept_ = theta[:, :-1].copy(), theta[:, -1] - theta[:, :-1] @ center
    return model


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Probabilities of classes that are right on average where predictions and uncalibrated probabilities are alike.

    Notes
    -----
    With the prediction t, standardised and clipped to three standard deviations, the calibrated probabilities of the
    classes c are proportional to :math:`\exp\big((u + v t) \log p_c + a_c + b_c t\big)`.

    Repaired scores are functions of the prediction and of the probabilities. They are alike between groups if these
    probabilities are right on average given both; that they are right on average by themselves is not enough.
    """

    factor: float
    offsets: Floats
    change: float
    slopes: Floats
    center: float
    scale: float

    def apply(self, probabilities: Floats, predicted: Floats) -> Floats:
        """Return calibrated probabilities."""
        logs = np.log(np.maximum(probabilities, _FLOOR))
        level = _standardized(predicted, self.center, self.scale)[:, None]
        return np.asarray(
            softmax((self.factor + self.change * level) * logs + self.offsets + self.slopes * level, axis=1)
        )


def linear_scale(predicted: Floats, *, are_probabilities: bool) -> Floats:
    """Return the log-odds of probabilities, and other predictions as they are.

    Log-odds of groups are often linear in log-odds of labels: both are, where features are normally distributed.
    """
    if not are_probabilities:
        return predicted
    return np.asarray(logit(np.clip(predicted, _EDGE, 1.0 - _EDGE)))


def calibrate(probabilities: Floats, classes: Ints, predicted: Floats, weights: Floats | None = None) -> Calibration:
    """Return the calibration with the least log-loss on rows that neither model was trained on.

    Afterwards the mean probability of each class is its share of the rows, and the mean of its product with the
    prediction is right, too.
    """
    n, n_classes = probabilities.shape
    masses = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    size = n if weights is None else float(weights.sum())
    logs = np.log(np.maximum(probabilities, _FLOOR))
    center = float(masses @ predicted)
    scale = float(np.sqrt(masses @ (predicted - center) ** 2))
    level = _standardized(predicted, center, scale)[:, None]
    is_class = np.zeros((n, n_classes))
    is_class[np.arange(n), classes] = 1.0

    def loss(unknowns: Floats) -> tuple[float, Floats]:
        (factor, change), (offsets, slopes) = unknowns[:2], unknowns[2:].reshape(2, n_classes)
        table = log_softmax((factor + change * level) * logs + offsets + slopes * level, axis=1)
        excess = masses[:, None] * (np.exp(table) - is_class)
        by_level = excess * level
        penalty = 0.5e-6 * offsets @ offsets + 0.5 / size * (change**2 + slopes @ slopes)
        value = -masses @ table[np.arange(n), classes] + penalty
        gradient = (
            (excess * logs).sum(),
            (by_level * logs).sum() + change / size,
            excess.sum(axis=0) + 1e-6 * offsets,
            by_level.sum(axis=0) + slopes / size,
        )
        return float(value), np.hstack(gradient)

    found = minimize(
        loss, np.append([1.0, 0.0], np.zeros(2 * n_classes)), jac=True, method="L-BFGS-B",
        bounds=[(0.0, 3.0), (-1.0, 1.0), *[(-MOST_LOGIT, MOST_LOGIT)] * (2 * n_classes)],
    )  # fmt: skip
    (factor, change), (offsets, slopes) = found.x[:2], found.x[2:].reshape(2, n_classes)
    return Calibration(float(factor), offsets, float(change), slopes, center, scale)


def _standardized(predicted: Floats, center: float, scale: float) -> Floats:
    """Return predictions in standard deviations from their mean, at most three; 0 where all are equal."""
    if scale <= 1e-12 * abs(center) or scale == 0.0:
        return np.zeros(predicted.size)
    return np.asarray(np.clip((predicted - center) / scale, -_MOST_DEVIATIONS, _MOST_DEVIATIONS))


def without_information(classes: Ints, n_classes: int, weights: Floats | None = None) -> Calibration:
    """Return the calibration whose probabilities are the shares of the classes, whatever the models say."""
    counts = np.bincount(classes, weights=weights, minlength=n_classes)
    offsets = np.log(np.maximum(counts / counts.sum(), _FLOOR))
    return Calibration(0.0, offsets, 0.0, np.zeros(n_classes), 0.0, 0.0)


@dataclass(frozen=True)
class GroupModelReport:
    """Report of a blind repair: how well features tell groups, and what is left, on rows that no model has seen."""

    n_rows: int
    n_groups: int
    information: float
    calibration_error: float
    disparity_before: float
    disparity: float
    noise_floor: float
    information_kept: float
    is_predictable: bool

    def __str__(self) -> str:
        return (
            f"The features explain {self.information:.0%} of the entropy of the {self.n_groups} groups; group "
            f"probabilities are off by {self.calibration_error:.3f} on average. Disparity on {self.n_rows} held-out "
            f"rows: {self.disparity_before:.4g} before, {self.disparity:.4g} after; {self.noise_floor:.4g} by chance."
        )


def describe_probabilities(
    probabilities: Floats,
    groups: Ints,
    *,
    labels: Ints | None = None,
    weights: Floats | None = None,
    n_parameters: int = 0,
) -> tuple[float, float, float]:
    """Return what probabilities of groups, given the features and the label if there is one, tell about the groups."""
    n, n_groups = probabilities.shape
    masses = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    given = np.zeros(n, dtype=np.int64) if labels is None else labels
    counts = np.zeros((int(given.max()) + 1, n_groups))
    np.add.at(counts, (given, groups), masses)
    known = np.log((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))[given, groups])
    gain = np.log(np.maximum(probabilities[np.arange(n), groups], 1e-12)) - known
    size = n if weights is None else float(weights.sum())  # of copies
    mean = float(masses @ gain) - 0.5 * n_parameters / size
    error = np.sqrt(float(masses @ (gain - masses @ gain) ** 2) / size)
    gaps = 0.0
    for group in range(n_groups):
        order = np.argsort(probabilities[:, group], kind="stable")
        excess = masses * (probabilities[:, group] - (groups == group))
        below, sums = (np.append(0.0, np.cumsum(each[order])) for each in (masses, excess))
        gaps += float(np.abs(np.diff(np.interp(np.linspace(0.0, 1.0, _N_BINS + 1), below, sums))).sum()) / n_groups
    return mean / max(-float(masses @ known), 1e-12), mean / max(float(error), 1e-12), gaps
