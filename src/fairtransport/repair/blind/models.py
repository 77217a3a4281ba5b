"""A classifier or a regressor that is repaired without the group at prediction."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Floats, Ints
from fairtransport._sklearn import BinaryClassifierMixin, few_threads
from fairtransport._validation import check_real, check_weights
from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.groups import Groups, check_policy
from fairtransport.repair._repaired_model import RepairedModel
from fairtransport.repair.blind._fitting import (
    HeldOutRows,
    check_options,
    cross_fit_models,
    pose,
    read_rows,
    repaired_predictions,
    warn_of_small_groups,
)
from fairtransport.repair.blind.settings import BlindRepair
from fairtransport.strata import Strata
from fairtransport.training.outcome import Notice

if TYPE_CHECKING:
    from fairtransport.repair.blind._fitting import CrossFit, Solution


class _BlindRepairModel(RepairedModel):
    """A fitted model, a model of the groups, and the map of both."""

    _settings_class = BlindRepair

    def __init__(
        self,
        estimator: Any,
        group_estimator: Any = None,
        repair: BlindRepair | None = None,
        *,
        slack: Any = "auto",
        cv: Any = 5,
        amount: float = 1.0,
    ) -> None:
        self.estimator = estimator
        self.group_estimator = group_estimator
        self.repair = repair
        self.slack = slack
        self.cv = cv
        self.amount = amount

    def _fit(self, X: Any, y: ArrayLike, sensitive_features: Any, strata: Any, sample_weight: ArrayLike | None) -> Self:
        limit = self._settings().max_disparity
        with few_threads(X):
            models = self._cross_fit(X, y, sensitive_features, strata, sample_weight)
            solution = models.solve(self.slack, limit)
        self._store(models, solution, solution.outcome(limit)).warn()
        return self

    def fit_path(
        self,
        X: Any,
        y: ArrayLike,
        slacks: Sequence[float],
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Fit both models once, and the map for each of several slacks.

        Parameters
        ----------
        X, y, sensitive_features, strata, sample_weight
            As for ``fit``.
        slacks : sequence of float
            Descending, from little parity to much.

        Returns
        -------
        list of estimators
            Fitted copies, one for each slack, which share both models. They have no ``max_disparity``.
        """
        values = [check_real(slack, name="slacks", most=1.0) for slack in slacks]
        if not values or values != sorted(values, reverse=True):
            raise ValueError("slacks must descend, from little parity to much: each solution starts from the last one.")
        template = copy(self)
        with few_threads(X):
            models = template._cross_fit(X, y, sensitive_features, strata, sample_weight)  # noqa: SLF001 - of this class
        if self._settings().max_disparity is not None:
            template.repair = clone(self.repair).set_params(max_disparity=None)
        fitted, start = [], None
        for slack in values:
            solution = models.solve(slack, None, start=start)
            start = solution.potentials
            fitted.append(copy(template).set_params(slack=slack))
            notice = fitted[-1]._store(models, solution, solution.outcome(None))  # noqa: SLF001 - of this class
        notice.warn()
        return fitted

    def _cross_fit(
        self, X: Any, y: ArrayLike, sensitive_features: Any, strata: Any, sample_weight: ArrayLike | None
    ) -> CrossFit:
        """Return the two models with their out-of-fold predictions."""
        settings, classifies = self._settings(), self._classifies
        check_options(self, settings, classifies=classifies)
        target, classes = self._targets(X, y)
        rows = read_rows(
            X, target, model=self, criterion=settings.criterion, classifies=classifies, strata=strata,
            sensitive_features=sensitive_features, weights=check_weights(sample_weight, size=target.size),
        )  # fmt: skip
        models = cross_fit_models(self, settings, rows, classifies=classifies)
        if classes is not None:
            self.classes_ = classes
        return models

    def fit_predictions(
        self,
        estimator: Any,
        group_estimator: Any,
        *,
        predicted: Floats,
        probabilities: Floats,
        y: Floats,
        groups: Groups,
        strata: Strata | None = None,
        counts: Floats | None = None,
        half: Ints | None = None,
    ) -> Self:
        """Fit the map to predictions of two fitted models for rows that they have not seen.

        Parameters
        ----------
        estimator, group_estimator : estimator
            The fitted models.
        predicted, y : ndarray of shape (n_rows,)
            Predictions, probabilities of label 1 for a classifier; the labels as 0 and 1, or numbers.
        probabilities : ndarray of shape (n_rows, n_groups) or (n_rows, 2 * n_groups)
            Of the groups; where people with the same label are compared, of group * 2 + label.
        groups, strata : Groups, Strata, optional
            The group of each row, and its stratum.
        counts, half : ndarray of shape (n_rows,), optional
            Where rows stand for several: how many, and in which half, 0 or 1, what the other half does is tested.
        """
        settings, classifies = self._settings(), self._classifies
        check_options(self, settings, classifies=classifies)
        sizes = np.bincount(groups.codes, counts, len(groups))[: len(groups)]
        warn_of_small_groups(sizes, check_policy(self.groups))
        n_labels = probabilities.shape[1] // len(groups)
        labels = y.astype(np.int64) if n_labels > 1 else None
        rows = HeldOutRows(predicted, y, labels, n_labels, groups, strata, counts, half)
        known = rows.calibrate(probabilities, classifies=classifies)
        if known.has_wrong_form:
            warn_caller(
                f"Probabilities of the groups are off by {known.error:.2f} on average: a linear model of the groups "
                "has the wrong form here. In memory, blind repair uses gradient boosting then.",
                FairnessWarning,
            )
        seed = int(np.random.default_rng(settings.random_state).integers(1 << 32))
        models = pose(estimator, group_estimator, rows, known, settings, classifies=classifies, seed=seed)
        solution = models.solve(self.slack, settings.max_disparity)
        if classifies:
            self.classes_ = np.asarray(estimator.classes_)
        self._store(models, solution, solution.outcome(settings.max_disparity)).warn()
        return self

    @property
    def information_kept_(self) -> float:
        """Share of what the model explains of ``y`` that full repair keeps, on held-out rows."""
        check_is_fitted(self)
        return self.report_.information_kept

    def _store(self, models: CrossFit, solution: Solution, outcome: Notice) -> Notice:
        """Set the fitted attributes; none of them contains a row."""
        self.estimator_ = models.estimator
        self.group_estimator_ = models.group_estimator
        self.group_calibration_ = models.calibration
        self.cells_ = models.cells
        self.groups_ = models.groups
        self.strata_ = models.strata
        self.potentials_ = solution.potentials
        self.report_ = solution.report
        outcome = outcome.at_full_amount(self.amount)
        self.outcome_ = outcome.text
        return outcome

    def score(self, X: Any, y: ArrayLike, *, strata: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``, or its coefficient of determination."""
        return self._quality(y, self.predict(X, strata=strata), sample_weight)

    def _describe(self) -> list[str]:
        report = self.report_
        before, after = f"{report.disparity_before:.3g} before", f"{report.disparity:.3g} after full repair"
        return [
            "groups are not needed at prediction",
            f"the features tell {report.information:.0%} of the groups' entropy",
            f"disparity on held-out rows {before}, {after}",
        ]


class BlindRepairClassifier(BinaryClassifierMixin, _BlindRepairModel):
    r"""Binary classifier whose probabilities are repaired without the group at prediction.

    A second model estimates the probability of each group from the features, and one function of both models'
    predictions makes the distributions of the groups alike. The groups of people are needed in ``fit`` only.

    Parameters
    ----------
    estimator : classifier
        A classifier with ``predict_proba``, or a pipeline that ends in one. Clones are fitted; wrap a fitted one in
        :class:`sklearn.frozen.FrozenEstimator` to keep it, and fit the repair on rows that it has not seen.
    group_estimator : classifier, optional
        A classifier with ``predict_proba`` for the groups. Its probabilities are calibrated on out-of-fold rows. By
        default logistic regression of scaled columns where ``estimator`` is linear (has ``coef_``); else, or where that
        is wrong for held-out rows, gradient boosting of scikit-learn. Either follows the preprocessing of a pipeline.
    repair : BlindRepair, optional
        Criterion, loss, limit on the disparity, groups and seed; the default ones when omitted.
    slack : "auto" or float, default="auto"
        Difference that the repair leaves between the share of each group above any score and a common one, so that
        two groups differ by twice as much at most. ``"auto"`` is half of what chance shows for a group of that many
        rows, or more, up to where half of what the model explains is kept. A number below what chance shows is widened
        to it where held-out rows then have less error and less disparity; otherwise 0 is full parity on the training
        rows.
    cv : int, splitter or iterable of splits, default=5
        Folds by which both models are cross-fitted: the map is learned from predictions of rows that the models were
        not trained on. Predictions come from models fitted on all rows, from which the folds of a logistic regression
        with 50 rows for each weight start.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1. It may be set after ``fit``.

    Attributes
    ----------
    estimator_ : classifier
        The model fitted on all rows.
    group_estimator_ : classifier
        The model of the groups fitted on all rows; where groups are compared within labels, of groups crossed with
        labels, coded as group * n_labels + label.
    group_calibration_ : Calibration
        Applied to its probabilities.
    cells_ : Cells
        Groups that are compared, and their shares.
    potentials_ : Potentials
        The map.
    report_ : GroupModelReport
        What the features tell about the groups, whether their probabilities are calibrated, and what disparity the
        repair leaves on out-of-fold rows; ``print`` it.
    outcome_ : str
        What full repair makes of the scores on these rows, in words.
    groups_, strata_ : Groups, Strata or None
        Without rows.
    classes_ : ndarray of shape (2,)
        The class labels; scores are probabilities of the second.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, if it has them.

    See Also
    --------
    QuantileRepairClassifier : Repairs with the group at prediction, which costs less accuracy.

    Notes
    -----
    With the prediction :math:`\eta(x)` of the model and the probabilities of the groups, the repaired prediction is

    .. math:: f(x) = \mathrm{argmin}_s \ell(\eta(x), s) + \sum_a \Big(\frac{P(a \mid x)}{P(a)} - 1\Big) \phi_a(s),

    which has the least expected loss among all functions of x whose distribution is the same in all groups; the dual
    potentials :math:`\phi_a` are piecewise linear functions and maximise a concave function. For two groups and
    squared loss this is the optimal map of [1]_; with :math:`P(a, y \mid x)` for equalized odds and decisions instead
    of scores, it is the rule of [2]_. A partial repair is
    :math:`(1 - \mathrm{amount})\, \eta(x) + \mathrm{amount}\, f(x)`.

    References
    ----------
    .. [1] Divol and Gaucher (2024), "Demographic parity in regression and classification within the unawareness
           framework", arXiv:2409.02471.
    .. [2] Xian and Zhao (2024), "A unified post-processing framework for group fairness in classification",
           arXiv:2405.04025.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairtransport import BlindRepairClassifier
    >>> from fairtransport.metrics import pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.5]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = BlindRepairClassifier(LogisticRegression(), LogisticRegression())
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> before, after = model.estimator_.predict_proba(X)[:, 1], model.predict_proba(X)[:, 1]
    >>> [round(pairwise_disparity(scores, sensitive_features=group), 1) for scores in (before, after)]
    [0.2, 0.0]
    """

    score = _BlindRepairModel.score

    def predict_proba(self, X: Any, *, strata: Any = None) -> Floats:
        """Return the repaired probabilities of both classes; ``strata`` are required if they were given to ``fit``."""
        check_is_fitted(self)
        positive = np.clip(repaired_predictions(self, X, strata, predicts_label=True), 0.0, 1.0)
        return np.column_stack((1.0 - positive, positive))

    def predict(self, X: Any, *, strata: Any = None) -> NDArray[Any]:
        """Return class 1 where its repaired probability is above one half; see ``predict_proba``."""
        return self._classify(self.predict_proba(X, strata=strata))


class BlindRepairRegressor(RegressorMixin, _BlindRepairModel):
    """Regressor whose predictions are repaired without the group at prediction.

    Parameters
    ----------
    estimator : regressor
        A regressor, or a pipeline that ends in one. Clones are fitted, unless it is frozen.
    group_estimator, repair, slack, cv, amount
        As in `BlindRepairClassifier`; the loss is the squared one.

    Attributes
    ----------
    estimator_ : regressor
        The model fitted on all rows.
    group_estimator_, group_calibration_, cells_, potentials_, report_, outcome_, groups_, strata_
        As of `BlindRepairClassifier`.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, if it has them.

    See Also
    --------
    BlindRepairClassifier : The same for probabilities, with the formula of the map.
    QuantileRepairRegressor : Repairs with the group at prediction, which costs less accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from fairtransport import BlindRepairRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.5]
    >>> y = X @ [1.0, 1.0, 0.5] + rng.normal(size=2000)
    >>> model = BlindRepairRegressor(LinearRegression(), LogisticRegression())
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> before, after = model.estimator_.predict(X), model.predict(X)
    >>> [round(float(p[group == 1].mean() - p[group == 0].mean()), 1) for p in (before, after)]
    [1.3, 0.2]
    """

    score = _BlindRepairModel.score

    def predict(self, X: Any, *, strata: Any = None) -> Floats:
        """Return the repaired predictions; ``strata`` are required if they were given to ``fit``."""
        check_is_fitted(self)
        return repaired_predictions(self, X, strata, predicts_label=False)
