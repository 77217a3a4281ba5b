"""The fit of blind repair, in stages: groups, cross-fitted models, cells, potentials, report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, get_tags

from fairtransport._sklearn.estimator_calls import n_rows
from fairtransport._sklearn.folds import make_folds
from fairtransport._validation import check_choice, check_length, check_real
from fairtransport.criteria import CRITERIA, STRATUM_WEIGHTS, needs_labels, resolve_criterion
from fairtransport.groups import make_groups
from fairtransport.repair.blind._cross_fitting import (
    check_group_estimator,
    cross_fit,
    group_probabilities,
    predictions,
)
from fairtransport.repair.blind._dual_problem import Problem
from fairtransport.repair.blind.cells import make_cells
from fairtransport.repair.blind.group_model import (
    GroupModelReport,
    calibrate,
    default_group_estimator,
    describe_probabilities,
    linear_scale,
    without_information,
)
from fairtransport.repair.blind.potentials import LOSSES
from fairtransport.strata import count_ranges, make_strata

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.penalties import Comparisons
    from fairtransport.repair.blind.cells import Cells
    from fairtransport.repair.blind.group_model import Calibration
    from fairtransport.repair.blind.potentials import Potentials
    from fairtransport.strata import Strata

__all__ = [
    "BlindFit",
    "BlindRows",
    "CrossFit",
    "check_options",
    "cross_fit_models",
    "joint_probabilities",
    "label_ranges",
    "read_rows",
]

MAX_ROWS = 100_000  # rows that potentials are computed from
_MOST_BINS = 5  # ranges of a real-valued label
_LEAST_GAIN = 2.0  # of the group model's log-loss over a constant, in standard errors


@dataclass(frozen=True, eq=False)
class BlindRows:
    """Validated arguments of ``fit``.

    Attributes
    ----------
    X : table or matrix
    target : ndarray
        What the model is trained on.
    labels : ndarray of int or None
        Labels within which the criterion compares groups: the class, or the range of a real-valued label.
    groups : Groups
    known : ndarray of bool
        Rows whose group was not dropped.
    strata : Strata or None
    weights : ndarray or None
    """

    X: Any
    target: NDArray[Any]
    labels: NDArray[np.int64] | None
    groups: Groups
    known: NDArray[np.bool_]
    strata: Strata | None
    weights: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class BlindFit:
    """Everything that a prediction needs, and the report; groups and strata without rows."""

    estimator: Any
    group_estimator: Any
    calibration: Calibration
    cells: Cells
    potentials: Potentials
    report: GroupModelReport
    groups: Groups
    strata: Strata | None
    reached: bool


def check_options(model: Any) -> None:
    """Raise for parameters that are not valid, before anything is fitted."""
    check_choice(model.criterion, CRITERIA, name="criterion")
    if model.stratum_weight is not None:
        check_choice(model.stratum_weight, STRATUM_WEIGHTS, name="stratum_weight")
    check_choice(getattr(model, "loss", "squared"), LOSSES, name="loss")
    check_real(model.amount, name="amount", most=1.0)
    if model.max_disparity is not None:
        check_real(model.max_disparity, name="max_disparity")
        if model.slack != "auto":
            raise ValueError("max_disparity chooses the slack: leave slack at 'auto', or max_disparity at None.")
    if isinstance(model.slack, str):
        check_choice(model.slack, ("auto",), name="slack")
    else:
        check_real(model.slack, name="slack", most=1.0)
    if model.group_estimator is not None:
        check_group_estimator(model.group_estimator)


def read_rows(
    model: Any,
    X: Any,
    target: NDArray[Any],
    *,
    labels: NDArray[np.int64] | None = None,
    sensitive_features: Any,
    strata: Any,
    weights: NDArray[np.float64] | None,
) -> BlindRows:
    """Return the rows with their groups, of which at least two must be left."""
    size = n_rows(X)
    check_length(target, size=size, name="y")
    if sparse.issparse(X):
        X = X.tocsr()
    elif isinstance(X, np.ndarray) and not get_tags(model.estimator).input_tags.allow_nan:
        assert_all_finite(X, input_name="X")  # before folds, of which few finite rows may not allow any
    if sensitive_features is None:
        raise ValueError(
            f"{type(model).__name__} needs sensitive_features in fit: the group of each row. Predictions do without."
        )
    groups = make_groups(sensitive_features, grouping=model.grouping, missing=model.missing)
    check_length(range(groups.n_rows), size=size, name="sensitive_features")
    if groups.overlapping:
        raise ValueError(
            "Blind repair needs groups that do not overlap: with grouping='each' a row belongs to one group of each "
            f"of {len(groups.columns)} columns. Use grouping='crossed'."
        )
    groups = groups.settle(model.small_groups, model.min_group_size)
    groups.require(min_size=1, at_least=2)
    known = groups.codes < len(groups)
    if weights is not None:
        known &= weights > 0
        groups.select(np.flatnonzero(known)).require(min_size=1, at_least=2)
    cells = None if strata is None else make_strata(strata, n_groups=len(groups))
    if cells is not None:
        check_length(range(cells.n_rows), size=size, name="strata")
    return BlindRows(X, target, labels, groups, known, cells, weights)


def label_ranges(target: NDArray[np.float64], n_groups: int) -> NDArray[np.int64]:
    """Return the range of each real-valued label, for equalized odds: at most five, cut at quantiles."""
    n_ranges = max(min(count_ranges(target.size, n_groups), _MOST_BINS), 2)
    cuts = np.unique(np.quantile(target, np.linspace(0.0, 1.0, n_ranges + 1)[1:-1]))
    return np.searchsorted(cuts, target, side="right").astype(np.int64)


def joint_probabilities(
    probabilities: NDArray[np.float64], predicted: NDArray[np.float64] | None, n_labels: int
) -> NDArray[np.float64]:
    """Return P(label, group | x) as an array (rows, labels, groups).

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_groups * n_labels)
        Of groups, or of groups crossed with labels.
    predicted : ndarray of shape (n,) or None
        The model's probability of label 1, if labels are classes: then only the groups given the label are taken from
        ``probabilities``.
    n_labels : int
    """
    table = probabilities.reshape(len(probabilities), -1, n_labels).transpose(0, 2, 1)
    if n_labels == 1 or predicted is None:
        return table
    given = table / np.maximum(table.sum(axis=2, keepdims=True), 1e-12)
    return given * np.column_stack((1.0 - predicted, predicted))[:, :, None]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Both models, fitted on all rows, and the problem that their out-of-fold predictions pose.

    Attributes
    ----------
    estimator, group_estimator : estimator
    calibration : Calibration
    cells : Cells
    chance : ndarray of shape (n_cells,)
        The slack of each cell that chance leaves.
    label_weights : ndarray of shape (n_cells,)
        By what a slack that is given is divided.
    problem : Problem
    information, calibration_error : float
        What the group model tells, and how far its probabilities are off.
    is_predictable : bool
        Whether the features tell the groups better than by chance.
    groups, strata
        Without rows.
    seed : int
    """

    estimator: Any
    group_estimator: Any
    calibration: Calibration
    cells: Cells
    chance: NDArray[np.float64]
    label_weights: NDArray[np.float64]
    problem: Problem
    information: float
    calibration_error: float
    is_predictable: bool
    groups: Groups
    strata: Strata | None
    seed: int

    def fit(self, slack: Any, max_disparity: float | None, *, start: Potentials | None = None) -> BlindFit:
        """Solve the potentials for a slack, or for a limit on the disparity.

        Parameters
        ----------
        slack, max_disparity
            As for the estimators.
        start : Potentials, optional
            Those of another slack, from which the solver starts.
        """
        problem, rng = self.problem, np.random.default_rng(self.seed)
        each, potentials, reached = problem.choose(slack, max_disparity, self.chance, self.label_weights, start)
        held_out = problem.repair_held_out(potentials, each, rng)
        report = GroupModelReport(
            n_rows=problem.predicted.size, n_groups=len(self.groups), information=self.information,
            calibration_error=self.calibration_error, disparity_before=problem.disparity(problem.predicted),
            disparity=problem.disparity(held_out), noise_floor=problem.noise_floor(held_out, rng),
            is_predictable=self.is_predictable,
        )  # fmt: skip
        return BlindFit(
            self.estimator, self.group_estimator, self.calibration, self.cells, potentials, report, self.groups,
            self.strata, reached,
        )  # fmt: skip


