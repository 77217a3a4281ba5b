"""Base of the linear classifier and regressor: parameters, fits, paths, streams and fitted attributes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from fairtransport._arrays import Floats, Ints
from fairtransport._sklearn import (
    DeferredAttributes,
    RowScoring,
    canonical_rows,
    encode_batch_groups,
    few_threads,
    fitted_summary_html,
    naming_text_columns,
)
from fairtransport._validation import check_choice, check_count, check_length, check_real, check_weights
from fairtransport.criteria import Criterion
from fairtransport.criteria.criterion import MAX_PAIRED_GROUPS, criterion_text, needs_labels
from fairtransport.criteria.distance import Distance
from fairtransport.groups import UNKNOWN_GROUPS, GroupPolicy, Groups
from fairtransport.linear._constants import UPDATES_OF_A_BATCH
from fairtransport.linear._problem import prepare_initial_model, stored_target
from fairtransport.linear._training import (
    FitResult,
    prepare_trainer,
    start_attributes,
    train_lbfgs,
    train_lbfgs_path,
    train_sgd,
    weight_attributes,
)
from fairtransport.linear._training_data import (
    TrainingData,
    TrainingOptions,
    check_target,
    make_training_groups,
    make_training_strata,
    validate_training_data,
)
from fairtransport.linear.online import (
    Batch,
    OnlineState,
    UpdateRule,
    default_parity_weight,
    group_predictors,
    make_memory,
    row_masses,
    widened_weights,
)
from fairtransport.linear.settings import SgdSettings
from fairtransport.strata import Strata
from fairtransport.training.evaluation import as_parameters_say, spread_points
from fairtransport.training.online import OnlineSettings
from fairtransport.training.responses import Response
from fairtransport.training.weight_path import empty_path

if TYPE_CHECKING:
    from fairtransport.linear._partitions import RawParts
    from fairtransport.linear._table_reading import TableColumns
    from fairtransport.linear.online import OnlineMemory
    from fairtransport.linear.sgd_solver import Trainer


class TransportModel(DeferredAttributes, RowScoring, BaseEstimator):
    """Base of `TransportClassifier` and `TransportRegressor`.

    They differ in the response that they predict. ``fit`` runs in stages, each of which returns a frozen value:
    ``TrainingOptions`` and ``TrainingData`` (validated), ``InitialModel``, ``GroupComparisons``, the solver, and
    ``FitResult``.
    """

    _response_class: ClassVar[type[Response]]
    _all_of_y = ""  # what y must have in the first batch, in words
    groups_: Groups
    group_sizes_: Ints
    strata_: Strata | None
    path_: dict[str, Floats]
    adjusting_: OnlineMemory

    @property
    def _response(self) -> Response:
        return self._response_class.of_fitted(self)

    def __init__(
        self,
        estimator: Any = None,
        *,
        distance: str | Distance = "continuous",
        criterion: str | Criterion = "demographic_parity",
        parity_weight: float | str = "auto",
        max_disparity: float | None = None,
        amount: float = 1.0,
        spread: str = "trained",
        target: Any = "each_other",
        scale: str = "standardized",
        group_specific: bool = False,
        solver: str | SgdSettings = "lbfgs",
        tol: float = 3e-4,
        max_iter: int = 1000,
        groups: GroupPolicy | None = None,
        online: OnlineSettings | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.distance = distance
        self.criterion = criterion
        self.parity_weight = parity_weight
        self.max_disparity = max_disparity
        self.amount = amount
        self.spread = spread
        self.target = target
        self.scale = scale
        self.group_specific = group_specific
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.groups = groups
        self.online = online
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any, strata: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the initial model, then move it towards the criterion."""
        options = self._options()
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        with few_threads(data.X):
            result = train_lbfgs(data, options) if options.sgd is None else train_sgd(data, options, options.sgd)
        self._store(result)
        return self

    def fit_table(
        self,
        table: Any,
        *,
        label: str,
        sensitive_features: str | Sequence[str],
        features: Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        weight: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table by the names of its columns: files, also larger than memory, or a table of any engine.

        Parameters
        ----------
        table : path, list of paths, or table
            Parquet, CSV, Feather or JSON-lines files, or a table of pandas, polars, pyarrow, DuckDB, Dask or PySpark.
            Tables in memory, and others of up to 50 million numbers, which are read into memory, are trained on as
            ``fit`` does. Rows of larger files are encoded once into a temporary file; those of Dask and Spark stay on
            the workers.
        label : str
            Column of the labels.
        sensitive_features : str or list of str
            Columns that define the groups.
        features : list of str, optional
            Columns of numbers, without missing values; by default all but label, sensitive features and weight.
        strata, weight : str or list of str, str, optional
            Columns within whose values groups are compared; column of the sample weights.
        checkpoint : path, optional
            File to which the result of each pass over rows that are not in memory is written. Training that was
            interrupted, called again, reads the table once more, continues from this file and gives the same model; at
            the end the file is removed. It contains sums and counts, no rows.

        Returns
        -------
        self
            Fitted as by ``fit``, from histograms of the scores in place of rows where these are not in memory (see
            docs/clusters.md). ``partial_fit`` then starts from its first batch.
        """
        from fairtransport.linear.table_training import train_table  # noqa: PLC0415 - arrays do not need it

        options = self._options()
        names, result = train_table(
            table, options, self._response_class, type(self).__name__,
            label=label, sensitive_features=sensitive_features, features=features, strata=strata, weight=weight,
            checkpoint=checkpoint,
        )  # fmt: skip
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        self._store(result)
        return self

    def fit_parts(
        self, source: RawParts, columns: TableColumns, checkpoint: str | os.PathLike[str] | None = None
    ) -> Self:
        """Train on rows that stay in parts, with features of any type; `fairtransport.tabular.TableModel` does."""
        from fairtransport.linear.table_training import train_parts  # noqa: PLC0415 - arrays do not need it

        options, owner = self._options(), type(self).__name__
        result = train_parts(source, columns, options, self._response_class, owner, checkpoint=checkpoint)
        self.n_features_in_ = columns.n_features
        self._store(result)
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
        """Train with each of several weights, each fit started from the one before."""
        weights = [check_real(weight, name="parity_weights") for weight in parity_weights]
        if weights != sorted(weights):
            raise ValueError("parity_weights must ascend: each fit starts from the one before.")
        template = copy(self).set_params(parity_weight="auto", max_disparity=None)
        options = template._options()  # noqa: SLF001
        if options.sgd is not None:
            raise ValueError("fit_path needs solver='lbfgs'.")
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        models = []
        with few_threads(data.X):
            results = list(train_lbfgs_path(data, options, weights))
        for result in results:
            model = copy(self).set_params(parity_weight=result.attributes["parity_weight_"], max_disparity=None)
            model._store(result)  # noqa: SLF001
            models.append(model)
        return models

    def make_trainer(
        self, X: Any, y: Any, *, sensitive_features: Any, strata: Any = None, sample_weight: ArrayLike | None = None
    ) -> Trainer:
        """Do everything that ``fit`` with ``solver="sgd"`` does before the first update, to follow every step."""
        options = self._options()
        if options.sgd is None:
            raise ValueError("make_trainer is for solver='sgd', which moves in small steps.")
        data = self._training_data(
            X, y, options=options, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight
        )
        prepared = prepare_trainer(data, options, options.sgd)
        self.__dict__.update(
            start_attributes(data.response, prepared.initial, data.groups, data.strata),
            target_=data.response.scores_as_given(prepared.target),
        )
        return prepared.trainer

    def at(
        self,
        *,
        max_disparity: float | None = None,
        max_rank_disparity: float | None = None,
        weight: float | None = None,
    ) -> Self:
        """Return the model of another point of ``path_``, without training again."""
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
        weights = weight_attributes(widened_weights(theta[:-1], len(self.groups_)), theta[-1])
        if self.path_["weight"][index] == self.parity_weight_ and all(
            np.array_equal(value, getattr(self, name)) for name, value in weights.items()
        ):
            return model
        model.__dict__.update(weights)
        model.parity_weight_ = float(self.path_["weight"][index])
        model.information_kept_ = float(self.path_["information_kept"][index])
        model.spread_ = self.path_["spread"][index]
        model.outcome_ = f"weight {model.parity_weight_:g} of the path"
        for name in ("adjusting_", "before_after_"):
            model.__dict__.pop(name, None)
        return model

    def _adjust(
        self, X: Any, y: Any, *, sensitive_features: Any, strata: Any, sample_weight: Any, updates: int | None
    ) -> Self:
        """Adjust the model to one batch; see ``partial_fit``."""
        options = self._options()
        if y is None and needs_labels(options.criterion):
            raise ValueError(
                f"partial_fit without labels cannot hold {criterion_text(options.criterion, has_strata=False)}, which "
                "compares people with the same label: pass y, for rows whose labels have arrived."
            )
        n_updates = UPDATES_OF_A_BATCH if updates is None else check_count(updates, name="updates", least=0)
        columns = {"sensitive_features": sensitive_features, "strata": strata, "sample_weight": sample_weight}
        if not hasattr(self, "coef_"):
            if y is not None:
                return self.fit(X, y, **columns)
            return self._start_without_labels(X, options=options, **columns)
        X = self._features(X)
        masses = row_masses(check_weights(sample_weight, size=X.shape[0]), X.shape[0])
        groups = encode_batch_groups(self.groups_, sensitive_features, options.groups.new)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        given = None if y is None else self._response.read_batch(y, X.shape[0], type(self).__name__)
        known = self._batch_strata(given, strata, X.shape[0])
        labels = None if given is None else self._response.outcomes(given)
        batch = Batch(X, groups, masses, labels, None if known is None else known.codes)
        state = self.online_state(updates=n_updates).widened(groups)
        if state.memory is None:
            state = replace(state, memory=self._memory_from(batch, state.theta, options, known))
        self.set_online_state(state.update(batch))
        self.n_iter_ += n_updates
        return self

    def _batch_strata(self, y: NDArray[Any] | None, strata: Any, n_rows: int) -> Strata | None:
        """Return the strata of a batch as in ``fit``; None where the model has none."""
        known = vars(self).get("strata_")
        n_given = 0 if known is None else len(known.columns) - self._response.n_y_columns(known)
        if (n_given == 0) != (strata is None):
            raise ValueError("strata must be given to partial_fit exactly where they were given to fit.")
        if known is None:
            return None
        encoded = known.encode(self._response.stratum_columns(y, strata, known))
        check_length(range(encoded.n_rows), size=n_rows, name="strata")
        return encoded

    def online_state(self, *, updates: int | None = None) -> OnlineState:
        """Return the fitted model as a value that batches update."""
        check_is_fitted(self)
        options = self._options()
        n_updates = UPDATES_OF_A_BATCH if updates is None else check_count(updates, name="updates", least=0)
        rule = UpdateRule(options.distance, options.scale, options.each_other, options.half_life, n_updates)
        common = np.append(self.common_coef_, self.common_intercept_)
        theta, common = (self._response.to_standard(weights) for weights in (self._theta, common))
        duals = getattr(self, "duals_", None)
        duals = None if duals is None else self._response.duals_of_given(duals)
        return OnlineState(rule, theta, common, self.groups_, getattr(self, "adjusting_", None), duals)

    def set_online_state(self, state: OnlineState) -> Self:
        """Store a state that was made from `online_state`."""
        n_new = len(state.groups) - len(self.groups_)
        if n_new > 0:
            self.groups_ = state.groups
            self.group_sizes_ = np.append(self.group_sizes_, np.zeros(n_new, dtype=self.group_sizes_.dtype))
        response = self._response
        if not np.array_equal(state.theta, response.to_standard(self._theta)):  # or a change of units would round them
            weights = weight_attributes(response.to_given(state.theta), response.to_given(state.common))
            self.__dict__.update(weights)
        duals = None if state.duals is None else response.duals_as_given(state.duals)
        for name, value in {"adjusting_": state.memory, "duals_": duals}.items():
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
                f"{type(self).__name__} has no model yet: pass y{self._all_of_y} in the first call of partial_fit, "
                "call fit before it, or give a fitted linear model as estimator."
            ) from None
        X = self._features(X, reset=True)
        masses = row_masses(check_weights(sample_weight, size=X.shape[0]), X.shape[0])
        response = self._response_class.of_linear_model(self.estimator, X, masses, type(self).__name__)
        groups = make_training_groups(sensitive_features, X.shape[0], options)
        check_target(groups, masses, options, response)
        parts = make_training_strata(strata, groups)
        names = getattr(self, "feature_names_in_", None)
        initial = prepare_initial_model(self.estimator, X, None, None, response=response, feature_names=names)
        scores = initial.scores(X)
        target = stored_target(options, scores, groups, masses, response=response)
        theta = np.tile(initial.theta, (len(groups) if options.group_specific else 1, 1))
        points = spread_points(scores, scores, groups.rows, masses, response.loss.bounds)
        self.__dict__.update(
            {
                **start_attributes(response, initial, groups, parts),
                "target_": response.scores_as_given(target),
                **weight_attributes(response.to_given(theta), response.to_given(theta.mean(axis=0))),
                "history_": {name: np.zeros(0) for name in ("update", "disparity", "loss")},
                "outcome_": "started from the estimator as it was given, without labels",
                "n_iter_": 0,
                "parity_weight_": default_parity_weight(options),
                "information_kept_": 1.0,
                "path_": empty_path(response),
                "spread_": response.scores_as_given(points),
            }
        )
        batch = Batch(X, groups, masses, strata=None if parts is None else parts.codes)
        self.adjusting_ = self._memory_from(batch, theta, options, parts)
        return self

    def _memory_from(
        self, batch: Batch, theta: Floats, options: TrainingOptions, strata: Strata | None
    ) -> OnlineMemory:
        """Return the memory of a model without one, from the rows of a batch."""
        model, response = self.initial_estimator_, self._response
        initial = response.to_standard(np.append(np.ravel(model.coef_), np.ravel(model.intercept_)[0]))
        return make_memory(
            batch,
            theta,
            response.loss.scores(np.asarray(batch.X @ initial[:-1] + initial[-1], dtype=np.float64)),
            target=response.scores_of_given(self.target_),
            weights=batch.mass,
            strata=strata,
            group_sizes=self.group_sizes_,
            factors=None,
            has_intercept=bool(getattr(model, "fit_intercept", True)),
            options=options,
            response=response,
        )

    def _predictors(self, X: Any, sensitive_features: Any, unknown_group: str, *, logits: bool) -> Floats:
        """Return logits or predictions, with the spread and the share of the initial model that parameters say."""
        check_is_fitted(self)
        X, model = self._features(X), self.initial_estimator_
        check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        if len(self.coef_) == 1:
            trained = np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)
        elif sensitive_features is None:
            raise ValueError("This model has weights for each group (group_specific=True): pass sensitive_features.")
        else:
            groups = self.groups_.encode(sensitive_features, unknown_group=unknown_group, sizes=self.group_sizes_)
            check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
            trained = group_predictors(X, self._theta, np.append(self.common_coef_, self.common_intercept_), groups)

        def initial() -> Floats:
            return np.asarray(X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0], dtype=np.float64)

        return as_parameters_say(self, trained, initial, logits=logits)

    @property
    def compared_with_(self) -> str:
        """The other side of comparisons: ``"each_other"``, ``"everyone"`` (beyond 20 groups) or ``"target"``."""
        check_is_fitted(self)
        if not self._options().each_other:
            return "target"
        return "each_other" if len(self.groups_) <= MAX_PAIRED_GROUPS else "everyone"

    @property
    def _theta(self) -> Floats:
        return np.column_stack((self.coef_, self.intercept_))

    def _options(self) -> TrainingOptions:
        return TrainingOptions.validated(self.get_params(deep=False))

    def _training_data(self, X: Any, y: Any, *, options: TrainingOptions, **columns: Any) -> TrainingData:
        y = self._response_class.read(y, type(self).__name__)
        with naming_text_columns(X):
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        return validate_training_data(
            canonical_rows(X),
            y,
            response=self._response_class,
            owner=type(self).__name__,
            options=options,
            feature_names=getattr(self, "feature_names_in_", None),
            **columns,
        )

    def _features(self, X: Any, *, reset: bool = False) -> Any:
        with naming_text_columns(X):
            read = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
        return canonical_rows(read)

    def _store(self, result: FitResult) -> None:
        """Store the result of a training, and emit its warnings."""
        self.__dict__.update(result.attributes)
        self._defer(result.deferred)
        outcome = result.outcome.at_full_amount(self.amount)
        self.outcome_ = outcome.text
        outcome.warn()

    def _summary(self) -> list[str]:
        """Return what training gained and kept, and how it ended."""
        metrics = vars(self).get("before_after_")
        if metrics is None:
            return [str(self.outcome_)]
        changes = [
            f"{name.replace('_', ' ')} {metrics[name][0]:.3f} to {metrics[name][1]:.3f}"
            for name in self._response.summary_metrics
        ]
        kept = f"{self.information_kept_:.0%} of the information kept"
        return [f"{', '.join(changes)} on training rows; {kept}", str(self.outcome_)]

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), self._summary)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
