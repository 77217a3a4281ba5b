"""How the parts of scikit-learn that our commands use are stored: logistic regression and preprocessing of tables.

Every attribute stands here by name. An estimator that has another one, of a later version perhaps, is refused when it
is saved, not when it is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtransport.persistence.recipes._registry import (
    COLUMNS,
    Recipe,
    add_recipe,
    count,
    either,
    flag,
    labels,
    list_of,
    nothing,
    number,
    numbers,
    of_type,
)

__all__: list[str] = []


def _per_column(*names: str) -> Any:
    """Check that these attributes have one entry for each column."""

    def check(made: Any) -> bool:
        held = (getattr(made, name, None) for name in names)
        return all(one is None or len(one) == made.n_features_in_ for one in held)

    return check


def _is_logistic_whole(made: Any) -> bool:
    n_rows = 1 if made.classes_.size == 2 else made.classes_.size
    return made.coef_.shape == (n_rows, made.n_features_in_) and made.intercept_.shape in {(n_rows,), (1,)}


def _are_fitted(value: Any) -> bool:
    """Whether this is a list of (name, transformer, columns)."""
    return isinstance(value, list) and all(
        isinstance(one, tuple) and len(one) == 3 and isinstance(one[0], str) for one in value
    )


_REALS = numbers(1, finite=False)
_INDICES = list_of(either(nothing, labels(1)))

add_recipe(
    Recipe(
        "sklearn.linear_model.LogisticRegression",
        {
            **COLUMNS,
            "classes_": labels(1),
            "coef_": numbers(2),
            "intercept_": numbers(1),
            "n_iter_": numbers(1),
        },
        ("classes_", "coef_", "intercept_", "n_features_in_"),
        _is_logistic_whole,
    )
)
add_recipe(
    Recipe(
        "sklearn.preprocessing.StandardScaler",
        {
            **COLUMNS,
            "mean_": either(nothing, _REALS),
            "n_samples_seen_": number,
            "scale_": either(nothing, _REALS),
            "var_": either(nothing, _REALS),
        },
        ("mean_", "n_features_in_", "scale_"),
        _per_column("mean_", "scale_", "var_"),
    )
)
_ENCODER = {
    **COLUMNS,
    "_default_to_infrequent_mappings": _INDICES,
    "_infrequent_enabled": flag,
    "_infrequent_indices": _INDICES,
    "categories_": list_of(labels(1)),
}
add_recipe(
    Recipe(
        "sklearn.preprocessing.OneHotEncoder",
        {
            **_ENCODER,
            "_drop_idx_after_grouping": either(nothing, labels(1)),
            "_n_features_outs": list_of(count),
            "drop_idx_": either(nothing, labels(1)),
        },
        ("_infrequent_enabled", "_n_features_outs", "categories_", "drop_idx_", "n_features_in_"),
        _per_column("categories_", "_n_features_outs"),
    )
)
add_recipe(
    Recipe(
        "sklearn.preprocessing.OrdinalEncoder",
        {**_ENCODER, "_missing_indices": of_type(dict)},
        ("_infrequent_enabled", "_missing_indices", "categories_", "n_features_in_"),
        _per_column("categories_"),
    )
)
add_recipe(
    Recipe(
        "sklearn.preprocessing.FunctionTransformer",  # what a ColumnTransformer makes of "passthrough"
        COLUMNS,
        ("n_features_in_",),
    )
)
add_recipe(
    Recipe(
        "sklearn.impute.SimpleImputer",
        {
            **COLUMNS,
            "_fill_dtype": of_type(np.dtype),
            "_fit_dtype": of_type(np.dtype),
            "indicator_": lambda value: value is None or type(value).__name__ == "MissingIndicator",
            "statistics_": labels(1),
        },
        ("_fit_dtype", "n_features_in_", "statistics_"),
        _per_column("statistics_"),
    )
)
add_recipe(
    Recipe(
        "sklearn.impute.MissingIndicator",
        {**COLUMNS, "_n_features": count, "_precomputed": flag, "features_": numbers(1)},
        ("_n_features", "features_"),
    )
)
add_recipe(
    Recipe(
        "sklearn.compose.ColumnTransformer",
        {
            **COLUMNS,
            "_columns": of_type(list),
            "_n_features": count,
            "_name_to_fitted_passthrough": of_type(dict),
            "_remainder": of_type(tuple),
            "_transformer_to_input_indices": of_type(dict),
            "output_indices_": of_type(dict),
            "sparse_output_": flag,
            "transformers_": _are_fitted,
        },
        ("_columns", "_remainder", "_transformer_to_input_indices", "output_indices_", "transformers_"),
    )
)
add_recipe(Recipe("sklearn.pipeline.Pipeline"))
add_recipe(Recipe("sklearn.model_selection.KFold"))
add_recipe(Recipe("sklearn.model_selection.StratifiedKFold"))
