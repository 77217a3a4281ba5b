"""Recipes of scikit-learn's logistic regression and preprocessing.

Every attribute is listed by name. An estimator with another one, of a later version of scikit-learn for instance, is
refused when it is saved, not when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.persistence.recipes._checks import (
    FEATURE_NAMES,
    any_of,
    instance_of,
    is_bool,
    is_count,
    is_none,
    is_number,
    label_array,
    list_of,
    number_array,
)
from fairtransport.persistence.recipes._registry import Recipe

if TYPE_CHECKING:
    from fairtransport.persistence._values import ValueType
    from fairtransport.persistence.recipes._checks import Check

__all__ = ["RECIPES", "VALUE_TYPES"]


def _one_per_column(*names: str) -> Check:
    """Return the check of an object whose attributes of these names have one item for each column."""

    def check(made: Any) -> bool:
        values = (getattr(made, name, None) for name in names)
        return all(value is None or len(value) == made.n_features_in_ for value in values)

    return check


def _is_consistent_logistic(made: Any) -> bool:
    n_rows = 1 if made.classes_.size == 2 else made.classes_.size
    return made.coef_.shape == (n_rows, made.n_features_in_) and made.intercept_.shape in {(n_rows,), (1,)}


def _is_fitted_transformer(value: Any) -> bool:
    """Return whether this is a tuple of name, transformer and columns."""
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str)


_REALS_OR_NONE = any_of(is_none, number_array(1, finite=False))
_INDICES_OR_NONE = any_of(is_none, label_array(1))
_ENCODER = {
    **FEATURE_NAMES,
    "_default_to_infrequent_mappings": list_of(_INDICES_OR_NONE),
    "_infrequent_enabled": is_bool,
    "_infrequent_indices": list_of(_INDICES_OR_NONE),
    "categories_": list_of(label_array(1)),
}

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
        is_consistent=_is_consistent_logistic,
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
        is_consistent=_one_per_column("mean_", "scale_", "var_"),
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
        is_consistent=_one_per_column("categories_", "_n_features_outs"),
    ),
    Recipe(
        "sklearn.preprocessing.OrdinalEncoder",
        attributes={**_ENCODER, "_missing_indices": instance_of(dict)},
        required=("_infrequent_enabled", "_missing_indices", "categories_", "n_features_in_"),
        is_consistent=_one_per_column("categories_"),
    ),
    Recipe(
        "sklearn.preprocessing.FunctionTransformer",  # a ColumnTransformer fits one for "passthrough"
        attributes=FEATURE_NAMES,
        required=("n_features_in_",),
    ),
    Recipe(
        "sklearn.impute.SimpleImputer",
        attributes={
            **FEATURE_NAMES,
            "_fill_dtype": instance_of(np.dtype),
            "_fit_dtype": instance_of(np.dtype),
            "indicator_": lambda value: value is None or type(value).__name__ == "MissingIndicator",
            "statistics_": label_array(1),
        },
        required=("_fit_dtype", "n_features_in_", "statistics_"),
        is_consistent=_one_per_column("statistics_"),
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
    ),
    Recipe(
        "sklearn.compose.ColumnTransformer",
        attributes={
            **FEATURE_NAMES,
            "_columns": instance_of(list),
            "_n_features": is_count,
            "_name_to_fitted_passthrough": instance_of(dict),
            "_remainder": instance_of(tuple),
            "_transformer_to_input_indices": instance_of(dict),
            "output_indices_": instance_of(dict),
            "sparse_output_": is_bool,
            "transformers_": list_of(_is_fitted_transformer),
        },
        required=("_columns", "_remainder", "_transformer_to_input_indices", "output_indices_", "transformers_"),
    ),
    Recipe("sklearn.pipeline.Pipeline"),
    Recipe("sklearn.model_selection.KFold"),
    Recipe("sklearn.model_selection.StratifiedKFold"),
)
