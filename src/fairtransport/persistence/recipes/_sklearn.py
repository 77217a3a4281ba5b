"""Recipes of scikit-learn's linear models, preprocessing, selections and projections of columns.

Every attribute is listed by name. An estimator with another one, of a later version of scikit-learn for instance, is
refused when it is saved, not when it is needed.

scikit-learn trusts the private attributes of its estimators. A one-hot encoder writes its output by
``_n_features_outs`` into a sparse matrix, whose compiled code does not check indices: everything that can be computed
from the categories is computed again here, and compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import Recipe, named_recipe

if TYPE_CHECKING:
    from fairtransport.persistence.recipes._registry import ValueType


def _one_per_column(made: Any, *names: str) -> bool:
    """Return whether attributes of these names have one item for each column, or are None."""
    values = (getattr(made, name, None) for name in names)
    return all(value is None or len(value) == made.n_features_in_ for value in values)


def _is_weights(value: Any) -> bool:
    """Return whether this is a dict of numbers."""
    return isinstance(value, dict) and all(map(check.plain, value)) and all(map(check.number, value.values()))


def _is_number_type(value: Any) -> bool:
    """Return whether this is a type of numbers."""
    kind = value.type if isinstance(value, np.dtype) else value
    return kind in {bool, float, int} or (
        isinstance(kind, type) and issubclass(kind, (np.bool_, np.integer, np.float32, np.float64))
    )


def _is_selection(value: Any) -> bool:
    """Return whether this selects columns: by name, position, slice or mask; not by a function."""
    if isinstance(value, slice):
        return all(check.none(one) or isinstance(one, (int, str)) for one in (value.start, value.stop, value.step))
    if type(value).__name__ == "Index":  # of pandas; a file has it as a list
        value = value.tolist()
    return _is_name_or_position(value) or check.list_of(_is_name_or_position)(value) or check.labels(1)(value)


_is_name_or_position = check.instance_of((str, int))


_is_step = check.or_none(check.estimator, check.one_of("drop", "passthrough"))


def _is_named_steps(value: Any) -> bool:
    """Return whether these are steps of a pipeline: pairs of name and estimator."""
    return isinstance(value, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) and _is_step(step[1]) for step in value
    )


def _is_fitted_transformer(value: Any) -> bool:
    """Return whether this is a tuple of name, transformer and columns."""
    return isinstance(value, tuple) and len(value) == 3 and _is_named_steps([value[:2]]) and _is_selection(value[2])


def _columns_of_selectors(made: Any, fitted: Any = None) -> dict[str, Any]:
    """Return the transformers of a `ColumnTransformer`, with the columns that functions have selected in ``fitted``."""
    resolved = getattr(made if fitted is None else fitted, "_columns", None)
    if resolved is None:
        return {}
    pairs = zip(made.transformers, resolved, strict=True)
    return {"transformers": [(name, step, known if callable(given) else given) for (name, step, given), known in pairs]}


def name_selected_columns(estimator: Any, fitted: Any) -> Any:
    """Return an estimator with the columns that its functions have selected in ``fitted``, a fitted clone of it."""
    is_clone = estimator is not fitted and type(estimator) is type(fitted)
    if not is_clone or not isinstance(estimator, (Pipeline, ColumnTransformer)):
        return estimator
    named = copy(estimator)
    if isinstance(estimator, ColumnTransformer):
        vars(named).update(_columns_of_selectors(estimator, fitted))
    else:
        pairs = zip(estimator.steps, fitted.steps, strict=True)
        named.steps = [(name, name_selected_columns(step, done)) for (name, step), (_, done) in pairs]
    return named


def _is_plain_slice(value: Any) -> bool:
    """Return whether this is a slice of columns from one to another."""
    return isinstance(value, slice) and check.count(value.start) and check.count(value.stop) and value.step is None


def _is_consistent_column_transformer(made: Any) -> bool:
    """Return whether the transformers and columns of a `ColumnTransformer` agree."""
    n_columns = made.n_features_in_
    positions = made._transformer_to_input_indices  # noqa: SLF001
    names = [name for name, _, _ in made.transformers_]
    widths = [one.stop for one in made.output_indices_.values()]
    return bool(
        getattr(made, "_n_features", n_columns) == n_columns
        and all(index < n_columns for one in positions.values() for index in one)
        and len(set(names)) == len(names)
        and set(names) <= set(made.output_indices_)
        and max(widths, default=0) <= check.MAX_COLUMNS
        and all(
            positions.get(name) == _positions(columns, made)
            and (step == "drop" or not positions[name] or hasattr(step, "transform"))
            and getattr(step, "n_features_in_", len(positions[name])) == len(positions[name])
            for name, step, columns in made.transformers_
        )
    )


def _positions(columns: Any, made: Any) -> list[int] | None:
    """Return the positions of the columns that a transformer selects; None where there are no such columns."""
    n_columns, known = made.n_features_in_, [*getattr(made, "feature_names_in_", ())]
    if isinstance(columns, slice):
        ends = [columns.start, columns.stop]
        if any(isinstance(end, str) for end in ends):
            if not all(end is None or end in known for end in ends):
                return None
            start = 0 if columns.start is None else known.index(columns.start)
            stop = n_columns if columns.stop is None else known.index(columns.stop) + 1  # names include the last one
            return [*range(start, stop)]
        return [*range(n_columns)[columns]]
    chosen = [columns] if isinstance(columns, (str, int)) and not isinstance(columns, bool) else [*columns]
    if chosen and all(isinstance(one, (bool, np.bool_)) for one in chosen):
        return [*np.flatnonzero(chosen).tolist()] if len(chosen) == n_columns else None
    if any(isinstance(one, str) and one not in known for one in chosen):
        return None
    positions = [known.index(one) if isinstance(one, str) else int(one) for one in chosen]
    return [position + n_columns if position < 0 else position for position in positions]


def _is_consistent_imputer(made: Any) -> bool:
    """Return whether the statistics and the indicator of a `SimpleImputer` have its columns."""
    indicator = getattr(made, "indicator_", None)
    return _one_per_column(made, "statistics_") and (
        indicator is None or (hasattr(indicator, "features_") and indicator._n_features == made.n_features_in_)  # noqa: SLF001
    )


def _is_consistent_one_hot(made: Any) -> bool:
    """Return whether the attributes of a `OneHotEncoder` are those that follow from its categories."""
    groupings = _groupings(made, {})
    if groupings is None:
        return False
    n_outputs, dropped, shown = made._n_features_outs, made._drop_idx_after_grouping, made.drop_idx_  # noqa: SLF001
    if dropped is None or shown is None:
        return dropped is shown and n_outputs == [one.n_groups for one in groupings]
    if any(one.dtype != object or one.size != len(groupings) for one in (dropped, shown)):
        return False
    columns = list(zip(groupings, dropped, shown, strict=True))
    return all(_is_dropped(*column) for column in columns) and n_outputs == [
        one.n_groups - (index is not None) for one, index, _ in columns
    ]


def _is_consistent_ordinal(made: Any) -> bool:
    """Return whether the attributes of an `OrdinalEncoder` are those that follow from its categories."""
    missing = made._missing_indices  # noqa: SLF001
    groupings = _groupings(made, missing)
    return groupings is not None and all(
        check.count(column)
        and column < len(groupings)
        and check.count(index)
        and index < groupings[column].n_categories
        for column, index in missing.items()
    )


class _Grouping(NamedTuple):
    """The categories of a column: their number, the number after grouping rare ones, and the group of each."""

    n_categories: int
    n_groups: int
    group_of: Any


def _is_dropped(grouping: _Grouping, index: Any, original: Any) -> bool:
    """Return whether a category may be dropped, of which there are two indices: after grouping, and the original."""
    if index is None:
        return original is None
    known = check.count(original) and original < len(grouping.group_of)
    return check.count(index) and known and bool(grouping.group_of[original] == index)


def _groupings(made: Any, missing: dict[int, int]) -> list[_Grouping] | None:
    """Return the categories of each column; None unless everything follows from the indices of the rare ones.

    ``missing`` has the columns in which one category, which is never rare, stands for missing values.
    """
    n_categories = [len(one) for one in made.categories_]
    n_columns = len(n_categories)
    if n_columns != made.n_features_in_ or sum(n_categories) > check.MAX_COLUMNS or not all(n_categories):
        return None
    if not all(map(_is_distinct, made.categories_)):
        return None
    rare: list[Any] = [None] * n_columns
    stored = rare
    if made._infrequent_enabled:  # noqa: SLF001
        rare, stored = made._infrequent_indices, made._default_to_infrequent_mappings  # noqa: SLF001
    if len(rare) != n_columns or len(stored) != n_columns:
        return None
    sizes = [n - (column in missing) for column, n in enumerate(n_categories)]
    groupings = [_group(*column) for column in zip(n_categories, sizes, rare, stored, strict=True)]
    return None if None in groupings else cast("list[_Grouping]", groupings)


def _group(n_categories: int, n_without_missing: int, rare: Any, stored: Any) -> _Grouping | None:
    if rare is None or stored is None:
        return _Grouping(n_categories, n_categories, range(n_categories)) if rare is stored else None
    if not _is_ascending_indices(rare, n_without_missing) or not rare.size:
        return None
    frequent = np.setdiff1d(np.arange(n_without_missing), rare)
    groups = np.full(n_without_missing, frequent.size)
    groups[frequent] = np.arange(frequent.size)
    if not check.labels(1)(stored) or stored.dtype.kind != "i" or not np.array_equal(stored, groups):
        return None
    return _Grouping(n_categories, n_categories - rare.size + 1, groups)


def _is_distinct(categories: Any) -> bool:
    """Return whether categories differ; those of numbers must ascend, with NaN at the end, as they are searched."""
    if categories.dtype.kind in "biuf":
        with_nan = categories.dtype.kind == "f" and np.isnan(categories[-1])
        numbers = categories[: categories.size - int(with_nan)]
        return bool(np.all(numbers[1:] > numbers[:-1])) and not (numbers != numbers).any()  # noqa: PLR0124 - NaN
    return len(set(categories.tolist())) == categories.size


def _is_ascending_indices(indices: Any, n: int) -> bool:
    """Return whether these are different indices below a number, in order."""
    values = indices.tolist() if check.labels(1)(indices) and indices.dtype.kind == "i" and indices.size <= n else [-1]
    return all(0 <= value < n for value in values) and all(one < other for one, other in pairwise(values))


def _is_consistent_logistic(made: Any) -> bool:
    n_rows = 1 if made.classes_.size == 2 else made.classes_.size
    return made.coef_.shape == (n_rows, made.n_features_in_) and made.intercept_.shape in {(n_rows,), (1,)}


def _is_consistent_regression(made: Any) -> bool:
    return made.coef_.shape == (made.n_features_in_,) and np.ndim(made.intercept_) == 0


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
    if n_all > check.MAX_COLUMNS:
        return False
    expected.fit(np.zeros((1, made.n_features_in_)))
    names = ("_min_degree", "_max_degree", "_n_out_full", "n_output_features_")
    return all(getattr(made, name) == getattr(expected, name) for name in names)


def _is_consistent_projection(made: Any) -> bool:
    n_components = len(made.components_)
    parts = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
    return bool(
        made.components_.shape == (n_components, made.n_features_in_)
        and _one_per_column(made, "mean_")
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
    return _one_per_column(made, "lambdas_") and fits and (scaler is not None) == made.standardize


def _is_consistent_target_encoder(made: Any) -> bool:
    sizes = [len(one) for one in made.categories_]
    return bool(
        made.target_type_ in {"binary", "continuous"}
        and not made._infrequent_enabled  # noqa: SLF001
        and len(sizes) == len(made.encodings_) == made.n_features_in_
        and sizes == [one.size for one in made.encodings_]
        and all(sizes)
    )


def _is_cell_type(value: Any) -> bool:
    return isinstance(value, np.dtype) and value.kind in "biufOU"


_MAX_DEGREE = check.count_up_to(10)
_NUMBER = check.instance_of((int, float))
_COLUMN_VALUES = check.any_of(check.labels(1), check.list_of(check.plain))
_INDICES_OR_NONE = check.or_none(check.labels(1))
_FINITE_OR_ZERO = check.any_of(check.finite, check.one_of(0))
_VECTOR = check.reals_or_none
_SCALES = check.or_none(check.array(1, least=1e-150))  # quotients of cells by smaller ones may not be finite
#: Checks of parameters and attributes by name; those that have another meaning in one class are given there.
_CHECKS = {
    **check.SHARED,
    **check.by_name(
        {
            check.amount: "alpha intercept_scaling tol",
            check.boolean: """
            accept_sparse add_indicator check_inverse clip copy copy_X dual error_on_new fit_intercept
            ignore_implicit_zeros include_bias interaction_only keep_empty_features positive precompute shuffle
            sparse_output standardize unit_variance validate verbose_feature_names_out warm_start whiten with_centering
            with_mean with_scaling with_std _infrequent_enabled _precomputed sparse_output_
        """,
            check.class_named("StandardScaler"): "_scaler",
            check.count: "n_oversamples n_quantiles n_components_ n_quantiles_ n_samples_ rank_ _n_features",
            check.count_up_to(1000): "cv n_splits",
            check.count_up_to(1_000_000): "n_iter",
            check.count_up_to(check.MAX_COLUMNS): "_n_out_full n_output_features_",
            check.finite: "dual_gap_ target_mean_",
            check.labels(1): "classes_ statistics_",
            check.number: "threshold",
            check.number_in(0.0, 100.0): "percentile",
            check.one_of("C", "F"): "order",
            check.one_of("concat"): "feature_name_combiner",
            check.or_none(check.amount): "max_categories min_frequency",
            check.or_none(check.class_named("MissingIndicator")): "indicator_",
            check.or_none(check.count): "subsample",
            check.or_none(check.count_up_to(1_000_000_000)): "max_iter",
            check.or_none(check.list_of(check.text)): "transform_input",
            check.or_none(check.number_in(0.0, check.MAX_COLUMNS), check.one_of("mle")): "n_components",
            check.or_none(check.one_of("balanced"), _is_weights): "class_weight",
            check.or_none(check.one_of("one-to-one")): "feature_names_out",
            check.or_none(check.share): "l1_ratio",
            check.or_none(check.text, _COLUMN_VALUES): "drop",
            check.or_none(check.word): "penalty",
            check.or_none(_NUMBER): "unknown_value",
            check.or_none(_is_weights): "transformer_weights",
            check.plain: "fill_value missing_values",
            check.share: "sparse_threshold",
            check.text: "handle_unknown",
            check.tuple_of(check.number): "feature_range quantile_range",
            check.word: """
            algorithm features method multi_class norm output_distribution power_iteration_normalizer selection solver
            strategy svd_solver target_type solver_ target_type_ _fit_svd_solver
        """,
            check.any_of(check.amount, check.one_of(np.inf)): "C",
            check.any_of(check.amount, check.word): "smooth",
            check.any_of(check.boolean, check.one_of("auto")): "sparse",
            check.any_of(check.boolean, check.word): "force_int_remainder_cols",  # until scikit-learn 1.8
            check.any_of(check.count, check.one_of("all")): "k",
            check.any_of(check.count, check.word): "iterated_power",
            check.any_of(check.one_of("drop", "passthrough"), check.estimator): "remainder",
            check.any_of(check.text, check.list_of(_COLUMN_VALUES)): "categories",
            check.any_of(_MAX_DEGREE, check.tuple_of(_MAX_DEGREE)): "degree",
            check.any_of(_FINITE_OR_ZERO, check.array(0)): "intercept_",
            check.any_of(_NUMBER, check.array(0, 1)): "n_samples_seen_",
            check.array(1): "coef_ singular_ references_ features_",
            check.array(1, finite=False): "explained_variance_ explained_variance_ratio_ singular_values_ lambdas_",
            check.array(2): "components_",
            check.array(2, finite=False): "quantiles_",
            check.dict_of(check.estimator): "_name_to_fitted_passthrough",
            check.dict_of(check.list_of(check.count)): "_transformer_to_input_indices",
            check.dict_of(_is_plain_slice): "output_indices_",
            check.instance_of(dict): "_missing_indices",
            check.list_of(check.array(1)): "encodings_",
            check.list_of(check.count): "_n_features_outs",
            check.list_of(check.labels(1)): "categories_",
            check.list_of(_INDICES_OR_NONE): "_default_to_infrequent_mappings _infrequent_indices",
            check.list_of(_is_fitted_transformer): "transformers transformers_",
            check.list_of(_is_selection): "_columns",
            _FINITE_OR_ZERO: "noise_variance_",
            _INDICES_OR_NONE: "drop_idx_ _drop_idx_after_grouping",
            _MAX_DEGREE: "_max_degree _min_degree",
            _NUMBER: "encoded_missing_value",
            _SCALES: "scale_",
            _VECTOR: "center_ data_max_ data_min_ data_range_ max_abs_ mean_ min_ pvalues_ scores_ var_ variances_",
            _is_cell_type: "_fit_dtype _fill_dtype",
            _is_fitted_transformer: "_remainder",
            _is_named_steps: "steps transformer_list",
            _is_number_type: "dtype",
        }
    ),
}
_recipe = partial(named_recipe, _CHECKS)


VALUE_TYPES: tuple[ValueType, ...] = ()

_SELECTION = {"not_stored": ("score_func",)}  # `transform` does not need the function

# Class: parameters | attributes that a fitted one has | and those that it may have. LogisticRegression has multi_class
# until scikit-learn 1.7; a ColumnTransformer fits a FunctionTransformer for "passthrough".
_TABLE = """
linear_model.LogisticRegression: C class_weight dual fit_intercept intercept_scaling l1_ratio max_iter multi_class
    penalty random_state solver tol warm_start | classes_ coef_ intercept_ | n_iter_
