"""Batches of rows, parsed from single lines of CSV or JSON."""

from __future__ import annotations

import json
import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport._columns import short_type
from fairtransport._sklearn import take_rows
from fairtransport.stream.input._line_source import MAX_LINE_BYTES
from fairtransport.tabular.column_plans import group_values, normalize_text, values_of_texts
from fairtransport.tabular.rows import ReasonKind, RowReason, UnscorableRowError, name_columns, separate_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.input._line_source import LineSource
    from fairtransport.stream.input._schema import InputSchema
    from fairtransport.stream.kafka import TopicSource

# Rows of a batch, and their conversion to the input of the model.


class Row(NamedTuple):
    """One line, parsed."""

    line: int
    numbers: Sequence[float]
    cells: Sequence[Any]
    group: tuple[Any, ...]


def convert_rows(schema: InputSchema, rows: Sequence[Row]) -> tuple[Any, Groups | dict[str, NDArray[Any]]]:
    """Return the features of the rows, and their groups or, where new groups are adopted, their sensitive columns."""
    numbers = np.array([row.numbers for row in rows], dtype=np.float64).reshape(len(rows), len(schema.numeric))
    columns = dict(zip(schema.numeric, numbers.T, strict=True))
    columns |= {name: object_array([row.cells[j] for row in rows]) for j, name in enumerate(schema.raw)}
    features = schema.to_features(columns)
    if schema.scorer.adopts_groups:
        return features, {name: object_array([row.group[j] for row in rows]) for j, name in enumerate(schema.sensitive)}
    groups = schema.scorer.groups
    codes = np.array([row.group for row in rows], dtype=short_type(len(groups)))
    return features, replace(groups, memberships=tuple(np.ascontiguousarray(column) for column in codes.T))


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a one-dimensional array of the values, without converting them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# Groups of single rows.

_SCALARS = frozenset({str, int, float, bool, type(None)})


