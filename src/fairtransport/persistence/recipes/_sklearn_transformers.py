"""Recipes of scikit-learn's scalers, selections and projections of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from fairtransport.persistence.recipes._registry import (
    FEATURE_NAMES,
    MAX_COLUMNS,
    Recipe,
    any_of,
    count_up_to,
    instance_of,
    is_bool,
    is_count,
    is_finite,
    is_none,
    is_number,
    is_seed,
    is_word,
    label_array,
    list_of,
    number_array,
    number_in,
    one_of,
    tuple_of,
)
from fairtransport.persistence.recipes._sklearn_checks import (
    ENCODER_PARAMS,
    is_named_steps,
    is_weights,
    one_per_column,
)

if TYPE_CHECKING:
    from fairtransport.persistence._values import ValueType
    from fairtransport.persistence.recipes._registry import Check


_LIMIT = 1e300
_REALS = number_array(1, finite=False)
_REALS_OR_NONE = any_of(is_none, _REALS)
_NUMBER = number_in(-_LIMIT, _LIMIT)
_PAIR = tuple_of(_NUMBER)
_MAX_DEGREE = 10


def _scaler(name: str, arrays: tuple[str, ...], params: dict[str, Check]) -> Recipe:
    """Return the recipe of a scaler: some vectors with one number for each column."""
    return Recipe(
        f"sklearn.preprocessing.{name}",
        attributes={**FEATURE_NAMES, "n_samples_seen_": is_number, **dict.fromkeys(arrays, _REALS_OR_NONE)},
        required=("n_features_in_", "scale_"),
        params={"copy": is_bool, **params},
        is_consistent=lambda made: one_per_column(made, *arrays),
    )


def _selection(name: str, params: dict[str, Check]) -> Recipe:
    """Return the recipe of a selection by scores; ``transform`` does not need the function that computed them."""
    return Recipe(
        f"sklearn.feature_selection.{name}",
        attributes={**FEATURE_NAMES, "pvalues_": _REALS_OR_NONE, "scores_": _REALS},
        required=("n_features_in_", "scores_"),
        params=params,
        not_stored=("score_func",),
        is_consistent=lambda made: one_per_column(made, "scores_", "pvalues_"),
    )


def _is_consistent_polynomial(made: Any) -> bool:
    degree = made.degree if isinstance(made.degree, tuple) else (0, made.degree)
    if len(degree) != 2 or not 0 <= degree[0] <= degree[1]:
        return False
    expected = PolynomialFeatures(**made.get_params())
    n_all = expected._num_combinations(  # noqa: SLF001 - before anything of that size is allocated
        made.n_features_in_,
        min_degree=degree[0],
        max_degree=degree[1],
        interaction_only=made.interaction_only,
        include_bias=made.include_bias,
    )
    if n_all > MAX_COLUMNS:
        return False
    expected.fit(np.zeros((1, made.n_features_in_)))
    names = ("_min_degree", "_max_degree", "_n_out_full", "n_output_features_")
    return all(getattr(made, name) == getattr(expected, name) for name in names)


def _is_consistent_projection(made: Any) -> bool:
    n_components = len(made.components_)
    parts = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
    return bool(
        made.components_.shape == (n_components, made.n_features_in_)
        and one_per_column(made, "mean_")
        and all(len(getattr(made, name)) == n_components for name in parts if hasattr(made, name))
        and getattr(made, "n_components_", n_components) == n_components
    )


def _is_consistent_quantiles(made: Any) -> bool:
    levels = made.references_
    return bool(
        made.quantiles_.shape == (levels.size, made.n_features_in_)
        and made.n_quantiles_ == levels.size
        and levels.size
        and (np.diff(levels) >= 0).all()
        and levels[0] >= 0
        and levels[-1] <= 1
    )


def _is_consistent_power(made: Any) -> bool:
    scaler = getattr(made, "_scaler", None)
    fits = scaler is None or getattr(scaler, "n_features_in_", -1) == made.n_features_in_
    return one_per_column(made, "lambdas_") and fits and (scaler is not None) == made.standardize


def _is_consistent_target_encoder(made: Any) -> bool:
    sizes = [len(one) for one in made.categories_]
    return bool(
        made.target_type_ in {"binary", "continuous"}
        and not made._infrequent_enabled  # noqa: SLF001
        and len(sizes) == len(made.encodings_) == made.n_features_in_
        and sizes == [one.size for one in made.encodings_]
        and all(sizes)
    )


_PROJECTION = {
    **FEATURE_NAMES,
    "components_": number_array(2),
    "explained_variance_": _REALS,
    "explained_variance_ratio_": _REALS,
    "singular_values_": _REALS,
}
_SVD_PARAMS: dict[str, Check] = {
    "n_oversamples": is_count,
    "power_iteration_normalizer": is_word,
    "random_state": is_seed,
    "tol": number_in(0.0, _LIMIT),
}
_REGRESSION_PARAMS: dict[str, Check] = {
    "alpha": number_in(0.0, _LIMIT),
    "copy_X": is_bool,
    "fit_intercept": is_bool,
    "max_iter": count_up_to(1_000_000_000),
    "positive": is_bool,
    "precompute": is_bool,
    "random_state": is_seed,
    "selection": is_word,
    "tol": number_in(0.0, _LIMIT),
    "warm_start": is_bool,
}


def _sparse_regression(name: str, params: dict[str, Check], **attributes: Check) -> Recipe:
    return Recipe(
        f"sklearn.linear_model.{name}",
        attributes={
            **FEATURE_NAMES,
            "coef_": number_array(1),
            "dual_gap_": is_finite,
            "intercept_": any_of(is_finite, one_of(0)),
            "n_iter_": is_count,
            **attributes,
        },
        required=("coef_", "intercept_", "n_features_in_"),
        params={**_REGRESSION_PARAMS, **params},
        is_consistent=lambda made: made.coef_.shape == (made.n_features_in_,),
    )


VALUE_TYPES: tuple[ValueType, ...] = ()

RECIPES = (
    _scaler(
        "MinMaxScaler",
        ("data_max_", "data_min_", "data_range_", "min_", "scale_"),
        {"clip": is_bool, "feature_range": _PAIR},
    ),
    _scaler("MaxAbsScaler", ("max_abs_", "scale_"), {"clip": is_bool}),
    _scaler(
        "RobustScaler",
        ("center_", "scale_"),
        {"quantile_range": _PAIR, "unit_variance": is_bool, "with_centering": is_bool, "with_scaling": is_bool},
    ),
    Recipe(
        "sklearn.preprocessing.Normalizer",
        attributes=FEATURE_NAMES,
        required=("n_features_in_",),
        params={"copy": is_bool, "norm": is_word},
    ),
    Recipe(
        "sklearn.preprocessing.Binarizer",
        attributes=FEATURE_NAMES,
        required=("n_features_in_",),
        params={"copy": is_bool, "threshold": _NUMBER},
    ),
    Recipe(
        "sklearn.preprocessing.PolynomialFeatures",
        attributes={
            **FEATURE_NAMES,
            **dict.fromkeys(("_max_degree", "_min_degree"), count_up_to(_MAX_DEGREE)),
            **dict.fromkeys(("_n_out_full", "n_output_features_"), count_up_to(MAX_COLUMNS)),
        },
        required=("_max_degree", "_min_degree", "_n_out_full", "n_features_in_", "n_output_features_"),
        params={
            "degree": any_of(count_up_to(_MAX_DEGREE), tuple_of(count_up_to(_MAX_DEGREE))),
            "include_bias": is_bool,
            "interaction_only": is_bool,
            "order": one_of("C", "F"),
        },
        is_consistent=_is_consistent_polynomial,
    ),
    Recipe(
        "sklearn.preprocessing.PowerTransformer",
        attributes={
            **FEATURE_NAMES,
            "_scaler": lambda value: type(value).__name__ == "StandardScaler",
            "lambdas_": number_array(1, finite=False),
        },
        required=("lambdas_", "n_features_in_"),
        params={"copy": is_bool, "method": is_word, "standardize": is_bool},
        is_consistent=_is_consistent_power,
    ),
    Recipe(
        "sklearn.preprocessing.QuantileTransformer",
        attributes={
            **FEATURE_NAMES,
            "n_quantiles_": is_count,
            "quantiles_": number_array(2, finite=False),
            "references_": number_array(1),
        },
        required=("n_features_in_", "n_quantiles_", "quantiles_", "references_"),
        params={
            "copy": is_bool,
            "ignore_implicit_zeros": is_bool,
            "n_quantiles": is_count,
            "output_distribution": is_word,
            "random_state": is_seed,
            "subsample": any_of(is_none, is_count),
        },
        is_consistent=_is_consistent_quantiles,
    ),
    Recipe(
        "sklearn.preprocessing.TargetEncoder",
        attributes={
            **FEATURE_NAMES,
            "_infrequent_enabled": one_of(False),
            "categories_": list_of(label_array(1)),
            "classes_": label_array(1),
            "encodings_": list_of(number_array(1)),
            "target_mean_": is_finite,
            "target_type_": is_word,
        },
        required=("categories_", "encodings_", "n_features_in_", "target_mean_", "target_type_"),
        params={
            "categories": ENCODER_PARAMS["categories"],
            "cv": count_up_to(1000),
            "random_state": any_of(is_seed, is_word),
            "shuffle": any_of(is_bool, is_word),
            "smooth": any_of(number_in(0.0, _LIMIT), is_word),
            "target_type": is_word,
        },
        is_consistent=_is_consistent_target_encoder,
    ),
    _selection("SelectKBest", {"k": any_of(is_count, one_of("all"))}),
    _selection("SelectPercentile", {"percentile": number_in(0.0, 100.0)}),
    Recipe(
        "sklearn.feature_selection.VarianceThreshold",
        attributes={**FEATURE_NAMES, "variances_": _REALS},
        required=("n_features_in_", "variances_"),
        params={"threshold": _NUMBER},
        is_consistent=lambda made: one_per_column(made, "variances_"),
    ),
    Recipe(
        "sklearn.decomposition.PCA",
        attributes={
            **_PROJECTION,
            "_fit_svd_solver": is_word,
            "mean_": number_array(1),
            "n_components_": is_count,
            "n_samples_": is_count,
            "noise_variance_": any_of(is_finite, one_of(0)),
        },
        required=("components_", "explained_variance_", "mean_", "n_features_in_"),
        params={
            **_SVD_PARAMS,
            "copy": is_bool,
            "iterated_power": any_of(is_count, is_word),
            "n_components": any_of(is_none, number_in(0.0, MAX_COLUMNS), one_of("mle")),
            "svd_solver": is_word,
            "whiten": is_bool,
        },
        is_consistent=_is_consistent_projection,
    ),
    Recipe(
        "sklearn.decomposition.TruncatedSVD",
        attributes=_PROJECTION,
        required=("components_", "n_features_in_"),
        params={
            **_SVD_PARAMS,
            "algorithm": is_word,
            "n_components": count_up_to(MAX_COLUMNS),
            "n_iter": count_up_to(1_000_000),
        },
        is_consistent=_is_consistent_projection,
    ),
    Recipe(
        "sklearn.pipeline.FeatureUnion",
        params={
            "transformer_list": is_named_steps,
            "transformer_weights": any_of(is_none, is_weights),
            "verbose_feature_names_out": is_bool,
        },
        not_stored=("n_jobs", "verbose"),
    ),
    _sparse_regression("Lasso", {}, l1_ratio=instance_of(float)),
    _sparse_regression("ElasticNet", {"l1_ratio": number_in(0.0, 1.0)}),
)
