"""Limits of what is read from a file, and the error of a file beyond them."""

from __future__ import annotations

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_DIMENSION",
    "MAX_PARTS",
    "MAX_SCHEMA_BYTES",
    "MAX_SCHEMA_VALUES",
    "ModelFileError",
]

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
