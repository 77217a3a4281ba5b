"""CSV, one row a line."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._parser import BadLineError, Parser, objects, values_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["CsvParser"]


class CsvParser(Parser):
    """Fields between delimiters, one row a line; the header names them."""

    def __init__(self, feeding: InputSchema, output: str, header: bytes, delimiter: str = ",") -> None:
        super().__init__(feeding, output)
        self._delimiter = delimiter
        try:
            self.header = next(csv.reader([header.decode("utf-8-sig")], delimiter=delimiter, strict=True))
        except (UnicodeDecodeError, csv.Error, StopIteration):
            raise ValueError("The first line is no header of a CSV file in UTF-8.") from None
        self._check_header()
        self._texts = [_texts_of(feeding, place) for place in range(len(feeding.sensitive))]

    def _check_header(self) -> None:
        twice = sorted({name for name in self.header if self.header.count(name) > 1})
        missing = [name for name in self.feeding.columns if name not in self.header]
        if missing:
            raise ValueError(
                f"The input lacks {len(missing)} of {len(self.feeding.columns)} columns that the model needs: "
                f"{', '.join(map(repr, missing[:10]))}. It has {len(self.header)}."
            )
        if any(name in self.feeding.columns for name in twice):
            raise ValueError("The header names a column twice that the model needs.")
        if self.output in self.header:
            raise ValueError(f"The input has a column {self.output!r} already; name another one with --column.")

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns that are not needed."""
        return tuple(name for name in self.header if name not in self.feeding.columns)

    def add(self, line: bytes, score: bytes) -> bytes:
        """Put the score behind the last field."""
        return b"%b%b%b\n" % (line, self._delimiter.encode(), score)

    def _fast(self, lines: list[bytes], content: bytes) -> Any:  # noqa: ARG002 - JSON needs them
        arrow, module = self._arrow["arrow"], self._arrow["csv"]
        if len(set(self.header)) < len(self.header) or b'"' in content:  # Arrow forgives quotes that are not closed
            return None
        kinds = dict.fromkeys(self.feeding.columns, arrow.string())
        kinds |= dict.fromkeys(self.feeding.numbers, arrow.float64())
        if any(name in self.feeding.sensitive for name in self.feeding.numbers):
            return None
        return module.read_csv(
            io.BytesIO(content),
            read_options=module.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=self.header, encoding="utf-8"
            ),
            parse_options=module.ParseOptions(delimiter=self._delimiter),
            convert_options=module.ConvertOptions(
                column_types=kinds, include_columns=list(kinds), strings_can_be_null=False, null_values=[]
            ),
        )

    def _groups_of(self, columns: dict[str, NDArray[Any]]) -> Groups | dict[str, NDArray[Any]] | None:
        held = dict(columns)
        for name, texts in zip(self.feeding.sensitive, self._texts, strict=True):
            if texts:
                held[name] = objects([texts.get(value, value) for value in columns[name]])
        return super()._groups_of(held)

    def _sensitive_value(self, name: str, value: Any) -> Any:
        return self._texts[self.feeding.sensitive.index(name)].get(value, value)

    def _fields(self, line: bytes) -> dict[str, Any]:
        try:
            fields = next(csv.reader([line.decode("utf-8")], delimiter=self._delimiter, strict=True))
        except UnicodeDecodeError:
            raise BadLineError("not UTF-8") from None
        except (csv.Error, StopIteration):
            raise BadLineError("not a row of a CSV file") from None
        if len(fields) != len(self.header):
            raise BadLineError(f"has {len(fields)} fields; the header has {len(self.header)}")
        return dict(zip(self.header, fields, strict=True))

    def _number(self, value: Any) -> float | None:
        if not value.isascii() or "_" in value:
            return None
        try:
            return float(value)
        except ValueError:
            return None


def _texts_of(feeding: InputSchema, place: int) -> dict[str, Any]:
    """Return the value behind each text of a CSV file, where values are no text; an empty field is a missing one."""
    values = values_at(feeding, place)
    if all(isinstance(value, str) for value in values):
        return {}
    told: dict[str, Any] = {}
    for value in values:
        if value is None:
            told[""] = None
        elif isinstance(value, bool):
            told |= {str(value): value, str(value).lower(): value, str(int(value)): value}
        elif isinstance(value, (int, float)):
            told |= {repr(value): value, repr(float(value)): value}
            if float(value).is_integer():
                told[str(int(value))] = value
    return told
