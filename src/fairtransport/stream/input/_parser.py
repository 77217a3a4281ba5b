"""Parsing of input lines into columns.

A batch is parsed as a whole by pyarrow where that is certain to agree with parsing line by line, which defines what is
valid. Anything unusual in a batch selects the line-by-line path. Reasons for rejecting a line never quote a value.
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.stream.input._line_source import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["ParsedBatch", "Parser", "RejectedLineError", "object_array", "sensitive_values"]


class RejectedLineError(ValueError):
    """A line that cannot be scored; the message is the reason."""


@dataclass(frozen=True, eq=False)
class ParsedBatch:
    """Columns of the accepted lines of a batch.

    Attributes
    ----------
    columns : dict of str to ndarray
    groups : Groups, dict of str to ndarray, or None
        Groups of the accepted lines, or the sensitive columns where new groups are adopted; None if no line was
        accepted.
    accepted : sequence of int
        Indices of the accepted lines.
    rejected : list of (int, str)
        Index and reason for each of the others.
    """

    columns: dict[str, NDArray[Any]]
    groups: Groups | dict[str, NDArray[Any]] | None
    accepted: Sequence[int]
    rejected: list[tuple[int, str]]


class Parser(ABC):
    """Base class of the parsers, one for each format.

    Parameters
    ----------
    schema : InputSchema
    score_column : str
        Name of the column that will be appended.

    Attributes
    ----------
    unused : tuple of str or None
        Columns of the input that the model does not need; None as long as no line was seen.
    """

    unused: tuple[str, ...] | None = None

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        self.schema, self.score_column = schema, score_column
        self._labels: frozenset[Any] = frozenset(schema.groups.labels)
        self._arrow: Any = _load_arrow()

    def parse(self, lines: list[bytes]) -> ParsedBatch:
        """Parse a batch of lines."""
        columns = self._parse_batch(lines) if lines and max(map(len, lines)) <= MAX_LINE_BYTES else None
        if columns is not None:
            groups = self._groups_of(columns)
            if groups is not None:
                return ParsedBatch(columns, groups, range(len(lines)), [])
        return self.parse_lines(lines)

    @abstractmethod
    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""

    @abstractmethod
    def _read_table(self, lines: list[bytes], content: bytes) -> Any:
        """Return the batch as an Arrow table; None, or an error of Arrow, where lines must be parsed one by one."""

    @abstractmethod
    def _fields(self, line: bytes) -> dict[str, Any]:
        """Return the fields of one line by name."""

    @abstractmethod
    def _number(self, value: Any) -> float | None:
        """Return a field as a number; None if it is not one."""

    def _sensitive_value(self, name: str, value: Any) -> Any:  # noqa: ARG002 - CSV needs the name
        return value

    # ---------------------------------------------------------------- the whole batch

    def _parse_batch(self, lines: list[bytes]) -> dict[str, NDArray[Any]] | None:
        if self._arrow is None:
            return None
        content = b"\n".join(lines)
        try:
            content.decode()  # Arrow does not check the encoding of columns that are not read
            table = self._read_table(lines, content)
            if table is None or table.num_rows != len(lines):
                return None
            if any(table.column(name).null_count for name in self.schema.columns):
                return None
            columns = {name: table.column(name).to_numpy() for name in self.schema.columns}
        except (ValueError, KeyError, self._arrow["arrow"].ArrowException):
            return None
        for name in self.schema.numeric:
            values = columns[name]
            valid = (values >= self.schema.low) & (values <= self.schema.high) & np.isfinite(values)
            if not valid.all():
                return None
        return columns

    def _groups_of(self, columns: dict[str, NDArray[Any]]) -> Groups | dict[str, NDArray[Any]] | None:
        sensitive = {name: columns[name] for name in self.schema.sensitive}
        if self.schema.label_of is not None:
            labels = {value: self.schema.label_of(value) for column in sensitive.values() for value in set(column)}
            sensitive = {name: object_array([labels[value] for value in column]) for name, column in sensitive.items()}
        if self.schema.adopts_groups:
            return sensitive
        try:
            return self.schema.groups.encode(sensitive)
        except (ValueError, TypeError):
            return None

    # ---------------------------------------------------------------- line by line

    def parse_lines(self, lines: list[bytes]) -> ParsedBatch:
        """Parse a batch line by line; `parse` gives the same, faster where every line is valid."""
        rows, accepted, rejected = [], [], []
        for index, line in enumerate(lines):
            try:
                rows.append(self._parse_line(line))
                accepted.append(index)
            except RejectedLineError as error:
                rejected.append((index, str(error)))
        if not rows:
            return ParsedBatch({}, None, accepted, rejected)
        columns: dict[str, NDArray[Any]] = {}
        for name in self.schema.columns:
            values = [row[name] for row in rows]
            numeric = name in self.schema.numeric
            columns[name] = np.array(values, dtype=np.float64) if numeric else object_array(values)
        sensitive = {name: object_array([row[("group", name)] for row in rows]) for name in self.schema.sensitive}
        groups = sensitive if self.schema.adopts_groups else self.schema.groups.encode(sensitive)
        return ParsedBatch(columns, groups, accepted, rejected)

    def _parse_line(self, line: bytes) -> dict[Any, Any]:
        if not line.strip():
            raise RejectedLineError("empty line")
        if len(line) > MAX_LINE_BYTES:
            raise RejectedLineError(f"longer than {MAX_LINE_BYTES} bytes")
        fields = self._fields(line)
        row: dict[Any, Any] = {}
        for name in self.schema.columns:
            if name not in fields:
                raise RejectedLineError(f"missing column {name!r}")
            row[name] = fields[name]
        row |= {name: self._finite_number(name, fields[name]) for name in self.schema.numeric}
        for name in self.schema.raw:
            if not isinstance(fields[name], (str, int, float, type(None))):
                raise RejectedLineError(f"column {name!r} is not a single value")
        values = {name: self._group_value(name, fields[name]) for name in self.schema.sensitive}
        self._check_group(tuple(values.values()))
        return {**row, **{("group", name): value for name, value in values.items()}}

    def _group_value(self, name: str, value: Any) -> Any:
        if self.schema.label_of is None:
            return self._sensitive_value(name, value)
        return self.schema.label_of(value) if isinstance(value, (str, int, float, type(None))) else value

    def _finite_number(self, name: str, value: Any) -> float:
        number = self._number(value)
        if number is None:
            raise RejectedLineError(f"column {name!r} is not a number")
        if not math.isfinite(number):
            raise RejectedLineError(f"column {name!r} is not a finite number")
        if not self.schema.low <= number <= self.schema.high:
            raise RejectedLineError(f"column {name!r} is outside the range of scores")
        return number

    def _check_group(self, values: tuple[Any, ...]) -> None:
        columns = ", ".join(repr(name) for name in self.schema.sensitive)
        scalar = all(value is None or isinstance(value, (str, int, float)) for value in values)
        if not scalar or any(isinstance(value, float) and not math.isfinite(value) for value in values):
            raise RejectedLineError(f"no group in {columns}")
        if self.schema.adopts_groups:
            if self.schema.groups.missing == "error" and any(value is None for value in values):
                raise RejectedLineError(f"no group in {columns}")
            return
        if self.schema.groups.grouping == "each":
            pairs = zip(self.schema.sensitive, values, strict=True)
            known = all((name, value) in self._labels for name, value in pairs)
        else:
            known = (values if len(values) > 1 else values[0]) in self._labels
        if not known:
            raise RejectedLineError(f"unknown group in {columns}")


def _load_arrow() -> dict[str, Any] | None:
    """Return the modules of pyarrow; None if it is not installed (extra: ``tables``)."""
    try:
        modules = {name: importlib.import_module(f"pyarrow.{name}") for name in ("csv", "json")}
    except ImportError:
        return None
    return {**modules, "arrow": importlib.import_module("pyarrow")}


def object_array(values: list[Any]) -> NDArray[Any]:
    """Return a one-dimensional array of the values, without converting them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def sensitive_values(schema: InputSchema, index: int) -> list[Any]:
    """Return the values of one sensitive column that occur in the labels of the groups."""
    labels: tuple[Any, ...] = schema.groups.labels
    if schema.groups.grouping == "each":
        return [label[1] for label in labels if label[0] == schema.groups.columns[index]]
    return [label[index] for label in labels] if len(schema.sensitive) > 1 else list(labels)
