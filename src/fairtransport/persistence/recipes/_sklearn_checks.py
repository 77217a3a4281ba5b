"""Checks of scikit-learn's preprocessing: parameters, selections of columns, and what follows from other attributes.

scikit-learn trusts the private attributes of its estimators. A one-hot encoder writes its output by
``_n_features_outs`` into a sparse matrix, whose compiled code does not check indices: everything that can be computed
from the categories is computed again here, and compared.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from fairtransport.persistence.recipes import _checks as check


def one_per_column(made: Any, *names: str) -> bool:
    """Return whether attributes of these names have one item for each column, or are None."""
    values = (getattr(made, name, None) for name in names)
    return all(value is None or len(value) == made.n_features_in_ for value in values)


# -------------------------------------------------------------------------------------------------------- parameters


def is_class_weight(value: Any) -> bool:
    """Return whether these are weights of classes."""
    return value is None or value == "balanced" or is_weights(value)


def is_weights(value: Any) -> bool:
    """Return whether this is a dict of numbers."""
    return isinstance(value, dict) and all(map(check.plain, value)) and all(map(check.number, value.values()))


def is_number_type(value: Any) -> bool:
    """Return whether this is a type of numbers."""
    kind = value.type if isinstance(value, np.dtype) else value
    return kind in {bool, float, int} or (
        isinstance(kind, type) and issubclass(kind, (np.bool_, np.integer, np.float32, np.float64))
    )


def is_selection(value: Any) -> bool:
    """Return whether this selects columns: by name, position, slice or mask; not by a function."""
    if isinstance(value, slice):
        return all(check.none(one) or isinstance(one, (int, str)) for one in (value.start, value.stop, value.step))
    if type(value).__name__ == "Index":  # of pandas; a file has it as a list
        value = value.tolist()
    return _is_name_or_position(value) or check.list_of(_is_name_or_position)(value) or check.labels(1)(value)


_is_name_or_position = check.instance_of((str, int))


def _is_step(value: Any) -> bool:
    return value is None or value in ("drop", "passthrough") if not check.estimator(value) else True


def is_named_steps(value: Any) -> bool:
    """Return whether these are steps of a pipeline: pairs of name and estimator."""
    return isinstance(value, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) and _is_step(step[1]) for step in value
    )


def is_fitted_transformer(value: Any) -> bool:
    """Return whether this is a tuple of name, transformer and columns."""
    return isinstance(value, tuple) and len(value) == 3 and is_named_steps([value[:2]]) and is_selection(value[2])


def columns_of_selectors(made: Any) -> dict[str, Any]:
    """Return the transformers of a fitted `ColumnTransformer`, with the columns that its functions have selected."""
    resolved = getattr(made, "_columns", None)
    if resolved is None:
        return {}
    pairs = zip(made.transformers, resolved, strict=True)
    return {"transformers": [(name, step, known if callable(given) else given) for (name, step, given), known in pairs]}


# -------------------------------------------------------------------------------------------------------- attributes


def is_plain_slice(value: Any) -> bool:
    """Return whether this is a slice of columns from one to another."""
    return isinstance(value, slice) and check.count(value.start) and check.count(value.stop) and value.step is None


def is_consistent_column_transformer(made: Any) -> bool:
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


def is_consistent_imputer(made: Any) -> bool:
    """Return whether the statistics and the indicator of a `SimpleImputer` have its columns."""
    indicator = getattr(made, "indicator_", None)
    return one_per_column(made, "statistics_") and (
        indicator is None or (hasattr(indicator, "features_") and indicator._n_features == made.n_features_in_)  # noqa: SLF001
    )


def is_consistent_one_hot(made: Any) -> bool:
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


def is_consistent_ordinal(made: Any) -> bool:
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
    if not is_ascending_indices(rare, n_without_missing) or not rare.size:
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


def is_ascending_indices(indices: Any, n: int) -> bool:
    """Return whether these are different indices below a number, in order."""
    values = indices.tolist() if check.labels(1)(indices) and indices.dtype.kind == "i" and indices.size <= n else [-1]
    return all(0 <= value < n for value in values) and all(one < other for one, other in pairwise(values))
