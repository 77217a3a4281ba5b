"""The encoding of one raw column: a number, the parts of a date, or indicators of categories."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import by_name, distinct_values
from fairtransport.groups import Groups

# Parsing of raw cells as text, numbers and dates.

#: Texts that mean a missing value, in upper or lower case.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none", "nat", "<na>", "-"})
#: Formats of dates; "" is ISO 8601. Where several fit, the first is used.
DATE_PATTERNS = ("", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_BOOLEANS = {"0": "false", "0.0": "false", "1": "true", "1.0": "true"}
_KNOWN_BOOLEANS = frozenset({"false", "true", "missing"})
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_LEADING_ZERO = re.compile(r"[+-]?0\d")  # such as 01234
_PANDAS_INDEX = re.compile(r"(?:__index_level_\d+__|Unnamed: 0)?")  # names, or none, of the index in files of pandas
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_PER_DAY = 86_400.0


def read_table(table: Any) -> dict[str, Any]:
    """Return the columns of a table of any library, a dict of columns, or a matrix, by name."""
    pairs: list[tuple[Any, Any]]
    if isinstance(table, Mapping):
        pairs = [
            (name, np.fromiter(one, object, len(one)) if isinstance(one, (list, tuple)) else one)
            for name, one in table.items()
        ]
    else:
        try:
            frame = nw.from_native(table, pass_through=True)
        except nw.exceptions.DuplicateError:
            raise ValueError("Two columns of the table have the same name; rename or drop one.") from None
        if isinstance(frame, nw.LazyFrame):
            raise TypeError("The table is lazy; collect it first (.collect()).")
        if isinstance(frame, nw.DataFrame):
            pairs = [(series.name, series.to_native()) for series in frame.iter_columns()]
        else:
            matrix = np.asarray(table)
            if matrix.ndim != 2:
                raise ValueError(
                    f"A table has two dimensions; this has {matrix.ndim}. Name its columns, or reshape it."
                )
            pairs = [(f"x{index}", column) for index, column in enumerate(matrix.T)]
    columns = by_name(pairs, of="the table")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"The columns of the table have {len(lengths)} different lengths; they must have the same.")
    return columns


def _series(column: Any) -> nw.Series[Any] | None:
    """Return the column of a table library, without its name, which polars could take for a pattern."""
    if isinstance(column, np.ndarray):  # most columns of small tables; to ask narwhals takes longer than to read them
        return None
    series = nw.from_native(column, allow_series=True, series_only=True, pass_through=True)
    return series.alias("values") if isinstance(series, nw.Series) else None


def has_numeric_type(column: Any) -> bool:
    """Return whether the type of a column is numeric."""
    series = _series(column)
    return np.asarray(column).dtype.kind in "iuf" if series is None else series.dtype.is_numeric()


def has_date_type(column: Any) -> bool:
    """Return whether the type of a column is a date or a datetime."""
    series = _series(column)
    return np.asarray(column).dtype.kind == "M" if series is None else series.dtype in {nw.Date, nw.Datetime}


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


def encode_text(column: Any, name: str) -> tuple[list[str], Ints]:
    """Return the distinct texts of a column in alphabetical order, and the index of each row's text; -1 is missing."""
    values, codes = distinct_values(column, name)
    words = [*map(normalize_text, values)]
    known = sorted({word for word in words if word is not None})
    return known, text_codes(words, known, codes)


def known_texts(words: Sequence[Any], known: Iterable[Any]) -> list[Any]:
    """Return texts as a model knows them: where it knows false and true only, 0 and 1 are these."""
    return [_BOOLEANS.get(word, word) for word in words] if {*known} <= _KNOWN_BOOLEANS else [*words]


def text_codes(words: list[str | None], known: list[str], codes: Ints, *, unknown: int = -1) -> Any:
    """Return the index of each row's text in ``known``; -1 where it is missing, ``unknown`` where it is not there."""
    indices = {word: index for index, word in enumerate(known)}
    table = [-1 if word is None else indices.get(word, unknown) for word in known_texts(words, known)]
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
            text = str(value)  # float() knows which characters are spaces
            number = float(text.replace(",", ".") if decimal == "," and "." not in text else text)
        except ValueError:
            return None
        if "_" in word or not word.isascii():  # float() accepts 1_000, and digits of other scripts
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


