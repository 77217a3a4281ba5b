"""Lines of text -> columns: all at once where every line is good, line by line where one is not.

The slow way decides what is good; the fast one (pyarrow) is used only where both must agree, and anything strange in a
batch sends it the slow way. A reason never holds a value.
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.stream.input._line_source import LONGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["BadLineError", "ParsedBatch", "Parser", "objects", "values_at"]


class BadLineError(ValueError):
    """A line that cannot be used; the text is the reason."""


@dataclass(frozen=True, eq=False)
class ParsedBatch:
    """Columns of the good lines, which lines these are, and place and reason of the others."""

    columns: dict[str, NDArray[Any]]
    groups: Groups | dict[str, NDArray[Any]] | None
    good: Sequence[int]
    bad: list[tuple[int, str]]


class Parser(ABC):
    """Reads lines of one format.

    Parameters
    ----------
    feeding : InputSchema
        What is needed of a line.
    output : str
        Name of the column that will be added.
    """

    def __init__(self, feeding: InputSchema, output: str) -> None:
        self.feeding, self.output = feeding, output
        self._known = _known_values(feeding)
        self._arrow: Any = _arrow()

    def parse(self, lines: list[bytes]) -> ParsedBatch:
        """Read a batch."""
        columns = self._all_at_once(lines) if lines and max(map(len, lines)) <= LONGEST else None
        if columns is not None:
            groups = self._groups_of(columns)
            if groups is not None:
                return ParsedBatch(columns, groups, range(len(lines)), [])
        return self._one_by_one(lines)

    @abstractmethod
    def add(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score, and a newline."""

    @abstractmethod
    def _fast(self, lines: list[bytes], content: bytes) -> Any:
        """Return an Arrow table, or None; Arrow's errors mean the same."""

    @abstractmethod
    def _fields(self, line: bytes) -> dict[str, Any]:
        """Return the fields of one line."""

    @abstractmethod
    def _number(self, value: Any) -> float | None:
        """Return a field as a number; None where it is none."""

    def _sensitive_value(self, name: str, value: Any) -> Any:  # noqa: ARG002 - formats differ
        return value

    # ---------------------------------------------------------------- all at once

    def _all_at_once(self, lines: list[bytes]) -> dict[str, NDArray[Any]] | None:
        if self._arrow is None:
            return None
        content = b"\n".join(lines)
        try:
            content.decode()  # Arrow does not look into columns that are not needed
            table = self._fast(lines, content)
            if table is None or table.num_rows != len(lines):
                return None
            if any(table.column(name).null_count for name in self.feeding.columns):
                return None
            columns = {name: table.column(name).to_numpy() for name in self.feeding.columns}
        except (ValueError, KeyError, self._arrow["arrow"].ArrowException):
            return None
        for name in self.feeding.numbers:
            held = columns[name]
            inside = (held >= self.feeding.low) & (held <= self.feeding.high) & np.isfinite(held)
            if not inside.all():
                return None
        return columns

    def _groups_of(self, columns: dict[str, NDArray[Any]]) -> Groups | dict[str, NDArray[Any]] | None:
        held = {name: columns[name] for name in self.feeding.sensitive}
        if self.feeding.word is not None:
            told = {value: self.feeding.word(value) for column in held.values() for value in set(column)}
            held = {name: objects([told[value] for value in column]) for name, column in held.items()}
        if self.feeding.adopts:
            return held
        try:
            return self.feeding.groups.encode(held)
        except (ValueError, TypeError):
            return None

    # ---------------------------------------------------------------- one by one

    def _one_by_one(self, lines: list[bytes]) -> ParsedBatch:
        rows, good, bad = [], [], []
        for place, line in enumerate(lines):
            try:
                rows.append(self._row(line))
                good.append(place)
            except BadLineError as error:
                bad.append((place, str(error)))
        if not rows:
            return ParsedBatch({}, None, good, bad)
        columns: dict[str, NDArray[Any]] = {}
        for name in self.feeding.columns:
            values = [row[name] for row in rows]
            numeric = name in self.feeding.numbers
            columns[name] = np.array(values, dtype=np.float64) if numeric else objects(values)
        held = {name: objects([row[("group", name)] for row in rows]) for name in self.feeding.sensitive}
        return ParsedBatch(columns, held if self.feeding.adopts else self.feeding.groups.encode(held), good, bad)

    def _row(self, line: bytes) -> dict[Any, Any]:
        if not line.strip():
            raise BadLineError("empty line")
        if len(line) > LONGEST:
            raise BadLineError(f"longer than {LONGEST} bytes")
        fields = self._fields(line)
        row: dict[Any, Any] = {}
        for name in self.feeding.columns:
            if name not in fields:
                raise BadLineError(f"missing column {name!r}")
            row[name] = fields[name]
        row |= {name: self._finite(name, fields[name]) for name in self.feeding.numbers}
        for name in self.feeding.texts:
            if not isinstance(fields[name], str):
                raise BadLineError(f"column {name!r} is not text")
        for name in self.feeding.cells:
            if not isinstance(fields[name], (str, int, float, type(None))):
                raise BadLineError(f"column {name!r} is no single value")
        own = {name: self._group_value(name, fields[name]) for name in self.feeding.sensitive}
        self._check_group(tuple(own.values()))
        return {**row, **{("group", name): value for name, value in own.items()}}

    def _group_value(self, name: str, value: Any) -> Any:
        if self.feeding.word is None:
            return self._sensitive_value(name, value)
        return self.feeding.word(value) if isinstance(value, (str, int, float, type(None))) else value

    def _finite(self, name: str, value: Any) -> float:
        number = self._number(value)
        if number is None:
            raise BadLineError(f"column {name!r} is not a number")
        if not math.isfinite(number):
            raise BadLineError(f"column {name!r} is not a finite number")
        if not self.feeding.low <= number <= self.feeding.high:
            raise BadLineError(f"column {name!r} is outside the range of scores")
        return number

    def _check_group(self, values: tuple[Any, ...]) -> None:
        plain = all(value is None or isinstance(value, (str, int, float)) for value in values)
        where = ", ".join(repr(name) for name in self.feeding.sensitive)
        if not plain or any(isinstance(value, float) and not math.isfinite(value) for value in values):
            raise BadLineError(f"no group in {where}")
        if self.feeding.adopts:
            if self.feeding.groups.missing == "error" and any(value is None for value in values):
                raise BadLineError(f"no group in {where}")
            return
        if self.feeding.groups.grouping == "each":
            known = all(
                (name, value) in self._known for name, value in zip(self.feeding.sensitive, values, strict=True)
            )
        else:
            known = (values if len(values) > 1 else values[0]) in self._known
        if not known:
            raise BadLineError(f"unknown group in {where}")


def _arrow() -> dict[str, Any] | None:
    """Load pyarrow, if it is installed (extra: ``tables``)."""
    try:
        modules = {name: importlib.import_module(f"pyarrow.{name}") for name in ("csv", "json")}
    except ImportError:
        return None
    return {**modules, "arrow": importlib.import_module("pyarrow")}


def objects(values: list[Any]) -> NDArray[Any]:
    """Return values as an array that leaves them as they are."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _known_values(feeding: InputSchema) -> frozenset[Any]:
    return frozenset(feeding.groups.labels)


def values_at(feeding: InputSchema, place: int) -> list[Any]:
    """Return the values that one sensitive column has in the labels."""
    labels: tuple[Any, ...] = feeding.groups.labels
    if feeding.groups.grouping == "each":
        return [label[1] for label in labels if label[0] == feeding.groups.columns[place]]
    return [label[place] for label in labels] if len(feeding.sensitive) > 1 else list(labels)
