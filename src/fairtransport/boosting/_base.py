"""What boosted classifiers and regressors share: parameters, training with the penalty, and what is reported."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.folds import make_folds
from fairtransport._sklearn.row_scoring import RowScoring
from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.boosting._compared_rows import check_target
from fairtransport.boosting._distances import (
    PenaltyUnit,
    default_kind,
    make_distance,
    measure_unit,
    prediction_scale,
)
from fairtransport.boosting._early_stopping import EarlyStopping
from fairtransport.boosting._group_probabilities import estimate_group_probabilities
from fairtransport.boosting._libraries import default_estimator, library_of
from fairtransport.boosting._library import TrainingRun, ValidationRows
from fairtransport.boosting._losses import make_loss
from fairtransport.boosting._objective import TransportObjective
from fairtransport.boosting._training_data import check_eval_set, check_shape, check_training_data
from fairtransport.criteria import CRITERIA, STRATUM_WEIGHTS, criterion_text
from fairtransport.groups import UNKNOWN_GROUPS, Groups
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.strata import Strata

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.boosting._compared_rows import ComparedRows, Targets
    from fairtransport.boosting._library import Library
    from fairtransport.boosting._losses import Loss
    from fairtransport.boosting._target_scale import ClassLabels, TargetScale
    from fairtransport.boosting._training_data import TrainingData

__all__ = ["TransportBoosting"]

_INITIAL_ROUNDS = 50  # of the plain model by which the unit of parity_weight is measured
_RAMP = 0.75  # share of the rounds over which the penalty increases to its full weight
_REPAIR_TARGET = "barycenter_w2"
_POWER = 1.5  # of the Tweedie loss, as in both libraries


@dataclass(frozen=True, eq=False)
class Settings:
    """The library, the unfitted estimator and the loss of a fit."""

    library: Library
    estimator: Any
    loss_name: str
    power: float

    @property
    def loss(self) -> Loss:
        """The loss."""
        return make_loss(self.loss_name, self.power)


class TransportBoosting(RowScoring, MetaEstimatorMixin, BaseEstimator):
    """Base class of `TransportBoostingClassifier` and `TransportBoostingRegressor`."""

    task: ClassVar[str]
    _range: ClassVar[Any] = (0.0, 1.0)  # of the predictions

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

    def _report(self, predictions: NDArray[np.float64], rows: TrainingData) -> None:
        """Set the attributes that report on the predictions of the training rows."""

    def _row_weights(self, settings: Settings, encoding: Any, rows: TrainingData) -> NDArray[np.float64] | None:  # noqa: ARG002
        """Return the weights of the rows, with those of their classes."""
        return rows.weights

    def _compare_by_y(self, rows: TrainingData, eval_rows: TrainingData | None) -> None:
        """Let strata contain ranges of y, where the criterion compares rows with a similar y."""

    def _criterion_in_training(self) -> tuple[str, str | None]:
        """Return the criterion and the weight of strata, given what strata contain."""
        return self.criterion, self.stratum_weight

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
            Two classes, of which the larger label is class 1, or the numbers to predict.
        sensitive_features : column, table or Groups
            One or more sensitive columns; several are crossed. They need not be among the features.
        strata : column, table or Strata, optional
            One or more columns within whose values groups are compared (conditional parity). Several are crossed, and
            numbers are cut at quantiles; see `fairtransport.strata.make_strata`. They are not needed at prediction.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the loss and for the groups' distributions.
        eval_set : (X, y, sensitive_features) or (X, y, sensitive_features, strata), optional
            Validation rows for ``history_`` and for early stopping; with strata if there are any.

        Returns
        -------
        self
        """
        self._check_parameters(strata)
        owner = type(self).__name__
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=4)
        settings = self._settings(int(seeds[0]))
        library, estimator, loss = settings.library, settings.estimator, settings.loss
        encoding = self._read_y(y, sample_weight, loss)
        rows = check_training_data(
            X, encoding.read(y, owner), sensitive_features, sample_weight, owner=owner, strata=strata,
            repair=self.repair_amount > 0.0, grouping=self.grouping, missing=self.missing,
            small_groups=self.small_groups, min_group_size=self.min_group_size,
        )  # fmt: skip
        library.check_features(X)
        library.check_settings(estimator)
        check_target(self.target, rows.groups)
        rows.weights = self._row_weights(settings, encoding, rows)
        groups = Groups.from_spec(rows.groups.to_spec())
        known_strata = None if rows.strata is None else Strata.from_spec(rows.strata.to_spec())
        eval_rows = check_eval_set(eval_set, rows, encoding.read)
        if eval_rows is not None:
            library.check_features(eval_rows.X)
        if eval_rows is None and self.n_iter_no_change is not None:
            rows, eval_rows = self._split(rows, int(seeds[1]))
        self._compare_by_y(rows, eval_rows)
        with config_context(enable_metadata_routing=False):  # the inner estimators are passed their options directly
            compared = self._compare(rows)
            unit, targets = self._measure_unit(settings, rows, compared)
            n_rounds = library.n_rounds(estimator)
            probabilities = None
            if self.smooth_groups and unit.factor > 0.0:
                probabilities = estimate_group_probabilities(library, estimator, rows, compared, int(seeds[2]))
            objective = self._objective(settings, rows, n_rounds, unit, probabilities)
            validation = self._validation_rows(loss, eval_rows, unit, targets, objective.ramp)
            constant = loss.constant(rows.labels, rows.weights)
            run = TrainingRun(rows.X, rows.labels, rows.weights, constant, objective, validation)
            plain = unit.factor == 0.0 and validation is None
            model = library.fit_plain(estimator, run) if plain else library.fit_objective(estimator, run)
            margins = library.margins(model, rows.X)
        self.estimator_, self.groups_, self.unit_, self.strata_ = model, groups, unit.factor, known_strata
        self._store_y(encoding, settings)
        predictions = self._predictions(margins)
        self.repair_ = self._fit_repair(predictions, rows) if self.repair_amount > 0.0 else None
        self._report(self._repaired(predictions, rows.groups), rows)
        stopping = None if validation is None else validation.stopping
        self.history_ = {} if stopping is None else stopping.history()
        self._describe_outcome(n_rounds, stopping, compared)
        return self

    def _settings(self, seed: int) -> Settings:
        """Return the library, a clone of the estimator with a seed if it has none, and its loss."""
        estimator = default_estimator(self.task, seed) if self.estimator is None else self.estimator
        library = library_of(estimator, self.task)
        estimator = clone(estimator)
        if self.random_state is not None and estimator.get_params().get("random_state", 0) is None:
            estimator.set_params(random_state=seed)
        power = estimator.get_params().get("tweedie_variance_power")
        return Settings(library, estimator, library.loss_name(estimator), _POWER if power is None else power)

    def _compare(self, rows: TrainingData) -> ComparedRows:
        return rows.compare(*self._criterion_in_training())

    def _split(self, rows: TrainingData, seed: int) -> tuple[TrainingData, TrainingData]:
        """Hold out validation rows, stratified by group and label, or by group and whether y is above its mean."""
        n_folds = max(2, round(1.0 / self.validation_fraction))
        rng = np.random.default_rng(seed)
        high = rows.labels > np.mean(rows.labels)
        fold = make_folds(n_folds, rows.X, high, rows.groups, rng=rng, weights=rows.weights)[0]
        return rows.select(fold.training), rows.select(fold.held_out)

    def _validation_rows(
        self, loss: Loss, rows: TrainingData | None, unit: PenaltyUnit, targets: Targets | None, ramp: int
    ) -> ValidationRows | None:
        if rows is None:
            return None
        stopping = EarlyStopping(
            loss,
            rows.labels,
            self._compare(rows).comparisons(targets),
            scale=unit.scale,
            penalty_weight=self.parity_weight * unit.factor,
            first_round=ramp,
            n_iter_no_change=self.n_iter_no_change,
        )
        return ValidationRows(rows.X, rows.labels, stopping)

    def _measure_unit(
        self, settings: Settings, rows: TrainingData, compared: ComparedRows
    ) -> tuple[PenaltyUnit, Targets | None]:
        """Train a plain model, and return the unit of the penalty and the fixed targets."""
        if self.parity_weight == 0.0:
            return PenaltyUnit(0.0, 1.0, compared.comparisons()), None
        library, estimator, loss = settings.library, settings.estimator, settings.loss
        model = library.auxiliary_model(estimator, min(_INITIAL_ROUNDS, library.n_rounds(estimator)))
        model.fit(rows.X, rows.labels, sample_weight=rows.weights)
        margins = library.margins(model, rows.X)
        predictions = loss.predictions(margins)
        scale = prediction_scale(loss, predictions, rows.weights)
        targets = compared.fixed_targets(self.target, predictions, scale)
        distance = make_distance(self._kind(rows.strata), loss, **self._dual_options)
        pairs = compared.comparisons(targets)
        return measure_unit(distance, loss, rows.labels, margins, pairs, scale=scale), targets

    def _kind(self, strata: Any) -> str:
        return default_kind(self.kind, within=strata is not None or self.criterion != "demographic_parity")

    def _fit_repair(self, predictions: NDArray[np.float64], rows: TrainingData) -> QuantileRepair:
        repair = QuantileRepair(
            _REPAIR_TARGET,
            float(self.repair_amount),
            range=self._range,
            small_groups=self.small_groups,
            min_group_size=self.min_group_size,
        )
        return repair.fit(predictions, sensitive_features=rows.groups, sample_weight=rows.weights)

    @property
    def _dual_options(self) -> dict[str, Any]:
        names = ("regularizer", "strength", "opposite_duals", "n_fourier_features", "kernel_variance")
        return {name: getattr(self, name) for name in names}

    def _objective(
        self,
        settings: Settings,
        rows: TrainingData,
        n_rounds: int,
        unit: PenaltyUnit,
        group_probabilities: NDArray[np.float32] | None,
    ) -> TransportObjective:
        criterion, stratum_weight = self._criterion_in_training()
        return TransportObjective(
            rows.groups,
            criterion=criterion,
            strata=rows.strata,
            stratum_weight=stratum_weight,
            parity_weight=float(self.parity_weight),
            loss=settings.loss_name,
            tweedie_variance_power=settings.power,
            kind=self._kind(rows.strata),
            ramp=max(1, round(_RAMP * n_rounds)),
            group_probabilities=group_probabilities,
            unit=unit.factor,
            scale=unit.scale,
            comparisons=unit.comparisons,
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
        if len(resolved.compared) > 2 or self.strata_ is not None:
            aside = f", {len(resolved.set_aside)} set aside" if resolved.set_aside else ""
            text += f" ({len(resolved.compared)} strata{aside})"
        self.outcome_ = f"{text}: {self.outcome_}"

    # ---------------------------------------------------------------- checks

    def _check_parameters(self, strata: Any) -> None:
        check_choice(self.criterion, CRITERIA, name="criterion")
        if self.stratum_weight is not None:
            check_choice(self.stratum_weight, STRATUM_WEIGHTS, name="stratum_weight")
        check_real(self.parity_weight, name="parity_weight")
        self._kind(strata)
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

    def _margins(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        check_shape(X, self.n_features_in_, owner=type(self).__name__)
        return library_of(self.estimator_, self.task).margins(self.estimator_, X)

    def _repaired(
        self, scores: NDArray[np.float64], sensitive_features: Any, unknown_group: str = "error"
    ) -> NDArray[np.float64]:
        check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        if self.repair_ is None:
            return scores
        if sensitive_features is None:
            raise ValueError(
                "The scores of this model are repaired group by group: pass sensitive_features=, with the columns used "
                "in fit; or fit with repair_amount=0."
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