linear_model.LinearRegression: copy_X fit_intercept positive tol | coef_ intercept_ | rank_ singular_
linear_model.Ridge: alpha copy_X fit_intercept max_iter positive random_state solver tol | coef_ intercept_
    | n_iter_ solver_
linear_model.Lasso: alpha copy_X fit_intercept max_iter positive precompute random_state selection tol warm_start
    | coef_ intercept_ | dual_gap_ l1_ratio n_iter_
linear_model.ElasticNet: l1_ratio alpha copy_X fit_intercept max_iter positive precompute random_state selection tol
    warm_start | coef_ intercept_ | dual_gap_ n_iter_
preprocessing.StandardScaler: copy with_mean with_std | mean_ scale_ | var_ n_samples_seen_
preprocessing.MinMaxScaler: clip copy feature_range | scale_ | data_max_ data_min_ data_range_ min_ n_samples_seen_
preprocessing.MaxAbsScaler: clip copy | scale_ | max_abs_ n_samples_seen_
preprocessing.RobustScaler: copy quantile_range unit_variance with_centering with_scaling | scale_ | center_
preprocessing.Normalizer: copy norm
preprocessing.Binarizer: copy threshold
preprocessing.FunctionTransformer: accept_sparse check_inverse feature_names_out validate
preprocessing.OneHotEncoder: categories drop dtype feature_name_combiner handle_unknown max_categories min_frequency
    sparse_output | _infrequent_enabled categories_ _n_features_outs drop_idx_
    | _drop_idx_after_grouping _default_to_infrequent_mappings _infrequent_indices
