"""LightGBM, as the estimators use it."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals as nw
import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport.boosting._library import DetachableCallback, Library, TrainingRun, ValidationRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.boosting._early_stopping import EarlyStopping

__all__ = ["LightGBM"]

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
    small_tree_params: ClassVar = {"num_leaves": 15}
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

    def fit_objective(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit; then add the initial margin to the booster and give it LightGBM's objective of the task.

        With a logarithmic link the booster predicts margins.
        """
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
        name, line = ("regression", "regression") if self.is_regression else ("binary", "binary sigmoid:1")
        text = booster.model_to_string()
        booster.model_from_string(text.replace("\nfeature_names=", f"\nobjective={line}\nfeature_names=", 1))
        return estimator.set_params(objective=name)

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the raw score."""
        self.check_features(X)
        return np.asarray(estimator.predict(X, raw_score=True), dtype=np.float64)


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
