"""Batches of parsed rows from a source of lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.estimator_calls import take_rows
from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser
from fairtransport.stream.input._rows import convert_rows
from fairtransport.tabular.failing_rows import separate_failures
from fairtransport.tabular.feature_reading import UnscorableRowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.stream.input._parser import Parser
    from fairtransport.stream.input._schema import InputSchema
    from fairtransport.stream.input._source import Source

__all__ = ["BatchReader", "InputBatch"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class InputBatch:
    """Lines of one batch, parsed.

    Attributes
    ----------
    lines : list of bytes
    first : int
        Number of the first line in the input, from 1.
    X, sensitive_features : array-like or None
        Input of the model for the accepted lines; None if there are none.
    accepted : list of int
        Indices of the accepted lines.
    rejected : list of (int, str)
        Number in the input and reason for each of the others, in their order.
    parser : Parser
    """

    lines: list[bytes]
    first: int
    X: Any
    sensitive_features: Any
    accepted: list[int]
    rejected: list[tuple[int, str]]
    parser: Parser

    def with_scores(self, scores: NDArray[Any]) -> bytes:
        """Return the accepted lines, each with its score in the fewest digits that restore it."""
        return b"".join(self.scored_lines(scores))

    def scored_lines(self, scores: NDArray[Any]) -> list[bytes]:
        """Return the lines of `with_scores` one by one."""
        append, lines = self.parser.append_score, self.lines
        pairs = zip(self.accepted, scores.tolist(), strict=True)
        return [append(lines[index], repr(score).encode()) for index, score in pairs]

    def without_failures(self, operation: Callable[[Any, Any], Any]) -> InputBatch:
        """Return the batch in which rows that make an operation fail are rejected.

        Parameters
        ----------
        operation : callable
            Takes ``X`` and ``sensitive_features`` of some of the rows, and changes nothing.

        Returns
        -------
        InputBatch
            This batch if nothing fails.
        """
        kept, _, failures = separate_failures(range(len(self.accepted)), lambda rows: operation(*self._select(rows)))
        if not failures:
            return self
        X, sensitive_features = self._select(kept) if kept else (None, None)
        reasons = [
            (self.first + self.accepted[row], f"cannot be scored ({type(error).__name__})") for row, error in failures
        ]
        return replace(
            self,
            X=X,
            sensitive_features=sensitive_features,
            accepted=[self.accepted[row] for row in kept],
            rejected=sorted([*self.rejected, *reasons]),
        )

    def _select(self, rows: Sequence[int]) -> tuple[Any, Any]:
        index, groups = np.asarray(rows, dtype=np.int64), self.sensitive_features
        return take_rows(self.X, index), take_rows(groups, index)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, UnscorableRowError) else f"cannot be converted ({type(error).__name__})"


class BatchReader:
    """Reader of batches in one format; `open` comes first.

    Parameters
    ----------
    source : Source
    schema : InputSchema
    score_column : str
        Name of the column that will be appended.
    file_format : {"jsonl", "csv"}
    delimiter : str
        Delimiter of CSV.
    """

    def __init__(
        self, source: Source, schema: InputSchema, score_column: str, file_format: str, delimiter: str
    ) -> None:
        self.source = source
        self._schema, self._score_column, self._delimiter = schema, score_column, delimiter
        self._is_csv = file_format == "csv"
        self._header = b""
        self._parser: Parser | None = None

    def open(self) -> bool:
        """Read the header, if the format has one; return False if the input is empty instead."""
        if not self._is_csv:
            self._parser = JsonParser(self._schema, self._score_column)
            self._parser.max_line_bytes = self.source.max_line_bytes
            return True
        taken = self.source.take(1) if self.source.header is None else [self.source.header]
        if not taken:
            if self.source.incomplete:
                raise ValueError("The header does not end with a newline; the input may be incomplete.")
            return False
        self._header = taken[0].removeprefix(_BYTE_ORDER_MARK)
        self._parser = CsvParser(self._schema, self._score_column, self._header, self._delimiter)
        self._parser.max_line_bytes = self.source.max_line_bytes
        return True

    @property
    def output_header(self) -> bytes:
        """Header of the output; empty if the format has none."""
        parser = self._opened
        return parser.append_score(self._header, parser.score_field) if isinstance(parser, CsvParser) else b""

    @property
    def unused_columns(self) -> tuple[str, ...] | None:
        """Columns of the input that the model does not need; None as long as that is unknown."""
        return self._opened.unused

    @property
    def absent_columns(self) -> tuple[str, ...] | None:
        """Columns of the groups that no line has had so far; None as long as that is unknown."""
        if self._opened.unused is None:
            return None
        return tuple(name for name in self._schema.sensitive if name in self._opened.absent)

    def read(self, n_lines: int, *, wait: float | None = None) -> InputBatch | None:
        """Return the next batch of at most ``n_lines`` lines, or None if there are none; see `LineSource.take`."""
        lines = self.source.take(n_lines, wait=wait)
        if not lines:
            return None
        first = self.source.lines - len(lines) + 1
        if first == 1:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        rows, rejected = self._opened.parse(lines)
        rows, converted, failures = separate_failures(rows, lambda some: convert_rows(self._schema, some))
        rejected += [(row.line, _reason(error)) for row, error in failures]
        X, groups = converted or (None, None)
        numbered = sorted((first + index, reason) for index, reason in rejected)
        return InputBatch(lines, first, X, groups, [row.line for row in rows], numbered, self._opened)

    @property
    def _opened(self) -> Parser:
        if self._parser is None:
            raise ValueError("The reader is not open: call open() first.")
        return self._parser
