"""Recipes of boosted trees: parameters, and the trees as checked arrays, from which the library's model is rebuilt."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.criteria import CRITERIA, STRATUM_WEIGHTS, ContinuousDistance, DiscreteDistance
from fairtransport.criteria.penalty import SCALES
from fairtransport.groups import Groups
from fairtransport.persistence._values import ValueType
from fairtransport.persistence.recipes._registry import (
    GROUP_PARAMS,
    Recipe,
    any_of,
    dict_of,
    instance_of,
    is_bool,
    is_count,
    is_estimator,
    is_finite,
    is_none,
    is_seed,
    is_text,
    is_word,
    label_array,
    number_array,
    number_in,
    one_of,
    summarize_target,
)
from fairtransport.persistence.trees import (
    MAX_CATEGORIES,
    ColumnCategories,
    InvalidTreesError,
    LightGBMTrees,
    XGBoostTrees,
)
from fairtransport.repair import QuantileRepair
from fairtransport.storage import ModelFileError
from fairtransport.strata import Strata
from fairtransport.tabular.column_plans import pandas_categories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from fairtransport.persistence.recipes._registry import Check

# Categories of the columns that LightGBM was trained with as pandas categories.

_LABELS = (str, int, float, bool, type(None))


def are_columns(columns: Any, n_columns: int) -> bool:
    """Return whether these are ascending positions of columns."""
    if not number_array(1)(columns) or columns.dtype != np.int64:
        return False
    return bool((columns >= 0).all() and (columns < n_columns).all() and (np.diff(columns) > 0).all())


def categories_to_arrays(categories: list[list[Any]] | None) -> list[NDArray[Any]] | None:
    """Return the categories of each categorical column of a table as an array."""
    if categories is None:
        return None
    arrays = []
    for column in categories:
        values = [value.item() if isinstance(value, np.generic) else value for value in column]
        kinds = {type(value) for value in values}
        if not kinds <= {*_LABELS}:
            raise InvalidTreesError("it has categories that are neither text nor numbers")
        array = np.array(values) if len(kinds) == 1 and kinds <= {str, int, float} else None
        if array is None or array.tolist() != values:  # mixed, or with trailing NUL
            array = np.empty(len(values), dtype=object)
            array[:] = values
        arrays.append(array)
    return arrays


def categories_from_arrays(arrays: Any, n_columns: int) -> list[list[Any]] | None:
    """Return the categories of each categorical column; raise InvalidTreesError for what is none."""
    if arrays is None:
        return None
    if not isinstance(arrays, list) or len(arrays) > n_columns or not all(map(label_array(1), arrays)):
        raise InvalidTreesError("categories are not an array for each categorical column")
    if sum(array.size for array in arrays) > MAX_CATEGORIES:
        raise InvalidTreesError(f"columns have more than {MAX_CATEGORIES} categories")
    columns = [array.tolist() for array in arrays]
    if any(len(set(column)) != len(column) for column in columns):
        raise InvalidTreesError("a column has one category twice")
    return columns


# Parameters of LightGBM's and XGBoost's estimators that a model file may contain, and their ranges.

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
        return all(map(_LEARNER_AMOUNT, value.values()))
    return isinstance(value, str) and value == "balanced"


# Losses of real numbers, by the names of the libraries.
_LIGHTGBM_LOSSES = (
    *("regression", "regression_l2", "l2", "mean_squared_error", "mse", "regression_l1", "l1", "mean_absolute_error"),
    *("mae", "poisson", "tweedie"),
)
_XGBOOST_LOSSES = ("reg:squarederror", "reg:absoluteerror", "count:poisson", "reg:tweedie")
_POWER = number_in(1.0, 2.0)
_COUNT = _integer(0)
_LEARNER_AMOUNT = number_in(0.0, 1e30)
_SHARE = number_in(0.0, 1.0)
_DIRECTION = _integer(-1, 1)

_LIGHTGBM_PARAMS: Mapping[str, Check] = {
    "bagging_fraction": _SHARE,
    "bagging_freq": _COUNT,
    "bagging_seed": is_seed,
    "boost_from_average": is_bool,
    "boosting_type": one_of("gbdt", "dart", "goss", "rf"),
    "cat_l2": _LEARNER_AMOUNT,
    "cat_smooth": _LEARNER_AMOUNT,
    "class_weight": _is_class_weight,
    "colsample_bytree": _SHARE,
    "data_random_seed": is_seed,
    "data_sample_strategy": one_of("bagging", "goss"),
    "deterministic": is_bool,
    "drop_rate": _SHARE,
    "drop_seed": is_seed,
    "early_stopping_min_delta": _LEARNER_AMOUNT,
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
    "lambda_l1": _LEARNER_AMOUNT,
    "lambda_l2": _LEARNER_AMOUNT,
    "learning_rate": _LEARNER_AMOUNT,
    "linear_tree": is_bool,
    "max_bin": _integer(2, 65535),
    "max_cat_threshold": _integer(1),
    "max_cat_to_onehot": _integer(1),
    "max_delta_step": number_in(-1e30, 1e30),
    "max_depth": _integer(-1),
    "max_drop": _integer(-1),
    "metric": _words("", "None", "auc", "average_precision", "binary_error", "binary_logloss", "l1", "l2", "rmse"),
    "min_child_samples": _COUNT,
    "min_child_weight": _LEARNER_AMOUNT,
    "min_data_in_bin": _integer(1),
    "min_data_in_leaf": _COUNT,
    "min_data_per_group": _integer(1),
    "min_gain_to_split": _LEARNER_AMOUNT,
    "min_split_gain": _LEARNER_AMOUNT,
    "min_sum_hessian_in_leaf": _LEARNER_AMOUNT,
    "monotone_constraints": _sequence_of(_DIRECTION),
    "monotone_constraints_method": one_of("basic", "intermediate", "advanced"),
    "monotone_penalty": _LEARNER_AMOUNT,
    "n_estimators": _integer(1),
    "neg_bagging_fraction": _SHARE,
    "num_leaves": _integer(2, 131_072),
    "objective": one_of("binary"),
    "other_rate": _SHARE,
    "path_smooth": _LEARNER_AMOUNT,
    "pos_bagging_fraction": _SHARE,
    "random_state": is_seed,
    "reg_alpha": _LEARNER_AMOUNT,
    "reg_lambda": _LEARNER_AMOUNT,
    "scale_pos_weight": _LEARNER_AMOUNT,
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
    "alpha": _LEARNER_AMOUNT,
    "base_score": number_in(1e-16, 1.0 - 1e-16),
    "booster": one_of("gbtree", "dart", "gblinear"),
    "colsample_bylevel": _SHARE,
    "colsample_bynode": _SHARE,
    "colsample_bytree": _SHARE,
    "early_stopping_rounds": _integer(1),
    "enable_categorical": is_bool,
    "eta": _LEARNER_AMOUNT,
    "eval_metric": _words("auc", "aucpr", "error", "logloss", "mae", "rmse"),
    "feature_types": _sequence_of(one_of("float", "int", "i", "q", "c")),
    "feature_weights": _sequence_of(_LEARNER_AMOUNT),
    "gamma": _LEARNER_AMOUNT,
    "grow_policy": one_of("depthwise", "lossguide"),
    "importance_type": one_of("gain", "weight", "cover", "total_gain", "total_cover"),
    "lambda": _LEARNER_AMOUNT,
    "learning_rate": _LEARNER_AMOUNT,
    "max_bin": _integer(2, 65535),
    "max_cat_threshold": _integer(1),
    "max_cat_to_onehot": _integer(1),
    "max_delta_step": _LEARNER_AMOUNT,
    "max_depth": _COUNT,
    "max_leaves": _COUNT,
    "min_child_weight": _LEARNER_AMOUNT,
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
    "reg_alpha": _LEARNER_AMOUNT,
    "reg_lambda": _LEARNER_AMOUNT,
    "sample_type": one_of("uniform", "weighted"),
    "sampling_method": one_of("uniform", "gradient_based"),
    "scale_pos_weight": _LEARNER_AMOUNT,
    "seed": is_seed,
    "skip_drop": _SHARE,
    "subsample": _SHARE,
    "tree_method": one_of("auto", "approx", "exact", "hist"),
    "validate_parameters": is_bool,
    "verbosity": _integer(0, 3),
}


_LEARNER_PARAMS: Mapping[str, Mapping[str, Check]] = {
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
    """Return the parameters to store: those that are set, without those of the machine."""
    stored = {name: value for name, value in params.items() if value is not None and name not in _NOT_STORED}
    stored = {name: value.item() if isinstance(value, np.generic) else value for name, value in stored.items()}
    checks = _LEARNER_PARAMS[class_name]
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
    checks = _LEARNER_PARAMS[class_name]
    if not isinstance(params, dict) or not all(name in checks and checks[name](params[name]) for name in params):
        raise ModelFileError(f"The file has parameters of a {class_name} that are not allowed; do not trust it.")
    return params


_TREES, _CATEGORIES = "trees", "categories"  # first parts of the names of arrays
#: End of the name of an array that every file with trees contains.
BOOSTER = f"{_TREES}.threshold"
_AMOUNT = number_in(0.0, 1e300)
_CLASSIFIERS, _REGRESSORS = {"LGBMClassifier", "XGBClassifier"}, {"LGBMRegressor", "XGBRegressor"}
_LOSSES = ("squared_error", "absolute_error", "poisson", "tweedie")


def _import_library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ModelFileError(
            f'The file contains a model of {name}, which is not installed: pip install "fairtransport[boosting]"'
        ) from None


def _to_arrays(value: Any, folder: str) -> dict[str, NDArray[Any]]:
    return {f"{folder}.{name}": getattr(value, name) for name in value.array_names()}


def _from_arrays(cls: Any, parts: dict[str, Any], folder: str) -> dict[str, Any]:
    return {name: parts[f"{folder}.{name}"] for name in cls.array_names()}


def _check_names(parts: dict[str, Any], names: set[str], trees: Any) -> None:
    if set(parts) != names | {f"{_TREES}.{name}" for name in trees.array_names()}:
        raise InvalidTreesError("something is missing or not known")


def _saving(class_name: str, to_parts: Callable[[Any, str], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Return the function that names the class in the error for trees that a file does not support."""

    def convert(estimator: Any) -> dict[str, Any]:
        try:
            return to_parts(estimator, class_name)
        except InvalidTreesError as error:
            raise TypeError(
                f"A model file cannot store this {class_name}: {error}. It stores trees of two classes with the "
                "logistic objective, or of real numbers with squared error, without linear leaves. Save others in the "
                "format of their library, and a QuantileRepair of their scores in a model file."
            ) from None

    return convert


