"""Parsing of input lines into rows.

Each line is parsed alone, so what it means cannot depend on the lines around it. Reasons for rejecting a line never
quote a value.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._group_parser import GroupParser, RejectedLineError
from fairtransport.stream.input._line_source import MAX_LINE_BYTES
from fairtransport.stream.input._rows import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.stream.input._schema import InputSchema

__all__ = ["Parser", "RejectedLineError"]


class Parser(ABC):
    """Base class of the parsers, one for each format.

    Parameters
    ----------
    schema : InputSchema
    score_column : str
        Name of the column that will be appended.

    Attributes
    ----------
    max_line_bytes : int
        Longer lines are rejected.
    unused : tuple of str or None
        Columns of the input that the model does not need; None as long as no valid line was seen.
    absent : frozenset of str
        Sensitive columns that no line has had so far; of CSV, those that the header lacks.
    """

    unused: tuple[str, ...] | None = None

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        self.schema, self.score_column = schema, score_column
        self.max_line_bytes = MAX_LINE_BYTES
        self.absent = frozenset(schema.sensitive)
        self._groups = GroupParser(schema)
        largest = sys.float_info.max
        self._low, self._high = max(schema.low, -largest), min(schema.high, largest)
        self._unlimited = (self._low, self._high) == (-largest, largest)

    def parse(self, lines: Sequence[bytes]) -> tuple[list[Row], list[tuple[int, str]]]:
        """Return a row for each line that can be scored, and index and reason for each of the others."""
        rows, rejected = [], []
        for index, line in enumerate(lines):
            try:
                rows.append(self.parse_line(line, index))
            except RejectedLineError as error:
                rejected.append((index, str(error)))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - no line may end a stream
                rejected.append((index, f"cannot be read ({type(error).__name__})"))
        return rows, rejected

    def parse_line(self, line: bytes, index: int = 0) -> Row:
        """Return the row of one line; raise `RejectedLineError` if it cannot be scored."""
        if not line.strip():
            raise RejectedLineError("empty line")
        if len(line) > self.max_line_bytes:
            raise RejectedLineError(f"longer than {self.max_line_bytes} bytes")
        if b"\r" in line:
            raise RejectedLineError("a carriage return within the line")
        if b"\n" in line:  # in a message
            raise RejectedLineError("a newline within the line")
        if b"\0" in line:
            raise RejectedLineError("a NUL character")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise RejectedLineError("not UTF-8") from None
        fields = self._fields(text)
        numbers = self._numbers(fields, text) if self.schema.numeric else ()
        if not (self._unlimited and math.isfinite(sum(numbers))):  # a finite sum has finite terms
            self._check_range(numbers)
        cells = [self._cell(fields, name) for name in self.schema.raw]
        group = self._groups.parse(tuple([self._group_value(fields, name) for name in self.schema.sensitive]))
        return Row(index, numbers, cells, group)

    @abstractmethod
    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""

    @abstractmethod
    def _fields(self, text: str) -> Any:
        """Return the fields of a line, at least all that the schema needs."""

    @abstractmethod
    def _numbers(self, fields: Any, text: str) -> Sequence[float]:
        """Return the values of the numeric columns."""

    @abstractmethod
    def _cell(self, fields: Any, name: str) -> str | bool | None:
        """Return the value of a raw column."""

    @abstractmethod
    def _group_value(self, fields: Any, name: str) -> Any:
        """Return the value of a sensitive column, as it is in the labels of the groups."""

    def _check_range(self, numbers: Sequence[float]) -> None:
        for name, number in zip(self.schema.numeric, numbers, strict=True):
            if not math.isfinite(number):
                raise RejectedLineError(f"column {name!r} is not a finite number")
            if not self._low <= number <= self._high:
                raise RejectedLineError(f"column {name!r} is outside the range of scores")
