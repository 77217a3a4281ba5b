"""LightGBM or XGBoost, trained towards demographic parity, equalized odds or conditional parity."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Floats
from fairtransport._sklearn import (
    DeferredAttributes,
    GroupedClassifierMixin,
    GroupedRegressorMixin,
    RowScoring,
    as_features,
    few_threads,
    fitted_summary_html,
)
from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.boosting._constants import SHARE_CHECKED
from fairtransport.boosting._libraries import default_estimator, library_of
from fairtransport.boosting._objective import learner_distance, make_loss
from fairtransport.boosting._search import HeldOutRows, RoundSearch, train
from fairtransport.boosting._settings import BoostedClasses, BoostedNumbers, GroupModels, PenaltySettings
from fairtransport.boosting._training_data import (
    TrainingData,
    check_eval_set,
    check_shape,
    check_target,
    check_training_data,
)
from fairtransport.criteria import Criterion, DemographicParity
from fairtransport.criteria.criterion import EACH_OTHER, as_criterion, criterion_name, needs_labels
from fairtransport.criteria.distance import Distance
from fairtransport.groups import UNKNOWN_GROUPS, GroupPolicy, Groups, check_policy
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.strata import Strata, make_strata
from fairtransport.training.evaluation import as_parameters_say, spread_points
from fairtransport.training.outcome import (
    Notice,
    describe_change,
    describe_criterion,
    describe_weight,
    notices_of_losses,
    within_chance,
)
from fairtransport.training.weight_path import check_budget
from fairtransport.transport.regularizers import sigmoid

if TYPE_CHECKING:
    from fairtransport.boosting._libraries import Library
    from fairtransport.boosting._search import PlainModel, Training


class TransportBoosting(DeferredAttributes, RowScoring, MetaEstimatorMixin, BaseEstimator):
    """Base class of `TransportBoostingClassifier` and `TransportBoostingRegressor`."""

    task: ClassVar[str]
    _response_class: ClassVar[type[BoostedClasses | BoostedNumbers]]
    _range: ClassVar[Any] = (0.0, 1.0)  # of the predictions

    def __init__(
        self,
        estimator: Any = None,
        *,
        distance: str | Distance = "auto",
        criterion: str | Criterion = "demographic_parity",
        parity_weight: float | str = "auto",
        max_disparity: float | None = None,
        amount: float = 1.0,
        spread: str = "trained",
        repair: QuantileRepair | None = None,
        target: Any = EACH_OTHER,
        scale: str = "standardized",
        smooth_groups: bool = True,
        n_iter_no_change: int | str | None = "auto",
        validation_fraction: float | None = None,
        groups: GroupPolicy | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.distance = distance
        self.criterion = criterion
        self.parity_weight = parity_weight
        self.max_disparity = max_disparity
        self.amount = amount
        self.spread = spread
        self.repair = repair
        self.target = target
        self.scale = scale
        self.smooth_groups = smooth_groups
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.groups = groups
        self.random_state = random_state

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen in ``fit``."""
        return np.asarray(self.estimator_.feature_names_in_)

    def _predictions(self, margins: Floats) -> Floats:
        """Return the predictions before any repair, in units of y."""
        raise NotImplementedError

    def _compare_by_y(self, rows: TrainingData, eval_rows: TrainingData | None) -> None:
        """Let strata contain ranges of y, where the criterion compares rows with a similar y."""

    def _criterion_in_training(self) -> Criterion:
        """Return the criterion, given what strata contain."""
        return as_criterion(self.criterion)

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
        """Train towards the criterion."""
        self._check_parameters(strata)
        owner = type(self).__name__
        library = self._library()
        response = self._response_class.of(y, sample_weight, library, owner)
        X = as_features(X)
        rows = check_training_data(
            X, response.read(y, owner), sensitive_features, sample_weight, owner=owner, strata=strata,
            repair=self.repair is not None, policy=check_policy(self.groups),
        )  # fmt: skip
        library.check_features(X)
        library.check_settings()
        check_target(self.target, rows.groups)
        rows.weights = response.row_weights(library, rows)
        rows = rows.in_canonical_order()
        known_strata = None if rows.strata is None else Strata.from_spec(rows.strata.to_spec())
        eval_rows = check_eval_set(eval_set, rows, response.read)
        if eval_rows is not None:
            library.check_features(eval_rows.X)
        self._compare_by_y(rows, eval_rows)
        is_open, is_default = isinstance(self.parity_weight, str), self.estimator is None
        library = library.sized(rows, self.n_iter_no_change, is_default=is_default, is_weight_open=is_open)
        criterion = self._criterion_in_training()
        penalty = PenaltySettings(criterion, self.target, self.distance, self.scale, self.smooth_groups)
        # The inner estimators are passed their options directly.
        with few_threads(rows.X), config_context(enable_metadata_routing=False):
            held_out = self._held_out_rows(library, rows, eval_rows)
            weight = None if is_open else float(self.parity_weight)
            choice, parts = None, np.full(rows.groups.n_rows, -1) if held_out is None else held_out.part_of_rows
            group_models = GroupModels(library, rows, penalty, parts)
            if held_out is not None:
                search = RoundSearch(library, penalty, held_out, response, group_models, is_weight_open=is_open)
                choice = search.choose(weight, self.max_disparity, check_policy(self.groups).min_size)
                if weight is not None and library.patience is None:  # the check does not change the model
                    group_models = GroupModels(library, rows, penalty, np.full_like(parts, -1))
            training = train(library, penalty, rows, choice, group_models, parity_weight=weight, response=response)
        self.__dict__.update(response.attributes | training.attributes)
        self.groups_, self.group_sizes_ = Groups.from_spec(rows.groups.to_spec()), rows.groups.counts
        self.strata_ = known_strata
        predictions = self._predictions(training.margins)
        self._defer({
            "initial_estimator_": training.plain.model,
            "spread_": partial(self._spread, predictions, training.plain, rows, response.bounds),
        })  # fmt: skip
        if training.plain.is_fitted:  # then nothing is left that needs the rows
            for name in list(self._deferred):
                getattr(self, name)
        self.repair_ = None if self.repair is None else self._fit_repair(predictions, rows)
        rows_used = "training rows" if held_out is None else held_out.name
        if library.patience is None:
            ending = f"ran all {self.n_iter_} rounds"
        else:
            ending = f"stopped after {self.n_iter_} rounds, the best on {rows_used}"
        notice = self._describe(training, response, ending, rows_used).at_full_amount(self.amount)
        self.outcome_ = notice.text
        notice.warn()
        return self

    def _describe(
        self, training: Training, response: BoostedClasses | BoostedNumbers, ending: str, rows: str
    ) -> Notice:
        """Describe rounds, weight, what parity cost and what was not reached, in the words of the linear estimators."""
        remedy = f"Repair (repair=QuantileRepair(), or {response.repair})"
        choice, change = training.choice, training.choice.change
        if training.is_within_chance and self.parity_weight_ == 0.0:
            start = within_chance()
            if change is not None and change.evidence.shows_difference:  # the test of training rows is the stricter one
                start = "groups of the training rows differ too little to be told from chance; nothing was moved"
            outcome = Notice(f"{start}; {ending}")
        else:
            losses = Notice()
            if self.parity_weight_ > 0.0:
                # Shrinking gains nothing on the standardized scale: few rounds may spread scores less, that is all.
                excess = training.metrics.excess if self.scale == "score" else 0.0
                losses = notices_of_losses(training.metrics.information_kept, self.before_after_, excess, response)
            outcome = describe_weight(
                Notice(ending), losses,
                parity_weight=self.parity_weight_, metrics=training.metrics, reason=choice.reason,
                reached=choice.reached, max_disparity=self.max_disparity, remedy=remedy, rows=rows, change=change,
            )  # fmt: skip
        if change is not None:
            is_full = isinstance(self.parity_weight, str) and self.max_disparity is self.repair is None
            advice = f"{remedy} with the group at hand goes further." if self.repair is None else ""
            change, is_everywhere = replace(change, is_full=is_full), training.compared.is_everywhere
            outcome = describe_change(outcome, change, "Training for parity", advice, states_limit=is_everywhere)
        return describe_criterion(outcome, self.criterion, training.compared)

    def _library(self) -> Library:
        """Return the library of the estimator, with a clone of it that has a seed."""
        estimator = default_estimator(self.task) if self.estimator is None else self.estimator
        library = library_of(estimator, self.task)
        library.estimator = clone(estimator)
        if self.random_state is not None and estimator.get_params().get("random_state", 0) is None:
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            library.estimator.set_params(random_state=int(seed))
        return library

    def _held_out_rows(
        self, library: Library, rows: TrainingData, eval_rows: TrainingData | None
    ) -> HeldOutRows | None:
        """Return the rows on which rounds and weight are chosen or, where both are given, checked; None without any."""
        if eval_rows is not None:
            return HeldOutRows.given(rows, eval_rows.in_canonical_order())
        if library.patience is not None or isinstance(self.parity_weight, str):
            return HeldOutRows.of(rows, self.validation_fraction)
        held_out = HeldOutRows.of(rows, self.validation_fraction or SHARE_CHECKED)
        return held_out if held_out.is_new and self.parity_weight > 0.0 else None

    def _spread(
        self, predictions: Floats, plain: PlainModel, rows: TrainingData, bounds: tuple[float, float] | None
    ) -> Floats:
        initial = self._predictions(plain.margins())
        return spread_points(predictions, initial, rows.groups.rows, rows.weights, bounds)

    def _fit_repair(self, predictions: Floats, rows: TrainingData) -> QuantileRepair:
        repair = clone(self.repair).set_params(range=self._range, groups=self.groups)
        return repair.fit(predictions, sensitive_features=rows.groups, sample_weight=rows.weights)

    def _check_parameters(self, strata: Any) -> None:
        as_criterion(self.criterion)
        check_budget(self.get_params(deep=False))
        learner_distance(self.distance, within=False, is_logistic=False)
        check_flag(self.smooth_groups, name="smooth_groups")
        self._check_repair(strata)
        if isinstance(self.n_iter_no_change, str):
            check_choice(self.n_iter_no_change, ("auto",), name="n_iter_no_change")
        elif self.n_iter_no_change is not None:
            check_count(self.n_iter_no_change, name="n_iter_no_change")
        if self.validation_fraction is not None:
            check_real(self.validation_fraction, name="validation_fraction", strict=True, most=0.5)
        check_policy(self.groups)

    def _check_repair(self, strata: Any) -> None:
        if self.repair is None:
            return
        if not isinstance(self.repair, QuantileRepair):
            raise TypeError(f"repair must be None or a QuantileRepair; got a {type(self.repair).__name__}.")
        if strata is not None or any(needs_labels(one.criterion) for one in (self, self.repair)):
            raise ValueError(
                "repair moves scores towards demographic parity, which undoes another criterion or conditional parity. "
                "Leave it out, or use QuantileRepairClassifier with that criterion."
            )

    def _margins(self, X: Any, *, plain: bool = False) -> Floats:
        """Return the margins of the fitted model, or of the plain one."""
        check_is_fitted(self)
        check_shape(X, self.n_features_in_, owner=type(self).__name__)
        model = self.initial_estimator_ if plain else self.estimator_
        X = as_features(X, self)
        if hasattr(model, "margins"):  # of a model file
            return np.asarray(model.margins(X), dtype=np.float64)
        return library_of(model, self.task).margins(model, X)

    def _scores(self, X: Any, sensitive_features: Any, unknown_group: str = "error") -> Floats:
        """Return the predictions: spread, repaired and mixed with those of the plain model, as parameters say."""
        check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        scores = self._predictions(self._margins(X))
        if self.repair_ is not None:
            if self.spread == "initial":
                raise ValueError("spread='initial' cannot be combined with a repair, which has a spread of its own.")
            if sensitive_features is None:
                raise ValueError(
                    "The scores of this model are repaired group by group: pass sensitive_features=, with the columns "
                    "used in fit; or fit without a repair."
                )
            options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
            if self.repair is not None:  # its amount may be set after fit
                self.repair_.amount = self.repair.amount
            scores = np.asarray(self.repair_.transform(scores, **options))
        return as_parameters_say(self, scores, lambda: self._predictions(self._margins(X, plain=True)), logits=False)

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), lambda: [self.outcome_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class TransportBoostingClassifier(GroupedClassifierMixin, TransportBoosting):
    r"""Boosted trees whose scores have the same distribution for all groups: LightGBM or XGBoost with a penalty.

    Minimises the log-loss plus ``parity_weight`` times the transport distances between the groups' scores.

    Parameters
    ----------
    estimator : LGBMClassifier or XGBClassifier, optional
        The unfitted model, which is cloned; all of its settings but the objective are used. By default LightGBM.
        Features may be whatever it accepts: data frames, categorical columns, missing values. Where the number of
        rounds and the learning rate, or the size of trees, are at the library's defaults, they are chosen by the number
        of rows, and of rows with the rarer label; without an estimator, each tree also sees half of the columns (.62 of
        sparse ones where the weight is chosen, too).
    distance : {"auto", "continuous", "discrete"}, ContinuousDistance or DiscreteDistance, default="auto"
        As in `TransportClassifier`. ``"auto"`` is the continuous distance, and the discrete one where groups are
        compared within labels or strata, whose differences are small: the continuous one is flat there.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with the positive label; with
        ``strata`` in ``fit``, within strata (conditional parity).
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, in the unit of `TransportClassifier`. ``"auto"`` takes the smallest weight at which the
        rank disparity of held-out rows is at its noise floor, or beyond which it no longer falls, but keeps at least
        half of the plain model's information; ``outcome_`` says which. Where the disparity of held-out rows does not
        fall, the plain model is kept, with a warning.
    max_disparity : float, optional
        Take the smallest weight at which the criterion's disparity of held-out rows (mean over pairs of groups) is at
        most this, instead.
    amount : float, default=1.0
        Share of the trained model's scores in their weighted mean with the plain model's. It can be set after ``fit``.
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` maps the scores to the spread of the plain model's, by one increasing map. It can be set after
        ``fit``.
    repair : QuantileRepair, optional
        Repair the trained scores towards demographic parity, too; then the group is needed at prediction.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed at the plain model, as in
        `TransportClassifier`.
    scale : {"standardized", "score"}, default="standardized"
        Compare scores in units of their standard deviation, so that shrinking all of them gains nothing, or as they
        are.
    smooth_groups : bool, default=True
        Let a row count for each group with the probability of the group given the row's features (and label, if the
        criterion compares labels), estimated by cross-fitting. If the group is not among the features, this prevents
        overfitting to the groups of the training rows. Where features tell the group of more than 10,000 rows, a row
        counts for its own.
    n_iter_no_change : int, "auto" or None, default="auto"
        Stop when log-loss plus penalty on held-out rows has not improved for this many rounds, and train on all rows
        with the best number of rounds. Rounds before the penalty has its full weight do not count. ``"auto"`` is 2
        divided by the learning rate, and None, all rounds, where ``estimator`` says how many. Where it does not,
        rounds are chosen with twice the learning rate, and one stands for 2.5; with three times, and one stands for
        4.3, where the weight of up to 10,000 rows is chosen, too, and the plain model takes many.
    validation_fraction : float, optional
        Share of the rows on which rounds and weight are chosen, unless ``fit`` is passed an ``eval_set``. By default
        each row is held out once, in three folds; of more than 10,000 rows, a fifth. Where both are given, a model
        without these rows (by default a third) is compared with a plain one, for ``before_after_`` and warnings.
    groups : GroupPolicy, optional
        How sensitive columns become groups, as in `TransportClassifier`.
    random_state : int, RandomState or None
        Seed of ``estimator``, if it is passed without one. Nothing else depends on a seed: rows are put into an order,
        and dealt into folds, by their content.

    Attributes
    ----------
    estimator_ : LGBMClassifier or XGBClassifier
        The fitted model of classes 0 and 1. Its ``predict_proba`` is that of this classifier before any repair, and
        its booster can be saved and served like any other. It contains nothing about the groups.
    initial_estimator_ : LGBMClassifier or XGBClassifier
        The plain model, trained without a penalty. Where rounds or weight are chosen for more than 10,000 rows, it is
        trained when it is first asked for (by an ``amount`` below 1, a copy or a file), from the rows in memory.
    before_after_ : dict
        ``log_loss``, ``auc``, ``spread`` (standard deviation of the scores), ``disparity`` (the criterion's) and
        ``rank_disparity``, by the plain and by the trained model: on held-out rows, or on training rows without any.
    path_ : dict of ndarray
        ``weight``, ``disparity``, ``rank_disparity``, ``information_kept`` and ``log_loss`` of each weight tried.
    history_ : dict of ndarray
        ``round``, ``disparity`` (the penalised sum of Wasserstein-1 distances) and ``loss`` of held-out rows, if any.
    parity_weight_, unit_ : float
        The weight that was used, and the factor of the sum of distances at weight 1.
    information_kept_ : float
        Share of what the plain model explains of y that the trained one explains.
    outcome_ : str
        What happened, in words.
    n_iter_ : int
        Number of rounds of the fitted model.
    spread_ : ndarray of shape (2, n_points)
        The map of ``spread="initial"``; its points are means of five rows or more.
    repair_ : QuantileRepair or None
        The fitted repair of the scores.
    groups_, group_sizes_, strata_ : Groups, ndarray, Strata or None
        Groups, how many rows each had, and strata, all without rows.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    TransportObjective : The same penalty for ``xgboost.train`` and ``lightgbm.train``.
    fairtransport.TransportClassifier : The same penalty for linear models.
    fairtransport.QuantileRepairClassifier : Repairs the scores of any classifier.

    Notes
    -----
    With margins z, labels y and n rows, the objective is

    .. math:: \frac{1}{n} \sum_i \mathrm{logloss}(z_i, y_i) + w u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T, :math:`\omega` and u as in `TransportClassifier`, u measured by plain models. A booster is then trained from the
    start with `TransportObjective`: a quarter of its rounds without the penalty (a twentieth on more than 10,000 rows),
    whose weight w then increases up to three quarters of them. Rounds and weight are chosen on held-out rows by
    boosters with the same seeds, and the chosen model is trained anew on all rows.

    If the group is unknown at prediction, leave the sensitive columns out of the features and use no ``repair``.
    If it is known, combine a small ``parity_weight`` with a repair of amount 0.5 to 1.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from fairtransport.boosting import TransportBoostingClassifier
    >>> from fairtransport.metrics import pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> trees = LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1)
    >>> plain, fair = (
    ...     TransportBoostingClassifier(trees, parity_weight=w, random_state=0).fit(X, y, sensitive_features=group)
    ...     for w in (0.0, 1.0)
    ... )
    >>> before, after = (
    ...     pairwise_disparity(model.predict_proba(X)[:, 1], sensitive_features=group) for model in (plain, fair)
    ... )
    >>> bool(after < before / 2)
    True
    """

    task = "classification"
    _response_class = BoostedClasses

    def _predictions(self, margins: Floats) -> Floats:
        return sigmoid(margins)

    def decision_function(self, X: Any) -> Floats:
        """Return the logit of class 1, before any repair."""
        return as_parameters_say(self, self._margins(X), lambda: self._margins(X, plain=True), logits=True)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> Floats:
        """Return the probabilities of the two classes.

        ``sensitive_features`` are required with a ``repair`` and ignored otherwise. Rows of a group that ``fit`` did
        not see raise ValueError, or are predicted as everyone ("pooled") or as the largest group ("common").
        """
        positive = self._scores(X, sensitive_features, unknown_group)
        return np.column_stack((1.0 - positive, positive))


class TransportBoostingRegressor(GroupedRegressorMixin, TransportBoosting):
    r"""Boosted trees whose predictions have the same distribution for all groups: LightGBM or XGBoost with a penalty.

    Minimises the loss plus ``parity_weight`` times the transport distances between the groups' predictions.

    Parameters
    ----------
    estimator : LGBMRegressor or XGBRegressor, optional
        The unfitted model, which is cloned, with all of its settings. Its objective is the loss: squared error (the
        default of both libraries), absolute error, Poisson or Tweedie. By default LightGBM.
    distance : {"auto", "continuous", "discrete"}, ContinuousDistance or DiscreteDistance, default="auto"
        ``"auto"`` is the continuous distance, and the discrete one within strata.
    criterion : {"demographic_parity", "equalized_odds"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, or those with a similar y, which is cut at quantiles.
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, where the loss has weight 1.
    max_disparity : float, optional
        Limit of the criterion's disparity of held-out rows, in units of y.
    amount, spread, repair, target, scale, smooth_groups, n_iter_no_change, validation_fraction, groups, random_state
        As in `TransportBoostingClassifier`.

    Attributes
    ----------
    estimator_, initial_estimator_ : LGBMRegressor or XGBRegressor
        The fitted and the plain model of y less ``y_center_``, divided by ``y_scale_``, without the groups.
    y_center_, y_scale_ : float
        Mean and standard deviation of y; 0 and the mean for the Poisson and the Tweedie loss.
    loss_ : {"squared_error", "absolute_error", "poisson", "tweedie"}
        The loss.
    before_after_ : dict
        ``loss``, ``r2``, ``spread``, ``disparity`` (in units of y), ``standardized_disparity`` (in standard deviations
        of y) and ``rank_disparity``, by the plain and by the trained model.
    path_, history_, parity_weight_, unit_, information_kept_, outcome_, n_iter_, spread_, repair_
        As in `TransportBoostingClassifier`, with ``loss`` for ``log_loss``; so are the groups and strata.

    See Also
    --------
    TransportBoostingClassifier : The same for two classes.
    TransportObjective : The same penalty for ``xgboost.train`` and ``lightgbm.train``.

    Notes
    -----
    Trees are trained on y less its mean, divided by its standard deviation, so that nothing depends on the unit of y:
    fits on y and on 1000 y + 5 give the same model up to that map (for the Poisson and the Tweedie loss, on y and on
    1000 y). With a logarithmic link (Poisson, Tweedie) the exponentials of the margins are compared, not the margins.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMRegressor
    >>> from fairtransport.boosting import TransportBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> price = 1000.0 * (X @ [1.0, 1.0, 0.5] + rng.normal(size=2000))
    >>> trees = LGBMRegressor(n_estimators=60, num_leaves=8, verbose=-1)
    >>> plain, fair = (
    ...     TransportBoostingRegressor(trees, parity_weight=w, random_state=0).fit(X, price, sensitive_features=group)
    ...     for w in (0.0, 1.0)
    ... )
    >>> bool(fair.before_after_["disparity"][1] < plain.before_after_["disparity"][1] / 2)
    True
    """

    task = "regression"
    _response_class = BoostedNumbers
    _range = "learned"

    def _check_parameters(self, strata: Any) -> None:
        super()._check_parameters(strata)
        if criterion_name(self.criterion) == "equal_opportunity":
            raise ValueError(
                "equal_opportunity compares people with the positive label, and a regression has none. Use "
                "criterion='equalized_odds', which compares people with a similar y."
            )

    def _compare_by_y(self, rows: TrainingData, eval_rows: TrainingData | None) -> None:
        if not needs_labels(self.criterion):
            return
        rows.strata = make_strata(_with_y(rows), n_groups=len(rows.groups))
        if eval_rows is not None:
            eval_rows.strata = rows.strata.encode(_with_y(eval_rows))

    def _criterion_in_training(self) -> Criterion:
        return DemographicParity(as_criterion(self.criterion).stratum_weight)  # strata contain ranges of y

    def _predictions(self, margins: Floats) -> Floats:
        return np.asarray(self.y_center_ + self.y_scale_ * make_loss(self.loss_).predictions(margins))

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> Floats:
        """Return the predictions, in units of y; ``sensitive_features`` are required with a ``repair`` only."""
        return self._scores(X, sensitive_features, unknown_group)


def _with_y(rows: TrainingData) -> dict[str, Any]:
    """Return the strata of the rows and y, as columns to cross."""
    if rows.strata is None:
        return {"y": rows.labels}
    return {"strata": rows.strata.codes.astype(str), "y": rows.labels}
