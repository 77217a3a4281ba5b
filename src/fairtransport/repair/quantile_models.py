"""A classifier or a regressor with quantile repair of its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import RegressorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import KFold, check_cv, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from fairtransport._labels import check_classes, two_classes
from fairtransport._sklearn import (
    BinaryClassifierMixin,
    last_step,
    model_scores,
    n_rows,
    positive_scores,
)
from fairtransport._validation import check_length, check_real, check_weights
from fairtransport.criteria.criterion import criterion_name, needs_labels
from fairtransport.repair._repaired_model import RepairedModel, is_fitted, weight_options
from fairtransport.repair.group_maps import LEARNED, UNIT
from fairtransport.repair.quantile import QuantileRepair, describe_repair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class _QuantileRepairModel(RepairedModel):
    """A fitted model, ``estimator_``, and the repair of its scores, ``repair_``."""

    repair_: QuantileRepair
    _settings_class = QuantileRepair

    def __init__(
        self, estimator: Any, repair: QuantileRepair | None = None, *, cv: Any = None, amount: float = 1.0
    ) -> None:
        self.estimator = estimator
        self.repair = repair
        self.cv = cv
        self.amount = amount

    @property
    def amount(self) -> float:
        """How much to repair; setting it also changes a fitted repair."""
        return self.__dict__["amount"]

    @amount.setter
    def amount(self, amount: float) -> None:
        repair = vars(self).get("repair_")
        if repair is not None:
            repair.amount = check_real(amount, name="amount", most=1.0)
        self.__dict__["amount"] = amount

    @property
    def target(self) -> Any:
        """The target of the repair."""
        return self._settings().target

    @property
    def small_groups_(self) -> tuple[Any, ...]:
        """Labels of the groups without a map of their own."""
        check_is_fitted(self)
        return self.repair_.small_groups_

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model, unless it is fitted already, and the repair of its scores.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the model accepts.
        y : array-like of shape (n,)
            Two classes, of which the larger label is class 1; or finite numbers, for a regressor.
        sensitive_features : column, table or Groups
            At least two groups; several columns are crossed. They need not be among the features.
        strata : column or table, optional
            Groups are compared within these strata only (conditional parity). Predictions need them, too.
        sample_weight : array-like of shape (n,), optional
            Weights for the model (for a pipeline: for its last step) and for the repair.

        Returns
        -------
        self
        """
        repair, size = self._new_repair(), n_rows(X)
        repair.check_parameters()
        target, classes = self._targets(X, y)
        labels = target if classes is None else (target == classes[1]).astype(np.int64)
        check_length(target, size=size, name="y")
        weights = check_weights(sample_weight, size=size)
        # Invalid groups raise before the model is fitted, which may take long.
        groups, _, cells = repair.read_rows(labels, sensitive_features, strata, weights, n_rows=size)
        self._check_estimator(classes)
        model, scores = _fit_and_score(
            self.estimator, X, target, cv=self.cv, weights=weights, classifies=self._classifies
        )
        self.repair_ = repair.fit(scores, labels, sensitive_features=groups, strata=cells, sample_weight=weights)
        self.estimator_ = model
        if classes is not None:
            self.classes_ = classes
        return self

    def _new_repair(self) -> QuantileRepair:
        """Return an unfitted repair with the parameters of ``repair``, and the amount of this model."""
        return clone(self._settings()).set_params(amount=self.amount, range=UNIT if self._classifies else LEARNED)

    def _check_estimator(self, classes: NDArray[Any] | None = None) -> None:
        """Raise unless the estimator predicts what is asked for, and the classes where it is fitted."""
        estimator, name = self.estimator, type(last_step(self.estimator)[1]).__name__
        of_other_kind = is_regressor if self._classifies else is_classifier
        if hasattr(estimator, "fit") and not isinstance(estimator, type) and of_other_kind(estimator):
            raise TypeError(
                f"{name} is a regressor; repair its predictions with QuantileRepairRegressor."
                if self._classifies
                else f"{name} is a classifier; repair its probabilities with QuantileRepairClassifier."
            )
        if not self._classifies and not hasattr(estimator, "predict"):
            raise TypeError(f"estimator must be a regressor, with predict; {name} has none.")
        if self._classifies and not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba; {type(estimator).__name__} has none. Wrap it in "
                "sklearn.calibration.CalibratedClassifierCV, which adds it."
            )
        same = classes is None or np.array_equal(getattr(estimator, "classes_", classes), classes)
        if not same and is_fitted(estimator):
            raise ValueError("estimator was fitted on other class labels than those of y.")

    def _update(self, X: Any, y: Any, sensitive_features: Any, sample_weight: ArrayLike | None, labels: Any) -> Self:
        """Update the repair with one batch, or begin with it."""
        options = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        changed = self._new_repair()
        if hasattr(self, "repair_"):
            repair, model = self.repair_.set_params(online=changed.online, groups=changed.groups), self.estimator_
        elif is_fitted(self.estimator):
            repair, model = changed, self.estimator
        elif y is None:
            kind, labelled = ("classifier", "y, with both classes,") if self._classifies else ("regressor", "y")
            raise ValueError(
                f"{type(self).__name__} has no model yet: pass {labelled} in the first call of partial_fit, call fit "
                f"before it, or give a fitted {kind} as estimator."
            )
        else:
            return self.fit(X, y, **options)
        repair.partial_fit(model_scores(model, X), labels, **options)
        self.repair_, self.estimator_ = repair, model
        return self

    def _repaired(self, X: Any, sensitive_features: Any, strata: Any, **options: Any) -> NDArray[np.float64]:
        """Return the repaired scores of the fitted model."""
        check_is_fitted(self)
        if sensitive_features is None:
            raise ValueError(
                f"{type(self).__name__} needs sensitive_features at prediction, too: the repair of a score depends on "
                "the group. Pass sensitive_features=, with the columns used in fit."
            )
        scores = model_scores(self.estimator_, X)
        repaired = self.repair_.transform(scores, sensitive_features=sensitive_features, strata=strata, **options)
        return np.asarray(repaired).ravel()

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of ``predict``, or its coefficient of determination."""
        return self._quality(y, self.predict(X, sensitive_features=sensitive_features, strata=strata), sample_weight)

    def _describe(self) -> list[str]:
        return describe_repair(self.repair_)


class QuantileRepairClassifier(BinaryClassifierMixin, _QuantileRepairModel):
    """Binary classifier whose probabilities are repaired by one quantile map for each group.

    This is demographic parity by postprocessing (DPP); see :class:`QuantileRepair` for the maps.

    Parameters
    ----------
    estimator : classifier
        A classifier with ``predict_proba``, or a pipeline that ends in one; whatever features it accepts. A fitted one
        is used as it is; of an unfitted one, a clone is fitted.
    repair : QuantileRepair, optional
        Criterion, target, groups and all other parameters of the repair; the default one when omitted. Its ``amount``
        and ``range`` do not matter: the first is that of this estimator, the second is [0, 1].
    cv : int, splitter, iterable of splits or None, default=None
        Which scores the maps are computed from. None: those of the fitted classifier on the training rows. This suits
        models that hardly overfit, such as logistic regression, and a fitted estimator with rows that it was not
        trained on. Otherwise: out-of-fold scores, each by a model fitted without that row, while predictions still come
        from the classifier fitted on all rows. Models that overfit (forests, deep trees, boosting, nearest neighbours)
        need this: their training scores lie near 0 and 1, where the scores of new rows do not.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``.

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

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".
    Jiang, Pacchiano, Stepleton, Jiang and Chiappa (2020), "Wasserstein Fair Classification", UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairtransport import QuantileRepairClassifier
    >>> from fairtransport.metrics import pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    >>> scores = model.predict_proba(X, sensitive_features=group)[:, 1]
    >>> pairwise_disparity(scores, sensitive_features=group) < 0.001
    True
    """

    score = _QuantileRepairModel.score

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

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the classifier accepts; one or more rows.
        y : array-like of shape (n,), optional
            Needed in the first call, where nothing was fitted before, and by criteria that compare people with the same
            label; demographic parity needs none.
        classes : array-like of shape (2,), optional
            The two classes, as in scikit-learn's ``partial_fit``; only compared with those of the first call.
        sensitive_features, sample_weight
            As in `QuantileRepair.partial_fit`.

        Returns
        -------
        self
            Without a ``fit`` before, the first call fits the classifier, which needs ``y``, or, where the classifier is
            fitted already, starts with its scores of the batch.
        """
        known = vars(self).get("classes_")
        if known is None:
            self._check_estimator()
            if is_fitted(self.estimator):
                known = np.asarray(self.estimator.classes_)
            elif y is not None:
                known = two_classes(y, type(self).__name__)[1]
        if known is not None:
            check_classes(classes, known)
        labels = None
        if y is not None and known is not None and needs_labels(self.criterion):  # a batch need not have both
            if not np.isin(y, known).all():
                raise ValueError("y has labels that the classifier was not fitted with.")
            labels = (np.asarray(y) == known[1]).astype(np.int64)
        self._update(X, y, sensitive_features, sample_weight, labels)
        if known is not None:
            self.classes_ = known
        return self

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
        return self._classify(self.predict_proba(X, unknown_group=unknown_group, **options))


