"""LightGBM and XGBoost behind one interface: training with a custom objective, margins, and default settings."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fairtransport._arrays import Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport._sklearn import n_rows, stored_numbers, take_rows
from fairtransport._validation import check_real
from fairtransport.boosting import _constants as const
from fairtransport.boosting._objective import Loss, make_loss
from fairtransport.boosting._training_data import TrainingData


@dataclass(eq=False)
class DetachableCallback:
    """An objective that copies share, until training ends.

    LightGBM copies its objective before training, and fitted estimators keep theirs. It holds the groups of the
    training rows, of which nothing may remain in the fitted model: without the function, no copy has them.
    """

    function: Callable[..., Any] | None

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __call__(self, labels: Any, margins: Any, sample_weight: Any = None) -> Any:
        if self.function is None:
            raise RuntimeError("This model was trained by fairtransport.boosting; fit that estimator again instead.")
        return self.function(labels, margins, sample_weight)


class _Library:
    """The functions of both libraries that the estimators use."""

    module: ClassVar[str]
    class_names: ClassVar[dict[str, str]]
    tree_size: ClassVar[str]
    size_params: ClassVar[set[str]]
    default_rate: ClassVar[float]
    neutral_params: ClassVar[dict[str, Any]]
    logistic_params: ClassVar[dict[str, Any]]
    losses: ClassVar[Mapping[str | None, str]]

    def __init__(self, estimator: Any, task: str, patience: int | None = None) -> None:
        self.estimator, self.task, self.patience, self.chooses_rounds = estimator, task, patience, False
        self.is_regression = task == "regression"

    @classmethod
    def estimator_class(cls, task: str) -> Any:
        """Return the library's class of estimators for a task."""
        return getattr(load_extra(cls.module), cls.class_names[task])

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return dict(self.estimator.get_params())

    def _set(self, name: str, value: Any) -> None:
        self.estimator.set_params(**{name: value})
        self._settings[name] = value

    def param(self, name: str, default: Any = None) -> Any:
        """Return a setting of the estimator, or a default where there is none."""
        value = self._settings.get(name)
        return default if value is None else value

    def with_rounds(self, n_rounds: int) -> Any:
        """Return an unfitted copy of the estimator with this number of rounds."""
        return clone(self.estimator).set_params(n_estimators=n_rounds)

    @property
    def n_rounds(self) -> int:
        """The number of rounds, or the largest."""
        return int(self.param("n_estimators", 100))

    @property
    def learning_rate(self) -> float:
        """The learning rate."""
        return float(self.param("learning_rate", self.default_rate))

    @cached_property
    def power(self) -> float:
        """The variance power of the Tweedie loss."""
        return self.param("tweedie_variance_power", const.TWEEDIE_POWER)

    @cached_property
    def loss(self) -> Loss:
        """The loss."""
        return make_loss(self.loss_name, self.power)

    def initial_margin(self, rows: TrainingData) -> float:
        """Return the margin of the best constant."""
        return self.loss.constant(rows.labels, rows.weights)

    @cached_property
    def loss_name(self) -> str:
        """The loss that the estimator's objective names."""
        if not self.is_regression:
            return "log_loss"
        objective = self.param("objective")
        if not (objective is None or isinstance(objective, str)) or objective not in self.losses:
            known = dict.fromkeys(self.losses.values())
            names = [next(name for name, loss in self.losses.items() if loss == one and name) for one in known]
            raise ValueError(
                f"The objective of the estimator must be one of {', '.join(map(repr, names))}, which are the losses "
                "that predictions of groups are compared for."
            )
        return self.losses[objective]

    def group_params(self, n_rows: int, n_groups: int, n_in_table: int) -> dict[str, Any]:
        """Return settings of a model of the groups: few rounds, and trees that grow with the rows of a group."""
        is_short = n_in_table > const.LARGE_TABLE or n_groups > const.FEW_GROUPS
        rounds, rate, most = const.SHORT_GROUP_ROUNDS if is_short else const.GROUP_ROUNDS
        leaves = min(max(round(math.sqrt(n_rows / n_groups / const.ROWS_OF_GROUP_LEAVES)), const.FEWEST_LEAVES), most)
        size, given = self._size(leaves), self.param(self.tree_size)
        size = min(size, given) if isinstance(given, int) and given > 0 else size
        return {"n_estimators": rounds, "learning_rate": rate, self.tree_size: size}

    def open_groups(self, X: Any, codes: Ints, weights: Floats | None) -> Callable[[Ints, Ints], tuple[Ints, Floats]]:
        """Return a function that trains a model of the groups on some rows: codes, and their shares in other rows."""

        def predict(training: Ints, others: Ints) -> tuple[Ints, Floats]:
            known, labels = np.unique(codes[training], return_inverse=True)
            model = clone(self.estimator)
            if self.is_regression:
                model = self.estimator_class("classification")(**model.get_params())
            model = _with_params(model, self.neutral_params | self.group_params(len(training), len(known), len(codes)))
            sample_weight = None if weights is None else weights[training]
            model.fit(take_rows(X, training), labels, sample_weight=sample_weight)
            return known, model.predict_proba(take_rows(X, others))

        return predict

    def unset_params(self) -> set[str]:
        """Return the names of settings that the estimator has at the library's default."""
        known, given = self.estimator_class(self.task)().get_params(), self.estimator.get_params()
        return {name for name, value in given.items() if name in known and _same(value, known[name])}

    def sized(
        self, rows: TrainingData, n_iter_no_change: int | str | None, *, is_default: bool, is_weight_open: bool = True
    ) -> Self:
        """Return the library with settings that the user left at its defaults chosen by the size of the table.

        The number of rounds and the learning rate belong together: both are chosen, or none. ``is_default`` says that
        the user gave no estimator.
        """
        n_rows, n_columns, unset = rows.groups.n_rows, getattr(rows.X, "shape", (0, 0))[1], self.unset_params()
        rate = 0.5 if self.is_regression else float(np.mean(rows.labels))
        chosen = self.settings_by_size(n_rows, n_columns, 4.0 * rate * (1.0 - rate))
        if is_weight_open and issparse(rows.X) and n_columns > const.FEW_COLUMNS:
            chosen["colsample_bytree"] = const.SPARSE_COLUMN_SHARE
        if not is_default:
            open_names = {name for names in (set(const.ROUNDS), self.size_params) if names <= unset for name in names}
            chosen = {name: value for name, value in chosen.items() if name in open_names}
        if stored_numbers(rows.X) <= const.ONE_THREAD and "n_jobs" in unset:
            chosen["n_jobs"] = 1
        chosen |= self.reproducible_params(rows.X)
        sized = type(self)(clone(self.estimator).set_params(**chosen), self.task)
        sized.chooses_rounds = "n_estimators" in chosen
        if isinstance(n_iter_no_change, int):
            sized.patience = n_iter_no_change
        elif n_iter_no_change is not None and (is_default or "n_estimators" in unset):
            sized.patience = math.ceil(const.PATIENCE / sized.learning_rate)
        return sized

    def coarse(self, *, is_long: bool) -> tuple[Self, float]:
        """Return the library for a search, and how many final rounds one stands for: several, if they are open."""
        if not self.chooses_rounds:
            return self, 1.0
        rate, times = const.COARSE_OF_LONG if is_long else const.COARSE
        settings = {"n_estimators": math.ceil(self.n_rounds / times), "learning_rate": rate * self.learning_rate}
        patience = None if self.patience is None else math.ceil(self.patience / times)
        return type(self)(clone(self.estimator).set_params(**settings), self.task, patience), times

    def reproducible_params(self, X: Any) -> dict[str, Any]:  # noqa: ARG002 - used by LightGBM
        """Return settings with which two fits give the same model."""
        return {}

    def settings_by_size(self, n_rows: int, n_columns: int, balance: float) -> dict[str, Any]:
        """Return settings of the trees for a table of this size: each sees half of the columns if there are enough.

        ``balance`` is the variance of the labels, 1 for equally frequent ones: what a row shows about a rate.
        """
        leaves = min(
            max(round(math.sqrt(balance * n_rows / const.ROWS_OF_LEAVES)), const.FEWEST_LEAVES), const.MOST_LEAVES
        )
        share = const.COLUMN_SHARE if n_columns > const.FEW_COLUMNS else 1.0
        chosen = {**const.ROUNDS, self.tree_size: self._size(leaves), "colsample_bytree": share}
        return chosen | (
            {"min_child_samples": round(const.LEAF_ROWS / balance)} if self.tree_size == "num_leaves" else {}
        )

    def _size(self, leaves: int) -> int:
        return leaves if self.tree_size == "num_leaves" else round(math.log2(leaves))

    def check_features(self, X: Any) -> None:
        """Raise TypeError for features that the library cannot read and does not refuse."""

    def check_settings(self) -> None:
        """Raise ValueError for settings with which no custom objective is possible."""

    def absorb_class_weights(
        self,
        classes: NDArray[Any],  # noqa: ARG002 - used by LightGBM
        labels: Ints,
        weights: Floats | None,
    ) -> Floats | None:
        """Move the class weights among an estimator's settings into the weights of the rows, and return these.

        The libraries apply ``scale_pos_weight`` only with their built-in objectives.
        """
        scale = self.param("scale_pos_weight", 1)
        if scale == 1:
            return weights
        self._set("scale_pos_weight", 1)
        ones = np.ones(len(labels)) if weights is None else weights
        return np.asarray(ones * np.where(labels > 0, check_real(scale, name="scale_pos_weight", strict=True), 1.0))

    def _plain(self, n_rounds: int) -> Any:
        params = dict(self.logistic_params)
        if self.is_regression:
            del params["objective"]
        return _with_params(self.with_rounds(n_rounds), params)