def _loading(class_name: str, from_parts: Callable[[dict[str, Any], str], Any]) -> Callable[[dict[str, Any]], Any]:
    """Return the function that says what is wrong with the trees of a file."""

    def convert(parts: dict[str, Any]) -> Any:
        try:
            return from_parts(parts, class_name)
        except InvalidTreesError as error:
            raise ModelFileError(f"The trees of the file are not valid: {error}. Do not trust it.") from None

    return convert


# ---------------------------------------------------------------------------------------------------------- LightGBM


class _EncodedText(str):
    """Text whose bytes exist already: LightGBM asks a text only for them, and would make a copy of a long one."""

    __slots__ = ("content",)
    content: bytes

    def encode(self, *_: Any) -> bytes:
        return self.content


def _load_lightgbm_trees(booster: Any, trees: LightGBMTrees) -> None:
    text = _EncodedText()
    text.content = trees.to_text()
    booster.model_from_string(text)


def _lightgbm_to_parts(estimator: Any, class_name: str) -> dict[str, Any]:
    parts = _fitted_lightgbm_to_parts(estimator) if estimator.__sklearn_is_fitted__() else {}
    params = stored_params(estimator.get_params(deep=False), class_name)
    return {"params": params, **parts}


def _fitted_lightgbm_to_parts(estimator: Any) -> dict[str, Any]:
    trees = LightGBMTrees.from_text(estimator.booster_.model_to_string())
    classes = None if trees.is_regression else estimator.classes_
    rebuilt = _lightgbm_estimator({}, trees, classes).booster_.model_to_string()
    if not trees.equals(LightGBMTrees.from_text(rebuilt)):
        raise InvalidTreesError("LightGBM does not read back what is stored")
    return {
        "classes": classes,
        "categories": categories_to_arrays(estimator.booster_.pandas_categorical),
        "category_columns": np.array(sorted(pandas_categories(estimator, trees.n_columns)), dtype=np.int64),
        "n_columns": trees.n_columns,
        "feature_names": trees.feature_names,
        **_to_arrays(trees, _TREES),
    }


