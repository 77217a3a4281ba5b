"""Universal Binary JSON, as far as XGBoost uses it: lengths before contents, and arrays of numbers as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["from_ubjson", "to_ubjson"]

_DTYPES = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_MARKERS = {np.dtype(dtype).newbyteorder("="): marker for marker, dtype in _DTYPES.items()}


def to_ubjson(value: Any) -> bytearray:
    """Return the bytes of dicts, sequences, text, integers, floats (in single precision) and arrays of numbers."""
    out = bytearray()
    _write(value, out)
    return out


def _write(value: Any, out: bytearray) -> None:
    if isinstance(value, dict):
        out += b"{"
        for key, part in value.items():
            _write_text(key, out)
            _write(part, out)
        out += b"}"
    elif isinstance(value, np.ndarray):
        marker = _MARKERS[value.dtype]
        out += f"[${marker}#".encode()
        _write_number("L", value.size, out)
        out += value.astype(_DTYPES[marker]).tobytes()
    elif isinstance(value, str):
        out += b"S"
        _write_text(value, out)
    elif isinstance(value, Sequence):
        out += b"[#"
        _write_number("L", len(value), out)
        for part in value:
            _write(part, out)
    elif isinstance(value, int):
        bits = next((bits for bits in (7, 15, 31) if abs(value) < (1 << bits) - (value > 0)), 63)
        _write_number({7: "i", 15: "I", 31: "l", 63: "L"}[bits], value, out)
    else:
        _write_number("d", value, out)


def _write_text(text: str, out: bytearray) -> None:
    content = text.encode()
    _write_number("L", len(content), out)
    out += content


def _write_number(marker: str, value: float, out: bytearray) -> None:
    out += marker.encode() + np.array(value, dtype=_DTYPES[marker]).tobytes()


def from_ubjson(content: bytes) -> Any:
    """Return the value of what XGBoost wrote. This does not validate: it is not for content from a file."""
    return _Parser(content).read()


class _Parser:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def read(self) -> Any:
        marker = self._marker()
        if marker == "{":
            result = {}
            while self._content[self._at] != ord("}"):
                key = self._text()
                result[key] = self.read()
            self._at += 1
            return result
        if marker == "[":
            return self._array()
        if marker == "S":
            return self._text()
        return self._numbers(marker, 1)[0].item()

    def _array(self) -> Any:
        marker = self._marker()
        if marker == "$":
            kind = self._marker()
            self._marker()
            return self._numbers(kind, self._length())
        return [self.read() for _ in range(self._length())]

    def _marker(self) -> str:
        self._at += 1
        return chr(self._content[self._at - 1])

    def _length(self) -> int:
        return int(self._numbers(self._marker(), 1)[0])

    def _text(self) -> str:
        length = self._length()
        self._at += length
        return self._content[self._at - length : self._at].decode()

    def _numbers(self, marker: str, size: int) -> Any:
        dtype = np.dtype(_DTYPES[marker])
        numbers = np.frombuffer(self._content, dtype, size, self._at)
        self._at += size * dtype.itemsize
        return numbers.astype(dtype.newbyteorder("="))