def cross_fit_models(
    model: Any, rows: BlindRows, *, bounds: tuple[float, float] | None, predicts_label: bool
) -> CrossFit:
    """Fit both models, on all rows and without each fold.

    Parameters
    ----------
    model : BlindRepairClassifier or BlindRepairRegressor
        Its parameters are used.
    rows : BlindRows
    bounds : (low, high) or None
        Range of the predictions; None: that of most of them.
    predicts_label : bool
        Whether predictions are probabilities of the label that the criterion compares within.
    """
    rng = np.random.default_rng(model.random_state)
    n_labels = 1 if rows.labels is None else int(rows.labels.max()) + 1
    if predicts_label:
        positive = np.unique(rows.target, return_inverse=True)[1] == 1
    else:
        positive = rows.target > np.median(rows.target)
    remedy = " (small_groups='pool' or small_groups='drop')"
    folds = make_folds(model.cv, rows.X, positive, rows.groups, rng=rng, weights=rows.weights, remedy=remedy)
    classes = rows.groups.codes * n_labels + (0 if rows.labels is None else rows.labels)
    n_classes = len(rows.groups) * n_labels
    _check_cells(classes[rows.known], folds, n_labels)

    base, predicted = cross_fit(model.estimator, rows.X, rows.target, folds, predictions, weights=rows.weights)
    group_estimator = model.group_estimator
    if group_estimator is None:
        group_estimator = default_group_estimator(model.estimator, rows.target.size, model.random_state)
    group_model, shown = cross_fit(
        group_estimator, rows.X, classes, folds, lambda fitted, X: group_probabilities(fitted, X, n_classes),
        rows=rows.known, weights=rows.weights,
    )  # fmt: skip

    _check_seen(shown[rows.known], n_labels)

    used = np.flatnonzero(rows.known & np.isfinite(predicted))
    if used.size > MAX_ROWS:
        used = np.sort(rng.choice(used, MAX_ROWS, replace=False))
    weights = None if rows.weights is None else rows.weights[used]
    shown, predicted = shown[used], predicted[used]
    linear = linear_scale(predicted, are_probabilities=predicts_label)
    calibration = calibrate(shown, classes[used], linear, weights)
    calibrated = calibration.apply(shown, linear)
    labels = None if rows.labels is None else rows.labels[used]
    groups = rows.groups.codes[used].astype(np.int64)
    information, gain, error = _describe(calibrated, groups, labels, weights)
    if gain < _LEAST_GAIN:
        calibration = without_information(classes[used], n_classes, weights)
        calibrated = calibration.apply(shown, linear)
    joint = joint_probabilities(calibrated, predicted if predicts_label else None, n_labels)
    codes = None if rows.strata is None else rows.strata.codes[used]
    compared = {"equalized_odds": tuple(range(n_labels)), "equal_opportunity": (1,)}.get(model.criterion, (0,))
    cells, chance = make_cells(
        joint, groups=groups, labels=labels, compared=compared, codes=codes,
        n_strata=0 if rows.strata is None else len(rows.strata), weights=weights,
    )  # fmt: skip
    low, high = np.quantile(predicted, (0.005, 0.995)).tolist() if bounds is None else bounds
    problem = Problem(
        predicted, cells.contrasts(joint, codes), cells.centering, getattr(model, "loss", "squared"), low, high,
        weights, _comparisons(model, rows, used, labels), clip=bounds is not None,
    )  # fmt: skip
    nobody = np.arange(0)
    return CrossFit(
        base, group_model, calibration, cells, chance, _label_weights(model, cells, labels), problem, information,
        error, is_predictable=gain >= _LEAST_GAIN, groups=rows.groups.select(nobody),
        strata=None if rows.strata is None else rows.strata.select(nobody), seed=int(rng.integers(1 << 32)),
    )  # fmt: skip


