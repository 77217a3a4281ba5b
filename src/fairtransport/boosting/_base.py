"""What boosted classifiers and regressors share: parameters, training with the penalty, and the reported outcome."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn import RowScoring, as_features, fitted_summary_html
from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport._warnings import warn_caller
from fairtransport.boosting._constants import TWEEDIE_POWER
from fairtransport.boosting._libraries import default_estimator, library_of, sized_settings
from fairtransport.boosting._objective import learner_distance
from fairtransport.boosting._search import HeldOutRows, RoundSearch, train
from fairtransport.boosting._settings import PenaltySettings, Settings
from fairtransport.boosting._training_data import (
    as_selectable,
    check_eval_set,
    check_shape,
    check_target,
    check_training_data,
)
from fairtransport.criteria.criterion import EACH_OTHER, as_criterion, needs_labels
from fairtransport.criteria.penalty import SCALES
from fairtransport.groups import UNKNOWN_GROUPS, GroupPolicy, Groups, check_policy
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.strata import Strata
from fairtransport.training.evaluation import metrics_before_and_after, spread_points, spread_scores
from fairtransport.training.outcome import (
    Notice,
    describe_criterion,
    describe_evidence,
    describe_weight,
    notices_of_losses,
    parity_evidence,
    within_chance,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.boosting._objective import ClassLabels, Loss, TargetScale
    from fairtransport.boosting._search import Training
    from fairtransport.boosting._settings import BoostedResponse
    from fairtransport.boosting._training_data import TrainingData
    from fairtransport.criteria import Criterion
    from fairtransport.criteria.distance import Distance

# The outcome of a training of boosted trees in words, in those of the linear estimators.


def describe_training(
    training: Training,
    response: BoostedResponse,
    *,
    criterion: str | Criterion,
    scale: str,
    seeks_parity: bool,
    max_disparity: float | None,
    rows: str,
) -> Notice:
    """Describe rounds, weight, what parity cost and what was not reached."""
    ending = f"ran all {training.n_rounds} rounds"
    if training.is_stopped_early:
        ending = f"stopped after {training.n_rounds} rounds, the best on {rows}"
    remedy = f"Repair (repair=QuantileRepair(), or {response.repair})"
    evidence = None
    if seeks_parity and training.compared.is_everywhere:
        evidence = parity_evidence(training.scores, training.evaluator.comparisons.criterion)
    if training.is_within_chance and training.parity_weight == 0.0:
        start = within_chance()
        if evidence is not None and evidence.shows_difference:  # the test of training rows is the stricter one
            start = "groups of the training rows differ too little to be distinguished from chance; nothing was moved"
        outcome = Notice(f"{start}; {ending}")
    else:
        outcome = describe_weight(
            Notice(ending),
            _losses(training, response, scale),
            parity_weight=training.parity_weight,
            metrics=training.metrics,
            reason=training.reason,
            reached=training.reached,
            max_disparity=max_disparity,
            remedy=remedy,
            rows=rows,
        )
    if evidence is not None:
        outcome = describe_evidence(outcome, evidence, response, reached=training.reached, remedy=remedy, rows=rows)
    return describe_criterion(outcome, criterion, training.compared)


def _losses(training: Training, response: BoostedResponse, scale: str) -> Notice:
    """Describe what parity cost."""
    if training.parity_weight == 0.0:
        return Notice()
    figures = metrics_before_and_after(training.evaluator, training.scores)
    # Shrinking gains nothing on the standardized scale: few rounds may spread scores less, that is all.
    excess = training.metrics.excess if scale == "score" else 0.0
    return notices_of_losses(training.metrics.information_kept, figures, excess, response)


SPREADS = ("trained", "initial")


class TransportBoosting(RowScoring, MetaEstimatorMixin, BaseEstimator):
    """Base class of `TransportBoostingClassifier` and `TransportBoostingRegressor`."""

    task: ClassVar[str]
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

    # ---------------------------------------------------------------- what differs between the tasks

    @abstractmethod
    def _read_y(self, y: Any, weights: ArrayLike | None, loss: Loss) -> ClassLabels | TargetScale:
        """Return what is learned of y."""

    @abstractmethod
    def _store_y(self, encoding: Any, settings: Settings) -> None:
        """Set the attributes that predictions need."""

    @abstractmethod
    def _predictions(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the predictions before any repair, in units of y."""

    @abstractmethod
    def _make_response(self, encoding: Any, settings: Settings, rows: TrainingData) -> BoostedResponse:
        """Return what is predicted, for the evaluation of scores."""

    def _row_weights(self, settings: Settings, encoding: Any, rows: TrainingData) -> NDArray[np.float64] | None:  # noqa: ARG002
        """Return the weights of the rows, with those of their classes."""
        return rows.weights

    def _compare_by_y(self, rows: TrainingData, eval_rows: TrainingData | None) -> None:
        """Let strata contain ranges of y, where the criterion compares rows with a similar y."""

    def _criterion_in_training(self) -> Criterion:
        """Return the criterion, given what strata contain."""
        return as_criterion(self.criterion)

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
        """Train towards the criterion."""
        self._check_parameters(strata)
        owner = type(self).__name__
        seeds = [int(seed) for seed in check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=4)]
        settings = self._settings(seeds[0])
        library = settings.library
        encoding = self._read_y(y, sample_weight, settings.loss)
        X = as_features(X)
        rows = check_training_data(
            X, encoding.read(y, owner), sensitive_features, sample_weight, owner=owner, strata=strata,
            repair=self.repair is not None, policy=check_policy(self.groups),
        )  # fmt: skip
        library.check_features(X)
        library.check_settings(settings.estimator)
        check_target(self.target, rows.groups)
        rows.weights = self._row_weights(settings, encoding, rows)
        known_strata = None if rows.strata is None else Strata.from_spec(rows.strata.to_spec())
        eval_rows = check_eval_set(eval_set, rows, encoding.read)
        if eval_rows is not None:
            library.check_features(eval_rows.X)
        self._compare_by_y(rows, eval_rows)
        settings = sized_settings(settings, rows, self.n_iter_no_change, is_default=self.estimator is None)
        response, penalty = self._make_response(encoding, settings, rows), self._penalty_settings()
        with config_context(enable_metadata_routing=False):  # the inner estimators are passed their options directly
            held_out = self._held_out_rows(settings, rows, eval_rows, seeds[1])
            search = None if held_out is None else RoundSearch(settings, penalty, held_out, response, seeds[2])
            weight = None if isinstance(self.parity_weight, str) else float(self.parity_weight)
            choice = None if search is None else search.choose(weight, self.max_disparity)
            training = train(
                settings, penalty, rows, choice,
                parity_weight=weight, response=response, seed=seeds[2],
            )  # fmt: skip
        self.groups_, self.group_sizes_ = Groups.from_spec(rows.groups.to_spec()), rows.groups.counts
        self.strata_ = known_strata
        self._store_y(encoding, settings)
        self._store(training, rows)
        notice = describe_training(
            training, response,
            criterion=self.criterion, scale=self.scale, max_disparity=self.max_disparity,
            seeks_parity=weight is None and self.max_disparity is None and self.repair is None,
            rows="training rows" if held_out is None else held_out.name,
        )  # fmt: skip
        self.outcome_ = notice.text
        for message, category in notice.warnings:
            warn_caller(message, category)
        return self

    def _store(self, training: Training, rows: TrainingData) -> None:
        """Set the fitted attributes of a training."""
        self.estimator_, self.initial_estimator_ = training.model, training.plain
        self.unit_, self.parity_weight_, self.n_iter_ = training.unit, training.parity_weight, training.n_rounds
        self.history_, self.path_ = training.history, training.path
        self.information_kept_ = training.metrics.information_kept
        self.before_after_ = metrics_before_and_after(training.evaluator, training.scores)
        predictions, plain = (self._predictions(margins) for margins in (training.margins, training.plain_margins))
        self.spread_ = spread_points(predictions, plain, rows.groups.rows, rows.weights, training.bounds)
        self.repair_ = None if self.repair is None else self._fit_repair(predictions, rows)

    def _settings(self, seed: int) -> Settings:
        """Return the library, a clone of the estimator with a seed if it has none, and its loss."""
        estimator = default_estimator(self.task, seed) if self.estimator is None else self.estimator
        library = library_of(estimator, self.task)
        estimator = clone(estimator)
        if self.random_state is not None and estimator.get_params().get("random_state", 0) is None:
            estimator.set_params(random_state=seed)
        power = estimator.get_params().get("tweedie_variance_power")
        return Settings(
            library, estimator, library.loss_name(estimator), TWEEDIE_POWER if power is None else power, None
        )

    def _penalty_settings(self) -> PenaltySettings:
        criterion = self._criterion_in_training()
        return PenaltySettings(criterion, self.target, self.distance, self.scale, self.smooth_groups)

    def _held_out_rows(
        self, settings: Settings, rows: TrainingData, eval_rows: TrainingData | None, seed: int
    ) -> HeldOutRows | None:
        """Return the rows on which rounds and weight are chosen; None where both are given."""
        rows = replace(rows, X=as_selectable(rows.X))
        if eval_rows is not None:
            return HeldOutRows.given(rows, replace(eval_rows, X=as_selectable(eval_rows.X)))
        if settings.patience is None and not isinstance(self.parity_weight, str):
            return None
        return HeldOutRows.of(rows, self.validation_fraction, np.random.default_rng(seed))

    def _fit_repair(self, predictions: NDArray[np.float64], rows: TrainingData) -> QuantileRepair:
        repair = clone(self.repair).set_params(range=self._range, groups=self.groups)
        return repair.fit(predictions, sensitive_features=rows.groups, sample_weight=rows.weights)

    # ---------------------------------------------------------------- checks

    def _check_parameters(self, strata: Any) -> None:
        as_criterion(self.criterion)
        if isinstance(self.parity_weight, str):
            check_choice(self.parity_weight, ("auto",), name="parity_weight")
        else:
            check_real(self.parity_weight, name="parity_weight")
        if self.max_disparity is not None:
            check_real(self.max_disparity, name="max_disparity")
            if not isinstance(self.parity_weight, str):
                raise ValueError("max_disparity chooses the weight: leave parity_weight at 'auto', or it at None.")
        check_real(self.amount, name="amount", most=1.0)
        check_choice(self.spread, SPREADS, name="spread")
        check_choice(self.scale, SCALES, name="scale")
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

    # ---------------------------------------------------------------- predicting

    def _margins(self, X: Any, *, plain: bool = False) -> NDArray[np.float64]:
        """Return the margins of the fitted model, or of the plain one."""
        check_is_fitted(self)
        check_shape(X, self.n_features_in_, owner=type(self).__name__)
        model = self.initial_estimator_ if plain else self.estimator_
        X = as_features(X, self)
        if hasattr(model, "margins"):  # of a model file
            return np.asarray(model.margins(X), dtype=np.float64)
        return library_of(model, self.task).margins(model, X)

    def _scores(self, X: Any, sensitive_features: Any, unknown_group: str = "error") -> NDArray[np.float64]:
        """Return the predictions: spread, repaired and mixed with those of the plain model, as parameters say."""
        amount = check_real(self.amount, name="amount", most=1.0)
        scores = self._predictions(self._margins(X))
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            if self.repair_ is not None:
                raise ValueError("spread='initial' cannot be combined with a repair, which has a spread of its own.")
            scores = spread_scores(scores, self.spread_)
        scores = self._repaired(scores, sensitive_features, unknown_group)
        if amount == 1.0:
            return scores
        return (1.0 - amount) * self._predictions(self._margins(X, plain=True)) + amount * scores

    def _repaired(
        self, scores: NDArray[np.float64], sensitive_features: Any, unknown_group: str
    ) -> NDArray[np.float64]:
        check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        if self.repair_ is None:
            return scores
        if sensitive_features is None:
            raise ValueError(
                "The scores of this model are repaired group by group: pass sensitive_features=, with the columns used "
                "in fit; or fit without a repair."
            )
        options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
        return np.asarray(self.repair_.transform(scores, **options))

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), lambda: [self.outcome_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags
