"""What a file may ask of the reader, and the error for one that asks more."""

from __future__ import annotations

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_DIMENSION", "MAX_PARTS", "MAX_SCHEMA_BYTES", "ModelFileError"]

MAX_BYTES = 256 << 20
"""Bytes of a whole file. Nothing in it is compressed, so no part becomes larger than the file."""

MAX_SCHEMA_BYTES = 4 << 20
"""Bytes of the JSON part. Python's objects take up to some twenty times as much memory as their text."""

MAX_PARTS = 10_000
MAX_DEPTH = 100
MAX_DIMENSION = (1 << 31) - 1
"""Of an array. Its size is checked against the bytes that are there, too; this is for arrays with an empty axis."""


class ModelFileError(ValueError):
    """A file that cannot be trusted or understood: damaged, truncated, not one of ours, or from another version.

    The message says what to do. It holds names of parts and sizes, never a value from the file.
    """
