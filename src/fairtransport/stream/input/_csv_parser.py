"""Parser of CSV with one row per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._parser import Parser, RejectedLineError
from fairtransport.tabular.known_values import group_values, values_of_texts

if TYPE_CHECKING:
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["CsvParser"]

_NO_DELIMITER = frozenset('"\r\n\0.+-_')  # nor letters and digits: they occur in numbers


class CsvParser(Parser):
    """Parser of delimited fields, one row per line, whose names are in the header.

    Fields are quoted as in RFC 4180: a field that begins with a quote ends with one, and quotes within it are doubled;
    other fields have none. A row that contains newlines in quotes is several lines, each of which is rejected.

    Parameters
    ----------
    schema : InputSchema
    score_column : str
    header : bytes
        First line of the input.
    delimiter : str, default=","
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
                raise RejectedLineError("not a header")  # noqa: TRY301
            self.header = self._split(header.decode())
        except (UnicodeDecodeError, RejectedLineError):
            raise ValueError("The first line is not the header of a CSV file in UTF-8.") from None
        self._check_header()
        self.unused = tuple(name for name in self.header if name not in schema.columns)
        self.absent = self.absent.difference(self.header)
        self._index = {name: self.header.index(name) for name in schema.columns if name in self.header}
        self._numeric = [self._index[name] for name in schema.numeric]
        self._parsed_values = {
            name: values_of_texts(group_values(schema.groups, j)) for j, name in enumerate(schema.sensitive)
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
            raise RejectedLineError(f"has {len(fields)} fields; the header has {len(self.header)}")
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
                    raise RejectedLineError("text after a closing quote")
            else:
                stop = text.find(self._delimiter, start)
                stop = end if stop < 0 else stop
                fields.append(text[start:stop])
                if '"' in fields[-1]:
                    raise RejectedLineError("a quote in a field that is not quoted")
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
        raise RejectedLineError("a quote that is not closed in the line")
    return stop


def _number(cell: str, name: str) -> float:
    try:
        if cell.isascii() and "_" not in cell:
            return float(cell)
    except ValueError:
        pass
    raise RejectedLineError(f"column {name!r} is not a number")
