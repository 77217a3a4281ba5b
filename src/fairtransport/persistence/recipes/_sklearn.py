"""Recipes of scikit-learn's linear models, preprocessing, selections and projections of columns.

Every attribute is listed by name. An estimator with another one, of a later version of scikit-learn for instance, is
refused when it is saved, not when it is needed.

scikit-learn trusts the private attributes of its estimators. A one-hot encoder writes its output by
``_n_features_outs`` into a sparse matrix, whose compiled code does not check indices: everything that can be computed
from the categories is computed again here, and compared.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import Recipe

if TYPE_CHECKING:
    from fairtransport.persistence.recipes._checks import Check
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


def _columns_of_selectors(made: Any) -> dict[str, Any]:
    """Return the transformers of a fitted `ColumnTransformer`, with the columns that its functions have selected."""
    resolved = getattr(made, "_columns", None)
    if resolved is None:
        return {}
    pairs = zip(made.transformers, resolved, strict=True)
    return {"transformers": [(name, step, known if callable(given) else given) for (name, step, given), known in pairs]}


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


_MAX_DEGREE = 10
_MAX_ITERATIONS = 1_000_000_000
_COLUMN_VALUES = check.any_of(check.labels(1), check.list_of(check.plain))
_NUMBER = check.instance_of((int, float))
_PAIR = check.tuple_of(check.number)

_FLAGS = """
    accept_sparse add_indicator check_inverse clip copy copy_X dual error_on_new fit_intercept ignore_implicit_zeros
    include_bias interaction_only keep_empty_features positive precompute shuffle sparse_output standardize
    unit_variance validate verbose_feature_names_out warm_start whiten with_centering with_mean with_scaling with_std
"""
_WORDS = """
    algorithm features method multi_class norm output_distribution power_iteration_normalizer selection solver strategy
    svd_solver target_type