def _with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return the estimator with those of the settings that it has."""
    known = estimator.get_params()
    return estimator.set_params(**{name: value for name, value in params.items() if name in known})


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, (bool, int, float, str)) and one == other)


# LightGBM, as the estimators use it.

# What LightGBM reads from Arrow's format.
_ARROW_NUMBERS = {nw.Boolean, nw.Float32, nw.Float64, nw.Int8, nw.Int16, nw.Int32, nw.Int64}
_ARROW_NUMBERS |= {nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64}


class LightGBM(_Library):
    """`lightgbm.LGBMClassifier` and `lightgbm.LGBMRegressor`."""

    module = "lightgbm"
    class_names: ClassVar = {"classification": "LGBMClassifier", "regression": "LGBMRegressor"}
    tree_size = "num_leaves"
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

    def reproducible_params(self, X: Any) -> dict[str, Any]:
        """Return how histograms are built: by LightGBM's choice it would be what is faster at the moment."""
        if {"deterministic", "force_row_wise", "force_col_wise"} & set(self.estimator.get_params()):
            return {}
        return {"deterministic": True, "force_row_wise" if issparse(X) else "force_col_wise": True}

    def check_settings(self) -> None:
        """Raise ValueError for forests."""
        params = self.estimator.get_params()
        if params.get("boosting", params["boosting_type"]) in {"rf", "random_forest"}:
            raise ValueError("LightGBM's forests (boosting_type='rf') take no custom objective; use 'gbdt' or 'dart'.")

    def absorb_class_weights(self, classes: NDArray[Any], labels: Ints, weights: Floats | None) -> Floats | None:
        """Move ``class_weight``, whose keys are the original labels, into the weights, too."""
        params = self.estimator.get_params()
        if any(params.get(name) for name in ("is_unbalance", "unbalance", "unbalanced_sets")):
            raise ValueError("is_unbalance is a setting of LightGBM's built-in objective; use class_weight='balanced'.")
        if params["class_weight"] is not None:
            factors = compute_sample_weight(params["class_weight"], classes[labels])
            weights = factors if weights is None else factors * weights
            self._set("class_weight", None)
        return super().absorb_class_weights(classes, labels, weights)

    def fit_plain(self, rows: TrainingData, n_rounds: int) -> tuple[Any, Floats]:
        """Fit with LightGBM's own objective; a model of real numbers then predicts margins. Return it and these."""
        model = self._plain(n_rounds)
        margins = self.loss.margins(_fit(model, rows))
        if self.is_regression:
            text = model.booster_.model_to_string()
            model.booster_.model_from_string(re.sub(r"\nobjective=[^\n]*\n", "\nobjective=regression\n", text, count=1))
            model.set_params(objective="regression")
        return model, margins

    def fit_objective(self, rows: TrainingData, n_rounds: int, objective: Callable[..., Any]) -> tuple[Any, Floats]:
        """Fit; then add the initial margin to the booster and give it LightGBM's objective of the task.

        With a logarithmic link the booster predicts margins. Return the model, and the margins of the rows.
        """
        estimator, callback = self.with_rounds(n_rounds), DetachableCallback(objective)
        estimator.set_params(objective=callback)
        margin = self.initial_margin(rows)
        try:
            margins = _fit(estimator, rows, init_score=np.full(len(rows.labels), margin))
        finally:
            callback.function = None
        booster = estimator.booster_
        for leaf in range(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]):
            booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + margin)
        name, line = ("regression", "regression") if self.is_regression else ("binary", "binary sigmoid:1")
        text = booster.model_to_string()
        booster.model_from_string(text.replace("\nfeature_names=", f"\nobjective={line}\nfeature_names=", 1))
        return estimator.set_params(objective=name), margins

    def _params(self) -> dict[str, Any]:
        params = {name: value for name, value in self.estimator.get_params().items() if value is not None}
        for name in ("n_estimators", "class_weight", "importance_type", "objective", "n_jobs"):
            params.pop(name, None)
        if isinstance(params.get("random_state"), np.random.RandomState):
            params["random_state"] = int(params["random_state"].randint(np.iinfo(np.int32).max))
        return {"verbose": -1, **params, "num_threads": self.param("n_jobs", 0), "metric": "none"}

    def open_groups(self, X: Any, codes: Ints, weights: Floats | None) -> Callable[[Ints, Ints], tuple[Ints, Floats]]:
        """Bin the rows once, in few bins, and read the predictions that LightGBM keeps of rows beside its own."""
        lightgbm, params = load_extra("lightgbm"), self._params()
        params |= {"max_bin": min(const.GROUP_BINS, self.param("max_bin", const.GROUP_BINS)), "linear_tree": False}
        params |= {"max_delta_step": const.GROUP_STEP}
        known, labels = np.unique(codes, return_inverse=True)
        is_large = len(codes) > const.LARGE_TABLE
        params |= {"objective": "multiclass", "num_class": len(known)} if len(known) > 2 else {"objective": "binary"}
        with _column_errors(len(codes)):
            table = lightgbm.Dataset(X, labels, weight=weights, params=params).construct()

        def predict(training: Ints, others: Ints) -> tuple[Ints, Floats]:
            settings = params | self.group_params(len(training), len(np.unique(codes[training])), len(codes))
            with _column_errors(len(training)):
                booster = lightgbm.Booster(settings, table.subset(training, settings).construct())
                booster.add_valid(table.subset(others, settings).construct(), "others")
                for number in range(1, settings["n_estimators"] + 1):
                    booster.update()
                    if (number in const.LOOKS and is_large) or number == settings["n_estimators"]:
                        shares = _kept_predictions(booster.eval_valid)
                        shares = shares if len(known) > 2 else np.column_stack((1.0 - shares, shares))
                        likely = shares.argmax(axis=1)
                        if is_large and np.mean(likely == labels[others]) >= const.KNOWN_SHARE:
                            return known, np.eye(len(known))[likely]
            return known, shares

        return predict

    def open_table(self, rows: TrainingData, held_out: Any) -> Callable[..., BoosterRun]:
        """Bin training and held-out rows once; return a function that starts a booster on them, from any margins."""
        lightgbm, params = load_extra("lightgbm"), self._params()
        margin = self.initial_margin(rows)

        def data_set(X: Any, y: NDArray[Any], **options: Any) -> Any:
            margins = np.full(len(y), margin)
            return lightgbm.Dataset(X, y, init_score=margins, params=params, free_raw_data=False, **options).construct()

        with _column_errors(len(rows.labels)):
            training = data_set(rows.X, rows.labels, weight=rows.weights)
        validation = data_set(held_out, np.zeros(n_rows(held_out)), reference=training)
        return partial(_LightGBMRun, params, rows, training, validation)

    def margins(self, estimator: Any, X: Any) -> Floats:
        """Return the raw score."""
        self.check_features(X)
        return np.asarray(estimator.predict(X, raw_score=True), dtype=np.float64)