preprocessing.OrdinalEncoder: categories dtype encoded_missing_value handle_unknown max_categories min_frequency
    unknown_value | _infrequent_enabled categories_ _missing_indices
    | _default_to_infrequent_mappings _infrequent_indices
preprocessing.PolynomialFeatures: degree include_bias interaction_only order
    | _max_degree _min_degree _n_out_full n_output_features_
preprocessing.PowerTransformer: copy method standardize | lambdas_ | _scaler
preprocessing.QuantileTransformer: copy ignore_implicit_zeros n_quantiles output_distribution random_state subsample
    | n_quantiles_ quantiles_ references_
preprocessing.TargetEncoder: categories cv random_state shuffle smooth target_type
    | categories_ encodings_ target_mean_ target_type_ | _infrequent_enabled classes_
impute.SimpleImputer: add_indicator copy fill_value keep_empty_features missing_values strategy
    | _fit_dtype statistics_ | _fill_dtype indicator_
feature_selection.SelectKBest: k | scores_ | pvalues_
feature_selection.SelectPercentile: percentile | scores_ | pvalues_
feature_selection.VarianceThreshold: threshold | variances_
decomposition.PCA: n_components n_oversamples power_iteration_normalizer random_state tol copy iterated_power svd_solver
    whiten | components_ explained_variance_ mean_ | explained_variance_ratio_ singular_values_ _fit_svd_solver
    n_components_ n_samples_ noise_variance_