"""
#: Checks of parameters by name, which have the same meaning in every class.
_PARAMS: dict[str, Check] = {
    **dict.fromkeys(_FLAGS.split(), check.boolean),
    **dict.fromkeys(_WORDS.split(), check.word),
    **dict.fromkeys(("alpha", "intercept_scaling", "tol"), check.amount),
    **dict.fromkeys(("feature_range", "quantile_range"), _PAIR),
    **dict.fromkeys(("fill_value", "missing_values"), check.plain),
    **dict.fromkeys(("max_categories", "min_frequency"), check.or_none(check.amount)),
    **dict.fromkeys(("n_oversamples", "n_quantiles"), check.count),
    **dict.fromkeys(("steps", "transformer_list"), _is_named_steps),
    "C": check.any_of(check.amount, check.one_of(np.inf)),
    "categories": check.any_of(check.text, check.list_of(_COLUMN_VALUES)),
    "class_weight": check.or_none(check.one_of("balanced"), _is_weights),
    "cv": check.count_up_to(1000),
    "degree": check.any_of(check.count_up_to(_MAX_DEGREE), check.tuple_of(check.count_up_to(_MAX_DEGREE))),
    "drop": check.or_none(check.text, _COLUMN_VALUES),
    "dtype": _is_number_type,
    "encoded_missing_value": _NUMBER,
    "feature_name_combiner": check.one_of("concat"),
    "feature_names_out": check.or_none(check.one_of("one-to-one")),
    "force_int_remainder_cols": check.any_of(check.boolean, check.word),  # until scikit-learn 1.8
    "handle_unknown": check.text,
    "iterated_power": check.any_of(check.count, check.word),
    "k": check.any_of(check.count, check.one_of("all")),
    "l1_ratio": check.or_none(check.share),
    "max_iter": check.or_none(check.count_up_to(_MAX_ITERATIONS)),
    "n_components": check.or_none(check.number_in(0.0, check.MAX_COLUMNS), check.one_of("mle")),
    "n_iter": check.count_up_to(1_000_000),
    "n_splits": check.count_up_to(1000),
    "order": check.one_of("C", "F"),
    "penalty": check.or_none(check.word),
    "percentile": check.number_in(0.0, 100.0),
    "random_state": check.seed,
    "remainder": check.any_of(check.one_of("drop", "passthrough"), check.estimator),
    "smooth": check.any_of(check.amount, check.word),
    "sparse": check.any_of(check.boolean, check.one_of("auto")),
    "sparse_threshold": check.share,
    "subsample": check.or_none(check.count),
    "threshold": check.number,
    "transform_input": check.or_none(check.list_of(check.text)),
    "transformer_weights": check.or_none(_is_weights),
    "transformers": check.list_of(_is_fitted_transformer),
    "unknown_value": check.or_none(_NUMBER),
}


def _recipe(name: str, params: str, **others: Any) -> Recipe:
    """Return the recipe of a class with these parameters."""
    return Recipe(f"sklearn.{name}", params={one: _PARAMS[one] for one in params.split()}, **others)


def _on_columns(
    name: str, params: str, fitted: dict[str, Check], is_consistent: Check | None = None, **optional: Check
) -> Recipe:
    """Return the recipe of a class that is fitted on columns."""
    return _recipe(
        name,
        params,
        fitted={**check.COLUMNS, **fitted},
        optional={**check.COLUMN_NAMES, **optional},
        not_stored=_MACHINE.get(name, ()),
        is_consistent=is_consistent,
    )


def _vectors(name: str, params: str, fitted: str, optional: str = "", **others: Check) -> Recipe:
    """Return the recipe of a class with vectors that have one number for each column, or None."""
    vectors = (*fitted.split(), *optional.split())
    return _on_columns(
        name,
        params,
        dict.fromkeys(fitted.split(), check.reals_or_none),
        lambda made: _one_per_column(made, *vectors),
        **dict.fromkeys(optional.split(), check.reals_or_none),
        **others,
    )


VALUE_TYPES: tuple[ValueType, ...] = ()

_MACHINE = {
    "linear_model.LogisticRegression": ("n_jobs", "verbose"),
    "linear_model.LinearRegression": ("n_jobs",),
    "feature_selection.SelectKBest": ("score_func",),  # `transform` does not need the function
    "feature_selection.SelectPercentile": ("score_func",),
}
_REALS = check.array(1, finite=False)
_INDICES_OR_NONE = check.or_none(check.labels(1))
_REGRESSION = {"coef_": check.array(1), "intercept_": check.any_of(check.finite, check.one_of(0), check.array(0))}
_SPARSE_REGRESSION = (
    "alpha copy_X fit_intercept max_iter positive precompute random_state selection tol warm_start",
    _REGRESSION,
    _is_consistent_regression,
)
_ENCODER = {"_infrequent_enabled": check.boolean, "categories_": check.list_of(check.labels(1))}
_RARE = dict.fromkeys(("_default_to_infrequent_mappings", "_infrequent_indices"), check.list_of(_INDICES_OR_NONE))
_COUNTED = check.any_of(_NUMBER, check.array(0, 1))
_SVD = "n_components n_oversamples power_iteration_normalizer random_state tol"

RECIPES = (
    _on_columns(
        "linear_model.LogisticRegression",
        "C class_weight dual fit_intercept intercept_scaling l1_ratio max_iter multi_class penalty random_state solver"
        " tol warm_start",  # multi_class until scikit-learn 1.7
        {"classes_": check.labels(1), "coef_": check.array(2), "intercept_": check.array(1)},
        _is_consistent_logistic,
        n_iter_=check.array(1),
    ),
    _on_columns(
        "linear_model.LinearRegression",
        "copy_X fit_intercept positive tol",
        _REGRESSION,
        _is_consistent_regression,
        rank_=check.count,
        singular_=check.array(1),
    ),
    _on_columns(
        "linear_model.Ridge",
        "alpha copy_X fit_intercept max_iter positive random_state solver tol",
        _REGRESSION,
        _is_consistent_regression,
        n_iter_=check.reals_or_none,
        solver_=check.word,
    ),
    _on_columns(
        "linear_model.Lasso",
        *_SPARSE_REGRESSION,
        dual_gap_=check.finite,
        l1_ratio=check.instance_of(float),
        n_iter_=check.count,
    ),
    _on_columns(
        "linear_model.ElasticNet",
        f"l1_ratio {_SPARSE_REGRESSION[0]}",
        *_SPARSE_REGRESSION[1:],
        dual_gap_=check.finite,
        n_iter_=check.count,
    ),
    _vectors(
        "preprocessing.StandardScaler", "copy with_mean with_std", "mean_ scale_", "var_", n_samples_seen_=_COUNTED
    ),
    _vectors(
        "preprocessing.MinMaxScaler",
        "clip copy feature_range",
        "scale_",
        "data_max_ data_min_ data_range_ min_",
        n_samples_seen_=_COUNTED,
    ),
    _vectors("preprocessing.MaxAbsScaler", "clip copy", "scale_", "max_abs_", n_samples_seen_=_COUNTED),
    _vectors(
        "preprocessing.RobustScaler",
        "copy quantile_range unit_variance with_centering with_scaling",
        "scale_",
        "center_",
    ),
    _on_columns("preprocessing.Normalizer", "copy norm", {}),
    _on_columns("preprocessing.Binarizer", "copy threshold", {}),
    _on_columns(  # a ColumnTransformer fits one for "passthrough"
        "preprocessing.FunctionTransformer", "accept_sparse check_inverse feature_names_out validate", {}
    ),
    _on_columns(
        "preprocessing.OneHotEncoder",
        "categories drop dtype feature_name_combiner handle_unknown max_categories min_frequency sparse_output",
        {**_ENCODER, "_n_features_outs": check.list_of(check.count), "drop_idx_": _INDICES_OR_NONE},
        _is_consistent_one_hot,
        _drop_idx_after_grouping=_INDICES_OR_NONE,
        **_RARE,
    ),
    _on_columns(
        "preprocessing.OrdinalEncoder",
        "categories dtype encoded_missing_value handle_unknown max_categories min_frequency unknown_value",
        {**_ENCODER, "_missing_indices": check.instance_of(dict)},
        _is_consistent_ordinal,
        **_RARE,
    ),
    _on_columns(
        "preprocessing.PolynomialFeatures",
        "degree include_bias interaction_only order",
        {
            **dict.fromkeys(("_max_degree", "_min_degree"), check.count_up_to(_MAX_DEGREE)),
            **dict.fromkeys(("_n_out_full", "n_output_features_"), check.count_up_to(check.MAX_COLUMNS)),
        },
        _is_consistent_polynomial,
    ),
    _on_columns(
        "preprocessing.PowerTransformer",
        "copy method standardize",
        {"lambdas_": _REALS},
        _is_consistent_power,
        _scaler=check.class_named("StandardScaler"),
    ),
    _on_columns(
        "preprocessing.QuantileTransformer",
        "copy ignore_implicit_zeros n_quantiles output_distribution random_state subsample",
        {"n_quantiles_": check.count, "quantiles_": check.array(2, finite=False), "references_": check.array(1)},
        _is_consistent_quantiles,
    ),
    _on_columns(
        "preprocessing.TargetEncoder",
        "categories cv random_state shuffle smooth target_type",
        {
            "categories_": check.list_of(check.labels(1)),
            "encodings_": check.list_of(check.array(1)),
            "target_mean_": check.finite,
            "target_type_": check.word,
        },
        _is_consistent_target_encoder,
        _infrequent_enabled=check.one_of(False),
        classes_=check.labels(1),
    ),
    _on_columns(
        "impute.SimpleImputer",
        "add_indicator copy fill_value keep_empty_features missing_values strategy",
        {"_fit_dtype": _is_cell_type, "statistics_": check.labels(1)},
        _is_consistent_imputer,
        _fill_dtype=_is_cell_type,
        indicator_=check.or_none(check.class_named("MissingIndicator")),
    ),
    _recipe(
        "impute.MissingIndicator",
        "error_on_new features missing_values sparse",
        fitted={"_n_features": check.count, "features_": check.array(1)},
        optional={**check.COLUMNS, **check.COLUMN_NAMES, "_precomputed": check.boolean},
        is_consistent=lambda made: _is_ascending_indices(made.features_, made._n_features),  # noqa: SLF001
    ),
    _vectors("feature_selection.SelectKBest", "k", "scores_", "pvalues_"),
    _vectors("feature_selection.SelectPercentile", "percentile", "scores_", "pvalues_"),
    _vectors("feature_selection.VarianceThreshold", "threshold", "variances_"),
    _on_columns(
        "decomposition.PCA",
        f"{_SVD} copy iterated_power svd_solver whiten",
        {"components_": check.array(2), "explained_variance_": _REALS, "mean_": check.array(1)},
        _is_consistent_projection,
        _fit_svd_solver=check.word,
        explained_variance_ratio_=_REALS,
        n_components_=check.count,
        n_samples_=check.count,
        noise_variance_=check.any_of(check.finite, check.one_of(0)),
        singular_values_=_REALS,
    ),
    _on_columns(
        "decomposition.TruncatedSVD",
        f"{_SVD} algorithm n_iter",
        {"components_": check.array(2)},
        _is_consistent_projection,
        explained_variance_=_REALS,
        explained_variance_ratio_=_REALS,
        singular_values_=_REALS,
    ),
    _recipe(
        "compose.ColumnTransformer",
        "force_int_remainder_cols remainder sparse_threshold transformer_weights transformers"
        " verbose_feature_names_out",
        fitted={
            **check.COLUMNS,
            "_columns": check.list_of(_is_selection),
            "_remainder": _is_fitted_transformer,
            "_transformer_to_input_indices": check.dict_of(check.list_of(check.count)),
            "output_indices_": check.dict_of(_is_plain_slice),
            "transformers_": check.list_of(_is_fitted_transformer),
        },
        optional={
            **check.COLUMN_NAMES,
            "_n_features": check.count,
            "_name_to_fitted_passthrough": check.dict_of(check.estimator),
            "sparse_output_": check.boolean,
        },
        not_stored=("n_jobs", "verbose"),
        stored=_columns_of_selectors,
        is_consistent=_is_consistent_column_transformer,
    ),
    _recipe("pipeline.Pipeline", "steps transform_input", not_stored=("memory", "verbose")),
    _recipe(
        "pipeline.FeatureUnion",
        "transformer_list transformer_weights verbose_feature_names_out",
        not_stored=("n_jobs", "verbose"),
    ),
    _recipe("model_selection.KFold", "n_splits random_state shuffle"),
    _recipe("model_selection.StratifiedKFold", "n_splits random_state shuffle"),
)