def parse_numbers(column: Any, name: str, decimal: str) -> tuple[Floats, Bools]:
    """Return a column as numbers, NaN where missing, and which cells are not numbers."""
    if has_numeric_type(column):
        series = _series(column)
        floats = np.asarray(column if series is None else series.cast(nw.Float64()).to_numpy(), dtype=np.float64)
    else:
        found = _plain_numbers(column)
        if found is None:
            return _parse_distinct(column, name, number_parser(decimal))
        floats = found
    return np.where(np.isfinite(floats), floats, np.nan), np.zeros(floats.size, dtype=bool)


def _plain_numbers(column: Any) -> Floats | None:
    """Return cells that all are numbers, or texts of numbers, at once; None if one of them needs `number_parser`."""
    if not isinstance(column, np.ndarray) or column.dtype != object:
        return None
    cells = column.tolist()
    types = {*map(type, cells)}
    text = "".join(cells) if types == {str} else ""
    if "_" in text or not text.isascii() or not (text or types <= {int, float, bool}):
        return None
    try:
        return np.array([*map(float, cells)])
    except (ValueError, OverflowError):
        return None


def parse_dates(column: Any, name: str, pattern: str) -> tuple[Floats, Bools]:
    """Return a column as days since 1970, NaN where missing, and which cells are not dates."""
    if not has_date_type(column):
        return _parse_distinct(column, name, date_parser(pattern))
    series = _series(column)
    if series is None:
        raw = np.asarray(column).astype("M8[us]")
        days = np.where(np.isnat(raw), np.nan, raw.astype(np.int64) / (_SECONDS_PER_DAY * 1e6))
    else:
        stamps = series.dt.timestamp("ms").cast(nw.Float64())
        days = np.asarray(stamps.to_numpy(), dtype=np.float64) / (_SECONDS_PER_DAY * 1e3)
    return days, np.zeros(days.size, dtype=bool)


def _parse_distinct(column: Any, name: str, read: Callable[[Any], float | None]) -> tuple[Floats, Bools]:
    values, codes = distinct_values(column, name)
    parsed = [*map(read, values)]
    unreadable = np.array([value is None for value in parsed] + [False])
    table = np.array([math.nan if value is None else value for value in parsed] + [math.nan])
    return table[codes], unreadable[codes]


#: Kinds of cells that are replaced. A plan keeps no text that few people have, so where rare categories share a column
#: it cannot tell one of them from a category that training did not see.
UNREADABLE, UNSEEN, RARE_OR_UNSEEN = "unreadable", "unseen category", "rare or unseen category"

_MIN_SHARE = 0.95  # of the present cells that must be readable; the others are treated as missing
_MIN_ROWS_OF_IDENTIFIER = 20
_MIN_ROWS_WITH_GAPS, _MAX_GAP = 100, 4  # row numbers of held-out rows may be missing: least rows, and largest mean gap
MAX_DEVIATIONS = 1e6  # from the mean; products stay finite
_DATE_PARTS = ("days", "month", "weekday", "hour")
_NUMBER = "number"  # the reading of a text column that is none of a date
_MOST_TEXTS = 1 << 17  # of a column that are counted one by one


class LeftOut(Exception):  # noqa: N818 - a result, not a failure
    """Raised with the reason why a column is not used."""