decomposition.TruncatedSVD: n_components n_oversamples power_iteration_normalizer random_state tol algorithm n_iter
    | components_ | explained_variance_ratio_ singular_values_ explained_variance_
"""
_CONSISTENT: dict[str, Callable[[Any], bool]] = {
    "LogisticRegression": _is_consistent_logistic,
    **dict.fromkeys(("LinearRegression", "Ridge", "Lasso", "ElasticNet"), _is_consistent_regression),
    "OneHotEncoder": _is_consistent_one_hot,
    "OrdinalEncoder": _is_consistent_ordinal,
    "PolynomialFeatures": _is_consistent_polynomial,
    "PowerTransformer": _is_consistent_power,
    "QuantileTransformer": _is_consistent_quantiles,
    "TargetEncoder": _is_consistent_target_encoder,
    "SimpleImputer": _is_consistent_imputer,
    **dict.fromkeys(("PCA", "TruncatedSVD"), _is_consistent_projection),
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "LogisticRegression": {
        "not_stored": ("n_jobs", "verbose"),
        "other": {"coef_": check.array(2), "intercept_": check.array(1), "n_iter_": check.array(1)},
    },
    "LinearRegression": {"not_stored": ("n_jobs",)},
    "Ridge": {"other": {"n_iter_": check.reals_or_none}},
    "Lasso": {"other": {"l1_ratio": check.instance_of(float)}},
    "PCA": {"other": {"mean_": check.array(1)}},
    **dict.fromkeys(("SelectKBest", "SelectPercentile"), _SELECTION),
}


def _of_table(entry: str) -> Recipe:
    """Return the recipe of a class that is fitted on columns; its vectors have one number for each, or are None."""
    name, _, rest = entry.partition(":")
    params, fitted, optional = (*rest.split("|"), "", "")[:3]
    vectors = [one for one in f"{fitted} {optional}".split() if _CHECKS[one] in (_VECTOR, _SCALES)]
    kind = name.rpartition(".")[2]
    is_consistent = _CONSISTENT.get(kind, lambda made: _one_per_column(made, *vectors))
    parts = (f"sklearn.{name}", f"n_features_in_ {fitted}", f"feature_names_in_ {optional}", params)
    return _recipe(*parts, is_consistent=is_consistent, **_OPTIONS.get(kind, {}))


RECIPES = (
    *map(_of_table, re.split(r"\n(?=\S)", _TABLE.strip())),
    _recipe(
        "sklearn.impute.MissingIndicator",
        "_n_features features_",
        "n_features_in_ feature_names_in_ _precomputed",
        "error_on_new features missing_values sparse",
        is_consistent=lambda made: _is_ascending_indices(made.features_, made._n_features),  # noqa: SLF001
    ),
    _recipe(
        "sklearn.compose.ColumnTransformer",
        "n_features_in_ _columns _remainder _transformer_to_input_indices output_indices_ transformers_",
        "feature_names_in_ _n_features _name_to_fitted_passthrough sparse_output_",
        "force_int_remainder_cols remainder sparse_threshold transformer_weights transformers"
        " verbose_feature_names_out",
        not_stored=("n_jobs", "verbose"),
        stored=_columns_of_selectors,
        is_consistent=_is_consistent_column_transformer,
    ),
    _recipe("sklearn.pipeline.Pipeline", params="steps transform_input", not_stored=("memory", "verbose")),
    _recipe(
        "sklearn.pipeline.FeatureUnion",
        params="transformer_list transformer_weights verbose_feature_names_out",
        not_stored=("n_jobs", "verbose"),
    ),
    *(
        _recipe(f"sklearn.model_selection.{name}", params="n_splits random_state shuffle")
        for name in ("KFold", "StratifiedKFold")
    ),
)
