"""A LightGBM or XGBoost classifier, trained towards demographic parity, equalized odds or conditional parity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.folds import make_folds
from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.boosting._backends import Library, TrainingRun, ValidationRows, default_estimator, library_of
from fairtransport.boosting._compared_rows import ComparedRows, Targets, check_target
from fairtransport.boosting._early_stopping import EarlyStopping
from fairtransport.boosting._group_probabilities import estimate_group_probabilities
from fairtransport.boosting._objective import KINDS, TransportObjective, make_distance, measure_unit
from fairtransport.boosting._training_data import TrainingData, check_eval_set, check_shape, check_training_data
from fairtransport.criteria import CRITERIA, EACH_OTHER, STRATUM_WEIGHTS, criterion_text
from fairtransport.groups import Groups
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.strata import Strata
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.penalties import Comparisons

__all__ = ["TransportBoostingClassifier"]

_INITIAL_ROUNDS = 50  # of the plain model by which the unit of parity_weight is measured
_RAMP = 0.75  # share of the rounds over which the penalty increases to its full weight
_REPAIR_TARGET = "barycenter_w2"


class TransportBoostingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Boosted trees whose scores have the same distribution for all groups: LightGBM or XGBoost with a penalty.

    Minimises the log-loss plus ``parity_weight`` times the transport distances between the groups' scores.

    Parameters
    ----------
    estimator : LGBMClassifier or XGBClassifier, optional
        The unfitted model, which is cloned; all of its settings but the objective are used. By default LightGBM with
        200 rounds, each on a random half of the columns. Features may be whatever it accepts: data frames, categorical
        columns, missing values.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with the positive label. With
        ``strata`` in ``fit``, groups are compared within strata (conditional parity).
    stratum_weight : {"equal", "share"}, optional
        Whether labels and strata count the same or by their share of the rows. By default labels count the same and
        strata by share.
    parity_weight : float, default=3.0
        Weight of the penalty against weight 1 of the log-loss. It has no unit: at 1 the whole disparity of a plain
        model counts as much as its whole gain in log-loss over a constant. 0 is no parity, the library's own model.
    repair_amount : float, default=0.0
        Apply `QuantileRepair` to the scores, towards the Wasserstein-2 barycenter weighted by group size: 1 is the
        full repair, a number between 0 and 1 that part of the way, 0 no repair. Above 0 the group is needed at
        prediction. It is a repair towards demographic parity, so it cannot be combined with another criterion.
    kind : {"continuous", "discrete"}, default="continuous"
        Regularized transport through dual potentials (continuous optimal transport, COT), or the Wasserstein-1
        distance between sorted scores (discrete optimal transport, DOT). Differences between people with the same
        label are small, and there the regularized distance is flat: for equalized odds and equal opportunity use
        ``"discrete"``, with a ``parity_weight`` of about 1.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed at the plain model: the equal-weight
        Wasserstein-1 barycenter (the paper's), the Wasserstein-2 barycenter weighted by group size, everyone, one
        group's scores, or given scores.
    smooth_groups : bool, default=True
        Let a row count for each group with the probability of the group given the row's features, which two small
        models estimate by cross-fitting; two for each label if the criterion compares rows with the same label. If the
        group is not among the features, this prevents overfitting to the groups of the training rows.
    n_iter_no_change : int, optional
        Stop when log-loss plus penalty on validation rows has not improved for this many rounds, and keep the best
        round. Rounds before the penalty has its full weight do not count. By default all rounds are run.
    validation_fraction : float, default=0.1
        Share of the rows that is held out for ``n_iter_no_change``, unless ``fit`` is passed an ``eval_set``.
    regularizer, strength, opposite_duals, n_fourier_features, kernel_variance
        Of ``kind="continuous"``, as in `ContinuousTransportClassifier`. The defaults of ``strength``, 0.4, and
        ``kernel_variance``, 0.02, differ because boosted trees reach a lower error at equal disparity with them.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several sensitive columns, or let each value of each column be a group (groups overlap; no repair).
    missing : {"error", "group"}, default="error"
        A missing sensitive value raises, or is a group of its own.
    small_groups : {"keep", "pool", "drop"}, default="keep"
        Treatment of groups with fewer than ``min_group_size`` rows, as in `ContinuousTransportClassifier`.
    min_group_size : int, default=30
        See ``small_groups``.
    random_state : int, RandomState or None
        Seed of the cross-fitting of ``smooth_groups``, of the held-out rows, and of ``estimator`` if it has no seed.

    Attributes
    ----------
    estimator_ : LGBMClassifier or XGBClassifier
        The fitted model of classes 0 and 1. Its ``predict_proba`` is that of this classifier before any repair, and
        its booster can be saved and served like any other. It contains nothing about the groups.
    repair_ : QuantileRepair or None
        The repair of the scores, if ``repair_amount`` is above 0.
    groups_ : Groups
        The groups seen, without their rows.
    strata_ : Strata or None
        The strata seen, without their rows.
    unit_ : float
        Factor of the sum of distances at ``parity_weight`` 1.
    n_iter_ : int
        Number of rounds of the fitted model.
    history_ : dict of ndarray
        ``round``, ``disparity`` (sum over pairs of Wasserstein-1 distances, weighted over labels and strata) and
        ``loss`` (log-loss) on the validation rows; empty without any.
    outcome_ : str
        What happened, in words.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    TransportObjective : The same penalty for ``xgboost.train`` and ``lightgbm.train``.
    fairtransport.ContinuousTransportClassifier : The same penalty for linear models.
    fairtransport.QuantileRepairClassifier : Repairs the scores of any classifier.

    Notes
    -----
    With margins z, scores :math:`s = \sigma(z)`, labels y and n rows, the objective is

    .. math:: \frac{1}{n} \sum_i \mathrm{logloss}(z_i, y_i) + w u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T a transport distance ([1]_, Eq. 4) between the scores of two groups, or of their rows within each label or
    stratum, :math:`\omega` the weights of the pairs by reliability, and u the unit, as in
    `ContinuousTransportClassifier`. A plain model of 50 rounds is trained first to measure u. Then the booster is
    trained from the start with `TransportObjective`, whose weight w increases over the first three quarters of the
    rounds.

    If the group is unknown at prediction, leave the sensitive columns out of the features and use ``repair_amount=0``.
    If it is known, combine a small ``parity_weight`` with a ``repair_amount`` between 0.5 and 1.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from fairtransport.boosting import TransportBoostingClassifier
    >>> from fairtransport.metrics import strong_pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> trees = LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1)
    >>> plain, fair = (
    ...     TransportBoostingClassifier(trees, parity_weight=w, random_state=0).fit(X, y, sensitive_features=group)
    ...     for w in (0.0, 3.0)
    ... )
    >>> before, after = (
    ...     strong_pairwise_disparity(model.predict_proba(X)[:, 1], sensitive_features=group) for model in (plain, fair)
    ... )
    >>> bool(after < before / 2)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        criterion: str = "demographic_parity",
        stratum_weight: str | None = None,
        parity_weight: float = 3.0,
        repair_amount: float = 0.0,
        kind: str = "continuous",
        target: Any = EACH_OTHER,
        smooth_groups: bool = True,
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        regularizer: str = "l2",
        strength: float = 0.4,
        opposite_duals: bool = True,
        n_fourier_features: int = 50,
        kernel_variance: float = 0.02,
        grouping: str = "crossed",
        missing: str = "error",
        small_groups: str = "keep",
        min_group_size: int = 30,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.stratum_weight = stratum_weight
        self.parity_weight = parity_weight
        self.repair_amount = repair_amount
        self.kind = kind
        self.target = target
        self.smooth_groups = smooth_groups
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.regularizer = regularizer
        self.strength = strength
        self.opposite_duals = opposite_duals
        self.n_fourier_features = n_fourier_features
        self.kernel_variance = kernel_variance
        self.grouping = grouping
        self.missing = missing
        self.small_groups = small_groups
        self.min_group_size = min_group_size
        self.random_state = random_state

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen in ``fit``."""
        return np.asarray(self.estimator_.feature_names_in_)

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | None = None,
    ) -> Self:
        """Train towards the criterion.

        Parameters
        ----------
        X : table or matrix with n rows
            Whatever ``estimator`` accepts.
        y : array-like of shape (n,)
            Two classes; the larger label is class 1.
        sensitive_features : column, table or Groups
            One or more sensitive columns; several are crossed. They need not be among the features.
        strata : column, table or Strata, optional
            One or more columns within whose values groups are compared (conditional parity). Several are crossed, and
            numbers are cut at quantiles; see `fairtransport.strata.make_strata`. They are not needed at prediction.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the log-loss and for the groups' distributions.
        eval_set : (X, y, sensitive_features) or (X, y, sensitive_features, strata), optional
            Validation rows for ``history_`` and for early stopping; with strata if there are any.

        Returns
        -------
        self
        """
        self._check_parameters(strata)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=4)
        library, estimator = self._unfitted(int(seeds[0]))
        rows, classes = check_training_data(
            X, y, sensitive_features, sample_weight, strata=strata, repair=self.repair_amount > 0.0,
            grouping=self.grouping, missing=self.missing, small_groups=self.small_groups,
            min_group_size=self.min_group_size,
        )  # fmt: skip
        library.check_features(X)
        check_target(self.target, rows.groups)
        rows.weights = library.absorb_class_weights(estimator, classes, rows.labels, rows.weights)
        groups = Groups.from_spec(rows.groups.to_spec())
        known_strata = None if rows.strata is None else Strata.from_spec(rows.strata.to_spec())
        eval_rows = check_eval_set(eval_set, rows, classes)
        if eval_rows is not None:
            library.check_features(eval_rows.X)
        if eval_rows is None and self.n_iter_no_change is not None:
            rows, eval_rows = self._split(rows, int(seeds[1]))
        with config_context(enable_metadata_routing=False):  # the inner estimators are passed their options directly
            compared = rows.compare(self.criterion, self.stratum_weight)
            unit, comparisons, targets = self._measure_unit(library, estimator, rows, compared)
            n_rounds = library.n_rounds(estimator)
            probabilities = None
            if self.smooth_groups and unit > 0.0:
                probabilities = estimate_group_probabilities(library, estimator, rows, compared, int(seeds[2]))
            objective = self._objective(rows, n_rounds, unit, comparisons, group_probabilities=probabilities)
            validation = self._validation_rows(eval_rows, unit, targets, objective.ramp)
            run = TrainingRun(rows.X, rows.labels, rows.weights, rows.positive_rate, objective, validation)
            plain = unit == 0.0 and validation is None
            model = library.fit_plain(estimator, run) if plain else library.fit_objective(estimator, run)
            repair = (
                self._fit_repair(sigmoid(library.margins(model, rows.X)), rows) if self.repair_amount > 0.0 else None
            )
        self.estimator_, self.classes_, self.groups_, self.unit_ = model, classes, groups, unit
        self.strata_, self.repair_ = known_strata, repair
        stopping = None if validation is None else validation.stopping
        self.history_ = {} if stopping is None else stopping.history()
        self._describe_outcome(n_rounds, stopping, compared)
        return self

    def _unfitted(self, seed: int) -> tuple[Library, Any]:
        """Return the library, and a clone of the estimator with a seed if it has none."""
        estimator = default_estimator(seed) if self.estimator is None else self.estimator
        library = library_of(estimator)
        estimator = clone(estimator)
        if self.random_state is not None and estimator.get_params().get("random_state", 0) is None:
            estimator.set_params(random_state=seed)
        return library, estimator

    def _split(self, rows: TrainingData, seed: int) -> tuple[TrainingData, TrainingData]:
        """Hold out validation rows, stratified by group and label."""
        n_folds = max(2, round(1.0 / self.validation_fraction))
        rng = np.random.default_rng(seed)
        fold = make_folds(n_folds, rows.X, rows.labels > 0, rows.groups, rng=rng, weights=rows.weights)[0]
        return rows.select(fold.training), rows.select(fold.held_out)

    def _validation_rows(
        self, rows: TrainingData | None, unit: float, targets: Targets | None, ramp: int
    ) -> ValidationRows | None:
        if rows is None:
            return None
        stopping = EarlyStopping(
            rows.labels,
            rows.compare(self.criterion, self.stratum_weight).comparisons(targets),
            penalty_weight=self.parity_weight * unit,
            first_round=ramp,
            n_iter_no_change=self.n_iter_no_change,
        )
        return ValidationRows(rows.X, rows.labels, stopping)

    def _fit_repair(self, scores: NDArray[np.float64], rows: TrainingData) -> QuantileRepair:
        repair = QuantileRepair(
            _REPAIR_TARGET,
            float(self.repair_amount),
            small_groups=self.small_groups,
            min_group_size=self.min_group_size,
        )
        return repair.fit(scores, sensitive_features=rows.groups, sample_weight=rows.weights)

    def _measure_unit(
        self, library: Library, estimator: Any, rows: TrainingData, compared: ComparedRows
    ) -> tuple[float, Comparisons, Targets | None]:
        """Train a plain model, and return the unit, the comparisons weighed by reliability and the fixed targets."""
        if self.parity_weight == 0.0:
            return 0.0, compared.comparisons(), None
        model = library.auxiliary_model(estimator, min(_INITIAL_ROUNDS, library.n_rounds(estimator)))
        model.fit(rows.X, rows.labels, sample_weight=rows.weights)
        scores = sigmoid(library.margins(model, rows.X))
        targets = compared.fixed_targets(self.target, scores)
        distance = make_distance(self.kind, **self._dual_options)
        unit, comparisons = measure_unit(distance, rows.labels, scores, compared.comparisons(targets))
        return unit, comparisons, targets

    @property
    def _dual_options(self) -> dict[str, Any]:
        names = ("regularizer", "strength", "opposite_duals", "n_fourier_features", "kernel_variance")
        return {name: getattr(self, name) for name in names}

    def _objective(
        self,
        rows: TrainingData,
        n_rounds: int,
        unit: float,
        comparisons: Comparisons,
        *,
        group_probabilities: NDArray[np.float32] | None,
    ) -> TransportObjective:
        return TransportObjective(
            rows.groups,
            criterion=self.criterion,
            strata=rows.strata,
            stratum_weight=self.stratum_weight,
            parity_weight=float(self.parity_weight),
            kind=self.kind,
            ramp=max(1, round(_RAMP * n_rounds)),
            group_probabilities=group_probabilities,
            unit=unit,
            comparisons=comparisons,
            **self._dual_options,
        )

    def _describe_outcome(self, n_rounds: int, stopping: EarlyStopping | None, compared: ComparedRows) -> None:
        best = None if stopping is None else stopping.stopped_at()
        self.n_iter_ = n_rounds if best is None else best
        self.outcome_ = f"ran all {n_rounds} rounds"
        if stopping is not None and best is not None:
            self.outcome_ = f"stopped after {len(stopping.records)} of {n_rounds} rounds; round {best} was best"
        if self.unit_ == 0.0 < self.parity_weight:
            self.outcome_ = f"the groups of a plain model differ no more than by chance; {self.outcome_}"
        if self.strata_ is None and self.criterion == "demographic_parity":
            return
        resolved, text = compared.resolved, criterion_text(self.criterion, has_strata=self.strata_ is not None)
        if self.strata_ is not None:
            aside = f", {len(resolved.set_aside)} set aside" if resolved.set_aside else ""
            text += f" ({len(resolved.compared)} strata{aside})"
        self.outcome_ = f"{text}: {self.outcome_}"

    # ---------------------------------------------------------------- checks

    def _check_parameters(self, strata: Any) -> None:
        check_choice(self.criterion, CRITERIA, name="criterion")
        if self.stratum_weight is not None:
            check_choice(self.stratum_weight, STRATUM_WEIGHTS, name="stratum_weight")
        check_real(self.parity_weight, name="parity_weight")
        check_choice(self.kind, KINDS, name="kind")
        check_flag(self.smooth_groups, name="smooth_groups")
        check_real(self.repair_amount, name="repair_amount", most=1.0)
        if self.repair_amount > 0.0 and (strata is not None or self.criterion != "demographic_parity"):
            raise ValueError(
                "repair_amount repairs scores towards demographic parity, which undoes another criterion or "
                "conditional parity. Use repair_amount=0, or QuantileRepairClassifier with that criterion."
            )
        if self.n_iter_no_change is not None:
            check_count(self.n_iter_no_change, name="n_iter_no_change")
        check_real(self.validation_fraction, name="validation_fraction", strict=True, most=0.5)
        check_count(self.min_group_size, name="min_group_size")

    # ---------------------------------------------------------------- predicting

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the logit of class 1, before any repair.

        Parameters
        ----------
        X : table or matrix with n rows

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        check_shape(X, self.n_features_in_)
        return library_of(self.estimator_).margins(self.estimator_, X)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the probabilities of the two classes.

        Parameters
        ----------
        X : table or matrix with n rows
        sensitive_features : column, table or Groups, optional
            Required if ``repair_amount`` is above 0, ignored otherwise. A group not seen in ``fit`` raises.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        positive = sigmoid(self.decision_function(X))
        if self.repair_ is not None:
            if sensitive_features is None:
                raise ValueError(
                    "The scores of this model are repaired group by group: pass sensitive_features=, with the columns "
                    "used in fit; or fit with repair_amount=0."
                )
            positive = self.repair_.transform(positive, sensitive_features=sensitive_features)
        return np.column_stack((1.0 - positive, positive))

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the predicted classes: class 1 if its probability is above one half; see `predict_proba`."""
        above = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1] > 0.5
        return np.asarray(self.classes_[above.astype(int)])

    def score(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), lambda: [self.outcome_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        tags.classifier_tags.multi_class = False
        return tags
