"""Batches of parsed rows from a source of lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.stream.input._line_source import LineSource
    from fairtransport.stream.input._parser import Parser
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["BatchReader", "InputBatch"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class InputBatch:
    """Lines of one batch, parsed.

    Attributes
    ----------
    lines : list of bytes
    X, sensitive_features : array-like or None
        Input of the model for the accepted lines; None if there are none.
    accepted : sequence of int
        Indices of the accepted lines.
    rejected : list of (int, str)
        Number in the input, from 1, and reason for each of the others.
    parser : Parser
    """

    lines: list[bytes]
    X: Any
    sensitive_features: Any
    accepted: Sequence[int]
    rejected: list[tuple[int, str]]
    parser: Parser

    def with_scores(self, scores: NDArray[Any]) -> bytes:
        """Return the accepted lines, each with its score in the fewest digits that restore it."""
        append, lines = self.parser.append_score, self.lines
        pairs = zip(self.accepted, scores.tolist(), strict=True)
        return b"".join([append(lines[index], repr(score).encode()) for index, score in pairs])


class BatchReader:
    """Reader of batches in one format; `open` comes first.

    Parameters
    ----------
    source : LineSource
    schema : InputSchema
    score_column : str
        Name of the column that will be appended.
    file_format : {"jsonl", "csv"}
    delimiter : str
        Delimiter of CSV.
    """

    def __init__(
        self, source: LineSource, schema: InputSchema, score_column: str, file_format: str, delimiter: str
    ) -> None:
        self.source = source
        self._schema, self._score_column, self._delimiter = schema, score_column, delimiter
        self._is_csv = file_format == "csv"
        self._header = b""
        self._parser: Parser | None = None

    def open(self) -> bool:
        """Read the header, if the format has one; return False if the input ends before it."""
        if not self._is_csv:
            self._parser = JsonParser(self._schema, self._score_column)
            return True
        taken = self.source.take(1)
        if not taken:
            return False
        self._header = taken[0]
        self._parser = CsvParser(self._schema, self._score_column, self._header, self._delimiter)
        return True

    @property
    def output_header(self) -> bytes:
        """Header of the output; empty if the format has none."""
        if not self._is_csv:
            return b""
        return self._opened.append_score(self._header.removeprefix(_BYTE_ORDER_MARK), self._score_column.encode())

    @property
    def unused_columns(self) -> tuple[str, ...] | None:
        """Columns of the input that the model does not need; None as long as that is unknown."""
        return self._opened.unused

    def read(self, n_lines: int, *, wait: float | None = None) -> InputBatch | None:
        """Return the next batch of at most ``n_lines`` lines, or None if there are none; see `LineSource.take`."""
        lines = self.source.take(n_lines, wait=wait)
        if not lines:
            return None
        parsed = self._opened.parse(lines)
        first = self.source.lines - len(lines) + 1
        rejected = [(first + index, reason) for index, reason in parsed.rejected]
        X = self._schema.to_features(parsed.columns) if parsed.accepted else None
        return InputBatch(lines, X, parsed.groups, parsed.accepted, rejected, self._opened)

    @property
    def _opened(self) -> Parser:
        if self._parser is None:
            raise ValueError("The reader is not open: call open() first.")
        return self._parser