def _lightgbm_from_parts(parts: dict[str, Any], class_name: str) -> Any:
    lightgbm = _import_library("lightgbm")
    params = check_params(parts["params"], class_name)
    if set(parts) == {"params"}:
        return getattr(lightgbm, class_name)(**params)
    names = {"params", "classes", "categories", "category_columns", "n_columns", "feature_names"}
    _check_names(parts, names, LightGBMTrees)
    arrays = _from_arrays(LightGBMTrees, parts, _TREES)
    trees = LightGBMTrees(parts["n_columns"], parts["feature_names"], class_name in _REGRESSORS, **arrays)
    trees.check()
    if params.get("boosting_type") == "rf" or params.get("linear_tree"):
        raise InvalidTreesError("the parameters boosting_type and linear_tree do not agree with the trees")
    classes = parts["classes"]
    if trees.is_regression:
        if classes is not None:
            raise InvalidTreesError("a model of real numbers has classes")
    elif not label_array(1)(classes) or len(set(classes.tolist())) != 2 or classes.size != 2:
        raise InvalidTreesError("there are not two classes")
    categories = categories_from_arrays(parts["categories"], trees.n_columns)
    columns = parts["category_columns"]
    if not are_columns(columns, trees.n_columns) or columns.size not in {0, len(categories or ())}:
        raise InvalidTreesError("the columns of categories are not columns of the trees")
    estimator = _lightgbm_estimator(params, trees, classes)
    estimator.booster_.pandas_categorical = categories
    estimator.booster_.category_columns = columns.tolist()  # LightGBM itself does not say in a file
    return estimator


