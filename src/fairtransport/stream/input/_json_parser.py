"""JSON lines."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._parser import BadLineError, Parser, values_at

if TYPE_CHECKING:
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["JsonParser"]


class JsonParser(Parser):
    """One JSON object a line."""

    def __init__(self, feeding: InputSchema, output: str) -> None:
        super().__init__(feeding, output)
        self._needle = json.dumps(output).encode()
        self._schema = None if self._arrow is None else self._make_schema()
        #: Columns that were seen beside those needed, once a line was looked at.
        self.unused: tuple[str, ...] | None = None

    def add(self, line: bytes, score: bytes) -> bytes:
        """Put the score behind the last field."""
        return b"%b,%b:%b}\n" % (line.rstrip()[:-1].rstrip(), self._needle, score)

    def look(self, line: bytes) -> list[str]:
        """Return the fields of a line that are not needed; none for a bad line."""
        try:
            return [name for name in self._fields(line) if name not in self.feeding.columns]
        except BadLineError:
            return []

    def _make_schema(self) -> Any:
        """Name the Arrow type of each column; None where labels of groups have no one type."""
        arrow = self._arrow["arrow"]
        if self.feeding.cells:  # Arrow would guess their types, and take some texts for times
            return None
        kinds = dict.fromkeys(self.feeding.texts, arrow.string())
        for place, name in enumerate(self.feeding.sensitive):
            values = {type(value) for value in values_at(self.feeding, place)}
            if values not in ({str}, {int}):
                return None
            kinds[name] = arrow.string() if values == {str} else arrow.int64()
        kinds |= dict.fromkeys(self.feeding.numbers, arrow.float64())
        if any(name in self.feeding.sensitive for name in self.feeding.numbers):
            return None
        return arrow.schema(list(kinds.items()))

    def _fast(self, lines: list[bytes], content: bytes) -> Any:
        if self._schema is None or not all(line[:1] == b"{" for line in lines):
            return None
        if self._needle in content or b"\\u" in content:
            return None
        module = self._arrow["json"]
        return module.read_json(
            io.BytesIO(content),
            read_options=module.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=module.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore"),
        )

    def _fields(self, line: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise BadLineError("not UTF-8") from None
        except (ValueError, RecursionError):
            raise BadLineError("not JSON") from None
        if not isinstance(fields, dict):
            raise BadLineError("not a JSON object")
        if self.output in fields:
            raise BadLineError(f"has a column {self.output!r} already; name another one with --column")
        return fields

    def _number(self, value: Any) -> float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        try:
            return float(value)
        except OverflowError:
            return math.inf
