"""Columns of any table library, read and coded: distinct values and each row's place among them.

No error text holds a value: only names of columns and counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = [
    "Coded",
    "check_number",
    "code_column",
    "default_names",
    "plain_value",
    "read_columns",
    "say_columns",
    "unique_inverse",
]

Coded: TypeAlias = tuple[list[Any], NDArray[np.int64]]
"""Distinct values, and each row's place among them."""


def say_columns(columns: Collection[str]) -> str:
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(map(repr, columns))}"


def check_number(n_groups: int, columns: Collection[str], max_groups: float) -> None:
    if n_groups > max_groups:
        raise ValueError(
            f"sensitive_features has {n_groups} groups in {say_columns(columns)}; max_groups is {max_groups}. If a "
            "column is an identifier or continuous, drop it or cut it into ranges; if not, raise max_groups=."
        )


def code_column(column: Any, name: str, max_groups: float) -> Coded:
    """Sort the values that occur in a column (missing is None and last) and place each row among them."""
    try:
        raw, codes = _factorize(nw.to_native(column, pass_through=True))
        plain = [None, *map(plain_value, raw)]
        used = np.bincount(codes + 1, minlength=len(plain)).tolist()
        values = {value for value, size in zip(plain, used, strict=True) if size}
    except TypeError:
        raise TypeError(f"Column {name!r} holds lists or other values that cannot be compared as groups.") from None
    check_number(len(values), [name], max_groups)
    ordered = sorted(values, key=_order)
    place = {value: position for position, value in enumerate(ordered)}
    return ordered, np.array([place.get(value, -1) for value in plain], dtype=np.int64)[codes + 1]


def _factorize(column: Any) -> Coded:
    """Find the distinct values, in any order, and each row's place among them (-1: missing), by library."""
    if hasattr(column, "factorize"):  # pandas and its kin
        codes, values = column.factorize()
        return values.tolist(), np.asarray(codes, dtype=np.int64)
    if hasattr(column, "dictionary_encode"):  # pyarrow
        encoded = column.dictionary_encode()
        chunks = encoded.unify_dictionaries().chunks if hasattr(encoded, "chunks") else [encoded]
        parts = [chunk.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks]
        return chunks[0].dictionary.to_pylist(), np.concatenate(parts)
    if isinstance(column, np.ndarray):
        return _factorize_array(column)
    series: nw.Series[Any] = nw.from_native(column, series_only=True)  # polars
    values = series.drop_nulls().unique().to_list()
    if not values:
        return [], np.full(len(series), -1, dtype=np.int64)
    places = series.replace_strict(values, range(len(values)), return_dtype=nw.Int64)
    return values, places.fill_null(-1).to_numpy()


def _factorize_array(array: NDArray[Any]) -> Coded:
    kind = array.dtype.kind
    if kind not in "biufmMUS":
        seen: defaultdict[Any, int] = defaultdict(count().__next__)
        codes = np.fromiter(map(seen.__getitem__, array), dtype=np.int64, count=array.size)
        return list(seen), codes
    if kind in "mM":
        array = array.astype(f"{kind}8[us]")  # the finest that Python's own types hold
    here = array == array if kind in "fmM" else np.ones(array.size, dtype=np.bool_)  # noqa: PLR0124
    codes = np.full(array.size, -1, dtype=np.int64)
    known, codes[here] = unique_inverse(array[here])
    return known.tolist(), codes


