"""Parser of CSV with one row per line."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._parser import Parser, RejectedLineError, object_array, sensitive_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["CsvParser"]


class CsvParser(Parser):
    """Parser of delimited fields, one row per line, whose names are in the header.

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
        self._delimiter = delimiter
        try:
            self.header = next(csv.reader([header.decode("utf-8-sig")], delimiter=delimiter, strict=True))
        except (UnicodeDecodeError, csv.Error, StopIteration):
            raise ValueError("The first line is not the header of a CSV file in UTF-8.") from None
        self._check_header()
        self.unused = tuple(name for name in self.header if name not in schema.columns)
        self._parsed_values = [_parsed_values(schema, index) for index in range(len(schema.sensitive))]

    def _check_header(self) -> None:
        repeated = {name for name in self.header if self.header.count(name) > 1}
        missing = [name for name in self.schema.columns if name not in self.header]
        if missing:
            raise ValueError(
                f"The input lacks {len(missing)} of {len(self.schema.columns)} columns that the model needs: "
                f"{', '.join(map(repr, missing[:10]))}. It has {len(self.header)} columns."
            )
        if any(name in self.schema.columns for name in repeated):
            raise ValueError("The header names a column twice that the model needs.")
        if self.score_column in self.header:
            raise ValueError(f"The input already has a column {self.score_column!r}; name another one with --column.")

    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""
        return b"%b%b%b\n" % (line, self._delimiter.encode(), score)

    def _read_table(self, lines: list[bytes], content: bytes) -> Any:  # noqa: ARG002 - JSON needs the lines
        arrow, module = self._arrow["arrow"], self._arrow["csv"]
        if len(set(self.header)) < len(self.header) or b'"' in content:  # Arrow accepts quotes that are not closed
            return None
        types = dict.fromkeys(self.schema.columns, arrow.string())
        types |= dict.fromkeys(self.schema.numeric, arrow.float64())
        if any(name in self.schema.sensitive for name in self.schema.numeric):
            return None
        return module.read_csv(
            io.BytesIO(content),
            read_options=module.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=self.header, encoding="utf-8"
            ),
            parse_options=module.ParseOptions(delimiter=self._delimiter),
            convert_options=module.ConvertOptions(
                column_types=types, include_columns=list(types), strings_can_be_null=False, null_values=[]
            ),
        )

    def _groups_of(self, columns: dict[str, NDArray[Any]]) -> Groups | dict[str, NDArray[Any]] | None:
        converted = dict(columns)
        for name, values in zip(self.schema.sensitive, self._parsed_values, strict=True):
            if values:
                converted[name] = object_array([values.get(field, field) for field in columns[name]])
        return super()._groups_of(converted)

    def _sensitive_value(self, name: str, value: Any) -> Any:
        return self._parsed_values[self.schema.sensitive.index(name)].get(value, value)

    def _fields(self, line: bytes) -> dict[str, Any]:
        try:
            fields = next(csv.reader([line.decode("utf-8")], delimiter=self._delimiter, strict=True))
        except UnicodeDecodeError:
            raise RejectedLineError("not UTF-8") from None
        except (csv.Error, StopIteration):
            raise RejectedLineError("not a row of a CSV file") from None
        if len(fields) != len(self.header):
            raise RejectedLineError(f"has {len(fields)} fields; the header has {len(self.header)}")
        return dict(zip(self.header, fields, strict=True))

    def _number(self, value: Any) -> float | None:
        if not value.isascii() or "_" in value:
            return None
        try:
            return float(value)
        except ValueError:
            return None


def _parsed_values(schema: InputSchema, index: int) -> dict[str, Any]:
    """Map the texts of a sensitive column to its values; empty where all values are text.

    An empty field stands for a missing value.
    """
    values = sensitive_values(schema, index)
    if all(isinstance(value, str) for value in values):
        return {}
    parsed: dict[str, Any] = {}
    for value in values:
        if value is None:
            parsed[""] = None
        elif isinstance(value, bool):
            parsed |= {str(value): value, str(value).lower(): value, str(int(value)): value}
        elif isinstance(value, (int, float)):
            parsed |= {repr(value): value, repr(float(value)): value}
            if float(value).is_integer():
                parsed[str(int(value))] = value
    return parsed