class QuantileRepairRegressor(RegressorMixin, _QuantileRepairModel):
    r"""Regressor whose predictions are repaired by one quantile map for each group.

    With the default target this is the predictor with the least mean squared error among those with the same
    distribution of predictions in all groups [1]_, [2]_, as far as the regressor estimates the conditional mean.

    Parameters
    ----------
    estimator : regressor
        Any regressor, or a pipeline that ends in one. A fitted one is used as it is, with ``cv=None``; of an unfitted
        one, a clone is fitted.
    repair : QuantileRepair, optional
        As in `QuantileRepairClassifier`; its ``range`` is learned.
    cv : int, splitter, iterable of splits or None, default=5
        Which predictions the maps are computed from, as in `QuantileRepairClassifier`. A number makes folds of rows in
        a fixed random order.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``. A share of
        ``(1 - amount) ** 2`` of the squared Wasserstein-2 distances to the target is left.

    Attributes
    ----------
    estimator_, repair_, small_groups_, n_features_in_, feature_names_in_
        As of `QuantileRepairClassifier`.

    Notes
    -----
    With the prediction s for a row of group a, the distribution function :math:`F_a` of the predictions of that group,
    the quantile functions :math:`F_b^{-1}` and the shares :math:`p_b` of all groups, and ``amount=1``, the repaired
    prediction is

    .. math:: \sum_b p_b \, F_b^{-1}(F_a(s)).

    Predictions beyond those that the maps were computed from are shifted as far as the last one of these, so that maps
    are continuous, keep the order within a group, and commute with increasing affine maps of ``y``.

    References
    ----------
    .. [1] Chzhen, Denis, Hebiri, Oneto and Pontil (2020), "Fair Regression with Wasserstein Barycenters", NeurIPS.
    .. [2] Le Gouic, Loubes and Rigollet (2020), "Projection to Fairness in Statistical Learning", arXiv:2005.11720.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fairtransport import QuantileRepairRegressor
    >>> from fairtransport.metrics import kolmogorov_smirnov_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = 1000 * (X @ [1.0, 1.0, 0.5] + rng.normal(size=2000))
    >>> model = QuantileRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group)
    >>> predictions = model.predict(X, sensitive_features=group)
    >>> kolmogorov_smirnov_disparity(predictions, sensitive_features=group) < 0.03
    True
    """

    def __init__(
        self, estimator: Any, repair: QuantileRepair | None = None, *, cv: Any = 5, amount: float = 1.0
    ) -> None:
        super().__init__(estimator, repair, cv=cv, amount=amount)

    score = _QuantileRepairModel.score

    def partial_fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the repair with one batch of a stream; the regressor stays the same.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the regressor accepts; one or more rows.
        y : array-like of shape (n,), optional
            Needed in the first call, where nothing was fitted before: it fits the regressor.
        sensitive_features, sample_weight
            As in `QuantileRepair.partial_fit`.

        Returns
        -------
        self
        """
        criterion = criterion_name(self.criterion)
        if criterion != "demographic_parity":
            raise ValueError(
                f"A stream of predictions is repaired for demographic parity; with criterion={criterion!r}, fit "
                "the repair again when predictions have changed."
            )
        if not hasattr(self, "repair_"):
            self._check_estimator()
        return self._update(X, y, sensitive_features, sample_weight, None)

    def predict(
        self, X: Any, *, sensitive_features: Any = None, strata: Any = None, unknown_group: str = "error"
    ) -> NDArray[np.float64]:
        """Return the repaired predictions; see `QuantileRepairClassifier.predict_proba` for the parameters."""
        return self._repaired(X, sensitive_features, strata, unknown_group=unknown_group)


def _fit_and_score(
    estimator: Any, X: Any, y: NDArray[Any], *, cv: Any, weights: NDArray[np.float64] | None, classifies: bool
) -> tuple[Any, NDArray[np.float64]]:
    """Return a fitted model and the scores to compute maps from: of the rows of fit, or out of fold."""
    if is_fitted(estimator):
        if cv is not None:
            raise ValueError(
                "cv needs an estimator that is not fitted, to fit it without the rows it scores. Pass an unfitted "
                "one, or set cv=None and fit the repair on rows that the fitted estimator has not seen."
            )
        return estimator, model_scores(estimator, X)
    splits = None if cv is None else check_cv(cv, y, classifier=classifies)
    if not classifies and isinstance(cv, (int, np.integer)):  # rows may be sorted by y or by group
        splits = KFold(int(cv), shuffle=True, random_state=0)
    model = clone(estimator)
    remedy = ". Fit it first, and pass it fitted: then the weights are used for the repair only."
    options = weight_options(model, weights, remedy)
    with config_context(enable_metadata_routing=False):  # weights are passed by step name
        model.fit(X, y, **options)
        if splits is None:
            return model, model_scores(model, X)
        method = "predict_proba" if classifies else "predict"
        out_of_fold = cross_val_predict(estimator, X, y, cv=splits, method=method, params=options or None)
    return model, positive_scores(out_of_fold) if classifies else np.asarray(out_of_fold, dtype=np.float64)
