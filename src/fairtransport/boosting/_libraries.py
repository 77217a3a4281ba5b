"""LightGBM and XGBoost behind one interface, and the estimator that is used by default."""

from __future__ import annotations

import json
import math
import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals as nw
import numpy as np
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport._sklearn import n_rows
from fairtransport.boosting._constants import PATIENCE, POISSON_STEP, ROUNDS, TWEEDIE_POWER
from fairtransport.boosting._library import BinnedTable, BoosterRun, DetachableCallback, Library, TrainingRun
from fairtransport.boosting._objective import make_loss, plain_objective
from fairtransport.boosting._training_data import column_share, is_small, n_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from fairtransport.boosting._settings import Settings
    from fairtransport.boosting._training_data import TrainingData

# LightGBM, as the estimators use it.

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


class LightGBM(Library):
    """`lightgbm.LGBMClassifier` and `lightgbm.LGBMRegressor`."""

    module = "lightgbm"
    class_names: ClassVar = {"classification": "LGBMClassifier", "regression": "LGBMRegressor"}
    tree_size: ClassVar = ("num_leaves", 15)
    size_params: ClassVar = {"num_leaves", "max_depth"}
    default_rate = 0.1
    neutral_params: ClassVar = {"objective": None, "class_weight": None}
    logistic_params: ClassVar = {"objective": "binary"}
    losses: ClassVar = {
        "regression": "squared_error",
        None: "squared_error",
        **dict.fromkeys(("regression_l2", "l2", "mean_squared_error", "mse"), "squared_error"),
        **dict.fromkeys(("regression_l1", "l1", "mean_absolute_error", "mae"), "absolute_error"),
        "poisson": "poisson",
        "tweedie": "tweedie",
    }

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

    def check_settings(self, estimator: Any) -> None:
        """Raise ValueError for forests."""
        params = estimator.get_params()
        if params.get("boosting", params["boosting_type"]) in {"rf", "random_forest"}:
            raise ValueError("LightGBM's forests (boosting_type='rf') take no custom objective; use 'gbdt' or 'dart'.")

    def absorb_class_weights(
        self,
        estimator: Any,
        classes: NDArray[Any],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """Move ``class_weight``, whose keys are the original labels, into the weights, too."""
        params = estimator.get_params()
        if any(params.get(name) for name in ("is_unbalance", "unbalance", "unbalanced_sets")):
            raise ValueError("is_unbalance is a setting of LightGBM's built-in objective; use class_weight='balanced'.")
        if params["class_weight"] is not None:
            factors = compute_sample_weight(params["class_weight"], classes[labels])
            weights = factors if weights is None else factors * weights
            estimator.set_params(class_weight=None)
        return super().absorb_class_weights(estimator, classes, labels, weights)

    def fit_plain(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit with LightGBM's own objective; a model of real numbers then predicts margins."""
        model = super().fit_plain(estimator, run)
        if self.is_regression:
            text = model.booster_.model_to_string()
            model.booster_.model_from_string(re.sub(r"\nobjective=[^\n]*\n", "\nobjective=regression\n", text, count=1))
            model.set_params(objective="regression")
        return model

    def fit_objective(self, estimator: Any, run: TrainingRun, objective: Callable[..., Any]) -> Any:
        """Fit; then add the initial margin to the booster and give it LightGBM's objective of the task.

        With a logarithmic link the booster predicts margins.
        """
        callback = DetachableCallback(objective)
        estimator.set_params(objective=callback)
        init_score = np.full(len(run.y), run.initial_margin)
        try:
            with _column_errors(len(run.y)):
                estimator.fit(run.X, run.y, sample_weight=run.sample_weight, init_score=init_score)
        finally:
            callback.detach()
        booster = estimator.booster_
        for leaf in range(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]):
            booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + run.initial_margin)
        name, line = ("regression", "regression") if self.is_regression else ("binary", "binary sigmoid:1")
        text = booster.model_to_string()
        booster.model_from_string(text.replace("\nfeature_names=", f"\nobjective={line}\nfeature_names=", 1))
        return estimator.set_params(objective=name)

    def open_table(self, estimator: Any, run: TrainingRun, held_out: Any) -> BinnedTable:
        """Return the rows as LightGBM's data sets."""
        params = {name: value for name, value in estimator.get_params().items() if value is not None}
        for name in ("n_estimators", "class_weight", "importance_type", "objective", "n_jobs"):
            params.pop(name, None)
        if isinstance(params.get("random_state"), np.random.RandomState):
            params["random_state"] = int(params["random_state"].randint(np.iinfo(np.int32).max))
        n_jobs = estimator.get_params().get("n_jobs")
        return _LightGBMTable({"verbose": -1, **params, "num_threads": n_jobs or 0, "metric": "none"}, run, held_out)

    def settings_by_size(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        """Return leaves, rounds and learning rate; each tree sees half of the columns where there are enough."""
        return {
            **ROUNDS,
            "num_leaves": n_leaves(n_rows),
            "colsample_bytree": column_share(n_columns),
        }

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the raw score."""
        self.check_features(X)
        return np.asarray(estimator.predict(X, raw_score=True), dtype=np.float64)


class _LightGBMTable(BinnedTable):
    """LightGBM's data sets of training and held-out rows."""

    def __init__(self, params: dict[str, Any], run: TrainingRun, held_out: Any) -> None:
        lightgbm = load_extra("lightgbm")
        self._params, self._run = params, run
        options = {"params": params, "free_raw_data": False}
        init_score = np.full(len(run.y), run.initial_margin)
        with _column_errors(len(run.y)):
            self._training = lightgbm.Dataset(
                run.X, run.y, weight=run.sample_weight, init_score=init_score, **options
            ).construct()
        n_held_out = n_rows(held_out)
        margins = np.full(n_held_out, run.initial_margin)
        self._held_out = lightgbm.Dataset(
            held_out, np.zeros(n_held_out), init_score=margins, reference=self._training, **options
        ).construct()

    def start(self) -> BoosterRun:
        """Return a booster without any rounds."""
        with _column_errors(len(self._run.y)):
            booster = load_extra("lightgbm").Booster({**self._params, "objective": "none"}, self._training)
        booster.add_valid(self._held_out, "held out")
        return _LightGBMRun(booster, self._run)


class _LightGBMRun(BoosterRun):
    def __init__(self, booster: Any, run: TrainingRun) -> None:
        self._booster, self._run = booster, run

    def update(self, objective: Callable[..., Any]) -> None:
        """Train one round."""
        with _column_errors(len(self._run.y)):
            self._booster.update(fobj=lambda margins, _: objective(self._run.y, margins, self._run.sample_weight))

    def training_margins(self) -> NDArray[np.float64]:
        """Return the margins of the training rows."""
        return self._read(self._booster.eval_train)

    def held_out_margins(self) -> NDArray[np.float64]:
        """Return the margins of the held-out rows."""
        return self._read(self._booster.eval_valid)

    @staticmethod
    def _read(evaluate: Callable[..., Any]) -> NDArray[np.float64]:
        """Return what a metric is passed: LightGBM keeps the margins of these rows, and predicts nothing anew."""
        seen: list[NDArray[np.float64]] = []

        def metric(margins: Any, _: Any) -> tuple[str, float, bool]:
            seen.append(np.array(margins, dtype=np.float64))
            return "margins", 0.0, False

        evaluate(feval=metric)
        return seen[0]


@contextmanager
def _column_errors(n_rows_in_training: int) -> Iterator[None]:
    """Say in words where LightGBM finds nothing to split by."""
    try:
        yield
    except load_extra("lightgbm").basic.LightGBMError as error:
        if "num_features()) > (0)" not in str(error):
            raise
        raise ValueError(
            f"LightGBM finds no column to split {n_rows_in_training} rows by: all are constant, or there are fewer "
            "rows than two leaves of min_child_samples need. Pass more rows, or lower min_child_samples."
        ) from None


# XGBoost, as the estimators use it.

_SQUARED_ERROR = "reg:squarederror"


class XGBoost(Library):
    """`xgboost.XGBClassifier` and `xgboost.XGBRegressor`."""

    module = "xgboost"
    class_names: ClassVar = {"classification": "XGBClassifier", "regression": "XGBRegressor"}
    losses: ClassVar = {
        _SQUARED_ERROR: "squared_error",
        None: "squared_error",
        "reg:absoluteerror": "absolute_error",
        "count:poisson": "poisson",
        "reg:tweedie": "tweedie",
    }
    tree_size: ClassVar = ("max_depth", 4)
    size_params: ClassVar = {"max_depth", "max_leaves"}
    default_rate = 0.3
    neutral_params: ClassVar = {
        "objective": "binary:logistic",  # XGBoost changes it to "multi:softprob" for more than two classes
        "scale_pos_weight": None,
        "base_score": None,
        "eval_metric": None,
        "early_stopping_rounds": None,
        "callbacks": None,
        "monotone_constraints": None,
    }
    logistic_params: ClassVar = {
        "objective": "binary:logistic",
        "early_stopping_rounds": None,
    }

    def fit_plain(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit with XGBoost's own objective; a model of real numbers then predicts margins."""
        loss = self.loss_name(estimator)
        if loss in {"poisson", "tweedie"}:  # the same derivatives, and margins instead of their exponentials
            power = estimator.get_params().get("tweedie_variance_power") or TWEEDIE_POWER
            return self.fit_objective(estimator, run, plain_objective(make_loss(loss, power)))
        model = super().fit_plain(estimator, run)
        if loss == "absolute_error":
            base_score = model.get_params()["base_score"]
            content = json.loads(bytes(model.get_booster().save_raw("json")))
            content["learner"]["objective"] = {"name": _SQUARED_ERROR, "reg_loss_param": {"scale_pos_weight": "1"}}
            model.load_model(bytearray(json.dumps(content).encode()))
            model.set_params(objective=_SQUARED_ERROR, base_score=base_score)
        return model

    def fit_objective(self, estimator: Any, run: TrainingRun, objective: Callable[..., Any]) -> Any:
        """Fit; the booster keeps the initial margin as its base score. With a logarithmic link it predicts margins."""
        callback = DetachableCallback(objective)
        replaced = ("eval_metric", "early_stopping_rounds")
        original = {name: estimator.get_params()[name] for name in replaced}
        base_score = run.initial_margin if self.is_regression else 1.0 / (1.0 + math.exp(-run.initial_margin))
        settings = {**dict.fromkeys(replaced), **self._loss_params(estimator)}
        estimator.set_params(objective=callback, base_score=base_score, **settings)
        try:
            estimator.fit(run.X, run.y, sample_weight=run.sample_weight)
        finally:
            callback.detach()
            estimator.set_params(**original)
        return estimator.set_params(objective=_SQUARED_ERROR if self.is_regression else "binary:logistic")

    def _loss_params(self, estimator: Any) -> dict[str, Any]:
        if self.loss_name(estimator) == "poisson" and estimator.get_params()["max_delta_step"] is None:
            return {"max_delta_step": POISSON_STEP}
        return {}

    def open_table(self, estimator: Any, run: TrainingRun, held_out: Any) -> BinnedTable:
        """Return the rows as XGBoost's matrices."""
        params = {**estimator.get_xgb_params(), **self._loss_params(estimator)}
        params |= {"objective": _SQUARED_ERROR, "base_score": run.initial_margin, "disable_default_eval_metric": 1}
        for name in ("eval_metric", "scale_pos_weight", "tweedie_variance_power"):
            params.pop(name, None)
        known = estimator.get_params()
        options = {"missing": known["missing"], "enable_categorical": bool(known["enable_categorical"])}
        return _XGBoostTable(params, run, held_out, {**options, "feature_types": known["feature_types"]})

    def settings_by_size(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        """Return depth, rounds and learning rate; each tree sees half of the columns where there are enough."""
        return {
            **ROUNDS,
            "max_depth": round(math.log2(n_leaves(n_rows))),
            "colsample_bytree": column_share(n_columns),
        }

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the margin."""
        return np.asarray(estimator.predict(X, output_margin=True), dtype=np.float64)


class _XGBoostTable(BinnedTable):
    """XGBoost's matrices of training and held-out rows; histograms are kept with the former."""

    def __init__(self, params: dict[str, Any], run: TrainingRun, held_out: Any, options: dict[str, Any]) -> None:
        xgboost = load_extra("xgboost")
        self._params, self._run = params, run
        self._training = xgboost.DMatrix(run.X, run.y, weight=run.sample_weight, **options)
        self._held_out = xgboost.DMatrix(held_out, **options)

    def start(self) -> BoosterRun:
        """Return a booster without any rounds."""
        booster = load_extra("xgboost").Booster(self._params, [self._training, self._held_out])
        return _XGBoostRun(booster, self._run, self._training, self._held_out)


class _XGBoostRun(BoosterRun):
    def __init__(self, booster: Any, run: TrainingRun, training: Any, held_out: Any) -> None:
        self._booster, self._run, self._training, self._held_out = booster, run, training, held_out
        self._n_rounds = 0

    def update(self, objective: Callable[..., Any]) -> None:
        """Train one round."""
        margins = self.training_margins()
        gradient, curvature = objective(self._run.y, margins, self._run.sample_weight)
        self._booster.boost(self._training, self._n_rounds, grad=gradient, hess=curvature)
        self._n_rounds += 1

    def training_margins(self) -> NDArray[np.float64]:
        """Return the margins of the training rows, which XGBoost keeps."""
        return self._margins(self._training)

    def held_out_margins(self) -> NDArray[np.float64]:
        """Return the margins of the held-out rows, which XGBoost keeps."""
        return self._margins(self._held_out)

    def _margins(self, rows: Any) -> NDArray[np.float64]:
        return np.asarray(self._booster.predict(rows, output_margin=True), dtype=np.float64)


_LIBRARIES: tuple[type[Library], ...] = (LightGBM, XGBoost)
_REPAIR = {"classification": "QuantileRepairClassifier", "regression": "QuantileRepairRegressor"}


def default_estimator(task: str, random_state: int | None) -> Any:
    """Return LightGBM's estimator."""
    return getattr(load_extra("lightgbm"), LightGBM.class_names[task])(random_state=random_state, verbose=-1)


def sized_settings(
    settings: Settings, rows: TrainingData, n_iter_no_change: int | str | None, *, is_default: bool
) -> Settings:
    """Return the settings with those that the user left at the library's default chosen by the size of the table.

    The number of rounds and the learning rate belong together: both are chosen, or none. ``is_default`` says that the
    user gave no estimator.
    """
    library, estimator = settings.library, settings.estimator
    n_columns = getattr(rows.X, "shape", (0, 0))[1]
    chosen, unset = library.settings_by_size(rows.groups.n_rows, n_columns), library.unset_params(estimator)
    rounds = {"n_estimators", "learning_rate"}
    if not is_default:
        open_names = set(rounds) if rounds <= unset else set()
        if library.size_params <= unset:
            open_names |= library.size_params
        chosen = {name: value for name, value in chosen.items() if name in open_names}
    if is_small(rows.groups.n_rows) and "n_jobs" in unset:
        chosen["n_jobs"] = 1
    estimator = clone(estimator).set_params(**chosen)
    patience: int | None = None
    if isinstance(n_iter_no_change, int):
        patience = n_iter_no_change
    elif n_iter_no_change is not None and (is_default or "n_estimators" in unset):
        patience = math.ceil(PATIENCE / library.learning_rate(estimator))
    return replace(settings, estimator=estimator, patience=patience)


def library_of(estimator: Any, task: str) -> Library:
    """Return the library of an estimator; raise TypeError unless it is LightGBM's or XGBoost's for the task."""
    for cls in type(estimator).__mro__:  # a user's class may derive from a library's, whose own subclasses are refused
        for library in _LIBRARIES:
            if cls.__module__.partition(".")[0] == library.module:
                if cls.__name__ == library.class_names[task]:
                    return library(task)
                break
        else:
            continue
        break
    received = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
    first, second = (f"{library.module}.{library.class_names[task]}" for library in _LIBRARIES)
    other = "regression" if task == "classification" else "classification"
    hint = f"Other models can be wrapped in {_REPAIR[task]}."
    if any(type(estimator).__name__ == library.class_names[other] for library in _LIBRARIES):
        hint = f"For {other} use TransportBoosting{'Regressor' if other == 'regression' else 'Classifier'}."
    raise TypeError(f"estimator must be a {first} or an {second}; got {received}. {hint}")