def _lightgbm_estimator(params: dict[str, Any], trees: LightGBMTrees, classes: NDArray[Any] | None) -> Any:
    """Return a fitted estimator with these trees, of two classes or of real numbers.

    LightGBM has no public way to make one: fit a minimal one, take over what it learned, and replace its booster.
    """
    lightgbm = _import_library("lightgbm")
    cls = lightgbm.LGBMRegressor if classes is None else lightgbm.LGBMClassifier
    named = {} if trees.feature_names is None else {"feature_name": ["column"]}
    minimal = cls(n_estimators=1, min_child_samples=1, n_jobs=1, verbose=-1)
    minimal.fit(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]) if classes is None else classes, **named)
    estimator = cls(**params)
    own = {*minimal.get_params(), "_other_params"}
    vars(estimator).update({name: value for name, value in vars(minimal).items() if name not in own})
    vars(estimator).update(_n_features=trees.n_columns, _n_features_in=trees.n_columns)
    _load_lightgbm_trees(estimator.booster_, trees)
    return estimator


# ----------------------------------------------------------------------------------------------------------- XGBoost


def _xgboost_to_parts(estimator: Any, class_name: str) -> dict[str, Any]:
    parts = _fitted_xgboost_to_parts(estimator) if estimator.__sklearn_is_fitted__() else {}
    params = stored_params(estimator.get_params(deep=False), class_name)
    return {"params": params, **parts}


