"""Raw columns of tables -> words, numbers and days, however a file wrote them.

Text is cut at its ends; ``?``, ``NA``, ``null`` and their like are missing values. No error text holds a value.
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
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "DATE_PATTERNS",
    "code_of",
    "day_reader",
    "days_of",
    "is_nested",
    "looks_coded",
    "number_reader",
    "numbers_of",
    "read_table",
    "says_numbers",
    "says_times",
    "word_of",
    "words_of",
]

#: Texts that mean a missing value, whatever their capital letters.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none", "nat", "<na>", "-"})
#: How dates are written; "" is ISO 8601. Where two fit, the first is taken.
DATE_PATTERNS = ("", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_CODE = re.compile(r"[+-]?0\d")  # 01234 is a code, not a number
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = 86_400.0


def read_table(table: Any) -> dict[str, Any]:
    """Return a table of any library, a dict of columns, or a matrix, as columns by name."""
    if isinstance(table, Mapping):
        columns = {str(name): _vector(column) for name, column in table.items()}
    else:
        try:
            frame = nw.from_native(table, pass_through=True)
        except nw.exceptions.DuplicateError:
            raise ValueError("Two columns of the table are named alike; rename or drop one.") from None
        if isinstance(frame, nw.LazyFrame):
            raise TypeError("The table is lazy; collect it first (.collect()).")
        if isinstance(frame, nw.DataFrame):
            columns = {str(series.name): series.to_native() for series in frame.iter_columns()}
        else:
            columns = _columns_of_matrix(table)
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"The columns of the table have {len(lengths)} different lengths; give all the same.")
    return columns


def _columns_of_matrix(table: Any) -> dict[str, Any]:
    matrix = np.asarray(table)
    if matrix.ndim != 2:
        raise ValueError(f"A table has two dimensions; this has {matrix.ndim}. Name its columns, or reshape it.")
    return {f"x{place}": matrix[:, place] for place in range(matrix.shape[1])}


def _vector(column: Any) -> Any:
    if isinstance(column, (list, tuple)):
        return np.fromiter(column, dtype=object, count=len(column))
    return column


def _series(column: Any) -> nw.Series[Any] | None:
    found = nw.from_native(column, allow_series=True, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


def says_numbers(column: Any) -> bool:
    """Whether the column's type is one of numbers."""
    series = _series(column)
    if series is None:
        return np.asarray(column).dtype.kind in "iuf"
    return series.dtype.is_numeric()


def says_times(column: Any) -> bool:
    """Whether the column's type is one of dates."""
    series = _series(column)
    if series is None:
        return np.asarray(column).dtype.kind == "M"
    return series.dtype in {nw.Date, nw.Datetime}


def is_nested(column: Any) -> bool:
    """Whether the column holds lists or records."""
    series = _series(column)
    return series is not None and series.dtype.is_nested()


def word_of(value: Any) -> str | None:
    """Return a cell as text: ``1`` and ``1.0`` are alike, so are ``True`` and ``" true"``; None when missing."""
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, float):
        return None if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    text = str(value).strip()
    folded = text.lower()
    if folded in MISSING:
        return None
    return folded if folded in {"true", "false"} else text


def words_of(column: Any, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct words of a column, in the order of the text, and each row's place; -1 is missing."""
    values, codes = distinct_values(column, name)
    words = [*map(word_of, values)]
    known = sorted({word for word in words if word is not None})
    return known, code_of(words, known, codes)


def code_of(words: list[str | None], known: list[str], codes: NDArray[np.int64], *, unknown: int = -1) -> Any:
    """Return each row's place among known words; -1 where it is missing, ``unknown`` where it is not known."""
    places = {word: place for place, word in enumerate(known)}
    table = [-1 if word is None else places.get(word, unknown) for word in words]
    return np.array([*table, -1], dtype=np.int64)[codes]


def number_reader(decimal: str) -> Callable[[Any], float | None]:
    """Return what reads a cell as a finite number: NaN when it is missing or infinite, None when it is no number."""

    def read(value: Any) -> float | None:
        if isinstance(value, (bool, int, float)):
            return float(value) if math.isfinite(value) else math.nan
        word = word_of(value)
        if word is None:
            return math.nan
        try:
            number = float(word.replace(",", ".") if decimal == "," and "." not in word else word)
        except ValueError:
            return None
        if "_" in word:  # Python's own way to write 1_000
            return None
        return number if math.isfinite(number) else math.nan

    return read


def day_reader(pattern: str) -> Callable[[Any], float | None]:
    """Return what reads a cell as days since 1970: NaN when it is missing, None when it is no date of the pattern."""

    def read(value: Any) -> float | None:
        if isinstance(value, date):
            when = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
            return _days(when)
        word = word_of(value)
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
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (aware - _EPOCH).total_seconds() / _SECONDS


def looks_coded(values: list[Any]) -> bool:
    """Whether text has leading zeros: codes, not numbers."""
    return any(isinstance(value, str) and _CODE.match(value.strip()) for value in values)


def numbers_of(column: Any, name: str, decimal: str) -> tuple[NDArray[np.float64], int]:
    """Return a column as numbers, NaN where there is none, and how many cells held something else."""
    if says_numbers(column):
        series = _series(column)
        floats = np.asarray(column if series is None else series.cast(nw.Float64()).to_numpy(), dtype=np.float64)
        return np.where(np.isfinite(floats), floats, np.nan), 0
    return _by_value(column, name, number_reader(decimal))


def days_of(column: Any, name: str, pattern: str) -> tuple[NDArray[np.float64], int]:
    """Return a column as days since 1970, NaN where there is none, and how many cells held something else."""
    if not says_times(column):
        return _by_value(column, name, day_reader(pattern))
    series = _series(column)
    if series is None:
        raw = np.asarray(column).astype("M8[us]")
        return np.where(np.isnat(raw), np.nan, raw.astype(np.int64) / (_SECONDS * 1e6)), 0
    stamps = series.dt.timestamp("ms").cast(nw.Float64())
    return np.asarray(stamps.to_numpy(), dtype=np.float64) / (_SECONDS * 1e3), 0


def _by_value(column: Any, name: str, read: Callable[[Any], float | None]) -> tuple[NDArray[np.float64], int]:
    values, codes = distinct_values(column, name)
    read_values = [*map(read, values)]
    odd = np.array([one is None for one in read_values] + [False])
    table = np.array([math.nan if one is None else one for one in read_values] + [math.nan])
    return table[codes], int(np.count_nonzero(odd[codes]))