class _LightGBMRun:
    """A booster of LightGBM that is trained one round at a time."""

    def __init__(
        self, params: dict[str, Any], rows: TrainingData, training: Any, held_out: Any, margins: Any = ()
    ) -> None:
        self._rows = rows
        for table, before in zip((training, held_out), margins, strict=False):
            table.set_init_score(before)
        with _column_errors(len(rows.labels)):
            self._booster = load_extra("lightgbm").Booster({**params, "objective": "none"}, training)
        self._booster.add_valid(held_out, "held out")

    def update(self, objective: Callable[..., Any]) -> None:
        """Train one round."""
        with _column_errors(len(self._rows.labels)):
            self._booster.update(fobj=lambda margins, _: objective(self._rows.labels, margins, self._rows.weights))

    def training_margins(self) -> Floats:
        """Return the margins of the training rows."""
        return _kept_predictions(self._booster.eval_train)

    def held_out_margins(self) -> Floats:
        """Return the margins of the held-out rows."""
        return _kept_predictions(self._booster.eval_valid)


def _fit(estimator: Any, rows: TrainingData, **options: Any) -> Floats:
    """Fit an estimator of LightGBM; return the predictions of its training rows."""
    kept: list[Floats] = []

    def keep(step: Any) -> None:
        if step.iteration + 1 == step.end_iteration:
            kept.append(_kept_predictions(step.model.eval_train))

    with _column_errors(len(rows.labels)):
        estimator.fit(rows.X, rows.labels, sample_weight=rows.weights, callbacks=[keep], **options)
    return kept[0]


