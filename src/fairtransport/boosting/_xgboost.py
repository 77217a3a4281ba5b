"""XGBoost, as the estimators use it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairtransport._extras import load_extra
from fairtransport.boosting._library import DetachableCallback, Library, TrainingRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.boosting._early_stopping import EarlyStopping

__all__ = ["XGBoost"]

_SQUARED_ERROR = "reg:squarederror"
_POISSON_STEP = 0.7  # XGBoost's default of max_delta_step for that loss


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
    small_tree_params: ClassVar = {"max_depth": 4}
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
            return self.fit_objective(estimator, run)
        model = super().fit_plain(estimator, run)
        if loss == "absolute_error":
            base_score = model.get_params()["base_score"]
            content = json.loads(bytes(model.get_booster().save_raw("json")))
            content["learner"]["objective"] = {"name": _SQUARED_ERROR, "reg_loss_param": {"scale_pos_weight": "1"}}
            model.load_model(bytearray(json.dumps(content).encode()))
            model.set_params(objective=_SQUARED_ERROR, base_score=base_score)
        return model

    def fit_objective(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit; the booster keeps the initial margin as its base score. With a logarithmic link it predicts margins."""
        objective = DetachableCallback(run.objective)
        replaced = ("callbacks", "eval_metric", "early_stopping_rounds")
        original = {name: estimator.get_params()[name] for name in replaced}
        settings: dict[str, Any] = {"eval_metric": None, "early_stopping_rounds": None}
        if self.loss_name(estimator) == "poisson" and estimator.get_params()["max_delta_step"] is None:
            settings["max_delta_step"] = _POISSON_STEP
        stopping, options = None, {}
        if run.validation is not None:
            stopping = run.validation.stopping
            options = {"eval_set": [(run.validation.X, run.validation.y)], "verbose": False}
            settings["eval_metric"] = _xgboost_metric(stopping)
            settings["callbacks"] = [*(original["callbacks"] or []), _xgboost_stop(stopping)]
        base_score = run.initial_margin if self.is_regression else 1.0 / (1.0 + math.exp(-run.initial_margin))
        estimator.set_params(objective=objective, base_score=base_score, **settings)
        try:
            estimator.fit(run.X, run.y, sample_weight=run.sample_weight, **options)
        finally:
            objective.detach()
            estimator.set_params(**original)
        best = None if stopping is None else stopping.stopped_at()
        if best is not None:
            estimator.load_model(bytearray(estimator.get_booster()[:best].save_raw()))
        return estimator.set_params(objective=_SQUARED_ERROR if self.is_regression else "binary:logistic")

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the margin."""
        return np.asarray(estimator.predict(X, output_margin=True), dtype=np.float64)


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
