"""Strict JSON: without duplicate keys, without NaN, and of limited size and depth."""

from __future__ import annotations

import json
import math
from typing import Any

# Limits of what is read from a file, and the error of a file beyond them.

MAX_BYTES = 256 << 20
"""Bytes of a file. Parts are not compressed, so none is larger than the file."""

MAX_SCHEMA_BYTES = 4 << 20
"""Bytes of the JSON part, whose text needs up to eight times as much memory."""

MAX_SCHEMA_VALUES = 300_000
"""Values and keys of the JSON part, each of which needs up to 180 bytes of memory."""

MAX_PARTS = 10_000
MAX_DEPTH = 100
MAX_DIMENSION = (1 << 31) - 1
"""Length of an axis of an array, which the size in bytes does not limit if another axis is empty."""


class ModelFileError(ValueError):
    """A file that is damaged, is not a model file, or has an unknown version.

    The message says what to do. It names parts and sizes, and never quotes a value from the file.
    """


def to_json(value: Any) -> bytes:
    """Return the value as indented JSON; equal values give equal bytes."""
    try:
        text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            "A schema may contain dicts with text keys, lists, text, finite numbers, booleans and None only "
            f"({type(error).__name__})."
        ) from None
    content = text.encode("ascii")
    if len(content) > MAX_SCHEMA_BYTES or _n_values(content) > MAX_SCHEMA_VALUES or _depth(value) > MAX_DEPTH:
        raise ValueError(
            f"The schema has {len(content)} bytes of JSON; at most {MAX_SCHEMA_BYTES} bytes, {MAX_SCHEMA_VALUES} "
            f"values and {MAX_DEPTH} levels can be stored. Put long lists into arrays."
        )
    return content


def from_json(content: bytes | memoryview, *, name: str) -> Any:
    """Return the value of JSON from an untrusted source; ``name`` is for the error message."""
    if len(content) > MAX_SCHEMA_BYTES:
        raise ModelFileError(f"Part {name!r} has {len(content)} bytes; at most {MAX_SCHEMA_BYTES} are read.")
    content = bytes(content)
    if _n_values(content) > MAX_SCHEMA_VALUES:  # before Python objects are made of them
        raise ModelFileError(f"Part {name!r} has more than {MAX_SCHEMA_VALUES} values; do not trust the file.")
    try:
        value = json.loads(
            content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse, parse_float=_finite
        )
        depth = _depth(value)
    except (ValueError, RecursionError):  # bad JSON, text or numbers; too deep
        raise ModelFileError(f"Part {name!r} is not valid JSON; the file is damaged.") from None
    if depth > MAX_DEPTH:
        raise ModelFileError(f"Part {name!r} is nested more than {MAX_DEPTH} levels deep; do not trust the file.")
    return value


def _n_values(content: bytes) -> int:
    """Return a bound on the number of values and keys: each follows one of four characters."""
    return sum(map(content.count, (b"[", b"{", b":", b",")))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _depth(value: Any) -> int:
    """Return the number of nested levels, counted without recursion so that no depth exhausts the stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
                inner.extend(key for key in item if isinstance(key, str) and not key.isascii())
            elif isinstance(item, (list, tuple)):
                inner.extend(item)
            elif isinstance(item, str) and not item.isascii():
                item.encode("utf-8")
        level = inner
    return depth
