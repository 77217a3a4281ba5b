"""One file of a schema (JSON) and arrays, with a checksum for each part; what models and checkpoints are kept in.

The file is a plain zip: ``schema.json`` says the format, its version, the libraries that wrote it and the sha256 of
every array, ``arrays/*.npy`` are the arrays, and the comment of the zip holds the sha256 of ``schema.json``.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fairtransport.storage._archive import read_zip, write_zip
from fairtransport.storage._atomic import write_atomically
from fairtransport.storage._limits import MAX_BYTES, ModelFileError
from fairtransport.storage._npy import from_npy, to_npy
from fairtransport.storage.schema import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Container",
    "pack_container",
    "read_container",
    "unpack_container",
    "write_container",
]

FORMAT = "fairtransport"
FORMAT_VERSION = 1
_SCHEMA = "schema.json"
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_SHOWN = re.compile(r"[A-Za-z0-9_.+!-]{1,40}")  # a version that an error text may repeat


@dataclass(frozen=True, eq=False, repr=False)
class Container:
    """What a file holds, checked part by part.

    Attributes
    ----------
    kind : str
        What it is: ``"model"``, or the name that a writer of checkpoints chose.
    schema : dict
        What the writer said, as JSON has it.
    arrays : dict of str to ndarray
    made_by : dict of str to str
        Names and versions of the libraries that wrote it.
    reveals : str
        What the file tells about the people in the data.
    format_version : int
    """

    kind: str
    schema: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    made_by: dict[str, str]
    reveals: str
    format_version: int

    def __repr__(self) -> str:
        return f"Container(kind={self.kind!r}, {len(self.arrays)} arrays, format_version={self.format_version})"


def pack_container(
    kind: str,
    schema: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    reveals: str = "",
    versions: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bytes of a container; equal content, written by equal libraries, gives equal bytes.

    Parameters
    ----------
    kind : str
        What it is, in lower-case letters, such as ``"checkpoint"``.
    schema : dict
        Anything that JSON can hold: text keys, finite numbers.
    arrays : dict of str to ndarray
        Numbers, booleans or text, no objects. Names are letters, digits, ``_``, ``-`` and ``.``; ``/`` makes folders.
    reveals : str, optional
        What the file tells about the people in the data, for those who keep it.
    versions : dict of str to str, optional
        Further libraries that the content depends on.

    Returns
    -------
    bytes

    Examples
    --------
    >>> content = pack_container("note", {"n": 2}, {"weights": np.array([0.5, 0.5])})
    >>> unpack_container(content).arrays["weights"].tolist()
    [0.5, 0.5]
    """
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ValueError("kind must be a short name in lower-case letters, digits, '_', '-' and '.'.")
    parts = {f"arrays/{name}.npy": to_npy(array) for name, array in arrays.items()}
    made_by = {"fairtransport": _own_version(), "numpy": np.__version__, "python": platform.python_version()}
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "made_by": {**made_by, **(versions or {})},
        "reveals": reveals,
        "content": dict(schema),
        "parts": {name: {"bytes": len(part), "sha256": _sha256(part)} for name, part in parts.items()},
    }
    parts[_SCHEMA] = to_json(head)
    return write_zip(parts, comment=_comment(parts[_SCHEMA]))