def _kept_predictions(evaluate: Callable[..., Any]) -> Floats:
    """Return what a metric is passed: LightGBM keeps the predictions of these rows, and makes none anew."""
    seen: list[Floats] = []

    def metric(predictions: Any, _: Any) -> tuple[str, float, bool]:
        seen.append(np.array(predictions, dtype=np.float64))
        return "kept", 0.0, False

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


class XGBoost(_Library):
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
    tree_size = "max_depth"
    size_params: ClassVar = {"max_depth", "max_leaves"}
    default_rate = 0.3
    logistic_params: ClassVar = {"objective": "binary:logistic", "early_stopping_rounds": None}
    neutral_params: ClassVar = {  # XGBoost changes the objective to "multi:softprob" for more than two classes
        **logistic_params,
        **dict.fromkeys(("scale_pos_weight", "base_score", "eval_metric", "callbacks", "monotone_constraints")),
    }

    def fit_plain(self, rows: TrainingData, n_rounds: int) -> tuple[Any, Floats]:
        """Fit with XGBoost's own objective; a model of real numbers then predicts margins. Return it and these."""
        if self.loss.link == "log":  # the same derivatives, and margins instead of their exponentials
            return self.fit_objective(rows, n_rounds, self.loss.objective)
        model = self._plain(n_rounds).fit(rows.X, rows.labels, sample_weight=rows.weights)
        if self.loss_name == "absolute_error":
            base_score = model.get_params()["base_score"]
            content = json.loads(bytes(model.get_booster().save_raw("json")))
            content["learner"]["objective"] = {"name": _SQUARED_ERROR, "reg_loss_param": {"scale_pos_weight": "1"}}
            model.load_model(bytearray(json.dumps(content).encode()))
            model.set_params(objective=_SQUARED_ERROR, base_score=base_score)
        return model, self.margins(model, rows.X)

    def fit_objective(self, rows: TrainingData, n_rounds: int, objective: Callable[..., Any]) -> tuple[Any, Floats]:
        """Fit; the booster keeps the initial margin as its base score. With a logarithmic link it predicts margins."""
        estimator, callback = self.with_rounds(n_rounds), DetachableCallback(objective)
        replaced = ("eval_metric", "early_stopping_rounds")
        original = {name: estimator.get_params()[name] for name in replaced}
        margin = self.initial_margin(rows)
        base_score = margin if self.is_regression else 1.0 / (1.0 + math.exp(-margin))
        settings = {**dict.fromkeys(replaced), **self._loss_params()}
        estimator.set_params(objective=callback, base_score=base_score, **settings)
        try:
            estimator.fit(rows.X, rows.labels, sample_weight=rows.weights)
        finally:
            callback.function = None
            estimator.set_params(**original)
        estimator.set_params(objective=_SQUARED_ERROR if self.is_regression else "binary:logistic")
        return estimator, self.margins(estimator, rows.X)

    def _loss_params(self) -> dict[str, Any]:
        if self.loss_name == "poisson" and self.param("max_delta_step") is None:
            return {"max_delta_step": const.POISSON_STEP}
        return {}

    def open_table(self, rows: TrainingData, held_out: Any) -> Callable[..., BoosterRun]:
        """Bin training and held-out rows once; return a function that starts a booster on them, from any margins."""
        params = {**self.estimator.get_xgb_params(), **self._loss_params()}
        params |= {
            "objective": _SQUARED_ERROR,
            "base_score": self.initial_margin(rows),
            "disable_default_eval_metric": 1,
        }
        for name in ("eval_metric", "scale_pos_weight", "tweedie_variance_power"):
            params.pop(name, None)
        known = self.estimator.get_params()
        options = {name: known[name] for name in ("missing", "feature_types")}
        make = partial(load_extra("xgboost").DMatrix, enable_categorical=bool(known["enable_categorical"]), **options)
        training = make(rows.X, rows.labels, weight=rows.weights)  # histograms are kept with it
        return partial(_XGBoostRun, params, rows, training, make(held_out))

    def margins(self, estimator: Any, X: Any) -> Floats:
        """Return the margin."""
        return np.asarray(estimator.predict(X, output_margin=True), dtype=np.float64)