@dataclass(frozen=True)
class ColumnRules:
    """Rules for the encoding of columns; see the parameters of `TableEncoder`."""

    min_frequency: int = 5
    max_categories: int = 100
    decimal: str = "."


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """Encoding of one raw column as columns of numbers."""

    name: str
    kind: str
    parts: tuple[str, ...] = ()
    centre: Floats = field(default_factory=lambda: np.empty(0))
    scale: Floats = field(default_factory=lambda: np.empty(0))
    pattern: str = ""
    words: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False

    @property
    def outputs(self) -> list[str]:
        """Names of the encoded columns."""
        named = [f"{self.name} {part}".rstrip() for part in self.parts]
        named += [f"{self.name}={word}" for word in self.words]
        return [*named, *[f"{self.name} other"] * self.other, *[f"{self.name} missing"] * self.missing]

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.parts) + len(self.words) + self.other + self.missing

    def entries(self, column: Any, decimal: str) -> tuple[Floats, Ints, str, Bools]:
        """Return values and column indices of the entries of each row, and the kind and rows of replaced cells."""
        if self.kind == "words":
            return self._word_entries(column)
        floats, unreadable = (
            parse_numbers(column, self.name, decimal)
            if self.kind == "number"
            else parse_dates(column, self.name, self.pattern)
        )
        raw = _date_parts(floats, self.parts) if self.kind == "date" else np.repeat(floats[:, None], len(self.parts), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.clip(np.nan_to_num((raw - self.centre) / self.scale, nan=0.0), -MAX_DEVIATIONS, MAX_DEVIATIONS)
        if self.missing:
            values = np.column_stack((values, np.isnan(floats)))
        indices = np.broadcast_to(np.arange(self.width), (len(floats), self.width))
        return values, indices, UNREADABLE, unreadable

    def _word_entries(self, column: Any) -> tuple[Floats, Ints, str, Bools]:
        values, codes = distinct_values(column, self.name)
        n_words = len(self.words)
        unknown = n_words + 1
        indices = text_codes([*map(normalize_text, values)], list(self.words), codes, unknown=unknown)
        missing, new = indices == -1, indices == unknown
        indices = np.where(new | missing, n_words, indices)  # of "other", where there is one
        has_column = ~(new | missing) | self.other
        if self.missing:
            indices, has_column = np.where(missing, self.width - 1, indices), has_column | missing
        kind = RARE_OR_UNSEEN if self.other else UNSEEN
        return has_column.astype(np.float64)[:, None], np.where(has_column, indices, 0)[:, None], kind, new


@dataclass(frozen=True, eq=False)
class Reading:
    """Cells of a column read as numbers, or as dates in one format: what is needed of them, and can be merged."""

    unreadable: int
    known: int  # cells that are neither missing nor unreadable
    mean: Floats  # of the number, or of each part of a date
    spread: Floats
    lowest: float
    highest: float
    is_numbering: bool  # distinct integers, in each part of the table

    @classmethod
    def of(cls, raw: Floats, unreadable: Bools) -> Reading:
        """Return what some rows are, one column for each part."""
        present = raw[:, 0][np.isfinite(raw[:, 0])]
        if not present.size:
            return cls(int(unreadable.sum()), 0, np.zeros(raw.shape[1]), np.zeros(raw.shape[1]), 0.0, 0.0, True)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = np.nanmean(raw, axis=0), np.nanstd(raw, axis=0)
        ends = float(present.min()), float(present.max())
        return cls(int(unreadable.sum()), present.size, mean, spread, *ends, _are_distinct_integers(present))

    def merged(self, other: Reading) -> Reading:
        """Return the reading of the rows of both."""
        if not self.known or not other.known:
            one, more = (other, self) if not self.known else (self, other)
            return replace(one, unreadable=one.unreadable + more.unreadable)
        known = self.known + other.known
        share, shift = other.known / known, other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            variance = (1.0 - share) * (self.spread**2 + share * shift**2) + share * other.spread**2
        return Reading(
            self.unreadable + other.unreadable,
            known,
            self.mean + share * shift,
            np.sqrt(variance),
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.is_numbering and other.is_numbering,
        )


def _are_distinct_integers(present: Floats) -> bool:
    few = present[:1000]
    if (np.mod(few, 1) != 0).any() or np.unique(few).size < few.size:
        return False
    return bool((np.mod(present, 1) == 0).all() and np.unique(present).size == present.size)


@dataclass(frozen=True, eq=False)
class ColumnTally:
    """Summary of a raw column, or of its rows in a part of a table; summaries of parts can be merged."""

    name: str
    n_rows: int
    kind: str  # number, date, text or nested
    readings: Mapping[str, Reading]  # by "number", or the format of dates
    counts: Counter[str] = field(default_factory=Counter)  # of texts
    rare: tuple[int, int] = (0, 0)  # distinct texts that are no longer counted one by one, and their rows
    are_codes: bool = False  # booleans, or texts such as 01234, which are no numbers

    @property
    def n_present(self) -> int:
        """Number of cells that are not missing."""
        known = [reading.known + reading.unreadable for reading in self.readings.values()]
        return self.counts.total() + self.rare[1] if self.kind == "text" else max(known, default=0)

    def merged(self, other: ColumnTally) -> ColumnTally:
        """Return the tally of the rows of both; ValueError where a column has other types in one of them."""
        n_rows = self.n_rows + other.n_rows
        if not self.n_present or not other.n_present:
            return replace(self if self.n_present else other, n_rows=n_rows)
        if self.kind != other.kind:
            kinds = " and ".join(f"{one.kind}s in {where}" for one, where in ((self, "one part"), (other, "another")))
            raise ValueError(f"Column {self.name!r} contains {kinds} of the table.".replace("texts", "text"))
        readings = {}
        for key in {**self.readings, **other.readings}:
            pair = [one.readings.get(key) or _unread(one.n_present) for one in (self, other)]
            readings[key] = pair[0].merged(pair[1])
        counts, rare = self.counts + other.counts, (self.rare[0] + other.rare[0], self.rare[1] + other.rare[1])
        if len(counts) > _MOST_TEXTS:
            kept = sorted(counts, key=lambda word: (-counts[word], word))[: _MOST_TEXTS // 2]
            n_kept = sum(counts[word] for word in kept)
            rare = rare[0] + len(counts) - len(kept), rare[1] + counts.total() - n_kept
            counts = Counter({word: counts[word] for word in kept})
        return ColumnTally(self.name, n_rows, self.kind, readings, counts, rare, self.are_codes or other.are_codes)

    def plan(self, rules: ColumnRules, *, digits: int | None = None) -> tuple[ColumnPlan, int]:
        """Return the encoding of the column and the number of unreadable cells; raise `LeftOut` for a useless one.

        Means are rounded to some digits where the order in which parts were merged must not matter.
        """
        if self.kind == "nested":
            raise LeftOut("lists or records")
        if not self.n_present:
            raise LeftOut("no values")
        if _PANDAS_INDEX.fullmatch(self.name):
            raise LeftOut("in files of pandas, a column of this name is the index of the rows")
        if self.kind == "text":
            most = (1.0 - _MIN_SHARE) * self.n_present
            readable = [key for key, reading in self.readings.items() if reading.unreadable <= most]
            keys = DATE_PATTERNS if self.are_codes else (_NUMBER, *DATE_PATTERNS)
            key = next((key for key in keys if key in readable), None)
            if key is None:
                return self._words_plan(rules), 0
        else:
            key = _NUMBER if self.kind == "number" else ""
        return self._scaled_plan(key, rules, digits), self.readings[key].unreadable

    def is_number(self, rules: ColumnRules) -> bool:
        """Return whether the column contains numbers that are amounts, not codes."""
        try:
            return self.plan(rules)[0].kind == "number"
        except LeftOut:  # constant, for instance
            return self.kind == "number"

    def _scaled_plan(self, key: str, rules: ColumnRules, digits: int | None) -> ColumnPlan:
        reading, parts = self.readings[key], ("",) if key == _NUMBER else _DATE_PARTS
        if not reading.known:
            raise LeftOut("no values")
        if key == _NUMBER and self._is_row_number(reading):
            raise LeftOut("it numbers the rows")
        centre, scale = reading.mean, reading.spread
        if not (np.isfinite(centre).all() and np.isfinite(scale).all()):
            raise LeftOut("its numbers are too large")
        varies = scale > 1e-12 * np.maximum(np.abs(centre), 1e-300)
        missing = self.n_rows - reading.known >= rules.min_frequency
        if not varies.any() and not missing:
            raise LeftOut("one value only")
        kept, kind = tuple(itertools.compress(parts, varies)), "number" if key == _NUMBER else "date"
        centre, scale = centre[varies], scale[varies]
        if digits is not None:
            scale = np.array([float(f"{value:.{digits}g}") for value in scale])
            centre = np.round(centre / scale, digits) * scale
        return ColumnPlan(self.name, kind, kept, centre, scale, "" if key == _NUMBER else key, missing=missing)

    def _is_row_number(self, reading: Reading) -> bool:
        """Return whether a column has distinct integers in a range hardly larger than the number of rows, with gaps.

        Of integers in such a range, two in a part of the table are equal unless all are distinct.
        """
        widest = self.n_rows - 1 if self.n_rows < _MIN_ROWS_WITH_GAPS else _MAX_GAP * self.n_rows
        if reading.known < max(self.n_rows, _MIN_ROWS_OF_IDENTIFIER):
            return False
        return reading.is_numbering and reading.highest <= reading.lowest + widest

    def _words_plan(self, rules: ColumnRules) -> ColumnPlan:
        counts, n_distinct = self.counts, len(self.counts) + self.rare[0]
        if self.n_present >= _MIN_ROWS_OF_IDENTIFIER and n_distinct > self.n_present / 2:
            read, sample = number_parser(","), [*itertools.islice(counts, 1000)]
            n_read, has_comma = sum(read(word) is not None for word in sample), any("," in word for word in sample)
            if rules.decimal == "." and has_comma and n_read >= _MIN_SHARE * len(sample):
                raise LeftOut("its texts are numbers with a decimal comma, which is not the decimal separator set")
            raise LeftOut("almost every row has a text of its own")
        frequent = sorted(
            (word for word in counts if counts[word] >= rules.min_frequency), key=lambda w: (-counts[w], w)
        )
        kept = tuple(sorted(frequent[: rules.max_categories]))
        missing = self.n_rows - self.n_present >= rules.min_frequency
        other = len(kept) < n_distinct
        if not kept:
            raise LeftOut(f"no text occurs in {rules.min_frequency} rows")
        if len(kept) + other + missing == 1:
            raise LeftOut("one value only")
        return ColumnPlan(self.name, "words", words=kept, other=other, missing=missing)


def _unread(n_cells: int) -> Reading:
    """Return the reading of cells that cannot be read."""
    return Reading(n_cells, 0, np.zeros(0), np.zeros(0), 0.0, 0.0, is_numbering=True)


def tally_column(name: str, column: Any, rules: ColumnRules, *, categorical: bool) -> ColumnTally:
    """Return what some rows of a column contain."""
    series, n_rows = _series(column), len(column)
    if series is not None and series.dtype.is_nested():
        return ColumnTally(name, n_rows, "nested", {"": _unread(n_rows)})
    if not categorical and has_numeric_type(column):
        floats, unreadable = parse_numbers(column, name, rules.decimal)
        return ColumnTally(name, n_rows, "number", {_NUMBER: Reading.of(floats[:, None], unreadable)})
    if not categorical and has_date_type(column):
        days, unreadable = parse_dates(column, name, "")
        return ColumnTally(name, n_rows, "date", {"": Reading.of(_date_parts(days, _DATE_PARTS), unreadable)})
    values, codes = distinct_values(column, name)
    sizes = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
    present = [(value, word, n) for value, n in zip(values, sizes, strict=True) if (word := normalize_text(value))]
    counts: Counter[str] = Counter()
    for _, word, size in present:
        counts[word] += size
    are_codes = any(
        isinstance(value, bool) or (isinstance(value, str) and _LEADING_ZERO.match(value.strip())) for value in values
    )
    readings: dict[str, Reading] = {}
    frequent = [value for value, _, _ in sorted(present, key=lambda one: -one[2])[:1000]]
    for key in () if categorical else DATE_PATTERNS if are_codes else (_NUMBER, *DATE_PATTERNS):
        read = number_parser(rules.decimal) if key == _NUMBER else date_parser(key)
        if all(read(value) is None for value in frequent):
            continue
        if key == _NUMBER:
            floats, unreadable = parse_numbers(column, name, rules.decimal)
            readings[key] = Reading.of(floats[:, None], unreadable)
            if readings[key].unreadable <= (1.0 - _MIN_SHARE) * counts.total():
                break  # no dates
        else:
            days, unreadable = parse_dates(column, name, key)
            readings[key] = Reading.of(_date_parts(days, _DATE_PARTS), unreadable)
    return ColumnTally(name, n_rows, "text", readings, counts, are_codes=are_codes)


def _date_parts(days: Floats, parts: tuple[str, ...]) -> Floats:
    """Return parts of dates, one column each; NaN where the date is missing."""
    missing = np.isnan(days)
    whole = np.floor(np.where(missing, 0.0, days))
    months = whole.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1.0
    columns = {
        "days": days,
        "month": np.where(missing, np.nan, months),
        "weekday": np.where(missing, np.nan, (whole + 3) % 7 + 1.0),
        "hour": np.round((days - whole) * 24.0, 6),
    }
    return np.column_stack([columns[part] for part in parts]) if parts else np.empty((days.size, 0))


# Values that a model knows, found from cells of any type: those of groups and of categories.


def group_values(groups: Groups, index: int) -> list[Any]:
    """Return the values of one sensitive column that occur in the labels of groups."""
    labels: list[Any] = [*groups.labels, *groups.pooled, *groups.dropped]
    labels = [label for label in labels if label not in groups.pools]
    if groups.grouping == "each":
        return [label[1] for label in labels if label[0] == groups.columns[index]]
    return [label[index] for label in labels] if len(groups.columns) > 1 else labels


def _values_of_texts(values: Iterable[Any]) -> dict[str, Any]:
    """Return which known value a text stands for, an empty one for a missing value; none where all are text."""
    parsed: dict[str, Any] = {}
    for value in values:
        if value is None or value != value:  # noqa: PLR0124 - NaN
            parsed[""] = value
        elif isinstance(value, (bool, np.bool_)):
            parsed |= {str(value): value, str(value).lower(): value, str(int(value)): value}
        elif isinstance(value, (int, float)):
            parsed |= {repr(value): value, repr(float(value)): value}
            if float(value).is_integer():
                parsed[str(int(value))] = value
    return parsed


def match_column(
    column: Any, name: str, known: Iterable[Any] | None, missing: Any = None
) -> tuple[NDArray[Any], Bools, Bools]:
    """Return the cells of a column as the values that a model knows."""
    known = [] if known is None else [*known]
    exact = {value: value for value in known if value == value}  # noqa: PLR0124 - without NaN
    texts = _values_of_texts(known)
    raw, codes = distinct_values(column, name)
    values: list[Any] = []
    unknown: list[bool] = []
    for cell in raw:
        if cell is None or (isinstance(cell, float) and cell != cell) or (cell == "" and "" not in exact):  # noqa: PLR0124
            values.append(missing)
        elif cell in exact:
            values.append(exact[cell])
        else:
            text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
            values.append(texts.get(text, text if text in exact else cell))
        found = values[-1]
        unknown.append(found is not missing and found not in exact)
    table = np.empty(len(values) + 1, dtype=object)
    table[:] = [*values, missing]
    gaps = np.array([value is missing for value in values] + [True])
    return table[codes], gaps[codes], np.array([*unknown, False])[codes]


# Categories of columns that trees were trained with.


def known_categories(model: Any, n_columns: int) -> dict[int, tuple[Any, ...]]:
    """Return the categories of the columns that a model of trees encodes by itself."""
    library = type(model).__module__.partition(".")[0]
    if getattr(model, "n_features_in_", None) != n_columns:
        return {}
    if library == "lightgbm":
        return _lightgbm_categories(model.booster_)
    if library == "xgboost":
        return _xgboost_categories(model.get_booster())
    if getattr(model, "is_categorical_", None) is not None:  # scikit-learn's histogram gradient boosting
        encoder: Any = model._preprocessor  # noqa: SLF001
        values = encoder.named_transformers_["encoder"].categories_
        columns = encoder._transformer_to_input_indices["encoder"]  # noqa: SLF001
        return {int(index): tuple(one.tolist()) for index, one in zip(columns, values, strict=True)}
    return dict(getattr(model, "column_categories_", {}))  # of a model file


def _lightgbm_categories(booster: Any) -> dict[int, tuple[Any, ...]]:
    categories = booster.pandas_categorical or ()
    named = re.search(r"^\[categorical_feature: ([\d,]*)\]$", booster.model_to_string(num_iteration=1), re.MULTILINE)
    columns = [int(index) for index in named.group(1).split(",") if index] if named else []
    if len(columns) != len(categories):  # some are categories by their numbers
        return {}
    return {index: tuple(values) for index, values in zip(columns, categories, strict=True)}


def _xgboost_categories(booster: Any) -> dict[int, tuple[Any, ...]]:
    if "c" not in (booster.feature_types or []):
        return {}
    content = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]
    stored = content.get("gbtree", content)["model"].get("cats", {}).get("enc", ())  # since XGBoost 3.1
    decoded = {index: _decode(column) for index, column in enumerate(stored)}
    return {index: tuple(values) for index, values in decoded.items() if values}


def _decode(column: dict[str, list[int]]) -> list[Any]:
    """Return categories that XGBoost has as numbers, or as the bytes of texts and their offsets."""
    if "offsets" not in column:
        return column["values"]
    if any(byte < 0 for byte in column["values"]):  # offsets count letters, which have several bytes (up to 3.2)
        return []
    content = bytes(column["values"])
    return [content[begin:end].decode() for begin, end in itertools.pairwise(column["offsets"])]
