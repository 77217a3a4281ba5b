"""Rows of a raw table: which can be used, their groups and strata, and which make a model fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport.tabular.column_plans import RARE_OR_UNSEEN, UNREADABLE, UNSEEN, ColumnRules, tally_column

Replaced = dict[tuple[str, str], Ints]  # rows by kind and column


def find_numeric(
    columns: dict[str, Any], names: Sequence[str], *, categorical: Collection[str], decimal: str
) -> list[str]:
    """Return which of the columns contain numbers that are amounts, not codes; `TableEncoder` decides the same."""
    rules = ColumnRules(decimal=decimal)
    tallies = [tally_column(name, columns[name], rules, categorical=name in categorical) for name in names]
    return [tally.name for tally in tallies if tally.is_number(rules)]


class ReasonKind(StrEnum):
    """Kinds of reasons for which a row is not used, or has no score; a server counts them."""

    NO_LABEL = "no label"
    NO_GROUP = "no group"
    UNKNOWN_GROUP = "unknown group"
    UNKNOWN_STRATUM = "unknown stratum"
    UNKNOWN_CATEGORY = "unknown category"
    MISSING_VALUE = "missing value"
    MISSING_COLUMN = "missing column"
    NOT_A_NUMBER = "not a number"
    NOT_READABLE = "not readable"
    OTHER = "other"


#: Kinds of cells that are replaced, so that a row has a score nevertheless, and what such a cell has.
REPLACED = {
    UNREADABLE: "no readable number or date, treated as missing",
    UNSEEN: "a category that training did not see",
    RARE_OR_UNSEEN: "a category that is rare in, or absent from, the training rows",
}


class RowReason(str):
    """Why a row has no score, without any value of the row, and the kind of that reason."""

    __slots__ = ("kind",)
    kind: ReasonKind

    def __new__(cls, text: str, kind: ReasonKind = ReasonKind.OTHER) -> Self:
        """Return a sentence with its kind."""
        reason = super().__new__(cls, text)
        reason.kind = kind
        return reason


def name_columns(kind: ReasonKind, columns: Iterable[str]) -> RowReason:
    """Return the reason that is in some columns, such as "no group in 'sex'"."""
    return RowReason(f"{kind} in {', '.join(map(repr, columns))}", kind)


def unreadable_cell(column: str, date_format: str | None = None) -> RowReason:
    """Return the reason that a cell is not a number, or not a date in the format of its column ("" is ISO 8601)."""
    if date_format is None:
        return RowReason(f"column {column!r} is not a number", ReasonKind.NOT_A_NUMBER)
    example = date(2024, 12, 31).strftime(date_format or "%Y-%m-%d")
    return RowReason(f"column {column!r} is not a date such as {example}", ReasonKind.NOT_READABLE)


class SetAside:
    """Rows that cannot be scored, each with its first reason, and what cells of the others were replaced."""

    def __init__(self, n_rows: int) -> None:
        self._reasons: list[RowReason] = []
        self._replaced: Replaced = {}
        self._codes = np.full(n_rows, -1, dtype=np.int64)
        self.size = n_rows

    def add(self, rows: NDArray[Any], reason: RowReason) -> None:
        """Set rows aside, as a mask or as indices; a row that already is keeps its reason."""
        chosen = np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
        chosen = chosen[self._codes[chosen] < 0]
        if chosen.size:
            self._codes[chosen] = len(self._reasons)
            self._reasons.append(reason)

    def note(self, rows: NDArray[Any], kind: str, column: str) -> None:
        """Note of which rows, as a mask or as indices, a cell was replaced."""
        chosen = np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
        if chosen.size:
            self._replaced[kind, column] = chosen

    @property
    def kept(self) -> Ints:
        """The other rows, ascending."""
        return np.flatnonzero(self._codes < 0)

    @property
    def replaced(self) -> Replaced:
        """The rows that are kept and have a cell that was replaced, by kind and column."""
        kept = {key: rows[self._codes[rows] < 0] for key, rows in self._replaced.items()}
        return {key: rows for key, rows in kept.items() if rows.size}

    @property
    def reasons(self) -> dict[int, RowReason]:
        """The reason of each row that is set aside, by its number from 0."""
        rows = np.flatnonzero(self._codes >= 0)
        return {int(row): self._reasons[self._codes[row]] for row in rows}


@dataclass(frozen=True, eq=False)
class TableRows:
    """Encoded rows of a raw table: features, labels (1 is the positive one, or numbers), groups as text and strata.

    ``set_aside`` has the number of other rows by reason: no label, no known group.
    """

    X: Any
    labels: NDArray[Any]
    sensitive_features: dict[str, NDArray[Any]]
    set_aside: dict[str, int]
    strata: dict[str, NDArray[Any]] | None = None


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of the rows of a raw table.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Probabilities of the positive label, or a regressor's predictions; NaN where a row has no score.
    reasons : dict of int to str
        Why a row has no score, by its number from 0; without any value of the row.
    replaced : dict of (str, str) to ndarray of int
        Rows with a cell that the model takes for another, by kind and column. ``unseen category``: one that training
        did not see. ``rare or unseen category``: the same where rare categories share an indicator column; a model
        keeps no rare texts, so these are not distinguished. ``unreadable``: not a number or date, treated as missing,
        in a column that had such cells in training; in any other column the row has no score.
    """

    scores: Floats
    reasons: dict[int, RowReason] = field(default_factory=dict)
    replaced: Replaced = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Numbers of cells that were replaced, by kind and column."""
        return by_kind({key: rows.size for key, rows in self.replaced.items()})


def by_kind(cells: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Return numbers of replaced cells by kind and then by column, without zeros."""
    kinds = dict.fromkeys(kind for (kind, _), number in cells.items() if number)
    return {kind: {name: number for (one, name), number in cells.items() if one == kind and number} for kind in kinds}


