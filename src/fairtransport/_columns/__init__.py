"""Columns of any table library, factorised: distinct values and the code of each row.

Error messages contain names of columns and counts, never a value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Ints
from fairtransport._columns.compilation import FEW_ROWS, cached_njit

Coded: TypeAlias = tuple[list[Any], NDArray[Any]]
"""Distinct values, and each row's index among them, in the smallest unsigned type that can represent their number."""

_MAX_CODED = 4096  # distinct values of `code_words`; its hash table has twice as many slots
_MAX_CROSSED = 1 << 20  # combinations of two columns for which a lookup table is used
_TABLE_BITS = 13
_GOLDEN, _ONE, _HALF, _REST = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 1, 32, 64 - _TABLE_BITS))


def short_type(n_codes: int) -> np.dtype[Any]:
    """Return the smallest unsigned type for codes up to ``n_codes``, which denotes no group."""
    return np.min_scalar_type(n_codes)


def say_columns(columns: Collection[str]) -> str:
    """Return the names of columns for an error message: ``"columns 'race', 'sex'"``."""
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(map(repr, columns))}"


def check_number(n_groups: int, columns: Collection[str], max_groups: float, *, of: str = "sensitive_features") -> None:
    """Raise ValueError when there are more than ``max_groups`` groups, or strata."""
    if n_groups > max_groups:
        noun = "strata" if of == "strata" else "groups"
        raise ValueError(
            f"{of} has {n_groups} {noun} in {say_columns(columns)}; max_{noun} is {max_groups}. If a column is an "
            f"identifier or continuous, drop it or cut it into ranges; if not, raise max_{noun}=."
        )


def code_column(column: Any, name: str, max_groups: float, *, of: str = "sensitive_features") -> Coded:
    """Return the sorted distinct values of a column (missing is None and last) and the code of each row."""
    try:
        raw, codes = _factorize(nw.to_native(column, pass_through=True))
        plain = [*map(plain_value, raw), None]  # indexed by code -1, missing
        used = [True] * len(raw) + [False]
        if codes.dtype.kind != "u":  # codes of other libraries, which need not all occur
            used = np.roll(np.bincount(codes + 1, minlength=len(plain)), -1).tolist()
        values = {value for value, size in zip(plain, used, strict=True) if size}
    except TypeError:
        raise TypeError(f"Column {name!r} contains lists or other values that cannot be compared as groups.") from None
    check_number(len(values), [name], max_groups, of=of)
    ordered = sorted(values, key=_sort_key)
    index = {value: i for i, value in enumerate(ordered)}
    table = np.array([index.get(value, 0) for value in plain], dtype=short_type(len(ordered)))
    if codes.dtype != np.uint16 or codes.size <= FEW_ROWS:
        return ordered, table.take(codes)
    recoded = np.empty(codes.size, table.dtype)  # short integers, which NumPy would convert to long ones first
    recode(codes, table, recoded)
    return ordered, recoded


def distinct_values(column: Any, name: str) -> Coded:
    """Return the distinct values of a column, in any order, and the code of each row; -1 or None is missing."""
    try:
        raw, codes = _factorize(nw.to_native(column, pass_through=True))
        return [*map(plain_value, raw)], codes.astype(np.int64, copy=False)
    except (TypeError, ValueError, NotImplementedError):
        raise TypeError(f"Column {name!r} contains lists or other values that cannot be compared.") from None


def _factorize(column: Any) -> Coded:
    """Return the distinct values, in any order, and the code of each row (-1: missing), with the column's library."""
    if hasattr(column, "factorize"):  # pandas and compatible libraries
        codes, values = column.factorize()
        return values.tolist(), np.asarray(codes, dtype=np.int64)
    if hasattr(column, "dictionary_encode"):  # pyarrow
        encoded = column.dictionary_encode()
        chunks = encoded.unify_dictionaries().chunks if hasattr(encoded, "chunks") else [encoded]
        if not chunks:
            return [], np.zeros(0, dtype=np.int32)
        parts = [_arrow_codes(chunk.indices) for chunk in chunks]
        return chunks[0].dictionary.to_pylist(), parts[0] if len(parts) == 1 else np.concatenate(parts)
    if isinstance(column, np.ndarray):
        return _factorize_array(column)
    # Of polars, which evaluates methods of a series as expressions of its name: "^h$" would be a pattern.
    return _factorize_series(nw.from_native(column, series_only=True).alias("values"))


def _arrow_codes(indices: Any) -> NDArray[np.int32]:
    """Return indices as an array, with -1 for missing values."""
    if indices.null_count:
        return indices.cast("int32").fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(np.from_dlpack(indices.cast("int32")), dtype=np.int32)  # to_numpy would import pandas


