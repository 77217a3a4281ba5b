"""Base of the transport classifiers: parameters in, fitted attributes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.labels import two_classes
from fairtransport._sklearn.streaming import check_classes, encode_batch_groups
from fairtransport._validation import check_choice, check_count, check_length, check_real, check_weights
from fairtransport._warnings import warn_caller
from fairtransport.criteria import MAX_PAIRED_GROUPS, needs_labels
from fairtransport.groups import Groups
from fairtransport.linear.online._initial_memory import default_parity_weight, memory_from_batch, row_masses
from fairtransport.linear.online.memory import Batch, widened_weights
from fairtransport.linear.online.state import OnlineState, UpdateRule
from fairtransport.linear.training._comparisons import stored_target
from fairtransport.linear.training._data import (
    TrainingData,
    check_target,
    make_training_groups,
    make_training_strata,
    validate_training_data,
)
from fairtransport.linear.training._initial_model import InitialModel, prepare_initial_model
from fairtransport.linear.training._lbfgs import train_lbfgs, train_lbfgs_path
from fairtransport.linear.training._options import SPREADS, TrainingOptions
from fairtransport.linear.training._outcome import criterion_text
from fairtransport.linear.training._result import FitResult, group_logits
from fairtransport.linear.training._sgd import prepare_trainer, train_sgd
from fairtransport.linear.training._spread_map import spread_logits, spread_points
from fairtransport.linear.training.weight_path import empty_path
from fairtransport.strata import Strata
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.linear._distances import TransportDistance
    from fairtransport.linear.solvers._sgd import Trainer

__all__ = ["LinearTransportClassifier"]

_N_UPDATES = 3  # of `partial_fit`, for each batch
_SUMMARY_METRICS = ("disparity", "rank_disparity", "auc")


class LinearTransportClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of the transport classifiers, which differ in the distance that they penalise.

    ``fit`` runs in stages, each of which returns a frozen value: ``TrainingOptions`` and ``TrainingData`` (validated),
    ``InitialModel``, ``GroupComparisons``, the solver, and ``FitResult``; see `fairtransport.linear.training`.
    """

    groups_: Groups
    group_sizes_: NDArray[np.int64]
    strata_: Strata | None

    @abstractmethod
    def _distance(self) -> TransportDistance:
        """Return the distance, with its parameters checked."""

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train the initial model, then move it towards the criterion.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features; finite numbers.
        y : array-like of shape (n_samples,)
            Two classes; the larger label is class 1.
        sensitive_features : array-like, Series or frame
            One or more sensitive columns; several are crossed. They need not be among the features.
        strata : array-like, Series or frame, optional
            One or more columns within whose values groups are compared (conditional parity). Several are crossed, and
            numbers are cut at quantiles; see `fairtransport.strata.make_strata`. They are not needed at prediction.
        sample_weight : array-like of shape (n_samples,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
            The fitted estimator.
        """
        options = self._options()
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        result = train_lbfgs(data, options) if options.sgd is None else train_sgd(data, options, options.sgd)
        self._store(result, data.classes)
        return self

    def fit_path(
        self,
        X: Any,
        y: Any,
        parity_weights: Sequence[float],
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Train with each of several weights, each fit started from the one before.

        Parameters
        ----------
        X, y, sensitive_features, strata, sample_weight
            As for ``fit``.
        parity_weights : sequence of float
            Ascending.

        Returns
        -------
        list of estimators
            Fitted copies, one for each weight. It costs less than as many calls of ``fit``.
        """
        weights = [check_real(weight, name="parity_weights") for weight in parity_weights]
        if weights != sorted(weights):
            raise ValueError("parity_weights must ascend: each fit starts from the one before.")
        template = copy(self).set_params(parity_weight="auto", max_disparity=None)
        options = template._options()  # noqa: SLF001
        if options.sgd is not None:
            raise ValueError("fit_path needs solver='lbfgs'.")
        data, models = (
            self._training_data(
                X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
            ),
            [],
        )
        for result in train_lbfgs_path(data, options, weights):
            model = copy(self).set_params(parity_weight=result.parity_weight, max_disparity=None)
            model._store(result, data.classes)  # noqa: SLF001
            models.append(model)
        return models

    def make_trainer(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Trainer:
        """Do everything that ``fit`` with ``solver="sgd"`` does before the first update, to follow every step.

        Parameters
        ----------
        X, y, sensitive_features, strata, sample_weight
            As for ``fit``.

        Returns
        -------
        Trainer
            ``advance(n)`` runs n updates, ``theta`` and ``averaged()`` read the parameters, ``switch(...)`` continues
            with other rows.
        """
        options = self._options()
        if options.sgd is None:
            raise ValueError("make_trainer is for solver='sgd', which moves in small steps.")
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        prepared = prepare_trainer(data, options, options.sgd)
        self._store_start(prepared.initial, data.classes, data.groups, prepared.target)
        self.strata_ = None if data.strata is None else Strata.from_spec(data.strata.to_spec())
        return prepared.trainer

    def at(
        self,
        *,
        max_disparity: float | None = None,
        max_rank_disparity: float | None = None,
        weight: float | None = None,
    ) -> Self:
        """Return the model of another point of ``path_``, without training again.

        Parameters
        ----------
        max_disparity, max_rank_disparity : float, optional
            The smallest weight at which the disparity (SPDD), or the rank disparity, is at most this.
        weight : float, optional
            The nearest weight of the path. Exactly one of the three is given.

        Returns
        -------
        LinearTransportClassifier
            A copy, without the memory of a stream.
        """
        check_is_fitted(self)
        limits = {"disparity": max_disparity, "rank_disparity": max_rank_disparity, "weight": weight}
        named = [name for name, value in limits.items() if value is not None]
        if len(named) != 1:
            raise ValueError("Give exactly one of max_disparity, max_rank_disparity and weight.")
        limit = check_real(limits[named[0]], name=named[0] if weight is not None else f"max_{named[0]}")
        if not self.path_["weight"].size:
            raise ValueError("This model has no path: solver='sgd' trains with one weight.")
        if weight is not None:
            index = int(np.abs(np.log1p(self.path_["weight"]) - np.log1p(limit)).argmin())
        else:
            below = np.flatnonzero(self.path_[named[0]] <= limit)
            if not below.size:
                raise ValueError(
                    f"No point of the path has a {named[0].replace('_', ' ')} of {limit:g} or less; the lowest is "
                    f"{self.path_[named[0]].min():.4g}."
                )
            index = int(below[0])
        model = copy(self)
        theta = self.path_["theta"][index]
        # Groups that a stream has brought since are not on the path.
        model._store_weights(widened_weights(theta[:-1], len(self.groups_)), theta[-1])  # noqa: SLF001
        model.parity_weight_ = float(self.path_["weight"][index])
        model.information_kept_ = float(self.path_["information_kept"][index])
        model.spread_ = self.path_["spread"][index]
        model.outcome_ = f"weight {model.parity_weight_:g} of the path"
        for name in ("adjusting_", "before_after_"):
            if hasattr(model, name):
                delattr(model, name)
        return model

    # ---------------------------------------------------------------- streams

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        updates: int | None = None,
    ) -> Self:
        """Adjust the model to one batch of a stream; demographic parity needs no labels.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            One batch, from a single row on; columns as in ``fit``.
        y : array-like of shape (n_samples,), optional
            Labels, where they are known: they teach the model that the anchor holds to (see Notes). With
            ``parity_weight=inf`` there is no anchor, and labels are checked but not used. Equalized odds and equal
            opportunity need them: pass rows once their labels have arrived.
        classes : array-like of shape (2,), optional
            The two classes, as in scikit-learn's ``partial_fit``. They are known from the first call's ``y`` and
            only compared.
        sensitive_features : array-like, Series or frame
            The columns of ``fit``. Groups may be absent. One that was not seen before raises, or is adopted: see
            ``new_groups``.
        strata : array-like, Series or frame, optional
            The columns of ``fit``, if it had any. Rows of a stratum that was not compared then do not move the penalty.
        sample_weight : array-like of shape (n_samples,), optional
            Weight k equals k copies.
        updates : int, optional
            Updates of the weights for this batch, 3 by default. 0 only observes: the sketches move, the weights do not.

        Returns
        -------
        self
            Without a ``fit`` before, the first call is a ``fit`` where labels are given, of both classes. Otherwise it
            starts from ``estimator``, which must then be fitted.

        Notes
        -----
        Of each group (with a criterion that needs labels, or strata: of its rows in each of them) a sketch is kept: a
        histogram of its logits, its mean features and their covariance with the
        logit, in which a row of ``half_life`` rows of its group ago counts half. When the scores of its last hundred
        rows or so differ from it by more than chance, what is older is dropped. A batch enters the sketches; then
        theta follows the gradient of the penalty on their quantiles, not on the batch, so that a batch of one row is as
        good as any; the sketches move along with theta. The target stays that of ``fit``; groups that are compared with
        each other continue to be.

        Unless the loss is left out (``parity_weight=inf``, the paper's rule), an anchor keeps theta from drifting along
        the set of fair models: the second-order expansion of the logistic loss around the model of the last ``fit``. It
        has no noise and needs no labels. Labels that are given teach that model by a step of online logistic
        regression, and theta goes along.

        Nothing is drawn at random: equal batches in equal order give equal models to the last bit, whether in one
        process or through `fairtransport.save` and `fairtransport.load`.
        """
        options = self._options()
        if y is None and needs_labels(options.criterion):
            raise ValueError(
                f"partial_fit without labels cannot hold {criterion_text(options.criterion, has_strata=False)}, which "
                "compares people with the same label: pass y, for rows whose labels have arrived."
            )
        n_updates = _N_UPDATES if updates is None else check_count(updates, name="updates", least=0)
        columns = {"sensitive_features": sensitive_features, "strata": strata, "sample_weight": sample_weight}
        if not hasattr(self, "coef_"):
            if y is not None:
                check_classes(classes, two_classes(y, type(self).__name__)[1])
                return self.fit(X, y, **columns)
            return self._start_without_labels(X, options=options, **columns)
        check_classes(classes, self.classes_)
        X = self._features(X)
        masses = row_masses(check_weights(sample_weight, size=X.shape[0]), X.shape[0])
        groups = encode_batch_groups(self.groups_, sensitive_features, self.new_groups)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        known = self._batch_strata(strata, X.shape[0])
        labels = None if y is None else self._binary_labels(y, X.shape[0])
        batch = Batch(X, groups, masses, labels, None if known is None else known.codes)
        state = self.online_state(updates=n_updates).widened(groups)
        if state.memory is None:
            state = replace(state, memory=self._memory_from(batch, state.theta, options, known))
        self.set_online_state(state.update(batch))
        self.n_iter_ += n_updates
        return self

    def _batch_strata(self, strata: Any, n_rows: int) -> Strata | None:
        """Return the strata of a batch as in ``fit``; None where the model has none."""
        known = vars(self).get("strata_")
        if (known is None) != (strata is None):
            raise ValueError("strata must be given to partial_fit exactly where they were given to fit.")
        if known is None:
            return None
        encoded = known.encode(strata)
        check_length(range(encoded.n_rows), size=n_rows, name="strata")
        return encoded

    def online_state(self, *, updates: int | None = None) -> OnlineState:
        """Return the fitted model as a value that batches update.

        Parameters
        ----------
        updates : int, optional
            Updates of the weights for each batch, 3 by default.

        Returns
        -------
        OnlineState
            Frozen; ``state.update(batch)`` returns another one, which `set_online_state` stores.
        """
        check_is_fitted(self)
        options = self._options()
        n_updates = _N_UPDATES if updates is None else check_count(updates, name="updates", least=0)
        rule = UpdateRule(options.distance, options.scale, options.each_other, options.half_life, n_updates)
        common = np.append(self.common_coef_, self.common_intercept_)
        state = vars(self)
        return OnlineState(rule, self._theta, common, self.groups_, state.get("adjusting_"), state.get("duals_"))

    def set_online_state(self, state: OnlineState) -> Self:
        """Store a state that was made from `online_state`.

        Parameters
        ----------
        state : OnlineState
            Its groups are those of this model, perhaps followed by new ones.

        Returns
        -------
        self
        """
        n_new = len(state.groups) - len(self.groups_)
        if n_new > 0:
            self.groups_ = state.groups
            self.group_sizes_ = np.append(self.group_sizes_, np.zeros(n_new, dtype=self.group_sizes_.dtype))
        self._store_weights(state.theta, state.common)
        for name, value in {"adjusting_": state.memory, "duals_": state.duals}.items():
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)
        return self

    def _start_without_labels(
        self, X: Any, *, sensitive_features: Any, strata: Any, sample_weight: Any, options: TrainingOptions
    ) -> Self:
        try:
            check_is_fitted(self.estimator)
        except (NotFittedError, TypeError):
            raise ValueError(
                f"{type(self).__name__} has no model yet: pass y, with both classes, in the first call of partial_fit, "
                "call fit before it, or give a fitted linear model as estimator."
            ) from None
        X = self._features(X, reset=True)
        masses = row_masses(check_weights(sample_weight, size=X.shape[0]), X.shape[0])
        groups = make_training_groups(sensitive_features, X.shape[0], options)
        check_target(groups, masses, options)
        parts = make_training_strata(strata, groups)
        classes = np.asarray(self.estimator.classes_)
        names = getattr(self, "feature_names_in_", None)
        initial = prepare_initial_model(self.estimator, X, classes, None, feature_names=names)
        scores = initial.scores(X)
        target = stored_target(None if options.each_other else options.target, scores, groups, masses)
        self._store_start(initial, classes, groups, target)
        theta = np.tile(initial.theta, (len(groups) if options.group_specific else 1, 1))
        self._store_weights(theta, theta.mean(axis=0))
        self.history_ = {name: np.zeros(0) for name in ("update", "disparity", "loss")}
        self.outcome_, self.n_iter_ = "started from the estimator as it was given, without labels", 0
        self.parity_weight_, self.information_kept_ = default_parity_weight(options), 1.0
        self.path_ = empty_path()
        self.spread_ = spread_points(scores, scores, groups.rows, masses)
        self.strata_ = None if parts is None else Strata.from_spec(parts.to_spec())
        batch = Batch(X, groups, masses, strata=None if parts is None else parts.codes)
        self.adjusting_ = self._memory_from(batch, theta, options, parts)
        return self

    def _memory_from(
        self, batch: Batch, theta: NDArray[np.float64], options: TrainingOptions, strata: Strata | None
    ) -> Any:
        model = self.initial_estimator_
        return memory_from_batch(
            batch,
            theta,
            sigmoid(self._initial_logits(batch.X)),
            target=self.target_,
            group_sizes=self.group_sizes_,
            has_intercept=bool(getattr(model, "fit_intercept", True)),
            options=options,
            strata=strata,
        )

    def _binary_labels(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        labels = column_or_1d(y)
        check_length(labels, size=n_rows, name="y")
        unknown = int(np.count_nonzero(~np.isin(labels, self.classes_)))
        if unknown:
            raise ValueError(
                f"y has {unknown} of {n_rows} labels that are none of the two classes of the first fit. Leave y out "
                "where labels are not known."
            )
        return np.asarray(labels == self.classes_[1], dtype=np.float64)

    # ---------------------------------------------------------------- predicting

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the logit of class 1's probability.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        sensitive_features : array-like, optional
            Needed when ``group_specific=True``, unused otherwise. A group not seen in ``fit`` raises.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        amount = check_real(self.amount, name="amount", most=1.0)
        X = self._features(X)
        trained = self._trained_logits(X, sensitive_features)
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            trained = spread_logits(trained, self.spread_)
        return trained if amount == 1.0 else _mixed_logits(self._initial_logits(X), trained, amount)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the probabilities of the two classes; see ``decision_function`` for the parameters."""
        positive = sigmoid(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack((1.0 - positive, positive))

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return class 1 where its probability is above one half."""
        above = self.decision_function(X, sensitive_features=sensitive_features) > 0.0
        return np.asarray(self.classes_[above.astype(int)])

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _initial_logits(self, X: Any) -> NDArray[np.float64]:
        model = self.initial_estimator_
        return np.asarray(X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0], dtype=np.float64)

    def _trained_logits(self, X: Any, sensitive_features: Any) -> NDArray[np.float64]:
        if len(self.coef_) == 1:
            return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)
        if sensitive_features is None:
            raise ValueError("This model has weights for each group (group_specific=True): pass sensitive_features.")
        groups = self.groups_.encode(sensitive_features)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        return group_logits(X, self._theta, np.append(self.common_coef_, self.common_intercept_), groups)

    @property
    def compared_with_(self) -> str:
        """What each group is compared with: ``"each_other"``, ``"everyone"`` (beyond 20 groups) or ``"target"``."""
        check_is_fitted(self)
        if not self._options().each_other:
            return "target"
        return "each_other" if len(self.groups_) <= MAX_PAIRED_GROUPS else "everyone"

    @property
    def _theta(self) -> NDArray[np.float64]:
        return np.column_stack((self.coef_, self.intercept_))

    # ---------------------------------------------------------------- validating and storing

    def _options(self) -> TrainingOptions:
        return TrainingOptions.validated(self.get_params(deep=False), self._distance())

    def _training_data(self, X: Any, y: Any, *, options: TrainingOptions, **columns: Any) -> TrainingData:
        y, classes = two_classes(y, type(self).__name__)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        return validate_training_data(
            X,
            y,
            classes=classes,
            options=options,
            feature_names=getattr(self, "feature_names_in_", None),
            **columns,
        )

    def _features(self, X: Any, *, reset: bool = False) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)

    def _store(self, result: FitResult, classes: NDArray[Any]) -> None:
        """Store the result of a training, and emit its warnings."""
        self._store_start(result.initial, classes, result.groups, result.target, result.group_sizes)
        self.strata_ = result.strata
        self._store_weights(result.theta, result.common)
        self.parity_weight_, self.n_iter_ = result.parity_weight, result.n_iter
        self.information_kept_, self.before_after_ = result.information_kept, result.before_after
        self.history_, self.path_, self.spread_ = result.history, result.path, result.spread
        if result.duals is not None:
            self.duals_ = result.duals
        self.adjusting_ = result.memory
        self.outcome_ = result.outcome.text
        for message, category in result.outcome.warnings:
            warn_caller(message, category)

    def _store_start(
        self,
        initial: InitialModel,
        classes: NDArray[Any],
        groups: Groups,
        target: NDArray[np.float64],
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self.classes_, self.initial_estimator_, self.target_ = classes, initial.model, target
        self.groups_ = Groups.from_spec(groups.to_spec())
        self.group_sizes_ = groups.counts if sizes is None else sizes

    def _store_weights(self, theta: NDArray[np.float64], common: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        self.common_coef_, self.common_intercept_ = common[:-1].copy(), float(common[-1])

    # ---------------------------------------------------------------- scikit-learn

    def _summary(self) -> list[str]:
        """Return what training gained and kept, and how it ended."""
        metrics = vars(self).get("before_after_")
        if metrics is None:
            return [str(self.outcome_)]
        changes = [
            f"{name.replace('_', ' ')} {metrics[name][0]:.3f} to {metrics[name][1]:.3f}" for name in _SUMMARY_METRICS
        ]
        kept = f"{self.information_kept_:.0%} of the information kept"
        return [f"{', '.join(changes)} on training rows; {kept}", str(self.outcome_)]

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), self._summary)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _mixed_logits(initial: NDArray[np.float64], trained: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
    """Return the logit of the mean of two probabilities, exact also where both are near 0 or 1."""
    with np.errstate(divide="ignore"):  # log of 0: the other one has all the weight
        less, more = np.log1p(-amount), np.log(amount)
    yes = np.logaddexp(less - np.logaddexp(0.0, -initial), more - np.logaddexp(0.0, -trained))
    no = np.logaddexp(less - np.logaddexp(0.0, initial), more - np.logaddexp(0.0, trained))
    return np.asarray(yes - no)