def count_rows(set_aside: dict[ReasonKind, Bools]) -> dict[str, int]:
    """Return how many rows are set aside, by reason."""
    return {str(reason): int(np.count_nonzero(rows)) for reason, rows in set_aside.items()}


# Search for the rows of a batch that make an operation fail.

Row = TypeVar("Row")
Result = TypeVar("Result")


class TooManyFailuresError(Exception):
    """The search for the rows that fail has used up its budget; the rows that are left were not tried alone."""


@dataclass
class CallBudget:
    """Calls that are left for the search for rows that fail."""

    calls: int = 250


Owners = Sequence[tuple[int, CallBudget]]  # where the rows of each sender end, and its budget


def separate_failures(
    rows: Sequence[Row],
    operation: Callable[[Sequence[Row]], Result],
    parts: Iterable[tuple[Sequence[Row], CallBudget]] | None = None,
) -> tuple[list[Row], Result | None, list[tuple[Row, Exception]]]:
    """Apply an operation to a batch, without the rows for which it fails.

    Where the batch fails, its halves are tried, and halved again where they fail: for k failing rows of n the operation
    is called about 2 k log2(n) times, each level with n rows at most, and then with all rows that are left. When the
    budget is spent, the rows that were not tried count as failing. ``parts`` are searched one by one, each with its own
    budget, so that rows of one sender do not use up that of others. ``KeyboardInterrupt``, ``SystemExit`` and
    ``MemoryError`` are not failures of a row and are raised.
    """
    if not rows:
        return [], None, []
    result, error = _attempt(operation, rows)
    if error is None:
        return [*rows], result, []
    kept: list[Row] = []
    failures: list[tuple[Row, Exception]] = []
    for part, budget in [(rows, CallBudget())] if parts is None else parts:
        waiting = _halves(part)
        while waiting:
            some = waiting.pop()
            budget.calls -= 1
            error = TooManyFailuresError() if budget.calls < 0 else _attempt(operation, some)[1]
            if error is None:
                kept += some
            elif len(some) == 1 or budget.calls < 0:
                failures += [(row, error) for row in some]
            else:
                waiting += _halves(some)
    result, error = _attempt(operation, kept) if kept else (None, None)
    if error is not None:  # each part can be processed, but not all of them together
        kept, failures = [], [(row, error) for row in rows]
    return kept, result, failures


def _halves(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Return the second half and then the first one, both with rows."""
    middle = len(rows) // 2
    return [half for half in (rows[middle:], rows[:middle]) if half]


def _attempt(
    operation: Callable[[Sequence[Row]], Result], rows: Sequence[Row]
) -> tuple[Result | None, Exception | None]:
    try:
        return operation(rows), None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure of these rows
        return None, error


def failure_reason(step: str, error: Exception) -> RowReason:
    """Return the reason of a row that makes a step fail: the type of the error."""
    return RowReason(f"cannot be {step} ({type(error).__name__})", ReasonKind.OTHER)