def unpack_container(content: bytes, *, kind: str | None = None, max_bytes: int = MAX_BYTES) -> Container:
    """Return what is in the bytes of a container, whoever made them.

    Parameters
    ----------
    content : bytes
    kind : str, optional
        What it must be.
    max_bytes : int, default 256 MiB
        Longer contents are refused. Reading takes up to three times as many bytes of memory, and 100 MiB.

    Returns
    -------
    Container

    Raises
    ------
    ModelFileError
        When it is damaged, not one of ours, of another kind or of an unknown version.
    """
    parts, comment = read_zip(content, max_bytes=max_bytes)
    if _SCHEMA not in parts:
        raise ModelFileError("This zip is no model file: it has no schema.json. Check the path.")
    text = parts.pop(_SCHEMA)
    head = from_json(text, name=_SCHEMA)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ModelFileError("This zip is no model file of fairtransport. Check the path.")
    read = _READERS.get(_version_of(head))
    if read is None:
        raise ModelFileError(_unknown_version(head))
    if comment != _comment(text):
        raise ModelFileError(
            "The file is damaged: its schema does not match its checksum. Copy it again, or use a backup."
        )
    made = read(head, parts)
    if kind is not None and made.kind != kind:
        raise ModelFileError(f"The file holds a {made.kind!r}, but a {kind!r} is needed. Check the path.")
    return made


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    schema: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    reveals: str = "",
    versions: Mapping[str, str] | None = None,
) -> Path:
    """Write a container atomically; see `pack_container` for the parameters and `write_atomically` for the promise.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = write_container(Path(folder.name) / "state.ft", "checkpoint", {"batch": 7}, {"theta": np.zeros(3)})
    >>> read_container(path, kind="checkpoint").schema
    {'batch': 7}
    >>> folder.cleanup()
    """
    return write_atomically(path, pack_container(kind, schema, arrays, reveals=reveals, versions=versions))


def read_container(path: str | os.PathLike[str], *, kind: str | None = None, max_bytes: int = MAX_BYTES) -> Container:
    """Read a container; see `unpack_container`. A path that is no plain file raises ModelFileError."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe must not block us
    with os.fdopen(os.open(Path(path), flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ModelFileError("The path is no plain file (a folder, pipe or device). Check it.")
        if found.st_size <= max_bytes:
            content = file.read(found.st_size + 1)
    if found.st_size > max_bytes:
        raise ModelFileError(
            f"The file has {found.st_size} bytes, more than max_bytes={max_bytes}. If you trust it, raise max_bytes=."
        )
    return unpack_container(content, kind=kind, max_bytes=max_bytes)


def _read_version_1(head: dict[str, Any], parts: dict[str, bytes]) -> Container:
    wanted: Any = head.get("parts")
    content: Any = head.get("content")
    kind, made_by, reveals = (cast("Any", head.get(key)) for key in ("kind", "made_by", "reveals"))
    shaped = isinstance(wanted, dict) and isinstance(content, dict) and isinstance(reveals, str)
    if not shaped or not isinstance(kind, str) or not _KIND.fullmatch(kind) or not _is_text_by_text(made_by):
        raise ModelFileError("The file's schema does not have what every file of this format has; do not trust it.")
    if set(wanted) != set(parts):
        raise ModelFileError("The file has other parts than its schema lists; do not trust it.")
    arrays = {}
    for name in sorted(parts):
        if wanted[name] != {"bytes": len(parts[name]), "sha256": _sha256(parts[name])}:
            raise ModelFileError(f"Part {name!r} does not match its checksum: the file is damaged. Use a backup.")
        if not name.startswith("arrays/") or not name.endswith(".npy"):
            raise ModelFileError("The file has a part that is no array; no file of ours has.")
        arrays[name[len("arrays/") : -len(".npy")]] = from_npy(parts[name], name=name)
    return Container(kind, content, arrays, made_by, reveals, 1)


#: A reader for each format version ever released.
_READERS: dict[int, Callable[[dict[str, Any], dict[str, bytes]], Container]] = {1: _read_version_1}


def _version_of(head: dict[str, Any]) -> int:
    version = head.get("format_version")
    return version if isinstance(version, int) and not isinstance(version, bool) else -1


def _unknown_version(head: dict[str, Any]) -> str:
    version, made_by = _version_of(head), head.get("made_by")
    writer = made_by.get("fairtransport") if isinstance(made_by, dict) else None
    told = f" (written by fairtransport {writer})" if isinstance(writer, str) and _SHOWN.fullmatch(writer) else ""
    if not 0 <= version < 1_000_000:
        return "The file does not say which format version it has; do not trust it."
    return (
        f"The file has format version {version}{told}; fairtransport {_own_version()} reads up to {FORMAT_VERSION}. "
        "Upgrade fairtransport, or save the model again with this version."
    )


def _own_version() -> str:
    return str(importlib.import_module("fairtransport").__version__)  # by name: the package stands above this room


def _is_text_by_text(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _comment(schema: bytes) -> bytes:
    return f"{FORMAT} sha256:{_sha256(schema)}".encode("ascii")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
