"""Categories of the columns that LightGBM was trained with as pandas categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.persistence.recipes._checks import label_array, number_array
from fairtransport.persistence.trees import MAX_CATEGORIES, InvalidTreesError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["are_columns", "categories_from_arrays", "categories_to_arrays"]

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