def _fitted_xgboost_to_parts(estimator: Any) -> dict[str, Any]:
    booster = estimator.get_booster()
    trees = XGBoostTrees.from_content(bytes(booster.save_raw("ubj")))
    rebuilt = _xgboost_estimator({}, trees).get_booster().save_raw("ubj")
    if not trees.equals(XGBoostTrees.from_content(bytes(rebuilt))):
        raise InvalidTreesError("XGBoost does not read back what is stored")
    attributes = booster.attributes()
    best_iteration, best_score = (attributes.get(name) for name in ("best_iteration", "best_score"))
    return {
        "best_iteration": None if best_iteration is None else int(best_iteration),
        "best_score": None if best_score is None else float(best_score),
        **{name: getattr(trees, name) for name in _XGBOOST_VALUES},
        **_to_arrays(trees, _TREES),
        **_to_arrays(trees.values, _CATEGORIES),
    }


_XGBOOST_VALUES = ("n_columns", "feature_names", "feature_types", "base_score", "trees_per_round")


def _xgboost_from_parts(parts: dict[str, Any], class_name: str) -> Any:
    params = check_params(parts["params"], class_name)
    if set(parts) == {"params"}:
        return getattr(_import_library("xgboost"), class_name)(**params)
    known = {"params", "best_iteration", "best_score", *_XGBOOST_VALUES}
    _check_names(parts, known | {f"{_CATEGORIES}.{name}" for name in ColumnCategories.array_names()}, XGBoostTrees)
    values: dict[str, Any] = {name: parts[name] for name in _XGBOOST_VALUES}
    categories = ColumnCategories(**_from_arrays(ColumnCategories, parts, _CATEGORIES))
    arrays = _from_arrays(XGBoostTrees, parts, _TREES)
    trees = XGBoostTrees(**values, is_regression=class_name in _REGRESSORS, values=categories, **arrays)
    trees.check()
    if params.get("booster", "gbtree") != ("dart" if trees.drop_weight.size else "gbtree"):
        raise InvalidTreesError("the parameter booster does not agree with the trees")
    best_iteration, best_score = parts["best_iteration"], parts["best_score"]
    if best_iteration is not None and not (is_count(best_iteration) and best_iteration < trees.n_rounds):
        raise InvalidTreesError("the best iteration is out of range")
    if best_score is not None and not is_finite(best_score):
        raise InvalidTreesError("the best score is not finite")
    estimator = _xgboost_estimator(params, trees)
    booster = estimator.get_booster()
    if best_iteration is not None:
        booster.best_iteration = best_iteration
    if best_score is not None:
        booster.best_score = best_score
    return estimator


def _xgboost_estimator(params: dict[str, Any], trees: XGBoostTrees) -> Any:
    xgboost = _import_library("xgboost")
    estimator = (xgboost.XGBRegressor if trees.is_regression else xgboost.XGBClassifier)(**params)
    estimator.load_model(trees.to_content())  # also sets parameters, which are reset below
    booster = estimator.get_booster()
    booster.feature_names, booster.feature_types = (
        None if texts is None else texts.tolist() for texts in (trees.feature_names, trees.feature_types)
    )
    unset = {name: None for name, value in estimator.get_params(deep=False).items() if value is not None}
    return estimator.set_params(**{**unset, **params})


# --------------------------------------------------------------------------------------------- classifier, regressor


def _fitted_trees(class_names: set[str]) -> Check:
    return lambda value: type(value).__name__ in class_names and value.__sklearn_is_fitted__()


def _is_fitted_repair_or_none(value: Any) -> bool:
    return value is None or (type(value).__name__ == "QuantileRepair" and hasattr(value, "maps_"))


def _is_pair_of_numbers(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(is_finite, value))


def _is_increasing_map(value: Any) -> bool:
    """Whether an array has knots, which ascend, and their images."""
    if not number_array(2)(value) or value.shape[0] != 2 or value.shape[1] < 2:
        return False
    return bool((np.diff(value) >= 0.0).all())


