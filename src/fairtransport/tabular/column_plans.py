"""What becomes of one raw column: a number, the parts of a date, a place for each word; or nothing, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import distinct_values
from fairtransport.tabular.value_parsing import (
    DATE_PATTERNS,
    code_of,
    day_reader,
    days_of,
    is_nested,
    looks_coded,
    number_reader,
    numbers_of,
    says_numbers,
    says_times,
    word_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ColumnPlan", "ColumnRules", "LeftOut", "plan_column"]

_MOSTLY = 0.95  # of the cells with a value: then the rest is taken for missing
_ENOUGH = 20  # rows from which on a column can be told to be an identifier
_MANY, _SPARSE = 100, 4  # rows from which on gaps in their numbers do not matter; the most numbers a row may have
_FARTHEST = 1e6  # deviations from the mean; no training row is so far away, and products stay finite
_DATE_PARTS = ("days", "month", "weekday", "hour")


class LeftOut(Exception):  # noqa: N818 - it is a finding, not a failure
    """Why a column is of no use."""


@dataclass(frozen=True)
class ColumnRules:
    """What columns are read by: see `TableEncoder`."""

    min_frequency: int = 5
    max_categories: int = 100
    decimal: str = "."


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """How one raw column becomes columns of numbers.

    Parameters
    ----------
    name : str
        Of the raw column.
    kind : {"number", "date", "words"}
    parts : tuple of str
        Of a number, one without a name; of a date, those of days, month, weekday and hour that vary.
    centre, scale : ndarray
        Of each part: its mean and standard deviation.
    pattern : str
        How a date is written, as in ``strptime``; empty for ISO 8601.
    words : tuple of str
        Those that have a column of their own.
    other : bool
        Whether the other words have a column together.
    missing : bool
        Whether missing values have a column.
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
        """Names of the columns that it becomes."""
        named = [f"{self.name} {part}".rstrip() for part in self.parts]
        named += [f"{self.name}={word}" for word in self.words]
        return [*named, *[f"{self.name} other"] * self.other, *[f"{self.name} missing"] * self.missing]

    @property
    def width(self) -> int:
        """Columns that it becomes."""
        return len(self.parts) + len(self.words) + self.other + self.missing

    def entries(self, column: Any, decimal: str) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[str, int]]:
        """Return values and columns of what each row has here, as many for every row, and counts of odd cells."""
        if self.kind == "words":
            return self._word_entries(column)
        floats, odd = (
            numbers_of(column, self.name, decimal)
            if self.kind == "number"
            else days_of(column, self.name, self.pattern)
        )
        raw = _date_parts(floats, self.parts) if self.kind == "date" else np.repeat(floats[:, None], len(self.parts), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.clip(np.nan_to_num((raw - self.centre) / self.scale, nan=0.0), -_FARTHEST, _FARTHEST)
        if self.missing:
            values = np.column_stack((values, np.isnan(floats)))
        places = np.broadcast_to(np.arange(self.width), (len(floats), self.width))
        return values, places, {"unreadable": odd}

    def _word_entries(self, column: Any) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[str, int]]:
        values, codes = distinct_values(column, self.name)
        n_words = len(self.words)
        unknown = n_words + 1
        places = code_of([*map(word_of, values)], list(self.words), codes, unknown=unknown)
        gone, new = places == -1, places == unknown
        places = np.where(new | gone, n_words, places)  # "other", where there is one
        has_place = ~(new | gone) | self.other
        if self.missing:
            places, has_place = np.where(gone, self.width - 1, places), has_place | gone
        told = {} if self.other else {"new words": int(np.count_nonzero(new))}
        return has_place.astype(np.float64)[:, None], np.where(has_place, places, 0)[:, None], told


def plan_column(name: str, column: Any, rules: ColumnRules, *, categorical: bool) -> tuple[ColumnPlan, int]:
    """Return what becomes of a column, and how many cells are taken for missing; `LeftOut` says why nothing does."""
    if is_nested(column):
        raise LeftOut("lists or records")
    if not categorical:
        if says_numbers(column):
            return _number_plan(name, column, rules)
        if says_times(column):
            return _date_plan(name, column, "", rules)
    values, codes = distinct_values(column, name)
    cells = np.bincount(codes[codes >= 0], minlength=len(values))
    shares = _Shares(values, cells)
    if not shares.n_present:
        raise LeftOut("no values")
    names = looks_coded(values) or any(isinstance(value, bool) for value in values)
    if not categorical and not names and shares.read_by(number_reader(rules.decimal)) >= _MOSTLY:
        return _number_plan(name, column, rules)
    for pattern in () if categorical else DATE_PATTERNS:
        if shares.read_by(day_reader(pattern)) >= _MOSTLY:
            return _date_plan(name, column, pattern, rules)
    return _words_plan(name, shares, len(codes), rules), 0


