"""XGBoost, as the estimators use it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairtransport._extras import load_extra
from fairtransport.boosting._library import BinnedTable, BoosterRun, DetachableCallback, Library, TrainingRun
from fairtransport.boosting._losses import make_loss, plain_objective
from fairtransport.boosting._table_size import ROUNDS, column_share, n_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["XGBoost"]

_SQUARED_ERROR = "reg:squarederror"
_POISSON_STEP = 0.7  # XGBoost's default of max_delta_step for that loss
_POWER = 1.5  # of the Tweedie loss


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
            power = estimator.get_params().get("tweedie_variance_power") or _POWER
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
            return {"max_delta_step": _POISSON_STEP}
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