def _describe(
    probabilities: NDArray[np.float64],
    groups: NDArray[np.int64],
    labels: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
) -> tuple[float, float, float]:
    """Return what calibrated probabilities tell about the groups, within labels if there are any."""
    n_parameters = probabilities.shape[1] + 1  # of the calibration: two factors and a slope for each class but one
    if labels is None:
        return describe_probabilities(probabilities, groups, weights=weights, n_parameters=n_parameters)
    table = joint_probabilities(probabilities, None, int(labels.max()) + 1)[np.arange(labels.size), labels]
    given = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
    return describe_probabilities(given, groups, labels=labels, weights=weights, n_parameters=n_parameters)


def _check_cells(classes: NDArray[np.int64], folds: list[Any], n_labels: int) -> None:
    """Raise where a group, or a group with a label, has too few rows to be in the training rows of every fold."""
    counts = np.unique(classes, return_counts=True)[1]
    few = int(np.count_nonzero(counts < 2))
    if few and len(folds) > 1:
        what = "groups with one label" if n_labels > 1 else "groups"
        raise ValueError(
            f"{few} of {counts.size} {what} have a single row: a model that is fitted without it does not know them. "
            "Merge small groups with others (small_groups='pool'), or drop them (small_groups='drop')."
        )


def _check_seen(probabilities: NDArray[np.float64], n_labels: int) -> None:
    """Raise for groups that a model of the groups has never seen: their probability is 0 for every row."""
    highest = np.nanmax(probabilities, axis=0).reshape(-1, n_labels).max(axis=1)
    unseen = int(np.count_nonzero(highest == 0.0))
    if unseen:
        raise ValueError(
            f"group_estimator has not seen {unseen} of {highest.size} groups. Fit it with rows of every group, or "
            "merge small groups with others (small_groups='pool')."
        )


def _comparisons(model: Any, rows: BlindRows, used: NDArray[np.int64], labels: NDArray[np.int64] | None) -> Comparisons:
    """Return the pairs of groups whose disparity is reported; ranges of a real-valued label are strata."""
    strata = None if rows.strata is None else rows.strata.select(used)
    criterion, ranges = model.criterion, labels is not None and int(labels.max()) > 1
    if ranges:
        columns = {"label": labels} if strata is None else {"label": labels, "stratum": strata.codes}
        criterion, strata = "demographic_parity", make_strata(columns)
    return resolve_criterion(
        criterion, rows.groups.select(used), labels=labels if needs_labels(criterion) else None, strata=strata,
        row_weights=None if rows.weights is None else rows.weights[used], stratum_weight=model.stratum_weight,
    ).comparisons()  # fmt: skip


def _label_weights(model: Any, cells: Cells, labels: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Return by what the slack of each cell is divided: the label's share, relative to an equal one, or 1."""
    if labels is None or model.stratum_weight != "share":
        return np.ones(len(cells))
    shares = np.bincount(labels, minlength=int(labels.max()) + 1) / labels.size
    return np.asarray(shares[cells.labels] * shares.size)
