"""Batches of rows, parsed from single lines of CSV or JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fairtransport.stream.input._line_source import MAX_LINE_BYTES, Source
from fairtransport.stream.input._schema import InputBatch, InputSchema
from fairtransport.tabular.cells import (
    RowCells,
    UnreadableRowError,
    cells_of_fields,
    cells_of_objects,
    check_header,
    decode_object,
)
from fairtransport.tabular.rows import failure_reason


class Parser(ABC):
    """Base class of the parsers of lines, one for each format."""

    unused: tuple[str, ...] | None = None
    output_header = b""  # empty if the format has none

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        self.wanted, self.score_column = schema.wanted, score_column
        self.max_line_bytes = MAX_LINE_BYTES
        self.absent = frozenset(schema.sensitive)

    def parse(self, lines: Sequence[bytes]) -> RowCells:
        """Return the cells of the lines, and a reason for each line that cannot be read."""
        rows: list[Any] = []
        for line in lines:
            try:
                rows.append(self._row(self._decode(line)))
            except UnreadableRowError as error:
                rows.append(error.reason)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - no line may end a stream
                rows.append(failure_reason("read", error))
        return self._cells(rows)

    def _decode(self, line: bytes) -> str:
        if not line.strip():
            raise UnreadableRowError("empty line")
        if len(line) > self.max_line_bytes:
            raise UnreadableRowError(f"longer than {self.max_line_bytes} bytes")
        for character, text in _NOT_IN_LINES.items():
            if character in line:
                raise UnreadableRowError(text)
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise UnreadableRowError("not UTF-8") from None

    @abstractmethod
    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""

    @abstractmethod
    def _row(self, text: str) -> Any:
        """Return the fields of a line."""

    @abstractmethod
    def _cells(self, rows: list[Any]) -> RowCells:
        """Return the cells of lines, from their fields or reasons."""


_NOT_IN_LINES = {
    b"\r": "a carriage return within the line",
    b"\n": "a newline within the line",  # in a message
    b"\0": "a NUL character",
}
_NO_DELIMITER = frozenset('"\r\n\0.+-_')  # nor letters and digits: they occur in numbers


class CsvParser(Parser):
    """Parser of delimited fields, one row per line, whose names are in the header.

    Fields are quoted as in RFC 4180: a field that begins with a quote ends with one, and quotes within it are doubled;
    other fields have none. A row that contains newlines in quotes is several lines, each of which is rejected.
    """

    def __init__(self, schema: InputSchema, score_column: str, header: bytes, delimiter: str = ",") -> None:
        super().__init__(schema, score_column)
        if len(delimiter) != 1 or delimiter.isalnum() or delimiter in _NO_DELIMITER:
            raise ValueError(
                "The delimiter must be one character that does not occur in numbers and is not a quote or a newline."
            )
        self._delimiter = delimiter
        try:
            names = self._row(self._decode(header))
        except UnreadableRowError:
            raise ValueError("The first line is not the header of a CSV file in UTF-8.") from None
        self._n_fields, self._positions = len(names), check_header(names, self.wanted)
        self._check_names(frozenset(names))
        self.unused = tuple(name for name in names if name not in self._positions)
        self.absent = self.absent.difference(self._positions)
        quoted = '"' in score_column or delimiter in score_column
        name = '"' + score_column.replace('"', '""') + '"' if quoted else score_column
        self.output_header = self.append_score(header, name.encode())

    def _check_names(self, names: frozenset[str]) -> None:
        missing = [name for name in self.wanted.needed if name not in names]
        if missing:
            raise ValueError(
                f"The input lacks {len(missing)} of {len(self.wanted.needed)} columns that the model needs: "
                f"{', '.join(map(repr, missing[:10]))}. It has {self._n_fields} columns."
            )
        if self.score_column in names:
            raise ValueError(f"The input already has a column {self.score_column!r}; name another one with --column.")
        if any(character in self.score_column for character in "\r\n\0"):
            raise ValueError("The name of the added column has a line break; name another one with --column.")

    def append_score(self, line: bytes, score: bytes) -> bytes:
        return b"%b%b%b\n" % (line, self._delimiter.encode(), score)

    def _cells(self, rows: list[Any]) -> RowCells:
        return cells_of_fields(rows, self._n_fields, self._positions)

    def _row(self, text: str) -> list[str]:
        if '"' not in text:
            return text.split(self._delimiter)
        fields, start, end = [], 0, len(text)
        while True:
            if text.startswith('"', start):
                stop = _closing_quote(text, start + 1)
                fields.append(text[start + 1 : stop].replace('""', '"'))
                stop += 1
                if stop < end and text[stop] != self._delimiter:
                    raise UnreadableRowError("text after a closing quote")
            else:
                stop = text.find(self._delimiter, start)
                stop = end if stop < 0 else stop
                fields.append(text[start:stop])
                if '"' in fields[-1]:
                    raise UnreadableRowError("a quote in a field that is not quoted")
            if stop == end:
                return fields
            start = stop + 1


def _closing_quote(text: str, start: int) -> int:
    stop = text.find('"', start)
    while stop >= 0 and text.startswith('"', stop + 1):
        stop = text.find('"', stop + 2)
    if stop < 0:
        raise UnreadableRowError("a quote that is not closed in the line")
    return stop


class JsonParser(Parser):
    """Parser of lines that each hold one JSON object, without repeated keys."""

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        super().__init__(schema, score_column)
        self._score_key = json.dumps(score_column).encode()

    def append_score(self, line: bytes, score: bytes) -> bytes:
        return b"%b,%b:%b}\n" % (line.rstrip()[:-1].rstrip(), self._score_key, score)

    def _row(self, text: str) -> dict[str, Any]:
        fields = decode_object(text)
        if self.score_column in fields:
            raise UnreadableRowError(f"already has a column {self.score_column!r}; name another one with --column")
        if self.unused is None:
            self.unused = tuple(name for name in fields if name not in self.wanted.names)
        if self.absent:
            self.absent = self.absent.difference(fields)
        return fields

    def _cells(self, rows: list[Any]) -> RowCells:
        return cells_of_objects(rows, self.wanted)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BatchReader:
    """Reader of batches in one format; `open` comes first."""

    parser: Parser

    def __init__(
        self, source: Source, schema: InputSchema, score_column: str, file_format: str, delimiter: str
    ) -> None:
        self.source = source
        self._schema, self._score_column, self._delimiter = schema, score_column, delimiter
        self._is_csv = file_format == "csv"

    def open(self) -> bool:
        """Read the header, if the format has one; return False if the input is empty instead."""
        if self._is_csv:
            taken = self.source.take(1) if self.source.header is None else [self.source.header]
            if not taken and self.source.incomplete:
                raise ValueError("The header does not end with a newline; the input may be incomplete.")
            if not taken:
                return False
            header = taken[0].removeprefix(_BYTE_ORDER_MARK)
            self.parser = CsvParser(self._schema, self._score_column, header, self._delimiter)
        else:
            self.parser = JsonParser(self._schema, self._score_column)
        self.parser.max_line_bytes = self.source.max_line_bytes
        return True

    @property
    def further_columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Columns of the groups that no line has had so far, and columns that are not used; none if that is unknown."""
        if self.parser.unused is None:
            return (), ()
        return tuple(name for name in self._schema.sensitive if name in self.parser.absent), self.parser.unused

    def read(self, n_lines: int, *, wait: float | None = None) -> InputBatch | None:
        """Return the next batch of at most ``n_lines`` lines, or None if there are none; see `LineSource.take`."""
        lines = self.source.take(n_lines, wait=wait)
        if not lines:
            return None
        first = self.source.lines - len(lines) + 1
        if first == 1:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        return self._schema.read(self.parser.parse(lines), first=first, lines=lines)

    def scored_lines(self, batch: InputBatch, scores: NDArray[Any]) -> list[bytes]:
        """Return the accepted lines, each with its score in the fewest digits that restore it, and a newline."""
        append, pairs = self.parser.append_score, zip(batch.accepted, scores.tolist(), strict=True)
        return [append(batch.lines[index], repr(score).encode()) for index, score in pairs]