class GroupParser:
    """Finder of the groups of one row, as `Groups.encode` finds those of a table."""

    def __init__(self, schema: InputSchema) -> None:
        self._names, self._policy = schema.sensitive, schema.unknown_group
        self._groups, self._adopts = schema.scorer.groups, schema.scorer.adopts_groups
        self._required = schema.scorer.needs_groups and schema.unknown_group == "error"
        self._unknown = self._codes_of_unknown(schema.scorer.group_sizes)
        self._codes: dict[tuple[Any, ...], tuple[int, ...]] = {}  # of known groups, so it cannot grow without limit

    def parse(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the codes of the row's groups; where new groups are adopted, the values."""
        if not self._names:
            return self._unknown
        scalar = _SCALARS.issuperset(map(type, values))
        if (
            not scalar
            or any(type(value) is float and not math.isfinite(value) for value in values)
            or (self._groups.missing == "error" and None in values)
        ):
            return self._without_group(ReasonKind.NO_GROUP)
        if self._adopts:
            return values
        codes = self._codes.get(values)
        if codes is None:
            table = {name: object_array([value]) for name, value in zip(self._names, values, strict=True)}
            try:
                groups = self._groups.encode(table)
            except (ValueError, TypeError):
                return self._without_group(ReasonKind.UNKNOWN_GROUP)
            codes = self._codes[values] = tuple(int(codes[0]) for codes in groups.memberships)
        return codes

    def _without_group(self, kind: ReasonKind) -> tuple[Any, ...]:
        if self._required:
            raise UnscorableRowError(name_columns(kind, self._names), kind)
        return self._unknown

    def _codes_of_unknown(self, sizes: NDArray[np.int64]) -> tuple[int | None, ...]:
        """Return the codes of rows of no known group: those of no group, or of the largest.

        Where new groups are adopted, a row has values instead of codes, and these rows have none.
        """
        groups = self._groups
        if self._adopts:
            return (None,) * len(self._names)
        if self._policy != "common" or not len(groups):
            return (len(groups),) * len(groups.memberships)
        missing = {name: object_array([None]) for name in groups.columns}
        found = groups.encode(missing, unknown_group="common", sizes=sizes)
        return tuple(int(codes[0]) for codes in found.memberships)


# Parsing of input lines into rows.


class Parser(ABC):
    """Base class of the parsers, one for each format."""

    unused: tuple[str, ...] | None = None

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        self.schema, self.score_column = schema, score_column
        self.max_line_bytes = MAX_LINE_BYTES
        self.absent = frozenset(schema.sensitive)
        self._groups = GroupParser(schema)
        largest = sys.float_info.max
        self._low, self._high = max(schema.low, -largest), min(schema.high, largest)
        self._unlimited = (self._low, self._high) == (-largest, largest)

    def parse(self, lines: Sequence[bytes]) -> tuple[list[Row], list[tuple[int, RowReason]]]:
        """Return a row for each line that can be scored, and index and reason for each of the others."""
        rows, rejected = [], []
        for index, line in enumerate(lines):
            try:
                rows.append(self.parse_line(line, index))
            except UnscorableRowError as error:
                rejected.append((index, error.reason))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - no line may end a stream
                rejected.append((index, _failure("cannot be read", error)))
        return rows, rejected

    def parse_line(self, line: bytes, index: int = 0) -> Row:
        """Return the row of one line; raise `UnscorableRowError` if it cannot be scored."""
        if not line.strip():
            raise UnscorableRowError("empty line")
        if len(line) > self.max_line_bytes:
            raise UnscorableRowError(f"longer than {self.max_line_bytes} bytes")
        if b"\r" in line:
            raise UnscorableRowError("a carriage return within the line")
        if b"\n" in line:  # in a message
            raise UnscorableRowError("a newline within the line")
        if b"\0" in line:
            raise UnscorableRowError("a NUL character")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise UnscorableRowError("not UTF-8") from None
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
                raise UnscorableRowError(f"column {name!r} is not a finite number", ReasonKind.NOT_A_NUMBER)
            if not self._low <= number <= self._high:
                raise UnscorableRowError(f"column {name!r} is outside the range of scores", ReasonKind.NOT_A_NUMBER)


# Parser of CSV with one row per line.

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
            if not header.strip() or b"\r" in header or b"\0" in header:
                raise UnscorableRowError("not a header")  # noqa: TRY301
            self.header = self._split(header.decode())
        except (UnicodeDecodeError, UnscorableRowError):
            raise ValueError("The first line is not the header of a CSV file in UTF-8.") from None
        self._check_header()
        self.unused = tuple(name for name in self.header if name not in schema.columns)
        self.absent = self.absent.difference(self.header)
        self._index = {name: self.header.index(name) for name in schema.columns if name in self.header}
        self._numeric = [self._index[name] for name in schema.numeric]
        self._parsed_values = {
            name: values_of_texts(group_values(schema.scorer.groups, j)) for j, name in enumerate(schema.sensitive)
        }

    def _check_header(self) -> None:
        repeated = {name for name in self.header if self.header.count(name) > 1}
        missing = [name for name in self.schema.required if name not in self.header]
        if missing:
            raise ValueError(
                f"The input lacks {len(missing)} of {len(self.schema.required)} columns that the model needs: "
                f"{', '.join(map(repr, missing[:10]))}. It has {len(self.header)} columns."
            )
        if any(name in self.schema.columns for name in repeated):
            raise ValueError("The header names a column twice that the model needs.")
        if self.score_column in self.header:
            raise ValueError(f"The input already has a column {self.score_column!r}; name another one with --column.")
        if any(character in self.score_column for character in "\r\n\0"):
            raise ValueError("The name of the added column has a line break; name another one with --column.")

    @property
    def score_field(self) -> bytes:
        """Name of the column of the score, as a field of the header."""
        name = self.score_column
        quoted = '"' in name or self._delimiter in name
        return ('"' + name.replace('"', '""') + '"' if quoted else name).encode()

    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""
        return b"%b%b%b\n" % (line, self._delimiter.encode(), score)

    def _fields(self, text: str) -> list[str]:
        fields = self._split(text)
        if len(fields) != len(self.header):
            raise UnscorableRowError(f"has {len(fields)} fields; the header has {len(self.header)}")
        return fields

    def _split(self, text: str) -> list[str]:
        if '"' not in text:
            return text.split(self._delimiter)
        fields, start, end = [], 0, len(text)
        while True:
            if text.startswith('"', start):
                stop = _closing_quote(text, start + 1)
                fields.append(text[start + 1 : stop].replace('""', '"'))
                stop += 1
                if stop < end and text[stop] != self._delimiter:
                    raise UnscorableRowError("text after a closing quote")
            else:
                stop = text.find(self._delimiter, start)
                stop = end if stop < 0 else stop
                fields.append(text[start:stop])
                if '"' in fields[-1]:
                    raise UnscorableRowError("a quote in a field that is not quoted")
            if stop == end:
                return fields
            start = stop + 1

    def _numbers(self, fields: list[str], text: str) -> list[float]:
        cells = [fields[index] for index in self._numeric]
        if text.isascii() and "_" not in text:  # float() accepts 1_000, and digits of other scripts
            try:
                return [*map(float, cells)]
            except ValueError:
                pass
        return [*map(_number, cells, self.schema.numeric)]

    def _cell(self, fields: list[str], name: str) -> str:
        return fields[self._index[name]]

    def _group_value(self, fields: list[str], name: str) -> Any:
        if name not in self._index:
            return None
        field = fields[self._index[name]]
        if self.schema.label_of is not None:
            return self.schema.label_of(field)
        return self._parsed_values[name].get(field, field)


def _closing_quote(text: str, start: int) -> int:
    stop = text.find('"', start)
    while stop >= 0 and text.startswith('"', stop + 1):
        stop = text.find('"', stop + 2)
    if stop < 0:
        raise UnscorableRowError("a quote that is not closed in the line")
    return stop


def _number(cell: str, name: str) -> float:
    try:
        if cell.isascii() and "_" not in cell:
            return float(cell)
    except ValueError:
        pass
    raise UnscorableRowError(f"column {name!r} is not a number", ReasonKind.NOT_A_NUMBER)


# Parser of JSON lines.

_NUMBERS = frozenset({int, float})


class JsonParser(Parser):
    """Parser of lines that each hold one JSON object, without repeated keys."""

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        super().__init__(schema, score_column)
        self._score_key = json.dumps(score_column).encode()
        self._decode = json.JSONDecoder(object_pairs_hook=_object).decode
        self._columns, self._required = frozenset(schema.columns), frozenset(schema.required)

    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""
        return b"%b,%b:%b}\n" % (line.rstrip()[:-1].rstrip(), self._score_key, score)

    def _fields(self, text: str) -> dict[str, Any]:
        try:
            fields = self._decode(text)
        except UnscorableRowError:
            raise
        except (ValueError, RecursionError):
            raise UnscorableRowError("not JSON") from None
        if not isinstance(fields, dict):
            raise UnscorableRowError("not a JSON object")
        if self.score_column in fields:
            raise UnscorableRowError(f"already has a column {self.score_column!r}; name another one with --column")
        if not self._required <= fields.keys():
            missing = next(name for name in self.schema.required if name not in fields)
            raise UnscorableRowError(f"missing column {missing!r}", ReasonKind.MISSING_COLUMN)
        if self.unused is None:
            self.unused = tuple(name for name in fields if name not in self._columns)
        if self.absent:
            self.absent = self.absent.difference(fields)
        return fields

    def _numbers(self, fields: dict[str, Any], text: str) -> list[float]:  # noqa: ARG002 - CSV needs the text
        values = [fields[name] for name in self.schema.numeric]
        if _NUMBERS.issuperset(map(type, values)):
            try:
                return [*map(float, values)]
            except OverflowError:
                pass
        return [*map(_json_number, values, self.schema.numeric)]

    def _cell(self, fields: dict[str, Any], name: str) -> str | bool | None:
        value = fields[name]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return normalize_text(value)  # as CSV has it: 1 and True, which are equal, must not be confused
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, str):
            raise UnscorableRowError(f"column {name!r} is not a single value", ReasonKind.NOT_A_NUMBER)
        _check_unicode(value, name)
        return value

    def _group_value(self, fields: dict[str, Any], name: str) -> Any:
        value = fields.get(name)
        if isinstance(value, str):
            _check_unicode(value, name)
        if self.schema.label_of is None or isinstance(value, (dict, list)):
            return value
        return self.schema.label_of(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise UnscorableRowError("a key is repeated")
    return fields


def _json_number(value: Any, name: str) -> float:
    if type(value) not in _NUMBERS:
        raise UnscorableRowError(f"column {name!r} is not a number", ReasonKind.NOT_A_NUMBER)
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _check_unicode(value: str, name: str) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            raise UnscorableRowError(f"column {name!r} is not valid Unicode") from None


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class InputBatch:
    """Lines of one batch, parsed."""

    lines: list[bytes]
    first: int
    X: Any
    sensitive_features: Any
    accepted: list[int]
    rejected: list[tuple[int, RowReason]]
    parser: Parser

    def scored_lines(self, scores: NDArray[Any]) -> list[bytes]:
        """Return the accepted lines, each with its score in the fewest digits that restore it, and a newline."""
        append, lines = self.parser.append_score, self.lines
        pairs = zip(self.accepted, scores.tolist(), strict=True)
        return [append(lines[index], repr(score).encode()) for index, score in pairs]

    def without_failures(self, operation: Callable[[Any, Any], Any]) -> InputBatch:
        """Return the batch in which rows that make an operation fail are rejected."""
        kept, _, failures = separate_failures(range(len(self.accepted)), lambda rows: operation(*self._select(rows)))
        if not failures:
            return self
        X, sensitive_features = self._select(kept) if kept else (None, None)
        reasons = [
            (self.first + self.accepted[row], _failure("cannot be scored", error, ReasonKind.OTHER))
            for row, error in failures
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


def _failure(text: str, error: Exception, kind: ReasonKind = ReasonKind.NOT_READABLE) -> RowReason:
    """Return the reason of a row that makes a step fail: its own, or else the type of the error."""
    if isinstance(error, UnscorableRowError):
        return error.reason
    return RowReason(f"{text} ({type(error).__name__})", kind)


class BatchReader:
    """Reader of batches in one format; `open` comes first."""

    def __init__(
        self,
        source: LineSource | TopicSource,
        schema: InputSchema,
        score_column: str,
        file_format: str,
        delimiter: str,
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
        rejected += [(row.line, _failure("cannot be converted", error)) for row, error in failures]
        X, groups = converted or (None, None)
        numbered = sorted((first + index, reason) for index, reason in rejected)
        return InputBatch(lines, first, X, groups, [row.line for row in rows], numbered, self._opened)

    @property
    def _opened(self) -> Parser:
        if self._parser is None:
            raise ValueError("The reader is not open: call open() first.")
        return self._parser
