"""The encoding of one raw column: as a number, as the parts of a date, or as indicators of categories."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import distinct_values
from fairtransport.tabular.value_parsing import (
    DATE_PATTERNS,
    date_parser,
    has_date_type,
    has_leading_zeros,
    has_numeric_type,
    is_nested,
    normalize_text,
    number_parser,
    parse_dates,
    parse_numbers,
    text_codes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MAX_DEVIATIONS",
    "RARE_OR_UNSEEN",
    "UNREADABLE",
    "UNSEEN",
    "ColumnPlan",
    "ColumnRules",
    "LeftOut",
    "plan_column",
]

#: Kinds of cells that are counted. A plan keeps no text that few people have, so where rare categories share a column
#: it cannot tell one of them from a category that training did not see.
UNREADABLE, UNSEEN, RARE_OR_UNSEEN = "unreadable", "unseen category", "rare or unseen category"

_MIN_SHARE = 0.95  # of the present cells that must be readable; the others are treated as missing
_MIN_ROWS_OF_IDENTIFIER = 20
_MIN_ROWS_WITH_GAPS, _MAX_GAP = 100, 4  # row numbers of held-out rows may be missing: least rows, and largest mean gap
MAX_DEVIATIONS = 1e6  # from the mean; products stay finite
_DATE_PARTS = ("days", "month", "weekday", "hour")


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
    """Encoding of one raw column as columns of numbers.

    Parameters
    ----------
    name : str
        Name of the raw column.
    kind : {"number", "date", "words"}
    parts : tuple of str
        For a number, one part without a name; for a date, those of days, month, weekday and hour that vary.
    centre, scale : ndarray
        Mean and standard deviation of each part.
    pattern : str
        Format of the dates, as in ``strptime``; empty for ISO 8601.
    words : tuple of str
        Categories with an indicator column of their own.
    other : bool
        Whether the other categories share an indicator column.
    missing : bool
        Whether missing values have an indicator column.
    """

    name: str
    kind: str
    parts: tuple[str, ...] = ()
    centre: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    scale: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
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

    def entries(self, column: Any, decimal: str) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[str, int]]:
        """Return values and column indices of the entries of each row, the same number in each, and counts of cells."""
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
        return values, indices, {UNREADABLE: int(np.count_nonzero(unreadable))}

    def _word_entries(self, column: Any) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[str, int]]:
        values, codes = distinct_values(column, self.name)
        n_words = len(self.words)
        unknown = n_words + 1
        indices = text_codes([*map(normalize_text, values)], list(self.words), codes, unknown=unknown)
        missing, new = indices == -1, indices == unknown
        indices = np.where(new | missing, n_words, indices)  # of "other", where there is one
        has_column = ~(new | missing) | self.other
        if self.missing:
            indices, has_column = np.where(missing, self.width - 1, indices), has_column | missing
        counts = {RARE_OR_UNSEEN if self.other else UNSEEN: int(np.count_nonzero(new))}
        return has_column.astype(np.float64)[:, None], np.where(has_column, indices, 0)[:, None], counts


def plan_column(name: str, column: Any, rules: ColumnRules, *, categorical: bool) -> tuple[ColumnPlan, int]:
    """Return the encoding of a column and the number of unreadable cells; raise `LeftOut` for a useless column."""
    if is_nested(column):
        raise LeftOut("lists or records")
    if not categorical:
        if has_numeric_type(column):
            return _number_plan(name, column, rules)
        if has_date_type(column):
            return _date_plan(name, column, "", rules)
    values, codes = distinct_values(column, name)
    cells = np.bincount(codes[codes >= 0], minlength=len(values))
    distinct = _DistinctCells(values, cells)
    if not distinct.n_present:
        raise LeftOut("no values")
    are_codes = has_leading_zeros(values) or any(isinstance(value, bool) for value in values)
    if not categorical and not are_codes and distinct.readable_share(number_parser(rules.decimal)) >= _MIN_SHARE:
        return _number_plan(name, column, rules)
    for pattern in () if categorical else DATE_PATTERNS:
        if distinct.readable_share(date_parser(pattern)) >= _MIN_SHARE:
            return _date_plan(name, column, pattern, rules)
    return _words_plan(name, distinct, len(codes), rules), 0


class _DistinctCells:
    """The distinct cells of a column, and how often each occurs."""

    def __init__(self, values: list[Any], cells: NDArray[np.int64]) -> None:
        words = [*map(normalize_text, values)]
        self.values = [value for value, word in zip(values, words, strict=True) if word is not None]
        self.words = [word for word in words if word is not None]
        self.cells = np.array([size for size, word in zip(cells, words, strict=True) if word is not None], dtype=int)
        self.n_present = int(self.cells.sum())

    def readable_share(self, parse: Any) -> float:
        """Return the share of the present cells that a parser can read."""
        readable = np.array([parse(value) is not None for value in self.values], dtype=bool)
        return float(self.cells[readable].sum() / self.n_present)

    def counts(self) -> dict[str, int]:
        """Return how often each text occurs."""
        counts: dict[str, int] = {}
        for word, size in zip(self.words, self.cells.tolist(), strict=True):
            counts[word] = counts.get(word, 0) + size
        return counts


def _number_plan(name: str, column: Any, rules: ColumnRules) -> tuple[ColumnPlan, int]:
    floats, unreadable = parse_numbers(column, name, rules.decimal)
    n_unreadable = int(np.count_nonzero(unreadable))
    present = floats[np.isfinite(floats)]
    if present.size == 0:
        raise LeftOut("no values")
    if _is_row_number(present, floats.size):
        raise LeftOut("it numbers the rows")
    return _scaled_plan(name, "number", floats[:, None], ("",), rules=rules), n_unreadable


def _date_plan(name: str, column: Any, pattern: str, rules: ColumnRules) -> tuple[ColumnPlan, int]:
    days, unreadable = parse_dates(column, name, pattern)
    n_unreadable = int(np.count_nonzero(unreadable))
    if not np.isfinite(days).any():
        raise LeftOut("no values")
    parts = _date_parts(days, _DATE_PARTS)
    return _scaled_plan(name, "date", parts, _DATE_PARTS, rules=rules, pattern=pattern), n_unreadable


def _scaled_plan(
    name: str, kind: str, raw: NDArray[np.float64], parts: tuple[str, ...], *, rules: ColumnRules, pattern: str = ""
) -> ColumnPlan:
    with np.errstate(over="ignore", invalid="ignore"):
        centre, scale = np.nanmean(raw, axis=0), np.nanstd(raw, axis=0)
    if not (np.isfinite(centre).all() and np.isfinite(scale).all()):
        raise LeftOut("its numbers are too large")
    varies = scale > 1e-12 * np.maximum(np.abs(centre), 1e-300)
    missing = bool(np.count_nonzero(np.isnan(raw[:, 0])) >= rules.min_frequency)
    if not varies.any() and not missing:
        raise LeftOut("one value only")
    kept = tuple(itertools.compress(parts, varies))
    return ColumnPlan(name, kind, kept, centre[varies], scale[varies], pattern, missing=missing)


def _words_plan(name: str, distinct: _DistinctCells, n_rows: int, rules: ColumnRules) -> ColumnPlan:
    counts = distinct.counts()
    if distinct.n_present >= _MIN_ROWS_OF_IDENTIFIER and len(counts) > distinct.n_present / 2:
        raise LeftOut("almost every row has a text of its own")
    frequent = sorted((word for word in counts if counts[word] >= rules.min_frequency), key=lambda w: (-counts[w], w))
    kept = tuple(sorted(frequent[: rules.max_categories]))
    n_missing = n_rows - distinct.n_present
    missing = n_missing >= rules.min_frequency
    other = len(kept) < len(counts)
    if not kept:
        raise LeftOut(f"no text occurs in {rules.min_frequency} rows")
    if len(kept) + other + missing == 1:
        raise LeftOut("one value only")
    return ColumnPlan(name, "words", words=kept, other=other, missing=missing)


def _is_row_number(present: NDArray[np.float64], n_rows: int) -> bool:
    """Return whether a column contains distinct integers in a range that is hardly larger than the number of rows.

    The numbers of held-out rows are missing from the range, so a larger one is allowed where there are enough rows.
    """
    widest = n_rows - 1 if n_rows < _MIN_ROWS_WITH_GAPS else _MAX_GAP * n_rows
    if present.size < max(n_rows, _MIN_ROWS_OF_IDENTIFIER) or present.max() > present.min() + widest:
        return False
    return bool((np.mod(present, 1) == 0).all() and np.unique(present).size == n_rows)


def _date_parts(days: NDArray[np.float64], parts: tuple[str, ...]) -> NDArray[np.float64]:
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
