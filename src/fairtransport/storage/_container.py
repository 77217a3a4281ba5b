"""Container of JSON and arrays in one file, with a checksum for each part; the format of models and checkpoints.

The file is a zip without compression. ``schema.json`` contains the format, its version, the versions of the libraries
that wrote it, and the SHA-256 of every array; ``arrays/*.npy`` are the arrays; the comment of the zip is the SHA-256 of
``schema.json``, which a signature may follow.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fairtransport.storage._archive import read_zip, with_comment, write_zip
from fairtransport.storage._atomic import write_atomically
from fairtransport.storage._limits import MAX_BYTES, ModelFileError
from fairtransport.storage._npy import from_npy, to_npy
from fairtransport.storage._signatures import (
    DIGITS,
    LABEL,
    SIGNATURE,
    check_signature,
    load_private_key,
    load_public_keys,
    signature_of,
)
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
    "read_file",
    "sign_container",
    "unpack_container",
    "write_container",
]

FORMAT = "fairtransport"
FORMAT_VERSION = 1
_SCHEMA = "schema.json"
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_PRINTABLE_VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,40}")  # that an error message may quote


@dataclass(frozen=True, eq=False, repr=False)
class Container:
    """Content of a file, each part of which was checked.

    Attributes
    ----------
    kind : str
        Kind of content, such as ``"model"`` or ``"checkpoint"``.
    schema : dict
        JSON content.
    arrays : dict of str to ndarray
        Arrays by name.
    made_by : dict of str to str
        Versions of the libraries that wrote the file, by name.
    reveals : str
        What the file reveals about the people in the data.
    format_version : int
        Version of the container format.
    is_signed : bool
        Whether the file has a signature; only ``verify=`` checks it.
    """

    kind: str
    schema: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    made_by: dict[str, str]
    reveals: str
    format_version: int
    is_signed: bool = False

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
    """Return a container as bytes; equal content and equal versions of libraries give equal bytes.

    Parameters
    ----------
    kind : str
        Kind of content in lower-case letters, such as ``"checkpoint"``.
    schema : dict
        Content that JSON can represent: text keys, finite numbers.
    arrays : dict of str to ndarray
        Arrays of numbers, booleans or text, not of objects. Names consist of letters, digits, ``_``, ``-``, ``.`` and
        ``/``, which separates folders.
    reveals : str, optional
        What the file reveals about the people in the data.
    versions : dict of str to str, optional
        Versions of further libraries that the content depends on.

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
    made_by = {"fairtransport": _fairtransport_version(), "numpy": np.__version__, "python": platform.python_version()}
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


def unpack_container(
    content: bytes, *, kind: str | None = None, max_bytes: int = MAX_BYTES, verify: Any = None
) -> Container:
    """Return the checked content of a container from an untrusted source.

    Parameters
    ----------
    content : bytes
    kind : str, optional
        Required kind of content.
    max_bytes : int, default=256 MiB
        Largest size. Reading needs up to three times the size, and 100 MiB, of memory.
    verify : path, bytes or key, or list of these, optional
        Ed25519 public key, in PEM. The content must have a signature by this key, or one of these, which is checked
        first.

    Returns
    -------
    Container

    Raises
    ------
    ModelFileError
        If the content is damaged, is not a container, or is of another kind or an unknown version. SignatureError, a
        subclass, if it has no valid signature.
    """
    if verify is not None:
        check_signature(content, load_public_keys(verify))
    parts, comment = read_zip(content, max_bytes=max_bytes)
    if _SCHEMA not in parts:
        raise ModelFileError("This zip is not a model file: it has no schema.json. Check the path.")
    text = parts.pop(_SCHEMA)
    head = from_json(text, name=_SCHEMA)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ModelFileError("This zip is not a model file of fairtransport. Check the path.")
    read = _READERS.get(_version_of(head))
    if read is None:
        raise ModelFileError(_unknown_version(head))
    is_signed = SIGNATURE.fullmatch(comment[len(_comment(text)) :]) is not None
    if comment[: len(_comment(text))] != _comment(text) or not (is_signed or len(comment) == len(_comment(text))):
        raise ModelFileError(
            "The file is damaged: its schema does not match its checksum. Copy it again, or use a backup."
        )
    container = replace(read(head, parts), is_signed=is_signed)
    if kind is not None and container.kind != kind:
        raise ModelFileError(f"The file contains a {container.kind!r}, but a {kind!r} is needed. Check the path.")
    return container


