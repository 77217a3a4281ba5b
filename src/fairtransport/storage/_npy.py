"""Conversion of arrays of numbers, booleans and text to NumPy's ``.npy`` format, and back."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from fairtransport.storage._limits import MAX_DIMENSION, ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["from_npy", "to_npy"]

_KINDS = "biufU"
_MAX_HEADER = 1024
_MAX_AXES = 8
_LAST_CHARACTER = 0x10FFFF


def to_npy(array: NDArray[Any]) -> bytes:
    """Return the array as ``.npy`` bytes: version 1.0, little-endian, in C order; equal arrays give equal bytes."""
    array = np.asarray(array)
    if not _is_plain(array.dtype):
        raise TypeError(
            f"An array of type {array.dtype} cannot be stored; use numbers of up to 64 bits, booleans or text."
        )
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    _check_characters(plain, TypeError("An array of text has characters that are not Unicode; it cannot be stored."))
    buffer = io.BytesIO()
    npy.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def from_npy(content: bytes, *, name: str) -> NDArray[Any]:
    """Return the array of ``.npy`` bytes from an untrusted source; ``name`` is for the error message."""
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        shape, fortran, dtype = npy.read_array_header_1_0(stream, max_header_size=_MAX_HEADER)
    except Exception:  # noqa: BLE001 - hostile content may raise anything in the parser
        raise ModelFileError(f"Part {name!r} has no valid header of an array; the file is damaged.") from None
    if version != (1, 0):
        raise ModelFileError(f"Part {name!r} is an array in format version {version}, not 1.0.")
    if fortran or not _is_plain(dtype) or dtype != dtype.newbyteorder("<"):
        raise ModelFileError(
            f"Part {name!r} is an array of a type that is not allowed; only numbers, booleans and text in C order are."
        )
    body = memoryview(content)[stream.tell() :]
    if len(shape) > _MAX_AXES or not all(0 <= side <= MAX_DIMENSION for side in shape):
        raise ModelFileError(f"Part {name!r} has a shape beyond the limits; the file is damaged.")
    if math.prod(shape) * dtype.itemsize != len(body):  # Python integers do not overflow
        raise ModelFileError(f"Part {name!r} has {len(body)} bytes, which does not match its shape.")
    array = np.frombuffer(body, dtype=dtype).reshape(shape)
    if dtype.kind == "b" and body and np.frombuffer(body, dtype=np.uint8).max() > 1:
        raise ModelFileError(f"Part {name!r} has booleans that are neither true nor false; the file is damaged.")
    _check_characters(array, ModelFileError(f"Part {name!r} has text that is not Unicode; the file is damaged."))
    return array.astype(dtype.newbyteorder("="), copy=True)


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return (
        dtype.kind in _KINDS and dtype.shape == () and dtype.itemsize > 0 and (dtype.kind == "U" or dtype.itemsize <= 8)
    )


def _check_characters(array: NDArray[Any], error: Exception) -> None:
    if array.dtype.kind != "U" or array.size == 0:
        return
    characters = np.ascontiguousarray(array).reshape(-1).view(np.dtype("<u4"))
    if np.any((characters > _LAST_CHARACTER) | ((characters >= 0xD800) & (characters <= 0xDFFF))):
        raise error
