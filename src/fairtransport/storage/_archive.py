"""Zip archives without compression, of one form: equal parts give equal bytes, and no other bytes are read."""

from __future__ import annotations

import re
import stat
import struct
import zlib
from typing import TYPE_CHECKING

from fairtransport.storage._limits import MAX_BYTES, MAX_PARTS, ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_zip", "with_comment", "write_zip"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")  # no "..", "/", "\\", ":" or NUL
_MAX_NAME = 400
_MAX_ZIP = (1 << 31) - 1  # bytes; beyond, a zip has another form
_MAX_COMMENT = 1000

_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_VERSION = 20  # of the zip format, that reading needs
_UNIX = 3
_EARLIEST = 0x21  # 1 January 1980, the first date of a zip; files have no time, so that they can be equal
_MODE = (stat.S_IFREG | 0o644) << 16

_FOREIGN = (
    "The file is damaged or incomplete, or was not written by fairtransport: it has bytes that a model file does not "
    "have. Copy it again, or use a backup."
)


def write_zip(parts: Mapping[str, bytes], *, comment: bytes) -> bytes:
    """Return the zip of the parts, sorted by name."""
    for name in parts:
        if not _is_name(name):
            raise ValueError(f"{name!r} is not a valid name of a part; use letters, digits, '_', '-', '.' and '/'.")
    if len(parts) > MAX_PARTS:
        raise ValueError(f"A file can have at most {MAX_PARTS} parts; got {len(parts)}.")
    size = sum(map(len, parts.values()))
    if size > _MAX_ZIP:
        raise ValueError(f"A file can have at most {_MAX_ZIP} bytes; the parts have {size}.")
    pieces, directory, at = [], _Directory(), 0
    for name in sorted(parts):
        part, crc = parts[name], zlib.crc32(parts[name])
        header = _local_header(name.encode(), crc, len(part))
        directory.add(name.encode(), crc, len(part), at)
        pieces += [header, part]
        at += len(header) + len(part)
    return b"".join([*pieces, directory.to_bytes(at, comment)])


def read_zip(content: bytes, *, max_bytes: int = MAX_BYTES) -> tuple[dict[str, memoryview], bytes]:
    """Return the parts and the comment of a zip from an untrusted source.

    Parameters
    ----------
    content : bytes
    max_bytes : int
        Largest size. Parts are not compressed and not copied.

    Raises
    ------
    ModelFileError
        If `write_zip` would not write exactly these bytes for these parts and this comment.
    """
    if len(content) > max_bytes:
        raise ModelFileError(
            f"The file has {len(content)} bytes, more than max_bytes={max_bytes}. If you trust it, raise max_bytes=."
        )
    if content[:4] != b"PK\x03\x04":
        raise ModelFileError("This is not a model file: it does not begin like one. Check the path.")
    view, directory, at, last = memoryview(content), _Directory(), 0, ""
    parts: dict[str, memoryview] = {}
    while content[at : at + 4] == b"PK\x03\x04" and len(parts) < MAX_PARTS:
        if len(content) < at + _LOCAL.size:
            raise ModelFileError(_FOREIGN)
        *_, crc, size, _, name_size, _ = _LOCAL.unpack_from(content, at)
        raw = content[at + _LOCAL.size : at + _LOCAL.size + name_size]
        begin = at + _LOCAL.size + name_size
        part, name = view[begin : begin + size], raw.decode("ascii", errors="replace")
        if (
            content[at:begin] != _local_header(raw, crc, size)
            or not _is_name(name)
            or name <= last
            or len(part) != size
            or zlib.crc32(part) != crc
        ):
            raise ModelFileError(_FOREIGN)
        directory.add(raw, crc, size, at)
        parts[name], last, at = part, name, begin + size
    comment = content[at + directory.size + _END.size :]
    if len(comment) > _MAX_COMMENT or view[at:] != directory.to_bytes(at, comment):
        raise ModelFileError(_FOREIGN)
    return parts, comment


def with_comment(content: bytes, comment: bytes) -> bytes:
    """Return a zip with another comment."""
    _, old = read_zip(content, max_bytes=len(content))
    return content[: len(content) - len(old) - 2] + struct.pack("<H", len(comment)) + comment


class _Directory:
    """The list of the parts at the end of a zip."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self.size = 0

    def add(self, name: bytes, crc: int, size: int, at: int) -> None:
        """Add a part that begins at a given byte."""
        form = (_UNIX << 8 | _VERSION, _VERSION, 0, 0, 0, _EARLIEST)
        entry = _ENTRY.pack(b"PK\x01\x02", *form, crc, size, size, len(name), 0, 0, 0, 0, _MODE, at) + name
        self._entries.append(entry)
        self.size += len(entry)

    def to_bytes(self, at: int, comment: bytes) -> bytes:
        """Return the end of a zip: the entries, which begin at a given byte, and the comment."""
        n_parts = len(self._entries)
        end = _END.pack(b"PK\x05\x06", 0, 0, n_parts, n_parts, self.size, at, len(comment))
        return b"".join([*self._entries, end, comment])


def _local_header(name: bytes, crc: int, size: int) -> bytes:
    return _LOCAL.pack(b"PK\x03\x04", _VERSION, 0, 0, 0, _EARLIEST, crc, size, size, len(name), 0) + name


def _is_name(name: str) -> bool:
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None