def sign_container(content: bytes, key: Any, *, password: bytes | None = None) -> bytes:
    """Return a container with a signature, instead of the one that it may have.

    Parameters
    ----------
    content : bytes
        From `pack_container`; it is checked.
    key : path, bytes or key
        Ed25519 private key, in PEM.
    password : bytes, optional
        Password of the private key.
    """
    private = load_private_key(key, password=password)
    unpack_container(content, max_bytes=len(content))
    _, comment = read_zip(content, max_bytes=len(content))
    label = SIGNATURE.sub(b"", comment) + LABEL
    body = with_comment(content, label + b"0" * DIGITS)[:-DIGITS]
    return body + signature_of(body, private)


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    schema: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    reveals: str = "",
    versions: Mapping[str, str] | None = None,
) -> Path:
    """Write a container atomically; see `pack_container` for the parameters.

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


def read_container(
    path: str | os.PathLike[str], *, kind: str | None = None, max_bytes: int = MAX_BYTES, verify: Any = None
) -> Container:
    """Read a container; see `unpack_container`. A path that is not a regular file raises a ModelFileError."""
    return unpack_container(read_file(path, max_bytes=max_bytes), kind=kind, max_bytes=max_bytes, verify=verify)


def read_file(path: str | os.PathLike[str], *, max_bytes: int) -> bytes:
    """Return the bytes of a regular file; raise a ModelFileError for other paths and larger files."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
    handle = os.open(Path(path), flags)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError("The path is not a regular file but a folder, pipe or device. Check it.")
        if status.st_size > max_bytes:
            raise ModelFileError(
                f"The file has {status.st_size} bytes, more than max_bytes={max_bytes}. If you trust it, raise "
                "max_bytes=."
            )
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(status.st_size + 1)
    finally:
        os.close(handle)


def _read_version_1(head: dict[str, Any], parts: dict[str, memoryview]) -> Container:
    listed: Any = head.get("parts")
    content: Any = head.get("content")
    kind, made_by, reveals = (cast("Any", head.get(key)) for key in ("kind", "made_by", "reveals"))
    shaped = isinstance(listed, dict) and isinstance(content, dict) and isinstance(reveals, str)
    if not shaped or not isinstance(kind, str) or not _KIND.fullmatch(kind) or not _is_dict_of_text(made_by):
        raise ModelFileError("The schema of the file is not valid; do not trust it.")
    if set(listed) != set(parts):
        raise ModelFileError("The parts of the file are not those that its schema lists; do not trust it.")
    arrays = {}
    for name in sorted(parts):
        if listed[name] != {"bytes": len(parts[name]), "sha256": _sha256(parts[name])}:
            raise ModelFileError(f"Part {name!r} does not match its checksum: the file is damaged. Use a backup.")
        if not name.startswith("arrays/") or not name.endswith(".npy"):
            raise ModelFileError("The file has a part that is not an array; do not trust it.")
        arrays[name[len("arrays/") : -len(".npy")]] = from_npy(parts[name], name=name)
    return Container(kind, content, arrays, made_by, reveals, 1)


#: Reader of each released version of the format.
_READERS: dict[int, Callable[[dict[str, Any], dict[str, memoryview]], Container]] = {1: _read_version_1}


def _version_of(head: dict[str, Any]) -> int:
    version = head.get("format_version")
    return version if isinstance(version, int) and not isinstance(version, bool) else -1


def _unknown_version(head: dict[str, Any]) -> str:
    version, made_by = _version_of(head), head.get("made_by")
    writer = made_by.get("fairtransport") if isinstance(made_by, dict) else None
    origin = (
        f" (written by fairtransport {writer})"
        if isinstance(writer, str) and _PRINTABLE_VERSION.fullmatch(writer)
        else ""
    )
    if not 0 <= version < 1_000_000:
        return "The file does not state its format version; do not trust it."
    return (
        f"The file has format version {version}{origin}; fairtransport {_fairtransport_version()} reads "
        f"versions up to {FORMAT_VERSION}. Upgrade fairtransport, or save the model again with this version."
    )


def _fairtransport_version() -> str:
    return str(importlib.import_module("fairtransport").__version__)  # by name, to avoid a circular import


def _is_dict_of_text(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _comment(schema: bytes | memoryview) -> bytes:
    return f"{FORMAT} sha256:{_sha256(schema)}".encode("ascii")


def _sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