def _factorize_series(series: nw.Series[Any]) -> Coded:
    if series.dtype in {nw.String, nw.Categorical, nw.Enum}:
        if series.dtype == nw.String:
            series = series.cast(nw.Enum(series.drop_nulls().unique().to_list()))
        firsts, codes = _first_rows(series.to_native().to_physical().cast(int).fill_null(-1).to_numpy())
        return series[firsts.tolist()].to_list(), codes
    if (series.dtype.is_numeric() or series.dtype == nw.Boolean) and not series.is_null().any():
        return _factorize_array(series.to_numpy())
    if isinstance(series.dtype, (nw.List, nw.Array, nw.Struct)):
        raise TypeError("lists cannot be compared")
    if isinstance(series.dtype, nw.Datetime):  # values must have the resolution of Python's
        series = series.cast(nw.Datetime("us", series.dtype.time_zone))
    elif isinstance(series.dtype, nw.Duration):
        series = series.cast(nw.Duration("us"))
    values = series.drop_nulls().unique().to_list()
    if not values:
        return [], np.full(len(series), -1, dtype=np.int32)
    indices = series.replace_strict(values, range(len(values)), return_dtype=nw.Int32)
    return values, indices.fill_null(-1).to_numpy()


def _factorize_array(array: NDArray[Any]) -> Coded:
    kind = array.dtype.kind
    if kind in "mM":
        array = array.astype(f"{kind}8[us]")  # the resolution of Python's datetime
    if kind not in "biufmMUS" or (kind in "US" and array.size <= FEW_ROWS):
        seen: defaultdict[Any, int] = defaultdict(count().__next__)
        codes = np.fromiter(map(seen.__getitem__, array.tolist()), dtype=np.int64, count=array.size)
        return list(seen), codes
    firsts, codes = _first_rows(array)
    return array[firsts].tolist(), codes