class _XGBoostRun:
    """A booster of XGBoost that is trained one round at a time."""

    def __init__(
        self, params: dict[str, Any], rows: TrainingData, training: Any, held_out: Any, margins: Any = ()
    ) -> None:
        for table, before in zip((training, held_out), margins, strict=False):
            table.set_base_margin(before)
        self._booster = load_extra("xgboost").Booster(params, [training, held_out])
        self._rows, self._training, self._held_out, self._n_rounds = rows, training, held_out, 0

    def update(self, objective: Callable[..., Any]) -> None:
        """Train one round."""
        margins = self.training_margins()
        gradient, curvature = objective(self._rows.labels, margins, self._rows.weights)
        self._booster.boost(self._training, self._n_rounds, grad=gradient, hess=curvature)
        self._n_rounds += 1

    def training_margins(self) -> Floats:
        """Return the margins of the training rows, which XGBoost keeps."""
        return self._margins(self._training)

    def held_out_margins(self) -> Floats:
        """Return the margins of the held-out rows, which XGBoost keeps."""
        return self._margins(self._held_out)

    def _margins(self, rows: Any) -> Floats:
        return np.asarray(self._booster.predict(rows, output_margin=True), dtype=np.float64)


Library = LightGBM | XGBoost
BoosterRun = _LightGBMRun | _XGBoostRun

_LIBRARIES: tuple[type[Library], ...] = (LightGBM, XGBoost)
_REPAIR = {"classification": "QuantileRepairClassifier", "regression": "QuantileRepairRegressor"}


def default_estimator(task: str) -> Any:
    """Return LightGBM's estimator, with one seed for everybody."""
    return LightGBM.estimator_class(task)(random_state=0, verbose=-1)


def library_of(estimator: Any, task: str) -> Library:
    """Return the library of an estimator; raise TypeError unless it is LightGBM's or XGBoost's for the task."""
    for cls in type(estimator).__mro__:  # a user's class may derive from a library's, whose own subclasses are refused
        for library in _LIBRARIES:
            if cls.__module__.partition(".")[0] == library.module:
                if cls.__name__ == library.class_names[task]:
                    return library(estimator, task)
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
