"""Parsing of raw cells as text, numbers and dates.

Text is stripped; ``?``, ``NA``, ``null`` and similar texts are missing values. No error message contains a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._columns import distinct_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

__all__ = [
    "DATE_PATTERNS",
    "MISSING",
    "date_parser",
    "encode_text",
    "has_date_type",
    "has_leading_zeros",
    "has_numeric_type",
    "is_nested",
    "normalize_text",
    "number_parser",
    "parse_dates",
    "parse_numbers",
    "read_table",
    "text_codes",
]

#: Texts that mean a missing value, in upper or lower case.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none", "nat", "<na>", "-"})
#: Formats of dates; "" is ISO 8601. Where several fit, the first is used.
DATE_PATTERNS = ("", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_LEADING_ZERO = re.compile(r"[+-]?0\d")  # such as 01234
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_PER_DAY = 86_400.0


def read_table(table: Any) -> dict[str, Any]:
    """Return the columns of a table of any library, a dict of columns, or a matrix, by name."""
    if isinstance(table, Mapping):
        columns = _by_name((name, _vector(column)) for name, column in table.items())
    else:
        try:
            frame = nw.from_native(table, pass_through=True)
        except nw.exceptions.DuplicateError:
            raise ValueError("Two columns of the table have the same name; rename or drop one.") from None
        if isinstance(frame, nw.LazyFrame):
            raise TypeError("The table is lazy; collect it first (.collect()).")
        if isinstance(frame, nw.DataFrame):
            columns = _by_name((series.name, series.to_native()) for series in frame.iter_columns())
        else:
            columns = _columns_of_matrix(table)
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"The columns of the table have {len(lengths)} different lengths; they must have the same.")
    return columns


def _by_name(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, column in pairs:
        if str(name) in columns:
            raise ValueError(f"Two columns of the table are named {str(name)!r}; rename or drop one.")
        columns[str(name)] = column
    return columns


def _columns_of_matrix(table: Any) -> dict[str, Any]:
    matrix = np.asarray(table)
    if matrix.ndim != 2:
        raise ValueError(f"A table has two dimensions; this has {matrix.ndim}. Name its columns, or reshape it.")
    return {f"x{index}": matrix[:, index] for index in range(matrix.shape[1])}


def _vector(column: Any) -> Any:
    if isinstance(column, (list, tuple)):
        return np.fromiter(column, dtype=object, count=len(column))
    return column


def _series(column: Any) -> nw.Series[Any] | None:
    """Return the column of a table library, without its name, which polars could take for a pattern."""
    if isinstance(column, np.ndarray):  # most columns of small tables; to ask narwhals takes longer than to read them
        return None
    series = nw.from_native(column, allow_series=True, series_only=True, pass_through=True)
    return series.alias("values") if isinstance(series, nw.Series) else None


def has_numeric_type(column: Any) -> bool:
    """Return whether the type of a column is numeric."""
    series = _series(column)
    if series is None:
        return np.asarray(column).dtype.kind in "iuf"
    return series.dtype.is_numeric()


def has_date_type(column: Any) -> bool:
    """Return whether the type of a column is a date or a datetime."""
    series = _series(column)
    if series is None:
        return np.asarray(column).dtype.kind == "M"
    return series.dtype in {nw.Date, nw.Datetime}


def is_nested(column: Any) -> bool:
    """Return whether a column contains lists or records."""
    series = _series(column)
    return series is not None and series.dtype.is_nested()


def normalize_text(value: Any) -> str | None:
    """Return a cell as text, None when missing; ``1`` and ``1.0`` are the same, as are ``True`` and ``" true"``."""
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, float):
        return None if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    text = str(value).strip()
    folded = text.lower()
    if folded in MISSING:
        return None
    return folded if folded in {"true", "false"} else text


def encode_text(column: Any, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct texts of a column in alphabetical order, and the index of each row's text; -1 is missing."""
    values, codes = distinct_values(column, name)
    words = [*map(normalize_text, values)]
    known = sorted({word for word in words if word is not None})
    return known, text_codes(words, known, codes)


def text_codes(words: list[str | None], known: list[str], codes: NDArray[np.int64], *, unknown: int = -1) -> Any:
    """Return the index of each row's text in ``known``; -1 where it is missing, ``unknown`` where it is not there."""
    indices = {word: index for index, word in enumerate(known)}
    table = [-1 if word is None else indices.get(word, unknown) for word in words]
    return np.array([*table, -1], dtype=np.int64)[codes]


def number_parser(decimal: str) -> Callable[[Any], float | None]:
    """Return a function from a cell to a number: NaN when it is missing or infinite, None when it is not a number."""

    def read(value: Any) -> float | None:
        if isinstance(value, (bool, int, float)):
            try:
                return float(value) if math.isfinite(value) else math.nan
            except OverflowError:  # an integer beyond the largest float
                return math.nan
        word = normalize_text(value)
        if word is None:
            return math.nan
        try:
            number = float(word.replace(",", ".") if decimal == "," and "." not in word else word)
        except ValueError:
            return None
        if "_" in word:  # float() accepts 1_000
            return None
        return number if math.isfinite(number) else math.nan

    return read


def date_parser(pattern: str) -> Callable[[Any], float | None]:
    """Return a function from a cell to days since 1970: NaN when missing, None when it does not fit the format."""

    def read(value: Any) -> float | None:
        if isinstance(value, date):
            when = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
            return _days(when)
        word = normalize_text(value)
        if word is None:
            return math.nan
        if not pattern and not _ISO.match(word):
            return None
        try:
            return _days(datetime.strptime(word, pattern) if pattern else datetime.fromisoformat(word))  # noqa: DTZ007
        except ValueError:
            return None

    return read


def _days(when: datetime) -> float:
    in_utc = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (in_utc - _EPOCH).total_seconds() / _SECONDS_PER_DAY


def has_leading_zeros(values: list[Any]) -> bool:
    """Return whether a text has leading zeros, as codes have and numbers have not."""
    return any(isinstance(value, str) and _LEADING_ZERO.match(value.strip()) for value in values)


def parse_numbers(column: Any, name: str, decimal: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column as numbers, NaN where missing, and which cells are not numbers."""
    if has_numeric_type(column):
        series = _series(column)
        floats = np.asarray(column if series is None else series.cast(nw.Float64()).to_numpy(), dtype=np.float64)
        return np.where(np.isfinite(floats), floats, np.nan), np.zeros(floats.size, dtype=bool)
    return _parse_distinct(column, name, number_parser(decimal))


def parse_dates(column: Any, name: str, pattern: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column as days since 1970, NaN where missing, and which cells are not dates."""
    if not has_date_type(column):
        return _parse_distinct(column, name, date_parser(pattern))
    series = _series(column)
    if series is None:
        raw = np.asarray(column).astype("M8[us]")
        days = np.where(np.isnat(raw), np.nan, raw.astype(np.int64) / (_SECONDS_PER_DAY * 1e6))
        return days, np.zeros(days.size, dtype=bool)
    stamps = series.dt.timestamp("ms").cast(nw.Float64())
    days = np.asarray(stamps.to_numpy(), dtype=np.float64) / (_SECONDS_PER_DAY * 1e3)
    return days, np.zeros(days.size, dtype=bool)


def _parse_distinct(
    column: Any, name: str, read: Callable[[Any], float | None]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, codes = distinct_values(column, name)
    parsed = [*map(read, values)]
    unreadable = np.array([value is None for value in parsed] + [False])
    table = np.array([math.nan if value is None else value for value in parsed] + [math.nan])
    return table[codes], unreadable[codes]
