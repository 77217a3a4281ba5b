"""The model of the groups given the features: cross-fitted, calibrated, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairtransport.repair.blind.dense_boosting import DenseBoostingClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Calibration",
    "GroupModelReport",
    "calibrate",
    "default_group_estimator",
    "describe_probabilities",
    "without_information",
]

_FLOOR = 1e-6  # least probability of a class before calibration
_N_BINS = 10
_MANY_ROWS = 10_000  # with fewer, trees of more than a few leaves tell less about the groups of new rows


def default_group_estimator(estimator: Any, n_rows: int, random_state: int | None) -> Any:
    """Return gradient boosting, after the same preprocessing as the model where that is a pipeline."""
    trees = DenseBoostingClassifier(
        max_iter=100, max_leaf_nodes=15 if n_rows >= _MANY_ROWS else 4, max_features=0.5, max_bins=64,
        l2_regularization=1.0, early_stopping=False, random_state=random_state,
    )  # fmt: skip
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        steps = [(name, clone(step)) for name, step in estimator.steps[:-1]]
        return Pipeline([*steps, (estimator.steps[-1][0], trees)])
    return trees


@dataclass(frozen=True, eq=False)
class Calibration:
    """Logarithms of probabilities times a factor, plus an offset for each class.

    Parameters
    ----------
    factor : float
        Below 1 where the model was too sure; 0 where it knows nothing.
    offsets : ndarray of shape (n_classes,)
    """

    factor: float
    offsets: NDArray[np.float64]

    def apply(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated probabilities."""
        logs = np.log(np.maximum(probabilities, _FLOOR))
        return np.asarray(softmax(self.factor * logs + self.offsets, axis=1))


def calibrate(
    probabilities: NDArray[np.float64], classes: NDArray[np.int64], weights: NDArray[np.float64] | None = None
) -> Calibration:
    """Return the calibration with the least log-loss on rows that the model was not trained on.

    Afterwards the mean probability of each class is its share of the rows.

    Examples
    --------
    >>> sure = np.array([[0.99, 0.01], [0.99, 0.01], [0.01, 0.99], [0.01, 0.99]] * 25)
    >>> half_right = calibrate(sure, np.array([0, 1, 1, 1] * 25))
    >>> half_right.apply(sure[[0, 2]]).round(2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    n, n_classes = probabilities.shape
    masses = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    logs = np.log(np.maximum(probabilities, _FLOOR))
    shares = np.bincount(classes, weights=masses, minlength=n_classes)
    hits = masses @ logs[np.arange(n), classes]

    def loss(unknowns: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        factor, offsets = unknowns[0], unknowns[1:]
        table = log_softmax(factor * logs + offsets, axis=1)
        excess = masses[:, None] * np.exp(table)
        value = -masses @ table[np.arange(n), classes] + 0.5e-6 * offsets @ offsets
        slope = (excess * logs).sum() - hits
        return float(value), np.append(slope, excess.sum(axis=0) - shares + 1e-6 * offsets)

    found = minimize(
        loss, np.append(1.0, np.zeros(n_classes)), jac=True, method="L-BFGS-B",
        bounds=[(0.0, 3.0), *[(-20.0, 20.0)] * n_classes],
    )  # fmt: skip
    return Calibration(float(found.x[0]), np.asarray(found.x[1:]))


def without_information(
    classes: NDArray[np.int64], n_classes: int, weights: NDArray[np.float64] | None = None
) -> Calibration:
    """Return the calibration whose probabilities are the shares of the classes, whatever the model says."""
    counts = np.bincount(classes, weights=weights, minlength=n_classes)
    return Calibration(0.0, np.log(np.maximum(counts / counts.sum(), _FLOOR)))


@dataclass(frozen=True)
class GroupModelReport:
    """How well the features tell groups, and what blind repair leaves, on rows that no model was trained on.

    Attributes
    ----------
    n_rows, n_groups : int
    information : float
        Share of the groups' entropy, given the label where the criterion compares within labels, that the features
        explain: 0 where they tell nothing, 1 where they tell all.
    calibration_error : float
        Mean difference between the probability of a group and its share, over tenths of the rows in the order of that
        probability and over groups.
    disparity_before, disparity : float
        Disparity of the criterion before and after full repair, between the true groups. Rows are repaired with
        potentials from other rows.
    noise_floor : float
        Disparity after repair that chance alone shows.
    is_predictable : bool
        Whether the features tell the groups better than by chance. If not, nothing is repaired.
    """

    n_rows: int
    n_groups: int
    information: float
    calibration_error: float
    disparity_before: float
    disparity: float
    noise_floor: float
    is_predictable: bool

    def __str__(self) -> str:
        return (
            f"Features tell {self.information:.0%} of the entropy of {self.n_groups} groups; their probabilities are "
            f"off by {self.calibration_error:.3f} on average. Disparity on {self.n_rows} held-out rows: "
            f"{self.disparity_before:.4g} before, {self.disparity:.4g} after repair; {self.noise_floor:.4g} by chance."
        )


def describe_probabilities(
    probabilities: NDArray[np.float64],
    groups: NDArray[np.int64],
    *,
    labels: NDArray[np.int64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> tuple[float, float, float]:
    """Return what probabilities of groups, given the features and the label if there is one, tell about the groups.

    Returns
    -------
    information : float
        Share of the groups' entropy that they explain.
    z : float
        Their gain in log-loss over the shares of the groups, in standard errors.
    calibration_error : float
        Mean difference between the probability of a group and its share, over tenths of the rows and over groups.
    """
    n, n_groups = probabilities.shape
    masses = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    given = np.zeros(n, dtype=np.int64) if labels is None else labels
    counts = np.zeros((int(given.max()) + 1, n_groups))
    np.add.at(counts, (given, groups), masses)
    known = np.log((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))[given, groups])
    gain = np.log(np.maximum(probabilities[np.arange(n), groups], 1e-12)) - known
    mean = float(masses @ gain)
    error = np.sqrt(float(masses**2 @ (gain - mean) ** 2))
    gaps = 0.0
    for group in range(n_groups):
        order = np.argsort(probabilities[:, group], kind="stable")
        excess = masses * (probabilities[:, group] - (groups == group))
        gaps += sum(abs(float(excess[part].sum())) for part in np.array_split(order, _N_BINS)) / n_groups
    return mean / max(-float(masses @ known), 1e-12), mean / max(float(error), 1e-12), gaps
