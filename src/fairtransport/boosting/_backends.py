"""LightGBM and XGBoost behind one interface: training with a custom objective, and reading margins."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport._validation import check_real

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.boosting._early_stopping import EarlyStopping

__all__ = ["Library", "TrainingRun", "ValidationRows", "default_estimator", "library_of"]

# What LightGBM reads from Arrow's format.
_ARROW_NUMBERS = frozenset(
    {
        nw.Boolean,
        nw.Float32,
        nw.Float64,
        nw.Int8,
        nw.Int16,
        nw.Int32,
        nw.Int64,
        nw.UInt8,
        nw.UInt16,
        nw.UInt32,
        nw.UInt64,
    }
)

_DEFAULT_ROUNDS, _DEFAULT_COLSAMPLE = 200, 0.5


class DetachableCallback:
    """A callable that copies share, until its function is detached.

    LightGBM copies its objective and metric before training, and fitted estimators keep theirs. Both hold the groups of
    the training rows, of which nothing may remain in the fitted model: `detach` removes the function from all copies.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] | None = function

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def detach(self) -> None:
        """Remove the function."""
        self.function = None

    def __call__(self, labels: Any, margins: Any, sample_weight: Any = None) -> Any:
        """Call the function; raise RuntimeError after `detach`."""
        if self.function is None:
            raise RuntimeError("This model was trained by TransportBoostingClassifier; fit that again instead.")
        return self.function(labels, margins, sample_weight)


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Rows on which the objective is evaluated after each round.

    Attributes
    ----------
    X : table or matrix
    y : ndarray of int
        0 and 1.
    stopping : EarlyStopping
        Records the margins of these rows.
    """

    X: Any
    y: NDArray[np.int64]
    stopping: EarlyStopping


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """What a library needs to train a model.

    Attributes
    ----------
    X : table or matrix
    y : ndarray of int
        0 and 1.
    sample_weight : ndarray or None
    positive_rate : float
        Share of class 1, whose logit is the initial margin.
    objective : callable
        Takes labels, margins and weights.
    validation : ValidationRows, optional
    """

    X: Any
    y: NDArray[np.int64]
    sample_weight: NDArray[np.float64] | None
    positive_rate: float
    objective: Callable[..., Any]
    validation: ValidationRows | None = None

    @property
    def initial_margin(self) -> float:
        """The logit of the share of class 1."""
        return math.log(self.positive_rate / (1.0 - self.positive_rate))


class Library(ABC):
    """A boosting library, as the classifier uses it.

    Attributes
    ----------
    small_tree_params : dict
        Settings that limit the size of the trees of an auxiliary model.
    neutral_params : dict
        Settings of the user that an auxiliary model must not inherit, because its labels may be others than y.
    logistic_params : dict
        Settings of the library's logistic objective.
    """

    small_tree_params: dict[str, Any]
    neutral_params: dict[str, Any]
    logistic_params: dict[str, Any]

    def auxiliary_model(self, estimator: Any, n_rounds: int, **settings: Any) -> Any:
        """Return an unfitted estimator with few rounds and the library's default objective, for any labels."""
        known = estimator.get_params()
        params = {"n_estimators": n_rounds, **self.neutral_params, **settings}
        return clone(estimator).set_params(**{name: value for name, value in params.items() if name in known})

    def n_rounds(self, estimator: Any) -> int:
        """Return the number of rounds of an estimator."""
        n_rounds = estimator.get_params().get("n_estimators")
        return 100 if n_rounds is None else int(n_rounds)

    def check_features(self, X: Any) -> None:  # noqa: B027 - most libraries check them
        """Raise TypeError for features that the library cannot read and does not refuse."""

    def absorb_class_weights(
        self,
        estimator: Any,
        classes: NDArray[Any],  # noqa: ARG002 - used by LightGBM
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """Move the class weights among an estimator's settings into the weights of the rows, and return these.

        The libraries apply ``scale_pos_weight`` only with their built-in objectives.
        """
        scale = estimator.get_params().get("scale_pos_weight")
        if scale is None or scale == 1:
            return weights
        estimator.set_params(scale_pos_weight=1)
        ones = np.ones(len(labels)) if weights is None else weights
        return np.asarray(ones * np.where(labels > 0, check_real(scale, name="scale_pos_weight", strict=True), 1.0))

    def fit_plain(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit an estimator with the library's built-in logistic objective."""
        params = {name: value for name, value in self.logistic_params.items() if name in estimator.get_params()}
        return estimator.set_params(**params).fit(run.X, run.y, sample_weight=run.sample_weight)

    @abstractmethod
    def fit_objective(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit an estimator with a custom objective; the result is a logistic model of the library."""

    @abstractmethod
    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the logit of class 1."""


class LightGBM(Library):
    """`lightgbm.LGBMClassifier`."""

    small_tree_params = {"num_leaves": 15}  # noqa: RUF012 - constant
    neutral_params = {"objective": None, "class_weight": None}  # noqa: RUF012 - constant
    logistic_params = {"objective": "binary"}  # noqa: RUF012 - constant

    def check_features(self, X: Any) -> None:
        """Raise TypeError for a table in Arrow's format with columns other than numbers.

        LightGBM throws in a thread of its own where it meets one, which ends the process.
        """
        table = nw.from_native(X, pass_through=True, allow_series=True)
        if not isinstance(table, nw.DataFrame):
            if isinstance(table, nw.Series) or type(X).__module__.partition(".")[0] in {"polars", "pyarrow"}:
                raise TypeError(f"X must be a table or a matrix; got {type(X).__name__}.")
        elif not table.implementation.is_pandas():
            others = [name for name, dtype in table.schema.items() if dtype not in _ARROW_NUMBERS]
            if others:
                raise TypeError(
                    f"X has {say_columns(others)}, which LightGBM cannot read from this kind of table; encode text as "
                    "numbers first, or pass a pandas DataFrame with categories."
                )

    def absorb_class_weights(
        self,
        estimator: Any,
        classes: NDArray[Any],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """Move ``class_weight``, whose keys are the original labels, into the weights, too."""
        params = estimator.get_params()
        if params.get("boosting", params["boosting_type"]) in {"rf", "random_forest"}:
            raise ValueError("LightGBM's forests (boosting_type='rf') take no custom objective; use 'gbdt' or 'dart'.")
        if any(params.get(name) for name in ("is_unbalance", "unbalance", "unbalanced_sets")):
            raise ValueError("is_unbalance is a setting of LightGBM's built-in objective; use class_weight='balanced'.")
        if params["class_weight"] is not None:
            factors = compute_sample_weight(params["class_weight"], classes[labels])
            weights = factors if weights is None else factors * weights
            estimator.set_params(class_weight=None)
        return super().absorb_class_weights(estimator, classes, labels, weights)

    def fit_objective(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit; then add the initial margin to the booster and give it LightGBM's logistic objective."""
        callbacks = [DetachableCallback(run.objective)]
        estimator.set_params(objective=callbacks[0])
        options: dict[str, Any] = {}
        if run.validation is not None:
            rows, stopping = run.validation, run.validation.stopping
            callbacks.append(DetachableCallback(lambda _, margins, __: ("objective", stopping.record(margins), False)))
            options = {
                **_lightgbm_eval_set(estimator, rows),
                "eval_init_score": [np.full(len(rows.y), run.initial_margin)],
                "eval_metric": callbacks[1],
                "callbacks": [_lightgbm_stop(stopping)],
            }
        init_score = np.full(len(run.y), run.initial_margin)
        try:
            estimator.fit(run.X, run.y, sample_weight=run.sample_weight, init_score=init_score, **options)
        except load_extra("lightgbm").basic.LightGBMError as error:
            if "num_features()) > (0)" not in str(error):
                raise
            raise ValueError(
                f"LightGBM finds no column to split {len(run.y)} rows by: all are constant, or there are fewer rows "
                "than two leaves of min_child_samples need. Pass more rows, or lower min_child_samples."
            ) from None
        finally:
            for callback in callbacks:
                callback.detach()
        booster = estimator.booster_
        for leaf in range(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]):
            booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + run.initial_margin)
        text = booster.model_to_string()
        booster.model_from_string(text.replace("\nfeature_names=", "\nobjective=binary sigmoid:1\nfeature_names=", 1))
        return estimator.set_params(objective="binary")

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the raw score."""
        self.check_features(X)
        return np.asarray(estimator.predict(X, raw_score=True), dtype=np.float64)


class XGBoost(Library):
    """`xgboost.XGBClassifier`."""

    small_tree_params = {"max_depth": 4}  # noqa: RUF012 - constant
    neutral_params = {  # noqa: RUF012 - constant
        "objective": "binary:logistic",  # XGBoost changes it to "multi:softprob" for more than two classes
        "scale_pos_weight": None,
        "base_score": None,
        "eval_metric": None,
        "early_stopping_rounds": None,
        "callbacks": None,
        "monotone_constraints": None,
    }
    logistic_params = {  # noqa: RUF012 - constant
        "objective": "binary:logistic",
        "early_stopping_rounds": None,
    }

    def fit_objective(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit; the booster keeps the initial margin as its base score."""
        objective = DetachableCallback(run.objective)
        replaced = ("callbacks", "eval_metric", "early_stopping_rounds")
        original = {name: estimator.get_params()[name] for name in replaced}
        settings: dict[str, Any] = {"eval_metric": None, "early_stopping_rounds": None}
        stopping, options = None, {}
        if run.validation is not None:
            stopping = run.validation.stopping
            options = {"eval_set": [(run.validation.X, run.validation.y)], "verbose": False}
            settings["eval_metric"] = _xgboost_metric(stopping)
            settings["callbacks"] = [*(original["callbacks"] or []), _xgboost_stop(stopping)]
        estimator.set_params(objective=objective, base_score=run.positive_rate, **settings)
        try:
            estimator.fit(run.X, run.y, sample_weight=run.sample_weight, **options)
        finally:
            objective.detach()
            estimator.set_params(**original)
        best = None if stopping is None else stopping.stopped_at()
        if best is not None:
            estimator.load_model(bytearray(estimator.get_booster()[:best].save_raw()))
        return estimator.set_params(objective="binary:logistic")

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the margin."""
        return np.asarray(estimator.predict(X, output_margin=True), dtype=np.float64)


def default_estimator(random_state: int | None) -> Any:
    """Return LightGBM's classifier with 200 rounds, each on a random half of the columns."""
    return load_extra("lightgbm").LGBMClassifier(
        n_estimators=_DEFAULT_ROUNDS, colsample_bytree=_DEFAULT_COLSAMPLE, random_state=random_state, verbose=-1
    )


def library_of(estimator: Any) -> Library:
    """Return the library of an estimator; raise TypeError unless it is a classifier of LightGBM or XGBoost."""
    for cls in type(estimator).__mro__:  # a user's class may derive from a library's, whose own subclasses are refused
        module = cls.__module__.partition(".")[0]
        if module in _LIBRARIES:
            name, library = _LIBRARIES[module]
            if cls.__name__ == name:
                return library()
            break
    received = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
    raise TypeError(
        f"estimator must be a lightgbm.LGBMClassifier or an xgboost.XGBClassifier; got {received}. Other models can be "
        "wrapped in QuantileRepairClassifier."
    )


_LIBRARIES: dict[str, tuple[str, type[Library]]] = {
    "lightgbm": ("LGBMClassifier", LightGBM),
    "xgboost": ("XGBClassifier", XGBoost),
}


def _lightgbm_eval_set(estimator: Any, rows: ValidationRows) -> dict[str, Any]:
    """Return the validation rows as arguments of ``fit``, which LightGBM 4.7 renamed."""
    if "eval_X" in inspect.signature(estimator.fit).parameters:
        return {"eval_X": (rows.X,), "eval_y": (rows.y,)}
    return {"eval_set": [(rows.X, rows.y)]}


def _lightgbm_stop(stopping: EarlyStopping) -> Callable[[Any], None]:
    exception = load_extra("lightgbm").callback.EarlyStopException

    def stop(env: Any) -> None:
        best = stopping.stopped_at()
        if best is not None:
            raise exception(best - 1, env.evaluation_result_list)

    return stop


def _xgboost_stop(stopping: EarlyStopping) -> Any:
    base = load_extra("xgboost").callback.TrainingCallback

    class Stop(base):  # type: ignore[misc, valid-type]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
            return stopping.stopped_at() is not None

    return Stop()


def _xgboost_metric(stopping: EarlyStopping) -> Callable[..., float]:
    def objective(labels: Any, margins: Any, sample_weight: Any = None) -> float:  # noqa: ARG001 - named by XGBoost
        return stopping.record(margins)

    return objective
