"""A classifier with quantile repair of its probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.metrics import accuracy_score

from fairtransport._sklearn import check_classes, last_step, model_scores, n_rows, two_classes
from fairtransport._validation import check_length, check_real, check_weights
from fairtransport.criteria import criterion_name, needs_labels
from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.repair._repaired_model import RepairedModel, fit_and_score, is_fitted
from fairtransport.repair.group_checks import TrainingLabels, groups_to_repair, strata_to_repair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.criteria import Criterion
    from fairtransport.repair.quantile import QuantileRepair


class QuantileRepairClassifier(ClassifierMixin, RepairedModel):
    r"""Binary classifier whose probabilities are repaired by one quantile map for each group.

    This is demographic parity by postprocessing (DPP); see :class:`QuantileRepair`.

    Parameters
    ----------
    estimator : classifier
        A classifier with ``predict_proba``, or a pipeline that ends in one. A fitted one is used as it is; of an
        unfitted one, a clone is fitted.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Whose scores should have the same distribution in all groups; see :class:`QuantileRepair`. The labels of ``fit``
        serve the classifier and the repair.
    randomize : bool, default=False
        For ``criterion="equalized_odds"``: reach it exactly, at every threshold, by drawing scores at random; see
        :class:`QuantileRepair`.
    random_state : int, default=0
        Seed of the draws of ``randomize=True``. The same rows get the same scores in every call.
    target : {"barycenter_w2", "barycenter", "pooled"}, group label or array, default="barycenter_w2"
        The distribution that every group is mapped to; see :class:`QuantileRepair`. The default usually costs the
        least accuracy.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``.
    cv : int, splitter, iterable of splits or None, default=None
        Which scores the maps are computed from. None: those of the fitted classifier on the training rows. This suits
        models that hardly overfit, such as logistic regression, and a fitted estimator with rows that it was not
        trained on. Otherwise: out-of-fold scores, each by a model fitted without that row, while predictions still come
        from the classifier fitted on all rows. Models that overfit (forests, deep trees, boosting, nearest neighbours)
        need this: their training scores lie near 0 and 1, where the scores of new rows do not.
    grouping : {"crossed", "each"}, default="crossed"
        Several sensitive columns are crossed; groups that overlap cannot be repaired.
    missing : {"error", "group"}, default="error"
        Whether a missing sensitive value raises or forms a group.
    small_groups : {"keep", "pool", "drop"}, default="keep"
        Which map groups of fewer than ``min_group_size`` rows use; no map is computed from so few rows alone. See
        :class:`QuantileRepair`.
    min_group_size : int, default=30
        A group with fewer rows (of positive weight) is small. 1 gives every group a map of its own.
    stream_half_life : float, default=10000
        For ``partial_fit``: a row counts half after this many further rows.
    new_groups : {"error", "adopt"}, default="error"
        For ``partial_fit``: whether a group that was not seen before raises or is added.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier: ``estimator`` itself if it was fitted, otherwise a clone.
    repair_ : QuantileRepair
        The fitted repair of its scores.
    small_groups_ : tuple
        Labels of the groups without a map of their own.
    classes_ : ndarray of shape (2,)
        The class labels; scores are probabilities of the second.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, if it has them.

    See Also
    --------
    QuantileRepair : Repairs scores of any origin.
    QuantileRepairRegressor : Repairs the predictions of a regressor.

    Notes
    -----
    With the classifier's probability s of class 1 for a row of group a, the repaired probability is

    .. math:: (1 - \mathrm{amount}) \, s + \mathrm{amount} \, F_{\bar S}^{-1}(F_a(s))

    with the distribution function of the group and the quantile function of the target; see :class:`QuantileRepair`.
    The features are passed to the classifier unchanged, so they may be whatever it accepts: DataFrames, text, missing
    values. The group is needed at prediction and need not be a feature.

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".
    Jiang, Pacchiano, Stepleton, Jiang and Chiappa (2020), "Wasserstein Fair Classification", UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairtransport import QuantileRepairClassifier
    >>> from fairtransport.metrics import strong_pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    >>> scores = model.predict_proba(X, sensitive_features=group)[:, 1]
    >>> strong_pairwise_disparity(scores, sensitive_features=group) < 0.001
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        criterion: str | Criterion = "demographic_parity",
        randomize: bool = False,
        random_state: int = 0,
        target: Any = "barycenter_w2",
        amount: float = 1.0,
        cv: Any = None,
        grouping: str = "crossed",
        missing: str = "error",
        small_groups: str = "keep",
        min_group_size: int = MIN_GROUP_SIZE,
        stream_half_life: float = 10_000.0,
        new_groups: str = "error",
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.randomize = randomize
        self.random_state = random_state
        self.target = target
        self.amount = amount
        self.cv = cv
        self.grouping = grouping
        self.missing = missing
        self.small_groups = small_groups
        self.min_group_size = min_group_size
        self.stream_half_life = stream_half_life
        self.new_groups = new_groups

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier, unless it is fitted already, and the repair of its scores.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the classifier accepts.
        y : array-like of shape (n,)
            Two classes; the larger label is class 1.
        sensitive_features : column, table or Groups
            At least two groups; several columns are crossed. They need not be among the features.
        strata : column or table, optional
            Groups are compared within these strata only (conditional parity); see `QuantileRepair.fit`. Predictions
            need them, too.
        sample_weight : array-like of shape (n,), optional
            Weights for the classifier (for a pipeline: for its last step) and for the repair, where weight k
            equals k copies of a row.

        Returns
        -------
        self
        """
        check_real(self.amount, name="amount", most=1.0)
        self._new_repair().check_parameters()
        labels, classes = two_classes(y, type(self).__name__)
        size = n_rows(X)
        check_length(labels, size=size, name="y")
        weights = check_weights(sample_weight, size=size)
        # Invalid groups raise before the classifier is fitted, which may take long.
        groups = groups_to_repair(
            sensitive_features, n_rows=size, weights=weights, grouping=self.grouping, missing=self.missing
        )
        positive = (labels == classes[1]).astype(np.int64)
        cells = strata_to_repair(
            strata,
            groups,
            criterion=criterion_name(self.criterion),
            labels=TrainingLabels(positive),
            weights=weights,
            randomize=self.randomize,
        )
        self._check_estimator()
        if is_fitted(self.estimator) and not np.array_equal(getattr(self.estimator, "classes_", classes), classes):
            raise ValueError("estimator was fitted on other class labels than those of y.")
        model, scores = fit_and_score(self.estimator, X, labels, cv=self.cv, weights=weights, classifies=True)
        self.repair_ = self._new_repair().fit(
            scores, positive, sensitive_features=groups, strata=cells, sample_weight=weights
        )
        self.estimator_ = model
        self.classes_ = classes
        return self

    def _new_repair(self) -> QuantileRepair:
        return self._make_repair(randomize=self.randomize, random_state=self.random_state)

    def _check_estimator(self) -> None:
        if hasattr(self.estimator, "fit") and not isinstance(self.estimator, type) and is_regressor(self.estimator):
            raise TypeError(
                f"{type(last_step(self.estimator)[1]).__name__} is a regressor; repair its predictions with "
                "QuantileRepairRegressor."
            )
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba; {type(self.estimator).__name__} has none. Wrap it in "
                "sklearn.calibration.CalibratedClassifierCV, which adds it."
            )

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the repair with one batch of a stream; the classifier stays the same.

        Demographic parity needs no labels.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the classifier accepts; one or more rows.
        y : array-like of shape (n,), optional
            Needed in the first call, where nothing was fitted before, and by criteria that compare people with the same
            label; see `QuantileRepair.partial_fit`.
        classes : array-like of shape (2,), optional
            The two classes, as in scikit-learn's ``partial_fit``. They are known from the first call's ``y`` and
            only compared.
        sensitive_features : column, table or Groups
            The columns of ``fit``; see `QuantileRepair.partial_fit`.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
            Without a ``fit`` before, the first call fits the classifier, which needs ``y``, or, where the classifier is
            fitted already, starts with its scores of the batch.
        """
        if not hasattr(self, "repair_"):
            self._check_estimator()
            if not is_fitted(self.estimator):
                if y is None:
                    raise ValueError(
                        f"{type(self).__name__} has no model yet: pass y, with both classes, in the first call of "
                        "partial_fit, call fit before it, or give a fitted classifier as estimator."
                    )
                check_classes(classes, two_classes(y, type(self).__name__)[1])
                return self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
            check_classes(classes, np.asarray(self.estimator.classes_))
            scores, repair = model_scores(self.estimator, X), self._new_repair()
            labels = self._batch_labels(y, self.estimator.classes_)
            repair.partial_fit(scores, labels, sensitive_features=sensitive_features, sample_weight=sample_weight)
            self.repair_, self.estimator_ = repair, self.estimator
            self.classes_ = np.asarray(self.estimator.classes_)
            return self
        check_classes(classes, self.classes_)
        self._learn(X, self._batch_labels(y, self.classes_), sensitive_features, sample_weight)
        return self

    def _batch_labels(self, y: Any, classes: ArrayLike) -> NDArray[np.int64] | None:
        """Return the labels of a batch as 0 and 1; it need not have both."""
        if y is None or not needs_labels(self.criterion):
            return None
        labels, known = np.asarray(y), np.asarray(classes)
        if not np.isin(labels, known).all():
            raise ValueError("y has labels that the classifier was not fitted with.")
        return (labels == known[1]).astype(np.int64)

    def predict_proba(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        unknown_group: str = "error",
        keys: Any = None,
        expected: bool = False,
    ) -> NDArray[np.float64]:
        """Return the repaired probabilities of the two classes.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the classifier accepts.
        sensitive_features : column, table or Groups
            The group of each row, which is required.
        strata : column or table, optional
            The stratum of each row; required if strata were given to ``fit``.
        unknown_group : {"error", "pooled", "common"}, default="error"
            What to do with rows of a group that was not seen in ``fit``, and with rows without a group: raise
            ValueError, predict as for everyone pooled, or as for the largest group.
        keys, expected
            For ``randomize=True``; see `QuantileRepair.transform`.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        options = {"unknown_group": unknown_group, "keys": keys, "expected": expected}
        positive = self._repaired(X, sensitive_features, strata, **options)
        return np.column_stack((1.0 - positive, positive))

    def predict(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        unknown_group: str = "error",
        keys: Any = None,
    ) -> NDArray[Any]:
        """Return class 1 where its repaired probability is above one half; see ``predict_proba``."""
        options = {"sensitive_features": sensitive_features, "strata": strata, "keys": keys}
        above = self.predict_proba(X, unknown_group=unknown_group, **options)[:, 1] > 0.5
        return np.asarray(self.classes_[above.astype(int)])

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features, strata=strata)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
