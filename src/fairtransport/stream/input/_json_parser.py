"""Parser of JSON lines."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._parser import ParsedBatch, Parser, RejectedLineError, sensitive_values

if TYPE_CHECKING:
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["JsonParser"]


class JsonParser(Parser):
    """Parser of lines that each hold one JSON object.

    Parameters
    ----------
    schema : InputSchema
    score_column : str
    """

    def __init__(self, schema: InputSchema, score_column: str) -> None:
        super().__init__(schema, score_column)
        self._score_key = json.dumps(score_column).encode()
        self._arrow_schema = None if self._arrow is None else self._make_arrow_schema()

    def parse(self, lines: list[bytes]) -> ParsedBatch:
        """Parse a batch of lines; the first line ever says which columns are unused."""
        if self.unused is None and lines:
            self.unused = self._unused_fields(lines[0])
        return super().parse(lines)

    def append_score(self, line: bytes, score: bytes) -> bytes:
        """Return the line with the score as its last field, and a newline."""
        return b"%b,%b:%b}\n" % (line.rstrip()[:-1].rstrip(), self._score_key, score)

    def _unused_fields(self, line: bytes) -> tuple[str, ...]:
        try:
            return tuple(name for name in self._fields(line) if name not in self.schema.columns)
        except RejectedLineError:
            return ()

    def _make_arrow_schema(self) -> Any:
        """Return the Arrow type of each column; None where the labels of groups are of several types."""
        arrow = self._arrow["arrow"]
        if self.schema.raw:  # Arrow would infer their types, and read some text as timestamps
            return None
        types = {}
        for index, name in enumerate(self.schema.sensitive):
            values = {type(value) for value in sensitive_values(self.schema, index)}
            if values not in ({str}, {int}):
                return None
            types[name] = arrow.string() if values == {str} else arrow.int64()
        types |= dict.fromkeys(self.schema.numeric, arrow.float64())
        if any(name in self.schema.sensitive for name in self.schema.numeric):
            return None
        return arrow.schema(list(types.items()))

    def _read_table(self, lines: list[bytes], content: bytes) -> Any:
        if self._arrow_schema is None or not all(line[:1] == b"{" for line in lines):
            return None
        if self._score_key in content or b"\\u" in content:
            return None
        module = self._arrow["json"]
        return module.read_json(
            io.BytesIO(content),
            read_options=module.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=module.ParseOptions(explicit_schema=self._arrow_schema, unexpected_field_behavior="ignore"),
        )

    def _fields(self, line: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise RejectedLineError("not UTF-8") from None
        except (ValueError, RecursionError):
            raise RejectedLineError("not JSON") from None
        if not isinstance(fields, dict):
            raise RejectedLineError("not a JSON object")
        if self.score_column in fields:
            raise RejectedLineError(f"already has a column {self.score_column!r}; name another one with --column")
        return fields

    def _number(self, value: Any) -> float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        try:
            return float(value)
        except OverflowError:
            return math.inf
