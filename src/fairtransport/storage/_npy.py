"""Conversion of arrays of numbers, booleans and text to NumPy's ``.npy`` format, and back."""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from fairtransport.storage._limits import MAX_DIMENSION, ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["from_npy", "to_npy"]

_MAX_HEADER = 1024
_MAX_AXES = 8
_LAST_CHARACTER = 0x10FFFF
_TYPE = rb"\|b1|\|[iu]1|<[iuf][248]|<U[1-9][0-9]{0,7}"
_SIDE = rb"(?:0|[1-9][0-9]{0,9})"
#: The header as NumPy writes it; a parser of Python literals would also accept ``(True, 3)`` as a shape.
_HEADER = re.compile(
    rb"\{'descr': '(%b)', 'fortran_order': False, 'shape': \((|%b,|%b(?:, %b)+)\), \} *\n" % (_TYPE, *[_SIDE] * 3)
)


def to_npy(array: NDArray[Any]) -> bytes:
    """Return the array as ``.npy`` bytes: version 1.0, little-endian, in C order; equal arrays give equal bytes."""
    array = np.asarray(array)
    plain = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False).reshape(array.shape)
    if re.fullmatch(_TYPE, plain.dtype.str.encode()) is None:
        raise TypeError(
            f"An array of type {array.dtype} cannot be stored; use numbers of up to 64 bits, booleans or text."
        )
    _check_characters(plain, TypeError("An array of text has characters that are not Unicode; it cannot be stored."))
    buffer = io.BytesIO()
    npy.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def from_npy(content: bytes | memoryview, *, name: str) -> NDArray[Any]:
    """Return the array of ``.npy`` bytes from an untrusted source; ``name`` is for the error message."""
    head = bytes(content[: 10 + _MAX_HEADER])
    size = int.from_bytes(head[8:10], "little")
    match = _HEADER.fullmatch(head[10 : 10 + size])
    if head[:8] != b"\x93NUMPY\x01\x00" or match is None:
        raise ModelFileError(
            f"Part {name!r} has no valid header of an array; only numbers, booleans and text in C order are read."
        )
    dtype, shape = np.dtype(match[1].decode()), tuple(map(int, match[2].replace(b",", b" ").split()))
    if len(shape) > _MAX_AXES or not all(side <= MAX_DIMENSION for side in shape):
        raise ModelFileError(f"Part {name!r} has a shape beyond the limits; the file is damaged.")
    body = memoryview(content)[10 + size :]
    if math.prod(shape) * dtype.itemsize != len(body):  # Python integers do not overflow
        raise ModelFileError(f"Part {name!r} has {len(body)} bytes, which does not match its shape.")
    array = np.frombuffer(body, dtype=dtype).reshape(shape)
    if dtype.kind == "b" and body and np.frombuffer(body, dtype=np.uint8).max() > 1:
        raise ModelFileError(f"Part {name!r} has booleans that are neither true nor false; the file is damaged.")
    _check_characters(array, ModelFileError(f"Part {name!r} has text that is not Unicode; the file is damaged."))
    return array.astype(dtype.newbyteorder("="), copy=True)


def _check_characters(array: NDArray[Any], error: Exception) -> None:
    if array.dtype.kind != "U" or array.size == 0:
        return
    characters = np.ascontiguousarray(array).reshape(-1).view(np.dtype("<u4"))
    if characters.max() > _LAST_CHARACTER or np.any((characters >= 0xD800) & (characters <= 0xDFFF)):
        raise error
