"""Zip archives without compression; equal parts give equal bytes."""

from __future__ import annotations

import io
import re
import stat
import zipfile
from typing import TYPE_CHECKING

from fairtransport.storage._limits import MAX_BYTES, MAX_PARTS, ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_zip", "write_zip"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")  # no "..", "/", "\\", ":" or NUL
_MAX_NAME = 400
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip; files have no time, so that they can be equal
_MODE = (stat.S_IFREG | 0o644) << 16
_UNIX = 3


def write_zip(parts: Mapping[str, bytes], *, comment: bytes) -> bytes:
    """Return the zip of the parts, sorted by name."""
    for name in parts:
        if not _is_name(name):
            raise ValueError(f"{name!r} is not a valid name of a part; use letters, digits, '_', '-', '.' and '/'.")
    if len(parts) > MAX_PARTS:
        raise ValueError(f"A file can have at most {MAX_PARTS} parts; got {len(parts)}.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = comment
        for name in sorted(parts):
            info = zipfile.ZipInfo(name, _EARLIEST)
            info.create_system, info.external_attr = _UNIX, _MODE
            archive.writestr(info, parts[name])
    return buffer.getvalue()


def read_zip(content: bytes, *, max_bytes: int = MAX_BYTES) -> tuple[dict[str, bytes], bytes]:
    """Return the parts and the comment of a zip from an untrusted source.

    Parameters
    ----------
    content : bytes
    max_bytes : int
        Largest size. Parts are not compressed, so they are never larger than the file.

    Raises
    ------
    ModelFileError
        For anything that `write_zip` does not write: other names, compression, links, encryption, duplicate names,
        overlapping parts.
    """
    if len(content) > max_bytes:
        raise ModelFileError(
            f"The file has {len(content)} bytes, more than max_bytes={max_bytes}. If you trust it, raise max_bytes=."
        )
    if content[:4] != b"PK\x03\x04":
        raise ModelFileError("This is not a model file: it does not begin like one. Check the path.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            _check(infos, len(content))
            return {info.filename: archive.read(info) for info in infos}, archive.comment
    except ModelFileError:
        raise
    except Exception:  # noqa: BLE001 - hostile content may raise anything in the zip library
        raise ModelFileError(
            "The file is damaged or incomplete: it cannot be read as a zip. Copy it again, or use a backup."
        ) from None


def _check(infos: list[zipfile.ZipInfo], size: int) -> None:
    if len(infos) > MAX_PARTS:
        raise ModelFileError(f"The file has {len(infos)} parts; at most {MAX_PARTS} are read.")
    names = [info.filename for info in infos]
    if len(set(names)) != len(names):
        raise ModelFileError("The file has two parts with the same name; do not trust it.")
    for info in infos:
        plain = info.compress_type == zipfile.ZIP_STORED and info.flag_bits == 0 and not info.extra
        if (
            not plain
            or info.external_attr != _MODE
            or info.orig_filename != info.filename
            or not _is_name(info.filename)
        ):
            raise ModelFileError(
                "The file has a part that is compressed, encrypted, a link or a folder, or has an invalid name; do not "
                "trust it."
            )
        if info.file_size != info.compress_size:
            raise ModelFileError("The file is damaged: a part has two sizes.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError("The file is damaged: its parts would be larger than the file.")


def _is_name(name: str) -> bool:
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None
