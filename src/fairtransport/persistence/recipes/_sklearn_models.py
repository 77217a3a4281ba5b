"""Recipes of scikit-learn's linear models and preprocessing.

Every attribute is listed by name. An estimator with another one, of a later version of scikit-learn for instance, is
refused when it is saved, not when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.persistence.recipes._registry import (
    FEATURE_NAMES,
    Recipe,
    any_of,
    count_up_to,
    dict_of,
    instance_of,
    is_bool,
    is_count,
    is_estimator,
    is_finite,
    is_none,
    is_number,
    is_plain,
    is_seed,
    is_text,
    is_word,
    label_array,
    list_of,
    number_array,
    number_in,
    one_of,
)
from fairtransport.persistence.recipes._sklearn_checks import (
    ENCODER_PARAMS,
    columns_of_selectors,
    is_class_weight,
    is_consistent_column_transformer,
    is_consistent_imputer,
    is_consistent_indicator,
    is_consistent_one_hot,
    is_consistent_ordinal,
    is_dict_of_columns,
    is_dict_of_slices,
    is_fitted_transformer,
    is_named_steps,
    is_named_transformers,
    is_selection,
    is_weights,
    one_per_column,
)

if TYPE_CHECKING:
    from fairtransport.persistence._values import ValueType


def _is_consistent_logistic(made: Any) -> bool:
    n_rows = 1 if made.classes_.size == 2 else made.classes_.size
    return made.coef_.shape == (n_rows, made.n_features_in_) and made.intercept_.shape in {(n_rows,), (1,)}


def _is_consistent_regression(made: Any) -> bool:
    return made.coef_.shape == (made.n_features_in_,) and np.ndim(made.intercept_) == 0


def _is_cell_type(value: Any) -> bool:
    return isinstance(value, np.dtype) and value.kind in "biufOU"


_REALS_OR_NONE = any_of(is_none, number_array(1, finite=False))
_INDICES_OR_NONE = any_of(is_none, label_array(1))
_AMOUNT = number_in(0.0, 1e300)
_ENCODER = {
    **FEATURE_NAMES,
    "_default_to_infrequent_mappings": list_of(_INDICES_OR_NONE),
    "_infrequent_enabled": is_bool,
    "_infrequent_indices": list_of(_INDICES_OR_NONE),
    "categories_": list_of(label_array(1)),
}

_REGRESSION = {
    **FEATURE_NAMES,
    "coef_": number_array(1),
    "intercept_": any_of(is_finite, one_of(0), number_array(0)),
}
_SPLITTER = {"n_splits": count_up_to(1000), "random_state": is_seed, "shuffle": is_bool}
_OF_ORDINALS = {"encoded_missing_value", "unknown_value"}

VALUE_TYPES: tuple[ValueType, ...] = ()

RECIPES = (
    Recipe(
        "sklearn.linear_model.LogisticRegression",
        attributes={
            **FEATURE_NAMES,
            "classes_": label_array(1),
            "coef_": number_array(2),
            "intercept_": number_array(1),
            "n_iter_": number_array(1),
        },
        required=("classes_", "coef_", "intercept_", "n_features_in_"),
        params={
            "C": any_of(_AMOUNT, one_of(np.inf)),
            "class_weight": is_class_weight,
            "dual": is_bool,
            "fit_intercept": is_bool,
            "intercept_scaling": _AMOUNT,
            "l1_ratio": any_of(is_none, number_in(0.0, 1.0)),
            "max_iter": count_up_to(1_000_000_000),
            "multi_class": is_word,  # until scikit-learn 1.7
            "penalty": any_of(is_none, is_word),
            "random_state": is_seed,
            "solver": is_word,
            "tol": _AMOUNT,
            "warm_start": is_bool,
        },
        not_stored=("n_jobs", "verbose"),
        is_consistent=_is_consistent_logistic,
    ),
    Recipe(
        "sklearn.linear_model.LinearRegression",
        attributes={**_REGRESSION, "rank_": is_count, "singular_": number_array(1)},
        required=("coef_", "intercept_", "n_features_in_"),
        params={"copy_X": is_bool, "fit_intercept": is_bool, "positive": is_bool, "tol": _AMOUNT},
        not_stored=("n_jobs",),
        is_consistent=_is_consistent_regression,
    ),
    Recipe(
        "sklearn.linear_model.Ridge",
        attributes={**_REGRESSION, "n_iter_": _REALS_OR_NONE, "solver_": is_word},
        required=("coef_", "intercept_", "n_features_in_"),
        params={
            "alpha": _AMOUNT,
            "copy_X": is_bool,
            "fit_intercept": is_bool,
            "max_iter": any_of(is_none, count_up_to(1_000_000_000)),
            "positive": is_bool,
            "random_state": is_seed,
            "solver": is_word,
            "tol": _AMOUNT,
        },
        is_consistent=_is_consistent_regression,
    ),
    Recipe(
        "sklearn.preprocessing.StandardScaler",
        attributes={
            **FEATURE_NAMES,
            "mean_": _REALS_OR_NONE,
            "n_samples_seen_": is_number,
            "scale_": _REALS_OR_NONE,
            "var_": _REALS_OR_NONE,
        },
        required=("mean_", "n_features_in_", "scale_"),
        params={"copy": is_bool, "with_mean": is_bool, "with_std": is_bool},
        is_consistent=lambda made: one_per_column(made, "mean_", "scale_", "var_"),
    ),
    Recipe(
        "sklearn.preprocessing.OneHotEncoder",
        attributes={
            **_ENCODER,
            "_drop_idx_after_grouping": _INDICES_OR_NONE,
            "_n_features_outs": list_of(is_count),
            "drop_idx_": _INDICES_OR_NONE,
        },
        required=("_infrequent_enabled", "_n_features_outs", "categories_", "drop_idx_", "n_features_in_"),
        params={
            **{name: ENCODER_PARAMS[name] for name in ENCODER_PARAMS if name not in _OF_ORDINALS},
            "feature_name_combiner": one_of("concat"),
        },
        is_consistent=is_consistent_one_hot,
    ),
    Recipe(
        "sklearn.preprocessing.OrdinalEncoder",
        attributes={**_ENCODER, "_missing_indices": instance_of(dict)},
        params={name: ENCODER_PARAMS[name] for name in ENCODER_PARAMS if name not in {"drop", "sparse_output"}},
        required=("_infrequent_enabled", "_missing_indices", "categories_", "n_features_in_"),
        is_consistent=is_consistent_ordinal,
    ),
    Recipe(
        "sklearn.preprocessing.FunctionTransformer",  # a ColumnTransformer fits one for "passthrough"
        attributes=FEATURE_NAMES,
        required=("n_features_in_",),
        params={
            "accept_sparse": is_bool,
            "check_inverse": is_bool,
            "feature_names_out": any_of(is_none, one_of("one-to-one")),
            "validate": is_bool,
        },
    ),
    Recipe(
        "sklearn.impute.SimpleImputer",
        attributes={
            **FEATURE_NAMES,
            "_fill_dtype": _is_cell_type,
            "_fit_dtype": _is_cell_type,
            "indicator_": lambda value: value is None or type(value).__name__ == "MissingIndicator",
            "statistics_": label_array(1),
        },
        required=("_fit_dtype", "n_features_in_", "statistics_"),
        params={
            "add_indicator": is_bool,
            "copy": is_bool,
            "fill_value": is_plain,
            "keep_empty_features": is_bool,
            "missing_values": is_plain,
            "strategy": is_word,
        },
        is_consistent=is_consistent_imputer,
    ),
    Recipe(
        "sklearn.impute.MissingIndicator",
        attributes={
            **FEATURE_NAMES,
            "_n_features": is_count,
            "_precomputed": is_bool,
            "features_": number_array(1),
        },
        required=("_n_features", "features_"),
        params={
            "error_on_new": is_bool,
            "features": is_word,
            "missing_values": is_plain,
            "sparse": any_of(is_bool, one_of("auto")),
        },
        is_consistent=is_consistent_indicator,
    ),
    Recipe(
        "sklearn.compose.ColumnTransformer",
        attributes={
            **FEATURE_NAMES,
            "_columns": list_of(is_selection),
            "_n_features": is_count,
            "_name_to_fitted_passthrough": dict_of(is_estimator),
            "_remainder": is_fitted_transformer,
            "_transformer_to_input_indices": is_dict_of_columns,
            "output_indices_": is_dict_of_slices,
            "sparse_output_": is_bool,
            "transformers_": is_named_transformers,
        },
        required=(
            *("_columns", "_remainder", "_transformer_to_input_indices"),
            *("n_features_in_", "output_indices_", "transformers_"),
        ),
        params={
            "force_int_remainder_cols": any_of(is_bool, is_word),  # until scikit-learn 1.8
            "remainder": any_of(one_of("drop", "passthrough"), is_estimator),
            "sparse_threshold": number_in(0.0, 1.0),
            "transformer_weights": any_of(is_none, is_weights),
            "transformers": is_named_transformers,
            "verbose_feature_names_out": is_bool,
        },
        not_stored=("n_jobs", "verbose"),
        stored=columns_of_selectors,
        is_consistent=is_consistent_column_transformer,
    ),
    Recipe(
        "sklearn.pipeline.Pipeline",
        params={"steps": is_named_steps, "transform_input": any_of(is_none, list_of(is_text))},
        not_stored=("memory", "verbose"),
    ),
    Recipe("sklearn.model_selection.KFold", params=_SPLITTER),
    Recipe("sklearn.model_selection.StratifiedKFold", params=_SPLITTER),
)
