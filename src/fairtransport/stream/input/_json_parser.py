"""Parser of JSON lines."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._parser import Parser, RejectedLineError
from fairtransport.tabular.value_parsing import normalize_text

if TYPE_CHECKING:
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["JsonParser"]

_NUMBERS = frozenset({int, float})


class JsonParser(Parser):
    """Parser of lines that each hold one JSON object, without repeated keys.

    Parameters
    ----------
    schema : InputSchema
    score_column : str
    """

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
        except RejectedLineError:
            raise
        except (ValueError, RecursionError):
            raise RejectedLineError("not JSON") from None
        if not isinstance(fields, dict):
            raise RejectedLineError("not a JSON object")
        if self.score_column in fields:
            raise RejectedLineError(f"already has a column {self.score_column!r}; name another one with --column")
        if not self._required <= fields.keys():
            missing = next(name for name in self.schema.required if name not in fields)
            raise RejectedLineError(f"missing column {missing!r}")
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
        return [*map(_number, values, self.schema.numeric)]

    def _cell(self, fields: dict[str, Any], name: str) -> str | bool | None:
        value = fields[name]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return normalize_text(value)  # as CSV has it: 1 and True, which are equal, must not be confused
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, str):
            raise RejectedLineError(f"column {name!r} is not a single value")
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
        raise RejectedLineError("a key is repeated")
    return fields


def _number(value: Any, name: str) -> float:
    if type(value) not in _NUMBERS:
        raise RejectedLineError(f"column {name!r} is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _check_unicode(value: str, name: str) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            raise RejectedLineError(f"column {name!r} is not valid Unicode") from None