def _first_rows(array: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """Return the index of one row of each distinct value, and the code of each row."""
    if array.size > FEW_ROWS:
        words, codes = _words(array), np.empty(array.size, dtype=np.uint16)
        firsts = code_words(words[:, 0], codes) if words.shape[1] == 1 else code_rows(words, codes)
        if firsts.size <= _MAX_CODED:
            return firsts, codes
    _, firsts, long_codes = np.unique(array, return_index=True, return_inverse=True)
    return firsts, long_codes


def _words(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of a vector as one row of unsigned integers for each entry."""
    size = array.dtype.itemsize
    width = next((width for width in (8, 4, 2) if size % width == 0), 1)
    if size == 0:  # empty text
        return np.zeros((array.size, 1), dtype=np.uint8)
    return np.ascontiguousarray(array).view(f"u{width}").reshape(array.size, size // width)


@cached_njit(nogil=True, error_model="numpy")
def code_words(words: NDArray[Any], codes: NDArray[np.uint16]) -> Ints:
    """Code unsigned integers in the order of their first occurrence, with a hash table, into ``codes``.

    Returns the index of the first occurrence of each code. The pass stops when there are more than 4096.
    """
    firsts = np.empty(_MAX_CODED + 1, np.int64)
    keys, table = np.zeros(1 << _TABLE_BITS, words.dtype), np.zeros(1 << _TABLE_BITS, np.uint16)  # codes from 1 on
    n_codes, last_slot = 0, np.uint64(table.shape[0] - 1)
    for i in range(words.shape[0]):
        slot = (np.uint64(words[i]) * _GOLDEN) >> _REST
        while table[slot] == 0 or keys[slot] != words[i]:
            if table[slot] == 0:
                firsts[n_codes] = i
                n_codes += 1
                if n_codes > _MAX_CODED:
                    return firsts
                keys[slot], table[slot] = words[i], n_codes
            else:
                slot = (slot + _ONE) & last_slot
        codes[i] = table[slot] - 1
    return firsts[:n_codes]


@cached_njit(nogil=True)
def recode(codes: NDArray[np.uint16], table: NDArray[Any], recoded: NDArray[Any]) -> None:
    """Write ``table[codes]``."""
    for i in range(codes.shape[0]):
        recoded[i] = table[codes[i]]


@cached_njit(nogil=True, error_model="numpy")
def code_rows(words: NDArray[Any], codes: NDArray[np.uint16]) -> Ints:
    """Code the rows of a matrix, as `code_words` does for a vector."""
    firsts = np.empty(_MAX_CODED + 1, np.int64)
    table = np.zeros(1 << _TABLE_BITS, np.uint16)
    n_codes, last_slot = 0, np.uint64(table.shape[0] - 1)
    for i in range(words.shape[0]):
        slot = np.uint64(0)
        for j in range(words.shape[1]):
            slot = (slot ^ (slot >> _HALF) ^ np.uint64(words[i, j])) * _GOLDEN
        slot >>= _REST
        same = False
        while not same:
            if table[slot] == 0:
                firsts[n_codes] = i
                n_codes += 1
                if n_codes > _MAX_CODED:
                    return firsts
                table[slot] = n_codes
            same, first = True, firsts[table[slot] - 1]
            for j in range(words.shape[1]):
                same &= words[i, j] == words[first, j]
            if not same:
                slot = (slot + _ONE) & last_slot
        codes[i] = table[slot] - 1
    return firsts[:n_codes]


def cross_codes(codes: NDArray[Any], other: NDArray[Any], n_other: int) -> tuple[Ints, NDArray[Any]]:
    """Return the pairs of codes that occur, each as ``code * n_other + other``, and the index of each row's pair."""
    n_pairs = (int(codes.max()) + 1) * n_other
    pairs = codes.astype(np.int64 if n_pairs > _MAX_CROSSED else np.int32) * n_other + other
    if n_pairs > _MAX_CROSSED:
        present, indices = np.unique(pairs, return_inverse=True)
        return present, indices.astype(short_type(present.size))
    present = np.flatnonzero(np.bincount(pairs))
    table = np.zeros(n_pairs, dtype=short_type(present.size))
    table[present] = np.arange(present.size)
    return present, table.take(pairs)


def plain_value(value: Any) -> Any:
    """Return a NumPy scalar as a Python scalar, and any missing value as None."""
    if value is None or type(value).__name__ == "NAType" or value != value:  # noqa: PLR0124
        return None
    return value.item() if isinstance(value, np.generic) else value


def _sort_key(value: Any) -> tuple[int, float, str]:
    if value is None:
        return 3, 0, ""
    if isinstance(value, (int, float)):
        return 0, value, ""
    return (1, 0, value) if isinstance(value, str) else (2, 0, f"{type(value).__name__} {value}")


def default_names(n_columns: int, of: str = "sensitive_features") -> tuple[str, ...]:
    """Return the names of columns that have none: ``"sensitive_feature_0"`` or ``"stratum_0"``."""
    noun = "stratum" if of == "strata" else of.removesuffix("s")
    return tuple(f"{noun}_{number}" for number in range(n_columns))


def read_columns(data: Any, of: str = "sensitive_features") -> dict[str, Any]:
    """Return any input as named columns of equal length, each a NumPy vector or a column of a table library."""
    if isinstance(data, Mapping):
        columns = by_name(((name, _read_vector(name, column, of)) for name, column in data.items()), of=of)
    else:
        columns = _columns_of(data, of)
    lengths = {len(column) for column in columns.values()}
    if lengths <= {0}:
        raise ValueError(f"{of} is empty; at least one column and one row are needed.")
    if len(lengths) > 1:
        sizes = ", ".join(f"{name!r}: {len(column)}" for name, column in columns.items())
        raise ValueError(f"The columns of {of} must have the same number of rows; they have {sizes}.")
    return columns


def by_name(pairs: Iterable[tuple[Any, Any]], *, of: str = "sensitive_features") -> dict[str, Any]:
    """Return columns by their names as text; raise ValueError where two have the same."""
    columns: dict[str, Any] = {}
    for name, column in pairs:
        if str(name) in columns:
            raise ValueError(f"Two columns of {of} are named {str(name)!r}; rename or drop one.")
        columns[str(name)] = column
    return columns


def _read_vector(name: Any, data: Any, of: str) -> Any:
    columns = list(_columns_of(data, of).values())
    if len(columns) > 1:
        raise ValueError(f"Column {str(name)!r} of the dict has {len(columns)} columns; give it one dimension.")
    return columns[0] if columns else ()


def _columns_of(data: Any, of: str) -> dict[str, Any]:
    try:
        data = nw.from_native(data, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ValueError(f"Two columns of {of} have the same name; rename or drop one.") from None
    if isinstance(data, nw.LazyFrame):
        raise TypeError(f"{of} is a lazy table; collect its columns first (.collect()).")
    if isinstance(data, nw.DataFrame):
        return by_name(((series.name, series) for series in data.iter_columns()), of=of)
    if isinstance(data, nw.Series):
        return {default_names(1, of)[0] if data.name in (None, "") else str(data.name): data}
    if hasattr(data, "factorize") or hasattr(data, "dictionary_encode"):
        return {default_names(1, of)[0]: data}
    array = _read_array(data, of)
    if array.ndim not in (1, 2):
        raise ValueError(f"{of} must have one or two dimensions; it has {array.ndim}.")
    columns = array.T if array.ndim == 2 else [array]
    return dict(zip(default_names(len(columns), of), columns, strict=True))


def _read_array(data: Any, of: str) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        array = data.data.astype(object)
        array[np.ma.getmaskarray(data)] = None
        return array
    if not isinstance(data, (list, tuple)):
        if not hasattr(data, "__array__"):
            kind = type(data).__name__
            if isinstance(data, str):
                raise TypeError(f'{of} must be the column itself, not its name: table["race"], not "race".')
            raise TypeError(f"{of} must be a table, an array, a list or a dict of columns; got {kind}.")
        return np.asarray(data)
    # Keep the type of each value of a list: NumPy would convert [1, "a"] to text.
    widths = {len(row) if isinstance(row, (list, tuple, np.ndarray)) else -1 for row in data}
    if len(widths) > 1:
        raise ValueError(f"The rows of {of} have {len(widths)} different lengths; they must be equal.")
    if widths <= {-1}:
        return np.fromiter(data, dtype=object, count=len(data))
    if any(isinstance(value, (list, tuple, np.ndarray)) for value in data[0]):
        raise ValueError(f"{of} must have one or two dimensions; its rows contain lists.")
    array = np.empty((len(data), widths.pop()), dtype=object)
    for j in range(array.shape[1]):
        array[:, j] = np.fromiter((row[j] for row in data), dtype=object, count=len(data))
    return array