def _is_consistent(model: Any) -> bool:
    repair = model.repair_
    columns = {model.estimator_.n_features_in_, model.initial_estimator_.n_features_in_}
    return len(columns) == 1 and (repair is None or repair.groups_.labels == model.groups_.labels)


def _is_consistent_classifier(model: Any) -> bool:
    inside = model.spread_.min() >= 0.0 and model.spread_.max() <= 1.0
    return bool(inside and model.classes_.size == 2 and _is_consistent(model))


def _value_type(key: str, library: str, class_name: str, to_parts: Any, from_parts: Any) -> ValueType:
    return ValueType(
        key, f"{library}.sklearn.{class_name}", _saving(class_name, to_parts), _loading(class_name, from_parts)
    )


VALUE_TYPES = (
    _value_type("lightgbm", "lightgbm", "LGBMClassifier", _lightgbm_to_parts, _lightgbm_from_parts),
    _value_type("xgboost", "xgboost", "XGBClassifier", _xgboost_to_parts, _xgboost_from_parts),
    _value_type("lightgbm_regressor", "lightgbm", "LGBMRegressor", _lightgbm_to_parts, _lightgbm_from_parts),
    _value_type("xgboost_regressor", "xgboost", "XGBRegressor", _xgboost_to_parts, _xgboost_from_parts),
)

_ATTRIBUTES: dict[str, Check] = {
    "before_after_": dict_of(_is_pair_of_numbers),
    "group_sizes_": number_array(1),
    "groups_": instance_of(Groups),
    "history_": dict_of(number_array(1, finite=False)),
    "n_iter_": is_count,
    "information_kept_": is_finite,
    "outcome_": is_text,
    "parity_weight_": _AMOUNT,
    "path_": dict_of(number_array(1)),
    "repair_": _is_fitted_repair_or_none,
    "spread_": _is_increasing_map,
    "strata_": any_of(is_none, instance_of(Strata)),
    "unit_": instance_of(float),
}
_REQUIRED = ("estimator_", "groups_", "initial_estimator_", "repair_", "spread_", "strata_")
_PARAMS: dict[str, Check] = {
    **GROUP_PARAMS,
    "amount": number_in(0.0, 1.0),
    "criterion": one_of(*CRITERIA),
    "estimator": any_of(is_none, is_estimator),
    "distance": any_of(is_word, instance_of((ContinuousDistance, DiscreteDistance))),
    "max_disparity": any_of(is_none, _AMOUNT),
    "n_iter_no_change": any_of(is_none, is_count, one_of("auto")),
    "parity_weight": any_of(_AMOUNT, one_of("auto")),
    "random_state": is_seed,
    "repair": any_of(is_none, instance_of(QuantileRepair)),
    "scale": one_of(*SCALES),
    "smooth_groups": is_bool,
    "spread": one_of("trained", "initial"),
    "stratum_weight": any_of(is_none, one_of(*STRATUM_WEIGHTS)),
    "validation_fraction": any_of(is_none, number_in(0.0, 1.0)),
}

RECIPES = (
    Recipe(
        "fairtransport.boosting.TransportBoostingClassifier",
        attributes={
            **_ATTRIBUTES,
            "classes_": label_array(1),
            "estimator_": _fitted_trees(_CLASSIFIERS),
            "initial_estimator_": _fitted_trees(_CLASSIFIERS),
        },
        required=("classes_", *_REQUIRED),
        params=_PARAMS,
        is_consistent=_is_consistent_classifier,
        summarize=summarize_target,
    ),
    Recipe(
        "fairtransport.boosting.TransportBoostingRegressor",
        attributes={
            **_ATTRIBUTES,
            "estimator_": _fitted_trees(_REGRESSORS),
            "initial_estimator_": _fitted_trees(_REGRESSORS),
            "loss_": one_of(*_LOSSES),
            "y_center_": is_finite,
            "y_scale_": number_in(0.0, 1e300),
        },
        required=("loss_", "y_center_", "y_scale_", *_REQUIRED),
        params=_PARAMS,
        is_consistent=_is_consistent,
        summarize=summarize_target,
    ),
)