def unique_inverse(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Do what ``np.unique`` with the inverse does, without sorting every row when few values repeat."""
    known = np.unique(array[:10_000])
    if array.size > 10_000:
        nearest = np.minimum(np.searchsorted(known, array), known.size - 1)
        known = np.union1d(known, array[known[nearest] != array])
    return known, np.searchsorted(known, array)


def plain_value(value: Any) -> Any:
    """Turn NumPy's scalars into Python's own, and every kind of missing value into None."""
    if value is None or type(value).__name__ == "NAType" or value != value:  # noqa: PLR0124
        return None
    return value.item() if isinstance(value, np.generic) else value


def _order(value: Any) -> tuple[int, float, str]:
    if value is None:
        return 3, 0, ""
    if isinstance(value, (int, float)):
        return 0, value, ""
    return (1, 0, value) if isinstance(value, str) else (2, 0, f"{type(value).__name__} {value}")


def default_names(n_columns: int) -> tuple[str, ...]:
    return tuple(f"sensitive_feature_{number}" for number in range(n_columns))


def read_columns(data: Any) -> dict[str, Any]:
    """Read any input as named columns of one length, each a NumPy vector or a table library's column."""
    if isinstance(data, Mapping):
        columns = _by_name((name, _read_vector(name, column)) for name, column in data.items())
    else:
        columns = _columns_of(data)
    lengths = {len(column) for column in columns.values()}
    if lengths <= {0}:
        raise ValueError("sensitive_features is empty; at least one column and one row are needed.")
    if len(lengths) > 1:
        told = ", ".join(f"{name!r}: {len(column)}" for name, column in columns.items())
        raise ValueError(f"The columns of sensitive_features must have equally many rows; they have {told}.")
    return columns


def _by_name(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, column in pairs:
        if str(name) in columns:
            raise ValueError(f"Two columns of sensitive_features are named {str(name)!r}; rename or drop one.")
        columns[str(name)] = column
    return columns


def _read_vector(name: Any, data: Any) -> Any:
    columns = list(_columns_of(data).values())
    if len(columns) > 1:
        raise ValueError(f"Column {str(name)!r} of the dict has {len(columns)} columns; give it one dimension.")
    return columns[0] if columns else ()


def _columns_of(data: Any) -> dict[str, Any]:
    try:
        data = nw.from_native(data, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ValueError("Two columns of sensitive_features are named alike; rename or drop one.") from None
    if isinstance(data, nw.LazyFrame):
        raise TypeError("sensitive_features is a lazy table; collect its sensitive columns first (.collect()).")
    if isinstance(data, nw.DataFrame):
        return _by_name((series.name, series) for series in data.iter_columns())
    if isinstance(data, nw.Series):
        return {default_names(1)[0] if data.name in (None, "") else str(data.name): data}
    if hasattr(data, "factorize") or hasattr(data, "dictionary_encode"):
        return {default_names(1)[0]: data}
    array = _read_array(data)
    if array.ndim not in (1, 2):
        raise ValueError(f"sensitive_features must have one or two dimensions; it has {array.ndim}.")
    columns = array.T if array.ndim == 2 else [array]
    return dict(zip(default_names(len(columns)), columns, strict=True))


def _read_array(data: Any) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        array = data.data.astype(object)
        array[np.ma.getmaskarray(data)] = None
        return array
    if not isinstance(data, (list, tuple)):
        if not hasattr(data, "__array__"):
            kind = type(data).__name__
            raise TypeError(f"sensitive_features must be a table, an array, a list or a dict of columns; got {kind}.")
        return np.asarray(data)
    # A list keeps each value's own type, which NumPy would not: to it [1, "a"] is text.
    widths = {len(row) if isinstance(row, (list, tuple, np.ndarray)) else -1 for row in data}
    if len(widths) > 1:
        raise ValueError(f"The rows of sensitive_features have {len(widths)} different lengths; give all the same.")
    if widths <= {-1}:
        return np.fromiter(data, dtype=object, count=len(data))
    if any(isinstance(value, (list, tuple, np.ndarray)) for value in data[0]):
        raise ValueError("sensitive_features must have one or two dimensions; its rows hold lists.")
    array = np.empty((len(data), widths.pop()), dtype=object)
    for j in range(array.shape[1]):
        array[:, j] = np.fromiter((row[j] for row in data), dtype=object, count=len(data))
    return array
