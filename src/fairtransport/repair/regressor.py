"""A regressor with quantile repair of its predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import RegressorMixin, is_classifier
from sklearn.metrics import r2_score

from fairtransport._sklearn import last_step, model_scores, n_rows, real_targets
from fairtransport._validation import check_length, check_real, check_weights
from fairtransport.criteria import criterion_name
from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.repair._repaired_model import RepairedModel, fit_and_score, is_fitted
from fairtransport.repair.group_checks import groups_to_repair, strata_to_repair, training_labels
from fairtransport.repair.group_maps import LEARNED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.criteria import Criterion
    from fairtransport.repair.quantile import QuantileRepair


class QuantileRepairRegressor(RegressorMixin, RepairedModel):
    r"""Regressor whose predictions are repaired by one quantile map for each group.

    With the default target this is the predictor with the least mean squared error among those with the same
    distribution of predictions in all groups [1]_, [2]_, as far as the regressor estimates the conditional mean.

    Parameters
    ----------
    estimator : regressor
        Any regressor, or a pipeline that ends in one. A fitted one is used as it is, with ``cv=None``; of an unfitted
        one, a clone is fitted.
    criterion : {"demographic_parity", "equalized_odds"} or instance, default="demographic_parity"
        Whose predictions should have the same distribution in all groups: those of all people, or of people with
        similar ``y``, which is cut at quantiles; see :class:`QuantileRepair`.
    target : {"barycenter_w2", "barycenter", "pooled"}, group label or array, default="barycenter_w2"
        The distribution that every group is mapped to; see :class:`QuantileRepair`. The default has the least mean
        squared error.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``. A share of
        ``(1 - amount) ** 2`` of the squared Wasserstein-2 distances to the target is left.
    cv : int, splitter, iterable of splits or None, default=5
        Which predictions the maps are computed from. A number of folds, a splitter or splits: out-of-fold predictions,
        each by a model fitted without that row, while predictions still come from the regressor fitted on all rows. A
        number makes folds of rows in a fixed random order. None: those of the fitted regressor on the rows of ``fit``,
        for models that hardly overfit, and for a fitted estimator with rows that it was not trained on.
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
    estimator_ : regressor
        The fitted regressor: ``estimator`` itself if it was fitted, otherwise a clone.
    repair_ : QuantileRepair
        The fitted repair of its predictions.
    small_groups_ : tuple
        Labels of the groups without a map of their own.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, if it has them.

    See Also
    --------
    QuantileRepair : Repairs scores of any origin.
    QuantileRepairClassifier : Repairs the probabilities of a classifier.

    Notes
    -----
    With the prediction s for a row of group a, the distribution function :math:`F_a` of the predictions of that group,
    the quantile functions :math:`F_b^{-1}` and the shares :math:`p_b` of all groups, and ``amount=1``, the repaired
    prediction is

    .. math:: \sum_b p_b \, F_b^{-1}(F_a(s)).

    Predictions beyond those that the maps were computed from are shifted as far as the last one of these, so that maps
    are continuous, keep the order within a group, and commute with increasing affine maps of ``y``. The group is needed
    at prediction and need not be a feature.

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
        self,
        estimator: Any,
        *,
        criterion: str | Criterion = "demographic_parity",
        target: Any = "barycenter_w2",
        amount: float = 1.0,
        cv: Any = 5,
        grouping: str = "crossed",
        missing: str = "error",
        small_groups: str = "keep",
        min_group_size: int = MIN_GROUP_SIZE,
        stream_half_life: float = 10_000.0,
        new_groups: str = "error",
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
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
        """Fit the regressor, unless it is fitted already, and the repair of its predictions.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the regressor accepts.
        y : array-like of shape (n,)
            Finite numbers.
        sensitive_features : column, table or Groups
            At least two groups; several columns are crossed. They need not be among the features.
        strata : column or table, optional
            Groups are compared within these strata only (conditional parity); see `QuantileRepair.fit`. Predictions
            need them, too.
        sample_weight : array-like of shape (n,), optional
            Weights for the regressor (for a pipeline: for its last step) and for the repair, where weight k equals k
            copies of a row.

        Returns
        -------
        self
        """
        check_real(self.amount, name="amount", most=1.0)
        repair = self._new_repair()
        repair.check_parameters()
        size = n_rows(X)
        if size == 1:
            raise ValueError("X has 1 sample; groups can be compared only where each has rows.")
        values = real_targets(y, type(self).__name__)
        check_length(values, size=size, name="y")
        weights = check_weights(sample_weight, size=size)
        # Invalid groups raise before the regressor is fitted, which may take long.
        groups = groups_to_repair(
            sensitive_features, n_rows=size, weights=weights, grouping=self.grouping, missing=self.missing
        )
        labels = training_labels(values, groups, criterion_name(self.criterion), weights)
        cells = strata_to_repair(
            strata, groups, criterion=criterion_name(self.criterion), labels=labels, weights=weights, randomize=False
        )
        self._check_estimator()
        model, scores = fit_and_score(self.estimator, X, values, cv=self.cv, weights=weights, classifies=False)
        repair.fit(scores, values, sensitive_features=groups, strata=cells, sample_weight=weights)
        self.repair_, self.estimator_ = repair, model
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the repair with one batch of a stream; the regressor stays the same.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the regressor accepts; one or more rows.
        y : array-like of shape (n,), optional
            Needed in the first call, where nothing was fitted before.
        sensitive_features : column, table or Groups
            The columns of ``fit``; see `QuantileRepair.partial_fit`.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
            Without a ``fit`` before, the first call fits the regressor, which needs ``y``, or, where the regressor is
            fitted already, starts with its predictions of the batch.
        """
        if criterion_name(self.criterion) != "demographic_parity":
            raise ValueError(
                "A stream of predictions is repaired for demographic parity; with "
                f"criterion={criterion_name(self.criterion)!r}, fit the repair again when predictions have changed."
            )
        if hasattr(self, "repair_"):
            self._learn(X, None, sensitive_features, sample_weight)
            return self
        self._check_estimator()
        if not is_fitted(self.estimator):
            if y is None:
                raise ValueError(
                    f"{type(self).__name__} has no model yet: pass y in the first call of partial_fit, call fit before "
                    "it, or give a fitted regressor as estimator."
                )
            return self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        repair = self._new_repair()
        repair.partial_fit(
            model_scores(self.estimator, X), sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        self.repair_, self.estimator_ = repair, self.estimator
        return self

    def predict(
        self, X: Any, *, sensitive_features: Any = None, strata: Any = None, unknown_group: str = "error"
    ) -> NDArray[np.float64]:
        """Return the repaired predictions.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever the regressor accepts.
        sensitive_features : column, table or Groups
            The group of each row, which is required.
        strata : column or table, optional
            The stratum of each row; required if strata were given to ``fit``.
        unknown_group : {"error", "pooled", "common"}, default="error"
            What to do with rows of a group that was not seen in ``fit``, and with rows without a group: raise
            ValueError, predict as for everyone pooled, or as for the largest group.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._repaired(X, sensitive_features, strata, unknown_group=unknown_group)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features, strata=strata)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _new_repair(self) -> QuantileRepair:
        if criterion_name(self.criterion) == "equal_opportunity":
            raise ValueError(
                "criterion='equal_opportunity' compares people with the positive label, which a regression does not "
                "have. Use 'equalized_odds', which compares people with similar y, or 'demographic_parity'."
            )
        return self._make_repair(range=LEARNED)

    def _check_estimator(self) -> None:
        name = type(last_step(self.estimator)[1]).__name__
        if hasattr(self.estimator, "fit") and not isinstance(self.estimator, type) and is_classifier(self.estimator):
            raise TypeError(f"{name} is a classifier; repair its probabilities with QuantileRepairClassifier.")
        if not hasattr(self.estimator, "predict"):
            raise TypeError(f"estimator must be a regressor, with predict; {name} has none.")
