"""Parameters of LightGBM's and XGBoost's estimators that a model file may contain, and their ranges.

Both libraries take their parameters as text, and some allocate memory, start threads, open files or choose a device by
them. Only those of these lists are stored, and no text but words from a list.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.persistence.recipes._checks import is_bool, is_seed, number_in, one_of
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairtransport.persistence.recipes._checks import Check

__all__ = ["check_params", "stored_params"]

# Of the machine rather than of the model.
_NOT_STORED = {
    *("device", "device_type", "gpu_device_id", "gpu_id", "gpu_platform_id", "gpu_use_dp", "num_gpu", "predictor"),
    *("n_jobs", "num_thread", "num_threads", "nthread", "nthreads"),
}


def _integer(low: int, high: int = (1 << 31) - 1) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _words(*words: str) -> Check:
    """Return the check of one word, several separated by commas, or a list of words."""

    def check(value: Any) -> bool:
        parts = value.split(",") if isinstance(value, str) else value
        return isinstance(parts, (list, tuple)) and all(isinstance(part, str) and part in words for part in parts)

    return check


def _sequence_of(check: Check) -> Check:
    return lambda value: isinstance(value, (list, tuple)) and all(map(check, value))


def _is_missing(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isinf(value)


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_AMOUNT, value.values()))
    return isinstance(value, str) and value == "balanced"


# Losses of real numbers, by the names of the libraries.
_LIGHTGBM_LOSSES = (
    *("regression", "regression_l2", "l2", "mean_squared_error", "mse", "regression_l1", "l1", "mean_absolute_error"),
    *("mae", "poisson", "tweedie"),
)
_XGBOOST_LOSSES = ("reg:squarederror", "reg:absoluteerror", "count:poisson", "reg:tweedie")
_POWER = number_in(1.0, 2.0)
_COUNT = _integer(0)
_AMOUNT = number_in(0.0, 1e30)
_SHARE = number_in(0.0, 1.0)
_DIRECTION = _integer(-1, 1)

_LIGHTGBM_PARAMS: Mapping[str, Check] = {
    "bagging_fraction": _SHARE,
    "bagging_freq": _COUNT,
    "bagging_seed": is_seed,
    "boost_from_average": is_bool,
    "boosting_type": one_of("gbdt", "dart", "goss", "rf"),
    "cat_l2": _AMOUNT,
    "cat_smooth": _AMOUNT,
    "class_weight": _is_class_weight,
    "colsample_bytree": _SHARE,
    "data_random_seed": is_seed,
    "data_sample_strategy": one_of("bagging", "goss"),
    "deterministic": is_bool,
    "drop_rate": _SHARE,
    "drop_seed": is_seed,
    "early_stopping_min_delta": _AMOUNT,
    "early_stopping_round": _COUNT,
    "early_stopping_rounds": _COUNT,
    "enable_bundle": is_bool,
    "extra_seed": is_seed,
    "extra_trees": is_bool,
    "feature_fraction": _SHARE,
    "feature_fraction_bynode": _SHARE,
    "feature_fraction_seed": is_seed,
    "feature_pre_filter": is_bool,
    "first_metric_only": is_bool,
    "force_col_wise": is_bool,
    "force_row_wise": is_bool,
    "importance_type": one_of("split", "gain"),
    "interaction_constraints": _sequence_of(_sequence_of(_COUNT)),
    "is_unbalance": is_bool,
    "lambda_l1": _AMOUNT,
    "lambda_l2": _AMOUNT,
    "learning_rate": _AMOUNT,
    "linear_tree": is_bool,
    "max_bin": _integer(2, 65535),
    "max_cat_threshold": _integer(1),
    "max_cat_to_onehot": _integer(1),
    "max_delta_step": number_in(-1e30, 1e30),
    "max_depth": _integer(-1),
    "max_drop": _integer(-1),
    "metric": _words("", "None", "auc", "average_precision", "binary_error", "binary_logloss", "l1", "l2", "rmse"),
    "min_child_samples": _COUNT,
    "min_child_weight": _AMOUNT,
    "min_data_in_bin": _integer(1),
    "min_data_in_leaf": _COUNT,
    "min_data_per_group": _integer(1),
    "min_gain_to_split": _AMOUNT,
    "min_split_gain": _AMOUNT,
    "min_sum_hessian_in_leaf": _AMOUNT,
    "monotone_constraints": _sequence_of(_DIRECTION),
    "monotone_constraints_method": one_of("basic", "intermediate", "advanced"),
    "monotone_penalty": _AMOUNT,
    "n_estimators": _integer(1),
    "neg_bagging_fraction": _SHARE,
    "num_leaves": _integer(2, 131_072),
    "objective": one_of("binary"),
    "other_rate": _SHARE,
    "path_smooth": _AMOUNT,
    "pos_bagging_fraction": _SHARE,
    "random_state": is_seed,
    "reg_alpha": _AMOUNT,
    "reg_lambda": _AMOUNT,
    "scale_pos_weight": _AMOUNT,
    "seed": is_seed,
    "sigmoid": one_of(1, 1.0),
    "skip_drop": _SHARE,
    "subsample": _SHARE,
    "subsample_for_bin": _integer(1),
    "subsample_freq": _COUNT,
    "top_rate": _SHARE,
    "uniform_drop": is_bool,
    "use_missing": is_bool,
    "verbose": _integer(-10, 10),
    "verbosity": _integer(-10, 10),
    "xgboost_dart_mode": is_bool,
    "zero_as_missing": is_bool,
}

_XGBOOST_PARAMS: Mapping[str, Check] = {
    "alpha": _AMOUNT,
    "base_score": number_in(1e-16, 1.0 - 1e-16),
    "booster": one_of("gbtree", "dart", "gblinear"),
    "colsample_bylevel": _SHARE,
    "colsample_bynode": _SHARE,
    "colsample_bytree": _SHARE,
    "early_stopping_rounds": _integer(1),
    "enable_categorical": is_bool,
    "eta": _AMOUNT,
    "eval_metric": _words("auc", "aucpr", "error", "logloss", "mae", "rmse"),
    "feature_types": _sequence_of(one_of("float", "int", "i", "q", "c")),
    "feature_weights": _sequence_of(_AMOUNT),
    "gamma": _AMOUNT,
    "grow_policy": one_of("depthwise", "lossguide"),
    "importance_type": one_of("gain", "weight", "cover", "total_gain", "total_cover"),
    "lambda": _AMOUNT,
    "learning_rate": _AMOUNT,
    "max_bin": _integer(2, 65535),
    "max_cat_threshold": _integer(1),
    "max_cat_to_onehot": _integer(1),
    "max_delta_step": _AMOUNT,
    "max_depth": _COUNT,
    "max_leaves": _COUNT,
    "min_child_weight": _AMOUNT,
    "missing": _is_missing,
    "monotone_constraints": _sequence_of(_DIRECTION),
    "multi_strategy": one_of("one_output_per_tree"),
    "n_estimators": _integer(1),
    "normalize_type": one_of("tree", "forest"),
    "num_parallel_tree": _integer(1),
    "objective": one_of("binary:logistic"),
    "one_drop": is_bool,
    "random_state": is_seed,
    "rate_drop": _SHARE,
    "reg_alpha": _AMOUNT,
    "reg_lambda": _AMOUNT,
    "sample_type": one_of("uniform", "weighted"),
    "sampling_method": one_of("uniform", "gradient_based"),
    "scale_pos_weight": _AMOUNT,
    "seed": is_seed,
    "skip_drop": _SHARE,
    "subsample": _SHARE,
    "tree_method": one_of("auto", "approx", "exact", "hist"),
    "validate_parameters": is_bool,
    "verbosity": _integer(0, 3),
}


_PARAMS: Mapping[str, Mapping[str, Check]] = {
    "LGBMClassifier": _LIGHTGBM_PARAMS,
    "LGBMRegressor": {**_LIGHTGBM_PARAMS, "objective": one_of(*_LIGHTGBM_LOSSES), "tweedie_variance_power": _POWER},
    "XGBClassifier": _XGBOOST_PARAMS,
    "XGBRegressor": {
        **_XGBOOST_PARAMS,
        "base_score": number_in(-1e30, 1e30),
        "objective": one_of(*_XGBOOST_LOSSES),
        "tweedie_variance_power": _POWER,
    },
}


def stored_params(params: Mapping[str, Any], class_name: str) -> dict[str, Any]:
    """Return the parameters to store: those that are set, without those of the machine.

    Raises
    ------
    TypeError
        If a parameter cannot be stored.
    """
    stored = {name: value for name, value in params.items() if value is not None and name not in _NOT_STORED}
    stored = {name: value.item() if isinstance(value, np.generic) else value for name, value in stored.items()}
    checks = _PARAMS[class_name]
    refused = sorted(name for name, value in stored.items() if name not in checks or not checks[name](value))
    if refused:
        raise TypeError(
            f"A model file cannot store these parameters of {class_name}, or not with their values: "
            f"{', '.join(refused)}. Predictions do not depend on them: set them to None before saving, "
            f"set_params({refused[0]}=None)."
        )
    return stored


def check_params(params: Any, class_name: str) -> dict[str, Any]:
    """Return the parameters of a file; raise a ModelFileError unless each is in the list, with an allowed value."""
    checks = _PARAMS[class_name]
    if not isinstance(params, dict) or not all(name in checks and checks[name](params[name]) for name in params):
        raise ModelFileError(f"The file has parameters of a {class_name} that are not allowed; do not trust it.")
    return params