class _Shares:
    """Distinct cells of a column, and how often each occurs."""

    def __init__(self, values: list[Any], cells: NDArray[np.int64]) -> None:
        words = [*map(word_of, values)]
        self.values = [value for value, word in zip(values, words, strict=True) if word is not None]
        self.words = [word for word in words if word is not None]
        self.cells = np.array([size for size, word in zip(cells, words, strict=True) if word is not None], dtype=int)
        self.n_present = int(self.cells.sum())

    def read_by(self, read: Any) -> float:
        """Return the share of the cells that can be read so."""
        good = np.array([read(value) is not None for value in self.values], dtype=bool)
        return float(self.cells[good].sum() / self.n_present)

    def counts(self) -> dict[str, int]:
        """Return how often each word occurs."""
        found: dict[str, int] = {}
        for word, size in zip(self.words, self.cells.tolist(), strict=True):
            found[word] = found.get(word, 0) + size
        return found


def _number_plan(name: str, column: Any, rules: ColumnRules) -> tuple[ColumnPlan, int]:
    floats, odd = numbers_of(column, name, rules.decimal)
    present = floats[np.isfinite(floats)]
    if present.size == 0:
        raise LeftOut("no values")
    if _numbers_rows(present, floats.size):
        raise LeftOut("it numbers the rows")
    return _scaled_plan(name, "number", floats[:, None], ("",), rules=rules), odd


def _date_plan(name: str, column: Any, pattern: str, rules: ColumnRules) -> tuple[ColumnPlan, int]:
    days, odd = days_of(column, name, pattern)
    if not np.isfinite(days).any():
        raise LeftOut("no values")
    return _scaled_plan(name, "date", _date_parts(days, _DATE_PARTS), _DATE_PARTS, rules=rules, pattern=pattern), odd


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
    kept = tuple(part for part, moves in zip(parts, varies, strict=True) if moves)
    return ColumnPlan(name, kind, kept, centre[varies], scale[varies], pattern, missing=missing)


def _words_plan(name: str, shares: _Shares, n_rows: int, rules: ColumnRules) -> ColumnPlan:
    counts = shares.counts()
    if shares.n_present >= _ENOUGH and len(counts) > shares.n_present / 2:
        raise LeftOut("almost every row has a text of its own")
    often = sorted((word for word in counts if counts[word] >= rules.min_frequency), key=lambda w: (-counts[w], w))
    kept = tuple(sorted(often[: rules.max_categories]))
    n_missing = n_rows - shares.n_present
    missing = n_missing >= rules.min_frequency
    other = len(kept) < len(counts)
    if not kept:
        raise LeftOut(f"no text occurs in {rules.min_frequency} rows")
    if len(kept) + other + missing == 1:
        raise LeftOut("one value only")
    return ColumnPlan(name, "words", words=kept, other=other, missing=missing)


def _numbers_rows(present: NDArray[np.float64], n_rows: int) -> bool:
    """Whether these are whole numbers, each once, that lie as close as those of rows do: by chance they hardly would.

    Some numbers may be missing, for rows that are held out: then more rows are needed to tell.
    """
    widest = n_rows - 1 if n_rows < _MANY else _SPARSE * n_rows
    if present.size < max(n_rows, _ENOUGH) or present.max() > present.min() + widest:
        return False
    return bool((np.mod(present, 1) == 0).all() and np.unique(present).size == n_rows)


def _date_parts(days: NDArray[np.float64], parts: tuple[str, ...]) -> NDArray[np.float64]:
    """Return parts of dates, one column each; missing where the date is."""
    gone = np.isnan(days)
    whole = np.floor(np.where(gone, 0.0, days))
    months = whole.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1.0
    held = {
        "days": days,
        "month": np.where(gone, np.nan, months),
        "weekday": np.where(gone, np.nan, (whole + 3) % 7 + 1.0),
        "hour": np.round((days - whole) * 24.0, 6),
    }
    return np.column_stack([held[part] for part in parts]) if parts else np.empty((days.size, 0))
