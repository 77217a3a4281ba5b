"""A classifier or a regressor with quantile repair of its scores."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import RegressorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Floats, Ints
from fairtransport._labels import check_classes, two_classes
from fairtransport._sklearn import (
    BinaryClassifierMixin,
    as_features,
    content_keys,
    deal_rows,
    few_threads,
    group_cells,
    last_step,
    model_scores,
    n_rows,
    read_fold,
    take_rows,
)
from fairtransport._validation import check_count, check_length, check_real, check_weights
from fairtransport.criteria.criterion import (
    DemographicParity,
    as_criterion,
    criterion_name,
    needs_labels,
    resolve_criterion,
)
from fairtransport.groups import Groups, check_policy
from fairtransport.repair._repaired_model import RepairedModel, cannot_memorise, is_fitted, weight_options
from fairtransport.repair.group_checks import TrainingLabels
from fairtransport.repair.group_maps import LEARNED, UNIT
from fairtransport.repair.quantile import QuantileRepair, describe_repair
from fairtransport.strata import Strata, make_strata
from fairtransport.training.evaluation import share_kept
from fairtransport.training.outcome import FITTED_NOISE, Notice, held_out_change, repair_outcome

_FOLDS = 5


_NOT_MEASURED = Notice("the scores were repaired; too few rows to hold some out")


class _QuantileRepairModel(RepairedModel):
    """A fitted model, ``estimator_``, and the repair of its scores, ``repair_``."""

    repair_: QuantileRepair
    unexplained_: tuple[float, ...]
    _settings_class = QuantileRepair

    def __init__(
        self, estimator: Any, repair: QuantileRepair | None = None, *, cv: Any = "auto", amount: float = 1.0
    ) -> None:
        self.estimator = estimator
        self.repair = repair
        self.cv = cv
        self.amount = amount

    @property
    def amount(self) -> float:
        """The amount of repair; setting it also changes a fitted repair."""
        return self.__dict__["amount"]

    @amount.setter
    def amount(self, amount: float) -> None:
        repair = vars(self).get("repair_")
        if repair is not None:
            repair.amount = check_real(amount, name="amount", most=1.0)
        self.__dict__["amount"] = amount

    @property
    def information_kept_(self) -> float:
        """Share of what the model explains of ``y`` that the repair keeps, at its amount."""
        plain, full, between = self.unexplained_
        mixed = (1.0 - self.amount) * plain + self.amount * full - self.amount * (1.0 - self.amount) * between
        return share_kept(plain, mixed)

    @property
    def target(self) -> Any:
        """The target of the repair."""
        return self._settings().target

    @property
    def small_groups_(self) -> tuple[Any, ...]:
        """Labels of the groups without a map of their own."""
        check_is_fitted(self)
        return self.repair_.small_groups_

    def _fit(self, X: Any, y: ArrayLike, sensitive_features: Any, strata: Any, sample_weight: ArrayLike | None) -> Self:
        repair, size = self._new_repair(), n_rows(X)
        repair.check_parameters()
        target, classes = self._targets(X, y)
        labels = target if classes is None else (target == classes[1]).astype(np.int64)
        check_length(target, size=size, name="y")
        weights = check_weights(sample_weight, size=size)
        # Invalid groups raise before the model is fitted, which may take long.
        groups, known, cells = repair.read_rows(labels, sensitive_features, strata, weights, n_rows=size)
        self._check_estimator(classes)
        if (
            weights is not None
            and not weights.all()
            and (self.cv is None or isinstance(self.cv, (str, int, np.integer)))
        ):
            kept = np.flatnonzero(weights)  # splits that are given are of all rows
            X, target, labels, weights = take_rows(X, kept), target[kept], labels[kept], weights[kept]
            groups, cells = groups.select(kept), cells and cells.select(kept)
            known = known and known._replace(codes=known.codes[kept])
        model, scores, half = _fit_and_score(
            self.estimator, X, target, cv=self.cv, weights=weights, classifies=self._classifies
        )
        self.repair_ = repair.fit(scores, labels, sensitive_features=groups, strata=cells, sample_weight=weights)
        self.estimator_ = model
        if classes is not None:
            self.classes_ = classes
        self.__dict__.pop("unexplained_", None)  # of a fit before
        rest: dict[str, Any] = {"strata": cells, "known": known, "weights": weights, "half": half}
        notice = self._check_held_out(clone(repair), scores, labels, groups, **rest)
        self.outcome_ = notice.text
        notice.warn()
        return self

    def _check_held_out(
        self,
        repair: QuantileRepair,
        scores: Floats,
        labels: NDArray[Any],
        groups: Groups,
        *,
        strata: Strata | None,
        known: TrainingLabels | None,
        weights: Floats | None,
        half: Ints | None,
    ) -> Notice:
        """Set ``unexplained_`` by repairs of rows whose scores their maps have not seen, and say what came of it.

        Out of fold, models are repaired by maps of other models' scores, as the model of all rows is.
        """
        if weights is not None:  # weight 0 is no row
            rows = np.flatnonzero(weights > 0)
            scores, labels, groups, weights = scores[rows], labels[rows], groups.select(rows), weights[rows]
            strata, half = None if strata is None else strata.select(rows), None if half is None else half[rows]
            known = None if known is None else known._replace(codes=known.codes[rows])
        if half is None:
            classes = labels if self._classifies else np.zeros(scores.size)
            half = deal_rows(scores, classes, group_cells(groups), 2, np.random.default_rng(0))
        full, outcomes = scores.astype(np.float64), labels.astype(np.float64)
        policy = check_policy(repair.groups)
        repair.set_params(amount=1.0, groups=replace(policy, min_size=max(policy.min_size // 2, 1)))
        for number in (0, 1):
            others, held_out = np.flatnonzero(half != number), np.flatnonzero(half == number)
            if np.count_nonzero(groups.select(others).counts) < 2 or np.ptp(labels) == 0:
                return _NOT_MEASURED
            columns, new_columns = (
                dict[str, Any](sensitive_features=groups.select(part), strata=strata and strata.select(part))
                for part in (others, held_out)
            )
            try:
                with warnings.catch_warnings(action="ignore"):  # of all rows, fit has said it
                    part = None if weights is None else weights[others]
                    repair.fit(scores[others], labels[others], sample_weight=part, **columns)
            except ValueError:  # half of the rows are too few to compare within labels or strata
                return _NOT_MEASURED
            full[held_out] = repair.transform(scores[held_out], unknown_group="pooled", **new_columns)
        criterion, cells = as_criterion(repair.criterion), strata
        if known is not None and known.n_labels > 2:  # ranges of y are strata
            codes = [known.codes, *([] if strata is None else [strata.codes])]
            cells = make_strata({f"codes {number}": each.astype(str) for number, each in enumerate(codes)})
            criterion = DemographicParity(criterion.stratum_weight)
        pairs = resolve_criterion(
            criterion, groups, labels=None if known is None else known.codes, strata=cells, row_weights=weights
        ).comparisons()
        change = held_out_change(
            scores, scores + self.amount * (full - scores), outcomes, pairs, classifies=self._classifies,
            is_full=self.amount == 1.0,
            rows="rows that its maps have not seen" if self.cv is None else "rows that it was not fitted to",
            min_size=policy.min_size, parts=half, excess_noise=FITTED_NOISE,
        )  # fmt: skip
        # A smaller amount, and scores that are given as the target, were chosen.
        if not change.helps and self.amount == 1.0 and isinstance(repair.target, str):
            change, full = change.undone(), scores
            self.repair_.undo()
        variance = np.average((outcomes - np.average(outcomes, weights=weights)) ** 2, weights=weights)
        differences = (scores - outcomes, full - outcomes, full - scores)
        self.unexplained_ = tuple(float(np.average(d**2, weights=weights) / variance) for d in differences)
        return repair_outcome(
            change, "The repair", "More rows, or larger groups (groups=GroupPolicy(small='pool')), improve the maps."
        )

    def _new_repair(self) -> QuantileRepair:
        """Return an unfitted repair with the parameters of ``repair``, and the amount of this model."""
        self._check_amounts()
        return clone(self._settings()).set_params(amount=self.amount, range=UNIT if self._classifies else LEARNED)

    def _check_amounts(self) -> None:
        """Raise where ``repair`` has an amount, which would not act."""
        if self._settings().amount not in (1.0, self.amount):
            raise ValueError(
                f"The amount of {type(self).__name__} is its own: set amount=, and leave that of repair at 1."
            )

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
        self.outcome_ = "repaired by batches; no rows were held out"
        return self

    def _repaired(self, X: Any, sensitive_features: Any, strata: Any, **options: Any) -> Floats:
        """Return the repaired scores of the fitted model."""
        check_is_fitted(self)
        self._check_amounts()
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
        is that of this estimator, and its ``range`` [0, 1].
    cv : "auto", int, splitter, iterable of splits or None, default="auto"
        Which scores the maps are computed from. A number of folds, a splitter or splits: out-of-fold scores, each by a
        model fitted without that row, while predictions still come from the classifier fitted on all rows. Models that
        can memorise rows (forests, boosting, nearest neighbours) need this: their training scores lie near 0 and 1,
        where the scores of new rows do not. None: those of the fitted classifier on the rows of ``fit``. ``"auto"`` is
        None for a fitted estimator and for a linear one with at least 50 rows for each weight, otherwise 5.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``. A full repair
        that does not help on held-out rows is not done, with a warning.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier: ``estimator`` itself if it was fitted, otherwise a clone.
    repair_ : QuantileRepair
        The fitted repair of its scores.
    small_groups_ : tuple
        Labels of the groups without a map of their own.
    information_kept_ : float
        Share of what the model explains of ``y`` that the repair keeps at its ``amount``, on rows that the maps have
        not seen.
    outcome_ : str
        What became of the scores on these rows, in words; after ``partial_fit``, that none were held out.
    unexplained_ : tuple of three floats
        On these rows, and as shares of the variance of ``y``: the mean squared errors of the scores before and after
        full repair, and the mean squared difference between the two.
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
    ) -> Floats:
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
        Any regressor, or a pipeline that ends in one. A fitted one is used as it is; of an unfitted
        one, a clone is fitted.
    repair : QuantileRepair, optional
        As in `QuantileRepairClassifier`; its ``range`` is learned.
    cv : "auto", int, splitter, iterable of splits or None, default="auto"
        Which predictions the maps are computed from, as in `QuantileRepairClassifier`.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``. A share of
        ``(1 - amount) ** 2`` of the squared Wasserstein-2 distances to the target is left.

    Attributes
    ----------
    estimator_, repair_, small_groups_, information_kept_, outcome_, unexplained_, n_features_in_, feature_names_in_
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
    ) -> Floats:
        """Return the repaired predictions; see `QuantileRepairClassifier.predict_proba` for the parameters."""
        return self._repaired(X, sensitive_features, strata, unknown_group=unknown_group)


def _fit_and_score(
    estimator: Any, X: Any, y: NDArray[Any], *, cv: Any, weights: Floats | None, classifies: bool
) -> tuple[Any, Floats, Ints | None]:
    """Return a fitted model, scores to compute maps from and, if these are out of fold, halves that share no model."""
    automatic = isinstance(cv, str)
    if automatic and cv != "auto":
        raise ValueError(f"cv must be 'auto', a number of folds, a splitter, a list of splits or None; got {cv!r}.")
    if is_fitted(estimator):
        if cv is not None and not automatic:
            raise ValueError(
                "cv needs an estimator that is not fitted, to fit it without the rows it scores. Pass an unfitted "
                "one, or set cv=None and fit the repair on rows that the fitted estimator has not seen."
            )
        return estimator, model_scores(estimator, X), None
    model, X = clone(estimator), as_features(X)
    remedy = ". Fit it first, and pass it fitted: then the weights are used for the repair only."
    options = weight_options(model, weights, remedy)
    with few_threads(X), config_context(enable_metadata_routing=False):  # weights are passed by step name
        model.fit(X, y, **options)
        scores = model_scores(model, X)
        if automatic:
            fewest = int(np.unique(y, return_counts=True)[1].min()) if classifies else y.size
            cv = None if fewest < 2 or cannot_memorise(model, y.size) else min(_FOLDS, fewest)
        if cv is None or np.ptp(scores) == 0:  # of a constant, parts may differ
            return model, scores, None
        if isinstance(cv, (int, np.integer)):
            n_folds, labels = check_count(cv, name="cv", least=2), y if classifies else np.zeros(y.size)
            nobody = np.zeros(y.size, dtype=np.int64)
            cv = PredefinedSplit(deal_rows(content_keys(X), labels, nobody, n_folds, np.random.default_rng(0)))
        scores, times, half = np.empty(y.size), np.zeros(y.size, dtype=np.int64), np.zeros(y.size, dtype=np.int64)
        for number, split in enumerate(check_cv(cv, y, classifier=classifies).split(X, y)):
            fold = read_fold(split, y.size)
            fold.require_apart()
            training, held_out = fold.training, fold.held_out
            part = clone(estimator)
            weights_of_part = {name: values[training] for name, values in options.items()}
            part.fit(take_rows(X, training), y[training], **weights_of_part)
            scores[held_out] = model_scores(part, take_rows(X, held_out))
            times[held_out] += 1
            half[held_out] = number % 2
    if not (times == 1).all():
        raise ValueError("cv must hold out every row once: its splits have to be a partition of the rows.")
    return model, scores, half if half.any() else None
